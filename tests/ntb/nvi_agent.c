/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nvi_break.h"
#include "nvi_disconnect.h"
#include "nvi_mem.h"
#include "nvi_window.h"
#include "w_grant.h"

#define MEMORIES 64u

struct memory {
	struct port_slice slice;
	void *addr; /* NULL: free */
};

struct nvi_agent {
	struct nvi_loop *loop;
	struct nvi_nic *nic;
	struct port *port;
	int sock;
	pthread_mutex_t lock; /* all below */
	uint64_t conn[2];
	struct memory memory[MEMORIES];
	uint32_t sent[8], closed, swallow;
	bool no_slices;
	bool threaded;
	pthread_t thread;
};

static struct nvi_chan *chan(struct nvi_agent *a, int end)
{
	return nvi_loop_vi(a->loop, end)->prov;
}

static uint64_t conn_of(struct nvi_agent *a, int end)
{
	uint64_t conn;

	pthread_mutex_lock(&a->lock);
	conn = a->conn[end];
	pthread_mutex_unlock(&a->lock);
	return conn;
}

/* The end that has this connection, -1: none has. */
static int end_of(struct nvi_agent *a, uint64_t conn)
{
	return conn == conn_of(a, 0) ? 0 : conn == conn_of(a, 1) ? 1 : -1;
}

static void enter(struct nvi_agent *a, int end, uint64_t conn)
{
	pthread_mutex_lock(&a->lock);
	a->conn[end] = conn;
	pthread_mutex_unlock(&a->lock);
	pthread_mutex_lock(&a->nic->ctl_lock);
	nvi_chan_enter(a->nic, chan(a, end), conn);
	pthread_mutex_unlock(&a->nic->ctl_lock);
}

struct nvi_agent *nvi_agent_start(struct nvi_loop *loop, uint32_t revoke_ms)
{
	struct nvi_agent *a = calloc(1, sizeof(*a));
	int pair[2];

