#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of libvisock.so and vi_run by the programs that they run.

    sock_test.py [CLASS[.METHOD]...]

SOCK_BUILD is the build folder, SOCK_PYTHON the interpreter of the programs that are run, SOCK_SANITIZED set for a build
with the address sanitizer.
"""
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

BUILD, HERE = Path(os.environ["SOCK_BUILD"]), Path(__file__).parent
PYTHON = os.environ.get("SOCK_PYTHON", sys.executable)
VI_RUN, LIBRARY = BUILD / "sock/run/vi_run", BUILD / "sock/hook/libvisock.so"
VI_FABRIC, AGENT = BUILD / "tools/vi_fabric", BUILD / "provider/agent/viaductd"
PATIENCE = limit(int(os.environ.get("SOCK_PATIENCE", "240")))
numbers = itertools.count()


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
    if "SOCK_SANITIZED" in clean:
        # The preloaded library comes before the sanitizer's; interpreters leave memory.
        clean["ASAN_OPTIONS"] = clean.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0"
    return {**clean, "VIADUCT_AGENT": str(AGENT), "CHECK_SECONDS": str(PATIENCE // 2), **more}


class Fabric:
    """Emulated hosts for one test."""

    def __init__(self, hosts=2, become=()):
        self.env, self.become = environment(VIADUCT_FABRIC=f"sock{os.getpid()}-{next(numbers)}"), become
        self.tool("up", "--hosts", str(hosts))

    def tool(self, *args):
        subprocess.run([*self.become, VI_FABRIC, *args], env=self.env, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tool("down")


def run(*args, env=None, code=0):
    done = subprocess.run([VI_RUN, *map(str, args)], env=env or environment(), text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
    if code is not None and done.returncode != code:
        raise AssertionError(f"vi_run {args}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def counted(fabric, *args, code=0):
    """Runs with statistics; returns the run and the sums."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stats"
        done = run(f"--stats={path}", *args, env=fabric.env, code=code)
        return done, json.loads(path.read_text())["all"]


ECHO = """
import socket, threading
s = socket.socket(); s.bind((%r, 0)); s.listen()
c = socket.create_connection(s.getsockname()); a, _ = s.accept()
for i in range(%d):
    c.sendall(b'x' * 1000); a.sendall(a.recv(1000, socket.MSG_WAITALL)); c.recv(1000, socket.MSG_WAITALL)
c.close(); print(a.recv(10))
"""


# Exchanges until the kernel's counts of both directions stand still, as the bytes go over VIs; then 100 times more.
# Arguments: the addresses of listener and client, if they are not 127.0.0.1.
ECHO_MOVED = """
import socket, struct, sys, time
at, to = sys.argv[1:] or ("127.0.0.1", "127.0.0.1")
def made(address): return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
s = made(at); s.bind((at, 0)); s.listen()
c = made(to); c.connect((to, s.getsockname()[1])); a, _ = s.accept()
def counts():
    info = c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
    return struct.unpack_from("QQ", info, 120) # tcpi_bytes_acked, tcpi_bytes_received
def rounds(n):
    for i in range(n):
        c.sendall(b'x' * 1000); a.sendall(a.recv(1000, socket.MSG_WAITALL)); c.recv(1000, socket.MSG_WAITALL)
end = time.monotonic() + 60; done = 0; before = None
while before != counts() and time.monotonic() < end:
    before = counts(); rounds(100); done += 100
rounds(100); done += 100
c.close(); print(a.recv(10), done)
"""

# Connections of a host with itself whose addresses the library learns in each way: accept() that tells all of the peer's,
# none, or a part; connect() that waits or not; with an address that the program has bound, without a port yet, or not.
ADDRESSES = """
import ctypes, itertools, select, socket
call = ctypes.CDLL(None, use_errno=True).accept
s = socket.create_server(("0.0.0.0", 0)); at = s.getsockname()
def accept(room):
    at, n = ctypes.create_string_buffer(128), ctypes.c_uint(room)
    fd = call(s.fileno(), at if room else None, ctypes.byref(n) if room else None)
    if fd < 0 or any(at.raw[room:]) or (room and n.value != 16): raise OSError(fd, at.raw)
    return socket.socket(fileno=fd)
for room, waits, bound in itertools.product((0, 6, 16, 100), (True, False), (True, False)):
    c = socket.socket()
    if bound:
        c.setsockopt(socket.IPPROTO_IP, 24, 1); c.bind((at[0], 0)) # IP_BIND_ADDRESS_NO_PORT
    c.setblocking(waits); c.connect_ex(at)
    a = accept(room)
    select.select([], [c], []); c.setblocking(True)
    if (c.getsockname(), c.getpeername()) != (a.getpeername(), at): raise OSError(c, a)
    for i in range(3):
        c.sendall(b'x' * 1000); a.sendall(a.recv(1000, socket.MSG_WAITALL)); c.recv(1000, socket.MSG_WAITALL)
    c.close(); print(at[0], a.recv(10)); a.close()
"""


SETS = """
import select, signal, socket, sys
signal.alarm(60)
s = socket.create_server(("127.0.0.1", 0)); pairs = []; sets = []
for i in range(%d):
    c = socket.create_connection(s.getsockname()); a, _ = s.accept()
    sets.append(select.epoll()); sets[-1].register(a, select.EPOLLIN); pairs.append((c, a))
for (c, a), e in zip(pairs, sets):
    for i in range(300):
        c.sendall(b'x' * 1000)
        if e.poll(60) != [(a.fileno(), select.EPOLLIN)]:
            sys.exit("no event")
        a.sendall(a.recv(1000, socket.MSG_WAITALL)); c.recv(1000, socket.MSG_WAITALL)
"""


