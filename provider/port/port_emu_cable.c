/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cable of an emulated port: what the two agents say to each other.  All
 * of it is checked: a far side that breaks the rules is unplugged.  Nothing
 * here blocks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "port_emu_priv.h"
#include "u_log.h"

/* Sends one message now; -EAGAIN when the cable is full. */
static int cable_send(struct emu_port *e, const struct emu_msg *msg, int fd)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .hdr = { .cmsg_len = CMSG_LEN(sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg, .iov_len = sizeof(*msg) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.hdr), &fd, sizeof(fd));
		mh.msg_control = &control;
		mh.msg_controllen = sizeof(control.room);
	}
	while (sendmsg(e->sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static void cable_watch(struct emu_port *e)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (e->backlog_count > 0)
		ev.events |= EPOLLOUT;
	epoll_ctl(e->epoll_fd, EPOLL_CTL_MOD, e->sock, &ev);
}

void emu_cable_output(struct emu_port *e)
{
	uint32_t sent = 0;
	int err = 0;

	if (e->sock < 0 || e->backlog_count == 0)
		return;
	while (sent < e->backlog_count && err == 0) {
		err = cable_send(e, &e->backlog[sent], -1);
		if (err == 0)
			sent++;
	}
	if (err != 0 && err != -EAGAIN) {
		emu_cable_unplug(e, "the far side hung up");
		return;
	}
	e->backlog_count -= sent;
	memmove(e->backlog, e->backlog + sent, e->backlog_count * sizeof(*e->backlog));
	if (sent > 0)
		cable_watch(e);
}

static void backlog_add(struct emu_port *e, const struct emu_msg *msg)
{
	if (e->backlog == NULL)
		e->backlog = malloc(EMU_BACKLOG_MAX * sizeof(*e->backlog));
	if (e->backlog == NULL || e->backlog_count == EMU_BACKLOG_MAX) {
		emu_cable_unplug(e, "the far side does not read");
		return;
	}
	e->backlog[e->backlog_count++] = *msg;
	cable_watch(e);
}

void emu_cable_say(struct emu_port *e, const struct emu_msg *msg)
{
	int err;

	if (e->sock < 0)
		return;
	emu_cable_output(e);
	if (e->sock < 0)
		return;
	err = e->backlog_count > 0 ? -EAGAIN : cable_send(e, msg, -1);
	if (err == -EAGAIN || err == -ENOBUFS)
		backlog_add(e, msg);
	else if (err != 0)
		emu_cable_unplug(e, "the far side hung up");
}

int emu_cable_offer(struct emu_port *e, uint32_t id, size_t len, int fd)
{
	struct emu_msg msg = emu_msg(EMU_OFFER);
	int err;

	emu_cable_output(e);
	if (e->sock < 0)
		return -ENOTCONN;
	if (e->backlog_count > 0)
		return -ENOBUFS;
	msg.id = id;
	msg.len = len;
	err = cable_send(e, &msg, fd);
	if (err == -EAGAIN || err == -ENOBUFS || err == -ETOOMANYREFS)
		return -ENOBUFS;
	if (err != 0) {
		emu_cable_unplug(e, "the far side hung up");
		return -ENOTCONN;
	}
	return 0;
}

static int cable_hello(struct emu_port *e)
{
	const struct port_limits *l = &e->view.port.limits;
	struct emu_msg msg = emu_msg(EMU_HELLO);

	msg.enabled = e->enabled;
	msg.len = l->window_bytes;
	msg.index = e->view.index;
	msg.db_bits = l->db_bits;
	msg.spads = l->spads;
	return cable_send(e, &msg, e->host->fd);
}

static int cable_is_ours(int fd)
{
	int type = 0;
	int domain = 0;
	socklen_t len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0)
		return -errno;
	len = sizeof(domain);
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0)
		return -errno;
	return type == SOCK_SEQPACKET && domain == AF_UNIX ? 0 : -EPROTOTYPE;
}

int emu_cable_plug(struct emu_port *e, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int err = cable_is_ours(fd);

	if (err == 0 && epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
		err = -errno;
	if (err != 0) {
		close(fd);
		return err;
	}
	e->sock = fd;
	e->cables = e->cables % 0x7fffffffu + 1;
	e->view.cable = e->cables;
	err = cable_hello(e);
	if (err != 0)
		emu_cable_unplug(e, "the far side hung up");
	emu_link_update(e);
	return err;
}

/* Slices offered over a cable that is gone are nobody's to open. */
static void cable_forget(struct emu_port *e)
{
	emu_slices_clear(&e->offers);
	for (uint32_t i = 0; i < e->own.count; i++)
		e->own.v[i].unopened = false;
	e->unopened = 0;
	e->backlog_count = 0;
	e->peer_enabled = false;
}

void emu_cable_unplug(struct emu_port *e, const char *why)
{
	if (e->sock < 0)
		return;
	if (why != NULL)
		u_log_gated(&e->unplugged, "port %s unplugged: %s", e->view.port.limits.name, why);
	epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, e->sock, NULL);
	close(e->sock);
	e->sock = -1;
	cable_forget(e);
	emu_link_update(e);
	if (e->peer_fd >= 0)
		close(e->peer_fd);
	e->peer_fd = -1;
	emu_regs_unmap(e->view.peer.regs);
	e->view.peer = (struct emu_peer){ 0 };
}

