/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "osh_accept.h"
#include "osh_env.h"
#include "osh_limit.h"
#include "osh_map.h"

#define MAP_TRIES 6 /* each waits 5 s for an answer */

/* The connections over which memory is mapped. */
struct mapping {
	VIP_VI_HANDLE vi;
	int pe;
	struct mapping *next;
};

static struct {
	pthread_mutex_t lock; /* of the list and of `mapping` of the peers */
	pthread_cond_t mapped;
	struct mapping *list;
} maps = { .lock = PTHREAD_MUTEX_INITIALIZER, .mapped = PTHREAD_COND_INITIALIZER };

void osh_map_publish(struct osh_peer *p, int s)
{
	/* A: `at` before the span; pairs with osh_near(). */
	if (!osh_env.debug)
		atomic_store_explicit(&p->span[s], osh_pe.seg[s].len, memory_order_release);
}

void osh_map_publish_extent(int pe, int s)
{
	/* A: `at` before the span; pairs with osh_extent_near(). */
	if (!osh_env.debug)
		atomic_store_explicit(&osh_extent_of(pe, s)->span, osh_pe.seg[s].len,
				      memory_order_release);
}

/*
 * Maps n bytes of a PE.  One that is stopped does not answer: it is asked again over the same connection, on which
 * mappings of its own may depend.
 */
static VIP_RETURN map_remote(VIP_VI_HANDLE vi, const struct osh_remote *r, size_t n, VIP_PVOID *at)
{
	int tries = 0;
	VIP_RETURN rc;

	do {
		rc = VipxMapRemote(vi, r->base, n, r->handle, at);
	} while (rc == VIP_TIMEOUT && ++tries < MAP_TRIES);
	return rc;
}

/* Maps segment s of a PE, no extent, and publishes it, if it can be mapped. */
static VIP_RETURN try_segment(VIP_VI_HANDLE vi, int pe, int s)
{
	struct osh_peer *p = &osh_pe.peers[pe];
	VIP_RETURN rc;
	VIP_PVOID at;

	rc = map_remote(vi, &p->seg[s], osh_pe.seg[s].len, &at);
	if (rc == VIP_SUCCESS) {
		p->at[s] = at;
		osh_map_publish(p, s);
	}
	return rc;
}

/* Ends the job: segment s of a PE could not be mapped, for that reason. */
static _Noreturn void map_failed(const char *fn, int pe, int s, VIP_RETURN rc)
{
	char limit[OSH_LIMIT_TEXT] = "";

	osh_conn_check_agent();
	if (rc == VIP_ERROR_RESOURCE)
		osh_limit_find(osh_pe.seg[s].len, limit);
	osh_fatal_lost("%s: the memory of PE %d cannot be mapped (%s)%s%s", fn, pe,
		       VipxErrorString(rc), limit[0] != '\0' ? ": " : "", limit);
}

/* Maps segment s of a PE and publishes it; a failure ends the job. */
static void map_segment(const char *fn, VIP_VI_HANDLE vi, int pe, int s)
{
	VIP_RETURN rc = try_segment(vi, pe, s);

	if (rc != VIP_SUCCESS)
		map_failed(fn, pe, s, rc);
}

/*
 * Maps segment s of a PE, the first, and returns the connection over which it did: one that the PE made, or a new
 * one. The PE may have given up the one that it made, and asked again, or be stopped before it had it: then the
 * connection is lost. Another failure ends the job.
 */
static VIP_VI_HANDLE map_first(const char *fn, int pe, int s)
{
	VIP_VI_HANDLE vi;
	VIP_RETURN rc;

	while (osh_accept_take(pe, &vi)) {
		rc = try_segment(vi, pe, s);
		if (rc == VIP_SUCCESS)
			return vi;
		if (rc != VIP_INVALID_STATE)
			map_failed(fn, pe, s, rc);
		osh_conn_close(vi);
	}
	vi = osh_conn_open(fn, pe);
	map_segment(fn, vi, pe, s);
	return vi;
}

