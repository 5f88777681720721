#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""PEs that share no fabric end the job with one line that names the fabric of each.

usage: origins_test.py PROGRAM OSHRUN VI_FABRIC
"""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

FABRIC = f"origins-{os.getpid()}"
ANY = r"\S+"  # the fabric of the job
PLACE = r"\(fabric {}, uid \d+, machine \S*, network \d+\)"


def run(oshrun, program, before):
    """Two PEs, the second of which is started by these words."""
    command = [oshrun, "-np", "1", program, "finalize", ":", "-np", "1", *before, program, "finalize"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=limit(60))
    return done.returncode, done.stderr


def name_space():
    """The words that start a program in a name space of networks; None: that is not allowed here."""
    for words in (["unshare", "-n"], ["unshare", "-r", "-n"]):
        try:
            if subprocess.run(words + ["true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return words
        except OSError:
            break
    return None


def main():
    program, oshrun, vi_fabric = sys.argv[1:4]
    cases = {"one fabric": ([], None), "two fabrics": (["env", f"VIADUCT_FABRIC={FABRIC}-b"], f"{FABRIC}-b")}
    apart = name_space()
    if apart is None:
        print("no name spaces of networks here: left out")
    else:
        cases["two name spaces"] = (apart, ANY)
    failed = 0
    for name, (before, found) in cases.items():
        rc, text = run(oshrun, program, before)
        wanted = "" if found is None else \
            (rf"oshrun: PE \d on host0: PE 0 {PLACE.format(ANY)} and PE 1 {PLACE.format(found)} "
             r"are on no fabric in common; see VIADUCT_FABRIC\n")
        if rc != (found is not None) or not re.fullmatch(wanted, text):
            failed += 1
            print(f"{name}: status {rc}, or not this line alone:\n{text}")
    # In a name space without users all users look alike.
    if subprocess.run(["unshare", "-U", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        rc, text = run(oshrun, program, ["unshare", "-U"])
        if rc != 1 or not re.search(r"is not in the user name space of this process, .*; start the program outside of it", text) \
                or "neither uid" in text:
            failed += 1
            print(f"a name space of users: status {rc}, or without its line:\n{text}")
    # The agent that was started for it.
    subprocess.run([vi_fabric, "down", "--name", f"{FABRIC}-b"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=False, timeout=limit(60))
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
