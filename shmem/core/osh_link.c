/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every PE serves one address, that of its host with a discriminator of job and PE.  One PE connects a
 * VI to another for its own operations only, so two that use each other have two connections, and
 * neither ever waits for the other to want one.  `osh-serve` accepts them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "osh_env.h"
#include "osh_globals.h"
#include "osh_link.h"
#include "osh_wait.h"

#define PATIENCE_S 30		/* for a way to another host */
#define INNER_BYTES (64u << 20) /* of the heap, for the library: 3,000 teams of 8 PEs */

struct discriminator {
	char kind[4];
	uint32_t pe;
	uint64_t job;
};

union address {
	VIP_NET_ADDRESS addr;
	uint8_t room[sizeof(VIP_NET_ADDRESS) + 64 + sizeof(struct discriminator)];
};

/* What each PE tells the others. */
struct card {
	uint64_t base[OSH_SEGMENTS], len[OSH_SEGMENTS], program;
	VIP_MEM_HANDLE handle[OSH_SEGMENTS];
	uint16_t host_len;
	uint8_t host[22];
};

struct mapping {
	VIP_VI_HANDLE vi;
	struct mapping *next;
};

static struct {
	struct osh_globals globals;
	void *heap; /* what VipxAllocMem() gave */
	union address here;
	pthread_t serve;
	bool serving;
	pthread_mutex_t lock; /* of the maps and of the list of accepted VIs */
	struct mapping *maps, *accepted;
} link_ = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const VIP_VI_ATTRIBUTES vi_attrs = {
	.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
	.MaxTransferSize = 1u << 30,
	.EnableRdmaWrite = VIP_TRUE,
	.EnableRdmaRead = VIP_TRUE,
};

