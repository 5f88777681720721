/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "u_futex.h"
#include "u_time.h"
#include "vi_core.h"
#include "vi_provider.h"

const uint8_t fake_host[FAKE_HOSTS][6] = {
	{ 2, 0, 0, 0, 0, 0 },
	{ 2, 0, 0, 0, 0, 1 },
	{ 2, 0, 0, 0, 0, 2 },
	{ 2, 0, 0, 0, 0, 3 },
};
static const uint32_t host_hops[FAKE_HOSTS] = { 0, 2, 1, 1 };

struct window {
	void *addr;
	uint64_t len;
};

static struct {
	_Atomic uint32_t progress_calls, doorbells, arms, wakes, unrung, rejects, windows, posts;
	_Atomic uint32_t word; /* the futex of sleepers */
	_Atomic int connect_error;
	_Atomic bool watchable;
	struct u_lock lock; /* for the fields below */
	void (*on_progress_vi)(VIP_VI_HANDLE, void *);
	void *progress_vi_arg;
	void (*on_doorbell)(void *);
	void *doorbell_arg;
	void (*on_sleep)(void *);
	void *sleep_arg;
	bool offered;
	VIP_VI_ATTRIBUTES offer;
	uint8_t disc[64];
	uint16_t disc_len;
} fake;

static struct vi_vi *vi_of(VIP_VI_HANDLE handle)
{
	struct vi_vi *vi = u_idtab_get(vi_handle_id(handle), VI_TYPE_VI);

	if (vi == NULL)
		abort();
	return vi;
}

static struct vi_nic *nic_of(VIP_NIC_HANDLE handle)
{
	struct vi_nic *nic = u_idtab_get(vi_handle_id(handle), VI_TYPE_NIC);

	if (nic == NULL)
		abort();
	return nic;
}

static struct vi_wq *wq_of(struct vi_vi *vi, int is_recv)
{
	return is_recv ? &vi->rq : &vi->sq;
}

static struct u_biased *lock_of(struct vi_vi *vi, int is_recv)
{
	return is_recv ? &vi->rx_lock : &vi->tx_lock;
}

/* ---- the provider --------------------------------------------------------------------------- */

static int nic_open(struct vi_nic *nic, const char *device)
{
	if (strcmp(device, "fake") != 0)
		return -ENODEV;
	strcpy(nic->attrs.Name, "fake");
	memcpy(nic->address, fake_host[0], 6);
	nic->attrs.NicAddressLen = 6;
	nic->attrs.MaxDiscriminatorLen = 16;
	nic->attrs.NativeMTU = 4096;
	nic->attrs.ReliabilityLevelSupport = 7;
	nic->attrs.RDMAReadSupport = 6;
	nic->attrs.MaxVI = 2000;
	nic->attrs.MaxPtags = 8;
	nic->attrs.MaxCQ = 8;
	return 0;
}

static void nic_close(struct vi_nic *nic) {}

static int vi_create(struct vi_vi *vi)
{
	return 0;
}

static void post_send(struct vi_vi *vi)
{
	atomic_fetch_add(&fake.posts, 1);
}

static int progress_vi(struct vi_vi *vi)
{
	void (*fn)(VIP_VI_HANDLE, void *);
	void *arg;

	atomic_fetch_add(&fake.progress_calls, 1);
	u_lock_take(&fake.lock);
	fn = fake.on_progress_vi;
	arg = fake.progress_vi_arg;
	u_lock_drop(&fake.lock);
	if (fn == NULL)
		return 0;
	fn(vi_id_handle(atomic_load(&vi->id)), arg);
	return 1;
}

/* The words of a VI, by the place of its handle in the table of handles. */
static struct vi_words {
	_Atomic uint32_t came, polls, messages;
} words[U_IDTAB_SLOTS];

static struct vi_words *words_of(const struct vi_vi *vi)
{
	return &words[atomic_load(&vi->id) % U_IDTAB_SLOTS];
}

