# SPDX-License-Identifier: BSD-2-Clause
"""Routines: collectives, those of active sets, point-to-point synchronization."""
from spec_types import Family as F, Proto as P

ACTIVE = "int PE_start, int logPE_stride, int PE_size, long *pSync"

COLLECTIVES = [
    F("Barriers", "9.10", "1.0", """
No PE returns before all have called. shmem_barrier_all also completes what this PE issued on the default context, as shmem_quiet() does; shmem_sync_all and
shmem_team_sync, which returns 0, complete stores only. In C11 and C++ shmem_sync(team) is shmem_team_sync(team). No two threads of a PE may be in a collective of one team
at once: this holds for all of this section.
""", P("void shmem_barrier_all(void)"), P("void shmem_sync_all(void)"),
      P("int shmem_team_sync(shmem_team_t team)", "sync", "team")),
    F("All to all", "9.10", "1.5", """
Each PE sends the block number j of its source, of nelems elements (mem: bytes), to PE j of the team, where it becomes the block number i of dest, for sender i. alltoalls: the element k
of the block j lies (j * nelems + k) * dst elements from the start of dest, and likewise for sst and source. Each returns when dest is complete here and source may be
used again. The PEs must be done with dest before any of them calls; dest and source do not overlap. Returns 0, as all routines with a team; another value for
SHMEM_TEAM_INVALID.
""", P("int shmem_{rma}_alltoall(shmem_team_t team, T *dest, const T *source, size_t nelems)",
       "alltoall", "second"),
      P("int shmem_alltoallmem(shmem_team_t team, void *dest, const void *source, size_t nelems)"),
      P("int shmem_{rma}_alltoalls(shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, "
        "ptrdiff_t sst, size_t nelems)", "alltoalls", "second"),
      P("int shmem_alltoallsmem(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, "
        "ptrdiff_t sst, size_t nelems)")),
    F("Broadcast", "9.10", "1.5", """
Copies nelems elements (mem: bytes) of source of PE PE_root of the team to dest of every PE of it, the root's too. dest and source may be the same.
""", P("int shmem_{rma}_broadcast(shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root)",
       "broadcast", "second"),
      P("int shmem_broadcastmem(shmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root)")),
    F("Collect", "9.10", "1.5", """
Puts the sources of all PEs one after the other, in the order of the team, into dest of each. collect: nelems may differ from PE to PE, and be 0.
fcollect: it is equal on all.
""", P("int shmem_{rma}_collect(shmem_team_t team, T *dest, const T *source, size_t nelems)",
       "collect", "second"),
      P("int shmem_collectmem(shmem_team_t team, void *dest, const void *source, size_t nelems)"),
      P("int shmem_{rma}_fcollect(shmem_team_t team, T *dest, const T *source, size_t nelems)",
        "fcollect", "second"),
      P("int shmem_fcollectmem(shmem_team_t team, void *dest, const void *source, size_t nelems)")),
    F("Reductions", "9.10", "1.5", """
Combines the elements number k of the sources of all PEs and stores the result into element k of every dest, for each of nreduce elements. dest and source are the same or do not
overlap. Sums and products of integers wrap around. The order of combination is not specified; every PE gets equal results.
""", *(P(f"int shmem_{{{kind}}}_{op}_reduce(shmem_team_t team, T *dest, const T *source, size_t nreduce)",
         f"{op}_reduce", "second")
       for kind, ops in (("logic", "and or xor"), ("ordered", "max min"), ("arith", "sum prod"))
       for op in ops.split())),
    F("Sums of prefixes", "9.10", "1.6", """
Stores into dest the sums, for each of nelems elements, over the sources of the PEs up to this one in the order of the team: inscan with this one, exscan without, which
is 0 for the first. dest and source are the same or do not overlap.
""", P("int shmem_{arith}_sum_inscan(shmem_team_t team, T *dest, const T *source, size_t nelems)",
       "sum_inscan", "second"),
      P("int shmem_{arith}_sum_exscan(shmem_team_t team, T *dest, const T *source, size_t nelems)",
        "sum_exscan", "second")),
    F("Collectives of active sets", "9.10", "1.0", """
The older forms, over the PEs PE_start, PE_start + 2^logPE_stride, ..., PE_size of them. The elements have 32 or 64 bits; PE_root counts in the set, and dest of the root is left
alone. pSync (and pWrk) are work arrays as long as SHMEM_*_SYNC_SIZE (SHMEM_REDUCE_MIN_WRKDATA_SIZE) says, pSync filled with
SHMEM_SYNC_VALUE; this library does not touch them. shmem_barrier also completes what was issued on the default context.
""", P(f"void shmem_barrier({ACTIVE})"), P(f"void shmem_sync({ACTIVE})"),
      P(f"void shmem_alltoall{{old_sz}}(void *dest, const void *source, size_t nelems, {ACTIVE})"),
      P("void shmem_alltoalls{old_sz}(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, "
        f"size_t nelems, {ACTIVE})"),
      P(f"void shmem_broadcast{{old_sz}}(void *dest, const void *source, size_t nelems, int PE_root, {ACTIVE})"),
      P(f"void shmem_collect{{old_sz}}(void *dest, const void *source, size_t nelems, {ACTIVE})"),
      P(f"void shmem_fcollect{{old_sz}}(void *dest, const void *source, size_t nelems, {ACTIVE})"),
      *(P(f"void shmem_{{{kind}}}_{op}_to_all(T *dest, const T *source, int nreduce, int PE_start, "
          "int logPE_stride, int PE_size, T *pWrk, long *pSync)")
        for kind, ops in (("old_logic", "and or xor"), ("old_ordered", "max min"),
                          ("old_arith", "sum prod"))
        for op in ops.split()), deprecated="1.5"),
]


