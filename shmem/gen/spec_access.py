# SPDX-License-Identifier: BSD-2-Clause
"""Routines: remote memory access, atomic operations, signals."""
from spec_types import Family as F, Proto as P

RMA = [
    F("Put", "9.6", "1.0", """
Copies nelems elements (shmem_putmem: bytes; shmem_putSIZE: elements of SIZE bits) from source, any memory of this PE, to the symmetric dest of PE
pe. Returns when source may be used again; the data is delivered after the next shmem_quiet(), in the order that shmem_fence() asks for. Thread-safe, as all of this section.
With nelems 0 nothing happens and the pointers may be NULL.
""", P("void shmem_{c}{rma}_put(T *dest, const T *source, size_t nelems, int pe)", "put"),
      P("void shmem_{c}put{sz}(void *dest, const void *source, size_t nelems, int pe)"),
      P("void shmem_{c}putmem(void *dest, const void *source, size_t nelems, int pe)")),
    F("Put of one element", "9.6", "1.0", """
Stores value into the symmetric dest of PE pe. As a put of one element.
""", P("void shmem_{c}{rma}_p(T *dest, T value, int pe)", "p")),
    F("Strided put", "9.6", "1.0", """
A put of nelems elements that are dst elements apart in dest and sst elements apart in source; both are 1 or more.
""", P("void shmem_{c}{rma}_iput(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)",
       "iput"),
      P("void shmem_{c}iput{sz}(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)")),
    F("Strided put of blocks", "9.6", "1.6", """
A put of nblocks blocks of bsize elements each, whose starts are dst elements apart in dest and sst elements apart in source; both are bsize or
more.
""", P("void shmem_{c}{rma}_ibput(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, "
       "size_t nblocks, int pe)", "ibput"),
      P("void shmem_{c}ibput{sz}(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, "
        "size_t nblocks, int pe)")),
    F("Get", "9.6", "1.0", """
Copies nelems elements (shmem_getmem: bytes; shmem_getSIZE: elements of SIZE bits) from the symmetric source of PE pe to dest, any memory of this PE.
Returns when the data is in dest. With nelems 0 nothing happens and the pointers may be NULL.
""", P("void shmem_{c}{rma}_get(T *dest, const T *source, size_t nelems, int pe)", "get"),
      P("void shmem_{c}get{sz}(void *dest, const void *source, size_t nelems, int pe)"),
      P("void shmem_{c}getmem(void *dest, const void *source, size_t nelems, int pe)")),
    F("Get of one element", "9.6", "1.0", """
Returns the symmetric element source of PE pe.
""", P("T shmem_{c}{rma}_g(const T *source, int pe)", "g", "source")),
    F("Strided get", "9.6", "1.0", """
A get of nelems elements that are dst elements apart in dest and sst elements apart in source; both are 1 or more.
""", P("void shmem_{c}{rma}_iget(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)",
       "iget"),
      P("void shmem_{c}iget{sz}(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)")),
    F("Strided get of blocks", "9.6", "1.6", """
A get of nblocks blocks of bsize elements each, whose starts are dst elements apart in dest and sst elements apart in source; both are bsize or
more.
""", P("void shmem_{c}{rma}_ibget(T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, "
       "size_t nblocks, int pe)", "ibget"),
      P("void shmem_{c}ibget{sz}(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, "
        "size_t nblocks, int pe)")),
    F("Non-blocking put", "9.6", "1.3", """
A put that may return before source may be used again: leave source alone until the next shmem_quiet().
""", P("void shmem_{c}{rma}_put_nbi(T *dest, const T *source, size_t nelems, int pe)", "put_nbi"),
      P("void shmem_{c}put{sz}_nbi(void *dest, const void *source, size_t nelems, int pe)"),
      P("void shmem_{c}putmem_nbi(void *dest, const void *source, size_t nelems, int pe)")),
    F("Non-blocking get", "9.6", "1.3", """
A get that may return before the data is in dest: it is there after the next shmem_quiet().
""", P("void shmem_{c}{rma}_get_nbi(T *dest, const T *source, size_t nelems, int pe)", "get_nbi"),
      P("void shmem_{c}get{sz}_nbi(void *dest, const void *source, size_t nelems, int pe)"),
      P("void shmem_{c}getmem_nbi(void *dest, const void *source, size_t nelems, int pe)")),
]

