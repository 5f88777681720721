/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile neighbour: it may send anything over the cable, write anything into
 * the scratchpads, the register page and the control slice it was granted, bring
 * a link up properly and then misbehave.  A process of the agent's host uses the
 * link all the time: each of its attempts must be answered exactly once.  Two
 * others are connected within the host and must notice nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fz_input.h"
#include "port_emu.h"
#include "port_emu_priv.h"
#include "rig.h"
#include "w_slot.h"

#define HOSTS 3u    /* a ring; the neighbour is host 1 */
#define TO_LEFT 1u  /* port of host 0 to host 2 */
#define TO_RIGHT 2u /* port of host 0 to the neighbour; port of host 2 to host 0 */
#define MEMORY 8u
#define TOKENS 256u
#define CTL_BYTES (4096u + 64u * 512u)
#define WORDS 8u
#define REUSE 500u
#define BACKLOG 8 /* the most cables that wait for the agent */

struct good {
	struct rig rig;
	struct rig_client near, here, there; /* of hosts 0, 0 and 2 */
	struct rig_pair inside, across;
	struct rig_usage usage;
	uint32_t inputs;
};

struct world {
	struct fz_input *in;
	struct port_emu_host *host; /* the neighbour's */
	struct port *port;
	int cable; /* our end of the cable that is plugged into `port`; -1: none */
	struct port_slice ctl;
	struct port_map rd, wr;
	uint32_t next, seen;
	uint64_t conns[MEMORY]; /* of the agent's ends, as its records named them */
	uint32_t slices[MEMORY];
	uint32_t heard, granted;
	struct rig_client user; /* the local process that uses the link */
	struct rig_client far;	/* one of host 2 */
	bool far_waits;
	uint64_t arrived[MEMORY], linked[MEMORY];
	uint32_t arrivals, links;
	uint32_t tokens;
	uint8_t answers[TOKENS];
	bool attempt[TOKENS]; /* this token gets an answer */
	bool within;	      /* it was made within the host: it needs no link and may last */
};

static struct good good;

/* ---- the neighbour's cable and set-up ---- */

static void forget_maps(struct world *w)
{
	port_unmap(w->port, &w->wr);
	port_unmap(w->port, &w->rd);
	memset(&w->wr, 0, sizeof(w->wr));
	memset(&w->rd, 0, sizeof(w->rd));
	if (w->ctl.fd >= 0) {
		close(w->ctl.fd);
		port_slice_free(w->port, w->ctl.id);
	}
	w->ctl.fd = -1;
}

static void unplug(struct world *w)
{
	forget_maps(w);
	port_emu_unplug(w->port);
	if (w->cable >= 0)
		close(w->cable);
	w->cable = -1;
}

static void plug(struct world *w)
{
	struct sockaddr_un un;
	socklen_t len = w_cable_addr(&un, geteuid(), good.rig.fabric, 0, TO_RIGHT);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	unplug(w);
	if (sock < 0)
		rig_fail("no descriptor for a cable");
	if (connect(sock, (struct sockaddr *)&un, len) != 0) {
		/* The agent has others to accept first. */
		if (errno != EAGAIN)
			rig_fail("the cable of host 0 is not there: %s", strerror(errno));
		close(sock);
		return;
	}
	w->cable = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	port_emu_plug(w->port, sock);
	port_link_enable(w->port);
}

/* A process on a host beyond the agent's accepts what the neighbour requests. */
static void far_serves(struct world *w)
{
	struct w_connect wait = { .token = UINT64_MAX };
	struct w_accept accept = { .token = 1 };
	struct rig_msg m;
	int type;

	while ((type = rig_recv(&w->far, &m)) > 0) {
		if (type != W_ARRIVED)
			continue;
		accept.conn = ((struct w_arrived *)(void *)m.bytes)->conn;
		accept.attrs = ((struct w_arrived *)(void *)m.bytes)->attrs;
		rig_send(&w->far, &accept, W_ACCEPT, sizeof(accept));
		w->far_waits = false;
	}
	if (w->far_waits)
		return;
	rig_addr(&wait.local, 2, 'a', 0);
	wait.local.disc_len = 1;
	rig_send(&w->far, &wait, W_LISTEN, sizeof(wait));
	w->far_waits = true;
}

static void service(struct world *w)
{
	far_serves(w);
	rig_step_all(&good.rig);
	port_service(w->port);
}