def several(verb, plain, result_all):
    """The forms of a wait or test on several elements."""
    for vector in ("", "_vector"):
        last = "const T *cmp_values" if vector else "T cmp_value"
        for kind, result, out in (("all", result_all, ""), ("any", "size_t", ""),
                                  ("some", "size_t", "size_t *indices, ")):
            yield P(f"{result} shmem_{{amo}}_{verb}_{kind}{vector}(T *ivars, size_t nelems, {out}"
                    f"const int *status, int cmp, {last})", f"{verb}_{kind}{vector}")


SYNC = [
    F("Wait", "9.11", "1.0", """
Waits until this PE's symmetric element ivar compares to cmp_value as cmp, SHMEM_CMP_EQ, NE, GT, GE, LT or LE, says. What was
ordered before the update that ended the wait is visible then. Other PEs and threads go on meanwhile; a wait that lasts gives up the processor. Thread-safe, as all of this section.
""", P("void shmem_{amo}_wait_until(T *ivar, int cmp, T cmp_value)", "wait_until")),
    F("Wait for several", "9.11", "1.5", """
Wait for elements of ivars, of which there are nelems. Elements i with status[i] other than 0 are left out; status may be NULL. all: until each has
satisfied the comparison. any: until one does, whose index is returned; SIZE_MAX if all are left out. some: until one or more do; stores
their indices and returns their number; 0 if all are left out. With _vector element i is compared to cmp_values[i]. Where several elements satisfy the
comparison each is returned eventually.
""", *several("wait_until", "", "void")),
    F("Test", "9.11", "1.4", """
Whether the comparison holds, 1 or 0, without waiting.
""", P("int shmem_{amo}_test(T *ivar, int cmp, T cmp_value)", "test")),
    F("Test several", "9.11", "1.5", """
As the waits, but at once: test_all returns 1 if the comparison holds for all elements (also if all are left out), else 0; test_any an
index or SIZE_MAX; test_some the number of indices.
""", *several("test", "", "int")),
    F("Wait for a signal", "9.11", "1.5", """
Waits until this PE's signal object compares to cmp_value as cmp says, and returns its value then. What was put with the signal is visible.
""", P("uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)")),
    F("Old waits", "9.11", "1.0", """
shmem_wait and shmem_TYPE_wait wait until ivar is not cmp_value. shmem_wait_until as a function is shmem_long_wait_until.
""", P("void shmem_wait(long *ivar, long cmp_value)"),
      P("void shmem_wait_until(long *ivar, int cmp, long cmp_value)"),
      P("void shmem_{old_wait}_wait(T *ivar, T cmp_value)"),
      P("void shmem_{short}_wait_until(T *ivar, int cmp, T cmp_value)", "wait_until"),
      P("int shmem_{short}_test(T *ivar, int cmp, T cmp_value)", "test"), deprecated="1.5, the first six 1.4"),
]
