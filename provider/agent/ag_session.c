/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first message of a process and its answer, and freeing all objects of a process that leaves.
 *
 * That a process was killed shows at its socket, which the kernel closes (read_one() in ag_dispatch.c); if a
 * forked child still has that, at the end of the process (ag_dispatch_ended()).  Then ag_session_reap() finds its
 * client marked, and ag_session_end() frees its waiters, ends its connections, and frees its window memory with what
 * was shared of it (ag_mem_release()).  The agent of the other end of a connection gets a CLOSE with W_LOST_PROCESS
 * (ag_connect_leave()), and sends LOST to its process (ag_remote_close()), which breaks the VI (nvi_chan_lost()).
 */
#include "ag_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ag_alloc.h"
#include "ag_client.h"
#include "ag_conn.h"
#include "ag_connect.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_mem.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "ag_waiter.h"
#include "port_host.h"
#include "u_fd.h"
#include "u_log.h"
#include "w_ctl.h"

/*
 * Makes copies, which are the caller's, of the two descriptors that the process needs for port_irq_open().  0;
 * or -errno, and none is open.
 */
static int irq_fds(const struct ag_agent *a, int fds[2])
{
	int err;

	fds[0] = fcntl(port_host_doorbells_fd(a->host), F_DUPFD_CLOEXEC, 0);
	if (fds[0] < 0)
		return -errno;
	fds[1] = fcntl(port_host_status_fd(a->host), F_DUPFD_CLOEXEC, 0);
	if (fds[1] >= 0)
		return 0;
	err = -errno;
	close(fds[0]);
	return err;
}

/*
 * Sets *g to the smallest geometry of connections to neighbours, with the windows that are known and however many
 * connections there are.
 */
static void least_geometry(const struct ag_agent *a, struct w_geometry *g)
{
	struct w_geometry other;
	uint32_t i;

	ag_link_geometry(&a->links[0], 1, g);
	for (i = 1; i < a->link_count; i++) {
		ag_link_geometry(&a->links[i], 1, &other);
		ag_conn_limit_geometry(g, &other);
	}
	if (g->payload_bytes > a->cfg.payload_bytes)
		g->payload_bytes = a->cfg.payload_bytes;
}

/*
 * Answers HELLO.  A NIC also gets the descriptors of the interrupts; if there are none left, it is refused and
 * leaves.
 */
static void welcome(struct ag_client *c)
{
	struct ag_agent *a = c->agent;
	struct w_welcome m = {
		.host_id = (uint16_t)a->cfg.host_id,
		.host_count = (uint16_t)a->cfg.host_count,
		.client_id = c->id,
		.db_bit = c->db_bit,
		.port_count = a->link_count,
	};
	struct w_geometry least;
	char text[U_FD_ERROR], told[U_FD_ERROR + 16];
	bool nic = c->kind == W_KIND_NIC;
	int fds[2];

	w_ctl_init(&m, W_WELCOME, sizeof(m));
	least_geometry(a, &least);
	m.slots = least.slots;
	m.payload_bytes = least.payload_bytes;
	w_host_addr(m.host_id, m.host_addr);
	memcpy(m.host_name, a->names[m.host_id], sizeof(m.host_name));
	memcpy(m.fabric, a->fabric, sizeof(m.fabric));
	if (nic && irq_fds(a, fds) != 0) {
		snprintf(told, sizeof(told), "the agent has %s", u_fd_error(EMFILE, text));
		ag_client_refuse(c, W_DONE, 0, W_NO_RESOURCE, told);
		c->leaving = true;
		return;
	}
	ag_client_send(c, &m, fds, nic ? 2 : 0);
}

void ag_session_hello(struct ag_client *c, const struct w_hello *m)
{
	size_t i;

	c->kind = m->kind;
	if (c->kind == W_KIND_NIC)
		c->agent->nic_count++;
	memcpy(c->program, m->program, sizeof(c->program));
	for (i = 0; c->program[i] != '\0'; i++) {
		if (strchr("._-+@:/ ", c->program[i]) == NULL &&
		    !((c->program[i] | 32) >= 'a' && (c->program[i] | 32) <= 'z') &&
		    !(c->program[i] >= '0' && c->program[i] <= '9'))
			c->program[i] = '_';
	}
	u_debug("ag", "client %u pid %d program %s", c->id, (int)c->pid, c->program);
	welcome(c);
}

void ag_session_bad_version(struct ag_client *c, const void *msg)
{
	struct w_ctl_hdr hdr;
	char text[128];

	memcpy(&hdr, msg, sizeof(hdr));
	snprintf(text, sizeof(text),
		 "agent speaks version %u, you speak %u; use programs and agent of one release",
		 W_CTL_VERSION, hdr.version);
	ag_client_refuse(c, W_DONE, 0, W_BAD_VERSION, text);
	u_log_ratelimited(&c->agent->ratelimit[AG_RATELIMIT_CLIENT], "client %u pid %d: %s", c->id,
			  (int)c->pid, text);
	c->leaving = true;
	c->agent->dirty = true;
}

void ag_session_end(struct ag_client *c)
{
	struct ag_list *pos, *tmp;
	struct ag_conn *conn;

	c->gone = true;
	ag_list_each(pos, tmp, &c->listens)
		ag_listen_free(ag_list_entry(pos, struct ag_listen, in_client));
	while (!ag_list_empty(&c->conns)) {
		conn = ag_list_entry(c->conns.next, struct ag_conn, in_client);
		/* A process that was dropped may be in the middle of a copy out of its slice. */
		conn->held &= c->agent->ending || !c->left;
		ag_connect_leave(conn, W_LOST_PROCESS);
	}
	ag_list_each(pos, tmp, &c->allocs)
		ag_mem_release(c, ag_list_entry(pos, struct ag_alloc, node));
	ag_client_free(c);
}

void ag_session_reap(struct ag_agent *a)
{
	struct ag_list *pos, *tmp;
	struct ag_client *c;

	ag_list_each(pos, tmp, &a->clients)
	{
		c = ag_list_entry(pos, struct ag_client, node);
		if (c->gone || (c->leaving && ag_list_empty(&c->queue)))
			ag_session_end(c);
	}
}