static int on_hello(struct emu_port *e, const struct emu_msg *msg, int *fd)
{
	struct emu_regs *regs;
	int err;

	if (e->view.peer.regs != NULL || *fd < 0 || msg->index >= PORT_PER_HOST ||
	    msg->db_bits == 0 || msg->db_bits > PORT_DB_MAX || msg->spads == 0 ||
	    msg->spads > PORT_SPAD_MAX)
		return -EPROTO;
	err = emu_regs_map(*fd, &regs);
	if (err != 0)
		return err;
	e->view.peer = (struct emu_peer){
		.regs = regs, .index = msg->index, .db_bits = msg->db_bits, .spads = msg->spads
	};
	e->peer_fd = *fd;
	*fd = -1;
	e->peer_enabled = msg->enabled != 0;
	emu_link_update(e);
	return 0;
}

static int on_offer(struct emu_port *e, const struct emu_msg *msg, int *fd)
{
	struct emu_slice offer = { .id = msg->id, .fd = *fd, .len = (size_t)msg->len };
	int err;

	if (*fd < 0 || msg->id == 0 || msg->len == 0 || msg->len > (uint64_t)PTRDIFF_MAX ||
	    e->offers.count >= EMU_OFFERS_MAX || emu_slices_find(&e->offers, msg->id) != NULL)
		return -EPROTO;
	err = emu_memfd_check(*fd, offer.len);
	if (err == 0)
		err = emu_slices_add(&e->offers, &offer);
	if (err == 0)
		*fd = -1;
	return err;
}

/* Crossing messages make both of these unknown ids at times: no offence. */
static void on_free(struct emu_port *e, uint32_t id)
{
	struct emu_slice *offer = emu_slices_find(&e->offers, id);

	if (offer != NULL)
		emu_slices_del(&e->offers, offer);
}

static void on_taken(struct emu_port *e, uint32_t id)
{
	struct emu_slice *own = emu_slices_find(&e->own, id);

	if (own != NULL && own->unopened) {
		own->unopened = false;
		e->unopened--;
	}
}

/* Takes *fd by setting it to -1. */
static int cable_handle(struct emu_port *e, const struct emu_msg *msg, int *fd)
{
	if (msg->magic != EMU_MAGIC || msg->version != EMU_VERSION)
		return -EPROTO;
	if (msg->type == EMU_HELLO)
		return on_hello(e, msg, fd);
	if (e->view.peer.regs == NULL)
		return -EPROTO;
	if (msg->type == EMU_OFFER)
		return on_offer(e, msg, fd);
	if (*fd >= 0)
		return -EPROTO;
	switch (msg->type) {
	case EMU_LINK:
		e->peer_enabled = msg->enabled != 0;
		emu_link_update(e);
		return 0;
	case EMU_FREE:
		on_free(e, msg->id);
		return 0;
	case EMU_TAKEN:
		on_taken(e, msg->id);
		return 0;
	default:
		return -EPROTO;
	}
}

/* Keeps the one descriptor a message may bring; closes what is beyond. */
static int cable_fds(struct msghdr *mh, int *fd_out)
{
	int count = 0;
	int fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c != NULL; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(fd) <= c->cmsg_len - CMSG_LEN(0);
		     at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (count++ == 0)
				*fd_out = fd;
			else
				close(fd);
		}
	}
	if (count > 1 || (count > 0 && (mh->msg_flags & MSG_CTRUNC) != 0))
		return -EPROTO;
	/* None came though one was sent: this process has no descriptor numbers left. */
	return (mh->msg_flags & MSG_CTRUNC) != 0 ? -EMFILE : 0;
}

/* Receives and handles one message: 0, -EAGAIN when there is none, or why to unplug. */
static int cable_receive(struct emu_port *e)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct emu_msg msg;
	struct iovec iov = { .iov_base = &msg, .iov_len = sizeof(msg) };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(e->sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd = -1;
	int err;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	err = cable_fds(&mh, &fd);
	/* A slice that nobody here can open: whoever names it is refused. */
	if (err == -EMFILE && n == (ssize_t)sizeof(msg) && msg.magic == EMU_MAGIC &&
	    msg.type == EMU_OFFER)
		return 0;
	if (n == 0 && fd < 0)
		return -ECONNRESET;
	if (err == 0)
		err = n == (ssize_t)sizeof(msg) && (mh.msg_flags & MSG_TRUNC) == 0 ? 0 : -EPROTO;
	if (err == 0)
		err = cable_handle(e, &msg, &fd);
	if (fd >= 0)
		close(fd);
	return err;
}

void emu_cable_input(struct emu_port *e, unsigned int limit)
{
	int err = 0;

	while (e->sock >= 0 && limit-- > 0 && err == 0)
		err = cable_receive(e);
	if (e->sock < 0 || err == 0 || err == -EAGAIN)
		return;
	if (err == -ECONNRESET) {
		emu_cable_unplug(e, "the far side hung up");
		return;
	}
	u_log_gated(&e->misread,
		    "port %s unplugged: a message of the cable protocol was sought, something "
		    "else came (%s); is the neighbour of the same version?",
		    e->view.port.limits.name, strerror(-err));
	emu_cable_unplug(e, NULL);
}
