/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hostile processes against the agents of two joined hosts.  The input is a
 * program of their actions: connect, send messages well-formed or not, name
 * objects of their own or not, send descriptors, stop reading, leave.  Three other
 * processes keep the rules, with a connection within the host and one between
 * the hosts.  These must survive, new ones must be possible at the end, and the
 * agents must hold then what they held before.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fz_input.h"
#include "rig.h"

#define HOSTS 2u
#define HOSTILE 6u
#define MEMORY 8u
#define SENDS_MAX 12000u /* messages of one input */
#define REUSE 500u	 /* inputs that one pair of agents serves */
#define SURPLUS 24u	 /* the most descriptors with one message */

struct hostile {
	struct rig_client c;
	uint64_t conns[MEMORY]; /* ids that it was sent */
	uint32_t slices[MEMORY];
	uint32_t heard;
	bool deaf; /* does not read */
};

struct good {
	struct rig rig;
	struct rig_client near, here, there; /* two on host 0, one on host 1 */
	struct rig_pair inside, across;
	struct rig_usage usage;
	uint32_t inputs;
};

struct world {
	struct good *good;
	struct fz_input *in;
	struct hostile h[HOSTILE];
	uint8_t last[W_CTL_MAX];
	uint32_t last_len;
	uint32_t sends;
	bool link_touched; /* somebody was allowed to take the link down */
	uint32_t link_generation[HOSTS];
	struct rlimit limit;
};

static struct good good;

/* ---- messages of hostile processes ---- */

static const uint16_t lengths[] = {
	[W_HELLO] = sizeof(struct w_hello),    [W_LISTEN] = sizeof(struct w_connect),
	[W_UNLISTEN] = sizeof(struct w_token), [W_CONNECT] = sizeof(struct w_connect),
	[W_PEER] = sizeof(struct w_connect),   [W_CANCEL] = sizeof(struct w_token),
	[W_ACCEPT] = sizeof(struct w_accept),  [W_REJECT] = sizeof(struct w_conn),
	[W_CONFIRM] = sizeof(struct w_conn),   [W_CLOSE] = sizeof(struct w_conn),
	[W_ALLOC] = sizeof(struct w_alloc),    [W_FREE] = sizeof(struct w_alloc),
	[W_TELL] = sizeof(struct w_tell),      [W_NAME] = sizeof(struct w_name),
	[W_ADDR_NAME] = sizeof(struct w_name), [W_ROUTE] = sizeof(struct w_route),
	[W_LIST] = sizeof(struct w_list),      [W_ADMIN] = sizeof(struct w_admin),
	[W_COUNT] = sizeof(struct w_count),    [W_COUNTED] = sizeof(struct w_counted),
};

union message {
	struct w_ctl_hdr hdr;
	struct w_hello hello;
	struct w_token token;
	struct w_connect connect;
	struct w_accept accept;
	struct w_conn conn;
	struct w_alloc alloc;
	struct w_tell tell;
	struct w_name name;
	struct w_route route;
	struct w_list list;
	struct w_admin admin;
	struct w_count count;
	struct w_counted counted;
	uint8_t bytes[W_CTL_MAX];
};

static uint64_t any_conn(struct world *w, const struct hostile *h)
{
	uint32_t how = fz_pick(w->in, 16);

	if (how < 12)
		return h->conns[how % MEMORY];
	if (how == 12) /* that of another hostile process */
		return w->h[fz_pick(w->in, HOSTILE)].conns[fz_pick(w->in, MEMORY)];
	if (how == 13) /* that of a process that keeps the rules */
		return fz_pick(w->in, 2) ? good.inside.client : good.across.server;
	return fz_get(w->in, 8);
}

static void any_addr(struct world *w, struct w_addr *a)
{
	uint32_t how = fz_pick(w->in, 32);

	rig_addr(a, how & 1, (uint8_t)('a' + (how >> 1 & 3)), 0);
	a->disc_len = 1;
	if (how < 24)
		return;
	a->host_len = (uint8_t)fz_get(w->in, 1);
	a->disc_len = (uint8_t)fz_pick(w->in, W_DISC_MAX + 2);
	fz_fill(w->in, a->disc, fz_pick(w->in, W_DISC_MAX + 1));
	fz_mutate(w->in, a->host, sizeof(a->host));
}

