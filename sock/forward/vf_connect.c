// SPDX-License-Identifier: BSD-2-Clause
#include "vf_connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vf_flow.h"
#include "vf_host.h"
#include "vf_loop.h"
#include "vf_name.h"
#include "vf_pair.h"
#include "vf_target.h"

struct attempt {
	struct vf_source source; /* the connection to the peer */
	struct attempt *next;
	struct vf_call call;
	int socket; /* the program's */
	uint64_t inode;
	struct sockaddr_storage peer;
	struct vs_addr addr; /* the same */
	int64_t until;
};

static struct attempt *attempts;

/* True: the socket has neither a connection nor a port, and does not listen. */
static bool is_fresh(int fd, struct sockaddr_storage *mine)
{
	struct tcp_info info = { 0 };
	struct vs_addr here;
	socklen_t n = sizeof(info), m = sizeof(*mine);

	return vf_target_is_tcp(fd) && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 &&
	       info.tcpi_state == TCP_CLOSE && getsockname(fd, (struct sockaddr *)mine, &m) == 0 &&
	       vs_addr_of((struct sockaddr *)mine, m, &here) && here.port == 0;
}

/* Takes an attempt off the list, and frees it; its sockets are closed unless they are -1. */
static void end(struct attempt *a)
{
	struct attempt **at = &attempts;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	vf_loop_want(&a->source, 0);
	if (a->source.fd >= 0)
		close(a->source.fd);
	close(a->socket);
	free(a);
}

/* Has the kernel connect the program's socket to the peer, without waiting for that. */
static void connect_plainly(struct attempt *a)
{
	bool nonblock = vf_target_nonblock(a->socket);

	if (!nonblock)
		vf_target_set_nonblock(a->socket, true);
	connect(a->socket, (struct sockaddr *)&a->peer, vf_target_length(&a->peer));
	if (!nonblock)
		vf_target_set_nonblock(a->socket, false);
}

/*
 * True: the socket's connections leave this host as those of this process do, and its local ones reach this process: it
 * is of the same network namespace, and bound to no device.
 */
static bool is_of_this_network(int fd)
{
	int mine = vf_pair_socket(AF_INET), device = 0;
	uint64_t here = 0, there = 1;
	socklen_t n = sizeof(here), m = sizeof(there), k = sizeof(device);
	bool same;

	if (mine < 0)
		return false;
	same = getsockopt(mine, SOL_SOCKET, SO_NETNS_COOKIE, &here, &n) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &there, &m) == 0 && here == there &&
	       getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, &k) == 0 && device == 0;
	close(mine);
	return same;
}

/* Leaves the call to the kernel; begins that connection where a signal has ended the call, as the kernel would have. */
static void give_up(struct attempt *a)
{
	struct sockaddr_storage mine;
	bool fresh = is_fresh(a->socket, &mine), valid = vf_notify_valid(a->call.id);

	if (fresh)
		vf_name_source(a->socket, &mine, &a->addr);
	if (fresh && !valid)
		connect_plainly(a);
	vf_notify_go_on(a->call.id);
	end(a);
}

/* The addresses of the connection to the peer, as the program's socket would have them. */
static bool get_names(struct attempt *a, struct vf_names *names)
{
	socklen_t n = sizeof(names->local);

	names->peer = a->peer;
	return getsockname(a->source.fd, (struct sockaddr *)&names->local, &n) == 0;
}

/*
 * The connection exists: connects the program's socket with it.  A call that waits then ends in the kernel, which finds
 * its socket connecting.  One that has become void is completed, too: the kernel's goes on after a signal as well.
 */
static void hand_over(struct attempt *a)
{
	static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct vf_names names;
	bool used = false;
	int near;

	if (!get_names(a, &names)) {
		give_up(a);
		return;
	}
	near = vf_pair_join(a->socket, a->peer.ss_family, vs_addr_is_v4(&a->addr), &used);
	if (near < 0) {
		if (used)
			connect(a->socket, &nowhere, sizeof(nowhere));
		give_up(a);
		return;
	}
	vf_loop_want(&a->source, 0);
	if (vf_flow_start(near, a->source.fd, a->inode, &names))
		a->source.fd = -1;
	else
		close(near); /* resets the program's connection */
	if (vf_target_nonblock(a->socket))
		vf_notify_answer(a->call.id, -EINPROGRESS);
	else
		vf_notify_go_on(a->call.id);
	end(a);
}