# Is a socket in the kernel's set that the program has taken out of it?  On VIs yes, as it saves system calls; not after a fork.
PARKED = """
import os, select, socket
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept()
e = select.epoll(); e.register(a, select.EPOLLIN)
for i in range(300):
    c.sendall(b'x'); assert e.poll(60) == [(a.fileno(), select.EPOLLIN)]; a.recv(1); a.sendall(b'y'); c.recv(1)
def in_kernel():
    with open("/proc/self/fdinfo/%d" % e.fileno()) as f:
        return any(line.split()[:2] == ["tfd:", str(a.fileno())] for line in f)
e.unregister(a); taken_out = in_kernel()
e.register(a, select.EPOLLIN); added = in_kernel(); e.unregister(a)
child = os.fork()
if child == 0: os._exit(in_kernel())
print(taken_out, added, os.waitpid(child, 0)[1] != 0)
"""


# Accepted connections that are first used by a set: there are descriptors for the completion queues
# of the other ends, and one for all of the set.
SHARED = """
import os, select, socket
s = socket.create_server(("127.0.0.1", 0)); e = select.epoll(); kept = []
for i in range(40):
    c = socket.create_connection(s.getsockname()); a, _ = s.accept()
    e.register(a, select.EPOLLIN); kept.append((c, a))
    c.sendall(b'x'); assert e.poll(60) == [(a.fileno(), select.EPOLLIN)]; a.recv(1)
def kind(fd):
    try: return os.readlink("/proc/self/fd/" + fd)
    except OSError: return ""
print(sum("eventfd" in kind(fd) for fd in os.listdir("/proc/self/fd")))
"""


# Children of a process that keeps a connection whose other end has ended, or one with bytes that it does not read.
FORKS = """
import os, select, signal, socket, subprocess, sys
CLIENT = "import socket, sys; c = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); c.sendall(b'x'); c.recv(1);" + (
    "c.sendall(b'yyy'); c.recv(1)" if sys.argv[1] == "unread" else "")
s = socket.create_server(("127.0.0.1", 0))
client = subprocess.Popen([sys.executable, "-c", CLIENT, str(s.getsockname()[1])])
a, _ = s.accept(); a.recv(1); a.sendall(b"x")
if sys.argv[1] == "ended": client.wait()
select.select([a], [], [])
signal.alarm(20)
for i in range(40):
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
print(a.recv(10)); a.close(); client.wait()
"""


# A socket on a VI and a pipe are both readable, and the program asks for one event at a time.
TURNS = """
import os, select, socket
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept()
for i in range(1000):
    c.sendall(b'x'); a.sendall(a.recv(1)); c.recv(1)
r, w = os.pipe(); e = select.epoll(); told = {a.fileno(): 0, r: 0}
for fd in told: e.register(fd, select.EPOLLIN)
c.sendall(b'x'); os.write(w, b'x'); select.select([a], [], [])
for i in range(1000):
    for fd, _ in e.poll(60, 1): told[fd] += 1
print(min(told.values()) > 0)
"""


# Sends 64 MiB again and again, without pauses, until the kernel's count stands still during one of them.
DOWNLOAD = """
import hashlib, socket, struct, threading, time
data = bytes(range(256)) * (1 << 18); sent = hashlib.sha256(); got = hashlib.sha256(); total = 0
s = socket.create_server(("127.0.0.1", 0))
def acked(a):
    return struct.unpack_from("Q", a.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136), 120)[0]
def serve():
    a, _ = s.accept(); end = time.monotonic() + 60; before = None
    while before != acked(a) and time.monotonic() < end:
        before = acked(a); a.sendall(data); sent.update(data)
    a.close()
server = threading.Thread(target=serve); server.start()
c = socket.create_connection(s.getsockname())
while some := c.recv(65536): got.update(some); total += len(some)
server.join(); print(got.hexdigest() == sent.hexdigest(), total)
"""


# The TCP connections of a promoted one are reset, as by a firewall that has seen them idle for long: a poll that also asks
# for urgent bytes still waits for those of the VI, and no longer than it may.
IDLE_RESET = """
import ctypes, os, select, signal, socket
signal.alarm(60)
CONNECT = {"x86_64": 42, "aarch64": 203}[os.uname().machine]
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept()
for i in range(100): c.sendall(b"x"); a.sendall(a.recv(1)); c.recv(1)
assert ctypes.CDLL(None).syscall(CONNECT, c.fileno(), bytes(16), 16) == 0 # to AF_UNSPEC
p = select.poll(); p.register(a, select.POLLIN | select.POLLPRI); e = select.epoll(); e.register(a, select.EPOLLIN | select.EPOLLPRI)
print(p.poll(20), e.poll(0.02))
c.sendall(b"y"); print([n for _, n in p.poll() + e.poll()], a.recv(1))
"""


# Prints how many bytes one end takes while the other one reads nothing, for options of the listener and of the client;
# waits for room until there are more than so many.
FULL = """
import select, socket, sys
BUFFERS = {"r": socket.SO_RCVBUF, "s": socket.SO_SNDBUF, "f": 33, "l": socket.SO_RCVLOWAT} # f: SO_RCVBUFFORCE
def set_all(s, said):
    for word in filter(None, said.split(",")): s.setsockopt(socket.SOL_SOCKET, BUFFERS[word[0]], int(word[1:]))
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); set_all(listener, sys.argv[1]); listener.listen()
c = socket.socket(); set_all(c, sys.argv[2]); c.connect(listener.getsockname()); a, _ = listener.accept()
for i in range(5): c.sendall(b"x"); a.sendall(a.recv(1)); c.recv(1)
for one, other, least in ((c, a, int(sys.argv[3])), (a, c, int(sys.argv[4]))):
    one.setblocking(False); other.setblocking(True); sent = 0; piece = bytes(4096)
    while select.select([], [one], [], 30 if sent <= least else 0)[1]: sent += one.send(piece)
    print(sent)
    while sent: sent -= len(other.recv(min(sent, 65536))) # as SO_RCVLOWAT may ask for more
"""


