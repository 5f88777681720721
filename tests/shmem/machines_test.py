#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""OpenSHMEM programs on several machines: the emulated hosts of a fabric; a script in place of the remote shell selects the host.

usage: machines_test.py OSHRUN VI_FABRIC RANDOM_TRAFFIC PROGRAM...
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RSH = '#!/bin/sh\nVIADUCT_HOST=${1#m}\nexport VIADUCT_HOST\nexec sh -c "$2"\n'
# One PE on host 0, as this oshrun, and three elsewhere, two of them on one host.
HOSTS = "localhost,m1:2,m2"


def main():
    oshrun, vi_fabric, traffic, *programs = sys.argv[1:]
    env = {**os.environ, "VIADUCT_FABRIC": f"machines-{os.getpid()}", "VIADUCT_HOST": "0"}
    failed = 0
    subprocess.run([vi_fabric, "up", "--hosts", "3"], env=env, check=True, stdout=subprocess.DEVNULL, timeout=60)
    try:
        with tempfile.TemporaryDirectory() as folder:
            rsh = Path(folder) / "rsh"
            rsh.write_text(RSH, encoding="utf-8")
            rsh.chmod(0o700)
            for words in [[program] for program in programs] + [[traffic, "1", "10"]]:
                done = subprocess.run([oshrun, "--rsh", rsh, "--host", HOSTS, *words], env=env, check=False, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      timeout=120)
                print(f"{'FAILED' if done.returncode else 'ok    '} {Path(words[0]).name}", flush=True)
                if done.returncode:
                    failed += 1
                    print(f"exit status {done.returncode}; its last lines:")
                    print("\n".join(done.stdout.splitlines()[-8:]))
    finally:
        subprocess.run([vi_fabric, "down"], env=env, check=True, stdout=subprocess.DEVNULL, timeout=60)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
