#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Another user listens at addresses of a fabric before its agents do.  The addresses of the hosts of a job cannot be
foreseen; those of a fabric that was given a name can be, and then the error names user and process.
Arguments: oshrun vi_fabric viaductd."""
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import unittest
from pathlib import Path

OTHER = 31337  # a user


def addresses():
    """All abstract addresses of fabrics of this user that are bound."""
    lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    return [word for line in lines for word in line.split()[-1:] if word.startswith(f"@viaduct/{os.geteuid()}/")]


def look():
    """Runs as a PE: prints what other users can see of the fabric of the job."""
    fabric = os.environ["VIADUCT_FABRIC"].split(":")[-1]
    found = [address for address in addresses() if fabric in address]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if fabric.encode() in path.read_bytes():
                found.append(str(path))
        except OSError:
            pass
    print("seen:", found)
    print("number:", len([address for address in addresses() if re.search("/[0-9a-f]{16}$", address)]))


def listen(address, backlog, pipe):
    os.setresuid(OTHER, OTHER, OTHER)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.bind(address)
        if backlog is not None:
            sock.listen(backlog)
        pipe.send("listens")
        pipe.recv()


class Squatter:
    def __init__(self, address, backlog=16):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=listen, args=(address, backlog, theirs), daemon=True)
        self.process.start()
        self.pipe.recv()

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.pipe.send("end")
        self.process.join()


class Jobs(unittest.TestCase):
    def test_what_others_see_names_no_other_address(self):
        done = subprocess.run([OSHRUN, "--hosts", "3", "-np", "1", sys.executable, __file__, "look"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("seen: []\n", done.stdout)
        number = int(done.stdout.split("number: ")[1])
        self.assertGreaterEqual(number, 6, "three agents and three cables listen")


class Named(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can act as another user")
        self.name = f"squat{os.getpid()}"

    def up(self, address, backlog=16):
        env = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
        env["VIADUCT_AGENT"] = VIADUCTD
        with Squatter(f"\0viaduct/0/{self.name}/{address}", backlog) as pid:
            done = subprocess.run([VI_FABRIC, "up", "--name", self.name, "--hosts", "2"], env=env, capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse([address for address in addresses() if self.name in address])
        return done.stderr, pid

    def test_host(self):
        line, pid = self.up("host1")
        self.assertIn(f"uid {OTHER}, pid {pid} listens as host 1 of fabric {self.name}", line)

    def test_cable(self):
        line, pid = self.up("cable0.1")
        self.assertIn(f"taken by uid {OTHER}, pid {pid}", line)

    def test_cable_without_a_listener(self):
        line, _ = self.up("cable0.1", None)
        self.assertIn("taken by a process that does not listen there", line)


if __name__ == "__main__":
    if sys.argv[1:] == ["look"]:
        look()
    else:
        OSHRUN, VI_FABRIC, VIADUCTD = map(os.path.abspath, sys.argv[1:4])
        unittest.main(argv=sys.argv[:1])
