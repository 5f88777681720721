#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints the path of the jar of JUnit 5's console launcher with its dependencies inside; nothing if there is none.

JUNIT_JAR may name it; else it is sought in Debian's package junit5 and in the local repository of Maven.
"""
import os
import sys
from pathlib import Path

NAME = "junit-platform-console-standalone"
REPOSITORY = Path.home() / ".m2/repository/org/junit/platform" / NAME


def main():
    found = [Path(os.environ["JUNIT_JAR"])] if os.environ.get("JUNIT_JAR") else []
    found.append(Path("/usr/share/java") / f"{NAME}.jar")
    found += sorted(REPOSITORY.glob(f"1.*/{NAME}-1.*.jar"), reverse=True)
    for path in found:
        if path.is_file():
            print(path)
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
