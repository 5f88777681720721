/* SPDX-License-Identifier: BSD-2-Clause */
/* The NIC of this PE and its segments, and what the PEs tell each other of these. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "osh_accept.h"
#include "osh_env.h"
#include "osh_globals.h"
#include "osh_grow.h"
#include "osh_limit.h"
#include "osh_map.h"
#include "osh_open.h"
#include "osh_origin.h"
#include "osh_wait.h"
#include "u_processors.h"

#define INTERNAL_BYTES (64u << 20) /* of the heap, for the library: 3,000 teams of 8 PEs */

/* What each PE tells the others. */
struct peer_info {
	uint64_t base[OSH_EXTENT], len[OSH_EXTENT], heap_max, program;
	VIP_MEM_HANDLE handle[OSH_EXTENT];
	bool apart; /* nobody can map the variables */
	uint16_t host_len;
	uint8_t host[22];
	struct u_processors processors;
	struct osh_origin origin;
};

static struct {
	struct osh_globals globals;
	bool apart; /* variables that are registered, but are not window memory */
	bool kept;  /* variables could not be given back */
	void *heap; /* what VipxAllocMem() gave */
	uint16_t host_len;
	uint8_t host[22]; /* address of this host */
} own;

/* Operations find a lost connection by themselves; the NIC would print each otherwise. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {}

/* Writes why there is no symmetric heap. */
static void no_heap(size_t bytes, VIP_RETURN rc, char error[BOOT_TEXT_MAX])
{
	char limit[OSH_LIMIT_TEXT];

	if (osh_limit_find(bytes, limit)[0] != '\0')
		snprintf(error, BOOT_TEXT_MAX, "no symmetric heap of %zu bytes: %s", bytes, limit);
	else
		snprintf(
			error, BOOT_TEXT_MAX,
			"no symmetric heap of %zu bytes (%s): the window of this host is too small or in "
			"use; lower SHMEM_SYMMETRIC_SIZE, or raise VIADUCT_WINDOW_BYTES of its agent, or "
			"the limits that it was started with (ulimit -f)",
			bytes, VipxErrorString(rc));
}

/* Makes the segment of the heap, the only one then, and sets internal_bytes. 0, or -1 with a line in `error`. */
static int alloc_heap(char error[BOOT_TEXT_MAX])
{
	VIP_MEM_ATTRIBUTES attrs = { NULL, VIP_TRUE, VIP_TRUE };
	struct osh_segment *heap = &osh_pe.seg[OSH_HEAP];
	VIP_NIC_ATTRIBUTES nic;
	VIP_PVOID at;
	VIP_RETURN rc;

	osh_pe.segments = OSH_DATA;
	osh_pe.internal_bytes =
		osh_align_up(INTERNAL_BYTES + (size_t)osh_pe.n * 4096, OSH_ALIGN_MAX);
	heap->len = osh_align_up(osh_pe.internal_bytes + osh_env.heap_bytes, 4096);
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
		no_heap(heap->len, rc, error);
		return -1;
	}
	own.heap = at;
	heap->base = (uint8_t *)osh_align_up((uintptr_t)at, OSH_ALIGN_MAX);
	return 0;
}

/*
 * Makes a piece the segment `data`. Variables that cannot be adopted stay where they are, and are only registered: then
 * each access of another PE is a message, and no PE is near this one. After an error *data has neither base nor length.
 */
static VIP_RETURN adopt_piece(struct osh_piece *piece, struct osh_segment *data)
{
	VIP_MEM_ATTRIBUTES attrs = { NULL, VIP_TRUE, VIP_TRUE };
	VIP_RETURN rc;

	osh_globals_adopted(piece, true);
	rc = VipxAdoptMem(osh_pe.nic, piece->base, piece->len, &attrs, 0, &data->handle);
	osh_globals_adopted(piece, rc == VIP_SUCCESS);
	if (rc == VIP_ERROR_NOT_SUPPORTED) {
		own.apart = true;
		rc = VipRegisterMem(osh_pe.nic, piece->base, piece->len, &attrs, &data->handle);
	}
	if (rc == VIP_SUCCESS) {
		data->base = piece->base;
		data->len = piece->len;
	}
	return rc;
}

