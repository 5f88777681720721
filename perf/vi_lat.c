/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_lat - latency between two processes.
 *
 * A message goes to the server and one of equal size comes back; half of that time is the
 * latency, as in the OSU benchmarks.  An RDMA read is timed whole, as only its data comes back.
 * With --batch several round trips are timed as one, so that reading the clock costs nothing.
 */
#include <stdatomic.h>
#include <string.h>

#include "pf_run.h"

/*
 * The last byte of a plain RDMA write shows the target that the write is complete, as its bytes
 * become visible in ascending order.  Consecutive writes of a VI differ in this byte.
 */
static uint8_t flag_of(const struct pf_ep *ep, uint64_t m)
{
	return (uint8_t)(ep->p.busy == 1 ? m : m / ep->p.busy);
}

#define POLLS 512 /* at a flag that the peer writes itself, between checks of everything else */

/* Pauses before the next load: the peer needs the line, to store into it. */
static void poll_empty(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

static bool poll_flag(_Atomic uint8_t *flag, uint8_t due, uint32_t count)
{
	while (count-- > 0) {
		if (atomic_load_explicit(flag, memory_order_acquire) == due)
			return true;
		poll_empty();
	}
	return false;
}

static int await_flag(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size)
{
	_Atomic uint8_t *flag = (_Atomic uint8_t *)(pf_recv_slot(ep, k, m) + size - 1);
	const uint8_t due = flag_of(ep, m);
	const uint32_t count = ep->p.window_memory || ep->p.adopt ? POLLS : 1;
	struct pf_idle idle = { 0 };
	int rc = 0;

	/* Lets the NIC place writes to memory that is not window memory. */
	while (!rc && !poll_flag(flag, due, count)) {
		VipxProgress(ep->nic);
		rc = pf_idle(ep, &idle);
	}
	return rc;
}

/* As one word if it has no other content: a copy after a store of one byte would have to wait. */
static void set_flag(const struct pf_ep *ep, uint8_t *slot, uint64_t m, uint32_t size)
{
	uint8_t word[8];

	if (ep->p.verify || size < sizeof(word)) {
		slot[size - 1] = flag_of(ep, m);
		return;
	}
	memset(word, flag_of(ep, m), sizeof(word));
	memcpy(slot + size - sizeof(word), word, sizeof(word));
}

/* Prepares a message completely, except for the call that posts it. */
static int prepare(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size, VIP_DESCRIPTOR **out)
{
	uint8_t *slot = pf_send_slot(ep, k, m);

	if (ep->p.verify && ep->p.op != PF_READ)
		pf_fill(slot, size, k, m);
	if (ep->p.op == PF_WRITE)
		set_flag(ep, slot, m, size);
	return pf_prepare_message(ep, k, m, size, out);
}

static int post(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size)
{
	VIP_DESCRIPTOR *d;
	int rc = prepare(ep, k, m, size, &d);

	return rc ? rc : pf_post_prepared(ep, k, d);
}

/*
 * The answer to the next message.  It does not depend on that message, so it is prepared before,
 * as tuned programs do, unless every message has content of its own.
 */
static int answer_early(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size,
			VIP_DESCRIPTOR **out)
{
	int rc = 0;

	*out = NULL;
	if (ep->p.verify)
		return 0;
	/* The flag has the offset of the last one that was sent. */
	if (ep->p.op == PF_WRITE)
		rc = pf_reap(ep, k, 0);
	return rc ? rc : prepare(ep, k, m, size, out);
}

static int answer(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size, VIP_DESCRIPTOR *early)
{
	return early ? pf_post_prepared(ep, k, early) : post(ep, k, m, size);
}

static int check(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size, const VIP_DESCRIPTOR *d)
{
	if (d && d->CS.Length != size)
		return pf_fail(ep, "message %llu of VI %u has %u bytes, %u were sent",
			       (unsigned long long)m, k, d->CS.Length, size);
	if (!ep->p.verify)
		return 0;
	switch (ep->p.op) {
	case PF_SEND:
		return pf_check(ep, pf_recv_data(d), size, k, m);
	case PF_WRITE:
		return pf_check(ep, pf_recv_slot(ep, k, m), size - 1, k, m);
	case PF_READ:
		return pf_check(ep, pf_recv_slot(ep, k, m), size, k, m % ep->send_slots);
	default:
		return pf_check(ep, pf_recv_slot(ep, k, m), size, k, m);
	}
}

/* Waits for the peer's message; *d is its receive descriptor, NULL for a plain write. */
static int await(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size, VIP_DESCRIPTOR **d)
{
	*d = NULL;
	if (ep->p.op == PF_WRITE)
		return await_flag(ep, k, m, size);
	return pf_take(ep, k, PF_RECVQ, d);
}

/* A message that arrived. */
struct arrival {
	uint32_t k;
	uint64_t m;
	VIP_DESCRIPTOR *d;
};

static uint32_t vi_of(const struct pf_ep *ep, uint64_t i)
{
	return ep->p.busy == 1 ? 0 : (uint32_t)(i % ep->p.busy);
}

static int arrive(struct pf_ep *ep, uint64_t i, uint64_t m, uint32_t size, struct arrival *a)
{
	a->k = vi_of(ep, i);
	a->m = m;
	return await(ep, a->k, m, size, &a->d);
}

/* Checks a message and posts its descriptor again. */
static int settle(struct pf_ep *ep, uint32_t size, const struct arrival *a)
{
	int rc = check(ep, a->k, a->m, size, a->d);

	return rc || !a->d ? rc : pf_repost(ep, a->k, a->d);
}

static int add_sample(struct pf_run *run, int64_t start)
{
	int64_t took = pf_now() - start;

	run->elapsed_ns += took;
	return pf_hist_add(&run->hist, (uint64_t)took);
}

/* One round trip; work that can wait is done after it. */
static int single(struct pf_run *run, uint64_t i, uint64_t m, uint32_t size)
{
	struct pf_ep *ep = &run->ep;
	struct arrival a = { vi_of(ep, i), m, NULL };
	int64_t start = pf_now();
	int rc = post(ep, a.k, m, size);

	if (!rc)
		rc = ep->p.op == PF_READ ? pf_reap(ep, a.k, 0) : arrive(ep, i, m, size, &a);
	if (!rc)
		rc = add_sample(run, start);
	if (!rc)
		rc = settle(ep, size, &a);
	return rc ? rc : pf_reap(ep, a.k, 0);
}

/* Several round trips, timed with all their work; the next begins at once. */
static int several(struct pf_run *run, uint64_t i, uint64_t m, uint32_t size)
{
	struct pf_ep *ep = &run->ep;
	uint64_t end = i + ep->p.batch;
	VIP_DESCRIPTOR *next;
	struct arrival a;
	int64_t start = pf_now();
	int rc = post(ep, vi_of(ep, i), m, size);

	while (!rc && i < end) {
		bool more = i + 1 < end;

		if (more)
			rc = answer_early(ep, vi_of(ep, i + 1), m + 1, size, &next);
		if (!rc)
			rc = arrive(ep, i, m, size, &a);
		i++;
		m++;
		if (!rc && more)
			rc = answer(ep, vi_of(ep, i), m, size, next);
		if (!rc)
			rc = settle(ep, size, &a);
		if (!rc)
			rc = pf_reap(ep, a.k, 1);
	}
	return rc ? rc : add_sample(run, start);
}

static int several_reads(struct pf_run *run, uint64_t i, uint64_t m, uint32_t size)
{
	struct pf_ep *ep = &run->ep;
	uint64_t end = i + ep->p.batch;
	int64_t start = pf_now();
	int rc = 0;

	for (; !rc && i < end; i++, m++) {
		struct arrival a = { vi_of(ep, i), m, NULL };

		rc = post(ep, a.k, m, size);
		if (!rc)
			rc = pf_reap(ep, a.k, 0);
		if (!rc)
			rc = settle(ep, size, &a);
	}
	return rc ? rc : add_sample(run, start);
}

/* Posts that were prepared before; the answer comes after the last. */
static int posts(struct pf_run *run, uint64_t i, uint64_t m, uint32_t size)
{
	struct pf_ep *ep = &run->ep;
	uint32_t k = vi_of(ep, i / PF_POSTS), n;
	VIP_DESCRIPTOR *d[PF_POSTS];
	struct arrival a;
	int64_t start;
	int rc = 0;

	for (n = 0; !rc && n < PF_POSTS; n++) {
		if (ep->p.verify)
			pf_fill(pf_send_slot(ep, k, m + n), size, k, m + n);
		rc = pf_prepare_message(ep, k, m + n, size, &d[n]);
	}
	start = pf_now();
	for (n = 0; !rc && n < PF_POSTS; n++)
		rc = pf_post_prepared(ep, k, d[n]);
	if (!rc)
		rc = add_sample(run, start);
	if (!rc)
		rc = arrive(ep, i / PF_POSTS, m, size, &a);
	if (!rc)
		rc = settle(ep, size, &a);
	return rc ? rc : pf_reap(ep, k, 0);
}

static int lat_client(struct pf_run *run, const struct pf_batch *b)
{
	const struct pf_params *p = &run->ep.p;
	int (*step)(struct pf_run *, uint64_t, uint64_t, uint32_t) = single;
	uint64_t i, n = b->count * p->batch;
	uint32_t k;
	int rc = 0;

	if (p->post_time)
		step = posts;
	else if (p->batch > 1)
		step = p->op == PF_READ ? several_reads : several;
	for (i = 0; !rc && i < n; i += p->batch)
		rc = step(run, i, b->first + i, b->size);
	for (k = 0; !rc && k < p->busy; k++)
		rc = pf_reap(&run->ep, k, 0);
	return rc;
}

static int server_step(struct pf_ep *ep, uint64_t i, uint64_t m, uint32_t size)
{
	VIP_DESCRIPTOR *early;
	struct arrival a;
	int rc = answer_early(ep, vi_of(ep, i), m, size, &early);

	if (!rc)
		rc = arrive(ep, i, m, size, &a);
	if (!rc)
		rc = answer(ep, a.k, m, size, early);
	if (!rc)
		rc = settle(ep, size, &a);
	/* While the message is under way; the one before may not be complete yet. */
	return rc ? rc : pf_reap(ep, a.k, 1);
}

static int server_posts(struct pf_ep *ep, uint64_t i, uint64_t m, uint32_t size)
{
	struct arrival a;
	uint32_t n;
	int rc = 0;

	for (n = 0; !rc && n < PF_POSTS; n++) {
		rc = arrive(ep, i, m + n, size, &a);
		if (!rc)
			rc = settle(ep, size, &a);
	}
	return rc ? rc : post(ep, vi_of(ep, i), m, size);
}

static int lat_server(struct pf_run *run, const struct pf_batch *b)
{
	struct pf_ep *ep = &run->ep;
	uint64_t i, n = b->count * (ep->p.post_time ? 1 : ep->p.batch);
	uint32_t k;
	int rc = 0;

	if (ep->p.op == PF_READ)
		return 0;
	for (i = 0; !rc && i < n; i++) {
		if (ep->p.post_time)
			rc = server_posts(ep, i, b->first + i * PF_POSTS, b->size);
		else
			rc = server_step(ep, i, b->first + i, b->size);
	}
	for (k = 0; !rc && k < ep->p.busy; k++)
		rc = pf_reap(ep, k, 0);
	return rc;
}

/* Initially no slot may hold the flag of the first message that will be written to it. */
static void lat_prepare(struct pf_run *run, const struct pf_batch *b)
{
	struct pf_ep *ep = &run->ep;
	uint32_t per = ep->p.verify ? 1 : PF_RUN, k, i;
	uint64_t m;

	pf_fill_source(run, b);
	if (ep->p.op != PF_WRITE)
		return;
	for (k = 0; k < ep->vi_count; k++) {
		for (i = 0, m = b->first; i < ep->recv_slots; i++, m += per - m % per)
			pf_recv_slot(ep, k, m)[b->size - 1] = flag_of(ep, m) ^ 0x80;
	}
}

#define SIZES "1..1M"

static const struct pf_tool tool = {
	.name = "vi_lat",
	.kind = PF_LAT,
	.head = PF_HEAD(
		"vi_lat",
		"Measures the latency between two processes over a VI: half of the round trip of\n"
		"a message and its answer, as the OSU benchmarks do; of an RDMA read the whole."),
	.title = "Viaduct VI Latency Test",
	.column = "Latency (us)",
	.metric = "avg_us",
	.tail = PF_TAIL(
		"  avg_us min_us max_us stddev_us p50_us p99_us p99.9_us ... (any percentile)",
		SIZES),
	.sizes = SIZES,
	.window = 1,
	.prepare = lat_prepare,
	.client = lat_client,
	.server = lat_server,
};

int main(int argc, char **argv)
{
	return pf_main(&tool, argc, argv);
}
