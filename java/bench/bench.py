#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures Java compared with C: half round trips and streams between two emulated hosts.

usage: bench.py --build DIR [--rounds N] [--sizes LIST] [--op lat|bw] [--rows c,ffm,jni,...] [--json FILE] [--check]

A round runs every row once, in turn, so that other work of the machine affects all alike. The table has, for each size, the median over
the rounds of each run's median, the smallest value seen, and both as multiples of C's. Rows: c (vi_lat, vi_bw), ffm, jni
(newest JDK), jni17 (oldest JDK).

  --check   exit 1 unless ffm is at most 1.20 and jni at most 1.8 of c at 64 bytes, and streams of 64 KiB at least 0.95
"""
import argparse
import csv
import io
import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE = 120
LIMITS = {"ffm": 1.20, "jni": 1.8, "jni17": 1.8}
STREAM = 0.95
BATCH = 100
MOVED = {"lat": 400_000_000, "bw": 4_000_000_000}  # bytes that are timed


def warm_up(op, size, count):
    """Messages until all is compiled, for which the compiler's threads wait while both ends poll; some seconds' worth at most."""
    if op == "lat":
        return 200_000 if size <= 4096 else 20_000
    return max(count // 4, min(400_000, 16_000_000_000 // size))


def find_jdk(*words):
    return subprocess.run([HERE.parent / "tools/find_jdk.py", *words], check=True, capture_output=True, text=True).stdout.strip()


class Machine:
    """A fabric of two hosts and what runs on it."""

    def __init__(self, build):
        self.build = build
        clean = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
        self.env = {**clean, "VIADUCT_FABRIC": f"java-bench-{os.getpid()}",
                    "VIADUCT_AGENT": str(build / "provider/agent/viaductd")}

    def fabric(self, *words):
        subprocess.run([self.build / "tools/vi_fabric", *words], env=self.env, check=True, timeout=PATIENCE,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def __enter__(self):
        self.fabric("up", "--hosts", "2")
        return self

    def __exit__(self, *_):
        self.fabric("down")

    def c(self, op, sizes, count):
        tool = self.build / "perf" / f"vi_{op}"
        words = [tool, "--hosts", "host0,host1", "-q", "-s", ",".join(map(str, sizes)), "-n", str(count), "-W", str(count // 4),
                 "--spin", "--format", "csv", "-p", "50"]
        words += ["--batch", str(BATCH)] if op == "lat" else ["--batch", "32"]
        done = subprocess.run(words, env=self.env, check=True, timeout=PATIENCE, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        for row in csv.DictReader(io.StringIO(done.stdout)):
            size = int(row["size_bytes"])
            if op == "lat":
                yield size, float(row["p50_us"]), float(row["min_us"])
            else:
                yield size, float(row["bandwidth_mb_per_s"]), float(row["bandwidth_mb_per_s"])

    def java(self, home, way, op, sizes, count):
        words = [f"{home}/bin/java", "-Xmx256m", "-XX:+UseSerialGC", f"-Dorg.viaduct.backend={way}",
                 f"-Dorg.viaduct.library.path={self.build}/java:{self.build}/vipl/lib", "--enable-native-access=ALL-UNNAMED",
                 "-cp", f"{self.build}/java/viaduct.jar:{self.build}/java/bench.jar", "Bench"]
        size = max(sizes)
        rest = [op, "host1", ",".join(map(str, sizes)), str(count), str(warm_up(op, size, count)), str(BATCH)]
        server = subprocess.Popen([*words, "server", *rest], env={**self.env, "VIADUCT_HOST": "host1"}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL)
        try:
            done = subprocess.run([*words, "client", *rest], env={**self.env, "VIADUCT_HOST": "host0"}, check=True, text=True,
                                  timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            server.wait(PATIENCE)
        finally:
            server.kill()
            server.wait()
        for line in done.stdout.splitlines():
            row = json.loads(line)
            yield (row["size"], row["p50"], row["min"]) if op == "lat" else (row["size"], row["mb_s"], row["mb_s"])


def table(op, sizes, rows, found):
    unit, best = ("us", min) if op == "lat" else ("MB/s", max)
    print(f"{'bytes':>9} " + " ".join(f"{row:>10} {'/ c':>5} {'best':>8} {'/ c':>5}" for row in rows) + f"   {unit}")
    result = {}
    for size in sizes:
        line = [f"{size:>9}"]
        for row in rows:
            median = statistics.median(m for m, _ in found[row][size])
            top = best(b for _, b in found[row][size])
            result[(row, size)] = {"median": median, "best": top}
            base = result.get(("c", size), result[(row, size)])
            digits = 3 if op == "lat" else 0
            line.append(f"{median:>10.{digits}f} {median / base['median']:>5.2f} {top:>8.{digits}f} {top / base['best']:>5.2f}")
        print(" ".join(line))
    return result


def check(op, sizes, rows, result):
    wrong = []
    for row in rows:
        for size in sizes:
            ratio = result[(row, size)]["best"] / result[("c", size)]["best"]
            if op == "lat" and size == 64 and ratio > LIMITS.get(row, 100):
                wrong.append(f"{row}: {ratio:.2f} of C at 64 bytes, more than {LIMITS[row]}")
            if op == "bw" and size >= 65536 and ratio < STREAM:
                wrong.append(f"{row}: {ratio:.2f} of C at {size} bytes, less than {STREAM}")
    print("\n".join(wrong) or "within the limits")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--op", choices=("lat", "bw"), default="lat")
    parser.add_argument("--sizes", default="64,1024,4096,65536,1048576")
    parser.add_argument("--rows", default="c,ffm,jni,jni17")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the fabric is taken down
    sizes = [int(size) for size in asked.sizes.split(",")]
    homes = {"ffm": find_jdk("--newest", "--at-least", "22", "--runtime"), "jni": find_jdk("--newest", "--at-least", "17", "--runtime"),
             "jni17": find_jdk("--oldest", "--at-least", "17", "--runtime")}
    rows = [row for row in asked.rows.split(",") if row == "c" or homes.get(row)]
    for row in set(asked.rows.split(",")) - set(rows):
        print(f"skipped {row}: no JDK for it")
    found = {row: {size: [] for size in sizes} for row in rows}
    with Machine(asked.build.resolve()) as machine:
        for _ in range(asked.rounds):
            for row in rows:
                for size in sizes:
                    count = max(2_000, min(200_000, MOVED[asked.op] // size)) // BATCH * BATCH
                    run = machine.c(asked.op, [size], count) if row == "c" else machine.java(homes[row], row[:3], asked.op, [size], count)
                    for _, median, best in run:
                        found[row][size].append((median, best))
    result = table(asked.op, sizes, rows, found)
    if asked.json:
        asked.json.write_text(json.dumps({f"{row} {size}": value for (row, size), value in result.items()}, indent=1) + "\n",
                              encoding="utf-8")
    return check(asked.op, sizes, rows, result) if asked.check else 0


if __name__ == "__main__":
    sys.exit(main())
