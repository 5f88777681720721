#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How long a JVM waits for a thread that polls, before it can collect garbage: the time to safepoint.

usage: safepoint.py --build BUILD [--rounds 2] [--collections 400]

Rows: memory is polled in Java without a call, which is what the others compare with; idle, a VI to which nobody sends;
stream, one that gets messages of 64 KiB. By the foreign function interface, whose polls hold the collector up, and by JNI.
"""
import argparse
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from bench import HERE, PATIENCE, Machine, find_jdk  # noqa: E402

ROWS = [("ffm", "memory"), ("ffm", "idle"), ("ffm", "stream"), ("jni", "idle"), ("jni", "stream")]


def one(machine, home, classes, way, what, collections):
    """Microseconds until all threads stood, of each collection."""
    build, log = machine.build, Path(classes) / "log"
    log.unlink(missing_ok=True)
    subprocess.run([f"{home}/bin/java", "-Xmx64m", "-XX:+UseSerialGC", f"-Xlog:safepoint:file={log}", f"-Dorg.viaduct.backend={way}",
                    f"-Dorg.viaduct.library.path={build}/java:{build}/vipl/lib", "--enable-native-access=ALL-UNNAMED",
                    "-cp", f"{build}/java/viaduct.jar:{classes}", "Safepoint", what, str(collections)],
                   env=machine.env, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    lines = [line for line in log.read_text().splitlines() if "Collect" in line or "GC" in line]
    return sorted(int(ns) / 1000 for line in lines for ns in re.findall(r"Reaching safepoint: *(\d+) ns", line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--collections", type=int, default=400)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the fabric is taken down
    home = find_jdk("--newest", "--at-least", "22", "--runtime")
    if not home:
        print("skipped: no JDK of 22 or later")
        return 0
    with tempfile.TemporaryDirectory() as classes, Machine(asked.build.resolve()) as machine:
        compiler = find_jdk("--oldest", "--at-least", "17")
        subprocess.run([f"{compiler}/bin/javac", "-cp", machine.build / "java/viaduct.jar", "-d", classes,
                        HERE / "Safepoint.java"], check=True)
        print(f"{'us':12}{'median':>9}{'90 %':>9}{'99 %':>9}{'most':>9}")
        for _ in range(asked.rounds):
            for way, what in ROWS:
                got = one(machine, home, classes, way, what, asked.collections)
                cells = (statistics.median(got), got[len(got) * 9 // 10], got[len(got) * 99 // 100], got[-1])
                print(f"{way} {what:8}" + "".join(f"{cell:9.0f}" for cell in cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
