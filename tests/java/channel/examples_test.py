#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the Java examples between two emulated hosts.

    examples_test.py [CLASS[.METHOD]...]

CHANNEL_BUILD is the build folder, CHANNEL_JDKS the home of a JDK.
"""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from run_channel import BUILD, PATIENCE, backends, environment

JDK = Path(os.environ["CHANNEL_JDKS"].split(":")[0])
PATH = f"{BUILD / 'java/viaduct.jar'}:{BUILD / 'examples/java/viaduct-examples.jar'}"


class Examples(unittest.TestCase):
    """Each example has a server on host1 and a client on host0."""

    @classmethod
    def setUpClass(cls):
        cls.env = environment(f"examples{os.getpid()}")
        cls.fabric("up", "--hosts", "2")
        cls.addClassCleanup(cls.fabric, "down")

    @classmethod
    def fabric(cls, *args):
        subprocess.run([BUILD / "tools/vi_fabric", *args], env=cls.env, check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL)

    def start(self, host, name, *args):
        command = [JDK / "bin/java", *backends(JDK)[0], "-Xmx200m", "-XX:+UseSerialGC",
                   f"-Dorg.viaduct.library.path={BUILD / 'java'}:{BUILD / 'vipl/lib'}", "-cp", PATH,
                   f"org.viaduct.examples.{name}", *map(str, args)]
        env = {**self.env, "VIADUCT_HOST": host, "VIADUCT_LOG": "error"}
        program = subprocess.Popen(command, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, program)
        return program

    @staticmethod
    def end(program):
        if program.poll() is None:
            program.kill()
        program.communicate()

    def both(self, server, client):
        """Runs both; returns what they wrote, and fails if one fails."""
        programs = [self.start("host1", *server), self.start("host0", *client)]
        said = [program.communicate(timeout=PATIENCE) for program in programs]
        for program, (out, err) in zip(programs, said):
            self.assertEqual(program.returncode, 0, out + err)
        return said

    def test_hello(self):
        (served, _), (asked, _) = self.both(["Hello"], ["Hello", "host1"])
        self.assertEqual((served, asked), ("hello from host0\n", "hello from host1\n"))

    def test_echo(self):
        _, (said, _) = self.both(["Echo", 1], ["Echo", "host1", 100, 1000])
        self.assertRegex(said, r"^100 bytes, half of a round trip: [0-9.]+ us at least")

    def test_file_transfer(self):
        for size, buffer, threads in ((0, 4096, 1), (10_000_001, 65536, 1), (5_000_003, 4096, 3)):
            with tempfile.TemporaryDirectory() as folder:
                here, there = Path(folder, "here"), Path(folder, "there")
                here.mkdir()
                there.mkdir()
                (here / "file").write_bytes(os.urandom(size))
                (there / "file").write_bytes(os.urandom(7))
                _, (said, progress) = self.both(["FileTransfer", "receive", there, buffer, threads],
                                                ["FileTransfer", "send", "host1", here / "file", buffer, threads])
                self.assertEqual((there / "file").read_bytes(), (here / "file").read_bytes())
                self.assertTrue(said.startswith(f"{size} bytes in "), said)
                self.assertEqual("100 %" in progress, size > 0)

    def test_wrong_usage_is_refused(self):
        for words in (["Echo"], ["FileTransfer", "send"]):
            program = self.start("host0", *words)
            self.assertIn("usage", program.communicate(timeout=PATIENCE)[1])
            self.assertEqual(program.returncode, 2)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