static void address_of(union address *a, const uint8_t *host, size_t len, int pe)
{
	struct discriminator d = { { 'o', 's', 'h', 0 }, (uint32_t)pe, osh_pe.job.id };

	memset(a, 0, sizeof(*a));
	a->addr.HostAddressLen = (VIP_UINT16)len;
	a->addr.DiscriminatorLen = sizeof(d);
	memcpy(a->addr.HostAddress, host, len);
	memcpy(a->addr.HostAddress + len, &d, sizeof(d));
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* Only PEs of this job are let in. */
static bool is_of_job(const union address *from)
{
	struct discriminator d;

	if (from->addr.DiscriminatorLen != sizeof(d))
		return false;
	memcpy(&d, from->addr.HostAddress + from->addr.HostAddressLen, sizeof(d));
	return memcmp(d.kind, "osh", 4) == 0 && d.job == osh_pe.job.id && d.pe < (uint32_t)osh_pe.n;
}

/* VIs whose other end has gone are given back. */
static void sweep(void)
{
	struct mapping **at = &link_.accepted, *m;
	VIP_VI_ATTRIBUTES attrs;
	VIP_BOOLEAN send, recv;
	VIP_VI_STATE state;

	while ((m = *at) != NULL) {
		if (VipQueryVi(m->vi, &state, &attrs, &send, &recv) == VIP_SUCCESS &&
		    state == VIP_STATE_ERROR) {
			*at = m->next;
			osh_link_disconnect(m->vi);
			free(m);
		} else {
			at = &m->next;
		}
	}
}

static void accept_one(VIP_CONN_HANDLE conn)
{
	VIP_VI_ATTRIBUTES attrs = vi_attrs;
	struct mapping *m;

	sweep();
	m = malloc(sizeof(*m));
	if (m != NULL && VipCreateVi(osh_pe.nic, &attrs, NULL, NULL, &m->vi) == VIP_SUCCESS) {
		if (VipConnectAccept(conn, m->vi) == VIP_SUCCESS) {
			m->next = link_.accepted;
			link_.accepted = m;
			return;
		}
		VipDestroyVi(m->vi);
	}
	free(m);
	VipConnectReject(conn);
}

static _Noreturn void agent_is_gone(VIP_RETURN rc)
{
	osh_fatal("the agent of this host is gone (VipConnectWait: %s)", VipxErrorString(rc));
}

void osh_link_check_agent(void)
{
	union address nobody = link_.here, from;
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;
	uint8_t *discriminator = nobody.addr.HostAddress + nobody.addr.HostAddressLen;

	/* An address that no PE asks for. */
	discriminator[0] ^= 1;
	rc = VipConnectWait(osh_pe.nic, &nobody.addr, 0, &from.addr, &attrs, &conn);
	if (rc == VIP_ERROR_RESOURCE)
		agent_is_gone(rc);
}

static void *serve(void *unused)
{
	VIP_VI_ATTRIBUTES attrs;
	union address from;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;
	int state;

	for (;;) {
		rc = VipConnectWait(osh_pe.nic, &link_.here.addr, VIP_INFINITE, &from.addr, &attrs,
				    &conn);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		if (rc == VIP_SUCCESS && is_of_job(&from))
			accept_one(conn);
		else if (rc == VIP_SUCCESS)
			VipConnectReject(conn);
		else if (rc != VIP_TIMEOUT)
			agent_is_gone(rc);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	}
	return NULL;
}

/* Operations find a lost connection by themselves; the NIC would print each otherwise. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {}

/* ---- connecting ------------------------------------------------------------------------------ */

static void nap_ms(void)
{
	struct timespec t = { 0, 1000000 };

	nanosleep(&t, NULL);
}

/*
 * The other PE may be accepting another's connection, be short of a processor or be stopped, as by a
 * debugger, for any time.  One that has ended ends the job.
 */
static bool is_late(VIP_RETURN rc)
{
	return rc == VIP_NO_MATCH || rc == VIP_TIMEOUT;
}

VIP_VI_HANDLE osh_link_connect(const char *fn, int pe)
{
	const struct osh_peer *p = &osh_pe.peers[pe];
	VIP_VI_ATTRIBUTES attrs = vi_attrs, theirs;
	time_t end = time(NULL) + PATIENCE_S;
	union address there, mine = link_.here;
	VIP_VI_HANDLE vi;
	VIP_RETURN rc;

	rc = VipCreateVi(osh_pe.nic, &attrs, NULL, NULL, &vi);
	if (rc != VIP_SUCCESS) {
		osh_link_check_agent();
		osh_fatal("%s: no VI for a connection to PE %d (%s)", fn, pe, VipxErrorString(rc));
	}
	address_of(&there, p->host, p->host_len, pe);
	osh_wait_show(fn, NULL, pe);
	while ((rc = VipConnectRequest(vi, &mine.addr, &there.addr, 2000, &theirs)) !=
	       VIP_SUCCESS) {
		if (!is_late(rc) && (rc != VIP_NOT_REACHABLE || time(NULL) > end)) {
			osh_link_check_agent();
			osh_fatal_lost("%s: no connection to PE %d: VipConnectRequest says %s%s",
				       fn, pe, VipxErrorString(rc),
				       rc == VIP_ERROR_RESOURCE ? "; raise VIADUCT_WINDOW_BYTES"
								: "");
		}
		nap_ms();
	}
	osh_wait_shown_end();
	return vi;
}

void osh_link_disconnect(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *desc;

	VipDisconnect(vi);
	while (VipSendDone(vi, &desc) != VIP_NOT_DONE && desc != NULL)
		;
	VipDestroyVi(vi);
}

/* ---- mapping --------------------------------------------------------------------------------- */

/* In the debug mode all accesses are left to the functions that check. */
static void publish(struct osh_peer *p, int s)
{
	if (!osh_env.debug)
		atomic_store_explicit(&p->span[s], osh_pe.seg[s].len, memory_order_release);
}

static void map_segment(const char *fn, VIP_VI_HANDLE vi, int pe, int s)
{
	struct osh_peer *p = &osh_pe.peers[pe];
	VIP_PVOID at;
	VIP_RETURN rc;

	rc = VipxMapRemote(vi, p->seg[s].base, osh_pe.seg[s].len, p->seg[s].handle, &at);
	if (rc != VIP_SUCCESS) {
		osh_link_check_agent();
		osh_fatal_lost("%s: the memory of PE %d cannot be mapped (%s)", fn, pe,
			       VipxErrorString(rc));
	}
	p->at[s] = at;
	publish(p, s);
}

bool osh_link_map(const char *fn, int pe)
{
	struct osh_peer *p = &osh_pe.peers[pe];
	struct mapping *m;

	if (pe == osh_pe.me)
		return true;
	if (!p->near)
		return false;
	pthread_mutex_lock(&link_.lock);
	if (p->at[OSH_HEAP] == NULL) {
		m = malloc(sizeof(*m));
		if (m == NULL)
			osh_fatal("%s: out of memory", fn);
		m->vi = osh_link_connect(fn, pe);
		m->next = link_.maps;
		link_.maps = m;
		map_segment(fn, m->vi, pe, OSH_HEAP);
		if (p->same_program && osh_pe.seg[OSH_DATA].len > 0)
			map_segment(fn, m->vi, pe, OSH_DATA);
	}
	pthread_mutex_unlock(&link_.lock);
	return true;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* An agent that this PE starts gets a window that has room for the heaps of all. */
static void ask_for_window(size_t heap)
{
	const size_t most = (size_t)1 << 40;
	char text[32];
	size_t bytes;

	if (getenv("VIADUCT_WINDOW_BYTES") != NULL)
		return;
	if (__builtin_mul_overflow(2 * (heap + INNER_BYTES), (size_t)osh_pe.n, &bytes))
		bytes = most;
	bytes = osh_min(osh_min(bytes, most) + ((size_t)4 << 30), most);
	snprintf(text, sizeof(text), "%zu", bytes);
	setenv("VIADUCT_WINDOW_BYTES", text, 0);
}

static int alloc_heap(char error[BOOT_TEXT_MAX])
{
	VIP_MEM_ATTRIBUTES attrs = { NULL, VIP_TRUE, VIP_TRUE };
	struct osh_segment *heap = &osh_pe.seg[OSH_HEAP];
	VIP_NIC_ATTRIBUTES nic;
	VIP_PVOID at;
	VIP_RETURN rc;

	osh_pe.inner = osh_align_up(INNER_BYTES + (size_t)osh_pe.n * 4096, OSH_ALIGN_MAX);
	heap->len = osh_align_up(osh_pe.inner + osh_env.heap_bytes, 4096);
	if (VipQueryNic(osh_pe.nic, &nic) == VIP_SUCCESS &&
	    heap->len + OSH_ALIGN_MAX > nic.MaxRegisterBlockBytes) {
		snprintf(
			error, BOOT_TEXT_MAX,
			"no symmetric heap of %zu bytes: this machine allows %llu; lower SHMEM_SYMMETRIC_SIZE",
			heap->len, (unsigned long long)nic.MaxRegisterBlockBytes);
		return -1;
	}
	/* Every PE's heap begins at a multiple of the largest alignment that a program may ask for. */
	rc = VipxAllocMem(osh_pe.nic, heap->len + OSH_ALIGN_MAX, &attrs, &at, &heap->handle);
	if (rc != VIP_SUCCESS) {
		snprintf(
			error, BOOT_TEXT_MAX,
			"no symmetric heap of %zu bytes (%s): the window of this host is too small or in "
			"use; lower SHMEM_SYMMETRIC_SIZE, or raise VIADUCT_WINDOW_BYTES of its agent",
			heap->len, VipxErrorString(rc));
		return -1;
	}
	link_.heap = at;
	heap->base = (uint8_t *)osh_align_up((uintptr_t)at, OSH_ALIGN_MAX);
	return 0;
}

static int adopt_data(char error[BOOT_TEXT_MAX])
{
	VIP_MEM_ATTRIBUTES attrs = { NULL, VIP_TRUE, VIP_TRUE };
	struct osh_segment *data = &osh_pe.seg[OSH_DATA];
	VIP_RETURN rc;
	int err;

	osh_globals_find(&link_.globals);
	if (link_.globals.len == 0)
		return 0;
	err = osh_globals_privatise(&link_.globals);
	if (err == 0)
		err = osh_globals_for_children(&link_.globals);
	if (err != 0) {
		snprintf(error, BOOT_TEXT_MAX, "the program's variables cannot be moved: %s",
			 strerror(-err));
		return -1;
	}
	rc = VipxAdoptMem(osh_pe.nic, link_.globals.base, link_.globals.len, &attrs,
			  VIPX_ADOPT_NO_WRITERS, &data->handle);
	if (rc != VIP_SUCCESS) {
		osh_globals_for_children(NULL);
		snprintf(error, BOOT_TEXT_MAX,
			 "the program's variables (%zu bytes) cannot be made symmetric (%s); "
			 "VIADUCT_LOG=info tells why",
			 link_.globals.len, VipxErrorString(rc));
		return -1;
	}
	data->base = link_.globals.base;
	data->len = link_.globals.len;
	return 0;
}

static int open_nic(char error[BOOT_TEXT_MAX])
{
	VIP_NIC_ATTRIBUTES attrs;
	VIP_RETURN rc;

	ask_for_window(osh_env.heap_bytes);
	rc = VipOpenNic("nic0", &osh_pe.nic);
	if (rc == VIP_SUCCESS)
		rc = VipQueryNic(osh_pe.nic, &attrs);
	if (rc != VIP_SUCCESS || attrs.NicAddressLen > sizeof(osh_pe.peers[0].host)) {
		snprintf(error, BOOT_TEXT_MAX, "no NIC (%s); vi_info tells what is wrong",
			 VipxErrorString(rc));
		return -1;
	}
	VipErrorCallback(osh_pe.nic, NULL, on_error);
	address_of(&link_.here, attrs.LocalNicAddress, attrs.NicAddressLen, osh_pe.me);
	return 0;
}

static void take_card(int pe, const struct card *c, const struct card *mine)
{
	struct osh_peer *p = &osh_pe.peers[pe];

	p->host_len = (uint16_t)osh_min(c->host_len, sizeof(p->host));
	memcpy(p->host, c->host, sizeof(p->host));
	p->near = c->host_len == mine->host_len && memcmp(c->host, mine->host, c->host_len) == 0;
	p->same_program = c->program == mine->program && c->len[OSH_DATA] == mine->len[OSH_DATA];
	for (int s = 0; s < OSH_SEGMENTS; s++) {
		p->seg[s].base = c->base[s];
		p->seg[s].handle = c->handle[s];
	}
	osh_pe.any_far |= !p->near;
}

/* Tells all PEs of this one, and learns of them. */
static int exchange(char error[BOOT_TEXT_MAX])
{
	struct card mine = { .program = link_.globals.id }, *all;
	int near = 0, rc = -1;

	for (int s = 0; s < OSH_SEGMENTS; s++) {
		mine.base[s] = (uintptr_t)osh_pe.seg[s].base;
		mine.len[s] = osh_pe.seg[s].len;
		mine.handle[s] = osh_pe.seg[s].handle;
	}
	mine.host_len = link_.here.addr.HostAddressLen;
	memcpy(mine.host, link_.here.addr.HostAddress, mine.host_len);
	all = calloc((size_t)osh_pe.n, sizeof(*all));
	if (all == NULL || boot_exchange(&mine, sizeof(mine), all) != 0) {
		snprintf(error, BOOT_TEXT_MAX, "the PEs could not exchange their addresses");
		goto out;
	}
	for (int pe = 0; pe < osh_pe.n; pe++) {
		take_card(pe, &all[pe], &mine);
		near += osh_pe.peers[pe].near;
		if (all[pe].len[OSH_HEAP] != mine.len[OSH_HEAP]) {
			snprintf(
				error, BOOT_TEXT_MAX,
				"the heap of PE %d has %llu bytes and this one %zu: SHMEM_SYMMETRIC_SIZE "
				"must be equal everywhere",
				pe, (unsigned long long)all[pe].len[OSH_HEAP],
				osh_pe.seg[OSH_HEAP].len);
			goto out;
		}
	}
	osh_pe.crowded = near > sysconf(_SC_NPROCESSORS_ONLN);
	rc = 0;
out:
	free(all);
	return rc;
}

int osh_link_open(char error[BOOT_TEXT_MAX])
{
	struct osh_peer *self;

	osh_pe.peers = calloc((size_t)osh_pe.n, sizeof(*osh_pe.peers));
	if (osh_pe.peers == NULL || osh_globals_for_children(NULL) != 0) {
		snprintf(error, BOOT_TEXT_MAX, "out of memory");
		return -1;
	}
	if (open_nic(error) != 0 || alloc_heap(error) != 0 || adopt_data(error) != 0)
		return -1;
	/* Before anyone knows the address, so that none is refused. */
	if (pthread_create(&link_.serve, NULL, serve, NULL) != 0) {
		snprintf(error, BOOT_TEXT_MAX, "no thread to accept connections");
		return -1;
	}
	link_.serving = true;
	pthread_setname_np(link_.serve, "osh-serve");
	if (exchange(error) != 0)
		return -1;
	self = &osh_pe.peers[osh_pe.me];
	for (int s = 0; s < OSH_SEGMENTS; s++) {
		self->at[s] = osh_pe.seg[s].base;
		publish(self, s);
	}
	return 0;
}

static void close_list(struct mapping **list)
{
	struct mapping *m;

	while ((m = *list) != NULL) {
		*list = m->next;
		osh_link_disconnect(m->vi);
		free(m);
	}
}

void osh_link_close(void)
{
	struct osh_segment *heap = &osh_pe.seg[OSH_HEAP], *data = &osh_pe.seg[OSH_DATA];

	if (link_.serving) {
		pthread_cancel(link_.serve);
		pthread_join(link_.serve, NULL);
		link_.serving = false;
	}
	close_list(&link_.maps);
	close_list(&link_.accepted);
	if (data->len > 0) {
		VipDeregisterMem(osh_pe.nic, data->base, data->handle);
		osh_globals_for_children(NULL);
	}
	if (heap->len > 0)
		VipxFreeMem(osh_pe.nic, link_.heap, heap->handle);
	if (osh_pe.nic != NULL)
		VipCloseNic(osh_pe.nic);
	free(osh_pe.peers);
	memset(osh_pe.seg, 0, sizeof(osh_pe.seg));
	osh_pe.peers = NULL;
	osh_pe.nic = NULL;
}
