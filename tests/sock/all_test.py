#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of vi_run --all by programs that no preloaded library reaches.

    all_test.py [CLASS[.METHOD]...]

The variables are those of sock_test.py.
"""
import contextlib
import json
import os
import platform
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from sock_test import BUILD, ECHO, HERE, PATIENCE, PYTHON, VI_RUN, Fabric, counted, environment, run

UNREACHED = BUILD / "tests/sock/unreached"
HOSTS = "127.77.0.1", "127.77.0.2"
ROUNDS = 2000  # exchanges of 1000 bytes

# A server of one connection, under the library: echoes, and prints who is there, all bytes, and how it ended.
SERVER = """
import select, signal, socket, sys
signal.alarm(120)
how, at = sys.argv[1:]
s = socket.socket(socket.AF_INET6 if ":" in at else socket.AF_INET); s.bind((at, 0)); s.listen()
print("at", *s.getsockname()[:2], flush=True)
a, peer = s.accept(); print("peer", *peer[:2], flush=True)
total, end, text = 0, "end", b""
try:
    if how == "send":
        a.sendall(b"".join(((i * 2654435761 >> 13) & 255).to_bytes(1, "little") for i in range(300000)))
        a.shutdown(socket.SHUT_WR)
    if how == "reset":
        a.recv(1); a.sendall(b"\\0")
        a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
        a.close(); sys.exit()
    if how == "urgent":
        while len(text) < 2: text += a.recv(2 - len(text))
        p = select.poll(); p.register(a, select.POLLPRI); p.poll()
        assert a.recv(1, socket.MSG_OOB) == b"c"
        a.sendall(b"x")
    if how == "some":
        total = len(a.recv(1)); print("some", flush=True)
    while some := a.recv(65536):
        total += len(some)
        if how == "echo": a.sendall(some)
        if how == "urgent": text += some
except ConnectionResetError:
    end = "reset"
a.close(); print(total, end, text.decode())
"""

# Echoes for all that come.
EACH = """
import signal, socket, threading
signal.alarm(120)
s = socket.create_server(("0.0.0.0", 0)); print("at", *s.getsockname(), flush=True)
def echo(a):
    while some := a.recv(65536): a.sendall(some)
    a.close()
while True: threading.Thread(target=echo, args=s.accept()[:1], daemon=True).start()
"""

# Echoes with a server of the other host.
CLIENT = """
import socket, sys
c = socket.create_connection((sys.argv[1], int(sys.argv[2])), 120); print("local", *c.getsockname()[:2])
for i in range(2000):
    c.sendall(bytes([i % 256]) * 1000); got = c.recv(1000, socket.MSG_WAITALL); assert got == bytes([i % 256]) * 1000, i
c.shutdown(socket.SHUT_WR); print(c.recv(1))
"""

# Makes connections in turn, each with an exchange.
TURNS = """
import socket, sys
for i in range(300):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 60) as c: c.sendall(b"x"); assert c.recv(1) == b"x"
print("all")
"""

# Runs the rest of the command line where a system call of that number fails.
REFUSING = """
import ctypes, os, struct, sys
number = int(sys.argv.pop(1))
steps = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number, 6, 0, 0, 0x50026, 6, 0, 0, 0x7fff0000)
room = ctypes.create_string_buffer(steps); filter = struct.pack("HxxxxxxP", 4, ctypes.addressof(room))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""


SECCOMP = {"x86_64": 317, "aarch64": 277}.get(platform.machine())
PROCESS_VM_READV = {"x86_64": 310, "aarch64": 270}.get(platform.machine())
PIDFD_GETFD = 438


