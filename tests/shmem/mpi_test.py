#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program that uses MPI and OpenSHMEM, under Open MPI's launcher: each starts and ends first.

usage: mpi_test.py INCLUDE_DIR LIBRARY

Exit status 77, with the reason: Open MPI is not installed.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAM = r"""
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static long there;

int main(int argc, char **argv)
{
	int pes = 0, me = -1, rank = -1, sum = 0, one = 1;

	for (const char *step = argv[1]; *step != 0; step++) {
		if (*step == 'M') {
			MPI_Init(&argc, &argv);
			MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		} else if (*step == 'S') {
			shmem_init();
			me = shmem_my_pe();
			pes = shmem_n_pes();
		} else if (*step == 'm') {
			MPI_Finalize();
			rank = -1;
		} else if (*step == 's') {
			shmem_finalize();
			me = -1;
		}
		if (me >= 0) {
			shmem_long_p(&there, 100 * (step - argv[1]) + me, (me + 1) % pes);
			shmem_barrier_all();
			if (there != 100 * (step - argv[1]) + (me + pes - 1) % pes)
				return 3;
			shmem_barrier_all();
		}
		if (rank >= 0) {
			MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			if (sum != 2)
				return 4;
		}
	}
	printf("done %s\n", argv[1]);
	return 0;
}
"""
# M, m: start and end of MPI; S, s: of OpenSHMEM.
ORDERS = ("MSsm", "MSms", "SMsm", "SMms", "MSsSsm")


def main():
    include, library = sys.argv[1], pathlib.Path(sys.argv[2])
    if shutil.which("mpicc.openmpi") is None or shutil.which("mpirun.openmpi") is None:
        print("skipped: Open MPI is not installed; scripts/setup --peers installs it")
        return 77
    env = {**os.environ, "VIADUCT_FABRIC": f"mpi-{os.getpid()}", "SHMEM_SYMMETRIC_SIZE": "64m"}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "both.c", pathlib.Path(folder) / "both"
        source.write_text(PROGRAM, encoding="utf-8")
        subprocess.run(["mpicc.openmpi", f"-I{include}", str(source), str(library), f"-Wl,-rpath,{library.parent}", "-o", str(program)],
                       check=True)
        for order in ORDERS:
            done = subprocess.run(["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2", str(program), order],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                                  check=False, timeout=120, env=env)
            good = done.returncode == 0 and done.stdout.splitlines() == [f"done {order}"] * 2
            failed += not good
            print("ok    " if good else "FAILED", order, "" if good else f": {done.returncode}: {done.stdout[-2000:]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