/* Completes a receive with the next of fake_arrive_messages(). */
static int take_message(struct vi_vi *vi, struct vi_words *w)
{
	uint32_t done = atomic_load(&vi->rq.done);

	if (vi->rq.next == done)
		vi->rq.next++;
	vi_wq_complete(&vi->rq, done, VIP_STATUS_OP_RECEIVE, 0);
	if (atomic_fetch_sub(&w->messages, 1) == 1)
		atomic_store(&w->came, 0);
	return VI_POLL_MOVED;
}

static int poll_recv(struct vi_vi *vi)
{
	struct vi_words *w = words_of(vi);
	bool came;

	atomic_fetch_add(&w->polls, 1);
	if (atomic_load(&w->messages) != 0)
		return take_message(vi, w);
	came = atomic_exchange(&w->came, 0) != 0;
	return came || !atomic_load(&fake.watchable) ? VI_POLL_PROGRESS : 0;
}

static bool write_unqueued(struct vi_vi *vi, const uint8_t *at, uint32_t length, uint64_t addr,
			   uint32_t handle)
{
	return false;
}

static bool send_unqueued(struct vi_vi *vi, VIP_DESCRIPTOR *desc, const uint8_t *at,
			  uint32_t length, uint16_t control)
{
	return false;
}

static void recv_posted(struct vi_vi *vi) {}

static bool watch(struct vi_vi *vi, struct vi_watch *out)
{
	out->word = &words_of(vi)->came;
	out->value = 1;
	return atomic_load(&fake.watchable);
}

static const struct vi_fast_ops fake_fast = {
	.send_unqueued = send_unqueued,
	.write_unqueued = write_unqueued,
	.post_send = post_send,
	.recv_posted = recv_posted,
	.poll_recv = poll_recv,
	.progress = progress_vi,
	.watch = watch,
};

static void connected(struct vi_vi *vi)
{
	vi_lock_both(vi);
	vi->fast = &fake_fast;
	vi_set_state(vi, VIP_STATE_CONNECTED);
	if (vi->sq.cq != NULL)
		vi_cq_mark(&vi->sq);
	if (vi->rq.cq != NULL)
		vi_cq_mark(&vi->rq);
	vi_unlock_both(vi);
}

static int disconnect(struct vi_vi *vi)
{
	vi_lock_both(vi);
	vi_set_state(vi, VIP_STATE_IDLE);
	vi->fast = &vi_fast_none;
	vi_wq_flush(&vi->sq, VIP_STATUS_DESC_FLUSHED_ERROR);
	vi_wq_flush(&vi->rq, VIP_STATUS_DESC_FLUSHED_ERROR);
	vi_unlock_both(vi);
	return 0;
}

static int connect_wait(struct vi_nic *nic, const struct vi_addr *local, int64_t deadline,
			struct vi_addr *remote_out, struct vi_conn *conn)
{
	bool offered;

	u_lock_take(&fake.lock);
	offered = fake.offered;
	fake.offered = false;
	u_lock_drop(&fake.lock);
	if (!offered)
		return -ETIMEDOUT;
	conn->remote_attrs = fake.offer;
	memset(remote_out, 0, sizeof(*remote_out));
	remote_out->host_len = 6;
	memcpy(remote_out->host, fake_host[1], 6);
	remote_out->disc_len = fake.disc_len;
	memcpy(remote_out->disc, fake.disc, fake.disc_len);
	return 0;
}

static int connect_accept(struct vi_conn *conn, struct vi_vi *vi)
{
	int err = atomic_load(&fake.connect_error);

	if (err == 0)
		connected(vi);
	return err;
}

static int connect_reject(struct vi_conn *conn)
{
	atomic_fetch_add(&fake.rejects, 1);
	return 0;
}

static int connect_request(struct vi_vi *vi, const struct vi_addr *local,
			   const struct vi_addr *remote, int64_t deadline,
			   VIP_VI_ATTRIBUTES *remote_attrs_out)
{
	int err = atomic_load(&fake.connect_error);

	if (err != 0)
		return err;
	connected(vi);
	*remote_attrs_out = vi->attrs;
	return 0;
}