static void any_attrs(struct world *w, struct w_vi_attrs *a)
{
	uint32_t how = fz_pick(w->in, 8);

	a->reliability = how == 1 ? 1 : 2;
	a->max_transfer = how == 2 ? fz_get(w->in, 8) : 65536;
	a->qos = how == 3;
	a->flags = how == 4 ? fz_pick(w->in, 5) : 0;
}

static void any_name(struct world *w, char *name, size_t size)
{
	static const char *const names[] = { "right", "left", "host0", "host1", "1",	"x=host1",
					     "x y=0", "=",    "x=",    "64",	"self", "" };
	uint32_t i = fz_pick(w->in, U_ARRAY_SIZE(names) + 4);
	size_t len;

	if (i < U_ARRAY_SIZE(names)) {
		snprintf(name, size, "%s", names[i]);
		return;
	}
	len = fz_fill(w->in, name, fz_pick(w->in, (uint32_t)size));
	name[len < size ? len : size - 1] = '\0';
}

static void fill_memory(struct world *w, const struct hostile *h, union message *m, int type)
{
	if (type == W_TELL) {
		m->tell.conn = any_conn(w, h);
		m->tell.slice_id = fz_pick(w->in, 2) ? h->slices[fz_pick(w->in, MEMORY)] : 0;
		m->tell.body_len = fz_pick(w->in, W_TELL_MAX + 2);
		return;
	}
	m->alloc.token = fz_pick(w->in, 8);
	m->alloc.length = fz_pick(w->in, 8) ? fz_get(w->in, 3) : fz_get(w->in, 8);
	m->alloc.slice_id = h->slices[fz_pick(w->in, MEMORY)];
}

static void fill_names(struct world *w, union message *m, int type)
{
	switch (type) {
	case W_NAME:
	case W_ADDR_NAME:
		m->name.index = fz_pick(w->in, 2) ? W_NAME_DEVICE : fz_pick(w->in, 2);
		w_host_addr((uint16_t)fz_pick(w->in, 4), m->name.host_addr);
		any_name(w, m->name.name, sizeof(m->name.name));
		break;
	case W_ROUTE:
		w_host_addr((uint16_t)fz_pick(w->in, 4), m->route.host_addr);
		break;
	case W_LIST:
		m->list.what = fz_pick(w->in, W_LIST_WHAT_MAX + 1);
		m->list.index = fz_pick(w->in, 8) ? fz_pick(w->in, 8) : (uint32_t)fz_get(w->in, 4);
		break;
	case W_ADMIN:
		m->admin.verb = fz_pick(w->in, 7);
		any_name(w, m->admin.name, sizeof(m->admin.name));
		break;
	case W_COUNT:
		m->count.index = fz_pick(w->in, 8);
		break;
	case W_COUNTED:
		m->counted.client = fz_pick(w->in, 16);
		break;
	}
}

static void fill(struct world *w, const struct hostile *h, union message *m, int type)
{
	m->token.token = fz_pick(w->in, 8); /* where all but HELLO and W_CONN have it */
	switch (type) {
	case W_HELLO:
		m->hello.kind = fz_pick(w->in, 8) ? W_KIND_NIC : fz_pick(w->in, 4);
		any_name(w, m->hello.program, sizeof(m->hello.program));
		break;
	case W_LISTEN:
	case W_CONNECT:
	case W_PEER:
		any_attrs(w, &m->connect.attrs);
		any_addr(w, &m->connect.local);
		any_addr(w, &m->connect.remote);
		break;
	case W_ACCEPT:
		m->accept.conn = any_conn(w, h);
		any_attrs(w, &m->accept.attrs);
		break;
	case W_REJECT:
	case W_CONFIRM:
	case W_CLOSE:
		m->conn.conn = any_conn(w, h);
		break;
	case W_ALLOC:
	case W_FREE:
	case W_TELL:
		fill_memory(w, h, m, type);
		break;
	default:
		fill_names(w, m, type);
	}
}

static uint32_t build(struct world *w, const struct hostile *h, union message *m)
{
	int type = 1 + (int)fz_pick(w->in, W_COUNTED);

	memset(m, 0, sizeof(*m));
	fill(w, h, m, type);
	w_ctl_init(m, type, lengths[type]);
	return lengths[type];
}