static void announce(struct world *w, uint32_t ack)
{
	uint32_t wrong = fz_pick(w->in, 64);
	uint32_t v[WORDS] = {
		0, W_CTL_VERSION << 16 | 1, 0x600df00d, w->ctl.id, CTL_BYTES, ack, 8, HOSTS
	};
	uint32_t i, h = 2166136261u;

	if (wrong > 0 && wrong < WORDS)
		v[wrong] = (uint32_t)fz_get(w->in, 4);
	for (i = 1; i < WORDS; i++) {
		if (i != 5)
			h = (h ^ v[i]) * 16777619u;
	}
	v[0] = 0x5644u << 16 | ((h >> 16 ^ h) & 0xffff);
	for (i = WORDS; i-- > 0;)
		port_peer_spad_write(w->port, i, v[i]);
	port_peer_db_ring(w->port, 1);
}

static void ctl_open(struct world *w)
{
	if (w->ctl.fd >= 0 || port_slice_alloc(w->port, CTL_BYTES, &w->ctl) != 0)
		return;
	if (port_map(w->port, w->ctl.fd, w->ctl.len, PORT_INBOUND, &w->rd) != 0)
		rig_fail("the neighbour has no memory");
	w->next = w->seen = 0;
}

static void ctl_map(struct world *w)
{
	int fd;

	if (w->wr.base != NULL ||
	    port_peer_slice_open(w->port, port_spad_read(w->port, 3), CTL_BYTES, &fd) != 0)
		return;
	if (port_map(w->port, fd, CTL_BYTES, PORT_OUTBOUND, &w->wr) != 0)
		rig_fail("the agent's control slice cannot be mapped");
	close(fd);
}

/* Makes all of the set-up, mostly correctly. */
static void join(struct world *w)
{
	int i;

	plug(w);
	for (i = 0; i < 4; i++)
		service(w);
	ctl_open(w);
	announce(w, 0);
	for (i = 0; i < 3; i++)
		service(w);
	ctl_map(w);
	announce(w, port_spad_read(w->port, 2));
	service(w);
}

/* ---- its records in the control slice ---- */

static uint8_t *record_at(const struct port_map *map, uint32_t n)
{
	return (uint8_t *)map->base + 4096 + n % 64 * 512;
}

static void publish(struct world *w, const void *bytes, uint32_t len)
{
	uint8_t *r = record_at(&w->wr, w->next);

	memcpy(r, bytes, len < 504 ? len : 504);
	memcpy(r + 504, &len, sizeof(len));
	atomic_store((_Atomic uint32_t *)(void *)(r + 508), w_seq(w->next));
	w->next++;
	port_peer_db_ring(w->port, 1);
}

static void hear(struct world *w)
{
	struct w_cm cm;
	uint8_t *r;

	while (w->rd.base != NULL) {
		r = record_at(&w->rd, w->seen);
		if (atomic_load((_Atomic uint32_t *)(void *)(r + 508)) != w_seq(w->seen))
			break;
		memcpy(&cm, r, sizeof(cm));
		if (w_ctl_check(r, cm.hdr.len) < W_CM_REQ)
			rig_fail("the agent wrote a record that is none");
		w->seen++;
		if (cm.src_conn != 0 && cm.hdr.type != W_CM_TELL && cm.hdr.type != W_CM_LINKS)
			w->conns[w->heard++ % MEMORY] = cm.src_conn;
	}
}

static void credit(struct world *w)
{
	uint32_t wrong = fz_pick(w->in, 32);

	if (w->wr.base == NULL)
		return;
	hear(w);
	atomic_store((_Atomic uint32_t *)w->wr.base,
		     wrong == 1 ? (uint32_t)fz_get(w->in, 4) : w->seen - (wrong == 2));
	port_peer_db_ring(w->port, 1);
}

static void any_addr(struct world *w, struct w_addr *a, unsigned int host)
{
	uint32_t how = fz_pick(w->in, 16);

	rig_addr(a, host, (uint8_t)('a' + (how & 3)), 0);
	a->disc_len = 1;
	if (how < 12)
		return;
	a->disc_len = (uint8_t)fz_pick(w->in, W_DISC_MAX + 2);
	fz_fill(w->in, a->disc, fz_pick(w->in, W_DISC_MAX));
	a->disc[0] &= 0x7f;
	fz_mutate(w->in, a->host, sizeof(a->host));
}

