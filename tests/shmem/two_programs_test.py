#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A job whose PEs run different executables: the heap works among all, and a variable of a PE that runs another program
is refused with a line that says so.

usage: two_programs_test.py PROGRAM OTHER OSHRUN
"""
import re
import subprocess
import sys

PLACES = {"near": ["-np", "4"], "far": ["--hosts", "3", "-np", "3"], "mixed": ["--hosts", "2", "-np", "4"]}
ROUTINES = {"put": "shmem_long_p", "atomic": "shmem_long_atomic_inc", "lock": "shmem_set_lock"}
LINE = r"oshrun: PE \d on host\d: {}: .*PE \d runs another program, .*: allocate it in the symmetric heap"


def run(oshrun, place, programs, what):
    shell = 'test $((OSHRUN_PE % 2)) = 0 && exec "$0" "$2"; exec "$1" "$2"'
    return subprocess.run([oshrun, *PLACES[place], "sh", "-c", shell, *programs, what], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=60)


def main():
    programs, oshrun = sys.argv[1:3], sys.argv[3]
    failed = 0
    for place in PLACES:
        done = run(oshrun, place, programs, "work")
        if done.returncode != 0 or done.stderr:
            failed += 1
            print(f"{place}: status {done.returncode}: {done.stderr}")
        for what, routine in ROUTINES.items():
            done = run(oshrun, place, programs, what)
            if done.returncode != 1 or not re.fullmatch(LINE.format(routine), done.stderr.rstrip("\n")):
                failed += 1
                print(f"{place}, {what}: status {done.returncode}, or not the one line: {done.stderr}")
    print(f"{len(PLACES) * (1 + len(ROUTINES))} jobs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
