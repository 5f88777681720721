#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The verdicts of scripts/results.py on tests that fail once, always, or do not end: results_test.py SCRIPTS"""
import contextlib
import io
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SCRIPTS = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SCRIPTS))
import machine  # noqa: E402
import rerun  # noqa: E402
import results  # noqa: E402

rerun.QUIET_SECONDS = 0

# Fails in its first `fails` calls.
PROGRAM = """#!/bin/sh
echo call >>"$COUNT"
[ "$(wc -l <"$COUNT")" -gt {fails} ] || {{ echo "a_test.cc:1: Failure, seed 42"; exit 1; }}
{then}
"""
GTEST = "[==========] Running 4 tests\n[  PASSED  ] 3 tests.\n[  FAILED  ] Part/Suite.One/3, where GetParam() = 4 (7 ms)\n"


def has_ended(pid, seconds):
    """Waits for the end of a process that need not be a child; has it ended?"""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


class Rerun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = Path(self.folder.name)
        for name in ("meson-logs", "meson-info"):
            (self.build / name).mkdir()
        self.entries, self.tests = [], []

    def add(self, name, script, stdout="a_test.cc:1: Failure, seed 42\n", result="FAIL", limit=60):
        program = self.build / name
        program.write_text(script)
        program.chmod(0o755)
        env = dict(os.environ, COUNT=str(self.build / f"{name}.calls"), TEST_LIMIT_FACTOR="1")
        (self.build / f"{name}.calls").touch()
        self.entries.append({"name": f"viaduct:unit / {name}", "stdout": stdout, "stderr": "", "result": result,
                             "starttime": time.time(), "duration": 1.0, "command": [str(program)], "env": env})
        self.tests.append({"name": name, "timeout": limit})

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
        self.add("once", PROGRAM.format(fails=1, then=""))
        self.add("good", PROGRAM.format(fails=0, then=""), result="OK")
        now = time.time()
        (self.build / "meson-logs/machine.txt").write_text(f"{now - 90} 90.5 99\n{now} 31.25 40\n{now + 1} 12 50\n{now} \n")
        code, said = self.results("--rerun", "--status", "1")
        self.assertEqual((code, said.splitlines()[-2:]), (0, ["1 unstable, in 1 programs", "2 passed, 0 failed, 0 skipped"]))
        self.assertIn("unstable: once (a_test.cc:1: Failure, seed 42; seed 42, passed alone at try 2; pressure 31.25 %, wake-ups 50 us)", said)
        self.assertEqual((self.calls("once"), self.calls("good")), (2, 0))
        (line,) = self.recorded()
        self.assertEqual((line["test"], line["seed"], line["tries"], line["result"]), ("once", 42, 2, "FAIL"))

    def test_a_program_is_run_again_as_a_whole(self):
        self.add("gtest", PROGRAM.format(fails=0, then='[ "$*" = --gtest_brief=0 ]'), stdout=GTEST)
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-2:]), (0, ["1 unstable, in 1 programs", "4 passed, 0 failed, 0 skipped"]))
        self.assertEqual(self.recorded()[0]["cases"], ["gtest: Part/Suite.One/3"])

    def test_a_case_that_is_skipped_now_proves_nothing(self):
        self.add("gtest", PROGRAM.format(fails=0, then='echo "[  SKIPPED ] Part/Suite.One/3 (0 ms)"'), stdout=GTEST)
        self.add("other", PROGRAM.format(fails=0, then="exit 77"))
        self.assertEqual(self.results("--rerun")[1].splitlines()[-1], "3 passed, 2 failed, 0 skipped")

    def test_what_fails_three_times_has_failed(self):
        self.add("always", PROGRAM.format(fails=9, then=""))
        code, said = self.results("--rerun")
        self.assertEqual((code, self.calls("always")), (1, 2))
        self.assertEqual(said.splitlines()[-2:], ["0 unstable, in 0 programs", "0 passed, 1 failed, 0 skipped"])
        self.assertIn("failed: always (fail: a_test.cc:1: Failure, seed 42)", said)
        self.assertFalse((self.build / "meson-logs/unstable.jsonl").exists())

    def test_a_process_that_is_left_behind_is_a_timeout_and_is_ended(self):
        marker = f"{self.build}/marker"
        for then in ("wait", "exit 0"):
            self.add("leaves " + then, f"#!/bin/sh\nsleep 600 & echo $! >>{marker}\n{then}\n", result="TIMEOUT", limit=1)
        code, said = self.results("--rerun")
        self.assertEqual((code, said.count("TIMEOUT after 1 s")), (1, 2))
        for pid in Path(marker).read_text().split():
            self.assertFalse(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes())

    def test_what_was_interrupted_or_is_gone_is_not_run_again(self):
        self.add("broken", PROGRAM.format(fails=0, then=""), result="INTERRUPT")
        self.add("gone", PROGRAM.format(fails=0, then=""))
        (self.build / "gone").unlink()
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-1], self.calls("broken")), (1, "0 passed, 2 failed, 0 skipped", 0))

    def test_a_run_that_was_cut_short_has_failed(self):
        self.add("good", PROGRAM.format(fails=0, then=""), result="OK")
        self.add("once", PROGRAM.format(fails=0, then=""))
        for status, wanted in (("1", 0), ("0", 1), ("143", 1)):
            code, said = self.results("--rerun", "--status", status)
            self.assertEqual((code, "failed: meson test ended with status" in said), (wanted, bool(wanted)), status)

    def test_limits_are_those_of_tests_or_of_benchmarks(self):
        (self.build / "meson-info/intro-tests.json").write_text('[{"name": "both", "timeout": 10}]')
        (self.build / "meson-info/intro-benchmarks.json").write_text('[{"name": "both", "timeout": 600}]')
        self.assertEqual([rerun.limits(self.build, kind)["both"] for kind in ("tests", "benchmarks")], [10, 600])
        self.assertEqual([machine.sanitizer_factor({"TEST_LIMIT_FACTOR": text}) for text in ("8", "", "x", "0")], [8, 1, 1, 1])

    def test_too_many_unstable_programs_fail(self):
        for number in range(results.UNSTABLE + 1):
            self.add(f"once{number}", PROGRAM.format(fails=0, then=""))
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-1]), (1, "6 passed, 1 failed, 0 skipped"))

    def test_a_test_that_does_not_end_tells_where_it_stands(self):
        if shutil.which("gdb") is None:
            self.skipTest("gdb is not installed")
        program = self.build / "stands"
        program.write_text("#!/bin/sh\nsleep 600 >/dev/null\n")
        program.chmod(0o755)
        env = {"ONE_OF": "two", "TEST_LIMIT_FACTOR": "1"}
        (self.build / "meson-info/intro-tests.json").write_text(json.dumps(
            [{"name": name, "cmd": [str(program), "1"], "env": {"ONE_OF": name}, "timeout": 1} for name in ("one", "two")]))
        # As Meson starts it: in a session of its own, with one more argument.
        with subprocess.Popen([str(program), "1", "--gtest_output=xml:x"], env={**os.environ, **env},
                              start_new_session=True) as test:
            try:
                watch = machine.Watch(self.build)
                self.assertEqual([name for pid, name in watch.late()], ["two"])
                self.assertEqual(list(watch.late()), [])
                watch.seen.clear()
                watch.write_stacks()
            finally:
                machine.end_session(test.pid)
        self.assertEqual([path.name for path in (self.build / "meson-logs/stacks").iterdir()], ["two.txt"])
        self.add("two", PROGRAM.format(fails=0, then=""), result="TIMEOUT")
        self.assertRegex(self.results()[1], r"TIMEOUT: viaduct:unit / two, shortly before its limit:\nprocess \d+:\n(Thread|#0)")

    def test_a_program_is_found_by_its_command(self):
        command = ["/bin/prog", "a"]
        for words in (["/bin/prog", "a"], ["/usr/bin/sh", "/bin/prog", "a"], ["/other/prog", "a", "--gtest_output=xml:x"]):
            self.assertTrue(machine.runs(command, words), words)
        for words in ([], ["/bin/prog"], ["/bin/prog", "a", "b"], ["/bin/program", "a"]):
            self.assertFalse(machine.runs(command, words), words)

    def test_the_machine_is_watched_while_its_parent_runs(self):
        script = f"{SCRIPTS}/machine.py watch . & for n in $(seq 600); do [ -s meson-logs/machine.txt ] && break; sleep 0.1; done; echo $!"
        pid = int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, text=True, check=True, cwd=self.build).stdout)
        lines = (self.build / "meson-logs/machine.txt").read_text().splitlines()
        now = time.time()
        self.assertTrue(lines)
        for line in lines:
            when, pressure, wakeup = line.split()
            self.assertLess(abs(float(when) - now), 60)
            self.assertGreaterEqual(float(pressure), 0) if pressure != "None" else None
            self.assertGreater(int(wakeup), 0)
        self.assertTrue(has_ended(pid, seconds=60))

    def test_a_bad_change_is_not_run_again(self):
        for number in range(results.WORTH_A_RERUN + 1):
            self.add(f"bad{number}", PROGRAM.format(fails=0, then=""))
        code, said = self.results("--rerun")
        self.assertEqual((code, said.splitlines()[-1]), (1, "0 passed, 16 failed, 0 skipped"))

    def test_nothing_is_run_again_unasked(self):
        self.add("once", PROGRAM.format(fails=0, then=""))
        self.assertEqual((self.results()[0], self.calls("once")), (1, 0))

    def test_nothing_ran(self):
        self.assertEqual(self.results("--rerun"), (1, "0 unstable, in 0 programs\n0 passed, 0 failed, 0 skipped\n"))


if __name__ == "__main__":
    unittest.main()