static void any_geometry(struct world *w, struct w_geometry *g)
{
	size_t len = u_align_up(w_slice_bytes(RIG_SLOTS, RIG_PAYLOAD), 4096);
	uint32_t how = fz_pick(w->in, 16);
	struct port_slice slice;

	*g = (struct w_geometry){ .slots = RIG_SLOTS,
				  .payload_bytes = RIG_PAYLOAD,
				  .db_bit = 1,
				  .slice_id = w->slices[how % MEMORY],
				  .slice_len = len };
	if (how == 1)
		fz_mutate(w->in, (uint8_t *)g, sizeof(*g));
	if (how < 4 || port_slice_alloc(w->port, how == 4 ? 4096 : len, &slice) != 0)
		return;
	close(slice.fd);
	g->slice_id = slice.id;
	w->slices[w->granted++ % MEMORY] = slice.id;
}

static const struct w_path one_hop = { .hops = 1, .at = 1, .port = { 1 } };

static void fill_tell(struct world *w, struct w_cm_tell *t)
{
	t->path = one_hop;
	t->src_conn = 1 + fz_pick(w->in, 16);
	t->dst_conn = w->conns[fz_pick(w->in, MEMORY)];
	t->slice_id = w->slices[fz_pick(w->in, MEMORY)];
	t->slice_len = fz_get(w->in, 3);
	t->body_len = fz_pick(w->in, W_TELL_MAX + 2);
}

static void fill_cm(struct world *w, struct w_cm *cm, int type)
{
	cm->status = type == W_CM_CLOSE ? 1 + fz_pick(w->in, 4) : fz_pick(w->in, W_STATUS_MAX + 1);
	cm->src_conn = 1 + fz_pick(w->in, 16);
	cm->dst_conn = fz_pick(w->in, 4) ? w->conns[fz_pick(w->in, MEMORY)] : 0;
	if (fz_pick(w->in, 32) == 1)
		cm->dst_conn = fz_get(w->in, 8);
	cm->attrs = (struct w_vi_attrs){ .reliability = 2,
					 .max_transfer = 65536,
					 .qos = fz_pick(w->in, 8) == 1 };
	if (type == W_CM_ACCEPT || type == W_CM_CONFIRM)
		any_geometry(w, &cm->geometry);
	any_addr(w, &cm->local, 1);
	any_addr(w, &cm->remote, 0);
	cm->path = one_hop;
}

static void fill_links(struct world *w, struct w_cm_links *m)
{
	m->origin = (uint16_t)fz_pick(w->in, 4);
	m->up = (uint16_t)fz_pick(w->in, 256);
	m->serial = fz_get(w->in, 8);
}

static uint32_t record_bytes(int type)
{
	switch (type) {
	case W_CM_TELL:
		return sizeof(struct w_cm_tell);
	case W_CM_LINKS:
		return sizeof(struct w_cm_links);
	default:
		return sizeof(struct w_cm);
	}
}

static void record(struct world *w, bool mutated)
{
	union {
		struct w_cm cm;
		struct w_cm_tell tell;
		struct w_cm_links links;
		uint8_t bytes[W_CTL_MAX];
	} m = { .bytes = { 0 } };
	int type = W_CM_REQ + (int)fz_pick(w->in, W_CM_UNKNOWN - W_CM_REQ + 1);
	uint32_t len = record_bytes(type);

	if (w->wr.base == NULL)
		return;
	hear(w);
	w_ctl_init(&m, type, len);
	m.cm.src_host = 1;
	if (type == W_CM_TELL)
		fill_tell(w, &m.tell);
	else if (type == W_CM_LINKS)
		fill_links(w, &m.links);
	else
		fill_cm(w, &m.cm, type);
	if (mutated) {
		fz_mutate(w->in, m.bytes, len);
		len ^= fz_pick(w->in, 8) == 1 ? (uint32_t)fz_get(w->in, 4) : 0;
		m.cm.remote.disc[0] &= 0x7f;
	}
	publish(w, &m, len);
}

