#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""All PEs of a host connect to each other under a low limit of descriptors: a connection keeps none open.

usage: crowd_test.py PROGRAM OSHRUN PES DESCRIPTORS
"""
import resource
import subprocess
import sys


def main():
    program, oshrun, pes, files = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), int(files)))
    done = subprocess.run([oshrun, "--hosts", "1", "-np", pes, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode != 0 or done.stdout.count("ok") != int(pes):
        print(f"status {done.returncode}:\n{done.stdout}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
