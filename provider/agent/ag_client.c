/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of the host: who may connect, what they say, and the queue of what they are told. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ag_priv.h"
#include "u_log.h"
#include "u_time.h"

#define READ_BATCH 64 /* messages of one client before the others get their turn */
#define GROUPS_MAX 65536

void ag_client_drop(struct ag_client *c, const char *why)
{
	if (c->gone)
		return;
	if (why != NULL)
		u_log_gated(&c->agent->gate[AG_GATE_CLIENT], "client %u pid %d dropped: %s", c->id,
			    (int)c->pid, why);
	c->gone = true;
	c->agent->dirty = true;
}

static void queue_clear(struct ag_client *c)
{
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &c->queue) ag_msg_free(ag_list_entry(pos, struct ag_msg, node));
	ag_list_init(&c->queue);
	c->queue_len = 0;
}

void ag_client_free(struct ag_client *c)
{
	struct ag_agent *a = c->agent;
	struct ag_list *pos, *tmp;

	c->gone = true;
	ag_list_each(pos, tmp, &c->listens)
		ag_listen_free(ag_list_entry(pos, struct ag_listen, in_client));
	while (!ag_list_empty(&c->conns))
		ag_cm_leave(ag_list_entry(c->conns.next, struct ag_conn, in_client),
			    W_LOST_PROCESS);
	ag_list_each(pos, tmp, &c->allocs)
		ag_mem_release(c, ag_list_entry(pos, struct ag_alloc, node));
	queue_clear(c);
	close(c->sock);
	if (c->pidfd >= 0)
		close(c->pidfd);
	ag_list_remove(&c->node);
	a->client_slot[c->index] = NULL;
	a->client_count--;
	a->idle_since = u_now_ns();
	u_debug("ag", "client %u pid %d left", c->id, (int)c->pid);
	free(c);
}

void ag_client_reap(struct ag_agent *a)
{
	struct ag_list *pos, *tmp;
	struct ag_client *c;

	ag_list_each(pos, tmp, &a->clients)
	{
		c = ag_list_entry(pos, struct ag_client, node);
		if (c->gone || (c->leaving && ag_list_empty(&c->queue)))
			ag_client_free(c);
	}
}

static void watch(struct ag_client *c)
{
	uint32_t events = EPOLLRDHUP;

	if (!c->paused && !c->leaving)
		events |= EPOLLIN;
	if (!ag_list_empty(&c->queue))
		events |= EPOLLOUT;
	if (events == c->events)
		return;
	c->events = events;
	if (ag_watch(c->agent, c->sock, events, AG_EV(AG_EV_CLIENT, c->index)) != 0)
		ag_client_drop(c, "cannot be watched");
}

/* Sends what the socket takes. */
static void flush(struct ag_client *c)
{
	struct ag_msg *m;
	int rc = 0;

	while (!ag_list_empty(&c->queue)) {
		m = ag_list_entry(c->queue.next, struct ag_msg, node);
		rc = w_ctl_send(c->sock, m->bytes, m->fds, m->nfds);
		if (rc != 0)
			break;
		ag_list_remove(&m->node);
		c->queue_len--;
		ag_msg_free(m);
	}
	if (rc != 0 && rc != -EAGAIN && rc != -ENOBUFS && rc != -ETOOMANYREFS && rc != -ENOMEM)
		ag_client_drop(c, rc == -EPIPE || rc == -ECONNRESET ? NULL : strerror(-rc));
	watch(c);
}

/* A client that is slow when thousands of its connections break is not to blame. */
static uint32_t queue_max(const struct ag_client *c, const void *msg)
{
	struct w_ctl_hdr hdr;

	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type == W_LOST)
		return AG_CLIENT_QUEUE + 2 * AG_CLIENT_CONNS_MAX;
	return AG_CLIENT_QUEUE + 2 * c->conn_count + c->listen_count;
}

void ag_client_send(struct ag_client *c, const void *msg, const int *fds, unsigned int nfds)
{
	struct ag_msg *m;
	unsigned int i;

	m = c->gone ? NULL : ag_msg_new(msg, fds, nfds);
	if (m == NULL || c->queue_len >= queue_max(c, msg)) {
		ag_client_drop(c, "does not read its messages");
		if (m != NULL)
			ag_msg_free(m);
		for (i = 0; m == NULL && i < nfds; i++)
			close(fds[i]);
		return;
	}
	ag_list_append(&c->queue, &m->node);
	c->queue_len++;
	flush(c);
}

