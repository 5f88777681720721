#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs OpenSHMEM programs that check themselves, one after the other.

usage: run_all.py PROGRAM... -- LAUNCHER [ARGUMENT]...

Each must end with 0 and write nothing to standard error except that the heap is exhausted. A line
per program, and at the end one that names those that failed.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

# The thread sanitizer makes a program ten times slower, as meson.build's setups know.
PATIENCE = limit(120)  # seconds


def main():
    at = sys.argv.index("--")
    programs, launcher = sys.argv[1:at], sys.argv[at + 1:]
    failed = []
    for program in programs:
        try:
            done = subprocess.run(launcher + [program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, check=False, timeout=PATIENCE)
            status, output, errors = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            status, output, errors = f"none within {PATIENCE} s", (late.stdout or b"").decode(), ""
        errors = "\n".join(line for line in errors.splitlines() if "do not fit into the symmetric heap" not in line)
        good = status == 0 and errors == ""
        print(f"{'ok    ' if good else 'FAILED'} {pathlib.Path(program).name}")
        if not good:
            said = [line for line in errors.splitlines() if "WARNING" in line or "ERROR" in line] + errors.splitlines()
            failed.append(f"{pathlib.Path(program).name}, exit status {status}: {said[0] if said else 'no message'}")
            print(f"exit status {status}; the last lines:")
            print("\n".join(output.splitlines()[-5:] + errors.splitlines()[-10:]))
    print(f"{len(programs)} programs, {len(failed)} failed{': ' if failed else ''}{'; '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
