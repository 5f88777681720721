/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the routines of the specification call: everything below the types.  `fn` is the name of the
 * routine, for messages.  `pe` counts in the team of the context.  Lengths are bytes unless said.
 */
#ifndef OSH_OPS_H
#define OSH_OPS_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct osh_ctx;
struct osh_team;

/* The team of a handle of the program's: NULL for SHMEM_TEAM_INVALID. */
struct osh_team *osh_team(const void *handle);

/* ---- remote memory access: osh_fast.h has the forms for memory that is mapped ------------------- */

/* `nbi`: source or destination may be in use until quiet. */
void osh_put_slowly(const char *fn, struct osh_ctx *ctx, void *dest, const void *source, size_t n,
		    int pe, bool nbi);
void osh_get_slowly(const char *fn, struct osh_ctx *ctx, void *dest, const void *source, size_t n,
		    int pe, bool nbi);

/* `blocks` blocks of `block` bytes each; the strides are from the start of one to that of the next. */
void osh_put_strided(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
		     ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t block, size_t blocks,
		     int pe);
void osh_get_strided(const char *fn, struct osh_ctx *ctx, void *dest, const void *source,
		     ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t block, size_t blocks,
		     int pe);

/* ---- atomic operations ----------------------------------------------------------------------- */

enum osh_amo { /* of objects of 4 and 8 bytes */
	       OSH_AMO_FETCH,
	       OSH_AMO_SET,
	       OSH_AMO_SWAP,
	       OSH_AMO_COMPARE_SWAP,
	       OSH_AMO_ADD,
	       OSH_AMO_AND,
	       OSH_AMO_OR,
	       OSH_AMO_XOR,
};

/*
 * On an object of `size` bytes, 4 or 8.  The old value goes to *fetch, unless that is NULL: at the return,
 * or (nbi) at the next quiet.  With nbi it may return before the operation is executed.
 */
void osh_amo_slowly(const char *fn, struct osh_ctx *ctx, enum osh_amo op, size_t size, void *dest,
		    uint64_t value, uint64_t cond, void *fetch, int pe, bool nbi);

/* ---- order ----------------------------------------------------------------------------------- */

void osh_fence(struct osh_ctx *ctx);
void osh_quiet(struct osh_ctx *ctx);
void osh_pe_quiet(const char *fn, struct osh_ctx *ctx, const int *pes, size_t n);

/* ---- waiting --------------------------------------------------------------------------------- */

/*
 * One wait of a routine: a loop calls osh_wait() as long as its condition does not hold, and
 * osh_wait_end() afterwards.
 *
 *	struct osh_wait w = OSH_WAIT(fn, addr);
 *	while (!condition())
 *		osh_wait(&w);
 *	osh_wait_end(&w);
 */
struct osh_wait {
	const char *fn;
	const volatile void *addr; /* what is waited for, or NULL */
	int pe;			   /* the PE that is waited for, or -1 */
	uint32_t rounds;
	bool in_vain; /* that PE has left the job: this look is the last */
	bool at_end;  /* in the barrier at the end, in which PEs at their end still take part */
};
#define OSH_WAIT_PE(fn, addr, pe) ((struct osh_wait){ (fn), (addr), (pe), 0, false, false })
#define OSH_WAIT(fn, addr) OSH_WAIT_PE(fn, addr, -1)

void osh_wait(struct osh_wait *w);
void osh_wait_end(struct osh_wait *w);

/* ---- collectives ----------------------------------------------------------------------------- */

/*
 * An operation that combines n elements: into[i] = into[i] op from[i].  The regions do not
 * overlap, or are the same.
 */
typedef void (*osh_combine)(void *into, const void *from, size_t n);

int osh_sync(const char *fn, struct osh_team *team);
void osh_sync_all(const char *fn);
void osh_barrier_all(const char *fn);
/* Synchronises all PEs at their end, when they take part in nothing else any more. */
void osh_barrier_end(const char *fn);
int osh_broadcast(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n,
		  int root);
/* `n` bytes of each member, which may differ; and of equal length. */
int osh_collect(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n);
int osh_fcollect(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n);
/* `n` bytes for each member. */
int osh_alltoall(const char *fn, struct osh_team *team, void *dest, const void *source, size_t n);
/* `n` elements of `elem` bytes for each member; strides in elements. */
int osh_alltoalls(const char *fn, struct osh_team *team, void *dest, const void *source,
		  ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t elem, size_t n);
/* `n` elements of `elem` bytes. */
int osh_reduce(const char *fn, struct osh_team *team, void *dest, const void *source, size_t elem,
	       size_t n, osh_combine combine);
/* Prefix combination; `exclusive`: without the member's own, and of zeros for the first. */
int osh_scan(const char *fn, struct osh_team *team, void *dest, const void *source, size_t elem,
	     size_t n, osh_combine combine, bool exclusive);

/*
 * A team for an active set: start, start + 2^log_stride, ... `size` PEs of the world.  Kept by the library,
 * so that the next use finds it.  Collective over its members.  NULL: an invalid set, with a message.
 */
struct osh_team *osh_active_set(const char *fn, int start, int log_stride, int size);
/* The broadcast of active sets: the root's dest is left alone. */
int osh_broadcast_others(const char *fn, struct osh_team *team, void *dest, const void *source,
			 size_t n, int root);

/* ---- set-up, memory, teams, contexts, locks: as in the specification, on structures ------------ */

int osh_init(int requested, int *provided);
void osh_init_or_end(void);
void osh_finalize(void);
void osh_global_exit(int status) __attribute__((noreturn));
bool osh_initialized(void);
int osh_thread_level(void);
void osh_start_pes(void);
int osh_my_pe(void);
int osh_n_pes(void);
int osh_pe_accessible(int pe);
int osh_addr_accessible(const void *addr, int pe);
void *osh_ptr(const void *addr, int pe);
void *osh_team_ptr(struct osh_team *team, const void *addr, int pe);

void *osh_malloc(const char *fn, size_t n, long hints);
void *osh_calloc(const char *fn, size_t count, size_t size);
void *osh_align(const char *fn, size_t alignment, size_t n);
void *osh_realloc(const char *fn, void *p, size_t n);
void osh_free(const char *fn, void *p);

int osh_team_my_pe(struct osh_team *team); /* -1 for NULL, so all of these */
int osh_team_n_pes(struct osh_team *team);
int osh_team_get_num_contexts(struct osh_team *team);
int osh_team_translate_pe(struct osh_team *from, int pe, struct osh_team *to);
/* *made: a handle for the user, NULL for none. */
int osh_team_split_strided(const char *fn, struct osh_team *parent, int start, int stride, int size,
			   int num_contexts, void **made);
int osh_team_split_2d(const char *fn, struct osh_team *parent, int xrange, int x_num_contexts,
		      void **x_made, int y_num_contexts, void **y_made);
void osh_team_destroy(const char *fn, struct osh_team *team);

int osh_ctx_create(const char *fn, struct osh_team *team, long options, void **made);
void osh_ctx_destroy(const char *fn, struct osh_ctx *ctx);
/* The handle of its team. */
void *osh_ctx_team(struct osh_ctx *ctx);
/* A hint without effect.  With SHMEM_DEBUG its arguments are checked: bits that there are not, a config left out. */
void osh_ctx_session_start(const char *fn, struct osh_ctx *ctx, long unknown_options,
			   long unknown_fields, bool no_config);

void osh_set_lock(const char *fn, long *lock);
void osh_clear_lock(const char *fn, long *lock);
int osh_test_lock(const char *fn, long *lock);

#endif
