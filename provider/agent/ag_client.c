/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of the host that are connected to the agent, and the queue of messages to each. */
#include "ag_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ag_holder.h"
#include "ag_link.h"
#include "ag_list.h"
#include "ag_loop.h"
#include "ag_msg.h"
#include "ag_ratelimit.h"
#include "ag_state.h"
#include "port.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_time.h"
#include "w_ctl.h"

#define CLIENTS_MAX 4096u
/* messages to a client that may wait, in addition to two for each connection */
#define QUEUE_MAX 8192u
/* A client with so many waiting is not sent messages of other processes, only answers. */
#define QUEUE_HEARS (QUEUE_MAX / 2)

/* The client no longer counts among those that its process and its user may have. */
static void uncount(struct ag_client *c)
{
	if (c->counted)
		ag_holders_count(&c->holders, AG_CLIENTS, -1);
	c->counted = false;
}

void ag_client_drop(struct ag_client *c, const char *why)
{
	if (c->gone)
		return;
	uncount(c);
	if (why != NULL)
		u_log_ratelimited(&c->agent->ratelimit[AG_RATELIMIT_CLIENT],
				  "client %u pid %d dropped: %s", c->id, (int)c->pid, why);
	c->gone = true;
	c->agent->dirty = true;
}

void ag_client_left(struct ag_client *c)
{
	c->left = true;
	ag_client_drop(c, NULL);
}

/* Frees the messages that were not sent, and closes their descriptors. */
static void queue_clear(struct ag_client *c)
{
	struct ag_list *pos, *tmp;

	ag_list_each(pos, tmp, &c->queue) ag_msg_free(ag_list_entry(pos, struct ag_msg, node));
	ag_list_init(&c->queue);
	c->queue_len = c->queue_fds = 0;
}

void ag_client_watch(struct ag_client *c)
{
	uint32_t events = EPOLLRDHUP;

	if (!c->paused && !c->leaving)
		events |= EPOLLIN;
	if (!ag_list_empty(&c->queue) && c->flush_at == 0)
		events |= EPOLLOUT;
	if (events == c->events)
		return;
	c->events = events;
	if (ag_loop_watch(c->agent, c->sock, events, AG_EV(AG_EV_CLIENT, c->index)) != 0)
		ag_client_drop(c, "cannot be watched");
}

/* Makes ag_client_timers() look at the clients at that time, unless it does so earlier. */
static void due(struct ag_client *c, int64_t at)
{
	if (at < c->agent->clients_at)
		c->agent->clients_at = at;
}

/* Did the kernel have no memory for the message?  The socket may still be writable then. */
static bool no_room(int rc)
{
	return rc == -ENOBUFS || rc == -ETOOMANYREFS || rc == -ENOMEM;
}

/*
 * Sends queued messages while the socket has room, and watches the socket accordingly.  Where the kernel has no memory
 * for one, it is tried again after AG_FLUSH_NS; after any other error the client is marked to be freed.
 */
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
	if (rc == -EPIPE || rc == -ECONNRESET)
		ag_client_left(c);
	else if (rc != 0 && rc != -EAGAIN && !no_room(rc))
		ag_client_drop(c, strerror(-rc));
	ag_client_watch(c);
}

/*
 * Returns how many messages may wait for `msg` to be queued, too: more for a W_LOST than for others, as a client may
 * read slowly when thousands of its connections are lost, and the message of each has room.
 */
static uint32_t queue_max(const struct ag_client *c, const void *msg)
{
	struct w_ctl_hdr hdr;

	memcpy(&hdr, msg, sizeof(hdr));
	if (hdr.type == W_LOST)
		return QUEUE_MAX + 2 * AG_CLIENT_CONNS_MAX;
	return QUEUE_MAX + 2 * c->conn_count + c->listen_count;
}

/*
 * Drops this client where too many descriptors wait for it; else, where too many wait for all of its user, the client
 * of these with most: clients that do not read must not use up the descriptors of this process.
 */
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

bool ag_client_may_use(struct ag_client *c, const struct ag_link *l, uint64_t bytes)
{
	return ag_holders_may_use(c->agent, &c->holders, l->index, l->port->limits.window_bytes,
				  bytes);
}

int ag_client_slice(struct ag_client *c, const struct ag_link *l, uint64_t bytes,
		    struct port_slice *out)
{
	char text[U_FD_ERROR];
	int rc;

