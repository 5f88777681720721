#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Links of a ring are taken down and up again while PEs on it put, add, signal and meet in barriers: nothing is lost,
nothing arrives twice, and the job goes on.

usage: ring_cut_test.py PROGRAM OSHRUN VI_FABRIC ROUNDS
"""
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

HOSTS = 4
PATIENCE = limit(120)


def fabric_of(process):
    """The name of the job's fabric, which its vi_fabric was given."""
    for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split():
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"vi_fabric\0"):
            words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
            return next(word.split("=", 1)[1] for word in words if word.startswith("VIADUCT_FABRIC="))
    raise RuntimeError("oshrun has no vi_fabric")


def main():
    program, oshrun, vi_fabric, rounds = sys.argv[1:4] + [int(sys.argv[4])]
    job = subprocess.Popen([oshrun, "--hosts", str(HOSTS), "-np", str(HOSTS), program], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
    def give_up():
        job.send_signal(signal.SIGQUIT)  # oshrun writes which PE waits for what
        try:
            job.wait(10)
        except subprocess.TimeoutExpired:
            job.kill()

    late = threading.Timer(PATIENCE, give_up)
    late.start()

    def progress(lines):
        """Waits until the job has written that many lines more."""
        for _ in range(lines):
            line = job.stdout.readline()
            if not re.fullmatch(r"round \d+\n", line):
                raise RuntimeError(f"the job ended, or stood still for {PATIENCE} s: {line!r}")

    cuts = 0
    try:
        progress(1)
        fabric = fabric_of(job)

        def link(host, port, state):
            subprocess.run([vi_fabric, "--name", fabric, "link", str(host), port, state], check=True, timeout=60)

        for number in range(rounds * HOSTS):
            host, port = number % HOSTS, ("right", "left")[number // HOSTS % 2]
            link(host, port, "down")
            progress(number % 3)  # on the other way round; 0: up again at once
            link(host, port, "up")
            progress(1)
            cuts += 1
        job.stdin.close()
        rest = job.stdout.read()
        status = job.wait()
    finally:
        late.cancel()
        job.kill()
        job.wait()
    print(f"{cuts} cuts; the job: {rest.splitlines()[-1:]}, status {status}")
    return 0 if status == 0 and re.search(r"all \d+ rounds are right", rest) else 1


if __name__ == "__main__":
    sys.exit(main())
