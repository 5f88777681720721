/* SPDX-License-Identifier: BSD-2-Clause */
#include "rv.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE 4096u
#define WAIT_MS 60000
#define TRIES 3000

/* The buffers are followed by the descriptors of writes, then a page with two for messages. */
enum { D_SEND, D_RECEIVE };
#define TEXT 1024u /* offset in the page of 64 bytes to send; those received follow */

union address {
	VIP_NET_ADDRESS addr;
	uint8_t room[sizeof(VIP_NET_ADDRESS) + 64];
};

int64_t rv_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void rv_nap(long ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	if (ns == 0)
		sched_yield();
	else
		nanosleep(&ts, NULL);
}

#define CHARGE_MIN_NS 100000 /* sleeps are not shorter */

void rv_charge(int64_t *owed, int64_t ns)
{
	int64_t began = rv_now();

	*owed += ns;
	if (*owed < CHARGE_MIN_NS)
		return;
	rv_nap((long)*owed);
	*owed -= rv_now() - began;
}

static int fail(const char *what, VIP_RETURN rc)
{
	ring_print_error("%s: %s", what, VipxErrorString(rc));
	return -1;
}

/* ---- hosts ---- */

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	struct rv_host *h = context;

	atomic_store(&h->lost, true);
}

/* An unknown name opens the default NIC, so this checks that the NIC is the right one. */
static int check_host(struct rv_host *h, const char *name)
{
	union address a = { .addr = { 0 } };
	VIP_RETURN rc = VipNSGetHostByName(h->nic, (VIP_CHAR *)name, &a.addr, 0);

	if (rc == VIP_SUCCESS &&
	    memcmp(a.addr.HostAddress, h->attrs.LocalNicAddress, h->attrs.NicAddressLen) == 0)
		return 0;
	ring_print_error("%s was sought, the fabric has none: vi_fabric up --hosts N", name);
	return -1;
}

int rv_host_open(struct rv_host *h, unsigned int number)
{
	char name[32];
	VIP_RETURN rc;

	snprintf(name, sizeof(name), "host%u", number);
	rc = VipOpenNic(name, &h->nic);
	if (rc != VIP_SUCCESS) {
		h->nic = NULL;
		return fail("opening a NIC", rc);
	}
	rc = VipErrorCallback(h->nic, h, on_error);
	if (rc == VIP_SUCCESS)
		rc = VipQueryNic(h->nic, &h->attrs);
	if (rc == VIP_SUCCESS)
		rc = VipNSInit(h->nic, NULL);
	if (rc != VIP_SUCCESS)
		return fail("preparing a NIC", rc);
	return check_host(h, name);
}

static void *move(void *arg)
{
	struct rv_host *h = arg;

	while (!atomic_load(&h->stop)) {
		VipxProgress(h->nic);
		rv_nap(h->nap_ns);
	}
	return NULL;
}

int rv_host_move(struct rv_host *h, long nap_ns)
{
	int err;

	h->nap_ns = nap_ns;
	h->moves = true;
	err = pthread_create(&h->mover, NULL, move, h);
	if (err == 0)
		return 0;
	h->moves = false;
	ring_print_error("a thread was sought and there is none: %s", strerror(err));
	return -1;
}

void rv_host_close(struct rv_host *h)
{
	if (h->moves) {
		atomic_store(&h->stop, true);
		pthread_join(h->mover, NULL);
	}
	if (h->nic != NULL)
		VipCloseNic(h->nic);
}

/* ---- connections ---- */

static union address address_of(const struct rv_host *h, unsigned int number)
{
	union address a = { .addr = { h->attrs.NicAddressLen, sizeof(uint32_t), { 0 } } };
	uint32_t id = number;

	memcpy(a.addr.HostAddress, h->attrs.LocalNicAddress, h->attrs.NicAddressLen);
	memcpy(a.addr.HostAddress + h->attrs.NicAddressLen, &id, sizeof(id));
	return a;
}

struct accept {
	struct rv_path *path;
	VIP_RETURN rc;
};

static void *accept_main(void *arg)
{
	struct accept *a = arg;
	struct rv_path *w = a->path;
	union address local = address_of(w->to, w->number);
	union address remote = { .addr = { 0 } };
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;

	a->rc = VipConnectWait(w->to->nic, &local.addr, WAIT_MS, &remote.addr, &attrs, &conn);
	if (a->rc == VIP_SUCCESS)
		a->rc = VipConnectAccept(conn, w->in);
	return NULL;
}

