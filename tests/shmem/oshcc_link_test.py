#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the README says: a program is compiled by oshcc or oshc++ of the build tree, and oshrun runs it.

usage: oshcc_link_test.py OSHCC OSHCXX OSHRUN SOURCE.c
"""
import os
import pathlib
import subprocess
import sys
import tempfile

CXX = """
#include <cstdio>
#include <shmem.h>
static long here;
int main()
{
	shmem_init();
	int me = shmem_my_pe(), n = shmem_n_pes();
	shmem_p(&here, 1L + me, (me + 1) % n);
	shmem_barrier_all();
	int good = here == 1 + (me + n - 1) % n;
	std::printf("PE %d %s\\n", me, good ? "good" : "bad");
	shmem_finalize();
	return good ? 0 : 1;
}
"""


def main():
    oshcc, oshcxx, oshrun, source = sys.argv[1:5]
    env = {name: value for name, value in os.environ.items() if name not in ("SHMEM_CC", "OSHCC_CC", "CFLAGS")}
    with tempfile.TemporaryDirectory() as folder:
        cxx = pathlib.Path(folder) / "one.cc"
        cxx.write_text(CXX, encoding="utf-8")
        for compiler, options, text in ((oshcc, ["-O2", source], None), (oshcc, ["-O2", "-no-pie", "-fno-pie", source], None),
                                        (oshcc, ["-fsanitize=address", source], None), (oshcxx, ["-fsanitize=address", str(cxx)], "PE 2 good"),
                                        (oshcxx, [str(cxx)], "PE 2 good")):
            exe = str(pathlib.Path(folder) / "program")
            subprocess.run([compiler, *options, "-o", exe], check=True, env=env)
            done = subprocess.run([oshrun, "-np", "3", exe], check=True, env=env, stdout=subprocess.PIPE,
                                  text=True, timeout=60)
            if text is not None and text not in done.stdout:
                sys.exit(f"{exe}: {done.stdout!r} has no {text!r}")
            print("ran:", " ".join([pathlib.Path(compiler).name, *options]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
