#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The OpenSHMEM examples, as a user runs them; each checks its own result.

  examples_test.py [CLASS[.METHOD]...]

OSHRUN is the launcher, SHMEM_EXAMPLES the folder of the programs.
"""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

OSHRUN = os.environ["OSHRUN"]
FOLDER = Path(os.environ["SHMEM_EXAMPLES"])
NAMES = ("hello", "ring", "heat", "isort", "histogram", "matmul")
PATIENCE = limit(100)  # seconds; the launcher ends the job by itself before


def oshrun(*arguments):
    return subprocess.run([OSHRUN, "--timeout", str(PATIENCE - 20), *map(str, arguments)],
                          capture_output=True, text=True, timeout=PATIENCE, check=False,
                          stdin=subprocess.DEVNULL)


class Case(unittest.TestCase):
    def finish(self, name, npes, *options):
        """Runs an example, which must succeed; returns its output."""
        done = oshrun("-np", npes, *options, FOLDER / name)
        self.assertEqual((done.returncode, done.stderr), (0, ""),
                         f"{name} with {npes} PEs: {done.stdout}")
        return done.stdout

    def finish_all(self, npes, *options):
        for name in NAMES:
            with self.subTest(example=name, npes=npes, options=options):
                said = self.finish(name, npes, *options)
                self.assertEqual(len(said.splitlines()), npes if name == "hello" else 1)
                self.assertRegex(said, rf"^{name}\b")
                self.assertRegex(said, rf"\b{npes}\b")


class OneHost(Case):
    def test_one_pe(self):
        self.finish_all(1)

    def test_two_pes(self):
        self.finish_all(2)

    def test_three_pes(self):
        self.finish_all(3)

    def test_four_pes(self):
        self.finish_all(4)

    def test_eight_pes(self):
        self.finish_all(8)

    def test_hello_of_each_pe(self):
        said = self.finish("hello", 5)
        found = re.findall(r"PE (\d) of 5, which PE (\d) wrote to", said)
        self.assertEqual(sorted(found), [(str(i), str((i + 4) % 5)) for i in range(5)])


class Ring(Case):
    def test_one_pe_on_each_host(self):
        self.finish_all(3, "--hosts", 3)

    def test_two_pes_on_each_host(self):
        self.finish_all(6, "--hosts", 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