static VIP_RETURN request(struct rv_path *w)
{
	union address local = address_of(w->from, w->number);
	union address remote = address_of(w->to, w->number);
	VIP_VI_ATTRIBUTES attrs;
	VIP_RETURN rc = VIP_NO_MATCH;

	for (int i = 0; i < TRIES && (rc == VIP_NO_MATCH || rc == VIP_NOT_REACHABLE); i++) {
		rc = VipConnectRequest(w->out, &local.addr, &remote.addr, WAIT_MS, &attrs);
		if (rc != VIP_SUCCESS)
			rv_nap(5000000);
	}
	return rc;
}

static int connect_ends(struct rv_path *w)
{
	struct accept a = { .path = w };
	pthread_t thread;
	VIP_RETURN rc;

	if (pthread_create(&thread, NULL, accept_main, &a) != 0) {
		ring_print_error("a thread was sought and there is none");
		return -1;
	}
	rc = request(w);
	pthread_join(thread, NULL);
	if (rc != VIP_SUCCESS)
		return fail("connecting", rc);
	return a.rc == VIP_SUCCESS ? 0 : fail("accepting", a.rc);
}

static VIP_RETURN make_vi(struct rv_host *h, uint64_t bytes, VIP_RELIABILITY_LEVEL level,
			  VIP_VI_HANDLE *out)
{
	VIP_VI_ATTRIBUTES attrs = { .ReliabilityLevel = level,
				    .MaxTransferSize = bytes,
				    .EnableRdmaWrite = VIP_TRUE };
	VIP_RETURN rc = VipCreateVi(h->nic, &attrs, NULL, NULL, out);

	if (rc != VIP_SUCCESS)
		*out = NULL;
	return rc;
}