static int peer_request(struct vi_vi *vi, const struct vi_addr *local, const struct vi_addr *remote,
			int64_t deadline)
{
	vi_lock_both(vi);
	vi_set_state(vi, VIP_STATE_CONNECT_PENDING);
	vi_unlock_both(vi);
	return 0;
}

static int peer_done(struct vi_vi *vi, int64_t until, VIP_VI_ATTRIBUTES *remote_attrs_out)
{
	if (vi_state(vi) != VIP_STATE_CONNECT_PENDING)
		return -EISCONN;
	if (until == 0)
		return -EAGAIN;
	connected(vi);
	*remote_attrs_out = vi->attrs;
	return 0;
}

static int window_alloc(struct vi_nic *nic, uint64_t len, bool sealed, void **addr_out,
			void **window_out)
{
	struct window *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	w->len = len;
	w->addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->addr == MAP_FAILED) {
		free(w);
		return -ENOSPC;
	}
	atomic_fetch_add(&fake.windows, 1);
	*addr_out = w->addr;
	*window_out = w;
	return 0;
}

static void window_free(struct vi_nic *nic, void *window)
{
	struct window *w = window;

	munmap(w->addr, w->len);
	free(w);
	atomic_fetch_sub(&fake.windows, 1);
}

static uint32_t arm(struct vi_nic *nic)
{
	atomic_fetch_add(&fake.arms, 1);
	return atomic_load(&fake.word);
}

static void sleep_op(struct vi_nic *nic, uint32_t ticket, int64_t deadline)
{
	void (*fn)(void *);
	void *arg;

	u_lock_take(&fake.lock);
	fn = fake.on_sleep;
	arg = fake.sleep_arg;
	fake.on_sleep = NULL;
	u_lock_drop(&fake.lock);
	if (fn != NULL)
		fn(arg);
	u_futex_wait(&fake.word, ticket, UINT32_MAX, u_time_left(deadline), true);
	if (atomic_load(&fake.word) == ticket)
		atomic_fetch_add(&fake.unrung, 1);
}

static void wake(struct vi_nic *nic)
{
	atomic_fetch_add(&fake.wakes, 1);
	atomic_fetch_add(&fake.word, 1);
	u_futex_wake(&fake.word, INT32_MAX, UINT32_MAX, true);
}

static bool doorbell_rung(struct vi_nic *nic)
{
	bool rung;

	atomic_fetch_add(&fake.doorbells, 1);
	u_lock_take(&fake.lock);
	rung = fake.on_doorbell != NULL;
	u_lock_drop(&fake.lock);
	return rung;
}

static int progress(struct vi_nic *nic)
{
	void (*fn)(void *);
	void *arg;

	u_lock_take(&fake.lock);
	fn = fake.on_doorbell;
	arg = fake.doorbell_arg;
	u_lock_drop(&fake.lock);
	if (fn == NULL)
		return 0;
	fn(arg);
	return 1;
}

static int name_to_host(struct vi_nic *nic, const char *name, uint32_t index, uint8_t *host_out)
{
	unsigned n;
	char more;

	if (index != 0 || sscanf(name, "host%u%c", &n, &more) != 1 || n >= FAKE_HOSTS)
		return -ENOENT;
	memcpy(host_out, fake_host[n], 6);
	return 0;
}

static int host_to_name(struct vi_nic *nic, const uint8_t *host, char *name_out, size_t size)
{
	for (unsigned i = 0; i < FAKE_HOSTS; i++) {
		if (memcmp(host, fake_host[i], 6) == 0) {
			snprintf(name_out, size, "host%u", i);
			return 0;
		}
	}
	return -ENOENT;
}

static int route(struct vi_nic *nic, const struct vi_addr *remote, VIPX_ROUTE *out)
{
	out->Reachable = VIP_TRUE;
	out->Hops = host_hops[remote->host[5] % FAKE_HOSTS];
	snprintf(out->Host, sizeof(out->Host), "host%u", remote->host[5]);
	return 0;
}

