#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A Java program over the provider on host1, and its peers on host0: C under vi_run, plain C, Java over the provider.

usage: nio_peers_test.py JAVA_HOME [TEST...]
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from java_test import BUILD, PATIENCE, environment, fabric  # noqa: E402

HOME = sys.argv[1]
VI_RUN, ECHO = BUILD / "sock/run/vi_run", BUILD / "tests/java/nio_echo"
MUCH = 8_000_000  # less than a run sends each way


def java(*arguments, vi=True):
    path = ":".join(str(BUILD / folder) for folder in ("java", "vipl/lib"))
    provider = "-Djava.nio.channels.spi.SelectorProvider=org.viaduct.nio.ViaductSelectorProvider"
    return [f"{HOME}/bin/java", "-Xmx256m", "-XX:+UseSerialGC", f"-Dpeer.vi={str(vi).lower()}", provider, f"-Dorg.viaduct.library.path={path}", "-cp",
            f"{os.environ['JAVA_JAR']}:{os.environ['JAVA_TESTS']}", "org.viaduct.nio.Peer", *map(str, arguments)]


def vi_bytes(said):
    """The bytes sent and received over VIs, from the last line."""
    return [int(word) for word in said.splitlines()[-1].split()[1:]]


class Peers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.env = environment()
        fabric(cls.env, "up", "--hosts", "2")

    @classmethod
    def tearDownClass(cls):
        fabric(cls.env, "down")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stats = Path(folder.name) / "stats"

    def settings(self, host):
        """The environment that vi_run --host sets, without its library."""
        return {**self.env, "VIADUCT_HOST": f"host{host}", "VIADUCT_SOCK_BIND": f"127.77.0.{host + 1}"}

    def start(self, command, env):
        """Starts a server; returns it and the port that it prints."""
        server = subprocess.Popen(command, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait, PATIENCE)
        self.addCleanup(server.kill)
        return server, server.stdout.readline().strip()

    def talk(self, port, vi=True):
        done = subprocess.run(java("talk", "127.77.0.1", port, vi=vi), env=self.settings(1), text=True, capture_output=True,
                              timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return vi_bytes(done.stdout)

    def test_preloaded_c(self):
        echo, port = self.start([VI_RUN, "--host", "host0", f"--stats={self.stats}", ECHO, "127.77.0.1"], self.env)
        sent, received = self.talk(port)
        self.assertGreater(sent, MUCH)
        self.assertGreater(received, MUCH)
        echo.terminate()
        echo.wait(PATIENCE)
        counted = json.loads(self.stats.read_text())
        self.assertGreater(counted["all"]["vi_bytes_sent"], MUCH)
        self.assertGreater(counted["all"]["vi_bytes_received"], MUCH)

    def test_plain_c(self):
        _, port = self.start([ECHO, "127.77.0.1"], self.env)
        self.assertEqual(self.talk(port, vi=False), [0, 0])

    def test_java(self):
        server, port = self.start(java("serve"), self.settings(0))
        sent, received = self.talk(port)
        self.assertGreater(sent, MUCH)
        self.assertGreater(received, MUCH)
        self.assertGreater(min(vi_bytes(server.communicate(timeout=PATIENCE)[0])), MUCH)
        self.assertEqual(server.returncode, 0)

    def test_peer_that_is_killed(self):
        echo, port = self.start([VI_RUN, "--host", "host0", ECHO, "127.77.0.1"], self.env)
        client, said = self.start(java("end", "127.77.0.1", port), self.settings(1))
        self.assertEqual(said, "waits")
        echo.kill()
        out = client.communicate(timeout=PATIENCE)[0]
        self.assertEqual(client.returncode, 0)
        self.assertTrue(out.startswith("end"), out)
        self.assertGreater(min(vi_bytes(out)), 0)

    def test_inherited_listener(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            started = subprocess.Popen(java("inherited"), env=self.settings(0), stdin=listener)
            self.addCleanup(started.wait, PATIENCE)
            self.addCleanup(started.kill)
            address = listener.getsockname()
        with socket.create_connection(address, PATIENCE) as client:
            client.sendall(b"x")
            self.assertEqual(client.recv(2), b"x")
        self.assertEqual(started.wait(PATIENCE), 0)

    def test_under_vi_run_all_is_the_jdks(self):
        _, port = self.start([VI_RUN, "--host", "host0", ECHO, "127.77.0.1"], self.env)
        done = subprocess.run([VI_RUN, "--host", "host1", *java("talk", "127.77.0.1", port)], env=self.env, text=True,
                              capture_output=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(min(vi_bytes(done.stdout)), MUCH)

    def test_rules(self):
        rules = self.stats.with_name("rules")
        _, port = self.start([VI_RUN, "--host", "host0", ECHO, "127.77.0.1"], self.env)
        for text, least in (("# none\naddress=127.77.0.0/16,never\n", None), ("port=1-65535,eager # all\n", MUCH)):
            rules.write_text(text, encoding="utf-8")
            command = java("talk", "127.77.0.1", port, vi=least is not None)
            command.insert(1, f"-Dorg.viaduct.nio.rules={rules}")
            done = subprocess.run(command, env=self.settings(1), text=True, capture_output=True, timeout=PATIENCE,
                                  check=False, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            if least is None:
                self.assertEqual(vi_bytes(done.stdout), [0, 0])
            else:
                self.assertGreater(min(vi_bytes(done.stdout)), least)

    def test_wrong_rules_are_refused(self):
        rules = self.stats.with_name("rules")
        rules.write_text("port=1,sometimes\n", encoding="utf-8")
        for name, said in ((rules, "sometimes"), ("/nowhere/rules", "/nowhere/rules cannot be read")):
            command = java("talk", "127.77.0.1", 1)
            command.insert(1, f"-Dorg.viaduct.nio.rules={name}")
            done = subprocess.run(command, env=self.settings(1), text=True, capture_output=True, timeout=PATIENCE,
                                  check=False, stdin=subprocess.DEVNULL)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
