#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Systems of others in Java over VIs, unmodified, each run plain, preloaded by vi_run, and over the provider of NIO.

    run_systems.py [--mb N] [--rounds N] [--threads N[,N...]] [--modes MODE[,MODE...]] [--hadoop VERSION] [--jdk FOLDER]
                    [NAME...]

Modes: plain; auto and eager, under vi_run with that promotion; nio-auto and nio-eager, without vi_run, over
org.viaduct.nio.

hdfs: a MiniDFSCluster and a client in two processes write files, read them and compare every byte; a round gives MB/s and
processor seconds of both processes for each GB.  netty, netty-epoll: an echo server and a client of Netty, by NIO and
by Netty's own use of epoll, which passes by the provider.  zookeeper: a server, and a client with watches.  activemq: a
broker with the transport of NIO, and a client that sends to a queue and a topic.

A system passes when its client finds no wrong byte and the statistics show over VIs what the client must have moved, or
with promotion auto, where a connection begins on TCP, a quarter of it; plain runs are the measure beside them.  What this needs and is not there makes it exit with 77 and the
reason: a JDK (VIADUCT_JDK, or java in PATH), mvn, and Maven's repository, or its packages in the local one.
SOCK_BUILD is the build folder, SYSTEMS_BUILD that of the Java classes.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "sock"))
from sock_test import BUILD, Fabric, VI_RUN  # noqa: E402

# Modes, and the part of the client's bytes that must have gone over VIs: with auto the bytes before
# the promotion went over TCP.
LEAST = {"plain": 0, "auto": 0.25, "eager": 0.9, "nio-auto": 0.25, "nio-eager": 0.9}
PRELOADED = ("auto", "eager")
PROVIDER = "-Djava.nio.channels.spi.SelectorProvider=org.viaduct.nio.ViaductSelectorProvider"
PATIENCE = 400
SKIP = 77


class Missing(Exception):
    """A JDK, program or package that the test needs is not there."""


def java():
    jdk = os.environ.get("VIADUCT_JDK")
    program = str(Path(jdk) / "bin/java") if jdk else shutil.which("java")
    if not program or not Path(program).exists():
        raise Missing("no JDK: install openjdk-17-jdk-headless, or set VIADUCT_JDK")
    return program


