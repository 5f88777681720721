/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vi_lat - latency between two processes.
 *
 * A message goes to the server and one of the same size comes back; half of that time is the
 * latency, as in the OSU benchmarks.  An RDMA read is timed whole: nothing comes back but the data.
 */
#include <stdatomic.h>
#include <string.h>

#include "pf_run.h"

/*
 * The last byte of a plain RDMA write tells the target that all is there, as the bytes of a write
 * become visible in ascending order.  Consecutive writes of a VI differ in it.
 */
static uint8_t flag_of(const struct pf_ep *ep, uint64_t m)
{
	return (uint8_t)(m / ep->vi_count);
}

static int await_flag(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size)
{
	_Atomic uint8_t *flag = (_Atomic uint8_t *)(pf_recv_slot(ep, k, m) + size - 1);
	struct pf_idle idle = { 0 };
	int rc = 0;

	while (!rc && atomic_load_explicit(flag, memory_order_acquire) != flag_of(ep, m)) {
		VipxProgress(ep->nic);
		rc = pf_idle(ep, &idle);
	}
	return rc;
}

static int post(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size)
{
	uint8_t *slot = pf_send_slot(ep, k, m);

	if (ep->p.verify && ep->p.op != PF_READ)
		pf_fill(slot, size, k, m);
	if (ep->p.op == PF_WRITE)
		slot[size - 1] = flag_of(ep, m);
	return pf_post_message(ep, k, m, size);
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

static int client_step(struct pf_run *run, uint32_t k, uint64_t m, uint32_t size)
{
	struct pf_ep *ep = &run->ep;
	VIP_DESCRIPTOR *d = NULL;
	int64_t start = pf_now(), end;
	int rc = post(ep, k, m, size);

	if (!rc)
		rc = ep->p.op == PF_READ ? pf_reap(ep, k, 0) : await(ep, k, m, size, &d);
	end = pf_now();
	if (rc)
		return rc;
	run->elapsed_ns += end - start;
	rc = pf_hist_add(&run->hist, (uint64_t)(end - start));
	if (!rc)
		rc = check(ep, k, m, size, d);
	if (!rc && d)
		rc = pf_repost(ep, k, d);
	return rc ? rc : pf_reap(ep, k, 0);
}

static int lat_client(struct pf_run *run, const struct pf_batch *b)
{
	uint64_t i;
	int rc = 0;

	for (i = 0; !rc && i < b->count; i++)
		rc = client_step(run, (uint32_t)(i % run->ep.vi_count), b->first + i, b->size);
	return rc;
}

static int server_step(struct pf_ep *ep, uint32_t k, uint64_t m, uint32_t size)
{
	VIP_DESCRIPTOR *d;
	int rc = await(ep, k, m, size, &d);

	if (!rc)
		rc = check(ep, k, m, size, d);
	if (!rc)
		rc = post(ep, k, m, size);
	return rc || !d ? rc : pf_repost(ep, k, d);
}

static int lat_server(struct pf_run *run, const struct pf_batch *b)
{
	struct pf_ep *ep = &run->ep;
	uint64_t i;
	uint32_t k;
	int rc = 0;

	if (ep->p.op == PF_READ)
		return 0;
	for (i = 0; !rc && i < b->count; i++)
		rc = server_step(ep, (uint32_t)(i % ep->vi_count), b->first + i, b->size);
	for (k = 0; !rc && k < ep->vi_count; k++)
		rc = pf_reap(ep, k, 0);
	return rc;
}

/* No slot may begin with the flag that its first message will bring. */
static void lat_prepare(struct pf_run *run, const struct pf_batch *b)
{
	struct pf_ep *ep = &run->ep;
	uint32_t k, m;

	pf_fill_source(run, b);
	if (ep->p.op != PF_WRITE)
		return;
	for (k = 0; k < ep->vi_count; k++) {
		for (m = 0; m < ep->recv_slots; m++)
			pf_recv_slot(ep, k, m)[b->size - 1] = flag_of(ep, b->first) ^ 0x80;
	}
}

static const struct pf_tool tool = {
	.name = "vi_lat",
	.kind = PF_LAT,
	.summary =
		"Measures the latency between two processes over a VI: half of the round trip of\n"
		"a message and its answer, as the OSU benchmarks do; of an RDMA read the whole.",
	.title = "Viaduct VI Latency Test",
	.column = "Latency (us)",
	.metric = "avg_us",
	.metric_help =
		"  avg_us min_us max_us stddev_us p50_us p99_us p99.9_us ... (any percentile)",
	.sizes = "1..1M",
	.window = 1,
	.prepare = lat_prepare,
	.client = lat_client,
	.server = lat_server,
};

int main(int argc, char **argv)
{
	return pf_main(&tool, argc, argv);
}
