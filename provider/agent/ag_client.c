/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of the host: who may connect, what they say, and the queue of what they are told. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ag_priv.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_time.h"

#define READ_BATCH 64	/* messages of one client before the others get their turn */
#define ACCEPT_BATCH 16 /* processes that come: a flood of them must not hold up who is here */
#define GROUPS_MAX 65536

void ag_client_drop(struct ag_client *c, const char *why)
{
	if (c->gone)
		return;
	if (why != NULL)
		u_log_ratelimited(&c->agent->ratelimit[AG_RATELIMIT_CLIENT],
				  "client %u pid %d dropped: %s", c->id, (int)c->pid, why);
	c->gone = true;
	c->agent->dirty = true;
}

static void queue_clear(struct ag_client *c)
{
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &c->queue) ag_msg_free(ag_list_entry(pos, struct ag_msg, node));
	ag_list_init(&c->queue);
	c->queue_len = c->queue_fds = 0;
}

void ag_client_free(struct ag_client *c)
{
	struct ag_agent *a = c->agent;
	struct ag_list *pos, *tmp;

	c->gone = true;
	ag_list_each(pos, tmp, &c->listens)
		ag_listen_free(ag_list_entry(pos, struct ag_listen, in_client));
	while (!ag_list_empty(&c->conns))
		ag_connect_leave(ag_list_entry(c->conns.next, struct ag_conn, in_client),
				 W_LOST_PROCESS);
	ag_list_each(pos, tmp, &c->allocs)
		ag_mem_release(c, ag_list_entry(pos, struct ag_alloc, node));
	queue_clear(c);
	u_hang_up(c->sock);
	if (c->pidfd >= 0)
		close(c->pidfd);
	ag_list_remove(&c->node);
	a->client_slot[c->index] = NULL;
	a->client_count--;
	if (c->kind == W_KIND_NIC) {
		a->nic_count--;
		a->idle_since = u_now_ns();
	}
	u_debug("ag", "client %u pid %d left", c->id, (int)c->pid);
	free(c->questions);
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
	if (!ag_list_empty(&c->queue) && c->flush_at == 0)
		events |= EPOLLOUT;
	if (events == c->events)
		return;
	c->events = events;
	if (ag_watch(c->agent, c->sock, events, AG_EV(AG_EV_CLIENT, c->index)) != 0)
		ag_client_drop(c, "cannot be watched");
}

static void due(struct ag_client *c, int64_t at)
{
	if (at < c->agent->clients_at)
		c->agent->clients_at = at;
}

/* Of the kernel; the socket itself may well be writable. */
static bool no_room(int rc)
{
	return rc == -ENOBUFS || rc == -ETOOMANYREFS || rc == -ENOMEM;
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
		c->queue_fds -= m->nfds;
		ag_msg_free(m);
	}
	c->flush_at = no_room(rc) ? u_now_ns() + AG_FLUSH_NS : 0;
	if (c->flush_at != 0)
		due(c, c->flush_at);
	if (rc != 0 && rc != -EAGAIN && !no_room(rc))
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

/* So many, or less where the process may have few descriptors. */
static uint32_t at_most(uint64_t few, uint32_t many)
{
	return few < many ? (uint32_t)few : many;
}

void ag_client_limits(struct ag_agent *a)
{
	struct rlimit rl = { .rlim_cur = 1024 };

	getrlimit(RLIMIT_NOFILE, &rl);
	a->client_fds = at_most(rl.rlim_cur / 8, AG_CLIENT_FDS);
	a->user_fds = at_most(rl.rlim_cur / 4, AG_USER_FDS);
	/* Each keeps one. */
	a->client_allocs = at_most(rl.rlim_cur / 8, AG_CLIENT_ALLOCS);
	a->user_allocs = at_most(rl.rlim_cur / 4, AG_USER_ALLOCS);
	/* Each has two descriptors at least. */
	a->user_clients = at_most(rl.rlim_cur / 8, AG_USER_CLIENTS);
	a->user_silent = at_most(rl.rlim_cur / 16 + (rl.rlim_cur < 16), AG_USER_SILENT);
}

