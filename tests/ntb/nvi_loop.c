/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvi_loop.h"
#include "vi_many.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nvi_arm.h"
#include "nvi_break.h"
#include "nvi_conn.h"
#include "nvi_engine.h"
#include "nvi_fast.h"
#include "nvi_flush.h"
#include "nvi_given.h"
#include "nvi_mem.h"
#include "nvi_progress.h"
#include "nvi_provider.h"
#include "nvi_publish.h"
#include "nvi_resume.h"
#include "nvi_tx.h"
#include "nvi_window.h"
#include "port_emu.h"
#include "port_fault.h"
#include "u_membarrier.h"
#include "u_time.h"
#include "vi_post_hot.h"
#include "vi_take_hot.h"
#include "vi_wq_hot.h"

struct nvi_loop {
	struct vi_nic *nic;
	struct vi_vi *vi[2];
	uint8_t *inbound[2];
	size_t slice_len;
	uint32_t slots, payload_bytes;
	bool resumable;
	struct w_consumed consumed[2]; /* at the loss of the path */
};

/* The provider of these tests: channels without an agent. */
static struct port_emu_host *loop_host;
static struct port *loop_port;

static void init_memory(struct nvi_nic *nic)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&nic->mem_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&nic->mem_changed, &attr);
	pthread_condattr_destroy(&attr);
}

static int loop_nic_open(struct vi_nic *vi_nic, const char *device)
{
	struct nvi_nic *nic = aligned_alloc(U_LINE_PAIR, u_align_up(sizeof(*nic), U_LINE_PAIR));
	struct nvi_port *p = calloc(1, sizeof(*p));

	memset(nic, 0, sizeof(*nic));
	nic->vi_nic = vi_nic;
	pthread_mutex_init(&nic->ctl_lock, NULL);
	nvi_out_init(&nic->out);
	init_memory(nic);
	nic->irq = port_emu_host_irq(loop_host);
	nic->db_mask = 2;
	p->port = loop_port;
	atomic_store(&p->users, 1u);
	nic->ports[0] = p;
	vi_nic->prov = nic;
	vi_nic->attrs.NicAddressLen = W_HOST_ADDR_LEN;
	vi_nic->attrs.MaxDiscriminatorLen = W_DISC_MAX;
	vi_nic->attrs.ReliabilityLevelSupport = 7;
	vi_nic->attrs.RDMAReadSupport = 6;
	return 0;
}

static void loop_nic_close(struct vi_nic *vi_nic)
{
	struct nvi_nic *nic = vi_nic->prov;

	nvi_port_put(nic->ports[0]);
	nvi_out_fini(&nic->out);
	pthread_mutex_destroy(&nic->ctl_lock);
	pthread_mutex_destroy(&nic->mem_lock);
	pthread_cond_destroy(&nic->mem_changed);
	free(nic->chans);
	free(nic);
}

static int loop_vi_create(struct vi_vi *vi)
{
	vi->prov = nvi_chan_get(vi);
	return vi->prov != NULL ? 0 : -ENOMEM;
}

static int loop_disconnect(struct vi_vi *vi)
{
	nvi_chan_close(vi);
	return 0;
}

static void loop_sleep(struct vi_nic *nic, uint32_t ticket, int64_t deadline)
{
	nvi_progress(nic);
}

static void loop_wake(struct vi_nic *nic) {}

static const struct vi_provider_ops loop_ops = {
	.name = "loop",
	.nic_open = loop_nic_open,
	.nic_close = loop_nic_close,
	.vi_create = loop_vi_create,
	.disconnect = loop_disconnect,
	.window_free = nvi_window_free,
	.window_revoke = nvi_window_revoke,
	.progress = nvi_progress,
	.doorbell_rung = nvi_doorbell_rung,
	.arm = nvi_arm,
	.sleep = loop_sleep,
	.wake = loop_wake,
};

const struct vi_provider_ops *const vi_providers[] = { &loop_ops, NULL };

static int open_port(const struct nvi_loop_cfg *cfg)
{
	struct port_emu_cfg emu = { .name = "self" };
	struct port *plain;

	if (port_emu_host_create(&loop_host) != 0)
		return -1;
	if (port_emu_self_create(loop_host, &emu, &plain) != 0)
		return -1;
	return port_decorate(plain, cfg->port ? cfg->port : "emu", cfg->options ? cfg->options : "",
			     cfg->seed, &loop_port);
}

