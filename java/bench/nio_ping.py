#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Ping-pong by NIO between two emulated hosts: over VIs by org.viaduct.nio, and over TCP by the JDK, in turn.

usage: nio_ping.py --build BUILD [--jdk HOME] [--bytes 64] [--rounds 5] [--batches 40]

Prints half round trips in microseconds, the least batch and the median of rounds, and their ratio.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PATIENCE = 120
PROVIDER = "-Djava.nio.channels.spi.SelectorProvider=org.viaduct.nio.ViaductSelectorProvider"


def command(asked, classes, provider, *words):
    build = asked.build.resolve()
    ours = [PROVIDER, f"-Dorg.viaduct.library.path={build}/java"] if provider else []
    return [asked.jdk / "bin/java", "-XX:+UseSerialGC", "-Xmx128m", *ours, "-cp", f"{classes}:{build}/java/viaduct.jar", "NioPing", *words]


def one_round(asked, classes, env, provider):
    """{way: (least, median)} in ns."""
    envs = [{**env, "VIADUCT_HOST": f"host{n}", "VIADUCT_SOCK_BIND": f"127.77.0.{n + 1}", "VIADUCT_SOCK_PROMOTE": "eager"} for n in (0, 1)]
    server = subprocess.Popen(command(asked, classes, provider, "serve"), env=envs[0], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE)
    try:
        address = "127.77.0.1" if provider else "127.0.0.1"
        port = server.stdout.readline().strip()
        out = subprocess.run(command(asked, classes, provider, "ping", address, port, str(asked.bytes), str(asked.batches)), env=envs[1],
                             text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout
        server.wait(PATIENCE)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    return {line.split()[0]: tuple(float(word) for word in line.split()[1:]) for line in out.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--jdk", type=Path, default=Path(os.environ.get("JAVA_HOME") or "/usr/lib/jvm/java-17-openjdk-amd64"))
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=40)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the fabric is taken down
    env = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
    env.update(VIADUCT_AGENT=str(asked.build.resolve() / "provider/agent/viaductd"), VIADUCT_FABRIC=f"nio-ping-{os.getpid()}")
    fabric = [asked.build / "tools/vi_fabric"]
    rows = {True: [], False: []}
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run([asked.jdk / "bin/javac", "-d", classes, HERE / "NioPing.java"], check=True)
        subprocess.run([*fabric, "up", "--hosts", "2"], env=env, check=True, stdout=subprocess.DEVNULL)
        try:
            for _ in range(asked.rounds):
                for provider in (True, False):
                    rows[provider].append(one_round(asked, classes, env, provider))
        finally:
            subprocess.run([*fabric, "down"], env=env, check=False, stdout=subprocess.DEVNULL)
    print(f"{'':8}{'VIs':>8}{'median':>8}{'TCP':>8}{'median':>8}{'TCP / VIs':>11}")
    for way in ("block", "poll", "select"):
        least = {p: min(row[way][0] for row in rows[p]) / 1000 for p in rows}
        middle = {p: statistics.median(row[way][1] for row in rows[p]) / 1000 for p in rows}
        print(f"{way:8}{least[True]:8.2f}{middle[True]:8.2f}{least[False]:8.2f}{middle[False]:8.2f}{middle[False] / middle[True]:11.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
