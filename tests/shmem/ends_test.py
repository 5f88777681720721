#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A job ends as its program says: status, output, and nothing left of it.

usage: ends_test.py PROGRAM LAUNCHER [ARGUMENT]...
"""
import subprocess
import sys

MANNERS = {
    # manner: (exit status, what the output contains)
    "finalize": (0, ""), "return": (0, "done"), "exit": (0, "done"),
    "atexit": (0, "done"), "atexit_later": (0, "done"), "start_pes": (0, "done"),
    "barrier": (42, "the end by PE"), "wait": (42, "the end by PE"), "lock": (42, "the end by PE"),
    "sleep": (42, "the end by PE"), "spin": (42, "the end by PE"), "thread": (42, "the end by a thread"),
}


def main():
    program, launcher = sys.argv[1], sys.argv[2:]
    failed = 0
    for manner, (status, text) in MANNERS.items():
        try:
            done = subprocess.run(launcher + [program, manner], stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.PIPE, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            failed += 1
            print(f"{manner}: does not end")
            continue
        if done.returncode != status or text not in done.stdout or "without shmem_init" in done.stderr:
            failed += 1
            sys.stdout.write(done.stderr)
            print(f"{manner}: status {done.returncode}, not {status}, or output without «{text}»: "
                  f"{done.stdout!r}")
    print(f"{len(MANNERS)} manners, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
