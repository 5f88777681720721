/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "virtual_time.h"

#define STEP_CPU_NS (5 * INT64_C(1000000000))
#define ROUNDS 1024 /* rounds of steps within which all comes, even after full queues */

void rig_pass(unsigned int ms)
{
	vt_pass(ms * INT64_C(1000000));
}

_Noreturn void rig_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("rig: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- agents ---- */

static void drain(int sock)
{
	struct rig_client c = { .sock = sock };
	struct rig_msg m;
	int type;

	do {
		type = rig_recv(&c, &m);
	} while (type > 0);
	if (type < 0)
		rig_fail("the agent hung up on its owner");
}

void rig_admin(struct rig *r, unsigned int host, enum w_admin_verb verb, const char *name)
{
	struct rig_client c = { .sock = r->admin[host], .host = host };
	struct w_admin m = { .verb = verb };

	snprintf(m.name, sizeof(m.name), "%s", name);
	if (rig_send(&c, &m, W_ADMIN, sizeof(m)) != 0)
		rig_fail("host %u takes no orders", host);
}

void rig_step(struct rig *r, unsigned int host)
{
	int64_t began = cpu_ns(), until = 0;
	int rc = ag_step(r->agent[host], &until);

	if (rc < 0)
		rig_fail("the agent of host %u ended: %s", host, strerror(-rc));
	/* An input may tell it to stop. */
	atomic_store(&r->agent[host]->stop, false);
	drain(r->admin[host]);
	if (cpu_ns() - began > STEP_CPU_NS)
		rig_fail("host %u computed for %lld ms in one step", host,
			 (long long)(cpu_ns() - began) / 1000000);
}

void rig_step_all(struct rig *r)
{
	unsigned int i;

	for (i = 0; i < RIG_HOSTS_MAX; i++) {
		if (r->agent[i] != NULL)
			rig_step(r, i);
	}
}

/* The log is written to /dev/null, so that its formatting is run too. */
static void quiet_log(void)
{
	setenv("VIADUCT_LOG_FILE", "/dev/null", 0);
	setenv("VIADUCT_LOG", "debug", 0);
}

static void agent_open(struct rig *r, unsigned int host)
{
	struct ag_cfg cfg = {
		.fabric = r->fabric,
		.owner = geteuid(),
		.host_id = host,
		.host_count = r->hosts,
		.group = AG_NO_GROUP,
		.slots = RIG_SLOTS,
		.payload_bytes = RIG_PAYLOAD,
		.window_bytes = RIG_WINDOW,
		.stepped = true,
	};
	struct rig_client c;
	struct w_hello hello = { .kind = W_KIND_TOOL };
	int rc = ag_create(&cfg, &r->agent[host]);

	if (rc != 0)
		rig_fail("no agent for host %u: %s", host, strerror(-rc));
	if (rig_dial(r, &c, host) != 0 || rig_send(&c, &hello, W_HELLO, sizeof(hello)) != 0)
		rig_fail("the agent of host %u does not answer", host);
	r->admin[host] = c.sock;
	rig_step(r, host);
}

void rig_open(struct rig *r, unsigned int hosts, unsigned int agents)
{
	static unsigned int serial;
	unsigned int i;

	quiet_log();
	memset(r, 0, sizeof(*r));
	snprintf(r->fabric, sizeof(r->fabric), "fuzz%d.%u", (int)getpid(), serial++);
	r->hosts = hosts;
	for (i = 0; i < hosts; i++) {
		if (agents & 1u << i)
			agent_open(r, i);
	}
}

void rig_close(struct rig *r)
{
	unsigned int i;

	for (i = 0; i < RIG_HOSTS_MAX; i++) {
		if (r->agent[i] == NULL)
			continue;
		close(r->admin[i]);
		ag_destroy(r->agent[i]);
		r->agent[i] = NULL;
	}
}

bool rig_linked(struct rig *r, unsigned int host)
{
	return ag_link_usable(&r->agent[host]->links[1]);
}

/* Do both ends have the same generation of the link? */
static bool agreed(struct rig *r)
{
	const struct ag_link *a = &r->agent[0]->links[1], *b = &r->agent[1]->links[1];

	return ag_link_usable(a) && ag_link_usable(b) && a->peer_nonce == b->nonce &&
	       b->peer_nonce == a->nonce;
}

static bool drained(const struct ag_link *l)
{
	return l->state != AG_LINK_UP || (ag_list_empty(&l->queue) && l->tx_next == l->tx_done);
}

void rig_drain(struct rig *r)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		rig_step_all(r);
		if (drained(&r->agent[0]->links[1]) && drained(&r->agent[1]->links[1]))
			return;
		rig_pass(5);
	}
	rig_fail("the agents do not get rid of what they have to say");
}

