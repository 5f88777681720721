/* SPDX-License-Identifier: BSD-2-Clause */
#include "broken.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

extern "C" {
#include "port_deco.h"
#include "u_time.h"
}

static const unsigned int kRingsUntilLost = 97;
static const unsigned int kRingsUntilEarly = 5;
static const unsigned int kPadWritesUntilLost = 9;
static const size_t kBigSlice = 128 << 10;

namespace {

struct BrokenMap;

/* A store that was made and has not been passed on. */
struct Held {
	BrokenMap *map = nullptr;
	void *dst = nullptr;
	std::vector<uint8_t> bytes;
};

struct Broken {
	struct port port; /* first: port_of() */
	Flaw flaw;
	struct port *peer;
	std::atomic<unsigned int> rings{ 0 };
	std::atomic<unsigned int> writes{ 0 };
	std::atomic<uint32_t> generation{ 0 };
	std::recursive_mutex lock; /* protects what follows */
	Held held;
	std::vector<struct port_slice> given; /* with a descriptor of our own */
	std::vector<struct port_slice> freed;
};

struct BrokenMap {
	Broken *broken;
	struct port_map inner;
};

Broken *of(struct port *p)
{
	return reinterpret_cast<Broken *>(p);
}

void pass_on(Broken *b)
{
	Held held;

	std::swap(held, b->held);
	if (held.map != nullptr)
		deco_put(&held.map->inner.out, held.dst, held.bytes.data(), held.bytes.size());
}

/* Keeps a store back until the next one, or a flush. */
void hold(BrokenMap *m, void *dst, const void *src, size_t n)
{
	const uint8_t *from = static_cast<const uint8_t *>(src);

	pass_on(m->broken);
	m->broken->held.map = m;
	m->broken->held.dst = dst;
	m->broken->held.bytes.assign(from, from + n);
}

bool is_word(const void *dst, size_t n)
{
	return n == 8 && (reinterpret_cast<uintptr_t>(dst) & 7) == 0;
}

void store(const struct u_out *out, void *dst, const void *src, size_t n)
{
	BrokenMap *m = static_cast<BrokenMap *>(out->priv);
	Broken *b = m->broken;
	size_t off = static_cast<uint8_t *>(dst) - static_cast<uint8_t *>(m->inner.base);

	if (b->flaw == Flaw::SliceHalf && m->inner.len > kBigSlice && off >= m->inner.len / 2)
		return;
	std::lock_guard<std::recursive_mutex> guard(b->lock);
	if (b->flaw == Flaw::RingBeforeStore) {
		hold(m, dst, src, n);
	} else if (b->flaw == Flaw::WordTorn && is_word(dst, n)) {
		pass_on(b);
		deco_put(&m->inner.out, dst, src, 4);
		hold(m, static_cast<uint8_t *>(dst) + 4, static_cast<const uint8_t *>(src) + 4, 4);
	} else {
		deco_put(&m->inner.out, dst, src, n);
	}
}

void fence(const struct u_out *out)
{
	BrokenMap *m = static_cast<BrokenMap *>(out->priv);

	if (m->broken->flaw != Flaw::FenceDoesNothing)
		u_out_fence(&m->inner.out);
}

const struct u_out_ops out_ops = { store, fence };

int map(struct port *p, int fd, size_t len, enum port_dir dir, struct port_map *out)
{
	BrokenMap *m;
	int err;

	if (dir == PORT_INBOUND)
		return port_map(p->inner, fd, len, dir, out);
	m = new BrokenMap{ of(p), {} };
	err = port_map(p->inner, fd, len, dir, &m->inner);
	if (err != 0) {
		delete m;
		return err;
	}
	*out = {};
	out->base = m->inner.base;
	out->len = m->inner.len;
	out->out.ops = &out_ops;
	out->out.priv = m;
	out->priv = m;
	return 0;
}

void unmap(struct port *p, struct port_map *map)
{
	BrokenMap *m = static_cast<BrokenMap *>(map->priv);

	if (map->out.ops != &out_ops) {
		port_unmap(p->inner, map);
		return;
	}
	{
		std::lock_guard<std::recursive_mutex> guard(of(p)->lock);

		if (of(p)->held.map == m)
			pass_on(of(p));
	}
	port_unmap(p->inner, &m->inner);
	delete m;
	*map = {};
}

void flush(struct port *p)
{
	if (of(p)->flaw == Flaw::FlushReturnsEarly)
		return;
	{
		std::lock_guard<std::recursive_mutex> guard(of(p)->lock);

		pass_on(of(p));
	}
	port_flush(p->inner);
}

/* Until the peer has cleared the bits, and a little longer, so that it looks before the store lands. */
void until_taken(struct port *peer, uint32_t bits)
{
	int64_t deadline = u_now_ns() + 100000000;
	int64_t later;

	while ((port_db_read(peer) & bits) != 0 && u_now_ns() < deadline)
		sched_yield();
	for (later = u_now_ns() + 1000000; u_now_ns() < later;)
		sched_yield();
}

void ring(struct port *p, uint32_t bits)
{
	Broken *b = of(p);
	unsigned int n = ++b->rings;
	std::lock_guard<std::recursive_mutex> guard(b->lock);

	if (b->flaw == Flaw::RingLost && n % kRingsUntilLost == 0)
		return;
	if (b->flaw == Flaw::LowestBitOnly)
		bits &= -bits;
	if (b->flaw == Flaw::RingBeforeStore && n % kRingsUntilEarly == 0 &&
	    b->held.map != nullptr) {
		port_peer_db_ring(p->inner, bits);
		until_taken(b->peer, bits);
		pass_on(b);
		return;
	}
	pass_on(b);
	port_peer_db_ring(p->inner, bits);
}

void db_clear(struct port *p, uint32_t bits)
{
	port_db_clear(p->inner, of(p)->flaw == Flaw::ClearsAllBits ? UINT32_MAX : bits);
}

void db_clear_mask(struct port *p, uint32_t bits)
{
	port_db_clear_mask(p->inner, bits);
	if (of(p)->flaw == Flaw::MaskSwallows)
		port_db_clear(p->inner, bits);
}

int peer_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	Broken *b = of(p);