def classpath(target, hadoop):
    """Compiles the programs of this folder; returns their class path."""
    if not shutil.which("mvn"):
        raise Missing("mvn is not installed")
    path = target / "classpath"
    command = ["mvn", "-q", "-B", "-ntp", "-f", str(HERE / "pom.xml"), f"-Dbuild.folder={target}", "compile",
               "dependency:build-classpath", f"-Dmdep.outputFile={path}"]
    if hadoop:
        command.append(f"-Dhadoop.version={hadoop}")
    for offline in (["-o"], []):
        done = subprocess.run(command + offline, text=True, capture_output=True, timeout=PATIENCE, check=False,
                              stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return f"{target / 'classes'}:{path.read_text().strip()}"
        if "COMPILATION ERROR" in done.stdout:
            raise AssertionError(done.stdout[-2000:])
    errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
    raise Missing("Maven cannot get the packages: " + (errors[0][:200] if errors else f"status {done.returncode}"))


class Scene:
    """One run of a system in one mode: a folder in memory, and the statistics of its programs."""

    def __init__(self, mode, folder, fabric, path):
        self.mode, self.folder, self.env = mode, Path(folder), dict(fabric.env)
        if mode.startswith("nio-"):
            self.env.update(VIADUCT_SOCK_PROMOTE=mode[4:], VIADUCT_SOCK_LOOPBACK="1")
        self.path, self.stats, self.server = path, [], None

    def command(self, name, *args):
        options = ["-Xmx1500m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        path, words = self.path, [f"org.viaduct.systems.{name}", *(str(a) for a in args)]
        stats = self.folder / f"stats{len(self.stats)}"
        if self.mode.startswith("nio-"):
            options += [PROVIDER, f"-Dorg.viaduct.library.path={BUILD / 'java'}:{BUILD / 'vipl/lib'}", f"-Dsystems.counts={stats}"]
            path = f"{BUILD / 'java/viaduct.jar'}:{path}"
        line = [java(), *options, "-cp", path, *words]
        if self.mode == "plain":
            return line
        self.stats.append(stats)
        if self.mode not in PRELOADED:
            return line
        return [str(VI_RUN), "--promote", self.mode, "--loopback", f"--stats={stats}", *line]

    def serve(self, name, *args):
        """Starts the server; returns the port that it prints."""
        with (self.folder / "log").open("w") as log:
            self.server = subprocess.Popen(self.command(name, *args), env=self.env, text=True, stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=log)
        for line in self.server.stdout:
            if line.startswith("port "):
                return int(line.split()[1])
        raise AssertionError(f"{name} did not start: {self.said()}")

    def said(self):
        return (self.folder / "log").read_text()[-1500:]

    def server_java(self):
        """The process id of the server's JVM: a child of vi_run, or the process that vi_run has become."""
        path = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children")
        children = path.read_text().split() if self.mode in PRELOADED else []
        return int(children[0]) if children else self.server.pid

    def ask(self, name, *args):
        """Runs a client; returns its JSON lines."""
        done = subprocess.run(self.command(name, *args), env=self.env, text=True, capture_output=True,
                              timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise AssertionError(f"{name}: status {done.returncode}: {done.stderr[-1500:]} {self.said()}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def finish(self):
        if self.server is None:
            return
        self.server.stdin.close()
        try:
            self.server.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
            raise
        finally:
            self.server.stdout.close()

    def counts(self):
        sums = {}
        for path in self.stats:
            for key, n in json.loads(path.read_text())["all"].items():
                if isinstance(n, int):
                    sums[key] = sums.get(key, 0) + n
        return sums


# ---- systems: each returns the client's lines, and the least bytes that it must have moved one way ----

def hdfs(scene, args):
    rows, moved = [], 0
    port = scene.serve("HdfsCluster", scene.folder / "hdfs")
    for threads in args.threads:
        lines = scene.ask("HdfsClient", port, scene.server_java(), threads, args.mb, args.rounds, threads)
        rows += [{"threads": threads, **line} for line in lines]
        moved += 2 * len(lines) * (args.mb // threads * threads << 20)
    return rows, moved


def netty(kind):
    def run(scene, _):
        lines = scene.ask("NettyEcho", kind, scene.serve("NettyEcho", kind))
        return lines, 2 * lines[0]["bytes_each_way"]
    return run


def zookeeper(scene, _):
    lines = scene.ask("ZooKeeperNode", "client", scene.serve("ZooKeeperNode", "server", scene.folder / "keeper"))
    return lines, 1 << 20


def activemq(scene, _):
    lines = scene.ask("BrokerNode", "client", scene.serve("BrokerNode", "server"))
    return lines, 2 * lines[0]["bytes_each_way"]


SYSTEMS = {"hdfs": hdfs, "netty": netty("nio"), "netty-epoll": netty("epoll"), "zookeeper": zookeeper, "activemq": activemq}


def play(name, mode, path, args):
    if name != "hdfs":  # Hadoop's jars contain the native libraries of another version of Netty
        path = ":".join(jar for jar in path.split(":") if not Path(jar).name.startswith("hadoop-client"))
    shm = Path("/dev/shm")
    with Fabric() as fabric, tempfile.TemporaryDirectory(dir=shm if os.access(shm, os.W_OK) else None) as folder:
        scene = Scene(mode, folder, fabric, path)
        try:
            rows, moved = SYSTEMS[name](scene, args)
        finally:
            scene.finish()
        return rows, moved, scene.counts()


def figures(mode, rows):
    """Yields lines with the medians of all rounds but the first, in which the JVM compiles."""
    keys = [key for key in rows[0] if key not in ("threads",)]
    for threads in sorted({row["threads"] for row in rows}):
        of = [row for row in rows if row["threads"] == threads]
        warm = of[1:] or of
        yield f"        {mode:9} {threads} threads  " + "  ".join(
            f"{key} {statistics.median(row[key] for row in warm):g}" for key in keys)


def judge(name, path, args):
    bad = 0
    for mode in args.modes:
        if name == "netty-epoll" and mode.startswith("nio-"):
            continue
        try:
            rows, moved, counts = play(name, mode, path, args)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print(f"FAILED  {name}, {mode}: {error}", flush=True)
            bad += 1
            continue
        over = counts.get("vi_bytes_sent", 0)
        if over < moved * LEAST[mode]:
            print(f"FAILED  {name}, {mode}: {over} bytes were sent over VIs, of {moved}", flush=True)
            bad += 1
            continue
        what = "" if mode == "plain" else (f": {over} bytes over VIs, {counts.get('tcp_bytes_sent', 0)} over TCP, "
                                           f"{counts.get('promoted', counts.get('promotions', 0))} promotions")
        print(f"ok      {name}, {mode}{what}", flush=True)
        if name == "hdfs":
            print("\n".join(figures(mode, rows)), flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=256, help="MB written and read in a round (256)")
    parser.add_argument("--rounds", type=int, default=4, help="rounds, of which the first is not counted (4)")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4])
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(LEAST), help=",".join(LEAST))
    parser.add_argument("--hadoop", help="its version, if not that of pom.xml")
    parser.add_argument("--jdk", help="the JDK's folder, before VIADUCT_JDK")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SYSTEMS))
    args = parser.parse_args()
    if args.jdk:
        os.environ["VIADUCT_JDK"] = args.jdk
    known = set(args.names) <= set(SYSTEMS) and set(args.modes) <= set(LEAST)
    if not known or min(args.mb, args.rounds, *args.threads) < 1:
        parser.error("a name or a number is wrong")
    try:
        target = Path(os.environ.get("SYSTEMS_BUILD", HERE / "target")).absolute()
        target.mkdir(parents=True, exist_ok=True)
        java()
        path = classpath(target, args.hadoop)
    except Missing as reason:
        print(f"skipped: {reason}")
        return SKIP
    return 1 if sum(judge(name, path, args) for name in args.names or SYSTEMS) else 0


if __name__ == "__main__":
    sys.exit(main())
