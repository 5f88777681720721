/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cable of an emulated port: the messages of the two agents to each other.  All are checked: a
 * far side that breaks the protocol is unplugged.  Nothing here blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "port_emu_priv.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_log.h"

/*
 * Sends one message now, with descriptor `fd`, which stays open, or -1 for none.  0 or -errno; -EAGAIN when the
 * cable is full.
 */
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

/* Lets the event descriptor report messages and, if some wait to be sent, room. */
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

/* Keeps a message until the cable has room; unplugs the cable when too many wait. */
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

	if (e->sock < 0 || e->hello_owed)
		return; /* HELLO will carry the state */
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
	if (e->sock < 0 || e->hello_owed)
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

/*
 * Sends this port's description and its descriptors.  A far side that has not yet accepted this
 * cable, or not yet checked the credentials of this side, takes no descriptors (-EPERM): then the
 * message is still to be sent, and goes when the far side's HELLO comes.  0 or -errno.
 */
static int cable_hello(struct emu_port *e)
{
	const struct port_limits *l = &e->view.port.limits;
	const struct emu_msg doorbells = emu_msg(EMU_DOORBELLS);
	struct emu_msg msg = emu_msg(EMU_HELLO);
	int err = cable_send(e, &doorbells, e->host->doorbells_fd);

	msg.enabled = e->enabled;
	msg.len = l->window_bytes;
	msg.index = e->view.index;
	msg.db_bits = l->db_bits;
	msg.spads = l->spads;
	msg.agent_bits = e->view.agent_bits;
	if (err == 0)
		err = cable_send(e, &msg, e->host->regs_fd);
	e->hello_owed = err == -EPERM;
	return err == -EPERM ? 0 : err;
}

/* Is it a SOCK_SEQPACKET Unix socket?  0: yes; else -errno. */
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

/*
 * Drops the state of a cable that is gone: the offers of the peer, messages that wait, and which own slices it
 * has yet to open, since nobody can open them.
 */
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
		u_log_ratelimited(&e->unplugged, "port %s unplugged: %s", e->view.port.limits.name,
				  why);
	epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, e->sock, NULL);
	u_hang_up(e->sock);
	e->sock = -1;
	e->hello_owed = false;
	cable_forget(e);
	emu_link_update(e);
	if (e->peer_fd >= 0)
		close(e->peer_fd);
	e->peer_fd = -1;
	emu_page_unmap(e->view.peer.doorbells);
	emu_page_unmap(e->view.peer.regs);
	e->view.peer = (struct emu_peer){ 0 };
}

/* Maps the doorbells of the peer, and takes *fd.  -EPROTO: no descriptor, or not for the first time. */
static int on_doorbells(struct emu_port *e, int *fd)
{
	int err;

	if (e->view.peer.doorbells != NULL || *fd < 0)
		return -EPROTO;
	err = emu_doorbells_map(*fd, &e->view.peer.doorbells);
	if (err != 0)
		return err;
	e->peer_fd = *fd;
	*fd = -1;
	return 0;
}

/*
 * Maps the registers of the peer, and notes its properties: the link may come up.  Sends this side's HELLO if
 * it is still owed.  `fd` stays the caller's.  0 or -errno; -EPROTO: malformed or out of turn.
 */
static int on_hello(struct emu_port *e, const struct emu_msg *msg, int fd)
{
	struct emu_peer *peer = &e->view.peer;
	struct emu_regs *regs;
	int err;

	if (peer->doorbells == NULL || peer->regs != NULL || fd < 0 ||
	    msg->index >= PORT_PER_HOST || msg->db_bits == 0 || msg->db_bits > PORT_DB_MAX ||
	    msg->spads == 0 || msg->spads > PORT_SPAD_MAX)
		return -EPROTO;
	err = emu_regs_map(fd, &regs);
	if (err != 0)
		return err;
	peer->regs = regs;
	peer->index = msg->index;
	peer->db_bits = msg->db_bits;
	peer->spads = msg->spads;
	peer->agent_bits = msg->agent_bits;
	e->peer_enabled = msg->enabled != 0;
	if (e->hello_owed)
		err = cable_hello(e);
	if (err == 0 && e->hello_owed)
		err = -EPERM;
	if (err == 0)
		emu_link_update(e);
	return err;
}

/*
 * Enters an offer of the peer, and takes *fd.  0; or the error of emu_memfd_check(), -ENOMEM, -EPROTO:
 * malformed, too many, or the id is in use.
 */
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

/*
 * FREE drops that offer of the peer.  In this and the next message an id may be unknown, because messages
 * crossed: that breaks no rule.
 */
static void on_free(struct emu_port *e, uint32_t id)
{
	struct emu_slice *offer = emu_slices_find(&e->offers, id);

	if (offer != NULL)
		emu_slices_del(&e->offers, offer);
}

/* OPENED: the peer has opened that own slice, whose offer no longer counts. */
static void on_opened(struct emu_port *e, uint32_t id)
{
	struct emu_slice *own = emu_slices_find(&e->own, id);

	if (own != NULL && own->unopened) {
		own->unopened = false;
		e->unopened--;
	}
}