static VIP_RETURN make_page(struct rv_host *h, size_t bytes, uint8_t **out, VIP_MEM_HANDLE *handle)
{
	VIP_MEM_ATTRIBUTES attrs = { 0 };
	VIP_RETURN rc;

	*out = aligned_alloc(PAGE, bytes);
	if (*out == NULL)
		return VIP_ERROR_RESOURCE;
	memset(*out, 0, bytes);
	rc = VipRegisterMem(h->nic, *out, bytes, &attrs, handle);
	if (rc != VIP_SUCCESS) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

static size_t body(const struct rv_path *w)
{
	return (w->bytes + PAGE - 1) / PAGE * PAGE;
}

static uint8_t *descriptors(const struct rv_path *w)
{
	return w->data + w->depth * body(w);
}

static uint8_t *messages(const struct rv_path *w)
{
	return descriptors(w) + (w->depth * sizeof(VIP_DESCRIPTOR) + PAGE - 1) / PAGE * PAGE;
}

static VIP_RETURN make_memory(struct rv_path *w)
{
	VIP_MEM_ATTRIBUTES attrs = { .EnableRdmaWrite = VIP_TRUE };
	VIP_PVOID where = NULL;
	VIP_RETURN rc = VipxAllocMem(w->to->nic, body(w), &attrs, &where, &w->target_handle);

	if (rc == VIP_SUCCESS)
		w->target = where;
	if (rc == VIP_SUCCESS)
		rc = make_page(w->from, (size_t)(messages(w) - w->data) + PAGE, &w->data,
			       &w->data_handle);
	if (rc == VIP_SUCCESS)
		rc = make_page(w->to, PAGE, &w->answer, &w->answer_handle);
	return rc;
}

int rv_path_open(struct rv_path *w, struct rv_host *from, struct rv_host *to, unsigned int number,
		 uint64_t bytes, unsigned int depth, VIP_RELIABILITY_LEVEL level)
{
	VIP_RETURN rc;

	memset(w, 0, sizeof(*w));
	w->from = from;
	w->to = to;
	w->number = number;
	w->bytes = bytes;
	w->depth = depth;
	rc = make_vi(from, bytes, level, &w->out);
	if (rc == VIP_SUCCESS)
		rc = make_vi(to, bytes, level, &w->in);
	if (rc == VIP_SUCCESS)
		rc = make_memory(w);
	if (rc != VIP_SUCCESS)
		return fail("making VIs and memory", rc);
	return connect_ends(w);
}

static void close_vi(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *d;

	if (vi == NULL)
		return;
	VipDisconnect(vi);
	while (VipSendDone(vi, &d) != VIP_NOT_DONE && d != NULL)
		;
	while (VipRecvDone(vi, &d) != VIP_NOT_DONE && d != NULL)
		;
	VipDestroyVi(vi);
}

void rv_path_close(struct rv_path *w)
{
	close_vi(w->out);
	close_vi(w->in);
	if (w->target != NULL)
		VipxFreeMem(w->to->nic, w->target, w->target_handle);
	if (w->data != NULL)
		VipDeregisterMem(w->from->nic, w->data, w->data_handle);
	if (w->answer != NULL)
		VipDeregisterMem(w->to->nic, w->answer, w->answer_handle);
	free(w->data);
	free(w->answer);
}

/* ---- messages ---- */

static VIP_DESCRIPTOR *descriptor(uint8_t *page, unsigned int i)
{
	VIP_DESCRIPTOR *d = (VIP_DESCRIPTOR *)(void *)(page + i * sizeof(*d));

	memset(d, 0, sizeof(*d));
	return d;
}

int rv_write_post(struct rv_path *w, uint64_t n)
{
	VIP_DESCRIPTOR *d = descriptor(descriptors(w), w->posted % w->depth);
	uint8_t *data = w->data + w->posted++ % w->depth * body(w);
	VIP_RETURN rc;

	memcpy(data + w->bytes - sizeof(n), &n, sizeof(n));
	d->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
	d->CS.SegCount = 2;
	d->CS.Length = (VIP_UINT32)w->bytes;
	d->DS[0].Remote.Data.Address = w->target;
	d->DS[0].Remote.Handle = w->target_handle;
	d->DS[1].Local.Data.Address = data;
	d->DS[1].Local.Handle = w->data_handle;
	d->DS[1].Local.Length = (VIP_UINT32)w->bytes;
	rc = VipPostSend(w->out, d, w->data_handle);
	return rc == VIP_SUCCESS ? 0 : fail("posting an RDMA write", rc);
}

static int taken(VIP_RETURN rc, const VIP_DESCRIPTOR *d, const struct rv_host *h)
{
	char text[128];

	if (rc == VIP_NOT_DONE && !atomic_load(&h->lost))
		return 0;
	if (rc == VIP_SUCCESS && (d->CS.Status & VIP_STATUS_ERROR_MASK) == 0)
		return 1;
	if (rc == VIP_NOT_DONE) {
		ring_print_error("a connection was lost");
	} else {
		VipxStatusString(d != NULL ? d->CS.Status : 0, text, sizeof(text));
		ring_print_error("a descriptor completed with %s: %s", VipxErrorString(rc), text);
	}
	return -1;
}

int rv_write_done(struct rv_path *w)
{
	VIP_DESCRIPTOR *d = NULL;
	VIP_RETURN rc = VipSendDone(w->out, &d);

	return taken(rc, d, w->from);
}

uint64_t rv_target_word(const struct rv_path *w)
{
	const _Atomic uint64_t *word = (const void *)(w->target + w->bytes - sizeof(uint64_t));

	return atomic_load_explicit(word, memory_order_acquire);
}

uint64_t rv_slots_sent(const struct rv_path *w)
{
	VIPX_COUNTERS counters = { .Size = sizeof(counters) };
	VIP_RETURN rc = VipxQueryCounters(w->from->nic, w->out, &counters);

	return rc == VIP_SUCCESS ? counters.SlotsSent : 0;
}

bool rv_neighbours(const struct rv_path *w)
{
	union address to = address_of(w->to, w->number);
	VIPX_ROUTE route = { .Size = sizeof(route) };

	return VipxQueryRoute(w->from->nic, &to.addr, &route) == VIP_SUCCESS &&
	       route.PathKind == VIPX_PATH_NEIGHBOUR;
}

static int post(struct rv_path *w, bool back, unsigned int i)
{
	uint8_t *page = back ? w->answer : messages(w);
	VIP_MEM_HANDLE handle = back ? w->answer_handle : w->data_handle;
	VIP_DESCRIPTOR *d = descriptor(page, i);
	VIP_VI_HANDLE vi = back ? w->in : w->out;
	VIP_RETURN rc;

	d->CS.SegCount = 1;
	d->CS.Length = d->DS[0].Local.Length = 64;
	d->DS[0].Local.Data.Address = page + TEXT + 64 * i;
	d->DS[0].Local.Handle = handle;
	rc = i == D_SEND ? VipPostSend(vi, d, handle) : VipPostRecv(vi, d, handle);
	return rc == VIP_SUCCESS ? 0 : fail("posting a message", rc);
}

int rv_send(struct rv_path *w, bool back)
{
	return post(w, back, D_SEND);
}

int rv_receive_post(struct rv_path *w, bool back)
{
	return post(w, back, D_RECEIVE);
}

int rv_receive_done(struct rv_path *w, bool back)
{
	VIP_VI_HANDLE vi = back ? w->in : w->out;
	VIP_DESCRIPTOR *d = NULL;
	VIP_RETURN rc = VipRecvDone(vi, &d);

	return taken(rc, d, back ? w->to : w->from);
}
