#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What Meson tells of a build that is up to date.

  build_info.py targets BUILD_DIR [SUITE...]

Prints the files that the tests need, but for the tests of these suites, relative to the build.
"""
import json
import os
import sys
from pathlib import Path


def introspect(build, kind):
    """The list of that kind (tests, benchmarks, targets), empty where Meson wrote none."""
    path = Path(build) / "meson-info" / f"intro-{kind}.json"
    return json.loads(path.read_text()) if path.exists() else []


def suites(test):
    return {suite.split(":")[-1] for suite in test["suite"]}


def needed(build, tests):
    """The files that have to be built for these tests, relative to the build."""
    files = {target["id"]: target["filename"] for target in introspect(build, "targets")}
    return sorted({os.path.relpath(name, build) for test in tests for target in test["depends"] for name in files[target]})


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] != "targets":
        sys.exit(__doc__)
    folder, left_out = os.path.abspath(sys.argv[2]), set(sys.argv[3:])
    print("\n".join(needed(folder, [test for test in introspect(folder, "tests") if not left_out & suites(test)])))