/*
 * Handles one message.  Takes ownership of *fd by setting it to -1; else it stays the caller's.  0, or the
 * error for which the cable is unplugged.
 */
static int cable_handle(struct emu_port *e, const struct emu_msg *msg, int *fd)
{
	if (msg->magic != EMU_MAGIC || msg->version != EMU_VERSION)
		return -EPROTO;
	if (msg->type == EMU_DOORBELLS)
		return on_doorbells(e, fd);
	if (msg->type == EMU_HELLO)
		return on_hello(e, msg, *fd);
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
	case EMU_OPENED:
		on_opened(e, msg->id);
		return 0;
	default:
		return -EPROTO;
	}
}

/*
 * Stores the one descriptor that a message may bring in *fd_out, if it is memory, else leaves *fd_out as it is.  Has
 * another thread close any other, since that may take long.  Returns 0; -EPROTO: there was another, and *fd_out may
 * have been stored all the same; -EMFILE: one was sent and could not be received.
 */
static int cable_fds(struct msghdr *mh, int *fd_out)
{
	int count = 0, err = 0;
	int fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c != NULL; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(fd) <= c->cmsg_len - CMSG_LEN(0);
		     at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (count++ == 0 && fcntl(fd, F_GET_SEALS) >= 0) {
				*fd_out = fd;
			} else {
				u_close_foreign(fd);
				err = -EPROTO;
			}
		}
	}
	if (err != 0 || (count > 0 && (mh->msg_flags & MSG_CTRUNC) != 0))
		return -EPROTO;
	/* None came though one was sent: this process has no descriptor numbers left. */
	return (mh->msg_flags & MSG_CTRUNC) != 0 ? -EMFILE : 0;
}

/*
 * Peeks at the next message.  It stays in the queue with its descriptors, so that the kernel does not close
 * here those that do not fit.  Returns its length, 0 at hang-up, or -errno; *fd_out is the caller's, -1: none;
 * *err_out: the error for which it is refused, or 0.
 */
static ssize_t cable_peek(struct emu_port *e, struct emu_msg *msg, int *fd_out, int *err_out)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(e->sock, &mh, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd_out = -1;
	if (n < 0)
		return -errno;
	*err_out = cable_fds(&mh, fd_out);
	if (*err_out == 0 && n > 0 &&
	    (n != (ssize_t)sizeof(*msg) || (mh.msg_flags & MSG_TRUNC) != 0))
		*err_out = -EPROTO;
	return n;
}

/*
 * No descriptor number is left for the one that came: gives up the spare one to see whether it is memory, which this
 * process then cannot keep.  0: the offer was dropped; else the error for which the cable is unplugged.
 */
static int cable_starved(struct emu_port *e, struct emu_msg *msg)
{
	int fd = -1, err = -EMFILE;

	if (e->spare_fd >= 0)
		close(e->spare_fd);
	if (cable_peek(e, msg, &fd, &err) >= 0 && err == 0 && fd >= 0)
		err = msg->magic == EMU_MAGIC && msg->type == EMU_OFFER ? 0 : -EMFILE;
	/*
	 * While this process has it, removing the message from the queue does not close it for the
	 * last time.
	 */
	if (err == 0 && recv(e->sock, msg, sizeof(*msg), MSG_DONTWAIT) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	e->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return err;
}

/*
 * Receives and handles one message: 0, -EAGAIN when there is none, or the error for which the cable
 * is unplugged.
 */
static int cable_receive(struct emu_port *e)
{
	struct emu_msg msg;
	int fd, err;
	ssize_t n = cable_peek(e, &msg, &fd, &err);

	if (n < 0)
		return n == -EINTR ? 0 : (int)n;
	/* No process here can have this slice: opening it will be refused. */
	if (err == -EMFILE)
		return cable_starved(e, &msg);
	if (n == 0 && fd < 0)
		return -ECONNRESET;
	if (err == 0 && recv(e->sock, &msg, sizeof(msg), MSG_DONTWAIT) < 0)
		err = -errno;
	if (err == 0)
		err = cable_handle(e, &msg, &fd);
	if (fd >= 0)
		close(fd);
	return err;
}

void emu_cable_input(struct emu_port *e, unsigned int limit)
{
	char text[U_FD_ERROR];
	int err = 0;

	while (e->sock >= 0 && limit-- > 0 && err == 0)
		err = cable_receive(e);
	if (e->sock < 0 || err == 0 || err == -EAGAIN)
		return;
	if (err == -ECONNRESET) {
		emu_cable_unplug(e, "the far side hung up");
		return;
	}
	u_log_ratelimited(
		&e->misread,
		"port %s unplugged: a message of the cable protocol was sought, something "
		"else came (%s); is the neighbour of the same version?",
		e->view.port.limits.name, u_fd_error(-err, text));
	emu_cable_unplug(e, NULL);
}