class Run(unittest.TestCase):
    """Messages and refusals of vi_run."""

    def test_wrong_usage_is_refused(self):
        for args, said in (([], "no program"), (["--promote", "often", "true"], "--promote"),
                           (["--rules", "port=1", "true"], "VIADUCT_SOCK_RULES"),
                           (["--map", "10.0.0.1", "true"], "VIADUCT_SOCK_MAP"),
                           (["--host", "somewhere", "true"], "--host"),
                           (["--service", "poller", "true"], "VIADUCT_SOCK_SERVICE"),
                           (["--service", "poller:0", "true"], "VIADUCT_SOCK_SERVICE"),
                           (["--service", "poller:65", "true"], "VIADUCT_SOCK_SERVICE"),
                           (["--service", "poller:1x", "true"], "VIADUCT_SOCK_SERVICE"),
                           (["--service", "copier:1", "true"], "«copier:1» should be none, or poller:N"),
                           (["--place", "svc", "true"], "VIADUCT_SOCK_PLACE"),
                           (["--place", "app=llc", "true"], "«app=llc» should be"),
                           (["--place", "app=0,svc=9-8", "true"], "«svc=9-8» should be"),
                           (["--place", "svc=1,svc=2", "true"], "«svc=2» should be"),
                           (["--place", "engine=1", "true"], "«engine=1» should be"),
                           (["--place", "app=1,dynamic", "true"], "«dynamic» should be"),
                           (["--place", "svc=core,dynamic", "true"], "«dynamic» should be")):
            done = run(*args, code=2)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_status_is_the_programs(self):
        self.assertEqual(run("--stats", "sh", "-c", "exit 7", code=7).stdout, "")
        run("sh", "-c", "exit 7", code=7)
        run("--stats", "sh", "-c", "kill -TERM $$", code=128 + 15)
        self.assertIn("no-such-program", run("no-such-program", code=127).stderr)

    def test_explain(self):
        said = run("--explain", "--host", "host1", "--rules", "program=a*,port=5-6,never",
                   "--map", "10.1.0.0/16 left", "true").stdout
        for text in ("127.77.0.2", "never: program a*, address any, port 5 to 6", "10.1.0.0/16 is left",
                     "can be promoted"):
            self.assertIn(text, said)

    def test_a_static_program_is_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "static"
            built = subprocess.run(["cc", "-static", "-x", "c", "-", "-o", program], input="int main(void){return 0;}",
                                   text=True, capture_output=True, check=False)
            if built.returncode != 0:
                self.skipTest("no static C library")
            self.assertIn("linked statically", run("--explain", program).stdout)
            self.assertIn("linked statically", run(program).stderr)

    def test_a_wrong_variable_is_said_and_nothing_promoted(self):
        done = run("true", env=environment(VIADUCT_SOCK_PROMTE="eager"), code=2)
        self.assertIn("VIADUCT_SOCK_PROMTE", done.stderr)
        done = subprocess.run(["true"], env=environment(LD_PRELOAD=str(LIBRARY), VIADUCT_SOCK_PROMOTE="x"),
                              text=True, capture_output=True, check=True)
        self.assertIn("VIADUCT_SOCK_PROMOTE", done.stderr)


    def test_places_become_rules(self):
        for place, rules in (("app=0,2-3,svc=llc,irq=1", "application=0,2-3;service=shared-cache;transfer=1;relay=1;interrupt=1"),
                             ("svc=core,irq=package", "service=same-core;transfer=same-package"),
                             ("app=0,svc=2-5,dynamic", "application=0;service=2-5;dynamic"),
                             ("app=0,irq=llc,strict", "application=0;transfer=shared-cache;relay=shared-cache;interrupt=shared-cache;strict"),
                             ("irq=device", "transfer=device;relay=device;interrupt=device"),
                             ("app=none,svc=other", "application=none;service=other-package")):
            self.assertIn(f'"{rules}"', run("--explain", "--place", place).stdout)
        said = run("--explain", "--service", "poller:2").stdout
        self.assertIn("2 pollers", said)
        done = run("--place", "app=0", "true", env=environment(VIADUCT_AFFINITY="application=1"), code=2)
        self.assertIn("VIADUCT_AFFINITY", done.stderr)


class PassThrough(unittest.TestCase):
    """Descriptors that the library leaves alone."""

    def test_a_call_costs_no_more_than_5_ns(self):
        env = environment()
        fast, cost = HERE_BUILD / "libfast_read.so", HERE_BUILD / "read_cost"

        def least(preload):
            return min(int(subprocess.run([cost], env={**env, "LD_PRELOAD": preload}, check=True, text=True,
                                          capture_output=True).stdout) for _ in range(5))
        self.assertLessEqual(least(f"{LIBRARY}:{fast}") - least(f"{fast}"), 5000)

    def test_without_a_fabric_programs_run_as_before(self):
        env = environment(VIADUCT_FABRIC=f"none{os.getpid()}", VIADUCT_AGENT="none")
        done = run("--promote", "eager", "--loopback", "--stats", PYTHON, "-c", ECHO % ("127.0.0.1", 5), env=env)
        self.assertIn("b''", done.stdout)
        self.assertIn("0 promoted", done.stderr)
        for promote in ("auto", "eager"):
            for before in ((), ("sh", "-c", '"$@"; true', "sh")):
                done = run("--promote", promote, "--loopback", *before, PYTHON, "-c", ECHO % ("127.0.0.1", 5), env=env)
                self.assertEqual((done.stdout, done.stderr), ("b''\n", ""))


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
            return True
    except OSError:
        return False