static int make_slices(struct nvi_loop *loop, struct port_slice slice[2], struct w_linked *linked)
{
	loop->slice_len = w_slice_bytes(loop->slots, loop->payload_bytes);
	for (int end = 0; end < 2; end++) {
		if (port_slice_alloc(loop_port, loop->slice_len, &slice[end]) != 0)
			return -1;
		loop->inbound[end] = mmap(NULL, loop->slice_len, PROT_READ | PROT_WRITE, MAP_SHARED,
					  slice[end].fd, 0);
	}
	memset(linked, 0, sizeof(*linked));
	linked->resumable = loop->resumable;
	linked->inbound = (struct w_geometry){ .slots = loop->slots,
					       .payload_bytes = loop->payload_bytes,
					       .db_bit = 1,
					       .slice_len = loop->slice_len };
	linked->outbound = linked->inbound;
	return 0;
}

/* Closes the slices, which the ends have mapped. */
static void leave_slices(const struct port_slice slice[2])
{
	for (int end = 0; end < 2; end++) {
		close(slice[end].fd);
		port_slice_free(loop_port, slice[end].id);
	}
}

static int connect_ends(struct nvi_loop *loop)
{
	struct port_slice slice[2];
	struct w_linked linked;

	if (make_slices(loop, slice, &linked) != 0)
		return -1;
	for (int end = 0; end < 2; end++) {
		vi_set_state(loop->vi[end], VIP_STATE_CONNECT_PENDING);
		if (nvi_chan_open(loop->nic->prov, loop->vi[end], &linked, dup(slice[end].fd),
				  dup(slice[!end].fd)) != 0)
			return -1;
	}
	leave_slices(slice);
	return 0;
}

int nvi_loop_lose_path(struct nvi_loop *loop)
{
	int err = 0;

	for (int end = 0; end < 2 && err == 0; end++) {
		struct nvi_chan *ch = loop->vi[end]->prov;

		err = nvi_chan_suspend(ch, ch->nic, ch->id.conn, &loop->consumed[end]);
	}
	return err;
}

int nvi_loop_resume(struct nvi_loop *loop)
{
	struct port_slice slice[2];
	struct w_linked linked;
	int err = 0;

	for (int end = 0; end < 2; end++)
		munmap(loop->inbound[end], loop->slice_len);
	if (make_slices(loop, slice, &linked) != 0)
		return -ENOSPC;
	for (int end = 0; end < 2 && err == 0; end++) {
		struct nvi_chan *ch = loop->vi[end]->prov;

		linked.conn = nvi_chan_conn(ch);
		linked.consumed = loop->consumed[!end];
		err = nvi_chan_resume(ch, ch->nic, &linked, dup(slice[end].fd),
				      dup(slice[!end].fd));
		nvi_given_forget(ch->nic, linked.conn);
	}
	leave_slices(slice);
	return err;
}

void nvi_loop_confirm(struct nvi_loop *loop)
{
	for (int end = 0; end < 2; end++) {
		struct nvi_chan *ch = loop->vi[end]->prov;

		/* The other thread of a test may end the connection meanwhile. */
		nvi_chan_confirmed(ch, ch->nic, nvi_chan_conn(ch));
	}
}

int nvi_loop_find_path(struct nvi_loop *loop)
{
	int err = nvi_loop_resume(loop);

	nvi_loop_confirm(loop);
	return err;
}

struct nvi_loop *nvi_loop_open(const struct nvi_loop_cfg *cfg)
{
	VIP_VI_ATTRIBUTES attrs = { .ReliabilityLevel = cfg->level,
				    .MaxTransferSize = cfg->max_transfer ? cfg->max_transfer
									 : 16u << 20,
				    .EnableRdmaWrite = VIP_TRUE,
				    .EnableRdmaRead = cfg->level != VIP_SERVICE_UNRELIABLE };
	struct nvi_loop *loop = calloc(1, sizeof(*loop));

	u_membarrier_register();
	if (open_port(cfg) != 0 || vi_nic_open("loop", &loop->nic) != 0)
		return NULL;
	for (int end = 0; end < 2; end++)
		if (vi_vi_create(loop->nic, &attrs, NULL, NULL, &loop->vi[end]) != 0)
			return NULL;
	loop->slots = cfg->slots;
	loop->payload_bytes = cfg->payload_bytes;
	loop->resumable = cfg->resumable;
	return connect_ends(loop) == 0 ? loop : NULL;
}

