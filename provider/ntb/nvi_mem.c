/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvi_mem.h"
#include "nvi_req.h"
#include "nvi_window.h"
#include "u_fd.h"
#include "u_log.h"

/* Maps the slice that came with the agent's answer as a window.  0 or -errno; then no view of the port is held. */
static int window_map(struct nvi_nic *nic, struct nvi_req *req, uint64_t len, struct nvi_window *w)
{
	char text[U_FD_ERROR];
	int err;

	w->slice_id = req->answer.alloc.slice_id;
	if (req->fd < 0) {
		u_log_ratelimited(&nic->unattached, "window memory cannot be mapped: %s",
				  u_fd_error(EMFILE, text));
		return -EMFILE;
	}
	w->port = nvi_port_get(nic, 0);
	if (w->port == NULL)
		return -ENODEV;
	err = port_map(w->port->port, req->fd, len, PORT_INBOUND, &w->map);
	if (err != 0)
		nvi_port_put(w->port);
	return err;
}

int nvi_window_alloc(struct vi_nic *vi_nic, uint64_t len, bool sealed, void **addr_out,
		     void **window_out)
{
	struct nvi_nic *nic = vi_nic->prov;
	struct nvi_window *w = calloc(1, sizeof(*w));
	struct w_alloc msg;
	struct nvi_req req;
	int err;

	if (w == NULL)
		return -ENOMEM;
	memset(&msg, 0, sizeof(msg));
	msg.length = u_align_up(len, 4096);
	msg.slice_id = sealed ? W_ALLOC_SEALED : W_ALLOC_ANY;
	err = nvi_ctl_call(nic, &req, &msg, W_ALLOC, sizeof(msg), &msg.token);
	if (err == 0) {
		err = window_map(nic, &req, msg.length, w);
		nvi_req_end(nic, &req);
		if (err != 0) {
			msg.slice_id = req.answer.alloc.slice_id;
			nvi_ctl_send(nic, &msg, W_FREE, sizeof(msg));
		}
	}
	if (err != 0) {
		free(w);
		return err;
	}
	nvi_window_enter(nic, w);
	*addr_out = w->map.base;
	*window_out = w;
	return 0;
}

void nvi_window_free(struct vi_nic *vi_nic, void *window)
{
	struct nvi_window *w = window;
	struct w_alloc msg;

	memset(&msg, 0, sizeof(msg));
	msg.slice_id = w->slice_id;
	/*
	 * From here on a write through its handle is refused, so that it does not go to pages that
	 * no process has.
	 */
	nvi_window_revoke(vi_nic, w);
	nvi_window_leave(vi_nic->prov, w);
	port_unmap(w->port->port, &w->map);
	nvi_port_put(w->port);
	nvi_ctl_send(vi_nic->prov, &msg, W_FREE, sizeof(msg));
	free(w);
}