/* Others can say as much as they like: who reads slowly is not to be dropped for that. */
bool ag_client_hears(struct ag_client *c)
{
	if (c->queue_len < AG_CLIENT_HEARS)
		return true;
	c->missed++;
	return false;
}

void ag_client_refuse(struct ag_client *c, enum w_ctl_type type, uint64_t token,
		      enum w_status status, const char *text)
{
	struct w_refused m = { .token = token, .status = status };

	w_ctl_init(&m, type, sizeof(m));
	snprintf(m.text, sizeof(m.text), "%s", text != NULL ? text : w_status_text(status));
	ag_client_send(c, &m, NULL, 0);
}

int ag_client_port(struct ag_client *c, struct ag_link *l)
{
	struct w_port m = { .index = l->index,
			    .link_up = ag_link_usable(l),
			    .link_generation = l->life };
	int borrowed[PORT_ATTACH_FDS], fds[PORT_ATTACH_FDS];
	unsigned int i, n = 0;
	int rc;

	if (c->port_sent[l->index] == l->life + 1)
		return 0;
	rc = port_export_view(l->port, m.view, sizeof(m.view), borrowed, &n);
	if (rc != 0)
		return rc;
	for (i = 0; i < n; i++) {
		fds[i] = fcntl(borrowed[i], F_DUPFD_CLOEXEC, 0);
		if (fds[i] < 0) {
			rc = -errno;
			while (i-- > 0)
				close(fds[i]);
			return rc;
		}
	}
	w_ctl_init(&m, W_PORT, sizeof(m));
	ag_client_send(c, &m, fds, n);
	c->port_sent[l->index] = l->life + 1;
	return 0;
}

/* ---- who may connect ---- */

static bool in_groups(int sock, const struct ucred *cred, gid_t group)
{
	gid_t some[64], *groups = some;
	socklen_t len = sizeof(some);
	bool found = cred->gid == group;
	size_t i;

	if (found)
		return true;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, some, &len) != 0) {
		if (errno != ERANGE || len > GROUPS_MAX * sizeof(gid_t))
			return false;
		groups = malloc(len);
		if (groups == NULL ||
		    getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) != 0)
			len = 0;
	}
	for (i = 0; i < len / sizeof(gid_t) && !found; i++)
		found = groups[i] == group;
	if (groups != some)
		free(groups);
	return found;
}

static bool allowed(struct ag_agent *a, int sock, struct ucred *cred)
{
	socklen_t len = sizeof(*cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, cred, &len) != 0)
		return false;
	if (cred->uid == a->cfg.owner || cred->uid == 0)
		return true;
	return a->cfg.group != AG_NO_GROUP && in_groups(sock, cred, a->cfg.group);
}

/*
 * One best-effort line for a process that cannot become a client, then hang up.
 * Closing a socket with something unread would reset it and lose that line.
 */
static void turn_away(int sock, enum w_status status, const char *text)
{
	struct w_refused m = { .status = status };
	char byte;

	w_ctl_init(&m, W_DONE, sizeof(m));
	snprintf(m.text, sizeof(m.text), "%s", text);
	w_ctl_send(sock, &m, NULL, 0);
	shutdown(sock, SHUT_RD);
	while (recv(sock, &byte, 1, MSG_DONTWAIT) > 0)
		;
	close(sock);
}

static int slot_find(struct ag_agent *a, uint32_t *index_out)
{
	struct ag_client **bigger;
	uint32_t i, n;

	for (i = 0; i < a->client_slots; i++) {
		if (a->client_slot[i] == NULL) {
			*index_out = i;
			return 0;
		}
	}
	if (a->client_slots >= AG_CLIENTS_MAX)
		return -ENOSPC;
	n = a->client_slots == 0 ? 16 : a->client_slots * 2;
	bigger = realloc(a->client_slot, n * sizeof(*bigger));
	if (bigger == NULL)
		return -ENOMEM;
	memset(bigger + a->client_slots, 0, (n - a->client_slots) * sizeof(*bigger));
	a->client_slot = bigger;
	*index_out = a->client_slots;
	a->client_slots = n;
	return 0;
}

static void watch_process(struct ag_client *c)
{
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd >= 0 &&
	    ag_watch(c->agent, c->pidfd, EPOLLIN, AG_EV(AG_EV_PROCESS, c->index)) != 0) {
		close(c->pidfd);
		c->pidfd = -1;
	}
}

