#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs whose variables lie apart, or are partly other memory, on one host and on two.

usage: layouts_test.py OSHRUN PROGRAM REPLACED [PROGRAM THAT IS LINKED IN ANOTHER WAY]...
"""
import subprocess
import sys

PLACES = {"near": ["-np", "2"], "far": ["--hosts", "2", "-np", "2"]}
PARTS = ("none", "guard", "hole", "shared", "file", "stack", "locked")
ALONE = ("guard", "hole", "shared")
LINE = "that part of its variables, or mapped other memory over it"


def run(oshrun, place, *command):
    return subprocess.run([oshrun, *PLACES[place], *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=120)


def main():
    oshrun, program, *others = sys.argv[1:]
    jobs = [(place, [program, part]) for place in PLACES for part in PARTS]
    jobs += [("near", [other, "none"]) for other in others]
    failed = skipped = 0
    for place, command in jobs:
        done = run(oshrun, place, *command)
        skipped += done.returncode == 77
        if done.returncode not in (0, 77) or (done.returncode == 0 and done.stderr):
            failed += 1
            print(f"{place}, {command}: status {done.returncode}: {done.stdout}{done.stderr}")
    for part in ALONE:
        done = run(oshrun, "near", program, part, "reach")
        if done.returncode != 1 or LINE not in done.stderr or len(done.stderr.splitlines()) != 1:
            failed += 1
            print(f"{part}: status {done.returncode}, or not one line: {done.stderr}")
    print(f"{len(jobs) + len(ALONE)} jobs, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
