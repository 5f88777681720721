#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs JUnit classes on an emulated fabric of two hosts.

usage: java_test.py jni|jni-checked|ffm JAVA_HOME CLASS...
"""
import os
import re
import subprocess
import sys
from pathlib import Path

BUILD = Path(os.environ["JAVA_BUILD"])
PATIENCE = 200
# Complaints of -Xcheck:jni, which does not end the program.
COMPLAINTS = re.compile(r"WARNING in native method|FATAL ERROR in native method|WARNING: JNI")


def environment():
    clean = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
    return {**clean, "VIADUCT_AGENT": str(BUILD / "provider/agent/viaductd"), "VIADUCT_FABRIC": f"java-{os.getpid()}",
            "VIADUCT_HOST": "host0"}


def fabric(env, *command):
    subprocess.run([BUILD / "tools/vi_fabric", *command], env=env, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)


def command(way, home, classes):
    words = [f"{home}/bin/java", "-Xmx256m", "-XX:+UseSerialGC", "-Xshare:auto", f"-Dorg.viaduct.backend={way[:3]}",
             "-Dorg.viaduct.leaks.trace=true", f"-Dorg.viaduct.library.path={BUILD}/java:{BUILD}/vipl/lib"]
    if way == "jni-checked":
        words.append("-Xcheck:jni")
    if way == "ffm":
        words.append("--enable-native-access=ALL-UNNAMED")
    words += ["-jar", os.environ["JAVA_JUNIT"], "--class-path", f"{os.environ['JAVA_JAR']}:{os.environ['JAVA_TESTS']}",
              "--disable-banner", "--details=tree", "--fail-if-no-tests"]
    for name in classes:
        words += ["--select-class", f"org.viaduct.vipl.{name}"]
    return words


def main():
    way, home, classes = sys.argv[1], sys.argv[2], sys.argv[3:]
    env = environment()
    fabric(env, "up", "--hosts", "2")
    try:
        done = subprocess.run(command(way, home, classes), env=env, timeout=PATIENCE, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    finally:
        fabric(env, "down")
    print(done.stdout)
    complaints = COMPLAINTS.findall(done.stdout)
    if complaints:
        print(f"-Xcheck:jni complains {len(complaints)} times: {complaints[0]}")
    return 1 if done.returncode or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