static int client_new(struct ag_agent *a, int sock, const struct ucred *cred)
{
	struct ag_client *c;
	uint32_t index;
	int rc;

	rc = slot_find(a, &index);
	if (rc != 0)
		return rc;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->agent = a;
	c->sock = sock;
	c->index = index;
	c->id = ++a->client_serial;
	c->bell_bit = ag_relay_bells_end(a) + index % (a->cfg.db_bits - ag_relay_bells_end(a));
	c->uid = cred->uid;
	c->pid = cred->pid;
	watch_process(c);
	ag_list_init(&c->conns);
	ag_list_init(&c->listens);
	ag_list_init(&c->allocs);
	ag_list_init(&c->queue);
	ag_list_append(&a->clients, &c->node);
	a->client_slot[index] = c;
	a->client_count++;
	watch(c);
	return 0;
}

static void client_admit(struct ag_agent *a, int sock)
{
	struct ucred cred;
	char text[128];

	if (!allowed(a, sock, &cred)) {
		u_log_gated(&a->gate[AG_GATE_CLIENT], "uid %u may not use fabric %s",
			    (unsigned int)cred.uid, a->fabric);
		snprintf(text, sizeof(text),
			 "fabric %s belongs to uid %u and is not open to uid %u", a->fabric,
			 (unsigned int)a->cfg.owner, (unsigned int)cred.uid);
		turn_away(sock, W_DENIED, text);
		return;
	}
	if (client_new(a, sock, &cred) != 0)
		turn_away(sock, W_NO_RESOURCE, "the agent has no room for another process");
}

/* Out of descriptors: answer with the spare one; without it, look away for a while. */
static void accept_starved(struct ag_agent *a)
{
	int sock;

	if (a->spare_fd >= 0)
		close(a->spare_fd);
	sock = accept4(a->listen_sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0) {
		u_log_gated(&a->gate[AG_GATE_CLIENT],
			    "no file descriptors left: a process was turned away");
		turn_away(sock, W_NO_RESOURCE, "the agent has no file descriptors left");
	} else if (errno != EAGAIN) {
		epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->listen_sock, NULL);
		a->listen_again_at = u_now_ns() + AG_RETRY_NS;
	}
	a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int ag_client_accept(struct ag_agent *a)
{
	int i, sock;

	for (i = 0; i < READ_BATCH; i++) {
		sock = accept4(a->listen_sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0) {
			client_admit(a, sock);
		} else if (errno == EMFILE || errno == ENFILE) {
			accept_starved(a);
			return 0;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return errno == EAGAIN ? 0 : -errno;
		}
	}
	return 0;
}

/* ---- what they say ---- */

static void welcome(struct ag_client *c)
{
	struct ag_agent *a = c->agent;
	struct w_welcome m = {
		.host_id = (uint16_t)a->cfg.host_id,
		.host_count = (uint16_t)a->cfg.host_count,
		.client_id = c->id,
		.bell_bit = c->bell_bit,
		.port_count = a->link_count,
		.slots = a->cfg.slots,
		.ring_bytes = a->cfg.ring_bytes,
	};
	int fd = -1;

	w_ctl_init(&m, W_WELCOME, sizeof(m));
	w_host_addr(m.host_id, m.host_addr);
	memcpy(m.host_name, a->names[m.host_id], sizeof(m.host_name));
	memcpy(m.fabric, a->fabric, sizeof(m.fabric));
	if (c->kind == W_KIND_NIC) {
		fd = fcntl(port_emu_host_regs_fd(a->host), F_DUPFD_CLOEXEC, 0);
		if (fd < 0) {
			ag_client_refuse(c, W_DONE, 0, W_NO_RESOURCE,
					 "the agent has no file descriptors left");
			c->leaving = true;
			return;
		}
	}
	ag_client_send(c, &m, &fd, fd >= 0 ? 1 : 0);
}

