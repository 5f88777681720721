#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs Java for a long time, with each collector that the JDKs here have: messages whose content is checked, closings,
interrupts and aborts by other threads, and peers that are killed.

    run_soak.py [--seconds N] [COLLECTOR...]

--seconds (or SOAK_SECONDS; 600) is shared by the collectors g1, zgc and shenandoah (parallel, where a JDK lacks one),
each with JNI on the oldest JDK and the foreign function interface on the newest, under -Xcheck:jni. No virtual machine
may end by itself or complain, and after every round, when all is closed, as many descriptors, mappings and bytes of
windows are in use as after the first. VIADUCT_SEED repeats the choices. SOAK_BUILD is the build folder, SOAK_JDKS
the homes of JDKs.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
BUILD = Path(os.environ["SOAK_BUILD"])
JDKS = [Path(home) for home in os.environ["SOAK_JDKS"].split(":") if home]
COLLECTORS = {"g1": "-XX:+UseG1GC", "zgc": "-XX:+UseZGC", "shenandoah": "-XX:+UseShenandoahGC", "parallel": "-XX:+UseParallelGC"}
COMPLAINTS = re.compile(r"WARNING in native method|FATAL ERROR in native method|WARNING: JNI|was not closed")
PATIENCE = 600


def environment():
    clean = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
    return {**clean, "VIADUCT_AGENT": str(BUILD / "provider/agent/viaductd"), "VIADUCT_FABRIC": f"java-soak-{os.getpid()}",
            "VIADUCT_HOST": "host0", "VIADUCT_LOG": "error"}


def has(home, collector):
    return subprocess.run([home / "bin/java", COLLECTORS[collector], "-Xshare:auto", "-version"], capture_output=True,
                          check=False, timeout=PATIENCE).returncode == 0


def ways():
    """Yields the interfaces to C, each with its JDK."""
    yield "jni", JDKS[0]
    if len(JDKS) > 1:
        yield "ffm", JDKS[1]
    else:
        print("left out: the foreign function interface, for want of a JDK of 22 or later", flush=True)


def virtual_machine(way, home, collector, classes, folder):
    words = [home / "bin/java", COLLECTORS[collector], "-Xmx256m", "-Xcheck:jni", f"-XX:ErrorFile={folder}/hs_err_%p.log",
             "-XX:-CreateCoredumpOnCrash", f"-Dorg.viaduct.backend={way}",
             f"-Dorg.viaduct.library.path={BUILD}/java:{BUILD}/vipl/lib", "-cp", f"{BUILD}/java/viaduct.jar:{classes}"]
    if way == "ffm":
        words.insert(1, "--enable-native-access=ALL-UNNAMED")
    return [str(word) for word in words]


def soak(way, home, collector, seconds, classes, env):
    """True if nothing was wrong."""
    seed = int(os.environ.get("VIADUCT_SEED") or random.randrange(1 << 31))
    print(f"-- {collector}, {way}, {home.name}, {seconds} s, VIADUCT_SEED={seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "peers")
        java = virtual_machine(way, home, collector, classes, folder)
        done = subprocess.run([*java, "Soak", "drive", str(seconds), str(seed), str(BUILD / "tools/vi_fabric"), str(log),
                               *java, "Soak", "peer"], env=env, text=True, check=False, timeout=seconds + PATIENCE, cwd=folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = done.stdout + log.read_text(encoding="utf-8", errors="replace")
        bad = [path.name for path in Path(folder).glob("hs_err*")] + COMPLAINTS.findall(said)
        if done.returncode or bad:
            print(said[-8000:])
            print(f"FAILED  {collector}, {way}: status {done.returncode}, {bad[:3]}", flush=True)
            return False
        print(f"ok      {done.stdout.strip().splitlines()[-1]}", flush=True)
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("SOAK_SECONDS") or 600))
    parser.add_argument("collectors", nargs="*", metavar="COLLECTOR", help=", ".join(COLLECTORS))
    args = parser.parse_args()
    if args.seconds < 1 or not set(args.collectors) <= set(COLLECTORS):
        parser.error("a number or a collector is wrong")
    collectors = args.collectors or ["g1", "zgc", "shenandoah"]
    env, failed = environment(), 0
    plan = list(ways())
    part = max(1, args.seconds // (len(collectors) * len(plan)))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run([JDKS[0] / "bin/javac", "-Xlint:all", "-Werror", "--release", "17", "-cp", BUILD / "java/viaduct.jar", "-d",
                        classes, HERE / "Soak.java"], check=True, timeout=PATIENCE)
        fabric = [BUILD / "tools/vi_fabric"]
        subprocess.run([*fabric, "up", "--hosts", "2"], env=env, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
        try:
            for collector in collectors:
                for way, home in plan:
                    used = collector if has(home, collector) else "parallel"
                    failed += not soak(way, home, used, part, classes, env)
        finally:
            subprocess.run([*fabric, "down"], env=env, check=False, timeout=PATIENCE, stdout=subprocess.DEVNULL)
    print(f"{time.monotonic() - start:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
