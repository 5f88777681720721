/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "rp.h"

#define MIB (UINT64_C(1) << 20)
#define RECEIVES 8u   /* posted at either end of a round trip */
#define TRIPS 200u    /* timed together, after twice as many for warming up */
#define TRIPS_FEW 10u /* timed together where relays share a processor: a trip may take 10 ms */
#define TRIP_BATCHES 15u
#define POLLS 4096u /* between checks of the clock */
#define WINDOW_MAX 64u
#define PAGE 4096u
#define APART 128u /* distance of memory that different threads write */

static struct rv_host hosts[RP_HOPS_MAX + 1];
static unsigned int next_number = 1;

int rp_open(const struct rp_config *cfg)
{
	for (unsigned int i = 0; i <= cfg->hops; i++) {
		if (rp_pin(cfg->cpu[i == 1]) != 0 || rv_host_open(&hosts[i], i) != 0)
			return -1;
	}
	return rp_pin(cfg->cpu[0]);
}

void rp_close(void)
{
	for (unsigned int i = 0; i <= RP_HOPS_MAX; i++)
		rv_host_close(&hosts[i]);
}

static int path_open(struct rv_path *w, unsigned int hops, uint64_t bytes)
{
	return rv_path_open(w, &hosts[0], &hosts[hops], next_number++, bytes, 1,
			    VIP_SERVICE_RELIABLE_DELIVERY);
}

/* ---- completions ---- */

static int bad(const char *what, VIP_RETURN rc, const VIP_DESCRIPTOR *d)
{
	char text[192] = "";

	if (d != NULL)
		VipxStatusString(d->CS.Status, text, sizeof(text));
	ring_print_error("%s: %s %s", what, VipxErrorString(rc), text);
	return -1;
}

typedef VIP_RETURN (*done_fn)(VIP_VI_HANDLE vi, VIP_DESCRIPTOR **d);

/* 1 and the descriptor, 0 when there is none yet, -1 after printing the reason. */
static int take(done_fn done, VIP_VI_HANDLE vi, VIP_DESCRIPTOR **out)
{
	VIP_RETURN rc;

	*out = NULL;
	rc = done(vi, out);
	if (rc == VIP_SUCCESS)
		return 1;
	return rc == VIP_NOT_DONE ? 0 : bad("a completion", rc, *out);
}

static int await(done_fn done, VIP_VI_HANDLE vi, VIP_DESCRIPTOR **out)
{
	int64_t deadline = 0;
	unsigned int polls = 0;
	int rc;

	while ((rc = take(done, vi, out)) == 0) {
		if (++polls % POLLS != 0)
			continue;
		if (deadline == 0)
			deadline = rv_now() + RP_PATIENCE_NS;
		if (rv_now() > deadline) {
			ring_print_error("a message did not come");
			return -1;
		}
	}
	return rc < 0 ? -1 : 0;
}

/* ---- to and fro ---- */

struct end {
	_Alignas(APART) VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE handle;
	uint8_t *page; /* descriptors, the send's first, then its data and the received data */
	VIP_DESCRIPTOR *taken;
};

#define DATA 1024u /* in the page: 128 bytes for the send and each receive */

static VIP_DESCRIPTOR *desc_of(const struct end *e, unsigned int i)
{
	return (VIP_DESCRIPTOR *)(void *)(e->page + i * sizeof(VIP_DESCRIPTOR));
}

static void desc_fill(const struct end *e, unsigned int i, uint32_t bytes)
{
	VIP_DESCRIPTOR *d = desc_of(e, i);

	memset(d, 0, sizeof(*d));
	d->CS.SegCount = 1;
	d->CS.Length = d->DS[0].Local.Length = bytes;
	d->DS[0].Local.Data.Address = e->page + DATA + 128 * i;
	d->DS[0].Local.Handle = e->handle;
}

static int end_open(struct end *e, VIP_VI_HANDLE vi, uint8_t *page, VIP_MEM_HANDLE handle)
{
	*e = (struct end){ .vi = vi, .handle = handle, .page = page };
	for (unsigned int i = 1; i <= RECEIVES; i++) {
		VIP_RETURN rc;

		desc_fill(e, i, 128);
		rc = VipPostRecv(vi, desc_of(e, i), handle);
		if (rc != VIP_SUCCESS)
			return bad("posting a receive", rc, NULL);
	}
	return 0;
}

static int end_send(struct end *e)
{
	VIP_RETURN rc = VipPostSend(e->vi, desc_of(e, 0), e->handle);

	return rc == VIP_SUCCESS ? 0 : bad("posting a send", rc, NULL);
}

static int end_receive(struct end *e)
{
	return await(VipRecvDone, e->vi, &e->taken);
}

/* While the message is under way: posts the receive again and reaps the send. */
static int end_settle(struct end *e)
{
	VIP_DESCRIPTOR *sent;
	VIP_RETURN rc;

	e->taken->CS.Length = 128;
	rc = VipPostRecv(e->vi, e->taken, e->handle);
	if (rc != VIP_SUCCESS)
		return bad("posting a receive", rc, NULL);
	return await(VipSendDone, e->vi, &sent);
}