def may_force_buffers():
    with socket.socket() as s:
        try:
            s.setsockopt(socket.SOL_SOCKET, 33, 1 << 20)  # SO_RCVBUFFORCE
            return True
        except PermissionError:
            return False


class Promotion(unittest.TestCase):
    """Connections whose bytes go over VIs, and reasons why they do not."""

    def test_never(self):
        with Fabric() as fabric:
            _, stats = counted(fabric, "--promote", "never", "--loopback", PYTHON, "-c", ECHO % ("127.0.0.1", 100))
        self.assertEqual((stats["vi_bytes_sent"], stats["promoted"]), (0, 0))
        self.assertEqual(stats["tcp_bytes_received"], 200000)
        self.assertEqual(stats["not_promoted"], {"promotion is off, or a rule says never": 2})

    def test_automatic_and_eager(self):
        for when in ("auto", "eager"):
            with Fabric() as fabric:
                done, stats = counted(fabric, "--promote", when, "--loopback", PYTHON, "-c", ECHO_MOVED)
            end, rounds = done.stdout.split()
            self.assertEqual(end, "b''")
            self.assertGreaterEqual(stats["vi_bytes_received"], 200000)
            self.assertEqual(stats["vi_bytes_received"] + stats["tcp_bytes_received"], 2000 * int(rounds))
            self.assertEqual(stats["promoted"], 2)

    def test_ipv6_and_addresses_of_ipv4_in_it(self):
        for at, to in ("::1", "::1"), ("::", "::ffff:127.0.0.1"), ("::", "127.0.0.1"), ("127.0.0.1", "::ffff:127.0.0.1"):
            with self.subTest(at=at, to=to), Fabric() as fabric:
                if ":" in at and not has_ipv6():
                    self.skipTest("no IPv6 here")
                done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", ECHO_MOVED, at, to)
                end, rounds = done.stdout.split()
                self.assertEqual((end, stats["promoted"]), ("b''", 2))
                self.assertEqual(stats["vi_bytes_received"] + stats["tcp_bytes_received"], 2000 * int(rounds))
                self.assertGreaterEqual(stats["vi_bytes_received"], 200000)

    def test_however_a_program_asks_for_addresses(self):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--host", "host1", "--promote", "eager", PYTHON, "-c", ADDRESSES)
        self.assertEqual(done.stdout, "127.77.0.2 b''\n" * 16)
        self.assertEqual((stats["connections"], stats["promoted"]), (32, 32))

    def test_a_download_without_a_pause_is_promoted(self):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "auto", "--loopback", PYTHON, "-c", DOWNLOAD)
        same, total = done.stdout.split()
        self.assertEqual(same, "True")
        self.assertGreaterEqual(stats["vi_bytes_received"], 64 << 20)
        self.assertEqual(stats["vi_bytes_received"] + stats["tcp_bytes_received"], int(total))

    def test_sets_that_were_made_before_their_sockets_are_promoted(self):
        with Fabric() as fabric:
            _, stats = counted(fabric, "--promote", "auto", "--loopback", PYTHON, "-c", SETS % 4)
        self.assertEqual(stats["connections"], 8)

    def test_connections_of_a_set_share_a_descriptor(self):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", SHARED)
        self.assertEqual(stats["promoted"], 80)
        self.assertLess(int(done.stdout), 60)

    def test_a_set_may_keep_what_is_taken_out_until_others_have_it(self):
        with Fabric() as fabric:
            done, _ = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", PARKED)
        self.assertEqual(done.stdout.strip(), "True True False")

    def test_fork_waits_for_nothing_that_cannot_come(self):
        for how, said in ("ended", "b''"), ("unread", "b'yyy'"):
            with self.subTest(how), Fabric() as fabric:
                done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", FORKS, how)
                self.assertEqual(done.stdout.strip(), said)
                self.assertGreater(stats["vi_bytes_received"], 0)

    def test_a_child_that_closes_leaves_the_sets_of_its_parent(self):
        for first in "sockets", "set":
            with self.subTest(first), Fabric() as fabric:
                _, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, HERE / "forked_set.py", first)
                self.assertGreater(stats["vi_bytes_received"], 0)

    def test_events_of_the_kernel_have_their_turn(self):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", TURNS)
        self.assertEqual((done.stdout, stats["promoted"]), ("True\n", 2))

    def test_a_poll_for_urgent_bytes_ends_though_tcp_was_reset(self):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", IDLE_RESET)
        self.assertEqual(done.stdout, "[] []\n[1, 1] b'y'\n")
        self.assertEqual((stats["promoted"], stats["demoted"]), (2, 0))
        self.assertLess(stats["sleeps"], 1000)

    def test_buffers_size_the_ring(self):
        """An end holds at most its ring, and more than half of that: below it poll() would tell of room."""
        KIB, MIB = 1 << 10, 1 << 20
        for listener, client, rings in (("", "", (MIB, MIB)),
                                        ("r4096", "", (64 * KIB, MIB)),
                                        ("", "r50000", (MIB, 128 * KIB)),
                                        ("r50000,s70000", "s9000", (256 * KIB, MIB)),
                                        ("", "s200000,l1000000", (MIB, 2 * MIB)),
                                        ("f3000000", "f20000000", (8 * MIB, 16 * MIB))):
            with self.subTest(listener=listener, client=client), Fabric() as fabric:
                if "f" in listener and not may_force_buffers():
                    self.skipTest("SO_RCVBUFFORCE is not allowed here")
                done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", FULL, listener, client,
                                      *(ring // 2 for ring in rings))
                self.assertLess(stats["tcp_bytes_sent"], 10)
                for held, most in zip(map(int, done.stdout.split()), rings):
                    self.assertLessEqual(held, most)
                    self.assertGreater(held, most // 2)

    def test_loopback_stays_with_the_kernel_unless_asked(self):
        with Fabric() as fabric:
            _, stats = counted(fabric, "--promote", "eager", PYTHON, "-c", ECHO % ("127.0.0.1", 5))
        self.assertEqual(stats["not_promoted"], {"the peer's address is of no host of the fabric": 2})

    def test_emulated_hosts_are_promoted_by_their_addresses(self):
        with Fabric() as fabric:
            _, stats = counted(fabric, "--promote", "eager", "--host", "host0", PYTHON, "-c", ECHO % ("0.0.0.0", 50))
        self.assertGreater(stats["vi_bytes_received"], 0)

    def test_a_peer_without_the_library_talks_tcp(self):
        with Fabric() as fabric, socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            child = subprocess.Popen(
                [VI_RUN, "--promote", "eager", "--loopback", PYTHON, "-c",
                 "import socket, sys; c = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
                 "c.sendall(b'hello'); print(c.recv(5, socket.MSG_WAITALL))", str(listener.getsockname()[1])],
                env=fabric.env, stdout=subprocess.PIPE, text=True)
            plain, _ = listener.accept()
            with plain:
                self.assertEqual(plain.recv(5, socket.MSG_WAITALL), b"hello")
                plain.sendall(b"again")
                self.assertIn("again", child.communicate(timeout=PATIENCE)[0])
                self.assertEqual(plain.recv(5), b"")


LAST = """
import socket, subprocess, sys
with socket.create_server(("127.0.0.1", 0)) as listener:
    for how in sys.argv[2:]:
        child = subprocess.Popen([sys.argv[1], str(listener.getsockname()[1]), how])
        end, _ = listener.accept()
        end.recv(1, socket.MSG_PEEK)
        got, told = 0, ""
        try:
            while some := len(end.recv(100000)):
                got += some
        except ConnectionResetError:
            told = " reset"
        end.close()
        print(how, child.wait(), f"{got}{told}")
"""


# The child's bytes fill TCP before the connection is promoted, and the parent reads none, so that they stay there while its
# own go by a VI; when the child has ended it waits for the reset that must not come, a second at most, and then it reads.
# Argument: how the child ends.
LATE = """
import os, select, signal, socket, struct, subprocess, sys
if len(sys.argv) == 2:
    s = socket.create_server(("127.0.0.1", 0))
    child = subprocess.Popen([sys.executable, "-c", LATE, sys.argv[1], str(s.getsockname()[1])], stdout=subprocess.PIPE, text=True)
    child.stdout.readline(); a, _ = s.accept()
    while not select.select([child.stdout], [], [], 0.005)[0]: a.sendall(b'y')
    child.stdout.readline(); a.sendall(b'z'); sent = int(child.stdout.readline()); child.wait()
    reset = select.poll(); reset.register(a, 0); reset.poll(1000)
    n = 0
    while some := a.recv(65536): n += len(some)
    print("all, then the end" if n == sent else f"{n} of {sent}")
    sys.exit()
c = socket.create_connection(("127.0.0.1", int(sys.argv[2]))); n = 0
def fill():
    global n
    try:
        while True: n += c.send(bytes(65536), socket.MSG_DONTWAIT)
    except BlockingIOError: pass
def received(): return struct.unpack_from("Q", c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136), 128)[0]
fill(); print("full", flush=True); same = 0
while same < 20:
    fill(); before = received(); c.recv(1); same = same + 1 if received() == before else 0
print("by a VI", flush=True)
while c.recv(1) != b'z': pass
fill(); print(n, flush=True)
if sys.argv[1] == "close": c.close()
elif sys.argv[1] == "_exit": os._exit(0)
elif sys.argv[1] == "kill": os.kill(os.getpid(), signal.SIGKILL)
"""
LATE = f"LATE = {LATE!r}{LATE}"


class Calls(unittest.TestCase):
    """Signals, and calls of the kernel that do not use the C library's functions for sockets."""

    def calls(self, what, *options, **variables):
        with Fabric() as fabric:
            fabric.env.update(variables)
            return counted(fabric, "--promote", "eager", "--loopback", *options, HERE_BUILD / "calls", what)

    def test_handlers_restart_calls_as_they_ask_for(self):
        plain = subprocess.run([HERE_BUILD / "calls", "plain-signals"], text=True, capture_output=True, check=False)
        self.assertEqual((plain.stdout, plain.returncode), ("ok\n", 0))
        done, stats = self.calls("signals")
        self.assertEqual(done.stdout, "ok\n")
        self.assertEqual((stats["promoted"], stats["demoted"]), (2, 0))

    def test_a_call_ends_by_a_signal_or_a_cancellation_that_comes_before_it_sleeps(self):
        done, _ = self.calls("early")
        self.assertEqual(done.stdout, "ok\n")

    def test_the_end_that_follows_to_tcp_is_counted(self):
        done, stats = self.calls("urgent")
        self.assertEqual(done.stdout, "ok\n")
        self.assertEqual((stats["promoted"], stats["demoted"]), (2, 2))
        self.assertEqual(sorted(stats["demotions"].values()), [1, 1])
        self.assertEqual(len([why for why in stats["demotions"] if "urgent" in why]), 1)

    def test_messages_with_control_data_go_to_the_kernel_which_checks_them(self):
        plain = subprocess.run([HERE_BUILD / "calls", "plain-control"], text=True, capture_output=True, check=False)
        self.assertEqual((plain.stdout, plain.returncode), ("ok\n", 0))
        done, stats = self.calls("control")
        self.assertEqual(done.stdout, "ok\n")
        self.assertEqual((stats["promoted"], stats["demoted"]), (2, 2))

    def test_closing_all_spares_what_the_fabric_has(self):
        done, stats = self.calls("closes")
        self.assertEqual((done.stdout, stats["promoted"]), ("ok\n", 4))

    def test_posix_aio_finds_the_bytes(self):
        done, stats = self.calls("aio")
        self.assertEqual((done.stdout, stats["demoted"]), ("ok\n", 2))

    def test_children_whose_program_does_not_exist_leave_the_parents_connections(self):
        done, stats = self.calls("children")
        self.assertEqual(done.stdout, "ok\n")
        self.assertEqual((stats["promoted"], stats["demoted"]), (2, 2))

    def test_the_last_bytes_of_a_process_arrive_however_it_ends(self):
        ways = ("return", "exit", "_exit", "_Exit", "quick_exit", "exit_group", "handler", "exec")
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", LAST, HERE_BUILD / "last",
                                  *ways, "library", "linger")
        self.assertEqual(done.stdout.splitlines(), [f"{how} 0 2000" for how in ways] + ["library 0 3000", "linger 0 1000 reset"])
        self.assertEqual(stats["vi_bytes_sent"], 2000 * len(ways) + 3000 + 1000)

    def test_bytes_in_the_kernel_arrive_after_the_process_has_ended(self):
        ways = ("close", "return", "_exit", "kill")
        for how in ways:
            with self.subTest(how), Fabric() as fabric:
                done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", LATE, how)
                self.assertEqual(done.stdout, "all, then the end\n")
                # Those of the reader went by a VI, most of the others by TCP.
                self.assertGreater(stats["vi_bytes_sent"], 0)
                self.assertGreater(stats["tcp_bytes_received"], 1 << 20)

    def uring(self, what, **variables):
        done, stats = self.calls(what, **variables)
        if not done.stdout.startswith("made"):
            self.skipTest(f"io_uring: {done.stdout}")
        self.assertEqual(stats["demoted"], 2)
        self.assertEqual(stats["demotions"], {"the program uses io_uring": 2})
        self.assertEqual(stats["not_promoted"], {"the program uses io_uring": 2})

    def test_io_uring_ends_promotion(self):
        self.uring("uring")

    def test_io_uring_of_liburing_ends_promotion(self):
        found = list(Path("/usr/lib").glob("*/liburing.so.2"))
        if not found:
            self.skipTest("liburing is not installed")
        self.uring("liburing", LD_PRELOAD=str(found[0]))

    def test_io_uring_is_refused_on_demand(self):
        done, stats = self.calls("uring", "--no-uring")
        self.assertEqual(done.stdout, "Function not implemented\nok\n")
        self.assertEqual((stats["promoted"], stats["demoted"]), (4, 0))


# A promoted connection whose second end a child uses on, while the parent closes it.
CHILD = """
import os, socket, subprocess, sys
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept()
for i in range(300):
    c.sendall(b'x'); a.sendall(a.recv(1)); c.recv(1)
c.settimeout(60)
def echo():
    while some := a.recv(100): a.sendall(some)
    os._exit(0)
if sys.argv[1] == "popen":
    subprocess.Popen(["cat"], stdin=a, stdout=a)
elif sys.argv[1] == "spawn":
    os.posix_spawnp("cat", ["cat"], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, a.fileno(), n) for n in (0, 1)])
elif os.forkpty()[0] == 0:
    c.close(); echo()
a.close(); c.sendall(b"abc"); c.shutdown(socket.SHUT_WR); got = b""
while some := c.recv(100): got += some
print(got)
"""


class Children(unittest.TestCase):
    """Processes that get a promoted connection."""

    def goes_on(self, how):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "eager", "--loopback", PYTHON, "-c", CHILD, how)
        self.assertEqual(done.stdout, "b'abc'\n", done.stderr)
        self.assertEqual((stats["promoted"], stats["demoted"]), (2, 2))

    def test_subprocess(self):
        self.goes_on("popen")

    def test_posix_spawn(self):
        self.goes_on("spawn")

    def test_forkpty(self):
        try:
            for end in os.openpty():
                os.close(end)
        except OSError as error:
            self.skipTest(f"no terminal can be made here: {error}")
        self.goes_on("forkpty")

    def test_clone(self):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "eager", "--loopback", HERE_BUILD / "calls", "clone")
        self.assertEqual((done.stdout, stats["promoted"], stats["demoted"]), ("ok\n", 2, 2))