/* Keeps messages away from the addresses of the good, and notes if one may take the link down. */
static void restrain(struct world *w, union message *m, uint32_t len)
{
	int type = len >= sizeof(m->hdr) ? m->hdr.type : 0;

	if (type == W_LISTEN || type == W_CONNECT || type == W_PEER) {
		m->connect.local.disc[0] &= 0x7f;
		m->connect.remote.disc[0] &= 0x7f;
	}
	if (type == W_ADMIN &&
	    (m->admin.verb == W_ADMIN_LINK_DOWN || m->admin.verb == W_ADMIN_LINK_UP))
		w->link_touched = true;
}

static void listen_to(struct hostile *h)
{
	struct rig_msg m;
	uint32_t at = h->heard % MEMORY;
	int type;

	while (h->c.sock >= 0 && (type = rig_recv(&h->c, &m)) != 0) {
		if (type == W_ARRIVED)
			h->conns[at] = ((struct w_arrived *)(void *)m.bytes)->conn;
		else if (type == W_LINKED)
			h->conns[at] = ((struct w_linked *)(void *)m.bytes)->conn;
		else if (type == W_ALLOCATED)
			h->slices[at] = ((struct w_alloc *)(void *)m.bytes)->slice_id;
		else if (type > 0)
			continue;
		else
			rig_hang_up(&h->c);
		at = ++h->heard % MEMORY;
	}
}