/* Sends a record to host 2, or by a path that does not exist. */
static void relayed_record(struct world *w, bool mutated)
{
	union {
		struct w_cm cm;
		struct w_cm_tell tell;
		uint8_t bytes[W_CTL_MAX];
	} m = { .bytes = { 0 } };
	static const uint8_t types[] = { W_CM_REQ,    W_CM_CONFIRM,	W_CM_CANCEL, W_CM_CLOSE,
					 W_CM_PEER,   W_CM_PEER_CANCEL, W_CM_TELL,   W_CM_ACCEPT,
					 W_CM_REFUSE, W_CM_RESUME,	W_CM_QUERY,  W_CM_UNKNOWN };
	int type = types[fz_pick(w->in, sizeof(types))];
	uint32_t len = record_bytes(type);
	struct w_path path = { .hops = 2, .at = 1, .port = { 1, TO_LEFT } };

	if (w->wr.base == NULL)
		return;
	hear(w);
	w_ctl_init(&m, (enum w_ctl_type)type, len);
	if (type == W_CM_TELL)
		fill_tell(w, &m.tell);
	else
		fill_cm(w, &m.cm, type);
	m.cm.src_host = 1;
	m.cm.dst_host = 2;
	if (mutated)
		fz_mutate(w->in, (uint8_t *)&path, 8);
	if (type == W_CM_TELL) {
		m.tell.path = path;
	} else {
		rig_addr(&m.cm.remote, 2, 'a', 0);
		m.cm.remote.disc_len = 1;
		m.cm.epoch = type == W_CM_RESUME || (mutated && fz_pick(w->in, 4) == 1);
		m.cm.path = path;
	}
	if (mutated)
		fz_mutate(w->in, m.bytes, offsetof(struct w_cm, attrs));
	publish(w, &m, len);
}

static void scribble(struct world *w, void *base, size_t size)
{
	size_t at = fz_get(w->in, 2) % size, n = fz_pick(w->in, 64);

	if (base != NULL)
		fz_fill(w->in, (uint8_t *)base + at, n < size - at ? n : size - at);
}

/* ---- its messages over the cable ---- */

static int any_fd(struct world *w, size_t len)
{
	int fd;

	switch (fz_pick(w->in, 6)) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		return memfd_create("fuzz", MFD_CLOEXEC);
	case 2:
		return fcntl(w->host->regs_fd, F_DUPFD_CLOEXEC, 0);
	case 3:
		return fcntl(w->cable, F_DUPFD_CLOEXEC, 0);
	default:
		return emu_memfd("fuzz", len, &fd) == 0 ? fd : -1;
	}
}

static void cable_send(struct world *w, const void *bytes, size_t len, uint32_t nfds)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[3];
	uint32_t i, n;

	for (n = 0; n < nfds && n < 3; n++) {
		fds[n] = any_fd(w, 4096 + fz_pick(w->in, 16) * (size_t)4096);
		if (fds[n] < 0)
			break;
	}
	if (n > 0) {
		control.hdr.cmsg_level = SOL_SOCKET;
		control.hdr.cmsg_type = SCM_RIGHTS;
		control.hdr.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.hdr), fds, n * sizeof(int));
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	sendmsg(w->cable, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (i = 0; i < n; i++)
		close(fds[i]);
}

static void cable_message(struct world *w)
{
	struct emu_msg m = emu_msg(1 + fz_pick(w->in, 6));

	m.id = fz_pick(w->in, 4) ? fz_pick(w->in, 16) : w->slices[fz_pick(w->in, MEMORY)];
	m.enabled = fz_pick(w->in, 2);
	m.len = 4096 * (uint64_t)fz_pick(w->in, 20);
	m.index = fz_pick(w->in, 9);
	m.db_bits = fz_pick(w->in, 34);
	m.spads = fz_pick(w->in, 66);
	if (fz_pick(w->in, 4) == 1)
		fz_mutate(w->in, (uint8_t *)&m, sizeof(m));
	cable_send(w, &m, sizeof(m),
		   m.type == EMU_HELLO || m.type == EMU_OFFER ? 1 : fz_pick(w->in, 16) / 13);
}

static void cable_bytes(struct world *w)
{
	uint8_t bytes[128];
	size_t n = fz_fill(w->in, bytes, fz_pick(w->in, sizeof(bytes)));

	cable_send(w, bytes, n, fz_pick(w->in, 4));
}

/* ---- the process that uses the link ---- */

static uint64_t new_token(struct world *w)
{
	w->attempt[w->tokens] = true;
	return w->tokens++;
}

