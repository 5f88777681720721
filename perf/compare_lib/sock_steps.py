# SPDX-License-Identifier: BSD-2-Clause
"""What perf/compare_sockets measures: each step gives the figures of one way."""
import os
import re
import shutil
from dataclasses import dataclass
from functools import partial
from typing import Callable

from . import sock_run, tools
from .sock_run import Method
from .tools import Failed

K, M = 1 << 10, 1 << 20
VI, SLEEP, AUTO, OFF, TCP, UNIX, VIPL, RSOCKETS, SMC = (
    "VIs", "VIs, block", "VIs, auto", "off", "TCP", "Unix", "VIPL", "rsockets", "SMC")
# «VIs» is promoted at once, so that all of a measurement is what it names; the programs of others, and connections
# made one after the other, run as a user runs them.
WAYS = {w.name: w for w in (
    Method(VI, "eager"), Method(SLEEP, "eager", env={"VIADUCT_WAIT": "block"}), Method(AUTO, "auto"), Method(OFF, "never"),
    Method(TCP), Method(UNIX, unix=True))}
SIZES, PIECES = (1, 64, 1 * K, 4 * K, 16 * K, 64 * K, 256 * K), (64, 1 * K, 4 * K, 16 * K, 64 * K, 256 * K, 1 * M)


@dataclass(frozen=True)
class Step:
    """Figures that one run gives, the ways in which it is run, and the run."""
    group: str
    ways: tuple
    run: Callable  # (bench, way) -> {key: value}


def listed(sizes):
    return ",".join(map(str, sizes))


def keyed(prefix, figures, by="size_bytes"):
    return {f"{prefix}.{f[by]}": f["value"] for f in figures}


# ---- sock_bench ----

def pingpong(sizes, polled, same, bench, way):
    argv = ["--test", "pingpong", "--sizes", listed(sizes), *(["--poll"] if polled else [])]
    prefix = f"pingpong.{'poll' if polled else 'block'}{'.same' if same else ''}"
    return keyed(prefix, sock_run.pair(bench, way, argv, same))


def stream(sizes, bench, way):
    argv = ["--test", "stream", "--sizes", listed(sizes), "--poll", "--batch-us", "2000", "--batches", "21"]
    return keyed("stream", sock_run.pair(bench, way, argv))


def connect(bench, way):
    argv = ["--test", "connect", "--batch-us", "10000", "--batches", "21"]
    return keyed("connect", sock_run.pair(bench, way, argv, must_move=False))


def epoll(polled, counts, bench, way):
    found = {}
    for count in counts:
        argv = ["--test", "epoll", "--connections", str(count), *(["--poll"] if polled else [])]
        found |= keyed(f"epoll.{'poll' if polled else 'block'}", sock_run.pair(bench, way, argv), "connections")
    return found


def idle(bench, way):
    return keyed("idle", sock_run.pair(bench, way, ["--test", "idle", "--connections", "100", "--seconds", "10"]), "connections")


def call(bench, way):
    argv = [bench.tool("perf/sock/sock_bench"), "--test", "call"]
    out = bench.run(way.command(bench, 0, bench.pin[0], argv))
    return {"call": sock_run.lines_of(out)[0]["value"]}


# ---- VIPL ----

def vipl_pingpong(sizes, bench, way):
    return tools.latency_step("pingpong.poll.{}", sizes, "--spin")(bench)


def vipl_block(bench, way):
    step = tools.latency_step("pingpong.block.{}", [64], "--wait", "block", batch=1, seconds=0.1, warmup=50,
                              env={"VIADUCT_WAIT": "block"})
    return step(bench)


def vipl_stream(sizes, bench, way):
    return tools.stream_step("stream.{}", "vi_bw", list(sizes))(bench)


# ---- programs of others ----

def need(program):
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin:/sbin")
    if not found:
        raise Failed(f"{program} is not installed")
    return found


class Server:
    """A program at an address of host0, or at a path."""

    def __init__(self, bench, method):
        self.bench, self.method = bench, method
        self.path = bench.scratch / "program"
        self.path.unlink(missing_ok=True)
        self.port = sock_run.free_port(method.address)
        self.place = str(self.path) if method.unix else (method.address, self.port)

    def run(self, server, load, **more):
        """What the load said; the server runs as long."""
        argv = self.method.command(self.bench, 0, self.bench.pin[0], server, self.bench.scratch / "server-stats")
        with sock_run.started(self.bench, argv, self.method.env) as process:
            sock_run.await_listener(process, self.place)
            return [sock_run.client(self.bench, self.method, argv, self.bench.pin[1], **more) for argv in load]