static void hello(struct ag_client *c, const struct w_hello *m)
{
	size_t i;

	c->kind = m->kind;
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

static void nic_message(struct ag_client *c, const void *msg, int type)
{
	switch (type) {
	case W_LISTEN:
		ag_cm_listen(c, msg);
		break;
	case W_UNLISTEN:
		ag_cm_unlisten(c, msg);
		break;
	case W_CONNECT:
		ag_cm_connect(c, msg);
		break;
	case W_PEER:
		ag_cm_peer(c, msg);
		break;
	case W_CANCEL:
		ag_cm_cancel(c, msg);
		break;
	case W_ACCEPT:
		ag_cm_accept(c, msg);
		break;
	case W_REJECT:
		ag_cm_reject(c, msg);
		break;
	case W_PORT_AGAIN:
		/* Before its next use, when there may be descriptors again. */
		c->port_sent[((const struct w_conn *)msg)->conn] = 0;
		break;
	case W_SUSPENDED:
		ag_resume_suspended(c, msg);
		break;
	case W_CONFIRM:
		ag_cm_confirm(c, msg);
		break;
	case W_CLOSE:
		ag_cm_close(c, msg);
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

static void message(struct ag_client *c, const void *msg, int type)
{
	if ((type == W_HELLO) != (c->kind == 0)) {
		ag_client_drop(c, "HELLO must come first, and once");
		return;
	}
	switch (type) {
	case W_HELLO:
		hello(c, msg);
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
		ag_list_item(c, msg);
		break;
	case W_ADMIN:
		ag_admin(c, msg);
		break;
	case W_COUNT:
		ag_count(c, msg);
		break;
	case W_COUNTED:
		ag_counted(c, msg);
		break;
	default:
		if (type > W_PORT_AGAIN || c->kind != W_KIND_NIC)
			ag_client_drop(c, "sent a message that is not a process's to send");
		else
			nic_message(c, msg, type);
	}
}

static void bad_version(struct ag_client *c, const void *msg)
{
	struct w_ctl_hdr hdr;
	char text[128];

	memcpy(&hdr, msg, sizeof(hdr));
	snprintf(text, sizeof(text),
		 "agent speaks version %u, you speak %u; use programs and agent of one release",
		 W_CTL_VERSION, hdr.version);
	ag_client_refuse(c, W_DONE, 0, W_BAD_VERSION, text);
	u_log_gated(&c->agent->gate[AG_GATE_CLIENT], "client %u pid %d: %s", c->id, (int)c->pid,
		    text);
	c->leaving = true;
	c->agent->dirty = true;
}

/* Returns 0 when there may be more to read. */
static int read_one(struct ag_client *c)
{
	_Alignas(8) uint8_t buf[W_CTL_MAX];
	int fds[W_CTL_FDS];
	unsigned int n = 0;
	int len, type;

	len = w_ctl_recv(c->sock, buf, sizeof(buf), fds, &n);
	while (n > 0)
		close(fds[--n]);
	if (len == -EAGAIN)
		return -EAGAIN;
	if (len <= 0) {
		ag_client_drop(c, len == -EPROTO ? "malformed message" : NULL);
		return -EPIPE;
	}
	type = w_ctl_check(buf, (uint32_t)len);
	if (type == -EPROTONOSUPPORT) {
		bad_version(c, buf);
		return -EPIPE;
	}
	if (type < 0) {
		ag_client_drop(c, "malformed message");
		return -EPIPE;
	}
	message(c, buf, type);
	ag_ctl_drain_self(c->agent);
	return 0;
}

void ag_client_event(struct ag_client *c, uint32_t events)
{
	int i;

	if ((events & EPOLLOUT) != 0 && !c->gone)
		flush(c);
	if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
		for (i = 0; i < READ_BATCH; i++) {
			if (c->gone || c->leaving || c->paused || read_one(c) != 0)
				break;
		}
	}
	/* Hung up, and not to be read any more: nothing else would notice. */
	if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 && (c->leaving || c->paused))
		ag_client_drop(c, NULL);
	if (!c->gone)
		watch(c);
}

void ag_client_ended(struct ag_client *c)
{
	int i;

	/* A forked child may go on writing: not without end. */
	for (i = 0; i < 64 * READ_BATCH; i++) {
		if (c->gone || c->leaving || c->paused || read_one(c) != 0)
			break;
	}
	ag_client_drop(c, NULL);
}

void ag_client_resume(struct ag_agent *a)
{
	struct ag_list *pos, *tmp;
	struct ag_client *c;
	uint32_t i;

	for (i = 1; i < a->link_count; i++) {
		if (a->links[i].queue_len > AG_LINK_QUEUE / 2)
			return;
	}
	ag_list_each(pos, tmp, &a->clients)
	{
		c = ag_list_entry(pos, struct ag_client, node);
		if (!c->paused || c->gone)
			continue;
		c->paused = false;
		watch(c);
	}
}
