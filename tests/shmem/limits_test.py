#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Limits of the shell that are too low: one line of oshrun or of the PE names the limit, and there is no other line.

usage: limits_test.py PROGRAM OSHRUN VIADUCTD
"""
import os
import re
import resource
import select
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

PROGRAM, OSHRUN, AGENT = map(os.path.abspath, sys.argv[1:4])
WAIT = limit(60)
HEAP = r"no symmetric heap of \d+ bytes: "


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "SHMEM_"))}
    return {**env, "VIADUCT_AGENT": AGENT, **more}


class Limits(unittest.TestCase):
    def says(self, pattern, command, env=None, before=None):
        done = subprocess.run(command, env=env or environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, timeout=WAIT, check=False, preexec_fn=before)
        # The log of the library reports the limit, too, in its own words.
        lines = [line for line in done.stderr.splitlines() if not line.startswith("[")]
        self.assertEqual((done.returncode, len(lines)), (1, 1), done.stderr)
        self.assertRegex(lines[0], pattern)

    def pe_says(self, ulimit, pattern):
        """Sets the limit for the PEs alone, not for oshrun and the agent."""
        self.says(rf"oshrun: PE \d on host0: {pattern}$",
                  [OSHRUN, "-np", "2", "sh", "-c", f'{ulimit}; exec "$0" none', PROGRAM])

    def test_descriptors(self):
        self.pe_says("ulimit -n 6", r"no NIC .*: no file descriptor left \(limit 6\); raise it with ulimit -n")

    def test_address_space(self):
        for most, what in ((1000000, HEAP), (1700000, r"shmem_\w+: the memory of PE \d cannot be mapped .*: ")):
            self.pe_says(f"ulimit -v {most}", rf"{what}no address space left \(limit {most} KiB\); raise it with ulimit -v")

    def test_private_memory(self):
        self.pe_says("ulimit -s 8192; ulimit -d 10000",
                     r"no NIC .*: no private memory left \(limit 10000 KiB\); raise it with ulimit -d")

    def test_files(self):
        """The heap is a file of the agent, which oshrun has started."""
        self.says(rf"^oshrun: PE \d on host0: {HEAP}a file, .* may have 100000 KiB only; raise it with ulimit -f$",
                  [OSHRUN, "-np", "2", PROGRAM, "none"],
                  before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000 << 10, 100000 << 10)))

    def test_private_memory_of_the_agents(self):
        """The agents end at different points of their start; each has a line with the limit."""
        for where in (["-np", "2"], ["--hosts", "2", "-np", "2"]):
            with self.subTest(where=where):
                done = subprocess.run([OSHRUN, *where, PROGRAM, "none"], env=environment(), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, timeout=WAIT, check=False,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1000 << 10, 1000 << 10)))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, r"^vi_fabric: .*agent of host \d .*ulimit -d is 1000; raise it.*\n"
                                              r"oshrun: the hosts? of the job could not be started\n$")

    def test_files_of_oshrun(self):
        self.says("^oshrun: the job cannot be prepared: a file may not have this size; raise it with ulimit -f$",
                  [OSHRUN, "-np", "2", PROGRAM, "none"], before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1)))

    def test_descriptors_of_oshrun(self):
        self.says("^oshrun: no pipe for vi_fabric: no file descriptor left; raise it with ulimit -n$",
                  [OSHRUN, "-np", "2", PROGRAM, "none"], before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)))

    def test_files_of_the_agent(self):
        """The program's line names the agent's log, which has the limit."""
        name = f"li{os.getpid()}"
        ready, write = os.pipe()
        agent = subprocess.Popen([AGENT, "--ready-fd", str(write)], pass_fds=[write], text=True, stderr=subprocess.PIPE,
                                 env=environment(VIADUCT_FABRIC=name, VIADUCT_LOG="info"),
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 20, 100 << 20)))
        try:
            os.close(write)
            select.select([ready], [], [], WAIT)
            self.says(r"the window of this host is too small or in use; .* limits that it was started with \(ulimit -f\)",
                      [PROGRAM, "none"], env=environment(VIADUCT_FABRIC=name, SHMEM_VIADUCT_SINGLETON="1"))
        finally:
            os.close(ready)
            agent.terminate()
            _, text = agent.communicate(timeout=WAIT)
        self.assertTrue(re.search(r"pid \d+ gets no \d+ bytes of window memory: .*\(ulimit -f\)\n", text), text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