int nvi_loop_reconnect(struct nvi_loop *loop)
{
	for (int end = 0; end < 2; end++) {
		/* Descriptors that were posted to an Idle VI are not flushed. */
		if (nvi_loop_state(loop, end) != VIP_STATE_IDLE)
			nvi_chan_close(loop->vi[end]);
		munmap(loop->inbound[end], loop->slice_len);
	}
	return connect_ends(loop);
}

static void drain_queues(struct nvi_loop *loop, int end)
{
	VIP_DESCRIPTOR *d;

	while (nvi_loop_send_done(loop, end, &d) > 0 || nvi_loop_recv_done(loop, end, &d) > 0)
		;
}

void nvi_loop_close(struct nvi_loop *loop)
{
	for (int end = 0; end < 2; end++) {
		uint64_t id = atomic_load(&loop->vi[end]->id);

		nvi_chan_close(loop->vi[end]);
		drain_queues(loop, end);
		vi_vi_destroy(loop->vi[end], id);
		munmap(loop->inbound[end], loop->slice_len);
	}
	if (vi_nic_close(loop->nic, atomic_load(&loop->nic->id)) != 0)
		abort();
	port_emu_host_destroy(loop_host);
	free(loop);
}

struct vi_nic *nvi_loop_nic(struct nvi_loop *loop)
{
	return loop->nic;
}

struct vi_vi *nvi_loop_vi(struct nvi_loop *loop, int end)
{
	return loop->vi[end];
}

void nvi_loop_set_demotes(struct nvi_loop *loop, int end, int demotes)
{
	struct nvi_chan *ch = loop->vi[end]->prov;

	ch->demotes = demotes != 0;
}

void nvi_loop_set_prefetches(struct nvi_loop *loop, int end, int prefetches)
{
	struct nvi_chan *ch = loop->vi[end]->prov;

	ch->prefetches = prefetches != 0;
}

uint8_t *nvi_loop_inbound(struct nvi_loop *loop, int end, uint64_t *len_out)
{
	*len_out = loop->slice_len;
	return loop->inbound[end];
}

int nvi_loop_progress(struct nvi_loop *loop, int end)
{
	return nvi_progress_chan(loop->vi[end]->prov, true);
}

int nvi_loop_settle(struct nvi_loop *loop, int limit)
{
	int rounds = 0;

	while (rounds < limit && (nvi_loop_progress(loop, 0) | nvi_loop_progress(loop, 1)) != 0)
		rounds++;
	return rounds;
}

VIP_MEM_HANDLE nvi_loop_register(struct nvi_loop *loop, void *addr, uint64_t len)
{
	VIP_MEM_ATTRIBUTES attrs = { .EnableRdmaWrite = VIP_TRUE, .EnableRdmaRead = VIP_TRUE };
	VIP_MEM_HANDLE handle = 0;

	if (vi_mem_register(loop->nic, addr, len, &attrs, NULL, &handle) != 0)
		return 0;
	return handle;
}

void nvi_loop_deregister(struct nvi_loop *loop, void *addr, VIP_MEM_HANDLE handle)
{
	if (vi_mem_deregister(loop->nic, addr, handle, NULL) != 0)
		abort();
}

void nvi_loop_drain_ms(struct nvi_loop *loop, uint32_t ms)
{
	struct nvi_nic *nic = loop->nic->prov;

	nic->drain_ms = ms;
}

int nvi_loop_drains(struct nvi_loop *loop, int end)
{
	return loop->vi[end]->fast == &nvi_fast_closing;
}

int nvi_loop_post_send(struct nvi_loop *loop, int end, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE h)
{
	return vi_post_send(loop->vi[end], atomic_load(&loop->vi[end]->id), d, h);
}

int nvi_loop_post_recv(struct nvi_loop *loop, int end, VIP_DESCRIPTOR *d, VIP_MEM_HANDLE h)
{
	return vi_post_recv(loop->vi[end], atomic_load(&loop->vi[end]->id), d, h);
}

int nvi_loop_post_sends(struct nvi_loop *loop, int end, VIP_DESCRIPTOR *const *descs,
			uint64_t count, VIP_MEM_HANDLE h, uint64_t *posted_out)
{
	return vi_post_sends(loop->vi[end], atomic_load(&loop->vi[end]->id), descs, count, h,
			     posted_out);
}

