#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs in turn, without oshrun: the agent that the first one starts is there for the next, which may be far larger.
Arguments: program vi_fabric."""
import os
import subprocess
import sys
import unittest

PROGRAM, VI_FABRIC = map(os.path.abspath, sys.argv[1:3])
NAME = f"turns{os.getpid()}"


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "SHMEM_")) or k == "VIADUCT_AGENT"}
    return {**env, "VIADUCT_FABRIC": NAME, "SHMEM_VIADUCT_SINGLETON": "1", **more}


def run(heap, **more):
    return subprocess.run([PROGRAM], env=environment(SHMEM_SYMMETRIC_SIZE=heap, **more), capture_output=True, text=True,
                          timeout=60, check=False)


class Turns(unittest.TestCase):
    def tearDown(self):
        subprocess.run([VI_FABRIC, "down"], env=environment(), capture_output=True, timeout=60, check=False)

    def test_a_large_job_after_a_small_one(self):
        for heap in ("1M", "8G", "1M"):
            done = run(heap)
            self.assertEqual((done.returncode, done.stderr), (0, ""), heap)

    def test_a_window_of_the_size_that_was_asked_for(self):
        done = run("1M", VIADUCT_WINDOW_BYTES="1G")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("window of this host is too small", run("2G").stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
