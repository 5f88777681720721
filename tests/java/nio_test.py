#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs JUnit classes of org.viaduct.nio, both ends in one process, on an emulated fabric of two hosts.

usage: nio_test.py plain|checked eager|auto JAVA_HOME CLASS...
"""
import os
import resource
import subprocess
import sys

sys.dont_write_bytecode = True
from java_test import BUILD, COMPLAINTS, PATIENCE, environment, fabric  # noqa: E402


def command(way, home, classes):
    path = ":".join(str(BUILD / folder) for folder in ("java", "vipl/lib"))
    words = [f"{home}/bin/java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:ErrorFile=/dev/stdout",
             "-Djava.nio.channels.spi.SelectorProvider=org.viaduct.nio.ViaductSelectorProvider",
             f"-Dorg.viaduct.library.path={path}"]
    if way == "checked":
        words.append("-Xcheck:jni")
    words += ["-cp", ":".join((os.environ["JAVA_JUNIT"], os.environ["JAVA_JAR"], os.environ["JAVA_TESTS"])),
              "org.junit.platform.console.ConsoleLauncher", "--disable-banner", "--details=tree", "--fail-if-no-tests"]
    for name in classes:
        words += ["--select-class", f"org.viaduct.nio.{name}"]
    return words


def limit_descriptors():
    """Sets a limit so low that a test can use the descriptors up."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))


def main():
    way, policy, home, classes = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    env = environment()
    settings = {**env, "VIADUCT_SOCK_LOOPBACK": "1", "VIADUCT_SOCK_PROMOTE": policy,
                "VIADUCT_SOCK_RULES": "address=127.0.0.2/32,never"}
    fabric(env, "up", "--hosts", "2")
    try:
        done = subprocess.run(command(way, home, classes), env=settings, timeout=PATIENCE, text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limit_descriptors)
    finally:
        fabric(env, "down")
    print(done.stdout)
    complaints = COMPLAINTS.findall(done.stdout)
    return 1 if done.returncode or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
