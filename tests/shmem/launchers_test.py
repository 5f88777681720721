#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""OpenSHMEM programs under the launchers of MPI: Open MPI's mpirun (PMIx) and MPICH's mpiexec (PMI-1).

usage: launchers_test.py mpirun|mpiexec PROGRAM...

Exit status 77, with the reason: the launcher is not installed.
"""
import os
import shutil
import subprocess
import sys

COMMANDS = {"mpirun": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "3"],
            "mpiexec": ["mpiexec.hydra", "-n", "3"]}


def main():
    command = COMMANDS[sys.argv[1]]
    if shutil.which(command[0]) is None:
        print(f"skipped: {command[0]} is not installed; scripts/setup --peers installs it")
        return 77
    # A fabric of its own; libpmix does not free all that it allocates.
    env = {**os.environ, "VIADUCT_FABRIC": f"launchers-{os.getpid()}", "SHMEM_SYMMETRIC_SIZE": "64m",
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    failed = 0
    for program in sys.argv[2:]:
        done = subprocess.run(command + [program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=120, env=env, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            failed += 1
            print(f"{program} ended with {done.returncode}; its last lines:")
            print("\n".join(done.stdout.splitlines()[-8:]))
    print(f"{len(sys.argv) - 2} programs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
