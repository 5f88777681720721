/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "st.h"
#include "u_time.h"
#include "vipl.h"
#include "vipl_ext.h"

#define RECVS 4u
#define WARM_ROUNDS 2000u
#define RING_ROOM (1u << 18)
#define POLLS_BEFORE_YIELD 2000u
#define STAMP_SAMPLES 1000u
#define CLOCK_NS 20000000

struct side {
	const struct st_config *cfg;
	struct st_shared *sh;
	int number;
	VIP_NIC_HANDLE nic;
	VIP_VI_HANDLE vi;
	VIP_MEM_HANDLE handle;
	VIP_DESCRIPTOR *desc; /* one to send, RECVS to receive; then their data */
	uint8_t *data;
	uint32_t next_recv;
	uint32_t meetings;
	struct u_trace_ring ring;
	uint32_t mark[ST_ROUNDS]; /* stamps of the ring when message i was taken */
};

int st_fail(struct st_shared *sh, int side, const char *fmt, ...)
{
	uint32_t nobody = 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sh->cause[side], sizeof(sh->cause[side]), fmt, ap);
	va_end(ap);
	atomic_compare_exchange_strong(&sh->blamed, &nobody, 1 + (uint32_t)side);
	atomic_store(&sh->failed, true);
	return -EIO;
}

static int check(struct side *s, VIP_RETURN rc, const char *what)
{
	return rc == VIP_SUCCESS ? 0
				 : st_fail(s->sh, s->number, "%s: %s", what, VipxErrorString(rc));
}

/* ---- waiting ---- */

struct patience {
	uint32_t polls;
	int64_t end;
};

/* After an empty poll.  0, or an error when the other side failed or is silent. */
static int again(struct side *s, struct patience *p, const char *what)
{
	u_pause();
	if (++p->polls % POLLS_BEFORE_YIELD)
		return 0;
	if (atomic_load(&s->sh->failed))
		return -EIO;
	if (!p->end)
		p->end = u_now_ns() + (int64_t)(s->cfg->timeout * 1e9);
	if (u_now_ns() > p->end)
		return st_fail(s->sh, s->number, "%s: nothing for %g s", what, s->cfg->timeout);
	sched_yield();
	return 0;
}

/* A barrier: waits until both sides have called it. */
static int meet(struct side *s)
{
	struct patience p = { 0 };
	int rc = 0;

	atomic_store_explicit(&s->sh->arrived[s->number], ++s->meetings, memory_order_release);
	while (!rc && atomic_load_explicit(&s->sh->arrived[1 - s->number], memory_order_acquire) <
			      s->meetings)
		rc = again(s, &p, "waiting for the other process");
	return rc;
}

/* ---- the VI ---- */

union address {
	VIP_NET_ADDRESS addr;
	char bytes[64];
};

/* Does nothing: descriptors report errors, and after the last one the other side may end. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *e)
{
	(void)context;
	(void)e;
}

/* An unknown name opens the default NIC, so this checks that its host is the right one. */
static int check_host(struct side *s, const char *host, const VIP_NIC_ATTRIBUTES *attrs)
{
	union address a = { .bytes = { 0 } };
	VIP_RETURN rc = VipNSInit(s->nic, NULL);

	if (rc == VIP_SUCCESS)
		rc = VipNSGetHostByName(s->nic, (VIP_CHAR *)host, &a.addr, 0);
	if (rc == VIP_SUCCESS &&
	    !memcmp(a.addr.HostAddress, attrs->LocalNicAddress, attrs->NicAddressLen))
		return 0;
	return st_fail(s->sh, s->number,
		       "no NIC of host '%.63s' on this machine; vi_info -l lists the hosts", host);
}

static int open_nic(struct side *s, VIP_NIC_ATTRIBUTES *attrs)
{
	const char *host = s->cfg->hosts[s->number];
	VIP_RETURN rc = VipOpenNic(host ? host : "nic0", &s->nic);

	if (rc != VIP_SUCCESS)
		return st_fail(s->sh, s->number, "opening the NIC of %s: %s; see vi_info",
			       host ? host : "the default host", VipxErrorString(rc));
	rc = VipErrorCallback(s->nic, NULL, on_error);
	if (rc == VIP_SUCCESS)
		rc = VipQueryNic(s->nic, attrs);
	if (rc != VIP_SUCCESS)
		return check(s, rc, "preparing the NIC");
	return host ? check_host(s, host, attrs) : 0;
}

static int tell_address(struct side *s, const VIP_NIC_ATTRIBUTES *attrs)
{
	union address a = { .bytes = { 0 } };
	char name[24];
	int len = snprintf(name, sizeof(name), "stages.%x.%d", s->sh->id, s->number);

	a.addr.HostAddressLen = attrs->NicAddressLen;
	a.addr.DiscriminatorLen = (VIP_UINT16)len;
	memcpy(a.addr.HostAddress, attrs->LocalNicAddress, attrs->NicAddressLen);
	memcpy(a.addr.HostAddress + attrs->NicAddressLen, name, (size_t)len);
	memcpy(s->sh->address[s->number].bytes, a.bytes, sizeof(a.bytes));
	return meet(s);
}