static void say(struct world *w, struct hostile *h, const void *bytes, uint32_t len)
{
	int tries;

	if (h->c.sock < 0 || w->sends++ >= SENDS_MAX)
		return;
	for (tries = 0; tries < 2; tries++) {
		if (send(h->c.sock, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return;
		rig_step(&w->good->rig, h->c.host);
		if (!h->deaf)
			listen_to(h);
		if (h->c.sock < 0)
			return;
	}
}

static void say_something(struct world *w, struct hostile *h, bool mutated)
{
	union message m;
	uint32_t len = build(w, h, &m);

	if (mutated) {
		fz_mutate(w->in, m.bytes, len);
		len += fz_pick(w->in, 4) == 0 ? fz_pick(w->in, 3) : 0;
		if (len > sizeof(m))
			len = sizeof(m);
	}
	restrain(w, &m, len);
	memcpy(w->last, m.bytes, len);
	w->last_len = len;
	say(w, h, m.bytes, len);
}

static void say_bytes(struct world *w, struct hostile *h)
{
	union message m = { 0 };
	uint32_t len = (uint32_t)fz_fill(w->in, m.bytes, 1 + fz_pick(w->in, 255));

	restrain(w, &m, sizeof(m));
	say(w, h, m.bytes, len);
}

static void flood(struct world *w, struct hostile *h)
{
	uint32_t n = 16 * fz_pick(w->in, 256);

	while (n-- > 0 && h->c.sock >= 0 && w->sends < SENDS_MAX)
		say(w, h, w->last, w->last_len);
}

static void say_with_fds(struct world *w, struct hostile *h)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(SURPLUS * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = w->last, .iov_len = w->last_len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	uint32_t i, n = 1 + fz_pick(w->in, SURPLUS);
	int fds[SURPLUS];

	for (i = 0; i < n; i++)
		fds[i] = h->c.sock;
	if (h->c.sock < 0 || w->sends++ >= SENDS_MAX)
		return;
	control.hdr.cmsg_level = SOL_SOCKET;
	control.hdr.cmsg_type = SCM_RIGHTS;
	control.hdr.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&control.hdr), fds, n * sizeof(int));
	mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
	sendmsg(h->c.sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- actions ---- */

static void come(struct world *w, struct hostile *h)
{
	struct w_hello m = { .kind = W_KIND_NIC };
	uint32_t how = fz_pick(w->in, 8);

	rig_hang_up(&h->c);
	memset(h, 0, sizeof(*h));
	if (rig_dial(&w->good->rig, &h->c, how & 1) != 0 || how >= 6)
		return;
	rig_send(&h->c, &m, W_HELLO, sizeof(m));
}

static void step(struct world *w, uint32_t host)
{
	uint32_t i;

	rig_step(&w->good->rig, host);
	for (i = 0; i < HOSTILE; i++) {
		if (w->h[i].c.sock >= 0 && !w->h[i].deaf)
			listen_to(&w->h[i]);
	}
}

/* Few descriptors are left for a while; then a link may not survive. */
static void starve(struct world *w)
{
	struct rlimit few = w->limit;

	few.rlim_cur = rig_highest_fd() + 1 + fz_pick(w->in, 8);
	setrlimit(RLIMIT_NOFILE, &few);
}

static void act(struct world *w)
{
	struct hostile *h = &w->h[fz_pick(w->in, HOSTILE)];
	uint32_t what = fz_pick(w->in, 32);

	if (h->c.sock < 0 && what < 20)
		what = 20;
	switch (what) {
	case 0 ... 12:
		say_something(w, h, false);
		break;
	case 13 ... 15:
		say_something(w, h, true);
		break;
	case 16:
		say_bytes(w, h);
		break;
	case 17:
		say_with_fds(w, h);
		break;
	case 18:
		flood(w, h);
		break;
	case 19:
		h->deaf = !h->deaf;
		break;
	case 20:
		come(w, h);
		break;
	case 21:
		rig_hang_up(&h->c);
		break;
	case 22:
		rig_pass(fz_pick(w->in, 64) * 4);
		step(w, 0);
		step(w, 1);
		break;
	case 23:
		starve(w);
		break;
	case 24:
		setrlimit(RLIMIT_NOFILE, &w->limit);
		break;
	default:
		step(w, what & 1);
	}
}

/* ---- processes that keep the rules ---- */

static void good_join(void)
{
	struct rig *r = &good.rig;

	rig_link_up(r);
	rig_join(r, &good.near, &good.here, &good.inside);
	rig_join(r, &good.near, &good.there, &good.across);
	rig_step_all(r);
}

static void good_open(void)
{
	struct rig *r = &good.rig;

	rig_open(r, HOSTS, 3);
	rig_good(r, &good.near, 0);
	rig_good(r, &good.here, 0);
	rig_good(r, &good.there, 1);
	good_join();
	rig_usage(r, &good.usage);
	good.inputs = 0;
}

static void good_close(void)
{
	rig_hang_up(&good.near);
	rig_hang_up(&good.here);
	rig_hang_up(&good.there);
	rig_close(&good.rig);
}

static bool tables_grew(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < HOSTS; i++)
		n += good.rig.agent[i]->alias_count + good.rig.agent[i]->device_count;
	return n > 0;
}

/* The connection between the hosts may have been lost with the link: then it is made again. */
static void across_again(void)
{
	struct rig *r = &good.rig;
	struct w_conn a = { .conn = good.across.client }, b = { .conn = good.across.server };

	rig_send(&good.near, &a, W_CLOSE, sizeof(a));
	rig_send(&good.there, &b, W_CLOSE, sizeof(b));
	rig_step_all(r);
	rig_drain(r);
	rig_quiet(r, &good.near, true);
	rig_quiet(r, &good.there, true);
	rig_join(r, &good.near, &good.there, &good.across);
}

static void good_still(struct world *w)
{
	struct rig *r = &good.rig;
	struct rig_pair pair;
	uint32_t i;

	rig_quiet(r, &good.here, false);
	rig_quiet(r, &good.near, w->link_touched);
	rig_quiet(r, &good.there, w->link_touched);
	for (i = 0; i < HOSTS && !w->link_touched; i++) {
		if (r->agent[i]->links[1].link_generation != w->link_generation[i] ||
		    !rig_linked(r, i))
			rig_fail("host %u lost its link by what processes said", i);
	}
	if (w->link_touched) {
		rig_link_up(r);
		across_again();
	}
	rig_join(r, &good.near, &good.here, &pair);
	rig_part(r, &good.near, &good.here, &pair);
	rig_join(r, &good.near, &good.there, &pair);
	rig_part(r, &good.near, &good.there, &pair);
	rig_settle(r, &good.usage);
}

static void leave(struct world *w)
{
	uint32_t i;

	setrlimit(RLIMIT_NOFILE, &w->limit);
	for (i = 0; i < HOSTILE; i++)
		rig_hang_up(&w->h[i].c);
	rig_step_all(&good.rig);
	rig_drain(&good.rig);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	struct world w = { .good = &good, .in = &in };
	uint32_t i;

	if (good.inputs == 0 || good.inputs > REUSE || tables_grew()) {
		if (good.inputs > 0)
			good_close();
		good_open();
	}
	good.inputs++;
	getrlimit(RLIMIT_NOFILE, &w.limit);
	for (i = 0; i < HOSTILE; i++)
		w.h[i].c.sock = -1;
	for (i = 0; i < HOSTS; i++)
		w.link_generation[i] = good.rig.agent[i]->links[1].link_generation;
	while (in.left > 0)
		act(&w);
	step(&w, 0);
	step(&w, 1);
	leave(&w);
	good_still(&w);
	return 0;
}
