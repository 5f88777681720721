#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests Java's channels on an emulated fabric of its own, on each JDK that is named and by each way to call C.

    run_channel.py [TEST...]

CHANNEL_BUILD is the build folder, CHANNEL_JDKS the homes of JDKs, separated by colons: the first one compiles the tests.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
BUILD = Path(os.environ["CHANNEL_BUILD"])
PATIENCE = 300


def environment(fabric):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
    return {**clean, "VIADUCT_AGENT": str(BUILD / "provider/agent/viaductd"), "VIADUCT_FABRIC": fabric}


def backends(jdk):
    """The options for each way to call C that this JDK has; from 22 on it needs permission to call C."""
    release = (jdk / "release").read_text() if (jdk / "release").exists() else ""
    version = next((line.split('"')[1] for line in release.splitlines() if line.startswith("JAVA_VERSION=")), "17")
    if int(version.split(".")[0]) < 22:
        return [["-Dorg.viaduct.backend=jni"]]
    leave = "--enable-native-access=ALL-UNNAMED"
    return [["-Dorg.viaduct.backend=jni", leave], ["-Dorg.viaduct.backend=ffm", leave]]


def main(tests):
    jdks = [Path(home) for home in os.environ["CHANNEL_JDKS"].split(":") if home]
    jar, path = BUILD / "java/viaduct.jar", f"{BUILD / 'java'}:{BUILD / 'vipl/lib'}"
    env = environment(f"channel{os.getpid()}")
    failed = 0
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run([jdks[0] / "bin/javac", "-Xlint:all", "-Werror", "--release", "17", "-cp", jar, "-d", classes,
                        HERE / "ChannelTest.java", HERE / "ChannelFaultsTest.java"], check=True, timeout=PATIENCE)
        fabric = [BUILD / "tools/vi_fabric"]
        subprocess.run([*fabric, "up", "--hosts", "1"], env=env, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
        try:
            for jdk in jdks:
                for options in backends(jdk):
                    print(f"# {jdk} {options[0]}", flush=True)
                    done = subprocess.run(
                        [jdk / "bin/java", *options, "-Xmx300m", "-Xcheck:jni", "-XX:+UseSerialGC", "-XX:ErrorFile=/dev/stdout",
                         f"-Dorg.viaduct.library.path={path}", "-cp", f"{jar}:{classes}", "ChannelTest", *tests],
                        env={**env, "VIADUCT_HOST": "host0", "VIADUCT_LOG": "error"}, timeout=PATIENCE, check=False)
                    failed += done.returncode != 0
        finally:
            subprocess.run([*fabric, "down"], env=env, check=False, timeout=PATIENCE, stdout=subprocess.DEVNULL)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