static int connect_vi(struct side *s)
{
	VIP_VI_ATTRIBUTES attrs = { .ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
				    .MaxTransferSize = s->cfg->size };
	union address mine, other;
	int rc;

	memcpy(mine.bytes, s->sh->address[s->number].bytes, sizeof(mine.bytes));
	memcpy(other.bytes, s->sh->address[1 - s->number].bytes, sizeof(other.bytes));
	rc = check(s, VipCreateVi(s->nic, &attrs, NULL, NULL, &s->vi), "VipCreateVi");
	if (!rc)
		rc = check(s,
			   VipConnectPeerRequest(s->vi, &mine.addr, &other.addr,
						 (VIP_ULONG)(s->cfg->timeout * 1000)),
			   "VipConnectPeerRequest");
	if (!rc)
		rc = check(s, VipConnectPeerWait(s->vi, &attrs), "VipConnectPeerWait");
	return rc;
}

static void fill(struct side *s, uint32_t i)
{
	VIP_DESCRIPTOR *d = &s->desc[i];

	memset(d, 0, sizeof(*d));
	d->CS.Control = VIP_CONTROL_OP_SENDRECV;
	d->CS.SegCount = 1;
	d->CS.Length = d->DS[0].Local.Length = s->cfg->size;
	d->DS[0].Local.Data.Address = s->data + (size_t)i * s->cfg->size;
	d->DS[0].Local.Handle = s->handle;
}

static int post_recv(struct side *s)
{
	uint32_t i = 1 + s->next_recv++ % RECVS;

	fill(s, i);
	return check(s, VipPostRecv(s->vi, &s->desc[i], s->handle), "VipPostRecv");
}

static int set_memory(struct side *s)
{
	size_t descs = (1 + RECVS) * sizeof(*s->desc);
	size_t len = descs + (size_t)(1 + RECVS) * s->cfg->size;
	int rc;

	len = (len + 4095) & ~(size_t)4095;
	s->desc = aligned_alloc(4096, len);
	s->ring.at = calloc(RING_ROOM, sizeof(*s->ring.at));
	if (!s->desc || !s->ring.at)
		return st_fail(s->sh, s->number, "out of memory");
	memset(s->desc, 1, len);
	s->data = (uint8_t *)s->desc + descs;
	s->ring.room = RING_ROOM;
	s->ring.tsc = s->cfg->tsc;
	rc = check(s, VipRegisterMem(s->nic, s->desc, len, NULL, &s->handle), "VipRegisterMem");
	while (!rc && s->next_recv < RECVS)
		rc = post_recv(s);
	return rc;
}

static int set_up(struct side *s)
{
	VIP_NIC_ATTRIBUTES attrs;
	int rc = open_nic(s, &attrs);

	if (!rc)
		rc = tell_address(s, &attrs);
	if (!rc)
		rc = connect_vi(s);
	if (!rc)
		rc = set_memory(s);
	return rc ? rc : meet(s);
}

/* The end of the process would suffice, but an orderly end leaves no warnings. */
static void take_down(struct side *s)
{
	VIP_DESCRIPTOR *d;

	u_trace_ring = NULL;
	if (s->vi) {
		VipDisconnect(s->vi);
		while (VipRecvDone(s->vi, &d) != VIP_NOT_DONE && d)
			;
		while (VipSendDone(s->vi, &d) != VIP_NOT_DONE && d)
			;
		VipDestroyVi(s->vi);
	}
	if (s->handle)
		VipDeregisterMem(s->nic, s->desc, s->handle);
	if (s->nic)
		VipCloseNic(s->nic);
	free(s->desc);
	free(s->ring.at);
}

/* ---- the ping-pong ---- */

static int take(struct side *s, VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR **),
		const char *what)
{
	struct patience p = { 0 };
	VIP_DESCRIPTOR *d;
	VIP_RETURN code;
	int rc = 0;

	while ((code = done(s->vi, &d)) == VIP_NOT_DONE && !rc)
		rc = again(s, &p, what);
	return rc ? rc : check(s, code, what);
}

static int say(struct side *s)
{
	fill(s, 0);
	return check(s, VipPostSend(s->vi, &s->desc[0], s->handle), "VipPostSend");
}

static int hear(struct side *s, uint32_t round)
{
	int rc = take(s, VipRecvDone, "VipRecvDone");

	s->mark[round % ST_ROUNDS] = s->ring.count;
	return rc;
}

/* Does not delay the message, which the other side handles now. */
static int tidy(struct side *s)
{
	int rc = post_recv(s);

	return rc ? rc : take(s, VipSendDone, "VipSendDone");
}

static int play(struct side *s, uint32_t rounds)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < rounds; i++) {
		rc = s->number == 0 ? say(s) : hear(s, i);
		if (!rc && s->number == 0)
			rc = hear(s, i);
		else if (!rc)
			rc = say(s);
		if (!rc)
			rc = tidy(s);
	}
	return rc;
}