	if (!ag_client_may_use(c, l, bytes))
		return -EDQUOT;
	rc = port_slice_alloc(l->port, u_align_up(bytes, l->port->limits.slice_align), out);
	if (rc != 0)
		u_log_ratelimited(&c->agent->ratelimit[AG_RATELIMIT_CLIENT],
				  "pid %d gets no %llu bytes of window memory: %s", (int)c->pid,
				  (unsigned long long)bytes,
				  rc == -EFBIG ? "the starter of this agent had a limit on the "
						 "size of files (ulimit -f)"
					       : u_fd_error(-rc, text));
	return rc;
}

void ag_client_writable(struct ag_client *c)
{
	if (!c->gone && c->flush_at == 0)
		flush(c);
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

/* May it be sent messages of other processes?  A client that reads slowly is not dropped because of those. */
bool ag_client_hears(struct ag_client *c)
{
	if (c->queue_len < QUEUE_HEARS)
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

/* Ends the process's view of the port, if it has one; a descriptor of it that the process keeps is of no use. */
static void view_end(struct ag_client *c, struct ag_link *l)
{
	int fd = c->view_fd[l->index];

	c->view_fd[l->index] = -1;
	if (fd < 0)
		return;
	port_view_end(l->port, fd);
	close(fd);
}

/*
 * Keeps a copy of `fd`, the first descriptor of the view, by which view_end() ends the view, if the port can end views;
 * else does nothing.  0 or -errno.
 */
static int view_keep(struct ag_client *c, struct ag_link *l, int fd)
{
	if (!port_view_ends(l->port))
		return 0;
	c->view_fd[l->index] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return c->view_fd[l->index] < 0 ? -errno : 0;
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
	view_end(c, l); /* its connections belong to an earlier generation, or it has none */
	rc = port_export_view(l->port, m.view, sizeof(m.view), borrowed, &n);
	if (rc == 0)
		rc = view_keep(c, l, borrowed[0]);
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

/* Sends queued messages if that is due, and drops the client if its HELLO is overdue.  Returns its next deadline. */
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
		ag_client_watch(c);
	}
}

/*
 * Finds a free place in client_slot[], which it enlarges if there is none, but does not take it.  0, -ENOSPC
 * (there are CLIENTS_MAX) or -ENOMEM.
 */
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
	if (a->client_slots >= CLIENTS_MAX)
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

/* Makes the loop report the end of the process.  If the kernel cannot do that, only the socket tells of it. */
static void watch_process(struct ag_client *c)
{
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd >= 0 &&
	    ag_loop_watch(c->agent, c->pidfd, EPOLLIN, AG_EV(AG_EV_PROCESS, c->index)) != 0) {
		close(c->pidfd);
		c->pidfd = -1;
	}
}

int ag_client_new(struct ag_agent *a, int sock, const struct ucred *cred)
{
	struct ag_holders holders;
	struct ag_client *c;
	uint32_t index, i;
	bool may;
	int rc;

	rc = slot_find(a, &index);
	if (rc != 0)
		return rc;
	rc = ag_holders_get(a, cred->uid, cred->pid, &holders);
	if (rc != 0)
		return rc;
	may = ag_holders_may(a, &holders, AG_CLIENTS);
	c = may ? calloc(1, sizeof(*c)) : NULL;
	if (c == NULL) {
		ag_holders_put(&holders);
		return may ? -ENOMEM : -EDQUOT;
	}
	c->holders = holders;
	ag_holders_count(&c->holders, AG_CLIENTS, 1);
	c->counted = true;
	c->agent = a;
	c->sock = sock;
	c->index = index;
	c->id = ++a->client_serial;
	c->db_bit = ag_db_bits_end(a) + index % (a->cfg.db_bits - ag_db_bits_end(a));
	c->uid = cred->uid;
	c->pid = cred->pid;
	c->hello_until = u_now_ns() + AG_HELLO_NS;
	due(c, c->hello_until);
	watch_process(c);
	for (i = 0; i < PORT_PER_HOST; i++)
		c->view_fd[i] = -1;
	ag_list_init(&c->conns);
	ag_list_init(&c->listens);
	ag_list_init(&c->allocs);
	ag_list_init(&c->queue);
	ag_list_append(&a->clients, &c->node);
	a->client_slot[index] = c;
	a->client_count++;
	ag_client_watch(c);
	return 0;
}

void ag_client_free(struct ag_client *c)
{
	struct ag_agent *a = c->agent;

	queue_clear(c);
	for (uint32_t i = 0; i < a->link_count; i++)
		view_end(c, &a->links[i]);
	ag_loop_unwatch(a, c->sock);
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
	uncount(c);
	ag_holders_put(&c->holders);
	free(c->questions);
	free(c);
}
