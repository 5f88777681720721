/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rp.h"

#define APART 128u /* words of different writers */
#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

struct counter {
	_Alignas(APART) _Atomic uint64_t v;
};

static uint64_t load(const struct counter *c)
{
	return atomic_load_explicit(&c->v, memory_order_acquire);
}

static void store(struct counter *c, uint64_t v)
{
	atomic_store_explicit(&c->v, v, memory_order_release);
}

static void *shared(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		ring_print_error("%zu bytes of shared memory were sought and there are none",
				 bytes);
		return NULL;
	}
	memset(at, 0, bytes);
	return at;
}

/* ---- a line to and fro; its distance depends on where it is cached, so each batch has others ---- */

#define LINE_TRIPS 500u
#define LINE_BATCHES 21u

struct line {
	struct counter to[LINE_BATCHES], fro[LINE_BATCHES];
};

static int line_follow(void *arg)
{
	struct line *l = arg;

	for (unsigned int i = 0; i < LINE_BATCHES; i++) {
		for (uint64_t n = 1; n <= LINE_TRIPS; n++) {
			while (load(&l->to[i]) != n)
				rp_pause();
			store(&l->fro[i], n);
		}
	}
	return 0;
}

int rp_line(double *out)
{
	struct line *l = shared(sizeof(*l));
	double took[LINE_BATCHES];

	if (l == NULL)
		return -1;
	rp_helper_run(0, line_follow, l);
	for (unsigned int i = 0; i < LINE_BATCHES; i++) {
		int64_t began = 0;

		for (uint64_t n = 1; n <= LINE_TRIPS; n++) {
			store(&l->to[i], n);
			while (load(&l->fro[i]) != n)
				rp_pause();
			if (n == 1)
				began = rv_now(); /* both are awake */
		}
		took[i] = (double)(rv_now() - began) / (2.0 * (LINE_TRIPS - 1));
	}
	rp_helper_join(0);
	munmap(l, sizeof(*l));
	*out = rp_median(took, LINE_BATCHES);
	return 0;
}

/* ---- copies in chunks ---- */

#define RING_MAX MIB

struct ring {
	struct counter put, got; /* chunks */
	_Alignas(4096) uint8_t data[RING_MAX];
};

/* One copy of the chain and its progress; written by the thread that makes it. */
struct copy {
	_Alignas(APART) uint64_t done;
	uint64_t put_seen, got_seen;
	struct ring *from, *to; /* NULL: the message itself */
	uint8_t *own;
};

struct chain {
	unsigned int copies;
	bool apart;
	uint64_t bytes, chunk, places, total;
	struct copy copy[RP_HOPS_MAX + 1];
};

static uint8_t *place(const struct chain *c, const struct copy *k, struct ring *r)
{
	if (r != NULL)
		return r->data + k->done % c->places * c->chunk;
	return k->own + k->done % (c->bytes / c->chunk) * c->chunk;
}

static bool step(const struct chain *c, struct copy *k)
{
	if (k->done == c->total)
		return false;
	if (k->from != NULL && k->put_seen == k->done) {
		k->put_seen = load(&k->from->put);
		if (k->put_seen == k->done)
			return false;
	}
	if (k->to != NULL && k->done - k->got_seen == c->places) {
		k->got_seen = load(&k->to->got);
		if (k->done - k->got_seen == c->places)
			return false;
	}
	memcpy(place(c, k, k->to), place(c, k, k->from), c->chunk);
	k->done++;
	if (k->from != NULL)
		store(&k->from->got, k->done);
	if (k->to != NULL)
		store(&k->to->put, k->done);
	return true;
}

/* Copies `first` to `last` of a chain, by one thread. */
struct relays {
	struct chain *chain;
	unsigned int first, last;
};

static int relay_copies(void *arg)
{
	struct relays *r = arg;
	struct chain *c = r->chain;

	while (c->copy[r->last].done < c->total) {
		bool moved = false;

		for (unsigned int i = r->first; i <= r->last; i++)
			moved |= step(c, &c->copy[i]);
		if (moved)
			continue;
		if (c->apart)
			sched_yield();
		else
			rp_pause();
	}
	return 0;
}

static unsigned int relays_start(struct chain *c, struct relays r[RP_HELPERS])
{
	unsigned int relays = c->copies - 2, n = c->apart ? relays : 1;

	for (unsigned int i = 0; i < n; i++) {
		r[i] = (struct relays){ c, c->apart ? i + 1 : 1, c->apart ? i + 1 : relays };
		rp_helper_run(i, relay_copies, &r[i]);
	}
	return n;
}

/* The rate of the median batch. */
static double run_chain(struct chain *c, uint64_t batch, unsigned int batches)
{
	struct copy *first = &c->copy[0], *last = &c->copy[c->copies - 1];
	uint64_t per = batch / c->chunk, next = per;
	unsigned int n = 0, skip = batches / 4, helping;
	struct relays relays[RP_HELPERS];
	double took[RP_BATCHES_MAX];
	int64_t at = 0, now;

	c->total = per * batches;
	helping = relays_start(c, relays);
	while (last->done < c->total) {
		step(c, first);
		if (!step(c, last) || last->done != next)
			continue;
		now = rv_now();
		took[n++] = (double)(now - at);
		at = now;
		next += per;
	}
	while (helping-- > 0)
		rp_helper_join(helping);
	return (double)batch / rp_median(took + skip, n - skip);
}

static void chain_make(struct chain *c, unsigned int hops, struct ring *rings, uint8_t *own[2])
{
	memset(c, 0, sizeof(*c));
	c->copies = hops + 1;
	for (unsigned int i = 0; i < hops; i++) {
		store(&rings[i].put, 0);
		store(&rings[i].got, 0);
		c->copy[i].to = c->copy[i + 1].from = &rings[i];
	}
	c->copy[0].own = own[0];
	c->copy[hops].own = own[1];
}

static void each_geometry(unsigned int hops, uint64_t bytes, bool apart, struct ring *rings,
			  uint8_t *own[2], struct rp_copies out[RP_GEOMETRIES])
{
	static const uint64_t chunks[] = { 16 * KIB, 32 * KIB, 64 * KIB };
	static const uint64_t sizes[] = { 256 * KIB, 512 * KIB, MIB };
	struct chain c;

	for (unsigned int i = 0; i < RP_GEOMETRIES; i++) {
		uint64_t chunk = chunks[i % 3], ring = sizes[i / 3];

		chain_make(&c, hops, rings, own);
		c.bytes = bytes;
		c.apart = apart;
		c.chunk = chunk;
		c.places = ring / chunk;
		out[i].rate = bytes > MIB ? run_chain(&c, bytes, 8) : run_chain(&c, MIB, 32);
		out[i].chunk = chunk;
		out[i].ring = ring;
	}
}

int rp_copies(unsigned int hops, uint64_t bytes, bool apart, struct rp_copies out[RP_GEOMETRIES])
{
	uint8_t *own[2] = { aligned_alloc(4096, bytes), aligned_alloc(4096, bytes) };
	struct ring *rings = shared(hops * sizeof(*rings));
	int rc = -1;

	if (own[0] == NULL || own[1] == NULL) {
		ring_print_error("twice %llu bytes were sought and there are none",
				 (unsigned long long)bytes);
	} else if (rings != NULL) {
		memset(own[0], 1, bytes);
		memset(own[1], 2, bytes);
		each_geometry(hops, bytes, apart, rings, own, out);
		rc = 0;
	}
	if (rings != NULL)
		munmap(rings, hops * sizeof(*rings));
	free(own[0]);
	free(own[1]);
	return rc;
}
