# SPDX-License-Identifier: BSD-2-Clause
"""Routines: set-up, threads, memory, teams, contexts, sessions, order, locks, profiling."""
from spec_types import Family as F, Proto as P

SETUP = [
    F("Start of the library", "9.1", "1.0", """
Starts the library in this PE. Collective: every PE of the job makes the call, and none returns before all have made it. It
may be called again, each time with a finalize of its own; only the first starts anything. After the last finalize it starts the library
again. A PE that cannot start, or finds a bad environment variable, ends the job with a message.

Until this returns only shmem_query_initialized(), shmem_query_thread() and shmem_init_thread() may be called.
""", P("void shmem_init(void)")),
    F("End of the library", "9.1", "1.0", """
Undoes one start. Collective. Each call is a barrier of all PEs and completes what was issued; the last one also destroys teams and
shareable contexts and frees the symmetric heap. The process goes on and may use everything but OpenSHMEM. It is called by the thread
that started the library.
""", P("void shmem_finalize(void)")),
    F("End of the job", "9.1", "1.2", """
Ends all PEs of the job; any one PE may call it, also while the others wait, compute or sleep. The process of the caller ends as by
exit(): functions of atexit(), static destructors and unwritten output have two seconds. status: what the launcher returns.
""", P("SHMEMX_NORETURN void shmem_global_exit(int status)")),
    F("PE number and number of PEs", "9.1", "1.0", """
The number of this PE, from 0, and the number of PEs of the job. Both are constant. Local; thread-safe.
""", P("int shmem_my_pe(void)"), P("int shmem_n_pes(void)")),
    F("Whether the library is started", "9.1", "1.6", """
*initialized becomes 1 while the library is started, else 0. May be called at any time by any thread, also before the start and after the end.
""", P("void shmem_query_initialized(int *initialized)")),
    F("Whether PEs and addresses can be reached", "9.1", "1.0", """
shmem_pe_accessible: 1 if pe is a PE of this job that one-sided operations reach, else 0. shmem_addr_accessible: 1 if addr is symmetric,
i.e. in the heap or in writable global or static data of the executable, and pe can be reached, else 0. Local; thread-safe.
""", P("int shmem_pe_accessible(int pe)"), P("int shmem_addr_accessible(const void *addr, int pe)")),
    F("Pointers to memory of others", "9.1", "1.0", """
A pointer by which this PE may load from and store to the object of PE pe that has the symmetric address dest here; NULL if there is none, e.g. because
pe runs on another host. It is good until the object is freed. Stores through it are ordered by shmem_fence() and shmem_quiet(). The form with a
team counts pe in that team, and gives NULL for SHMEM_TEAM_INVALID.
""", P("void *shmem_ptr(const void *dest, int pe)"),
      P("void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe)")),
    F("Version", "9.1", "1.2", """
The values of SHMEM_MAJOR_VERSION and SHMEM_MINOR_VERSION, and of SHMEM_VENDOR_STRING. name: room for SHMEM_MAX_NAME_LEN bytes, the terminating zero among them.
Local; thread-safe.
""", P("void shmem_info_get_version(int *major, int *minor)"), P("void shmem_info_get_name(char *name)")),
    F("Start of old programs", "9.1", "1.0", """
start_pes starts the library unless it is started; the end of the process finalizes it. npes is ignored. _my_pe and _num_pes are shmem_my_pe and
shmem_n_pes.
""", P("void start_pes(int npes)"), P("int _my_pe(void)"), P("int _num_pes(void)"),
      deprecated="1.2"),
]

THREADS = [
    F("Start with threads", "9.2", "1.4", """
As shmem_init(), for a program that needs the level `requested` of SHMEM_THREAD_SINGLE, _FUNNELED, _SERIALIZED and _MULTIPLE. *provided: the level
of this library, which may be higher. At SHMEM_THREAD_MULTIPLE any thread may call any routine at any time, but no two threads may be in a
collective of the same team at once. A call that blocks blocks its own thread only. Returns 0, or another value when the library cannot start.
""", P("int shmem_init_thread(int requested, int *provided)")),
    F("Level of threads", "9.2", "1.4", """
The level of this library. May be called at any time by any thread.
""", P("void shmem_query_thread(int *provided)")),
]

MEMORY = [
    F("Allocate", "9.3", "1.2", """
A block of the symmetric heap. Collective: all PEs of the job call with equal arguments; the block is at the same offset of every PE's heap, not
necessarily at the same address. Returns after a barrier of all PEs, so that the block may be used everywhere at once. A size of 0 gives NULL and no barrier;
a block that the heap has no room for gives NULL on every PE. shmem_malloc: aligned for any type. shmem_calloc: filled with zeros. shmem_align: at a
multiple of `alignment`, a power of two; OpenSHMEM 1.6 promises multiples of sizeof(void *) alone. shmem_malloc_with_hints: SHMEM_MALLOC_* bits, of which none is needed here.
""", P("void *shmem_malloc(size_t size)"), P("void *shmem_calloc(size_t count, size_t size)"),
      P("void *shmem_align(size_t alignment, size_t size)"),
      P("void *shmem_malloc_with_hints(size_t size, long hints)")),
    F("Reallocate", "9.3", "1.2", """
Changes the size of a block. Collective, with barriers. What fits of the content is kept. A NULL ptr allocates; a size of 0 frees. Without room NULL is returned on every PE and
the block stays as it is.
""", P("void *shmem_realloc(void *ptr, size_t size)")),
    F("Free", "9.3", "1.2", """
Gives a block back. Collective. All PEs come to a barrier first, so that nobody uses the block any more; operations on the default context are
complete then. NULL is ignored, without a barrier.
""", P("void shmem_free(void *ptr)")),
    F("Old names of allocation", "9.3", "1.0", """
shmem_malloc, shmem_free, shmem_realloc and shmem_align.
""", P("void *shmalloc(size_t size)"), P("void shfree(void *ptr)"),
      P("void *shrealloc(void *ptr, size_t size)"),
      P("void *shmemalign(size_t alignment, size_t size)"), deprecated="1.2"),
]