static int end_answer(struct end *e)
{
	if (end_receive(e) != 0 || end_send(e) != 0)
		return -1;
	return end_settle(e);
}

struct trips {
	struct end near, far;
	bool apart;	    /* the helper is the far end, else the leader is both */
	unsigned int count; /* of a batch */
	uint32_t bytes;
};

static int echo(void *arg)
{
	struct trips *t = arg;

	for (unsigned int i = 0; i < t->count * (TRIP_BATCHES + 2); i++) {
		if (end_answer(&t->far) != 0)
			return -1;
	}
	return 0;
}

/* n round trips: the answer of this end is the send of the next one. */
static int trips(struct trips *t, unsigned int n)
{
	while (n-- > 0) {
		if (!t->apart && end_answer(&t->far) != 0)
			return -1;
		if (end_answer(&t->near) != 0)
			return -1;
	}
	return 0;
}

static int trips_timed(struct trips *t, double *out)
{
	double took[TRIP_BATCHES];

	if (trips(t, 2 * t->count) != 0)
		return -1;
	for (unsigned int i = 0; i < TRIP_BATCHES; i++) {
		int64_t began = rv_now();

		/* The last answer is not answered: the first send was not an answer either. */
		if (trips(t, i + 1 < TRIP_BATCHES ? t->count : t->count - 1) != 0)
			return -1;
		took[i] = (double)(rv_now() - began) / (2.0 * t->count);
	}
	*out = rp_median(took, TRIP_BATCHES - 1);
	return 0;
}

static int trips_end(struct trips *t)
{
	VIP_DESCRIPTOR *sent;

	if (!t->apart && end_answer(&t->far) != 0)
		return -1;
	if (end_receive(&t->near) != 0 || await(VipSendDone, t->near.vi, &sent) != 0)
		return -1;
	t->near.taken->CS.Length = 128;
	return VipPostRecv(t->near.vi, t->near.taken, t->near.handle) == VIP_SUCCESS ? 0 : -1;
}

/*
 * Times round trips of t->bytes.  *out: the median of half a trip in nanoseconds.  0, or -1 after
 * printing the reason.
 */
static int trips_size(struct trips *t, double *out)
{
	int rc;

	desc_fill(&t->near, 0, t->bytes);
	desc_fill(&t->far, 0, t->bytes);
	if (t->apart)
		rp_helper_run(0, echo, t);
	rc = end_send(&t->near);
	if (rc == 0)
		rc = trips_timed(t, out);
	if (rc == 0)
		rc = trips_end(t);
	if (t->apart && rp_helper_join(0) != 0)
		rc = -1;
	return rc;
}

int rp_trips(unsigned int hops, const uint64_t *bytes, unsigned int n, double *out)
{
	struct trips t = { .apart = hops == 1, .count = hops > 2 ? TRIPS_FEW : TRIPS };
	struct rv_path w;
	int rc = path_open(&w, hops, PAGE);

	if (rc == 0)
		rc = end_open(&t.near, w.out, w.data, w.data_handle);
	if (rc == 0)
		rc = end_open(&t.far, w.in, w.answer, w.answer_handle);
	for (unsigned int i = 0; i < n && rc == 0; i++) {
		t.bytes = (uint32_t)bytes[i];
		rc = trips_size(&t, &out[i]);
	}
	rv_path_close(&w);
	return rc;
}

/* ---- one way ---- */

struct flow {
	struct rv_path path;
	bool write;
	uint64_t bytes, total, posted, sent, came;
	unsigned int window;
	uint8_t *target;
	VIP_MEM_HANDLE target_handle;
	_Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR send[WINDOW_MAX];
	_Alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR receive[WINDOW_MAX];
	VIP_MEM_HANDLE descs[2];
};

static void send_fill(struct flow *f, VIP_DESCRIPTOR *d)
{
	VIP_DATA_SEGMENT *data = &d->DS[f->write].Local;

	memset(d, 0, sizeof(*d));
	d->CS.Control = f->write ? VIP_CONTROL_OP_RDMAWRITE : VIP_CONTROL_OP_SENDRECV;
	d->CS.SegCount = 1 + f->write;
	d->CS.Length = data->Length = (VIP_UINT32)f->bytes;
	data->Data.Address = f->path.data;
	data->Handle = f->path.data_handle;
	if (f->write) {
		d->DS[0].Remote.Data.Address = f->target;
		d->DS[0].Remote.Handle = f->target_handle;
	}
}

static int receive_post(struct flow *f, VIP_DESCRIPTOR *d)
{
	VIP_RETURN rc;

	memset(d, 0, sizeof(*d));
	d->CS.SegCount = 1;
	d->CS.Length = d->DS[0].Local.Length = (VIP_UINT32)f->bytes;
	d->DS[0].Local.Data.Address = f->target;
	d->DS[0].Local.Handle = f->target_handle;
	rc = VipPostRecv(f->path.in, d, f->descs[1]);
	return rc == VIP_SUCCESS ? 0 : bad("posting a receive", rc, NULL);
}