/* ---- stamps ---- */

/* Side 0 answers in the next segment, side 1 in this one: reaping a message ends a segment. */
static void match_own(struct side *s)
{
	struct st_message *mine = s->sh->message[s->number],
			  *others = s->sh->message[1 - s->number];
	uint32_t i, from = 0;

	memset(s->sh->turned, 0, s->number ? sizeof(s->sh->turned) : 0);
	for (i = 0; i < ST_ROUNDS; i++) {
		struct st_message *sent = s->number == 0 ? &mine[i] : i > 0 ? &mine[i - 1] : NULL;

		st_match(&s->ring, from, s->mark[i], sent, &others[i]);
		from = s->mark[i];
	}
	if (s->number == 0)
		return;
	st_match(&s->ring, from, s->ring.count, &mine[ST_ROUNDS - 1], NULL);
	for (i = 0; i < ST_ROUNDS; i++) {
		if (others[i].at[ST_TAKEN] && mine[i].at[ST_POSTED])
			s->sh->turned[i] = mine[i].at[ST_POSTED] - others[i].at[ST_TAKEN];
	}
}

/* By side 0, when both have matched their stamps. */
static void gather(struct side *s, struct st_result *res)
{
	uint32_t i;

	for (i = ST_SKIPPED; i < ST_ROUNDS; i++) {
		st_result_add(res, &s->sh->message[0][i]);
		st_result_add(res, &s->sh->message[1][i]);
		if (s->sh->turned[i])
			st_series_add(&res->stage[ST_TURN], (double)s->sh->turned[i]);
	}
	memset(s->sh->message, 0, sizeof(s->sh->message));
}

static int timed(struct side *s, bool stamps, double *half_out)
{
	int rc = meet(s);
	int64_t start;

	s->ring.count = 0;
	u_trace_ring = stamps ? &s->ring : NULL;
	start = u_now_ns();
	if (!rc)
		rc = play(s, ST_ROUNDS);
	*half_out = (double)(u_now_ns() - start) / (2.0 * ST_ROUNDS);
	u_trace_ring = NULL;
	return rc;
}

/* Two batches, one with stamps, one without: the difference is the cost of the stamps. */
static int batch(struct side *s, struct st_result *res)
{
	double stamped, bare;
	int rc = timed(s, true, &stamped);

	if (!rc)
		match_own(s);
	if (!rc)
		rc = timed(s, false, &bare);
	if (!rc && s->number == 0) {
		gather(s, res);
		st_series_add(&res->stamped, stamped);
		st_series_add(&res->bare, bare);
	}
	return rc ? rc : meet(s);
}

/* From one stamp to the next when there is nothing in between. */
static double stamp_ticks(struct side *s)
{
	double took[STAMP_SAMPLES];
	struct st_series series = { took, 0 };
	uint32_t i;

	s->ring.count = 0;
	u_trace_ring = &s->ring;
	for (i = 0; i <= STAMP_SAMPLES; i++)
		U_TRACE(post_entered, s, s);
	u_trace_ring = NULL;
	for (i = 0; i < STAMP_SAMPLES; i++)
		st_series_add(&series, (double)(s->ring.at[i + 1].time - s->ring.at[i].time));
	return st_series_at(&series, 50);
}

static void measure_clock(struct side *s, struct st_result *res, uint64_t ticks, int64_t ns)
{
	int64_t now;

	do
		now = u_now_ns();
	while (now - ns < CLOCK_NS);
	res->ns_per_tick = s->cfg->tsc ? (double)(now - ns) / (double)(u_trace_now(true) - ticks)
				       : 1;
	res->stamp_ns = stamp_ticks(s) * res->ns_per_tick;
}

static int measure(struct side *s, struct st_result *res)
{
	int64_t ns = u_now_ns();
	uint64_t ticks = u_trace_now(s->cfg->tsc);
	uint32_t i;
	int rc = play(s, WARM_ROUNDS);

	for (i = 0; !rc && i < s->cfg->batches; i++)
		rc = batch(s, res);
	if (!rc && s->number == 0)
		measure_clock(s, res, ticks, ns);
	return rc;
}

static int pin(struct side *s)
{
	cpu_set_t set;

	if (!s->cfg->pin)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(s->cfg->cpu[s->number], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return st_fail(s->sh, s->number, "--pin %d: %s", s->cfg->cpu[s->number],
			       strerror(errno));
	return 0;
}

int st_side_run(const struct st_config *cfg, struct st_shared *sh, int side, struct st_result *res)
{
	struct side s = { .cfg = cfg, .sh = sh, .number = side };
	int rc = pin(&s);

	if (!rc)
		rc = set_up(&s);
	if (!rc)
		rc = measure(&s, res);
	/* A side that ended first could take the other's last message with it. */
	if (!rc)
		rc = meet(&s);
	take_down(&s);
	return rc;
}
