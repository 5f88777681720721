#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What scripts/results.py makes of tests that fail once, always, or do not end: results_test.py SCRIPTS"""
import contextlib
import io
import json
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, sys.argv.pop(1))
import rerun  # noqa: E402
import results  # noqa: E402

rerun.QUIET_SECONDS = 0

# Fails until it has been called so often; `gtest` says which case did, as GoogleTest would.
PROGRAM = """#!/bin/sh
echo call >>"$COUNT"
[ "$(wc -l <"$COUNT")" -gt {fails} ] || {{ echo "a_test.cc:1: Failure, seed 42"; exit 1; }}
case "$*" in {wanted}) ;; *) echo "asked for $*"; exit 1 ;; esac
echo "[==========] {ran} test from 1 test suite ran. (7 ms total)"
"""
GTEST = "[  PASSED  ] 3 tests.\n[  FAILED  ] Part/Suite.One/3, where GetParam() = 4 (7 ms)\n"


class Rerun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = Path(self.folder.name)
        for name in ("meson-logs", "meson-info"):
            (self.build / name).mkdir()
        self.entries, self.tests = [], []

    def add(self, name, script, stdout="a_test.cc:1: Failure, seed 42\n", result="FAIL"):
        program = self.build / name
        program.write_text(script)
        program.chmod(0o755)
        env = dict(os.environ, COUNT=str(self.build / f"{name}.calls"), TEST_LIMIT_FACTOR="1")
        (self.build / f"{name}.calls").touch()
        self.entries.append({"name": f"viaduct:unit / {name}", "stdout": stdout, "stderr": "", "result": result,
                             "starttime": time.time(), "duration": 1.0, "command": [str(program)], "env": env})
        self.tests.append({"name": name, "timeout": 1})

    def results(self, *options):
        (self.build / "meson-logs/testlog.json").write_text("".join(json.dumps(e) + "\n" for e in self.entries))
        (self.build / "meson-info/intro-tests.json").write_text(json.dumps(self.tests))
        sys.argv = ["results.py", *options, str(self.build)]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = results.main()
        return code, said.getvalue()

    def calls(self, name):
        return (self.build / f"{name}.calls").read_text().count("call")

    def recorded(self):
        return [json.loads(line) for line in (self.build / "meson-logs/unstable.jsonl").read_text().splitlines()]

    def test_passes_alone_and_is_unstable(self):
        self.add("once", PROGRAM.format(fails=1, wanted="''", ran=1))
        self.add("good", PROGRAM.format(fails=0, wanted="''", ran=1), result="OK")
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-2:]), (0, ["1 unstable, in 1 programs", "2 passed, 0 failed, 0 skipped"]))
        self.assertIn("unstable: once (a_test.cc:1: Failure, seed 42; seed 42, pressure", said)
        self.assertEqual((self.calls("once"), self.calls("good")), (2, 0))
        (line,) = self.recorded()
        self.assertEqual((line["test"], line["seed"], line["tries"], line["result"]), ("once", 42, 2, "FAIL"))

    def test_one_case_of_a_program_is_run_again(self):
        self.add("gtest", PROGRAM.format(fails=0, wanted="--gtest_filter=Part/Suite.One/3", ran=1), stdout=GTEST)
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-2:]), (0, ["1 unstable, in 1 programs", "4 passed, 0 failed, 0 skipped"]))
        self.assertEqual(self.recorded()[0]["cases"], ["Part/Suite.One/3"])

    def test_a_filter_that_matches_nothing_proves_nothing(self):
        self.add("gtest", PROGRAM.format(fails=0, wanted="*", ran=0), stdout=GTEST)
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-1]), (1, "3 passed, 1 failed, 0 skipped"))

    def test_what_fails_three_times_has_failed(self):
        self.add("always", PROGRAM.format(fails=9, wanted="*", ran=1))
        code, said = self.results("--rerun")
        self.assertEqual((code, self.calls("always")), (1, 2))
        self.assertEqual(said.splitlines()[-2:], ["0 unstable, in 0 programs", "0 passed, 1 failed, 0 skipped"])
        self.assertIn("failed: always (fail: a_test.cc:1: Failure, seed 42)", said)
        self.assertFalse((self.build / "meson-logs/unstable.jsonl").exists())

    def test_a_timeout_says_so_and_leaves_no_process(self):
        marker = f"{self.build}/marker"
        self.add("stands", f"#!/bin/sh\nsleep 600 & echo $! >>{marker}\nwait\n", result="TIMEOUT")
        code, said = self.results("--rerun")
        self.assertEqual((code, said.count("TIMEOUT after 1 s")), (1, 2))
        for pid in Path(marker).read_text().split():
            self.assertFalse(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes())

    def test_too_many_unstable_programs_fail(self):
        for number in range(results.UNSTABLE + 1):
            self.add(f"once{number}", PROGRAM.format(fails=0, wanted="''", ran=1))
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-1]), (1, "6 passed, 1 failed, 0 skipped"))

    def test_a_bad_change_is_not_run_again(self):
        for number in range(results.WORTH_A_RERUN + 1):
            self.add(f"bad{number}", PROGRAM.format(fails=0, wanted="''", ran=1))
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-1]), (1, "0 passed, 16 failed, 0 skipped"))

    def test_nothing_is_run_again_unasked(self):
        self.add("once", PROGRAM.format(fails=0, wanted="''", ran=1))
        self.assertEqual((self.results()[0], self.calls("once")), (1, 0))

    def test_nothing_ran(self):
        self.assertEqual(self.results("--rerun"), (1, "0 unstable, in 0 programs\n0 passed, 0 failed, 0 skipped\n"))


if __name__ == "__main__":
    unittest.main()