TEAMS = [
    F("Team rank and size", "9.4", "1.5", """
The number of this PE in the team, and the number of its PEs; -1 for SHMEM_TEAM_INVALID. Local; thread-safe.
""", P("int shmem_team_my_pe(shmem_team_t team)"), P("int shmem_team_n_pes(shmem_team_t team)")),
    F("Configuration of a team", "9.4", "1.5", """
Stores into *config the values that `mask` (SHMEM_TEAM_NUM_CONTEXTS) names, as they are in effect. With mask 0 config may be NULL. Returns 0, or another value
for SHMEM_TEAM_INVALID.
""", P("int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)")),
    F("Numbers of a PE in two teams", "9.4", "1.5", """
The number in dest_team of the PE that is src_pe in src_team; -1 if it is not in both, or a team is SHMEM_TEAM_INVALID. Local; thread-safe.
""", P("int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)")),
    F("New teams", "9.4", "1.5", """
Collective over the parent. shmem_team_split_strided: the team of the `size` PEs start, start + stride, ... of the parent; the stride may be
negative, or 0 for a team of one. shmem_team_split_2d: the PEs of the parent lie in rows of xrange; *xaxis_team has those of the same row, *yaxis_team
those of the same column. A PE that is not a member gets SHMEM_TEAM_INVALID and 0. If the parent is SHMEM_TEAM_INVALID, the PEs are not all in the
parent, or memory is exhausted, every PE gets SHMEM_TEAM_INVALID and another value than 0.

config: what config_mask names of it is used; NULL with mask 0. Parent and new teams may be used at once.
""", P("int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size, "
       "const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team)"),
      P("int shmem_team_split_2d(shmem_team_t parent_team, int xrange, "
        "const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team, "
        "const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team)")),
    F("End of a team", "9.4", "1.5", """
Collective over the team. Destroys its shareable contexts too. Private ones must have been destroyed. SHMEM_TEAM_INVALID is ignored.
""", P("void shmem_team_destroy(shmem_team_t team)")),
]

CONTEXTS = [
    F("New contexts", "9.5", "1.4", """
A context of the world, or of a team: operations issued on it are ordered and completed apart from those of other contexts. PE numbers on it
count in its team. options: SHMEM_CTX_SERIALIZED (no two threads use it at once), SHMEM_CTX_PRIVATE (only the thread that made it does),
SHMEM_CTX_NOSTORE (fence and quiet need not order stores), SHMEM_CTX_SESSION_BATCH. Not collective. Returns 0; else *ctx is SHMEM_CTX_INVALID, and
the library can still be used.
""", P("int shmem_ctx_create(long options, shmem_ctx_t *ctx)"),
      P("int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)")),
    F("End of a context", "9.5", "1.4", """
Completes what was issued on it and destroys it. SHMEM_CTX_INVALID is ignored. A private context is destroyed by the thread that made it.
""", P("void shmem_ctx_destroy(shmem_ctx_t ctx)")),
    F("Team of a context", "9.5", "1.5", """
*team: the team that it was made for. Returns 0; for SHMEM_CTX_INVALID *team is SHMEM_TEAM_INVALID, and another value is returned.
""", P("int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)")),
]

SESSIONS = [
    F("Sessions", "9.9", "1.6", """
A hint that many operations on this context follow, and that no more do. It changes neither order nor completion. config_mask: SHMEM_CTX_SESSION_TOTAL_OPS, if
config->total_ops is meant. SHMEM_CTX_INVALID is ignored.
""", P("void shmem_ctx_session_start(shmem_ctx_t ctx, long options, "
       "const shmem_ctx_session_config_t *config, long config_mask)"),
      P("void shmem_ctx_session_stop(shmem_ctx_t ctx)")),
]

ORDER = [
    F("Order of operations", "9.12", "1.0", """
Puts, atomic operations, signals and stores of this thread that were issued on the context before reach each PE before those issued after. Does not
wait. It says nothing about gets and about the values that non-blocking atomic operations fetch. SHMEM_CTX_INVALID is ignored.
""", P("void shmem_{c}fence(void)")),
    F("Completion of operations", "9.12", "1.0", """
Waits until all operations that were issued on the context are complete and visible to every PE, and the results of non-blocking gets and atomic operations
are here. shmem_pe_quiet: of those to the n PEs of target_pes only, counted in the context's team; with n 0 it does nothing. SHMEM_CTX_INVALID is ignored.
""", P("void shmem_{c}quiet(void)"), P("void shmem_{c}pe_quiet(const int *target_pes, size_t npes)")),
]

LOCKS = [
    F("Locks", "9.13", "1.0", """
A lock is a symmetric long that is 0 at first; what it holds later is the library's. shmem_set_lock waits until it is the caller's; those that wait get it in the
order of their calls. shmem_test_lock returns 0 if the lock is the caller's now, 1 if it was not free. shmem_clear_lock completes what was issued on the default context, then
gives the lock on. A PE that holds a lock must not set it again.
""", P("void shmem_set_lock(long *lock)"), P("void shmem_clear_lock(long *lock)"),
      P("int shmem_test_lock(long *lock)")),
]

PROFILING = [
    F("Profiling", "10", "1.5", """
Does nothing; for tools that define it. A tool may define any routine of this header and call the library's under its name with the
prefix p (pshmem.h).
""", P("void shmem_pcontrol(int level, ...)")),
]