/* One that does not read must not take the descriptors that others need; nor must many of one user. */
static void fds_limit(struct ag_client *c)
{
	struct ag_client *most = c, *other;
	struct ag_list *pos, *tmp;
	uint64_t sum = 0;

	ag_list_each(pos, tmp, &c->agent->clients)
	{
		other = ag_list_entry(pos, struct ag_client, node);
		if (other->uid != c->uid || other->gone)
			continue;
		sum += other->queue_fds;
		if (other->queue_fds > most->queue_fds)
			most = other;
	}
	if (c->queue_fds > c->agent->client_fds)
		ag_client_drop(c, "does not read, and too many descriptors wait for it");
	else if (sum > c->agent->user_fds)
		ag_client_drop(most, "does not read, and too many descriptors wait for its user");
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
	c->queue_fds += nfds;
	if (c->flush_at == 0)
		flush(c);
	if (nfds > 0 && c->queue_fds > 0 && !c->gone)
		fds_limit(c);
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
			    .link_generation = l->link_generation };
	int borrowed[PORT_ATTACH_FDS], fds[PORT_ATTACH_FDS];
	unsigned int i, n = 0;
	int rc;

	if (c->port_sent[l->index] == l->link_generation + 1)
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
	c->port_sent[l->index] = l->link_generation + 1;
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

/* One best-effort line for a process that cannot become a client. */
static void turn_away(int sock, enum w_status status, const char *text)
{
	struct w_refused m = { .status = status };

	w_ctl_init(&m, W_DONE, sizeof(m));
	snprintf(m.text, sizeof(m.text), "%s", text);
	w_ctl_send(sock, &m, NULL, 0);
	u_hang_up(sock);
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
	c->db_bit = ag_relay_db_bits_end(a) + index % (a->cfg.db_bits - ag_relay_db_bits_end(a));
	c->uid = cred->uid;
	c->pid = cred->pid;
	c->hello_until = u_now_ns() + AG_HELLO_NS;
	due(c, c->hello_until);
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

/* One user must not take the places of others, be it without a word. */
static bool user_has_room(struct ag_agent *a, uid_t uid)
{
	struct ag_client *c, *oldest = NULL;
	uint32_t count = 0, silent = 0;
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &a->clients)
	{
		c = ag_list_entry(pos, struct ag_client, node);
		if (c->uid != uid || c->gone)
			continue;
		count++;
		if (c->kind != 0 || c->leaving)
			continue;
		silent++;
		if (oldest == NULL)
			oldest = c; /* they are in the order in which they came */
	}
	if (silent >= a->user_silent) {
		ag_client_drop(oldest, "has not said HELLO, like too many of its user");
		count--;
	}
	return count < a->user_clients || uid == a->cfg.owner || uid == 0;
}

static void client_admit(struct ag_agent *a, int sock)
{
	struct ucred cred;
	char text[128];

	if (!allowed(a, sock, &cred)) {
		u_log_ratelimited(&a->ratelimit[AG_RATELIMIT_CLIENT],
				  "uid %u may not use fabric %s", (unsigned int)cred.uid,
				  a->fabric);
		snprintf(text, sizeof(text),
			 "fabric %s belongs to uid %u and is not open to uid %u", a->fabric,
			 (unsigned int)a->cfg.owner, (unsigned int)cred.uid);
		turn_away(sock, W_DENIED, text);
		return;
	}
	if (!user_has_room(a, cred.uid)) {
		u_log_ratelimited(&a->ratelimit[AG_RATELIMIT_CLIENT],
				  "a process of uid %u was turned away: that user has %u",
				  (unsigned int)cred.uid, a->user_clients);
		snprintf(text, sizeof(text),
			 "uid %u has %u processes at this agent, and may have no more",
			 (unsigned int)cred.uid, a->user_clients);
		turn_away(sock, W_NO_RESOURCE, text);
		return;
	}
	if (client_new(a, sock, &cred) != 0)
		turn_away(sock, W_NO_RESOURCE, "the agent has no room for another process");
}

static void accept_later(struct ag_agent *a)
{
	epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->listen_sock, NULL);
	a->listen_again_at = u_now_ns() + AG_RETRY_NS;
}

