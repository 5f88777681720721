#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The symmetric heap grows: near, far, over relays, with PEs that are late, up to its bound, and where a PE has no memory.

usage: grow_test.py PROGRAM OSHRUN [TEST]
"""
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

PROGRAM, OSHRUN = map(os.path.abspath, sys.argv[1:3])
FULL = r"shmem_\w+: \d+ bytes do not fit into the symmetric heap: .* it may grow to \d+; raise SHMEM_SYMMETRIC_SIZE or "
PLACES = {"alone": ["-np", "1"], "near": ["-np", "3"], "far": ["--hosts", "2", "-np", "2"], "mixed": ["--hosts", "2", "-np", "4"]}
# Starts its program later in PE 1 than in the others.
LATE = ["sh", "-c", 'test "$OSHRUN_PE" != 1 || sleep 0.3; exec "$0" "$@"']


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SHMEM_")}
    return {**env, "SHMEM_SYMMETRIC_SIZE": "4m", "SHMEM_VIADUCT_HEAP_MAX": "64m", **more}


def run(rule, *where, before=(), **more):
    return subprocess.run([OSHRUN, *where, *before, PROGRAM, rule], env=environment(**more), stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, timeout=limit(120), check=False)


class Grow(unittest.TestCase):
    def passes(self, rule, *where, says=None, **more):
        """The program ends well, and says (says) that its heap is full, or nothing."""
        done = run(rule, *where, **more)
        lines = done.stderr.splitlines()
        self.assertEqual(done.returncode, 0, done.stderr)
        if says is None:
            self.assertEqual(lines, [])
        for line in lines:
            self.assertRegex(line, says)

    def ends(self, rule, *where, says, status=1, **more):
        done = run(rule, *where, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertRegex(done.stderr, says)

    def test_four_times(self):
        for name, where in PLACES.items():
            with self.subTest(name):
                self.passes("fill", *where, says=FULL)

    def test_over_relays(self):
        self.passes("fill", "--hosts", "5", "-np", "5", says=FULL)

    def test_with_checks(self):
        self.passes("fill", *PLACES["mixed"], says=FULL, SHMEM_DEBUG="1")

    def test_late_to_allocations(self):
        for name in ("near", "far", "mixed"):
            with self.subTest(name):
                self.passes("fill_late", *PLACES[name], says=FULL)

    def test_late_to_the_start(self):
        for name in ("near", "far"):
            with self.subTest(name):
                self.passes("fill_late", *PLACES[name], says=FULL, before=LATE)

    def test_algorithms_of_reductions(self):
        """The PEs agree by a reduction."""
        for name in ("flat", "rounds", "shared", "ring"):
            with self.subTest(name):
                self.passes("align_and_realloc_grow", *PLACES["mixed"], SHMEM_VIADUCT_REDUCE=name)

    def test_one_pe_has_no_memory(self):
        """The window has room for what is refused twice; what is allocated in vain is given back."""
        for where in (["-np", "3"], ["--hosts", "2", "-np", "2"]):
            with self.subTest(where=where):
                self.passes("refused", "--window", "600M", *where,
                            says=r"do not fit into the symmetric heap( here: .*no address space left|: )")

    def test_the_window_is_full(self):
        """It has no room for twice the heap, but for what is asked for."""
        for where in (["--window", "260M", "-np", "1"], ["--window", "520M", "-np", "2"],
                      ["--window", "260M", "--hosts", "2", "-np", "2"]):
            with self.subTest(where=where):
                self.passes("narrow", *where, SHMEM_SYMMETRIC_SIZE="100m", SHMEM_VIADUCT_HEAP_MAX="400m",
                            says="do not fit into the symmetric heap( here: VIP_ERROR_RESOURCE|: )")

    def test_more_than_the_machine_has(self):
        done = run("beyond", *PLACES["near"], SHMEM_VIADUCT_HEAP_MAX="900t")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\d+ bytes more do not fit into the symmetric heap here: .*this machine allows \d+ bytes at a time")

    def test_threads(self):
        for name in ("near", "far"):
            with self.subTest(name):
                self.passes("threads", *PLACES[name])

    def test_a_bound_of_nothing(self):
        for most in ("0", "4m", "1k"):
            with self.subTest(most):
                self.passes("bounded", *PLACES["near"], says=FULL, SHMEM_VIADUCT_HEAP_MAX=most)

    def test_the_bound_must_be_equal_everywhere(self):
        self.ends("bounded", *PLACES["near"], before=["sh", "-c", 'export SHMEM_VIADUCT_HEAP_MAX=1${OSHRUN_PE}m; exec "$0" "$@"'],
                  says=r"the heap of PE \d may grow to \d+ bytes and this one to \d+: SHMEM_VIADUCT_HEAP_MAX must be equal")

    def test_the_bound_is_a_size(self):
        self.ends("bounded", *PLACES["alone"], SHMEM_VIADUCT_HEAP_MAX="much", says='SHMEM_VIADUCT_HEAP_MAX is "much"; expected')

    def test_past_the_end(self):
        for name in ("near", "far"):
            with self.subTest(name):
                self.ends("spans", *PLACES[name], says=r"shmem_putmem: 16 bytes at .*, for PE \d, are not symmetric")

    def test_unequal_allocations(self):
        for name in ("near", "far"):
            with self.subTest(name):
                self.ends("unequal", *PLACES[name], says="shmem_malloc: the heap of one PE is to grow by .* allocate alike")

    def test_a_pe_dies(self):
        for name in ("near", "far"):
            with self.subTest(name):
                self.ends("dies", *PLACES[name], says="PE 0 .*(killed|signal)", status=137)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