/* Makes segments of the executable's variables. 0, or -1 with a line in `error`; those made by then stay. */
static int adopt_data(char error[BOOT_TEXT_MAX])
{
	struct osh_globals *g = &own.globals;
	VIP_RETURN rc;

	if (own.kept) {
		snprintf(
			error, BOOT_TEXT_MAX,
			"not again: the last shmem_finalize could not stop other threads, and left the "
			"program's variables in shared memory (a debugger, or a filter of system calls)");
		return -1;
	}
	osh_globals_find(g);
	if (osh_globals_for_children(g) != 0) {
		snprintf(error, BOOT_TEXT_MAX, "out of memory");
		return -1;
	}
	for (int i = 0; i < g->count; i++) {
		rc = adopt_piece(&g->piece[i], &osh_pe.seg[osh_pe.segments]);
		if (rc != VIP_SUCCESS) {
			snprintf(
				error, BOOT_TEXT_MAX,
				"the program's variables (%zu bytes) cannot be made symmetric (%s); "
				"VIADUCT_LOG=info tells why",
				g->piece[i].len, VipxErrorString(rc));
			return -1;
		}
		osh_pe.segments++;
	}
	return 0;
}

/* Opens the NIC and notes the address of this host. 0, or -1 with a line in `error`. */
static int open_nic(char error[BOOT_TEXT_MAX])
{
	char limit[OSH_LIMIT_TEXT] = "";
	VIP_NIC_ATTRIBUTES attrs;
	VIP_RETURN rc;

	rc = VipOpenNic("nic0", &osh_pe.nic);
	if (rc == VIP_SUCCESS)
		rc = VipQueryNic(osh_pe.nic, &attrs);
	if (rc != VIP_SUCCESS || attrs.NicAddressLen > sizeof(osh_pe.peers[0].host)) {
		if (rc == VIP_ERROR_RESOURCE)
			osh_limit_find(0, limit);
		snprintf(error, BOOT_TEXT_MAX, "no NIC (%s)%s%s", VipxErrorString(rc),
			 limit[0] != '\0' ? ": " : "",
			 limit[0] != '\0' ? limit : "; vi_info tells what is wrong");
		return -1;
	}
	VipErrorCallback(osh_pe.nic, NULL, on_error);
	own.host_len = attrs.NicAddressLen;
	memcpy(own.host, attrs.LocalNicAddress, own.host_len);
	return 0;
}

/* Is that PE on the host of this one? */
static bool is_here(const struct peer_info *c, const struct peer_info *mine)
{
	return c->host_len == mine->host_len && memcmp(c->host, mine->host, c->host_len) == 0;
}

/* Notes in osh_pe.peers what PE `pe` has told, and whether it is near; `mine`: what this PE has told. */
static void take_peer_info(int pe, const struct peer_info *c, const struct peer_info *mine)
{
	struct osh_peer *p = &osh_pe.peers[pe];

	p->host_len = (uint16_t)osh_min(c->host_len, sizeof(p->host));
	memcpy(p->host, c->host, sizeof(p->host));
	/* To be near is mutual, so that all members of a team choose the same algorithms. */
	p->near = pe == osh_pe.me || (!c->apart && !mine->apart && is_here(c, mine));
	p->same_program = c->program == mine->program;
	for (int s = 0; s < OSH_EXTENT; s++) {
		p->seg[s].base = c->base[s];
		p->seg[s].handle = c->handle[s];
	}
	osh_pe.has_far_peers |= !p->near;
}

/*
 * Writes that PE `pe` and this one are on different fabrics: they would wait for each other for ever. The lower
 * number comes first, so that all say the same.
 */
static void say_origins(int pe, const struct peer_info *theirs, const struct peer_info *mine,
			char error[BOOT_TEXT_MAX])
{
	char text[2][OSH_ORIGIN_TEXT];
	bool first = pe < osh_pe.me;

	osh_origin_text(first ? &theirs->origin : &mine->origin, text[0]);
	osh_origin_text(first ? &mine->origin : &theirs->origin, text[1]);
	snprintf(error, BOOT_TEXT_MAX,
		 "PE %d (%s) and PE %d (%s) are on no fabric in common; see VIADUCT_FABRIC",
		 first ? pe : osh_pe.me, text[0], first ? osh_pe.me : pe, text[1]);
}

/* Are heaps alike, and may grow alike? 0, or -1 with a line in `error`. */
static int check_heap(int pe, const struct peer_info *theirs, const struct peer_info *mine,
		      char error[BOOT_TEXT_MAX])
{
	bool sizes = theirs->len[OSH_HEAP] != mine->len[OSH_HEAP];

	if (!sizes && theirs->heap_max == mine->heap_max)
		return 0;
	snprintf(error, BOOT_TEXT_MAX,
		 "the heap of PE %d %s %llu bytes and this one %s%llu: %s must be equal everywhere",
		 pe, sizes ? "has" : "may grow to",
		 (unsigned long long)(sizes ? theirs->len[OSH_HEAP] : theirs->heap_max),
		 sizes ? "" : "to ",
		 (unsigned long long)(sizes ? mine->len[OSH_HEAP] : mine->heap_max),
		 sizes ? "SHMEM_SYMMETRIC_SIZE" : "SHMEM_VIADUCT_HEAP_MAX");
	return -1;
}