static int pop(struct vi_wq *wq, struct u_biased *lock, VIP_DESCRIPTOR **d_out)
{
	int got;

	u_biased_take(lock);
	got = vi_wq_pop(wq, d_out);
	u_biased_drop(lock);
	return got;
}

int nvi_loop_send_done(struct nvi_loop *loop, int end, VIP_DESCRIPTOR **d_out)
{
	return pop(&loop->vi[end]->sq, &loop->vi[end]->tx_lock, d_out);
}

int nvi_loop_recv_done(struct nvi_loop *loop, int end, VIP_DESCRIPTOR **d_out)
{
	return pop(&loop->vi[end]->rq, &loop->vi[end]->rx_lock, d_out);
}

int nvi_loop_poll_recv(struct nvi_loop *loop, int end, VIP_DESCRIPTOR **d_out)
{
	return vi_recv_done(loop->vi[end], atomic_load(&loop->vi[end]->id), d_out);
}

void nvi_loop_receive(struct nvi_loop *loop, int end)
{
	struct vi_vi *vi = loop->vi[end];

	u_biased_take(&vi->rx_lock);
	while (nvi_poll_recv(vi) & VI_POLL_MOVED)
		;
	u_biased_drop(&vi->rx_lock);
}

void nvi_loop_send(struct nvi_loop *loop, int end)
{
	nvi_tx_progress(loop->vi[end]->prov);
}

int nvi_loop_answers(struct nvi_loop *loop, int end)
{
	return nvi_answers_left(loop->vi[end]->prov);
}

int nvi_loop_waits(struct nvi_loop *loop, int end)
{
	struct nvi_chan *ch = loop->vi[end]->prov;

	return atomic_load(&ch->tx.waiting) != 0;
}

int nvi_loop_take_recvs(struct nvi_loop *loop, int end, VIP_DESCRIPTOR **descs, uint64_t max)
{
	uint64_t count = 0;
	int got = vi_recvs_done(loop->vi[end], atomic_load(&loop->vi[end]->id), descs, max, &count);

	return got < 0 ? got : (int)count;
}

VIP_VI_STATE nvi_loop_state(struct nvi_loop *loop, int end)
{
	return (VIP_VI_STATE)vi_state(loop->vi[end]);
}

void nvi_loop_counters(struct nvi_loop *loop, int end, VIPX_COUNTERS *out)
{
	vi_nic_counters(loop->nic, loop->vi[end], out);
}

int nvi_loop_on_error(struct nvi_loop *loop, VIP_ERROR_HANDLER handler, void *context)
{
	return vi_event_handler(loop->nic, handler, context);
}

void nvi_loop_raise(struct nvi_loop *loop)
{
	vi_event_raise(loop->nic, NULL, VIP_RESOURCE_NIC, VIP_ERROR_CATASTROPHIC);
}

void nvi_loop_lose(struct nvi_loop *loop, int end)
{
	struct nvi_chan *ch = loop->vi[end]->prov;

	nvi_chan_lost(ch, ch->nic, ch->id.conn, W_LOST_LINK);
}

void nvi_loop_link(struct nvi_loop *loop, int up)
{
	port_fault_link(loop_port, up ? PORT_LINK_UP : PORT_LINK_DOWN);
}

/* ---- looking at every slot -------------------------------------------------------------------- */

static struct {
	const struct nvi_chan *ch;
	void (*fn)(void *);
	void *arg;
} publish_hook;

static void hooked_store(const struct u_out *out, void *dst, const void *src, size_t n)
{
	const struct nvi_chan *ch = publish_hook.ch;
	uint32_t v;

	if (n != sizeof(v)) {
		memcpy(dst, src, n);
		return;
	}
	memcpy(&v, src, n);
	atomic_store_explicit((_Atomic uint32_t *)dst, v, memory_order_release);
	if ((const uint8_t *)dst >= (const uint8_t *)ch->out_slots &&
	    (const uint8_t *)dst < ch->out_payload)
		publish_hook.fn(publish_hook.arg);
}

static void hooked_fence(const struct u_out *out)
{
	atomic_thread_fence(memory_order_seq_cst);
}

