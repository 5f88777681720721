# SPDX-License-Identifier: BSD-2-Clause
"""Time limits of tests in Python: multiples of a factor, which tests/cxx/limit.h has, too."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import machine  # noqa: E402  after its path

FACTOR = machine.limit_factor(os.environ, machine.wakeup_us())


def limit(seconds):
    """The limit here; the argument is that of an idle, not slow machine with a build without sanitizers."""
    return seconds * FACTOR
