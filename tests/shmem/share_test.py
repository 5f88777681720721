#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""PEs know whether they share processors: by affinity, and with PEs of other emulated hosts.

usage: share_test.py PROGRAM OSHRUN

Without two processors there is nothing to tell apart (77: skipped).
"""
import os
import subprocess
import sys

ALLOWED = sorted(os.sched_getaffinity(0))
QUOTAS = "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"


def has_quota():
    """Does the container that the test may run in have a quota?  It counts as well."""
    for path in QUOTAS:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read().split()[0] not in ("max", "-1"):
                    return True
    return False


def shares(program, oshrun, cpus, *options):
    """The output of SHMEM_INFO for a job that may use these processors."""
    done = subprocess.run([oshrun, *options, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, env=dict(os.environ, SHMEM_INFO="1"),
                          preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode == 0 and "PE 0 shares processors" in done.stdout:
        return "shared"
    if done.returncode == 0 and "PE 0 does not share processors" in done.stdout:
        return "own"
    return f"status {done.returncode}:\n{done.stdout}"


def main():
    program, oshrun = sys.argv[1:]
    if len(ALLOWED) < 2 or has_quota():
        print("one processor, or a quota")
        return 77
    one, two, bad = ALLOWED[:1], ALLOWED[:2], 0
    for expected, cpus, *options in (
            ("own", two, "-np", "2"),
            ("shared", one, "-np", "2"),
            ("shared", two, "-np", "3"),
            ("own", one, "-np", "1"),
            ("own", two, "--hosts", "2", "-np", "2"),
            ("shared", one, "--hosts", "2", "-np", "2"),
            ("shared", two, "--hosts", "3", "-np", "3"),
            ("own", two, "--bind-to", "hwthread", "-np", "2"),
            ("shared", two, "--bind-to", "hwthread", "-np", "3"),
    ):
        found = shares(program, oshrun, cpus, *options)
        if found != expected:
            bad += 1
            print(f"{' '.join(options)} on {len(cpus)} processors: {found}, not {expected}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