static int host_list(struct vi_nic *nic, uint32_t i, uint8_t *host_out, uint32_t *hops_out)
{
	if (i >= FAKE_HOSTS)
		return -ENOENT;
	memcpy(host_out, fake_host[i], 6);
	*hops_out = host_hops[i];
	return 0;
}

static const struct vi_provider_ops fake_provider = {
	.name = "fake",
	.nic_open = nic_open,
	.nic_close = nic_close,
	.vi_create = vi_create,
	.connect_wait = connect_wait,
	.connect_accept = connect_accept,
	.connect_reject = connect_reject,
	.connect_request = connect_request,
	.peer_request = peer_request,
	.peer_done = peer_done,
	.disconnect = disconnect,
	.window_alloc = window_alloc,
	.window_free = window_free,
	.arm = arm,
	.sleep = sleep_op,
	.wake = wake,
	.doorbell_rung = doorbell_rung,
	.progress = progress,
	.name_to_host = name_to_host,
	.host_to_name = host_to_name,
	.route = route,
	.host_list = host_list,
};

/* Knows one device and lacks everything else. */
static int sparse_open(struct vi_nic *nic, const char *device)
{
	if (strcmp(device, "sparse") != 0)
		return -ENODEV;
	nic->attrs.NicAddressLen = 6;
	nic->attrs.ReliabilityLevelSupport = 1;
	return 0;
}

static const struct vi_provider_ops sparse_provider = {
	.name = "sparse",
	.nic_open = sparse_open,
};

const struct vi_provider_ops *const vi_providers[] = { &fake_provider, &sparse_provider, NULL };

/* ---- for the tests -------------------------------------------------------------------------- */

void fake_reset(void)
{
	atomic_store(&fake.progress_calls, 0);
	atomic_store(&fake.doorbells, 0);
	atomic_store(&fake.arms, 0);
	atomic_store(&fake.wakes, 0);
	atomic_store(&fake.unrung, 0);
	atomic_store(&fake.rejects, 0);
	atomic_store(&fake.posts, 0);
	atomic_store(&fake.connect_error, 0);
	atomic_store(&fake.watchable, false);
	u_lock_take(&fake.lock);
	fake.on_progress_vi = NULL;
	fake.on_doorbell = NULL;
	fake.on_sleep = NULL;
	fake.offered = false;
	u_lock_drop(&fake.lock);
}

void fake_connect(VIP_VI_HANDLE vi)
{
	connected(vi_of(vi));
}

void fake_pending(VIP_VI_HANDLE handle)
{
	struct vi_vi *vi = vi_of(handle);

	vi_lock_both(vi);
	vi_set_state(vi, VIP_STATE_CONNECT_PENDING);
	vi_unlock_both(vi);
}

void fake_break(VIP_VI_HANDLE handle, int raise, VIP_ERROR_CODE code)
{
	struct vi_vi *vi = vi_of(handle);

	vi_lock_both(vi);
	vi_break(vi, raise != 0 ? VI_BREAK_RAISE : 0, code);
	vi_unlock_both(vi);
}

void fake_start(VIP_VI_HANDLE handle, int is_recv, uint32_t count)
{
	struct vi_vi *vi = vi_of(handle);

	u_biased_take(lock_of(vi, is_recv));
	wq_of(vi, is_recv)->next += count;
	u_biased_drop(lock_of(vi, is_recv));
}

void fake_complete(VIP_VI_HANDLE handle, int is_recv, uint32_t i, uint32_t status, uint32_t length,
		   uint32_t imm)
{
	struct vi_vi *vi = vi_of(handle);
	struct vi_wq *wq = wq_of(vi, is_recv);
	uint32_t n;

	u_biased_take(lock_of(vi, is_recv));
	n = atomic_load(&wq->done) + i;
	if ((int32_t)(n + 1 - wq->next) > 0)
		wq->next = n + 1;
	vi_wqe(wq, n)->imm = imm;
	vi_wq_complete(wq, n, status, length);
	u_biased_drop(lock_of(vi, is_recv));
}

