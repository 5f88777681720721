#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs in the manner of those for other OpenSHMEM libraries, from the oldest on, build as they are and run.

usage: other_programs_test.py OSHCC OSHCXX OSHRUN
"""
import os
import pathlib
import subprocess
import sys
import tempfile

# From the time of SGI and Cray: no prototypes, declarations first, no finalize.
OLDEST = """
#include <stdio.h>
#include <mpp/shmem.h>
long pSync[_SHMEM_BCAST_SYNC_SIZE], barSync[_SHMEM_BARRIER_SYNC_SIZE];
long source[8], target[8], ticket;
int flag;
main(argc, argv)
int argc;
char **argv;
{
	int i, me, npes, next, bad = 0;
	long *block;
	start_pes(0);
	me = _my_pe();
	npes = _num_pes();
	next = (me + 1) % npes;
	for (i = 0; i < _SHMEM_BCAST_SYNC_SIZE; i++)
		pSync[i] = _SHMEM_SYNC_VALUE;
	for (i = 0; i < _SHMEM_BARRIER_SYNC_SIZE; i++)
		barSync[i] = _SHMEM_SYNC_VALUE;
	for (i = 0; i < 8; i++)
		source[i] = 10 * me + i;
	block = (long *)shmalloc(8 * sizeof(long));
	shmem_barrier_all();
	shmem_put64(block, source, 8, next);
	shmem_clear_cache_inv();
	shmem_set_cache_line_inv(target);
	shmem_fence();
	shmem_int_p(&flag, 1, next);
	shmem_int_wait(&flag, 0);
	shmem_udcflush();
	shmem_udcflush_line(&flag);
	for (i = 0; i < 8; i++)
		bad += block[i] != 10 * ((me + npes - 1) % npes) + i;
	shmem_barrier(0, 0, npes, barSync);
	shmem_broadcast64(target, source, 8, 0, 0, 0, npes, pSync);
	bad += me != 0 && target[7] != 7;
	shmem_long_finc(&ticket, 0);
	shmem_barrier_all();
	bad += me == 0 && ticket != npes;
	block = (long *)shrealloc(block, 100 * sizeof(long));
	shfree(block);
	if (bad == 0)
		printf("PE %d of %d is right\\n", me, npes);
	return bad;
}
"""

# For 1.3 and 1.4: active sets, untyped waits, variables that are volatile, C11 names.
MIDDLE = """
#include <shmem.h>
#include <mpp/shmem.h>
#include <shmemx.h>
#include <stdio.h>
long pSync[SHMEM_REDUCE_SYNC_SIZE] = { SHMEM_SYNC_VALUE }, cSync[_SHMEM_COLLECT_SYNC_SIZE];
double pWrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static volatile long flag;
static volatile int count;
static double in = 1.5, out;
static long long all[64], mine;

int main(void)
{
	shmem_init();
	int me = shmem_my_pe(), npes = shmem_n_pes(), next = (me + 1) % npes, bad = 0;
	for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
		pSync[i] = SHMEM_SYNC_VALUE;
	for (int i = 0; i < _SHMEM_COLLECT_SYNC_SIZE; i++)
		cSync[i] = _SHMEM_SYNC_VALUE;
	mine = me * me;
	shmem_barrier_all();
	shmem_p((long *)&flag, 3L, next);
	shmem_wait((long *)&flag, 0);
	shmem_wait_until(&flag, SHMEM_CMP_EQ, 3);
	bad += shmem_finc((int *)&count, next) != 0;
	shmem_add((int *)&count, 5, next);
	shmem_barrier_all();
	bad += count != 6 || shmem_fetch((int *)&count, next) != 6;
	shmem_double_sum_to_all(&out, &in, 1, 0, 0, npes, pWrk, pSync);
	bad += out != 1.5 * npes;
	shmem_fcollect64(all, &mine, 1, 0, 0, npes, cSync);
	for (int i = 0; i < npes; i++)
		bad += all[i] != i * i;
	if (bad == 0)
		printf("PE %d of %d is right\\n", me, npes);
	shmem_finalize();
	return bad;
}
"""

# C++ of its time.
CXX = """
#include <cstdio>
#include <mpp/shmem.h>
static int counter;
static short s;
int main()
{
	start_pes(0);
	int me = _my_pe(), npes = _num_pes();
	double *field = static_cast<double *>(shmemalign(64, npes * sizeof(double)));
	for (int pe = 0; pe < npes; pe++)
		shmem_double_p(&field[me], me + 0.5, pe);
	shmem_int_inc(&counter, 0);
	shmem_short_p(&s, -1, (me + 1) % npes);
	shmem_short_wait_until(&s, _SHMEM_CMP_LT, 0);
	shmem_barrier_all();
	int bad = me == 0 && counter != npes;
	for (int pe = 0; pe < npes; pe++)
		bad += field[pe] != pe + 0.5;
	shfree(field);
	if (bad == 0)
		std::printf("PE %d of %d is right\\n", me, npes);
	return bad;
}
"""

PROGRAMS = (("oldest.c", OLDEST, 0, ["-std=gnu89", "-w"]), ("middle.c", MIDDLE, 0, ["-std=c11", "-w"]),
            ("middle.c", MIDDLE, 0, ["-w", "-O3", "-flto"]), ("old.cc", CXX, 1, ["-std=gnu++98", "-w"]))
PES = 3


def main():
    compilers, oshrun = sys.argv[1:3], sys.argv[3]
    env = {name: value for name, value in os.environ.items() if name not in ("SHMEM_CC", "OSHCC_CC", "CFLAGS")}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text, compiler, options in PROGRAMS:
            source = pathlib.Path(folder) / name
            source.write_text(text, encoding="utf-8")
            program = str(pathlib.Path(folder) / "program")
            done = subprocess.run([compilers[compiler], *options, str(source), "-o", program], env=env, check=False,
                                  stderr=subprocess.PIPE, text=True)
            if done.returncode == 0:
                done = subprocess.run([oshrun, "-np", str(PES), program], env=env, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            good = done.returncode == 0 and sorted(done.stdout.splitlines()) == [f"PE {pe} of {PES} is right" for pe in range(PES)]
            failed += not good
            print("ok    " if good else "FAILED", name, *options, "" if good else f": {done.returncode}, {done.stderr[-2000:]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