class Handlers(unittest.TestCase):
    """Signal handlers that use descriptors while their thread is in a call of an epoll set."""

    def handles(self, what):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "eager", "--loopback", HERE_BUILD / "handlers", what)
        self.assertEqual(done.stdout, "ok\n")
        self.assertGreater(stats["vi_bytes_received"], 0)

    def test_exit(self):
        self.handles("exit")

    def test_sockets_are_made_and_closed(self):
        self.handles("sockets")

    def test_connections_of_the_set_are_closed(self):
        self.handles("close")

    def test_the_connection_of_the_call_is_closed(self):
        self.handles("own")

    def test_the_set_is_used(self):
        self.handles("set")

    def test_set_and_connections_are_polled(self):
        self.handles("poll")


class Waiters(unittest.TestCase):
    """Threads that wait in an epoll set for actions of other threads."""

    def waits(self, what, promote):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", promote, "--loopback", HERE_BUILD / "waiters", what)
        self.assertEqual(done.stdout, "ok\n")
        self.assertGreater(stats["vi_bytes_received"], 0)

    def test_another_thread_promotes_the_connection(self):
        self.waits("promoted", "auto")

    def test_another_thread_asks_for_the_next_event(self):
        for promote in "eager", "auto":
            self.waits("rearmed", promote)

    def test_threads_share_a_set(self):
        for promote in "eager", "auto":
            self.waits("pool", promote)