void fake_complete_at(VIP_VI_HANDLE handle, int is_recv, uint32_t n, uint32_t status)
{
	struct vi_vi *vi = vi_of(handle);

	u_biased_take(lock_of(vi, is_recv));
	vi_wq_complete(wq_of(vi, is_recv), n, status, 0);
	u_biased_drop(lock_of(vi, is_recv));
}

uint32_t fake_capacity(VIP_VI_HANDLE handle, int is_recv)
{
	return wq_of(vi_of(handle), is_recv)->mask + 1;
}

int fake_hot(VIP_VI_HANDLE handle, int is_recv)
{
	return atomic_load(&wq_of(vi_of(handle), is_recv)->hot) != VI_WQ_COLD;
}

static struct vi_wqe *entry(struct vi_vi *vi, int is_recv, uint32_t i)
{
	struct vi_wq *wq = wq_of(vi, is_recv);

	return vi_wqe(wq, atomic_load(&wq->done) + i);
}

uint32_t fake_check_send(VIP_VI_HANDLE handle, uint32_t i)
{
	struct vi_vi *vi = vi_of(handle);
	uint32_t bits;

	u_biased_take(&vi->tx_lock);
	bits = vi_desc_check_send(vi, entry(vi, 0, i));
	u_biased_drop(&vi->tx_lock);
	return bits;
}

uint32_t fake_check_recv(VIP_VI_HANDLE handle, uint32_t i, uint64_t bytes)
{
	struct vi_vi *vi = vi_of(handle);
	uint32_t bits;

	u_biased_take(&vi->rx_lock);
	bits = vi_desc_check_recv(vi, entry(vi, 1, i), bytes);
	u_biased_drop(&vi->rx_lock);
	return bits;
}

int fake_walk(VIP_VI_HANDLE handle, int is_recv, uint32_t i, uint64_t need, uint32_t want,
	      struct fake_piece *out, uint32_t max)
{
	struct vi_vi *vi = vi_of(handle);
	struct vi_sg sg;
	uint32_t count = 0;
	int err;

	u_biased_take(lock_of(vi, is_recv));
	err = vi_sg_init(&sg, vi, entry(vi, is_recv, i), is_recv ? VI_WRITE : VI_READ, need);
	while (err == 0 && count < max) {
		err = vi_sg_next(&sg, want, &out[count].addr, &out[count].len);
		count += err == 0;
	}
	u_biased_drop(lock_of(vi, is_recv));
	return err == 0 || err == -ENOSPC ? (int)count : err;
}

void *fake_tpt(VIP_NIC_HANDLE nic, VIP_PROTECTION_HANDLE ptag, const void *addr, uint64_t len,
	       uint32_t handle, uint32_t access)
{
	return vi_tpt_check(nic_of(nic), vi_handle_id(ptag), (uintptr_t)addr, len, handle, access);
}

void fake_locked(VIP_VI_HANDLE handle, int is_recv, void (*fn)(void *), void *arg)
{
	struct vi_vi *vi = vi_of(handle);

	u_biased_take(lock_of(vi, is_recv));
	fn(arg);
	u_biased_drop(lock_of(vi, is_recv));
}

void fake_raise(VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *desc, VIP_ERROR_CODE code)
{
	if (desc != NULL)
		vi_event_raise_desc(&vi_of(vi)->sq, desc, VIP_STATUS_OP_SEND, VIP_RESOURCE_VI,
				    code);
	else
		vi_event_raise(nic_of(nic), vi != NULL ? vi_of(vi) : NULL,
			       vi != NULL ? VIP_RESOURCE_VI : VIP_RESOURCE_NIC, code);
}

void fake_arrive(VIP_VI_HANDLE vi)
{
	atomic_store(&words_of(vi_of(vi))->came, 1);
}

void fake_arrive_messages(VIP_VI_HANDLE handle, uint32_t count)
{
	struct vi_words *w = words_of(vi_of(handle));

	atomic_store(&w->messages, count);
	atomic_store(&w->came, count != 0);
}

