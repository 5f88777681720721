# SPDX-License-Identifier: BSD-2-Clause
"""Runs a server and a client over sockets of one kind: over VIs, TCP, Unix sockets, RDMA, SMC."""
import json
import os
import selectors
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .tools import Failed

SERVER, CLIENT = "127.77.0.1", "127.77.0.2"  # of host0 and host1
READY = 20.0
RSOCKETS = ("/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so", "/usr/lib/aarch64-linux-gnu/rsocket/librspreload.so",
            "/usr/lib64/rsocket/librspreload.so")
SMC_PRELOADS = ("/usr/lib64/libsmc-preload.so", "/usr/lib/libsmc-preload.so", "/usr/lib/x86_64-linux-gnu/libsmc-preload.so",
                "/usr/lib/aarch64-linux-gnu/libsmc-preload.so")
AF_SMC = 43


@dataclass(frozen=True)
class Method:
    """How the bytes go between two programs."""
    name: str
    promote: str = None  # of vi_run, under which both ends run then
    unix: bool = False
    preload: str = None
    env: dict = field(default_factory=dict, hash=False)
    address: str = SERVER
    more: tuple = ()     # options of vi_run

    def command(self, bench, end, cpu, argv, stats=None):
        """The command line of the server (end 0) or the client (end 1), on a processor."""
        front = [] if cpu is None else ["taskset", "-c", str(cpu)]
        if self.promote:
            front += [bench.tool("sock/run/vi_run"), "--host", f"host{end}", "--promote", self.promote, *self.more]
            front += [f"--stats={stats}"] if stats else []
        elif self.preload:
            front += ["env", f"LD_PRELOAD={self.preload}"]
        return [*front, *map(str, argv)]


def moved(stats):
    """The bytes that VIs carried, as vi_run has counted them."""
    try:
        counts = json.loads(Path(stats).read_text(encoding="utf-8"))["all"]
    except (OSError, ValueError, KeyError) as error:
        raise Failed(f"vi_run left no statistics: {error}") from error
    return counts["vi_bytes_sent"] + counts["vi_bytes_received"]


def end_group(process):
    """Ends a server and all that it started."""
    for number, patience in ((signal.SIGTERM, 15), (signal.SIGKILL, 15)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(timeout=patience)
            break
        except subprocess.TimeoutExpired:
            continue
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@contextmanager
def started(bench, argv, env=None):
    """A server in a process group of its own."""
    try:
        process = subprocess.Popen(argv, env={**bench.env, **(env or {})}, cwd=bench.scratch, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0)
    except OSError as error:
        raise Failed(f"{argv[0]}: {error}") from error
    try:
        yield process
    finally:
        end_group(process)
        process.stdout.close()


def first_line(process):
    """What the server says first, in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(READY):
            raise Failed("the server said nothing")
    line = process.stdout.readline().decode()
    if not line.startswith("port "):
        raise Failed("the server ended at once")
    return int(line.split()[1])


def ports(process, count):
    """Those that a server says, each on a line of its own."""
    found = [first_line(process)]
    for _ in range(count - 1):
        line = process.stdout.readline().decode()
        if not line.startswith("port "):
            raise Failed("the server ended at once")
        found.append(int(line.split()[1]))
    return found


def free_port(address):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def accepts(place):
    """Does something listen at this address and port, or path?"""
    family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
    with socket.socket(family) as s:
        try:
            s.connect(place)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True


def await_listener(process, place):
    end = time.monotonic() + READY
    while not accepts(place):
        if time.monotonic() > end:
            raise Failed("the server does not accept connections")
        try:
            process.wait(timeout=0.02)
            raise Failed(f"the server ended with {process.returncode} before it accepted connections")
        except subprocess.TimeoutExpired:
            continue


def lines_of(text):
    """The figures that sock_bench printed."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def client(bench, way, argv, cpu, env=None, patience=20.0, must_move=True):
    """Runs the client; of one over VIs only a run counts in which VIs carried bytes."""
    stats = bench.scratch / "client-stats"
    stats.unlink(missing_ok=True)
    try:
        out = bench.run(way.command(bench, 1, cpu, argv, stats), env={**way.env, **(env or {})}, timeout=patience)
    except Failed as error:
        late = isinstance(error.__cause__, subprocess.TimeoutExpired)
        raise Failed(f"{Path(argv[0]).name} was not done after {patience:.0f} s") if late else error
    if must_move and way.promote in ("auto", "eager") and not moved(stats):
        raise Failed("no byte went over a VI")
    return out


def pair(bench, way, argv, same=False, env=None, must_move=True):
    """sock_bench at both ends: the figures of the client."""
    tool, more = bench.tool("perf/sock/sock_bench"), {**way.env, **(env or {})}
    path = bench.scratch / "sock"
    path.unlink(missing_ok=True)
    place = f"unix:{path}" if way.unix else way.address
    server = way.command(bench, 0, bench.pin[0], [tool, "--serve", place], bench.scratch / "server-stats")
    with started(bench, server, more) as process:
        port = first_line(process)
        at = place if way.unix else f"{place}:{port}"
        out = client(bench, way, [tool, "--connect", at, *argv], bench.pin[0 if same else 1], env, must_move=must_move)
    return lines_of(out)


# ---- RDMA ----

def rsockets(folder="/sys/class/infiniband", libraries=RSOCKETS):
    """The way over librdmacm's preload, or why there is none."""
    library = next((path for path in libraries if os.path.exists(path)), None)
    if not library:
        return None, "rsockets: librspreload.so is not installed (Debian: librdmacm1)"
    if not os.path.isdir(folder) or not os.listdir(folder):
        return None, "rsockets: there is no RDMA device on this machine"
    return Method("rsockets", preload=library, address="127.0.0.1"), None


# ---- SMC ----

def smc_sockets():
    """What smcss prints while a connection of AF_SMC over the loopback is open, and its client's port."""
    with socket.socket(AF_SMC, socket.SOCK_STREAM, 0) as listener, socket.socket(AF_SMC, socket.SOCK_STREAM, 0) as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        client.settimeout(READY)
        client.connect(listener.getsockname())
        accepted, peer = listener.accept()
        with accepted:
            out = subprocess.run(["smcss", "--all", "--wide"], capture_output=True, text=True, check=True, timeout=READY)
        return out.stdout, peer[1]


def smc(libraries=SMC_PRELOADS, look=smc_sockets):
    """The way over the preload of smc-tools, or why there is none: a kernel without a device for it falls back to TCP."""
    library = next((path for path in libraries if os.path.exists(path)), None)
    if not library:
        return None, "SMC: libsmc-preload.so is not installed (smc-tools)"
    try:
        listed, port = look()
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"SMC: this kernel has no AF_SMC, or smcss cannot be run: {error}"
    modes = [line for line in listed.splitlines() if f":{port} " in line]
    if not any("SMCD" in line.split() for line in modes):
        return None, "SMC: connections over the loopback fall back to TCP (a kernel with CONFIG_SMC_LO is needed)"
    return Method("SMC", preload=library, address="127.0.0.1"), None