AMO = [
    F("Atomic fetch, set and swap", "9.7", "1.4", """
On the symmetric element of PE pe, which is source or dest: fetch returns it; set replaces it by value; swap replaces it and returns the old one. These and the other atomic
operations of one type on one element are atomic to each other, and to waits and tests on it at its PE. Those that return a value wait for it; the others may
return before they are executed: shmem_quiet() completes them, shmem_fence() orders them. Thread-safe, as all of this section.
""", P("T shmem_{c}{xamo}_atomic_fetch(const T *source, int pe)", "atomic_fetch", "source"),
      P("void shmem_{c}{xamo}_atomic_set(T *dest, T value, int pe)", "atomic_set"),
      P("T shmem_{c}{xamo}_atomic_swap(T *dest, T value, int pe)", "atomic_swap")),
    F("Atomic compare and swap", "9.7", "1.4", """
Replaces dest by value if it equals cond. Returns the old value of dest in either case.
""", P("T shmem_{c}{amo}_atomic_compare_swap(T *dest, T cond, T value, int pe)", "atomic_compare_swap")),
    F("Atomic addition", "9.7", "1.4", """
Adds value, or 1, to dest; addition wraps around. The fetching forms return the value before.
""", P("T shmem_{c}{amo}_atomic_fetch_inc(T *dest, int pe)", "atomic_fetch_inc"),
      P("void shmem_{c}{amo}_atomic_inc(T *dest, int pe)", "atomic_inc"),
      P("T shmem_{c}{amo}_atomic_fetch_add(T *dest, T value, int pe)", "atomic_fetch_add"),
      P("void shmem_{c}{amo}_atomic_add(T *dest, T value, int pe)", "atomic_add")),
    F("Atomic bit operations", "9.7", "1.4", """
Replaces dest by dest and/or/exclusive-or value. The fetching forms return the value before.
""", *(p for op in ("and", "or", "xor") for p in (
        P(f"T shmem_{{c}}{{bits}}_atomic_fetch_{op}(T *dest, T value, int pe)", f"atomic_fetch_{op}"),
        P(f"void shmem_{{c}}{{bits}}_atomic_{op}(T *dest, T value, int pe)", f"atomic_{op}")))),
    F("Non-blocking atomic operations", "9.7", "1.5", """
As those without _nbi; the old value is in *fetch, any memory of this PE, after the next shmem_quiet().
""", P("void shmem_{c}{xamo}_atomic_fetch_nbi(T *fetch, const T *source, int pe)", "atomic_fetch_nbi"),
      P("void shmem_{c}{xamo}_atomic_swap_nbi(T *fetch, T *dest, T value, int pe)", "atomic_swap_nbi"),
      P("void shmem_{c}{amo}_atomic_compare_swap_nbi(T *fetch, T *dest, T cond, T value, int pe)",
        "atomic_compare_swap_nbi"),
      P("void shmem_{c}{amo}_atomic_fetch_inc_nbi(T *fetch, T *dest, int pe)", "atomic_fetch_inc_nbi"),
      P("void shmem_{c}{amo}_atomic_fetch_add_nbi(T *fetch, T *dest, T value, int pe)",
        "atomic_fetch_add_nbi"),
      *(P(f"void shmem_{{c}}{{bits}}_atomic_fetch_{op}_nbi(T *fetch, T *dest, T value, int pe)",
          f"atomic_fetch_{op}_nbi") for op in ("and", "or", "xor"))),
    F("Old names of atomic operations", "9.7", "1.0", """
As the routines with atomic_ in their names: fetch, set, swap, compare_swap, fetch_inc, inc, fetch_add and add.
""", P("T shmem_{old_rma}_fetch(const T *source, int pe)", "fetch", "source"),
      P("void shmem_{old_rma}_set(T *dest, T value, int pe)", "set"),
      P("T shmem_{old_rma}_swap(T *dest, T value, int pe)", "swap"),
      P("T shmem_{old_amo}_cswap(T *dest, T cond, T value, int pe)", "cswap"),
      P("T shmem_{old_amo}_finc(T *dest, int pe)", "finc"),
      P("void shmem_{old_amo}_inc(T *dest, int pe)", "inc"),
      P("T shmem_{old_amo}_fadd(T *dest, T value, int pe)", "fadd"),
      P("void shmem_{old_amo}_add(T *dest, T value, int pe)", "add"), deprecated="1.4"),
]

SIGNALS = [
    F("Put with signal", "9.8", "1.5", """
A put, then an update of the symmetric signal object sig_addr of the same PE: sig_op SHMEM_SIGNAL_SET replaces it by signal, SHMEM_SIGNAL_ADD adds signal. A PE that sees the
update sees the data of this put, though not that of earlier ones. With nelems 0 the signal alone is sent. Returns when source may be used again. Thread-safe, as all of this
section.
""", P("void shmem_{c}{rma}_put_signal(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, "
       "uint64_t signal, int sig_op, int pe)", "put_signal"),
      P("void shmem_{c}put{sz}_signal(void *dest, const void *source, size_t nelems, uint64_t *sig_addr, "
        "uint64_t signal, int sig_op, int pe)"),
      P("void shmem_{c}putmem_signal(void *dest, const void *source, size_t nelems, uint64_t *sig_addr, "
        "uint64_t signal, int sig_op, int pe)")),
    F("Non-blocking put with signal", "9.8", "1.5", """
Likewise; source may be used again after the next shmem_quiet().
""", P("void shmem_{c}{rma}_put_signal_nbi(T *dest, const T *source, size_t nelems, uint64_t *sig_addr, "
       "uint64_t signal, int sig_op, int pe)", "put_signal_nbi"),
      P("void shmem_{c}put{sz}_signal_nbi(void *dest, const void *source, size_t nelems, "
        "uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)"),
      P("void shmem_{c}putmem_signal_nbi(void *dest, const void *source, size_t nelems, "
        "uint64_t *sig_addr, uint64_t signal, int sig_op, int pe)")),
    F("Signals alone", "9.8", "1.6", """
Adds signal to the signal object of PE pe, or replaces it.
""", P("void shmem_{c}signal_add(uint64_t *sig_addr, uint64_t signal, int pe)", "signal_add", "context"),
      P("void shmem_{c}signal_set(uint64_t *sig_addr, uint64_t signal, int pe)", "signal_set", "context")),
    F("Value of a signal", "9.8", "1.5", """
The value of this PE's own signal object. What a put with signal delivered before it is visible. Does not wait.
""", P("uint64_t shmem_signal_fetch(const uint64_t *sig_addr)")),
]