def redis(clients, bench, way):
    server = Server(bench, way)
    argv = [need("redis-server"), "--save", "", "--appendonly", "no", "--protected-mode", "no", "--dir", bench.scratch]
    argv += (["--port", "0", "--unixsocket", server.path] if way.unix
             else ["--port", server.port, "--bind", way.address])
    at = ["-s", server.path] if way.unix else ["-h", way.address, "-p", server.port]
    loads = [[need("redis-benchmark"), *at, "-c", c, "-n", 10000 if c == 1 else 30000, "-t", "get", "--csv"]
             for c in clients]
    found = {}
    for count, out in zip(clients, server.run(argv, loads)):
        line = re.search(r'^"GET","([0-9.]+)"', out, re.MULTILINE)
        if not line:
            raise Failed("redis-benchmark printed no rate of GET")
        found[f"redis.{count}"] = float(line[1])
    return found


def memcached(clients, bench, way):
    server = Server(bench, way)
    argv = [need("memcached"), "-t", "1", *(["-u", "root"] if os.geteuid() == 0 else [])]
    argv += ["-s", server.path] if way.unix else ["-l", way.address, "-p", server.port, "-U", 0]
    at = f"unix:{server.path}" if way.unix else f"{way.address}:{server.port}"
    loads = [[bench.tool("perf/sock/sock_bench"), "--connect", at, "--test", "memcached", "--sizes", "100",
              "--connections", c, "--batch-us", "10000"] for c in clients]
    found = {}
    for out in server.run(argv, loads):
        found |= keyed("memcached", sock_run.lines_of(out), "connections")
    return found


NGINX = """{user}worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/log;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {folder}; proxy_temp_path {folder};
fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
server {{ listen {address}:{port}; root {folder}; }} }}
"""


def nginx_command(server):
    folder = server.bench.scratch
    folder.chmod(0o755)
    (folder / "page").write_text("x" * 1000, encoding="utf-8")
    user = "user root; " if os.geteuid() == 0 else ""
    (folder / "conf").write_text(NGINX.format(user=user, folder=folder, address=server.method.address, port=server.port),
                                 encoding="utf-8")
    return [need("nginx"), "-c", folder / "conf"]


def nginx(clients, bench, way):
    server = Server(bench, way)
    front = [need("wrk"), "-t", 1, "-c", clients, "-d", 1]
    url = f"http://{way.address}:{server.port}/page"
    kinds = {"keep": [*front, url], "close": [*front, "-H", "Connection: close", url]}
    found = {}
    # Short connections end before they are worth a VI.
    outs = [server.run(nginx_command(server), [kinds[kind]], must_move=kind == "keep")[0] for kind in kinds]
    for kind, out in zip(kinds, outs):
        rate = re.search(r"Requests/sec:\s+([0-9.]+)", out)
        if not rate or "Non-2xx" in out:
            raise Failed("wrk printed no rate, or got errors")
        found[f"nginx.{kind}"] = float(rate[1])
    return found


# ---- all of them ----

SOCKETS, BLOCKING = (VI, OFF, TCP, UNIX, RSOCKETS, SMC), (VI, SLEEP, OFF, TCP, UNIX, RSOCKETS, SMC)


def steps(sizes, pieces):
    """The steps of a round; the curves are a round with more sizes."""
    return (
        Step("pingpong", SOCKETS, partial(pingpong, sizes, True, False)),
        Step("pingpong", (VIPL,), partial(vipl_pingpong, sizes)),
        Step("pingpong", BLOCKING, partial(pingpong, (64,), False, False)),
        Step("pingpong", (VIPL,), vipl_block),
        Step("pingpong", BLOCKING, partial(pingpong, (64,), False, True)),
        Step("stream", (VI, TCP, UNIX, RSOCKETS, SMC), partial(stream, pieces)),
        Step("stream", (VIPL,), partial(vipl_stream, pieces)),
        Step("connect", (AUTO, OFF, TCP, UNIX), connect),
        Step("call", (OFF, TCP), call),
        Step("epoll", (VI, TCP, UNIX), partial(epoll, True, (1, 256))),
        Step("epoll", (VI, TCP, UNIX), partial(epoll, False, (256,))),
        Step("idle", (VI,), idle),
        Step("redis", (AUTO, TCP, UNIX), partial(redis, (1, 50))),
        Step("memcached", (AUTO, TCP, UNIX), partial(memcached, (1, 50))),
        Step("nginx", (AUTO, TCP), partial(nginx, 32)),
    )


ROUND, CURVES = steps((64, 4 * K), (64 * K, M)), steps(SIZES, PIECES)
GROUPS = tuple(dict.fromkeys(s.group for s in ROUND))