SERVER = """
import os, select, socket, sys, threading
n, rounds, threads, nested = 8, 300, %d, %r
listener = socket.socket(); listener.bind(('127.0.0.1', 0)); listener.listen()
ends = []
for i in range(n):
    c = socket.create_connection(listener.getsockname()); a, _ = listener.accept()
    ends.append((c, a))
ep = select.epoll(); by = {a.fileno(): a for _, a in ends}; total = [0]; lock = threading.Lock()
for fd in by: ep.register(fd, select.EPOLLIN | (select.EPOLLONESHOT if threads > 1 else 0))
outer = select.epoll() if nested else ep
if nested: outer.register(ep.fileno(), select.EPOLLIN)
def serve():
    while total[0] < n * rounds:
        outer.poll() if nested else None
        for fd, _ in ep.poll(0 if nested else 1 if threads > 1 else None, 2):
            got = by[fd].recv(4096)
            by[fd].sendall(got)
            with lock: total[0] += len(got)
            if threads > 1: ep.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
servers = [threading.Thread(target=serve) for _ in range(threads)]
for s in servers: s.start()
for r in range(rounds):
    busy = ends if r %% 3 else ends[r %% n:r %% n + 1] * n
    for c, _ in busy: c.sendall(b'x')
    for c, _ in busy: assert c.recv(1, socket.MSG_WAITALL) == b'x'
for s in servers: s.join()
own = []
for t in os.listdir('/proc/self/task'):
    try: own.append((open('/proc/self/task/%%s/comm' %% t).read().strip(), os.sched_getaffinity(int(t))))
    except OSError: pass # it has ended meanwhile
print(total[0], own)
"""