void rig_link_up(struct rig *r)
{
	unsigned int i;

	rig_admin(r, 0, W_ADMIN_LINK_UP, "right");
	rig_admin(r, 1, W_ADMIN_LINK_UP, "left");
	rig_step_all(r);
	for (i = 0; i < ROUNDS; i++) {
		if (agreed(r))
			return;
		rig_pass(25);
		rig_step_all(r);
	}
	rig_fail("the link does not come up");
}

void rig_wait_link(struct rig *r, unsigned int host, unsigned int port)
{
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		if (ag_link_usable(&r->agent[host]->links[port]))
			return;
		rig_pass(25);
		rig_step_all(r);
	}
	rig_fail("port %u of host %u does not come up", port, host);
}

/* ---- usage ---- */

/* Pipes are not counted: neither agents nor clients have any, but the fuzzer may. */
static bool fd_counts(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && !S_ISFIFO(st.st_mode);
}

unsigned int rig_fds(void)
{
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < RIG_FDS; fd++)
		n += fd_counts(fd);
	return n;
}

unsigned int rig_highest_fd(void)
{
	int fd = RIG_FDS - 1;

	while (fd > 0 && !fd_counts(fd))
		fd--;
	return (unsigned int)fd;
}

void rig_usage(struct rig *r, struct rig_usage *out)
{
	unsigned int i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < RIG_HOSTS_MAX; i++) {
		struct ag_usage *u = &out->agent[i];

		if (r->agent[i] != NULL)
			ag_usage(r->agent[i], u);
		/* Counts of dropped records, and lengths of hash chains: none of these is held. */
		u->relay_dropped = u->relay_refused = 0;
		u->longest_circuits = u->longest_conns = 0;
	}
	out->fds = rig_fds();
}

static void list_fds(void)
{
	char name[64], target[128];
	ssize_t n;
	int fd;

	for (fd = 0; fd < RIG_FDS; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, target, sizeof(target) - 1);
		if (n > 0)
			fprintf(stderr, "%d -> %.*s\n", fd, (int)n, target);
	}
}

static bool same_usage(struct rig *r, const struct rig_usage *before, struct rig_usage *now)
{
	rig_usage(r, now);
	return memcmp(before, now, sizeof(*now)) == 0;
}

void rig_settle(struct rig *r, const struct rig_usage *before)
{
	struct rig_usage now;
	unsigned int i, h;

	for (i = 0; i < ROUNDS; i++) {
		if (same_usage(r, before, &now))
			return;
		rig_pass(5);
		rig_step_all(r);
	}
	for (h = 0; h < RIG_HOSTS_MAX; h++) {
		const struct ag_usage *a = &before->agent[h], *b = &now.agent[h];

		fprintf(stderr,
			"host %u before/now: clients %u/%u conns %u/%u listens %u/%u allocs %u/%u "
			"offers %u/%u circuits %u/%u window %llu/%llu\n",
			h, a->clients, b->clients, a->conns, b->conns, a->listens, b->listens,
			a->allocs, b->allocs, a->offers, b->offers, a->circuits, b->circuits,
			(unsigned long long)a->window_used, (unsigned long long)b->window_used);
	}
	list_fds();
	rig_fail("something is held for ever; descriptors %u/%u", before->fds, now.fds);
}

/* ---- clients ---- */

int rig_dial(struct rig *r, struct rig_client *c, unsigned int host)
{
	struct sockaddr_un un;
	socklen_t len = w_agent_addr(&un, geteuid(), r->fabric, host);
	int rc = 0;

	c->host = host;
	c->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->sock < 0)
		return -errno;
	if (connect(c->sock, (struct sockaddr *)&un, len) != 0) {
		rc = -errno;
		rig_hang_up(c);
	}
	return rc;
}

void rig_hang_up(struct rig_client *c)
{
	if (c->sock >= 0)
		close(c->sock);
	c->sock = -1;
}

int rig_send(struct rig_client *c, void *msg, enum w_ctl_type type, uint32_t len)
{
	w_ctl_init(msg, type, len);
	return w_ctl_send(c->sock, msg, NULL, 0);
}

static bool from_agent(int type)
{
	return (type >= W_WELCOME && type <= W_RESUMED) || type == W_COUNT || type == W_COUNTED;
}

int rig_recv(struct rig_client *c, struct rig_msg *m)
{
	int fds[W_CTL_FDS];
	unsigned int i, n = 0;
	int type, len = w_ctl_recv(c->sock, m->bytes, sizeof(m->bytes), fds, &n);

	for (i = 0; i < n; i++)
		close(fds[i]);
	m->nfds = n;
	if (len == -EAGAIN)
		return 0;
	if (len <= 0)
		return -1;
	type = w_ctl_check(m->bytes, (uint32_t)len);
	if (!from_agent(type))
		rig_fail("the agent sent %d bytes that are no message of its kind (%d)", len, type);
	return type;
}

