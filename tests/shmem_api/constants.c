/* SPDX-License-Identifier: BSD-2-Clause */
/* Constants, types and handles where the language requires constants; C and C++. */
#include <shmem.h>
#include <shmemx.h>
#include <stddef.h>

/* Handles in static initializers. */
static shmem_ctx_t contexts[] = { SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID };
static shmem_team_t teams[] = { SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID };
static shmem_team_config_t team_config = { 1 };
static shmem_ctx_session_config_t session_config = { 100 };

/* Lengths of arrays. */
static long sync_arrays[SHMEM_SYNC_SIZE + SHMEM_BARRIER_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE +
			SHMEM_COLLECT_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE + SHMEM_ALLTOALL_SYNC_SIZE +
			SHMEM_ALLTOALLS_SYNC_SIZE] = { SHMEM_SYNC_VALUE, _SHMEM_SYNC_VALUE };
static long old_arrays[_SHMEM_BARRIER_SYNC_SIZE + _SHMEM_BCAST_SYNC_SIZE +
		       _SHMEM_COLLECT_SYNC_SIZE + _SHMEM_REDUCE_SYNC_SIZE];
static double work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + _SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static char name[SHMEM_MAX_NAME_LEN + _SHMEM_MAX_NAME_LEN];
static const char vendor[] = SHMEM_VENDOR_STRING;
static const char old_vendor[] = _SHMEM_VENDOR_STRING;

/* Macros that #if evaluates. */
#if SHMEM_MAJOR_VERSION != 1 || SHMEM_MINOR_VERSION != 6
#error "not 1.6"
#endif
#if _SHMEM_MAJOR_VERSION != SHMEM_MAJOR_VERSION || _SHMEM_MINOR_VERSION != SHMEM_MINOR_VERSION
#error "two versions"
#endif

/* Bits are distinct, levels increase: a length of -1 does not compile. */
#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1]
HOLDS(levels, SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED &&
		      SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED &&
		      SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE);
HOLDS(ctx_bits, (SHMEM_CTX_SERIALIZED ^ SHMEM_CTX_PRIVATE ^ SHMEM_CTX_NOSTORE ^
		 SHMEM_CTX_SESSION_BATCH) == (SHMEM_CTX_SERIALIZED + SHMEM_CTX_PRIVATE +
					      SHMEM_CTX_NOSTORE + SHMEM_CTX_SESSION_BATCH));
HOLDS(masks, SHMEM_TEAM_NUM_CONTEXTS != 0 && SHMEM_CTX_SESSION_TOTAL_OPS != 0);
HOLDS(hints, (SHMEM_MALLOC_ATOMICS_REMOTE & SHMEM_MALLOC_SIGNAL_REMOTE) == 0 &&
		     SHMEM_MALLOC_ATOMICS_REMOTE != 0 && SHMEM_MALLOC_SIGNAL_REMOTE != 0);
HOLDS(name_fits, sizeof(SHMEM_VENDOR_STRING) <= SHMEM_MAX_NAME_LEN);
HOLDS(old_cmp, _SHMEM_CMP_EQ == SHMEM_CMP_EQ && _SHMEM_CMP_NE == SHMEM_CMP_NE &&
		       _SHMEM_CMP_GT == SHMEM_CMP_GT && _SHMEM_CMP_GE == SHMEM_CMP_GE &&
		       _SHMEM_CMP_LT == SHMEM_CMP_LT && _SHMEM_CMP_LE == SHMEM_CMP_LE);

static int switch_labels(int value)
{
	switch (value) {
	case SHMEM_CMP_EQ:
	case SHMEM_CMP_NE:
	case SHMEM_CMP_GT:
	case SHMEM_CMP_GE:
	case SHMEM_CMP_LT:
	case SHMEM_CMP_LE:
		return 1;
	default:
		break;
	}
	switch (value) {
	case SHMEM_SIGNAL_SET:
	case SHMEM_SIGNAL_ADD:
		return 2;
	default:
		break;
	}
	switch (value) {
	case SHMEM_THREAD_SINGLE:
	case SHMEM_THREAD_FUNNELED:
	case SHMEM_THREAD_SERIALIZED:
	case SHMEM_THREAD_MULTIPLE:
		return 3;
	default:
		return 4;
	}
}

/* Pointers to functions, by the names of the specification. */
static void (*put)(long *, const long *, size_t, int) = shmem_long_put;
static void (*wait_until)(long *, int, long) = shmem_wait_until;
static void (*active_sync)(int, int, int, long *) = shmem_sync;
static void (*set_lock)(long *) = shmem_set_lock;
static int (*old_pe)(void) = _my_pe;
static void *(*old_malloc)(size_t) = shmalloc;

int main(void)
{
	return !(switch_labels(SHMEM_CMP_EQ) + (contexts[0] == contexts[1]) +
		 (teams[0] == teams[1]) + team_config.num_contexts + (int)session_config.total_ops +
		 (int)sync_arrays[0] + (int)old_arrays[0] + (int)work[0] + name[0] + vendor[0] +
		 old_vendor[0] + (put == NULL) + (wait_until == NULL) + (active_sync == NULL) +
		 (set_lock == NULL) + (old_pe == NULL) + (old_malloc == NULL));
}