void nvi_loop_on_publish(struct nvi_loop *loop, int end, void (*fn)(void *), void *arg)
{
	static const struct u_out_ops ops = { .store = hooked_store, .fence = hooked_fence };
	struct nvi_chan *ch = loop->vi[end]->prov;

	publish_hook.ch = ch;
	publish_hook.fn = fn;
	publish_hook.arg = arg;
	ch->out.ops = &ops;
}

int64_t nvi_loop_reads_consumed(struct nvi_loop *loop, int end)
{
	const struct vi_vi *vi = loop->vi[end];
	const struct nvi_chan *ch = vi->prov;

	if (__atomic_load_n(&vi->counters.ProtocolErrors, __ATOMIC_RELAXED) != 0)
		return -1;
	return atomic_load_explicit(&ch->answers.tail, memory_order_acquire);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

uint32_t nvi_loop_arm(struct nvi_loop *loop)
{
	return nvi_arm(loop->nic);
}

int nvi_loop_scan(struct nvi_loop *loop)
{
	return nvi_scan(loop->vi[0]->nic->prov, true);
}

void nvi_loop_flush(struct nvi_loop *loop)
{
	for (int end = 0; end < 2; end++) {
		struct nvi_chan *ch = loop->vi[end]->prov;

		port_flush(ch->port);
	}
}

void nvi_loop_count_from(struct nvi_loop *loop, uint32_t n)
{
	for (int end = 0; end < 2; end++) {
		struct nvi_chan *ch = loop->vi[end]->prov, *peer = loop->vi[1 - end]->prov;

		for (uint32_t at = 0; at != n;) {
			at += n - at < 1u << 30 ? n - at : 1u << 30;
			ch->tx.seq = at;
			nvi_tx_take_credit(ch, at);
		}
		atomic_store(&ch->in_ctl->credit, n);
		atomic_store(&peer->rx.seq, n);
		peer->rx.credited = n;
		peer->rx.returned = n;
		peer->rx.due = n + peer->in_mask / 4 + 1;
	}
}

void nvi_loop_payload_from(struct nvi_loop *loop, uint64_t cursor)
{
	for (int end = 0; end < 2; end++) {
		struct nvi_chan *ch = loop->vi[end]->prov;

		ch->tx.cursor = ch->tx.consumed = ch->tx.freed = ch->tx.turn = cursor;
		ch->rx.cursor = ch->rx.cursor_credited = cursor;
	}
}

int nvi_loop_flush_sends(struct nvi_loop *loop, int end, int64_t ns)
{
	return nvi_flush(loop->vi[end], u_now_ns() + ns);
}

int nvi_loop_drained(struct nvi_loop *loop, int end)
{
	struct nvi_chan *ch = loop->vi[end]->prov;
	int drained;

	u_biased_take(&loop->vi[end]->tx_lock);
	drained = nvi_tx_consumed(ch, ch->tx.seq);
	u_biased_drop(&loop->vi[end]->tx_lock);
	return drained;
}

void nvi_loop_enter(struct nvi_loop *loop, int end)
{
	u_biased_take(&loop->vi[end]->tx_lock);
}

void nvi_loop_leave(struct nvi_loop *loop, int end)
{
	u_biased_drop(&loop->vi[end]->tx_lock);
}

void nvi_loop_tick(struct nvi_loop *loop)
{
	nvi_arm_polled(loop->nic->prov, NVI_ARM_IDLE);
}

void nvi_loop_busy_tick(struct nvi_loop *loop)
{
	nvi_stop_fences(loop->nic->prov);
}

void nvi_loop_wake(struct nvi_loop *loop)
{
	nvi_provider.wake(loop->nic);
}

int nvi_loop_overslept(struct nvi_loop *loop, uint32_t ticket, int64_t ns)
{
	int64_t deadline = u_now_ns() + ns;

	nvi_sleep(loop->nic, ticket, deadline);
	return u_now_ns() >= deadline;
}

uint32_t nvi_loop_sleepers(struct nvi_loop *loop)
{
	const struct nvi_nic *nic = loop->nic->prov;

	return atomic_load(&nic->sleepers);
}

uint64_t nvi_loop_rung(struct nvi_loop *loop)
{
	const struct nvi_nic *nic = loop->nic->prov;

	return atomic_load(&nic->rung);
}

uint32_t nvi_loop_polled(struct nvi_loop *loop)
{
	const struct nvi_nic *nic = loop->nic->prov;

	return atomic_load(&nic->polled);
}
