#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs programs built with the address sanitizer, and under valgrind if installed; the library has none.

usage: checkers_test.py asan|valgrind OSHCC OSHRUN SOURCE
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(*command, env=None):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=240, env=env)


def main():
    checker, oshcc, oshrun, source = sys.argv[1:]
    before = [] if checker == "asan" else [shutil.which("valgrind"), "-q", "--error-exitcode=9"]
    if None in before:
        print("valgrind is not installed")
        return 77
    env = {name: value for name, value in os.environ.items() if name not in ("SHMEM_CC", "OSHCC_CC", "CFLAGS")}
    env["ASAN_OPTIONS"] = "detect_leaks=0"
    options = ["-D_GNU_SOURCE"] + (["-fsanitize=address"] if checker == "asan" else [])
    with tempfile.TemporaryDirectory() as folder:
        program = str(pathlib.Path(folder) / "program")
        done = run(oshcc, "-g", *options, source, "-o", program, env=env)
        if done.returncode != 0:
            print(f"not built: {done.stdout}")
            return 77
        done = run(oshrun, "-np", "2", *before, program, "none", env=env)
    print(done.stdout)
    return 1 if done.returncode != 0 or done.stdout else 0


if __name__ == "__main__":
    sys.exit(main())