class Pollers(unittest.TestCase):
    """A server and its clients in one process, with pollers or without."""

    def serve(self, *args, threads=1, nested=False, **env):
        with Fabric() as fabric:
            fabric.env.update(env)
            done, stats = counted(fabric, "--promote", "eager", "--loopback", *args, PYTHON, "-c",
                                  SERVER % (threads, nested))
        self.assertTrue(done.stdout.startswith("2400 "), done.stdout + done.stderr)
        return done, stats


class Service(Pollers):
    """The library's own threads."""

    def test_there_are_none_by_default(self):
        done, stats = self.serve()
        self.assertEqual(stats["polled"], 0)
        self.assertNotIn("vi-poll", done.stdout)

    def test_pollers_serve_epoll_sets(self):
        for wait, args in (("block", {}), ("block", {"threads": 3}), ("block", {"nested": True}),
                           ("adaptive", {"threads": 3})):
            done, stats = self.serve("--service", "poller:2", VIADUCT_WAIT=wait, **args)
            self.assertIn("vi-poll1", done.stdout)
            self.assertGreater(stats["polled"], 0, f"{wait} {args}")

    def test_roles_have_processors_of_their_own(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("one processor")
        app, svc = cpus[:2]
        done, _ = self.serve("--service", "poller:1", "--place", f"app={app},svc={svc},irq={svc}")
        self.assertIn(f"('vi-poll0', {{{svc}}})", done.stdout)
        self.assertIn(f"('vi-xfer', {{{svc}}})", done.stdout)
        self.assertNotRegex(done.stdout, rf"\('python[^']*', {{(?!{app}}})")
        self.assertIn("one processor with", done.stderr)

    def test_pollers_that_move_by_load(self):
        cpus = sorted(os.sched_getaffinity(0))
        done, _ = self.serve("--service", "poller:2", "--place", f"svc={cpus[0]},{cpus[-1]},dynamic", VIADUCT_WAIT="block")
        self.assertIn("('vi-move', ", done.stdout)
        for i in range(2):
            self.assertRegex(done.stdout, rf"\('vi-poll{i}', {{({cpus[0]}|{cpus[-1]})}}\)")
        done, _ = self.serve("--service", "poller:2", "--place", f"svc={cpus[0]},{cpus[-1]}", VIADUCT_WAIT="block")
        self.assertNotIn("vi-move", done.stdout)


def cores():
    """A processor of each of two cores; the test is skipped where there are fewer."""
    of = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        of.setdefault(siblings.read_text() if siblings.exists() else None, cpu)
    if None in of or len(of) < 2:
        raise unittest.SkipTest("fewer than two cores, or the kernel does not tell of cores")
    return list(of.values())[:2]


class OneCore(Pollers):
    """The poller of a connection has the core of the thread that waits for it, as vi_info says beforehand."""

    def promised(self, *args):
        with Fabric() as fabric:
            done = run(*args, BUILD / "tools/vi_info", "--placement", "--json", env=fabric.env)
        said = json.loads(done.stdout)["placement"]
        if "machine" not in said:
            self.skipTest(said["machine_unknown"])
        return said["one_core"]

    def holds(self, pollers, place, **more):
        """Whether the server kept the property; it has to be as vi_info has said."""
        args = ("--service", f"poller:{pollers}", "--place", place)
        promised = self.promised(*args)
        done, stats = self.serve(*args, threads=2, VIADUCT_WAIT="block", **more)
        self.assertEqual(promised, 0 < stats["given"] == stats["given_one_core"], stats)
        return promised, done, stats

    def test_a_poller_for_each_core(self):
        cpus = cores()
        held, done, _ = self.holds(2, f"app={cpus[0]},{cpus[1]},svc=core")
        self.assertTrue(held)
        for i, cpu in enumerate(cpus):
            self.assertIn(f"('vi-poll{i}', {{{cpu}}})", done.stdout)

    def test_fewer_pollers_than_cores(self):
        cpus = cores()
        held, _, stats = self.holds(1, f"app={cpus[0]},{cpus[1]},svc=core")
        self.assertFalse(held)
        self.assertGreater(stats["given"], 0)
        self.assertEqual(stats["given_one_core"], 0)

    def test_another_core(self):
        cpus = cores()
        held, _, stats = self.holds(1, f"app={cpus[0]},svc={cpus[1]}")
        self.assertFalse(held)
        self.assertEqual(stats["given"], 0)


class Twins(unittest.TestCase):
    """A pair of kernel sockets compared with a promoted pair."""

    def twins(self, *args):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "eager", "--loopback", "--map", "127.0.0.3 host0",
                                  "--rules", "address=127.0.0.2,never; address=127.0.0.3,auto",
                                  PYTHON, HERE / "twins.py", *args, code=None)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(stats["vi_bytes_received"], 0)
        self.assertGreater(stats["tcp_bytes_received"], 0)

    def test_cases(self):
        self.twins("cases")

    def test_cases_before_promotion(self):
        """Both pairs on TCP, one of them with a stream that could be promoted."""
        with Fabric() as fabric:
            done, _ = counted(fabric, "--promote", "auto", "--loopback", "--rules", "address=127.0.0.2,never",
                              PYTHON, HERE / "twins.py", "cases", code=None)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_random_calls(self):
        seed = os.environ.get("VIADUCT_SEED", "4711")
        self.twins("fuzz", seed, os.environ.get("SOCK_STEPS", "600"))