static void answered(struct world *w, uint64_t token)
{
	if (token >= w->tokens || !w->attempt[token])
		rig_fail("an answer to token %llu, which was no attempt",
			 (unsigned long long)token);
	if (++w->answers[token] > 1)
		rig_fail("token %llu was answered twice", (unsigned long long)token);
}

static bool user_hears(struct world *w)
{
	struct rig_msg m;
	const struct w_linked *linked = (void *)m.bytes;
	int type = rig_recv(&w->user, &m);

	switch (type) {
	case W_ARRIVED:
		w->arrived[w->arrivals++ % MEMORY] = ((struct w_arrived *)(void *)m.bytes)->conn;
		break;
	case W_LINKED:
		if (m.nfds != 2)
			rig_fail("LINKED with %u descriptors", m.nfds);
		answered(w, linked->token);
		w->linked[w->links++ % MEMORY] = linked->conn;
		break;
	case W_REFUSED:
		answered(w, ((struct w_refused *)(void *)m.bytes)->token);
		break;
	case -1:
		rig_fail("the agent hung up on a process that uses the link");
	}
	return type != 0;
}

static void user_connects(struct world *w, enum w_ctl_type type)
{
	struct w_connect m = { .attrs = { .reliability = 2, .max_transfer = 65536 } };

	any_addr(w, &m.local, 0);
	any_addr(w, &m.remote, 1);
	w_host_addr(0, m.local.host);
	m.local.disc_len = 1;
	if (m.remote.disc_len > W_DISC_MAX)
		m.remote.disc_len = 1;
	m.token = type == W_LISTEN ? UINT64_MAX : new_token(w);
	w->within |= type != W_LISTEN && memcmp(m.local.host, m.remote.host, W_HOST_ADDR_LEN) == 0;
	rig_send(&w->user, &m, type, sizeof(m));
}

static void user_accepts(struct world *w)
{
	struct w_accept m = { .attrs = { .reliability = 2, .max_transfer = 65536 } };

	m.conn = w->arrived[fz_pick(w->in, MEMORY)];
	m.token = new_token(w);
	rig_send(&w->user, &m, W_ACCEPT, sizeof(m));
}

static void user_tells(struct world *w)
{
	struct w_tell m = { .conn = w->linked[fz_pick(w->in, MEMORY)], .body_len = 4 };

	rig_send(&w->user, &m, W_TELL, sizeof(m));
}

static void user_acts(struct world *w)
{
	uint32_t what = fz_pick(w->in, 10);
	struct w_conn c = { .conn = what < 8 ? w->linked[fz_pick(w->in, MEMORY)]
					     : w->arrived[fz_pick(w->in, MEMORY)] };
	struct w_token t = { .token = w->tokens > 0 ? fz_pick(w->in, w->tokens) : 0 };

	if (w->tokens + 1 >= TOKENS)
		return;
	switch (what) {
	case 0:
	case 1:
	case 2:
		user_connects(w, what == 0 ? W_CONNECT : what == 1 ? W_PEER : W_LISTEN);
		break;
	case 3:
		user_accepts(w);
		break;
	case 4:
		user_tells(w);
		break;
	case 5:
		rig_send(&w->user, &t, W_CANCEL, sizeof(t));
		break;
	case 6:
	case 7:
		rig_send(&w->user, &c, what == 6 ? W_CONFIRM : W_CLOSE, sizeof(c));
		break;
	default:
		rig_send(&w->user, &c, W_REJECT, sizeof(c));
	}
	while (user_hears(w))
		;
}

/* ---- actions ---- */

static void neighbour_acts(struct world *w, uint32_t what)
{
	switch (what) {
	case 0:
		announce(w, port_spad_read(w->port, 2));
		break;
	case 1:
		port_peer_spad_write(w->port, fz_pick(w->in, WORDS), (uint32_t)fz_get(w->in, 4));
		break;
	case 2:
		cable_message(w);
		break;
	case 3:
		cable_bytes(w);
		break;
	case 4:
		scribble(w, w->wr.base, CTL_BYTES);
		break;
	case 5:
		scribble(w, emu_port(w->port)->view.peer.regs, sizeof(struct emu_regs));
		scribble(w, emu_port(w->port)->view.peer.doorbells, sizeof(struct emu_doorbells));
		break;
	case 6:
		credit(w);
		break;
	case 7:
		if (fz_pick(w->in, 2))
			port_link_enable(w->port);
		else
			port_link_disable(w->port);
		break;
	case 8:
		ctl_open(w);
		ctl_map(w);
		break;
	}
}

