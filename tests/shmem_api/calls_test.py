#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs that call routines; together they call every routine of the list.

usage: calls_test.py SYMBOLS PROGRAM... [-- LAUNCHER [ARGUMENT]...]

Each program ends with 0, except calls_exit, with 7; each prints «ok NAME» for a routine that
passed.
"""
import pathlib
import subprocess
import sys


def main():
    arguments, launcher = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, launcher = arguments[:at], arguments[at + 1:]
    rows = [line.split("\t")[0] for line in pathlib.Path(arguments[0]).read_text(encoding="utf-8").splitlines()
            if not line.startswith("#")]
    wanted, called, failed = set(rows[1:]), set(), 0
    for program in arguments[1:]:
        done = subprocess.run(launcher + [program], stdout=subprocess.PIPE, text=True, check=False,
                              timeout=200)
        called |= {line[3:] for line in done.stdout.splitlines() if line.startswith("ok ")}
        status = 7 if "calls_exit" in program else 0
        if done.returncode != status:
            failed += 1
            print(f"{program} ended with {done.returncode}, not {status}; its last lines:")
            print("\n".join(done.stdout.splitlines()[-3:]))
    for name in sorted(wanted - called):
        print(f"not called, or failed: {name}")
    for name in sorted(called - wanted):
        print(f"not a routine of the list: {name}")
    print(f"{len(called)} of {len(wanted)} routines passed, {failed} programs failed")
    return 1 if failed or called != wanted else 0


if __name__ == "__main__":
    sys.exit(main())