/*
 * Tells all PEs of this one, which has its segments by then, and learns of them; all PEs call it. Sets
 * `oversubscribed`, too. 0; or -1 with a line: the job has ended, or they do not fit together.
 */
static int exchange(char error[BOOT_TEXT_MAX])
{
	struct peer_info mine = { .heap_max = osh_env.heap_max,
				  .program = own.globals.id,
				  .apart = own.apart },
			 *all;
	struct u_processors_crowd crowd;
	int rc = -1;

	for (int s = 0; s < OSH_EXTENT; s++) {
		mine.base[s] = (uintptr_t)osh_pe.seg[s].base;
		mine.len[s] = osh_pe.seg[s].len;
		mine.handle[s] = osh_pe.seg[s].handle;
	}
	osh_origin_read(&mine.origin);
	u_processors_read(&mine.processors);
	u_processors_crowd_begin(&crowd, &mine.processors);
	mine.host_len = own.host_len;
	memcpy(mine.host, own.host, own.host_len);
	all = calloc((size_t)osh_pe.n, sizeof(*all));
	osh_wait_show("shmem_init", NULL, -1);
	if (all != NULL)
		rc = boot_exchange(&mine, sizeof(mine), all);
	osh_wait_shown_end();
	if (rc != 0) {
		snprintf(error, BOOT_TEXT_MAX, "the PEs could not exchange their addresses%s",
			 rc == -EBADMSG ? ": they run with different versions of the library" : "");
		goto out;
	}
	for (int pe = 0; pe < osh_pe.n; pe++) {
		if (!osh_origins_agree(&all[pe].origin, &mine.origin, is_here(&all[pe], &mine))) {
			say_origins(pe, &all[pe], &mine, error);
			rc = -1;
			goto out;
		}
		take_peer_info(pe, &all[pe], &mine);
		u_processors_crowd_add(&crowd, &all[pe].processors);
		rc = check_heap(pe, &all[pe], &mine, error);
		if (rc != 0)
			goto out;
	}
	osh_pe.oversubscribed = u_processors_crowd_is(&crowd);
out:
	free(all);
	return rc;
}

int osh_open(char error[BOOT_TEXT_MAX])
{
	char limit[OSH_LIMIT_TEXT];
	struct osh_peer *self;

	osh_pe.peers = calloc((size_t)osh_pe.n, sizeof(*osh_pe.peers));
	if (osh_pe.peers == NULL || (!own.kept && osh_globals_for_children(NULL) != 0)) {
		snprintf(error, BOOT_TEXT_MAX, "out of memory");
		return -1;
	}
	if (open_nic(error) != 0 || alloc_heap(error) != 0 || adopt_data(error) != 0)
		return -1;
	/* Before anyone knows the address, so that none is refused. */
	osh_conn_init(own.host, own.host_len);
	if (osh_accept_begin() != 0) {
		snprintf(error, BOOT_TEXT_MAX, "no thread to accept connections%s%s",
			 osh_limit_find(0, limit)[0] != '\0' ? ": " : "", limit);
		return -1;
	}
	if (exchange(error) != 0)
		return -1;
	self = &osh_pe.peers[osh_pe.me];
	for (int s = 0; s < osh_pe.segments; s++) {
		self->at[s] = osh_pe.seg[s].base;
		osh_map_publish(self, s);
	}
	return 0;
}

/*
 * Takes the variables out of shared memory. What cannot be given back, where other threads cannot be stopped any
 * more, stays: shared with nobody, and copied for children.
 */
static void release_data(void)
{
	for (int i = 0; i < own.globals.count && OSH_DATA + i < osh_pe.segments; i++) {
		struct osh_segment *data = &osh_pe.seg[OSH_DATA + i];

		if (VipDeregisterMem(osh_pe.nic, data->base, data->handle) == VIP_SUCCESS)
			own.globals.piece[i].adopted = false;
		own.kept |= own.globals.piece[i].adopted;
	}
	if (!own.kept)
		osh_globals_for_children(NULL);
	own.apart = false;
}

void osh_close(void)
{
	struct osh_segment *heap = &osh_pe.seg[OSH_HEAP];

	osh_accept_end();
	osh_map_end();
	release_data();
	osh_grow_end();
	if (heap->len > 0)
		VipxFreeMem(osh_pe.nic, own.heap, heap->handle);
	if (osh_pe.nic != NULL)
		VipCloseNic(osh_pe.nic);
	free(osh_pe.peers);
	memset(osh_pe.seg, 0, sizeof(osh_pe.seg));
	osh_pe.segments = 0;
	osh_pe.peers = NULL;
	osh_pe.nic = NULL;
}