def children(pid):
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Running:
    """A program on a host, whose first line tells its address, with statistics."""

    def __init__(self, fabric, host, *args):
        self.folder = tempfile.TemporaryDirectory()
        self.stats = Path(self.folder.name) / "stats"
        self.program = subprocess.Popen(
            [str(a) for a in (VI_RUN, "--promote", "eager", "--host", f"host{host}", f"--stats={self.stats}", *args)],
            env=fabric.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def line(self):
        return self.program.stdout.readline().split()

    def __enter__(self):
        self.at, self.address, self.port = self.line()
        return self

    def __exit__(self, *_):
        self.program.kill()
        self.program.wait()
        self.program.stdout.close()
        self.folder.cleanup()

    def end(self):
        """What it has printed since, and its statistics."""
        said, _ = self.program.communicate(timeout=PATIENCE)
        return said, json.loads(self.stats.read_text())


class Base(unittest.TestCase):
    def setUp(self):
        if not UNREACHED.exists():
            self.skipTest("no static C library")

    def over_vis(self, stats, total):
        """So many bytes were counted, and VIs had some of them: on a busy machine TCP has the first."""
        counts = stats["all"]
        self.assertEqual(sum(counts[f"{path}_bytes_{way}"] for path in ("vi", "tcp") for way in ("sent", "received")), total)
        self.assertGreater(counts["vi_bytes_sent"], 0)
        self.assertGreater(counts["vi_bytes_received"], 0)


class Clients(Base):
    """connect() of a static program; the server runs under the preloaded library."""

    def serve(self, how, *client, code=0, at="0.0.0.0", to=None):
        """Runs server and client: what both have printed, and the statistics of both."""
        with Fabric() as fabric, Running(fabric, 0, PYTHON, "-c", SERVER, how, at) as server:
            to = to or server.address
            done, stats = counted(fabric, "--all", "--promote", "eager", "--host", "host1", UNREACHED, client[0], to, server.port,
                                  *client[1:], code=code)
            said, served = server.end()
            return done.stdout.splitlines(), said.splitlines(), {"all": stats}, served, server.port

    def echo(self, mode, **more):
        out, said, stats, served, port = self.serve("echo", mode, ROUNDS, **more)
        self.assertEqual(out[2], "done")
        for one in (stats, served):
            self.over_vis(one, 2000 * ROUNDS)
        self.assertEqual(said[1].split(), [str(1000 * ROUNDS), "end"])
        return out, said, port

    def test_a_connection_has_the_names_that_it_would_have(self):
        out, said, port = self.echo("client")
        self.assertEqual(out[0], f"peer {HOSTS[0]} {port}")
        self.assertEqual(out[1].split()[:2], ["local", HOSTS[1]])
        self.assertEqual(said[0], out[1].replace("local", "peer"))

    def test_calls_that_do_not_wait_and_a_set(self):
        out, said, port = self.echo("edge")
        self.assertEqual(out[0], f"peer {HOSTS[0]} {port}")

    def test_ipv4_addresses_in_ipv6(self):
        out, said, port = self.echo("client", at="::", to=f"::ffff:{HOSTS[0]}")
        self.assertEqual(out[0], f"peer ::ffff:{HOSTS[0]} {port}")
        self.assertEqual(out[1].split()[1], f"::ffff:{HOSTS[1]}")

    def test_nothing_is_lost_when_the_program_ends(self):
        _, said, _, _, _ = self.serve("receive", "send", 5000000)
        self.assertEqual(said[1].split(), ["5000000", "end"])

    def test_nothing_is_lost_when_the_peer_ends(self):
        out, _, _, _, _ = self.serve("send", "receive")
        self.assertEqual(out, ["300000"])

    def test_resets_pass(self):
        _, said, _, _, _ = self.serve("echo", "reset")
        self.assertEqual(said[1].split(), ["1", "reset"])
        out, _, _, _, _ = self.serve("reset", "receive")
        self.assertIn(out, (["1 reset"], ["0 reset"]))  # as long as it is on TCP, the kernel may discard the byte

    def test_urgent_bytes_keep_their_place(self):
        _, said, _, _, _ = self.serve("urgent", "urgent")
        self.assertEqual(said[1].split(), ["2", "end", "abde"])

    def test_nobody_listens(self):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--all", "--host", "host1", UNREACHED, "refused", HOSTS[0], 1)
        self.assertEqual(done.stdout, "done\n")

    def test_another_network_namespace_is_left_alone(self):
        apart = "unshare", "--user", "--map-root-user", "--net"
        if not shutil.which("unshare") or subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no network namespace can be had")
        with Fabric() as fabric, socket.create_server((HOSTS[0], 0)) as server:
            server.setblocking(False)
            run("--all", *apart, UNREACHED, "client", *server.getsockname(), 1, env=fabric.env, code=None)
            self.assertRaises(BlockingIOError, server.accept)

    def test_a_crowd_at_the_helpers_door(self):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        crowd = min(4096, int(Path("/proc/sys/net/core/somaxconn").read_text())) + 1
        if limits[1] != resource.RLIM_INFINITY and limits[1] < crowd + 100:
            self.skipTest("too few descriptors")
        with Fabric() as fabric, Running(fabric, 0, PYTHON, "-c", EACH) as server, contextlib.ExitStack() as all_:
            resource.setrlimit(resource.RLIMIT_NOFILE, (crowd + 100, limits[1]))
            all_.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
            client = all_.enter_context(subprocess.Popen(
                [VI_RUN, "--all", "--host", "host1", "sh", "-c", f"echo; read go; exec {UNREACHED} client {server.address} {server.port} 10"],
                env=fabric.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            all_.callback(client.kill)
            client.stdout.readline()
            forward, = children(client.pid)
            mine = {link.readlink().name[8:-1] for link in Path(f"/proc/{forward}/fd").iterdir()}
            rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
            port, = (int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in mine)
            for _ in range(crowd):
                all_.enter_context(socket.create_connection(("127.0.0.1", port)))
            said, _ = client.communicate("go\n", timeout=30)
        self.assertEqual(said.splitlines()[-1], "done")

    def test_an_interrupted_call_goes_on(self):
        # A queue for one connection, which is full: the kernel answers no other.
        with Fabric() as fabric, socket.create_server((HOSTS[0], 0), backlog=0) as full, socket.create_connection(full.getsockname()):
            done = run("--all", "--host", "host1", UNREACHED, "interrupted", *full.getsockname(), env=fabric.env)
        self.assertEqual(done.stdout, "done\n")

    def test_rules_keep_connections_with_the_kernel(self):
        with Fabric() as fabric, Running(fabric, 0, PYTHON, "-c", SERVER, "echo", "0.0.0.0") as server:
            done, stats = counted(fabric, "--all", "--rules", "program=unreached,never", "--host", "host1", UNREACHED, "client",
                                  server.address, server.port, 10)
            self.assertEqual(stats["connections"], 0)
            self.assertEqual(done.stdout.splitlines()[1].split()[1], HOSTS[1])

    def test_a_rule_for_the_program_allows_what_is_off(self):
        with Fabric() as fabric, Running(fabric, 0, PYTHON, "-c", SERVER, "echo", "0.0.0.0") as server:
            _, stats = counted(fabric, "--all", "--promote", "never", "--rules", "program=unreached,auto", "--host", "host1",
                               UNREACHED, "client", server.address, server.port, ROUNDS)
            self.assertGreater(stats["vi_bytes_sent"], 0)

    def test_without_a_fabric(self):
        with subprocess.Popen([PYTHON, "-c", SERVER, "echo", "127.0.0.1"], stdout=subprocess.PIPE, text=True) as server:
            _, address, port = server.stdout.readline().split()
            done = run("--all", "--loopback", UNREACHED, "client", address, port, 10,
                       env=environment(VIADUCT_FABRIC=f"none{os.getpid()}"))
            self.assertEqual(done.stdout.splitlines()[2], "done")
            server.communicate(timeout=PATIENCE)


class Servers(Base):
    """accept() of a static program."""

    def ask(self, mode, client, at="0.0.0.0", ends=True):
        """Runs the server and a client: what both have printed, and the statistics of both."""
        with Fabric() as fabric, Running(fabric, 0, "--all", UNREACHED, mode, at) as server:
            if mode == "alarmed":
                self.assertEqual(server.line(), ["interrupted"])
            done, stats = counted(fabric, "--promote", "eager", "--host", "host1", *client, server.address.split(":")[-1],
                                  server.port, *([ROUNDS] if "--all" in client else []))
            if not ends:
                server.program.terminate()
            said, served = server.end()
        self.over_vis({"all": stats}, 2000 * ROUNDS)
        self.over_vis(served, 2000 * ROUNDS)
        return done.stdout.splitlines(), said.splitlines()

    def test_a_child_for_each_connection(self):
        out, said = self.ask("server", (PYTHON, "-c", CLIENT), ends=False)
        self.assertEqual(said[0], out[0].replace("local", "from"))
        self.assertEqual(said[1], out[0].replace("local", "peer"))
        self.assertEqual(said[2].split()[:2], ["local", HOSTS[0]])
        self.assertEqual(said[3], "end")

    def test_calls_that_do_not_wait(self):
        out, said = self.ask("polled", (PYTHON, "-c", CLIENT))
        self.assertEqual(said[-1], "end")

    def test_signals_and_time_limits_end_a_call_that_waits(self):
        out, said = self.ask("alarmed", (PYTHON, "-c", CLIENT))
        self.assertEqual(said[-1], "end")

    def test_ipv4_addresses_in_ipv6(self):
        out, said = self.ask("server", (PYTHON, "-c", CLIENT), at="::", ends=False)
        self.assertEqual(said[0], out[0].replace("local ", "from ::ffff:"))

    def test_both_ends_are_static(self):
        out, said = self.ask("server", ("--all", UNREACHED, "client"), ends=False)
        self.assertEqual(out[2], "done")
        self.assertEqual(said[0], out[1].replace("local", "from"))

    def test_nobody_gains_ports(self):
        if os.geteuid() != 0 or int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) < 2:
            self.skipTest("needs root, and a port that is root's alone")
        self.assertEqual(run("--all", "--host", "host0", UNREACHED, "reserved", "0.0.0.0").stdout, "done\n")

    def test_other_peers_get_the_connection_itself(self):
        with Fabric() as fabric, Running(fabric, 0, "--all", UNREACHED, "server", "127.0.0.1") as server:
            subprocess.run([PYTHON, "-c", CLIENT, server.address, server.port], check=True, timeout=PATIENCE, stdout=subprocess.PIPE)
            server.program.terminate()
            said, served = server.end()
        self.assertIn("end", said)
        self.assertEqual(served["all"]["connections"], 0)


class Storm(Base):
    """Signals at random moments."""

    def test_no_connection_is_lost_to_a_signal(self):
        with Fabric() as fabric, Running(fabric, 0, "--all", "--promote", "auto", UNREACHED, "storm", "0.0.0.0") as server:
            done = run("--host", "host1", PYTHON, "-c", TURNS, server.address, server.port, env=fabric.env)
        self.assertEqual(done.stdout, "all\n")


class Runs(Base):
    """vi_run --all itself."""

    def test_the_status_is_the_programs(self):
        run("--all", "sh", "-c", "exit 7", code=7)
        run("--all", "--stats", "sh", "-c", "exit 7", code=7)
        run("--all", "sh", "-c", "kill -TERM $$", code=128 + 15)
        self.assertIn("no-such-program", run("--all", "no-such-program", code=127).stderr)

    def test_standard_files_may_be_closed(self):
        for closed in "<&-", "<&- >&-", "<&- >&- 2>&-":
            done = subprocess.run(["sh", "-c", f'exec "$0" --all sh -c "exit 7" {closed}', VI_RUN], env=environment(),
                                  timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 7)

    def test_the_helper_has_no_files_of_the_programs(self):
        # The pipe has a number for which a shell may have a file, and ends with the program, which leaves a process.
        reading, writing = os.pipe()
        with subprocess.Popen([VI_RUN, "--all", "sh", "-c", f"sleep 1000 {writing}>&- & echo $!"], env=environment(),
                              pass_fds=[writing], stdout=subprocess.PIPE, text=True) as program:
            os.close(writing)
            left = int(program.stdout.readline())
            try:
                self.assertEqual(program.wait(timeout=PATIENCE), 0)
                self.assertEqual(select.select([reading], [], [], PATIENCE)[0], [reading])
            finally:
                os.kill(left, signal.SIGKILL)
                os.close(reading)

    def test_signals_are_passed_on(self):
        with subprocess.Popen([VI_RUN, "--all", PYTHON, "-c", "import signal, sys\n"
                               "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); print(1, flush=True)\n"
                               "while True: signal.pause()"], stdout=subprocess.PIPE, env=environment()) as program:
            program.stdout.readline()
            program.terminate()
            self.assertEqual(program.wait(timeout=PATIENCE), 9)

    def test_programs_with_the_library_are_left_alone(self):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stats"
            run("--all", f"--stats={path}", "--promote", "eager", "--loopback", PYTHON, "-c", ECHO % ("127.0.0.1", 50),
                env=fabric.env)
            stats = json.loads(path.read_text())
        self.assertEqual((stats["all"]["connections"], stats["all"]["promoted"]), (2, 2))
        helper, = (process for process in stats["processes"] if process["program"] == "vi_forward")
        self.assertEqual(helper["connections"], 0)

    def test_it_cannot_be_nested(self):
        done = run("--all", VI_RUN, "--all", "true", code=1)
        self.assertIn("another program's filter", done.stderr)

    def test_a_kernel_that_refuses_is_told(self):
        for call, why in ((SECCOMP, "takes no filter"), (PIDFD_GETFD, "does not let"), (PROCESS_VM_READV, "does not let")):
            done = subprocess.run([PYTHON, "-c", REFUSING, str(call), VI_RUN, "--all", "echo", "ran"], env=environment(), text=True,
                                  capture_output=True, check=False, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f"--all: the kernel {why}", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            said = subprocess.run([PYTHON, "-c", REFUSING, str(call), VI_RUN, "--all", "--explain"], env=environment(), text=True,
                                  capture_output=True, check=True, timeout=PATIENCE).stdout
            self.assertIn("cannot be had", said)

    def test_explain(self):
        said = run("--all", "--explain", UNREACHED).stdout
        self.assertIn("linked statically", said)
        self.assertIn("vi_forward carries", said)
        self.assertIn("MSG_FASTOPEN", said)
        self.assertNotIn("vi_forward", run("--explain", UNREACHED).stdout)

    def killed(self, which):
        """Kills one process while bytes are under way: the exit status of vi_run, and what the peer has seen."""
        with Fabric() as fabric, Running(fabric, 0, PYTHON, "-c", SERVER, "some", "0.0.0.0") as server:
            client = Running(fabric, 1, "--all", UNREACHED, "send", server.address, server.port, 1 << 40)
            with client.program, client.folder:
                self.assertEqual((server.line()[0], server.line()[0]), ("peer", "some"))
                front = client.program.pid
                forward, = children(front)
                program, = children(forward)
                os.kill({"vi_forward": forward, "vi_run": front, "program": program}[which], signal.SIGKILL)
                client.program.communicate(timeout=PATIENCE)
                said, _ = server.end()
        return client.program.returncode, said.split()[1]

    def test_a_killed_helper_resets_connections_and_ends_the_program(self):
        self.assertEqual(self.killed("vi_forward"), (1, "reset"))

    def test_a_killed_program_leaves_the_end(self):
        self.assertEqual(self.killed("program"), (128 + 9, "end"))

    def test_a_killed_vi_run_ends_all(self):
        self.assertEqual(self.killed("vi_run")[0], -9)

    def test_processes_that_are_left_behind_are_served_after_vi_run(self):
        with Fabric() as fabric, Running(fabric, 0, PYTHON, "-c", SERVER, "some", "0.0.0.0") as server:
            client = Running(fabric, 1, "--all", "sh", "-c", f"{UNREACHED} send {server.address} {server.port} {1 << 40} & wait")
            with client.program, client.folder:
                self.assertEqual((server.line()[0], server.line()[0]), ("peer", "some"))
                forward, = children(client.program.pid)
                program, = children(forward)
                left, = children(program)
                ended = os.pidfd_open(program)
                client.program.kill()
                self.assertTrue(select.select([ended], [], [], 60)[0])
                os.close(ended)
                os.kill(left, signal.SIGKILL)
                said, _ = server.end()
        self.assertEqual(said.split()[1], "end")


class Go(unittest.TestCase):
    """A program in Go."""

    def test_http(self):
        if not shutil.which("go"):
            self.skipTest("go is not installed")
        with tempfile.TemporaryDirectory() as folder, Fabric() as fabric:
            program = Path(folder) / "http"
            subprocess.run(["go", "build", "-o", program, HERE / "http.go"], check=True, timeout=PATIENCE,
                           env={**os.environ, "CGO_ENABLED": "0", "GOCACHE": f"{folder}/cache", "GO111MODULE": "off"})
            for at in "0.0.0.0:0", "[::]:0":
                with Running(fabric, 0, "--all", program, "server", at) as server:
                    done, stats = counted(fabric, "--all", "--promote", "eager", "--host", "host1", program, "client",
                                          f"{HOSTS[0]}:{server.port}")
                    server.program.terminate()
                    _, served = server.end()
                self.assertEqual(done.stdout, f"400 right\npeer {HOSTS[0]}:{server.port}\nfrom {HOSTS[1]}\n")
                for one in (stats, served["all"]):
                    self.assertGreater(one["vi_bytes_sent"], 0)
                    self.assertGreater(one["vi_bytes_sent"] + one["tcp_bytes_sent"], 30000000)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
