/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of processes: each is read, checked, and passed to the unit that it concerns. */
#include "ag_dispatch.h"

#include <errno.h>
#include <sys/epoll.h>

#include "ag_admin.h"
#include "ag_client.h"
#include "ag_connect.h"
#include "ag_listing.h"
#include "ag_mem.h"
#include "ag_name.h"
#include "ag_peer.h"
#include "ag_record.h"
#include "ag_resume.h"
#include "ag_session.h"
#include "w_ctl.h"

#define READ_BATCH 64 /* messages of one client that are handled before those of others */

/* Passes a message that only processes with a NIC may send to its unit. */
static void nic_message(struct ag_client *c, const void *msg, int type)
{
	switch (type) {
	case W_LISTEN:
		ag_connect_listen(c, msg);
		break;
	case W_UNLISTEN:
		ag_connect_unlisten(c, msg);
		break;
	case W_CONNECT:
		ag_connect_request(c, msg);
		break;
	case W_PEER:
		ag_peer_request(c, msg);
		break;
	case W_CANCEL:
		ag_connect_cancel(c, msg);
		break;
	case W_ACCEPT:
		ag_connect_accept(c, msg);
		break;
	case W_REJECT:
		ag_connect_reject(c, msg);
		break;
	case W_PORT_AGAIN:
		/*
		 * The client is told about the port again before its next use, when there may be
		 * descriptors again.
		 */
		c->port_sent[((const struct w_conn *)msg)->conn] = 0;
		break;
	case W_SUSPENDED:
		ag_resume_suspended(c, msg);
		break;
	case W_CONFIRM:
		ag_connect_confirm(c, msg);
		break;
	case W_CLOSE:
		ag_connect_close(c, msg);
		break;
	case W_ALLOC:
		ag_mem_alloc(c, msg);
		break;
	case W_FREE:
		ag_mem_free(c, msg);
		break;
	case W_TELL:
		ag_mem_tell(c, msg);
		break;
	}
}

/* Passes a checked message to its unit.  A client that may not send it, or not now, is dropped. */
static void message(struct ag_client *c, const void *msg, int type)
{
	if ((type == W_HELLO) != (c->kind == 0)) {
		ag_client_drop(c, "HELLO must come first, and once");
		return;
	}
	switch (type) {
	case W_HELLO:
		ag_session_hello(c, msg);
		break;
	case W_NAME:
		ag_name_lookup(c, msg);
		break;
	case W_ADDR_NAME:
		ag_name_reverse(c, msg);
		break;
	case W_ROUTE:
		ag_name_route(c, msg);
		break;
	case W_LIST:
		ag_listing_item(c, msg);
		break;
	case W_ADMIN:
		ag_admin(c, msg);
		break;
	case W_COUNT:
		ag_listing_count(c, msg);
		break;
	case W_COUNTED:
		ag_listing_counted(c, msg);
		break;
	default:
		if (type > W_PORT_AGAIN || c->kind != W_KIND_NIC)
			ag_client_drop(c, "sent a message that is not a process's to send");
		else
			nic_message(c, msg, type);
	}
}

/*
 * Reads and handles one message, and the records to self that it caused.  0: there may be more, unless its handler
 * has dropped or paused the client; -EAGAIN: there is none; -EPIPE: the client was dropped, or leaves as its version
 * differs.
 */
static int read_one(struct ag_client *c)
{
	_Alignas(8) uint8_t buf[W_CTL_MAX];
	int len, type;

	len = w_ctl_recv_bare(c->sock, buf, sizeof(buf), !c->agent->rights_kept_out);
	if (len == -EAGAIN)
		return -EAGAIN;
	if (len == 0 || len == -ECONNRESET) {
		ag_client_left(c);
		return -EPIPE;
	}
	if (len < 0) {
		ag_client_drop(c, len == -EPROTO    ? "malformed message"
				  : len == -EBADMSG ? "sent a descriptor"
						    : NULL);
		return -EPIPE;
	}
	type = w_ctl_check(buf, (uint32_t)len);
	if (type == -EPROTONOSUPPORT) {
		ag_session_bad_version(c, buf);
		return -EPIPE;
	}
	if (type < 0) {
		ag_client_drop(c, "malformed message");
		return -EPIPE;
	}
	message(c, buf, type);
	ag_record_drain_self(c->agent);
	return 0;
}

void ag_dispatch_event(struct ag_client *c, uint32_t events)
{
	int i;

	if ((events & EPOLLOUT) != 0)
		ag_client_writable(c);
	if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
		for (i = 0; i < READ_BATCH; i++) {
			if (c->gone || c->leaving || c->paused || read_one(c) != 0)
				break;
		}
	}
	/*
	 * The process has hung up, and its socket is not read any more, so no read would notice
	 * that.
	 */
	if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 && (c->leaving || c->paused))
		ag_client_left(c);
	if (!c->gone)
		ag_client_watch(c);
}

void ag_dispatch_ended(struct ag_client *c)
{
	int i;

	/* A forked child may continue to write, so there is a limit. */
	for (i = 0; i < 64 * READ_BATCH; i++) {
		if (c->gone || c->leaving || c->paused || read_one(c) != 0)
			break;
	}
	ag_client_left(c);
}