static void ready(struct vf_source *source, uint32_t events)
{
	struct attempt *a = (struct attempt *)(void *)source;
	int error = 0;
	socklen_t n = sizeof(error);

	(void)events;
	if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error != 0)
		give_up(a);
	else
		hand_over(a);
}

static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);

	return getpeername(fd, (struct sockaddr *)&peer, &n) == 0;
}

/* Begins a connection to the peer as the program's socket would: from its address.  The socket, or -1. */
static int begin(const struct sockaddr_storage *peer, const struct sockaddr_storage *mine)
{
	int fd = socket(peer->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	int on = 1;
	struct vs_addr here;

	if (fd < 0)
		return -1;
	vf_flow_set_reset(fd, true);
	if (vs_addr_of((const struct sockaddr *)mine, sizeof(*mine), &here) &&
	    !vs_addr_is_any(&here)) {
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
		if (bind(fd, (const struct sockaddr *)mine, vf_target_length(mine)) != 0) {
			close(fd);
			return -1;
		}
	}
	if (connect(fd, (const struct sockaddr *)peer, vf_target_length(peer)) == 0 ||
	    errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

/* Begins an attempt, which has `socket` from then on.  False: it cannot be made. */
static bool start(const struct vf_call *call, int socket, const struct sockaddr_storage *peer,
		  const struct vs_addr *addr, const struct sockaddr_storage *mine)
{
	struct attempt *a = calloc(1, sizeof(*a));
	int fd = a ? begin(peer, mine) : -1;

	if (fd < 0) {
		free(a);
		return false;
	}
	*a = (struct attempt){ .source = { .ready = ready, .fd = fd },
			       .next = attempts,
			       .call = *call,
			       .socket = socket,
			       .inode = vf_target_inode(socket),
			       .peer = *peer,
			       .addr = *addr,
			       .until = vf_loop_now() + VF_CONNECT_MS };
	if (vf_loop_want(&a->source, EPOLLOUT) != 0) {
		close(fd);
		free(a);
		return false;
	}
	attempts = a;
	return true;
}

/*
 * A call on a socket for which there is an attempt: the first one again, after a signal, has its place; a second one at
 * the same time fails as the kernel's does.  False: there is none.
 */
static bool join(const struct vf_call *call, int socket)
{
	uint64_t inode = vf_target_inode(socket);
	struct attempt *a;

	for (a = attempts; a && a->inode != inode; a = a->next)
		;
	if (!a)
		return false;
	if (vf_notify_valid(a->call.id))
		vf_notify_answer(call->id, -EALREADY);
	else
		a->call = *call;
	return true;
}

/* True: the call is answered, or will be.  Has `socket` only if it was taken. */
static bool carry(const struct vf_call *call, int socket, const struct sockaddr_storage *peer,
		  const struct vs_addr *addr, bool *taken)
{
	struct sockaddr_storage mine;
	struct vs_addr local;

	if (join(call, socket))
		return true;
	if (!is_fresh(socket, &mine) || mine.ss_family != peer->ss_family)
		return false;
	vs_addr_of((struct sockaddr *)&mine, sizeof(mine), &local);
	if (is_of_this_network(socket) && vf_notify_valid(call->id) &&
	    vf_host_carries(call->thread, addr, &local))
		*taken = start(call, socket, peer, addr, &mine);
	if (!*taken && vf_notify_valid(call->id))
		vf_name_source(socket, &mine, addr);
	return *taken;
}

void vf_connect(const struct vf_call *call)
{
	struct sockaddr_storage peer;
	struct vs_addr addr;
	bool done = false, taken = false;
	int socket = -1;

	if (vf_name_read(call, &peer, &addr) && addr.port != 0)
		socket = vf_target_fd(call->thread, (int)call->args[0]);
	if (socket >= 0)
		done = carry(call, socket, &peer, &addr, &taken);
	if (!done)
		vf_notify_go_on(call->id);
	if (socket >= 0 && !taken)
		close(socket);
}

int vf_connect_check(void)
{
	int64_t now = vf_loop_now(), next = -1;
	struct attempt *a = attempts, *after;

	for (; a; a = after) {
		after = a->next;
		if (a->until <= now && is_connected(a->source.fd))
			ready(&a->source, EPOLLOUT);
		else if (a->until <= now)
			give_up(a);
		else if (next < 0 || a->until - now < next)
			next = a->until - now;
	}
	return (int)next;
}