/*
 * Maps all segments of a near PE, the heap last, and returns the mapping, for the list; a failure ends the job.  The
 * caller has set `mapping`, and has not got the lock.
 */
static struct mapping *map_peer(const char *fn, int pe)
{
	int s = osh_pe.peers[pe].same_program && osh_pe.segments > OSH_DATA ? OSH_DATA : OSH_HEAP;
	struct mapping *m = malloc(sizeof(*m));

	if (m == NULL)
		osh_fatal("%s: out of memory", fn);
	m->pe = pe;
	m->vi = map_first(fn, pe, s);
	if (s == OSH_HEAP)
		return m;
	while (++s < osh_pe.segments)
		map_segment(fn, m->vi, pe, s);
	map_segment(fn, m->vi, pe, OSH_HEAP);
	return m;
}

bool osh_map(const char *fn, int pe)
{
	struct osh_peer *p = &osh_pe.peers[pe];
	struct mapping *m;

	if (pe == osh_pe.me)
		return true;
	if (!p->near)
		return false;
	pthread_mutex_lock(&maps.lock);
	while (p->mapping)
		pthread_cond_wait(&maps.mapped, &maps.lock);
	if (p->at[OSH_HEAP] == NULL) {
		p->mapping = true;
		pthread_mutex_unlock(&maps.lock);
		m = map_peer(fn, pe);
		pthread_mutex_lock(&maps.lock);
		p->mapping = false;
		m->next = maps.list;
		maps.list = m;
		pthread_cond_broadcast(&maps.mapped);
	}
	pthread_mutex_unlock(&maps.lock);
	return true;
}

/* The connection over which the memory of a PE is mapped, as it is. The caller has the lock. */
static VIP_VI_HANDLE mapped_over(int pe)
{
	struct mapping *m = maps.list;

	while (m->pe != pe)
		m = m->next;
	return m->vi;
}

/*
 * Maps the extent s of a near PE and publishes it; a failure ends the job.  The PE says in its heap, which is mapped,
 * where it has it.  The caller has set `mapping`, and has not got the lock.
 */
static void map_extent(const char *fn, VIP_VI_HANDLE vi, int pe, int s)
{
	const struct osh_extent_table *table =
		(const void *)(osh_pe.peers[pe].at[OSH_HEAP] + osh_pe.extents_at);
	struct osh_remote where = table->at[s - OSH_EXTENT];
	VIP_PVOID at;
	VIP_RETURN rc = map_remote(vi, &where, osh_pe.seg[s].len, &at);

	if (rc != VIP_SUCCESS)
		map_failed(fn, pe, s, rc);
	osh_extent_of(pe, s)->at = at;
	osh_map_publish_extent(pe, s);
}

uint8_t *osh_map_segment(const char *fn, int pe, int s)
{
	struct osh_peer *p = &osh_pe.peers[pe];
	struct osh_peer_extent *x;
	VIP_VI_HANDLE vi;

	if (!osh_map(fn, pe))
		return NULL;
	if (s < OSH_EXTENT)
		return p->at[s];
	x = osh_extent_of(pe, s);
	pthread_mutex_lock(&maps.lock);
	while (p->mapping)
		pthread_cond_wait(&maps.mapped, &maps.lock);
	if (x->at == NULL) {
		p->mapping = true;
		vi = mapped_over(pe);
		pthread_mutex_unlock(&maps.lock);
		map_extent(fn, vi, pe, s);
		pthread_mutex_lock(&maps.lock);
		p->mapping = false;
		pthread_cond_broadcast(&maps.mapped);
	}
	pthread_mutex_unlock(&maps.lock);
	return x->at;
}

void osh_map_end(void)
{
	struct mapping *m;

	while ((m = maps.list) != NULL) {
		maps.list = m->next;
		osh_conn_close(m->vi);
		free(m);
	}
}