int fake_unwatch(VIP_VI_HANDLE handle)
{
	struct vi_vi *vi = vi_of(handle);
	bool due;

	u_biased_take(&vi->rx_lock);
	due = vi_cq_unwatch(&vi->rq);
	u_biased_drop(&vi->rx_lock);
	if (due)
		vi_cq_grace(vi->rq.cq);
	return due;
}

void fake_unwatch_later(VIP_VI_HANDLE vi)
{
	vi_cq_unwatch_later(&vi_of(vi)->rq);
}

void fake_arrive_unseen(VIP_VI_HANDLE vi)
{
	atomic_store(&words_of(vi_of(vi))->came, 2);
}

void fake_watchable(void)
{
	atomic_store(&fake.watchable, true);
}

uint32_t fake_polls(VIP_VI_HANDLE vi)
{
	return atomic_load(&words_of(vi_of(vi))->polls);
}

void fake_mark(VIP_VI_HANDLE handle, int is_recv)
{
	struct vi_vi *vi = vi_of(handle);

	u_biased_take(lock_of(vi, is_recv));
	vi_cq_mark(wq_of(vi, is_recv));
	u_biased_drop(lock_of(vi, is_recv));
}

void fake_wait_mode(VIP_NIC_HANDLE nic, int mode)
{
	nic_of(nic)->wait_mode = (enum u_idle_mode)mode;
	u_idle_past_init(&nic_of(nic)->idle_past, nic_of(nic)->wait_mode);
}

void fake_contention(VIP_NIC_HANDLE nic, uint32_t sleeps)
{
	atomic_store(&nic_of(nic)->idle_past.sleeps, sleeps);
}

uint32_t fake_notify_armed(VIP_NIC_HANDLE nic)
{
	return atomic_load(&nic_of(nic)->notify_armed);
}

void fake_on_progress_vi(void (*fn)(VIP_VI_HANDLE, void *), void *arg)
{
	u_lock_take(&fake.lock);
	fake.on_progress_vi = fn;
	fake.progress_vi_arg = arg;
	u_lock_drop(&fake.lock);
}

void fake_on_doorbell(void (*fn)(void *), void *arg)
{
	u_lock_take(&fake.lock);
	fake.on_doorbell = fn;
	fake.doorbell_arg = arg;
	u_lock_drop(&fake.lock);
}

void fake_on_sleep(void (*fn)(void *), void *arg)
{
	u_lock_take(&fake.lock);
	fake.on_sleep = fn;
	fake.sleep_arg = arg;
	u_lock_drop(&fake.lock);
}

uint32_t fake_progress_calls(void)
{
	return atomic_load(&fake.progress_calls);
}

uint32_t fake_doorbells(void)
{
	return atomic_load(&fake.doorbells);
}

uint32_t fake_arms(void)
{
	return atomic_load(&fake.arms);
}

uint32_t fake_wakes(void)
{
	return atomic_load(&fake.wakes);
}

uint32_t fake_unrung(void)
{
	return atomic_load(&fake.unrung);
}

uint32_t fake_rejects(void)
{
	return atomic_load(&fake.rejects);
}

uint32_t fake_windows(void)
{
	return atomic_load(&fake.windows);
}

uint32_t fake_posts(void)
{
	return atomic_load(&fake.posts);
}

void fake_offer(const VIP_VI_ATTRIBUTES *attrs, const void *disc, uint16_t disc_len)
{
	u_lock_take(&fake.lock);
	fake.offer = *attrs;
	memcpy(fake.disc, disc, disc_len);
	fake.disc_len = disc_len;
	fake.offered = true;
	u_lock_drop(&fake.lock);
}

void fake_connect_error(int err)
{
	atomic_store(&fake.connect_error, err);
}

struct vi_mover *fake_mover(VIP_NIC_HANDLE nic)
{
	return nic_of(nic)->mover;
}

void fake_place_lock(VIP_NIC_HANDLE nic)
{
	pthread_mutex_lock(&nic_of(nic)->place_lock);
}

void fake_place_unlock(VIP_NIC_HANDLE nic)
{
	pthread_mutex_unlock(&nic_of(nic)->place_lock);
}