BULK = """
import hashlib, socket, sys, threading
piece, total = int(sys.argv[1]), int(sys.argv[2])
s = socket.create_server(("127.0.0.1", 0)); told = []
def serve():
    a, _ = s.accept(); sent = hashlib.sha256(); left = total
    data = bytes(range(251)) * (piece // 251 + 1)
    while left:
        some = memoryview(data)[left % 251:][:min(piece, left)]
        a.sendall(some); sent.update(some); left -= len(some)
    a.close(); told.append(sent.hexdigest())
server = threading.Thread(target=serve); server.start()
c = socket.create_connection(s.getsockname()); got = hashlib.sha256(); room = bytearray(1 << 20)
while n := c.recv_into(room): got.update(memoryview(room)[:n])
server.join(); print(told == [got.hexdigest()])
"""


class Bulk(unittest.TestCase):
    """Long streams, compared by SHA-256 at both ends; part of the longer suite."""

    def stream(self, piece, total):
        with Fabric() as fabric:
            done, stats = counted(fabric, "--promote", "auto", "--loopback", PYTHON, "-c", BULK, piece, total)
        self.assertEqual(done.stdout, "True\n")
        self.assertEqual(stats["vi_bytes_received"] + stats["tcp_bytes_received"], total)
        self.assertGreater(stats["vi_bytes_received"], total // 2)

    def test_writes_of_one_byte(self):
        self.stream(1, 1000000)

    def test_a_write_of_1_gib(self):
        self.stream(1 << 30, 1 << 30)

    def test_10_gb(self):
        self.stream(1 << 20, 10 ** 10)


class Many(unittest.TestCase):
    """A server on one host and a client on another, by many connections; a part of the night."""

    def many(self, count, rounds, messages):
        with Fabric() as fabric, tempfile.TemporaryDirectory() as folder:
            def command(host, *args):
                options = ("--host", host, "--promote", "auto", f"--stats={Path(folder) / host}")
                return [str(a) for a in (VI_RUN, *options, PYTHON, HERE / "many.py", *args)]
            ends = {"env": fabric.env, "text": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
            with subprocess.Popen(command("host1", "serve", "127.77.0.2", count, rounds), **ends) as server:
                try:
                    port = server.stdout.readline().strip()
                    client = subprocess.run(command("host0", "ask", "127.77.0.2", port, count, rounds, messages), timeout=PATIENCE,
                                            check=False, **ends)
                    said, _ = server.communicate(timeout=PATIENCE)
                finally:
                    server.kill()
            self.assertEqual((client.stdout, said), (f"asked {count * rounds}\n", f"served {count * rounds}\n"))
            for host in ("host0", "host1"):
                stats = json.loads((Path(folder) / host).read_text())["all"]
                total = {way: stats[f"vi_bytes_{way}"] + stats[f"tcp_bytes_{way}"] for way in ("sent", "received")}
                self.assertEqual(set(total.values()), {len("000000 00 000000\n") * count * rounds * messages}, host)
                self.assertGreater(stats["vi_bytes_sent"], 0, host)
                print(f"{host}: {stats['promoted']} of {count * rounds} connections were promoted")

    def test_1000_connections_at_once(self):
        self.many(1000, 3, 60)

    def test_closed_while_they_are_promoted(self):
        """After three exchanges a connection is promoted: as with TCP, an end that closes then resets nothing."""
        self.many(1000, 5, 3)

    def test_100000_connections_in_turn(self):
        self.many(100, int(os.environ.get("SOCK_ROUNDS", "30")), 5)


HERE_BUILD = BUILD / "tests/sock"

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