	if (b->flaw == Flaw::PadWriteLost && idx < p->limits.spads &&
	    ++b->writes % kPadWritesUntilLost == 0 &&
	    port_link_state(p->inner, nullptr) == PORT_LINK_UP)
		return 0;
	std::lock_guard<std::recursive_mutex> guard(b->lock);
	pass_on(b);
	return port_peer_spad_write(p->inner, idx, v);
}

enum port_link link_state(struct port *p, uint32_t *generation_out)
{
	Broken *b = of(p);
	uint32_t now;
	uint32_t first = 0;
	enum port_link state = port_link_state(p->inner, &now);

	if (b->flaw == Flaw::LinkUntold) {
		b->generation.compare_exchange_strong(first, now);
		now = b->generation;
		state = PORT_LINK_UP;
	}
	if (generation_out != nullptr)
		*generation_out = now;
	return state;
}

/* Has the link come up again since this was asked first? */
bool link_is_another(Broken *b)
{
	uint32_t now;
	uint32_t first = 0;

	port_link_state(b->port.inner, &now);
	b->generation.compare_exchange_strong(first, now);
	return now != b->generation;
}

/* Offers memory that was freed once more, under a new name. */
int offer_again(struct port *p, struct port_slice *s)
{
	struct port_map map = {};
	int err = port_slice_share(p->inner, s->fd, s->len, &s->id);

	if (err == 0)
		err = port_map(p->inner, s->fd, s->len, PORT_INBOUND, &map);
	if (err != 0)
		return err;
	memset(map.base, 0, s->len);
	port_unmap(p->inner, &map);
	return 0;
}

int slice_alloc(struct port *p, size_t len, struct port_slice *out)
{
	Broken *b = of(p);
	std::lock_guard<std::recursive_mutex> guard(b->lock);
	int err;

	if (b->flaw == Flaw::OneLinkOnly && link_is_another(b))
		return -ENOMEM;
	for (auto s = b->freed.begin(); s != b->freed.end(); ++s) {
		if (s->len != len)
			continue;
		err = offer_again(p, &*s);
		*out = { s->id, fcntl(s->fd, F_DUPFD_CLOEXEC, 0), s->len };
		b->given.push_back(*s);
		b->freed.erase(s);
		return err;
	}
	err = port_slice_alloc(p->inner, len, out);
	if (err == 0 && b->flaw == Flaw::FreedUsedAgain)
		b->given.push_back({ out->id, fcntl(out->fd, F_DUPFD_CLOEXEC, 0), out->len });
	return err;
}

void slice_free(struct port *p, uint32_t id)
{
	Broken *b = of(p);
	std::lock_guard<std::recursive_mutex> guard(b->lock);

	port_slice_free(p->inner, id);
	for (auto s = b->given.begin(); s != b->given.end(); ++s) {
		if (s->id != id)
			continue;
		b->freed.push_back(*s);
		b->given.erase(s);
		return;
	}
}

int export_view(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
		unsigned int *nfds_out)
{
	return port_export_view(p->inner, text, size, fds, nfds_out);
}

void close_port(struct port *p)
{
	Broken *b = of(p);

	port_close(p->inner);
	for (auto *list : { &b->given, &b->freed }) {
		for (auto &s : *list)
			close(s.fd);
	}
	delete b;
}

struct port_ops broken_ops()
{
	struct port_ops ops = {};

	ops.slice_alloc = slice_alloc;
	ops.slice_free = slice_free;
	ops.slice_share = deco_slice_share;
	ops.memory_alloc = deco_memory_alloc;
	ops.peer_slice_open = deco_peer_slice_open;
	ops.map = map;
	ops.unmap = unmap;
	ops.flush = flush;
	ops.peer_db_ring = ring;
	ops.db_read = deco_db_read;
	ops.db_clear = db_clear;
	ops.db_set_mask = deco_db_set_mask;
	ops.db_clear_mask = db_clear_mask;
	ops.spad_read = deco_spad_read;
	ops.spad_write = deco_spad_write;
	ops.peer_spad_read = deco_peer_spad_read;
	ops.peer_spad_write = peer_spad_write;
	ops.link_enable = deco_link_enable;
	ops.link_disable = deco_link_disable;
	ops.link_state = link_state;
	ops.event_fd = deco_event_fd;
	ops.service = deco_service;
	ops.export_view = export_view;
	ops.close = close_port;
	return ops;
}

} // namespace

struct port *broken_wrap(struct port *inner, Flaw flaw, struct port *peer)
{
	static const struct port_ops ops = broken_ops();
	Broken *b = new Broken{};

	deco_init(&b->port, &ops, "broken", inner);
	b->flaw = flaw;
	b->peer = peer;
	return &b->port;
}