	if (a == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		abort();
	a->loop = loop;
	a->nic = nvi_loop_nic(loop)->prov;
	a->port = a->nic->ports[0]->port;
	a->sock = pair[1];
	pthread_mutex_init(&a->lock, NULL);
	a->nic->out.sock = pair[0];
	a->nic->revoke_ms = revoke_ms;
	enter(a, 0, 1);
	enter(a, 1, 2);
	return a;
}

void nvi_agent_stop(struct nvi_agent *a)
{
	for (int end = 0; end < 2; end++)
		nvi_agent_disconnect(a, end);
	shutdown(a->sock, SHUT_RDWR);
	if (a->threaded)
		pthread_join(a->thread, NULL);
	close(a->sock);
	close(a->nic->out.sock);
	a->nic->out.sock = -1;
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* ---- messages of the ends --------------------------------------------------------------------- */

static void deliver(struct nvi_agent *a, int end, const struct w_tell *msg, int fd)
{
	struct nvi_chan *ch = chan(a, end);

	/* As nvi_ctl.c: a message about a connection that is gone is dropped. */
	if (nvi_chan_is_conn(ch, a->nic, msg->conn))
		nvi_grant_told(a->nic, ch, msg, fd);
	if (fd >= 0)
		close(fd);
}

static int open_slice(struct nvi_agent *a, uint32_t id)
{
	int fd = -1;

	pthread_mutex_lock(&a->lock);
	for (unsigned int i = 0; i < MEMORIES && id != 0 && !a->no_slices; i++)
		if (a->memory[i].addr != NULL && a->memory[i].slice.id == id)
			fd = fcntl(a->memory[i].slice.fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&a->lock);
	return fd;
}

static void on_tell(struct nvi_agent *a, struct w_tell *msg)
{
	int end = end_of(a, msg->conn);
	struct w_grant grant;
	bool swallowed;

	memcpy(&grant, msg->body, sizeof(grant));
	pthread_mutex_lock(&a->lock);
	a->sent[grant.kind % 8]++;
	swallowed = (a->swallow >> grant.kind & 1) != 0;
	pthread_mutex_unlock(&a->lock);
	if (swallowed || end < 0)
		return;
	msg->conn = conn_of(a, !end);
	deliver(a, !end, msg, open_slice(a, msg->slice_id));
}

static void on_free(struct nvi_agent *a, uint32_t id)
{
	pthread_mutex_lock(&a->lock);
	for (unsigned int i = 0; i < MEMORIES; i++) {
		struct memory *m = &a->memory[i];

		if (m->addr != NULL && m->slice.id == id) {
			m->addr = NULL;
			port_slice_free(a->port, id);
			close(m->slice.fd);
		}
	}
	pthread_mutex_unlock(&a->lock);
}

static void on_close(struct nvi_agent *a, uint64_t conn)
{
	int end = end_of(a, conn);

	pthread_mutex_lock(&a->lock);
	a->closed++;
	pthread_mutex_unlock(&a->lock);
	if (end >= 0)
		nvi_agent_lost(a, !end);
}

static int handle(struct nvi_agent *a, int flags)
{
	union {
		struct w_ctl_hdr hdr;
		struct w_conn conn;
		struct w_tell tell;
		struct w_alloc alloc;
		uint8_t bytes[W_CTL_MAX];
	} m;
	ssize_t got = recv(a->sock, &m, sizeof(m), flags);

	if (got <= 0)
		return (int)got;
	if (w_ctl_check(&m, (uint32_t)got) < 0)
		abort();
	switch (m.hdr.type) {
	case W_TELL:
		on_tell(a, &m.tell);
		break;
	case W_FREE:
		on_free(a, m.alloc.slice_id);
		break;
	case W_CLOSE:
		on_close(a, m.conn.conn);
		break;
	default:
		abort();
	}
	return 1;
}

int nvi_agent_step(struct nvi_agent *a)
{
	int count = 0;

	while (handle(a, MSG_DONTWAIT) > 0)
		count++;
	return count;
}

static void *run(void *arg)
{
	struct nvi_agent *a = arg;

	while (handle(a, 0) > 0)
		;
	return NULL;
}

void nvi_agent_thread(struct nvi_agent *a)
{
	a->threaded = pthread_create(&a->thread, NULL, run, a) == 0;
	if (!a->threaded)
		abort();
}

/* ---- actions for tests ------------------------------------------------------------------------ */

void nvi_agent_swallow(struct nvi_agent *a, uint32_t kinds)
{
	pthread_mutex_lock(&a->lock);
	a->swallow = kinds;
	pthread_mutex_unlock(&a->lock);
}

void nvi_agent_no_slices(struct nvi_agent *a, bool yes)
{
	pthread_mutex_lock(&a->lock);
	a->no_slices = yes;
	pthread_mutex_unlock(&a->lock);
}

uint32_t nvi_agent_sent(struct nvi_agent *a, uint32_t kind)
{
	uint32_t n;

	pthread_mutex_lock(&a->lock);
	n = a->sent[kind];
	pthread_mutex_unlock(&a->lock);
	return n;
}

uint32_t nvi_agent_closed(struct nvi_agent *a)
{
	uint32_t n;

	pthread_mutex_lock(&a->lock);
	n = a->closed;
	pthread_mutex_unlock(&a->lock);
	return n;
}

void nvi_agent_deliver(struct nvi_agent *a, int end, const void *body, uint32_t len, int fd)
{
	struct w_tell msg = { .conn = conn_of(a, end), .body_len = len };

	memcpy(msg.body, body, len);
	w_ctl_init(&msg, W_TOLD, sizeof(msg));
	if (w_ctl_check(&msg, sizeof(msg)) != W_TOLD)
		abort();
	deliver(a, end, &msg, fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1);
}

void nvi_agent_lost(struct nvi_agent *a, int end)
{
	uint64_t conn = conn_of(a, end);

	nvi_chan_lost(chan(a, end), a->nic, conn, W_LOST_CLOSED);
	nvi_given_forget(a->nic, conn);
}

void nvi_agent_disconnect(struct nvi_agent *a, int end)
{
	nvi_disconnect(nvi_loop_vi(a->loop, end));
}

int nvi_agent_reconnect(struct nvi_agent *a)
{
	return nvi_agent_reconnect_after(a, NULL, NULL);
}

int nvi_agent_reconnect_after(struct nvi_agent *a, void (*between)(void *), void *arg)
{
	for (int end = 0; end < 2; end++)
		nvi_agent_disconnect(a, end);
	if (between != NULL)
		between(arg);
	if (nvi_loop_reconnect(a->loop) != 0)
		return -1;
	for (int end = 0; end < 2; end++)
		enter(a, end, conn_of(a, end) + 2);
	return 0;
}

/* ---- window memory --------------------------------------------------------------------------- */

static struct nvi_window *make_window(struct nvi_agent *a, uint64_t len, struct memory *m)
{
	struct nvi_window *w = calloc(1, sizeof(*w));

	if (w == NULL || port_slice_alloc(a->port, len, &m->slice) != 0) {
		free(w);
		return NULL;
	}
	w->slice_id = m->slice.id;
	w->port = nvi_port_get(a->nic, 0);
	if (port_map(w->port->port, m->slice.fd, len, PORT_INBOUND, &w->map) != 0)
		abort();
	m->addr = w->map.base;
	nvi_window_enter(a->nic, w);
	return w;
}

uint8_t *nvi_agent_alloc(struct nvi_agent *a, uint64_t len, bool open, VIP_MEM_HANDLE *handle_out)
{
	VIP_MEM_ATTRIBUTES attrs = { .EnableRdmaWrite = open, .EnableRdmaRead = VIP_TRUE };
	struct nvi_window *w = NULL;

	pthread_mutex_lock(&a->lock);
	for (unsigned int i = 0; i < MEMORIES; i++) {
		if (a->memory[i].addr == NULL) {
			w = make_window(a, len, &a->memory[i]);
			break;
		}
	}
	pthread_mutex_unlock(&a->lock);
	if (w == NULL)
		return NULL;
	if (vi_mem_register(nvi_loop_nic(a->loop), w->map.base, len, &attrs, w, handle_out) != 0)
		abort();
	return w->map.base;
}

void nvi_agent_free(struct nvi_agent *a, uint8_t *addr, VIP_MEM_HANDLE handle)
{
	void *window;

	if (vi_mem_deregister(nvi_loop_nic(a->loop), addr, handle, &window) != 0)
		abort();
	nvi_window_free(nvi_loop_nic(a->loop), window);
}

int nvi_agent_open_memory(struct nvi_agent *a, uint8_t *addr, VIP_MEM_HANDLE handle, bool open)
{
	VIP_MEM_ATTRIBUTES attrs = { .EnableRdmaWrite = open, .EnableRdmaRead = VIP_TRUE };

	return vi_mem_set(nvi_loop_nic(a->loop), addr, handle, &attrs);
}

int nvi_agent_fd(struct nvi_agent *a, const uint8_t *addr)
{
	int fd = -1;

	pthread_mutex_lock(&a->lock);
	for (unsigned int i = 0; i < MEMORIES; i++)
		if (a->memory[i].addr == addr)
			fd = a->memory[i].slice.fd;
	pthread_mutex_unlock(&a->lock);
	return fd;
}

uint32_t nvi_agent_held(struct nvi_agent *a, int end)
{
	struct nvi_chan *ch = chan(a, end);
	uint32_t n = 0;

	u_biased_take(&ch->vi->tx_lock);
	for (unsigned int i = 0; i < NVI_GRANTS_MAX; i++)
		n += ch->tx.grants[i].state == NVI_GRANT_HELD;
	u_biased_drop(&ch->vi->tx_lock);
	return n;
}

uint32_t nvi_agent_given(struct nvi_agent *a)
{
	uint32_t n = 0;

	pthread_mutex_lock(&a->nic->mem_lock);
	for (unsigned int i = 0; i < NVI_CONN_BUCKETS; i++)
		for (struct nvi_given *g = a->nic->given[i]; g != NULL; g = g->next)
			n++;
	pthread_mutex_unlock(&a->nic->mem_lock);
	return n;
}