/* Out of descriptors: answer with the spare one; without it, look away for a while. */
static void accept_starved(struct ag_agent *a, int err)
{
	char text[U_FD_ERROR], told[U_FD_ERROR + 16];
	int sock;

	if (a->spare_fd >= 0)
		close(a->spare_fd);
	sock = accept4(a->listen_sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0) {
		u_log_ratelimited(&a->ratelimit[AG_RATELIMIT_CLIENT],
				  "a process was turned away: %s", u_fd_error(err, text));
		snprintf(told, sizeof(told), "the agent has %s", text);
		turn_away(sock, W_NO_RESOURCE, told);
	} else if (errno != EAGAIN) {
		accept_later(a);
	}
	a->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool ag_closing_keeps_up(struct ag_agent *a)
{
	unsigned int count = u_close_busy();

	if (count < U_CLOSE_MAX)
		return true;
	u_log_ratelimited(
		&a->ratelimit[AG_RATELIMIT_CLOSE],
		"%u sockets with descriptors of others are being closed, which takes as long as "
		"their senders like; nobody new is taken meanwhile",
		count);
	return false;
}

int ag_client_accept(struct ag_agent *a)
{
	int i, sock;

	for (i = 0; i < ACCEPT_BATCH; i++) {
		if (!ag_closing_keeps_up(a)) {
			accept_later(a);
			return 0;
		}
		sock = accept4(a->listen_sock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0) {
			client_admit(a, sock);
		} else if (errno == EMFILE || errno == ENFILE) {
			accept_starved(a, errno);
			return 0;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return errno == EAGAIN ? 0 : -errno;
		}
	}
	return 0;
}

/* ---- what they say ---- */

/* Copies of the descriptors that port_irq_open() takes. */
static int irq_fds(const struct ag_agent *a, int fds[2])
{
	int err;

	fds[0] = fcntl(port_emu_host_doorbells_fd(a->host), F_DUPFD_CLOEXEC, 0);
	if (fds[0] < 0)
		return -errno;
	fds[1] = fcntl(port_emu_host_status_fd(a->host), F_DUPFD_CLOEXEC, 0);
	if (fds[1] >= 0)
		return 0;
	err = -errno;
	close(fds[0]);
	return err;
}

static void welcome(struct ag_client *c)
{
	struct ag_agent *a = c->agent;
	struct w_welcome m = {
		.host_id = (uint16_t)a->cfg.host_id,
		.host_count = (uint16_t)a->cfg.host_count,
		.client_id = c->id,
		.db_bit = c->db_bit,
		.port_count = a->link_count,
		.slots = a->cfg.slots,
		.payload_bytes = a->cfg.payload_bytes,
	};
	char text[U_FD_ERROR], told[U_FD_ERROR + 16];
	bool nic = c->kind == W_KIND_NIC;
	int fds[2];

	w_ctl_init(&m, W_WELCOME, sizeof(m));
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

static void hello(struct ag_client *c, const struct w_hello *m)
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
		/* Before its next use, when there may be descriptors again. */
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
	u_log_ratelimited(&c->agent->ratelimit[AG_RATELIMIT_CLIENT], "client %u pid %d: %s", c->id,
			  (int)c->pid, text);
	c->leaving = true;
	c->agent->dirty = true;
}

/* Returns 0 when there may be more to read. */
static int read_one(struct ag_client *c)
{
	_Alignas(8) uint8_t buf[W_CTL_MAX];
	int len, type;

	len = w_ctl_recv_bare(c->sock, buf, sizeof(buf), !c->agent->rights_kept_out);
	if (len == -EAGAIN)
		return -EAGAIN;
	if (len <= 0) {
		ag_client_drop(c, len == -EPROTO    ? "malformed message"
				  : len == -EBADMSG ? "sent a descriptor"
						    : NULL);
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
	ag_record_drain_self(c->agent);
	return 0;
}

void ag_client_event(struct ag_client *c, uint32_t events)
{
	int i;

	if ((events & EPOLLOUT) != 0 && !c->gone && c->flush_at == 0)
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

static int64_t client_timer(struct ag_client *c, int64_t now)
{
	int64_t next = U_NEVER;

	if (c->gone)
		return next;
	if (c->flush_at != 0 && now >= c->flush_at)
		flush(c);
	if (c->flush_at != 0)
		next = c->flush_at;
	if (c->kind != 0 || c->leaving)
		return next;
	if (now >= c->hello_until)
		ag_client_drop(c, "did not say HELLO in time");
	return c->hello_until < next ? c->hello_until : next;
}

int64_t ag_client_timers(struct ag_agent *a, int64_t now)
{
	int64_t next = U_NEVER, at;
	struct ag_list *pos, *tmp;

	if (now < a->clients_at)
		return a->clients_at;
	ag_list_each(pos, tmp, &a->clients)
	{
		at = client_timer(ag_list_entry(pos, struct ag_client, node), now);
		next = at < next ? at : next;
	}
	a->clients_at = next;
	return next;
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