static int flow_post(struct flow *f)
{
	VIP_DESCRIPTOR *d = &f->send[f->posted % f->window];
	VIP_RETURN rc;

	if (f->posted == f->total || f->posted - f->sent == f->window)
		return 0;
	send_fill(f, d);
	rc = VipPostSend(f->path.out, d, f->descs[0]);
	f->posted++;
	return rc == VIP_SUCCESS ? 0 : bad("posting a message", rc, NULL);
}

static int flow_sent(struct flow *f)
{
	VIP_DESCRIPTOR *d;
	int rc = f->sent < f->posted ? take(VipSendDone, f->path.out, &d) : 0;

	f->sent += rc > 0;
	return rc;
}

/* Consumes writes by polling for a message that never comes, as programs wait for the next. */
static int flow_came(struct flow *f)
{
	VIP_DESCRIPTOR *d;
	int rc = take(VipRecvDone, f->path.in, &d);

	f->came += rc > 0;
	return rc > 0 ? receive_post(f, d) : rc;
}

static int flow_step(struct flow *f)
{
	if (flow_post(f) < 0 || flow_came(f) < 0)
		return -1;
	return flow_sent(f) < 0 ? -1 : 0;
}

/* As in rp_raw.c: the median batch of a MiB, or of a message if that is longer. */
static int flow_timed(struct flow *f, double *out)
{
	uint64_t batch = f->bytes > MIB ? f->bytes : MIB, per = batch / f->bytes, next = per;
	unsigned int batches = f->bytes > MIB ? 8 : 32, n = 0, skip = batches / 4;
	int64_t at = rv_now(), deadline = at + RP_PATIENCE_NS, now;
	double took[RP_BATCHES_MAX];

	f->total = per * batches;
	while (f->sent < f->total || (!f->write && f->came < f->total)) {
		uint64_t done;

		if (flow_step(f) != 0)
			return -1;
		done = f->write ? f->sent : f->came;
		now = rv_now();
		if (now > deadline) {
			ring_print_error("messages did not come");
			return -1;
		}
		if (done < next)
			continue;
		/* Messages that complete in one poll share one time. */
		for (uint64_t many = (done - next) / per + 1, i = many; i > 0; i--) {
			took[n++] = (double)(now - at) / (double)many;
			next += per;
		}
		at = now;
	}
	*out = (double)batch / rp_median(took + skip, n - skip);
	return 0;
}

static VIP_RETURN make_known(struct rv_host *h, void *at, size_t bytes, bool target,
			     VIP_MEM_HANDLE *out)
{
	VIP_MEM_ATTRIBUTES attrs = { .EnableRdmaWrite = target };

	return VipRegisterMem(h->nic, at, bytes, &attrs, out);
}

static int flow_open(struct flow *f)
{
	VIP_RETURN rc;

	f->target = aligned_alloc(PAGE, f->bytes);
	if (f->target == NULL)
		return -1;
	memset(f->target, 0, f->bytes);
	rc = make_known(f->path.to, f->target, f->bytes, true, &f->target_handle);
	if (rc == VIP_SUCCESS)
		rc = make_known(f->path.from, f->send, sizeof(f->send), false, &f->descs[0]);
	if (rc == VIP_SUCCESS)
		rc = make_known(f->path.to, f->receive, sizeof(f->receive), false, &f->descs[1]);
	if (rc != VIP_SUCCESS)
		return bad("registering memory", rc, NULL);
	for (unsigned int i = 0; i < (f->write ? 1 : f->window); i++) {
		if (receive_post(f, &f->receive[i]) != 0)
			return -1;
	}
	return 0;
}

/* More than any payload buffer: batches that are complete at once do not show the rate. */
static unsigned int window_of(uint64_t bytes)
{
	return bytes > MIB ? 4 : (unsigned int)(4 * MIB / bytes);
}

int rp_flow(unsigned int hops, bool write, uint64_t bytes, double *out)
{
	struct flow *f = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);
	int rc = -1;

	if (f == NULL)
		return -1;
	memset(f, 0, sizeof(*f));
	f->write = write;
	f->bytes = bytes;
	f->window = window_of(bytes);
	if (path_open(&f->path, hops, bytes) == 0 && flow_open(f) == 0)
		rc = flow_timed(f, out);
	rv_path_close(&f->path);
	if (f->target_handle != 0)
		VipDeregisterMem(f->path.to->nic, f->target, f->target_handle);
	if (f->descs[0] != 0)
		VipDeregisterMem(f->path.from->nic, f->send, f->descs[0]);
	if (f->descs[1] != 0)
		VipDeregisterMem(f->path.to->nic, f->receive, f->descs[1]);
	free(f->target);
	free(f);
	return rc;
}