static void act(struct world *w)
{
	uint32_t what = fz_pick(w->in, 32);

	if (w->cable < 0 && what < 8)
		what = 9;
	switch (what) {
	case 2:
	case 3: /* this mostly ends the cable, so it is rare */
		if (fz_pick(w->in, 8) != 1)
			break;
		/* fall through */
	case 0:
	case 1:
	case 4 ... 8:
		if (w->cable >= 0)
			neighbour_acts(w, what);
		break;
	case 9:
		join(w);
		break;
	case 10:
		unplug(w);
		break;
	case 11:
		plug(w);
		break;
	case 12:
		rig_pass(fz_pick(w->in, 250) * 10);
		service(w);
		break;
	case 13 ... 19:
		record(w, false);
		break;
	case 20:
		record(w, true);
		break;
	case 21 ... 26:
		user_acts(w);
		break;
	case 30:
	case 31:
		relayed_record(w, what == 31);
		break;
	default:
		service(w);
		hear(w);
	}
}

static void good_open(void)
{
	struct rig *r = &good.rig;

	rig_open(r, HOSTS, 1 | 4);
	rig_wait_link(r, 0, TO_LEFT);
	rig_wait_link(r, 2, TO_RIGHT);
	rig_good(r, &good.near, 0);
	rig_good(r, &good.here, 0);
	rig_good(r, &good.there, 2);
	rig_join(r, &good.near, &good.here, &good.inside);
	rig_join(r, &good.near, &good.there, &good.across);
	rig_step_all(r);
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

static void good_still(void)
{
	struct rig *r = &good.rig;
	struct rig_pair pair;

	rig_quiet(r, &good.near, false);
	rig_quiet(r, &good.here, false);
	rig_quiet(r, &good.there, false);
	rig_join(r, &good.near, &good.here, &pair);
	rig_part(r, &good.near, &good.here, &pair);
	rig_join(r, &good.there, &good.near, &pair);
	rig_part(r, &good.there, &good.near, &pair);
	rig_settle(r, &good.usage);
}

/* After the link is gone, and attempts that need none were withdrawn, all attempts have been answered. */
static void all_answered(struct world *w)
{
	struct w_token wait = { .token = UINT64_MAX };
	uint32_t i;

	for (i = 0; w->within && i < w->tokens; i++) {
		struct w_token t = { .token = i };

		if (w->attempt[i] && w->answers[i] == 0)
			rig_send(&w->user, &t, W_CANCEL, sizeof(t));
	}
	rig_send(&w->user, &wait, W_UNLISTEN, sizeof(wait));
	for (i = 0; i < 4; i++) {
		rig_step_all(&good.rig);
		while (user_hears(w))
			;
	}
	for (i = 0; i < w->tokens; i++) {
		if (w->attempt[i] && w->answers[i] == 0)
			rig_fail("token %u got no answer", i);
	}
}

static void world_open(struct world *w)
{
	struct port_emu_cfg cfg = { .name = "left", .index = 1, .window_bytes = 16u << 20 };

	if (port_emu_host_create(&w->host) != 0 || port_emu_create(w->host, &cfg, &w->port) != 0)
		rig_fail("no neighbour");
	w->cable = w->ctl.fd = -1;
	rig_good(&good.rig, &w->user, 0);
	rig_good(&good.rig, &w->far, 2);
}

static void world_close(struct world *w)
{
	int i;

	unplug(w);
	for (i = 0; i < BACKLOG + 2; i++)
		rig_step_all(&good.rig);
	all_answered(w);
	rig_hang_up(&w->user);
	rig_hang_up(&w->far);
	port_close(w->port);
	port_emu_host_destroy(w->host);
	rig_step_all(&good.rig);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	struct world w = { .in = &in };

	if (good.inputs == 0 || good.inputs > REUSE) {
		if (good.inputs > 0)
			good_close();
		good_open();
	}
	good.inputs++;
	world_open(&w);
	if (fz_pick(&in, 4) != 0)
		join(&w);
	while (in.left > 0)
		act(&w);
	world_close(&w);
	good_still();
	return 0;
}