void rig_good(struct rig *r, struct rig_client *c, unsigned int host)
{
	struct w_hello hello = { .kind = W_KIND_NIC };
	struct rig_msg m;
	int rc = rig_dial(r, c, host);

	if (rc != 0)
		rig_fail("host %u cannot be reached: %s", host, strerror(-rc));
	if (rig_send(c, &hello, W_HELLO, sizeof(hello)) != 0)
		rig_fail("host %u does not take a HELLO", host);
	rig_expect(r, c, W_WELCOME, &m);
	if (m.nfds != 2)
		rig_fail("WELCOME of a NIC with %u descriptors", m.nfds);
}

/* May any process get this message at any time? */
static bool unasked(int type)
{
	return type == W_PORT || type == W_COUNT;
}

void rig_expect(struct rig *r, struct rig_client *c, int type, struct rig_msg *m)
{
	int i, got;

	for (i = 0; i < ROUNDS; i++) {
		while ((got = rig_recv(c, m)) > 0) {
			if (got == type)
				return;
			if (!unasked(got))
				rig_fail("message %d expected, %d came", type, got);
		}
		if (got < 0)
			rig_fail("hung up on a client that awaits message %d", type);
		rig_pass(5);
		rig_step_all(r);
	}
	rig_fail("message %d does not come", type);
}

void rig_quiet(struct rig *r, struct rig_client *c, bool lost_allowed)
{
	struct rig_msg m;
	int got, heard;

	do {
		for (heard = 0; (got = rig_recv(c, &m)) > 0; heard++) {
			if (!unasked(got) && !(got == W_LOST && lost_allowed))
				rig_fail("message %d came to a client that asked for nothing", got);
		}
		if (got < 0)
			rig_fail("hung up on a client that did nothing");
		rig_step(r, c->host);
	} while (heard > 0);
}

/* ---- a connection ---- */

void rig_addr(struct w_addr *out, unsigned int host, uint8_t first, uint8_t second)
{
	memset(out, 0, sizeof(*out));
	w_host_addr((uint16_t)host, out->host);
	out->host_len = W_HOST_ADDR_LEN;
	out->disc_len = 2;
	out->disc[0] = first;
	out->disc[1] = second;
}

static void send_conn(struct rig_client *c, enum w_ctl_type type, uint64_t conn)
{
	struct w_conn m = { .conn = conn };

	if (rig_send(c, &m, type, sizeof(m)) != 0)
		rig_fail("a good client cannot send");
}

static void listen_at(struct rig *r, struct rig_client *s, const struct w_addr *at)
{
	struct w_connect m = { .token = 1, .local = *at };
	struct w_token sync = { .token = UINT64_MAX };
	struct rig_msg got;

	if (rig_send(s, &m, W_LISTEN, sizeof(m)) != 0 ||
	    rig_send(s, &sync, W_UNLISTEN, sizeof(sync)) != 0)
		rig_fail("a good server cannot send");
	rig_expect(r, s, W_UNLISTENED, &got);
}

static uint64_t linked(struct rig *r, struct rig_client *c)
{
	struct rig_msg got;

	rig_expect(r, c, W_LINKED, &got);
	if (got.nfds != 2)
		rig_fail("LINKED with %u descriptors", got.nfds);
	return ((struct w_linked *)(void *)got.bytes)->conn;
}

void rig_join(struct rig *r, struct rig_client *c, struct rig_client *s, struct rig_pair *out)
{
	struct w_vi_attrs attrs = { .reliability = 2, .max_transfer = 65536 };
	struct w_connect ask = { .token = 2, .attrs = attrs };
	struct w_accept accept = { .token = 3, .attrs = attrs };
	struct rig_msg got;

	rig_addr(&ask.local, c->host, RIG_GOOD_DISC, 'c');
	rig_addr(&ask.remote, s->host, RIG_GOOD_DISC, 's');
	listen_at(r, s, &ask.remote);
	if (rig_send(c, &ask, W_CONNECT, sizeof(ask)) != 0)
		rig_fail("a good client cannot send");
	rig_expect(r, s, W_ARRIVED, &got);
	accept.conn = ((struct w_arrived *)(void *)got.bytes)->conn;
	if (rig_send(s, &accept, W_ACCEPT, sizeof(accept)) != 0)
		rig_fail("a good server cannot send");
	out->client = linked(r, c);
	send_conn(c, W_CONFIRM, out->client);
	out->server = linked(r, s);
	if (out->server != accept.conn)
		rig_fail("LINKED names another connection than ARRIVED");
}

void rig_part(struct rig *r, struct rig_client *c, struct rig_client *s,
	      const struct rig_pair *pair)
{
	struct rig_msg got;

	send_conn(c, W_CLOSE, pair->client);
	rig_expect(r, s, W_LOST, &got);
	if (((struct w_lost_msg *)(void *)got.bytes)->conn != pair->server)
		rig_fail("another connection was lost than the one that was closed");
	send_conn(s, W_CLOSE, pair->server);
}
