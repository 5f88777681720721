// SPDX-License-Identifier: BSD-2-Clause
#include "vs_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "vs_late.h"
#include "vs_obj.h"

#define OBJS_AT_ONCE 64

struct vs_chunk *_Atomic vs_chunks[VS_CHUNKS];

/* Protects the free list and new chunks; no call on the way to the kernel takes it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread _Atomic bool held __attribute__((tls_model("initial-exec")));
static struct vs_obj *free_list;
_Atomic unsigned int vs_table_objects;

/* Takes the lock.  False: a signal handler has interrupted this thread, which has it. */
static bool lock_table(void)
{
	if (vs_unlikely(atomic_load_explicit(&held, memory_order_relaxed)))
		return false;
	atomic_store_explicit(&held, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	pthread_mutex_lock(&lock);
	return true;
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&lock);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&held, false, memory_order_relaxed);
}

/* ---- objects ---- */

static void *map_pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Under the lock: puts new objects into the free list; none without memory. */
static void refill_locked(void)
{
	struct vs_obj *more = map_pages(OBJS_AT_ONCE * sizeof(*more));
	size_t i;

	for (i = 0; more && i < OBJS_AT_ONCE; i++) {
		more[i].next_free = free_list;
		free_list = &more[i];
	}
}

struct vs_obj *vs_obj_create(enum vs_kind kind, void (*end)(struct vs_obj *o))
{
	struct vs_obj *o;

	if (!lock_table())
		return NULL;
	if (!free_list)
		refill_locked();
	o = free_list;
	if (o)
		free_list = o->next_free;
	unlock_table();
	if (!o)
		return NULL;
	/* Not the count: a look-up that came late may be reading it. */
	memset((char *)o + sizeof(o->refs), 0, sizeof(*o) - sizeof(o->refs));
	o->kind = kind;
	o->end = end;
	atomic_store_explicit(&o->refs, 1, memory_order_release);
	return o;
}

void vs_hold(struct vs_obj *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

void vs_put(struct vs_obj *o)
{
	if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1) {
		o->end(o);
		if (lock_table()) { /* else it is not used again */
			o->next_free = free_list;
			free_list = o;
			unlock_table();
		}
	}
	vs_late_check();
}

bool vs_hold_living(struct vs_obj *o)
{
	uint32_t refs = atomic_load_explicit(&o->refs, memory_order_relaxed);

	while (refs != 0) {
		if (atomic_compare_exchange_weak_explicit(
			    &o->refs, &refs, refs + 1, memory_order_acquire, memory_order_relaxed))
			return true;
	}
	return false;
}

struct vs_obj *vs_get_slow(int fd)
{
	struct vs_obj *o;

	while ((o = vs_peek(fd)) != NULL) {
		if (!vs_hold_living(o))
			continue;
		if (vs_peek(fd) == o)
			return o;
		vs_put(o);
	}
	return NULL;
}

/* ---- the table ---- */

/* The chunk of a descriptor, made now if there is none; NULL: no memory, or the lock is not to be had. */
static struct vs_chunk *chunk_of(int fd)
{
	struct vs_chunk *_Atomic *at = &vs_chunks[(unsigned int)fd / VS_CHUNK];
	struct vs_chunk *c;

	c = atomic_load_explicit(at, memory_order_acquire);
	if (c || !lock_table())
		return c;
	c = atomic_load_explicit(at, memory_order_relaxed);
	if (!c) {
		c = map_pages(sizeof(*c));
		atomic_store_explicit(at, c, memory_order_release);
	}
	unlock_table();
	return c;
}

int vs_table_set(int fd, struct vs_obj *o)
{
	struct vs_obj *before;
	struct vs_chunk *c;

	if ((unsigned int)fd >= VS_CHUNK * VS_CHUNKS)
		return -EMFILE;
	c = chunk_of(fd);
	if (!c)
		return -ENOMEM;
	vs_hold(o);
	atomic_fetch_add(&o->fds, 1);
	atomic_fetch_add(&vs_table_objects, 1);
	before = atomic_exchange(&c->at[(unsigned int)fd % VS_CHUNK], o);
	if (before) { /* the descriptor was closed by a call that is not replaced */
		atomic_fetch_sub(&vs_table_objects, 1);
		atomic_fetch_sub(&before->fds, 1);
		vs_put(before);
	}
	return 0;
}

struct vs_obj *vs_table_take(int fd)
{
	struct vs_chunk *c;
	struct vs_obj *o;

	if (!vs_peek(fd))
		return NULL;
	c = atomic_load_explicit(&vs_chunks[(unsigned int)fd / VS_CHUNK], memory_order_acquire);
	o = atomic_exchange(&c->at[(unsigned int)fd % VS_CHUNK], NULL);
	if (o) {
		atomic_fetch_sub(&vs_table_objects, 1);
		atomic_fetch_sub(&o->fds, 1);
	}
	return o;
}

int vs_table_next(int from)
{
	unsigned int fd = from < 0 ? 0 : (unsigned int)from;
	struct vs_chunk *c;

	if (vs_table_count() == 0)
		return -1;
	for (; fd < VS_CHUNK * VS_CHUNKS; fd++) {
		c = atomic_load_explicit(&vs_chunks[fd / VS_CHUNK], memory_order_acquire);
		if (!c)
			fd |= VS_CHUNK - 1;
		else if (atomic_load_explicit(&c->at[fd % VS_CHUNK], memory_order_acquire))
			return (int)fd;
	}
	return -1;
}

void vs_table_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
