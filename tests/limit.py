# SPDX-License-Identifier: BSD-2-Clause
"""Limits of tests in Python: multiples of the one factor that tests/cxx/limit.h has, too."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import machine  # noqa: E402  after its path

FACTOR = machine.limit_factor(os.environ, machine.wakeup_us())


def limit(seconds):
    """So many seconds on a machine that is neither slow nor busy, with a build without sanitizers."""
    return seconds * FACTOR
