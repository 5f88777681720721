#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf/compare_shmem without measuring: usage, the output of programs, ratios, verdicts, the search for libraries."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "perf"))
sys.dont_write_bytecode = True
from compare_lib import shmem_libs as libs, shmem_report as report, shmem_rows as rows  # noqa: E402  after its path

COMPARE = ROOT / "perf/compare_shmem"
TIME = rows.Row("put 8 B, us", ("osb_put", "latency", 8), must=0.5)
RATE = rows.Row("rate, M/s", ("osb_rate", "put", 8), rate=True)


def run(*argv):
    return subprocess.run([COMPARE, *argv], capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL)


def rounds(row, pairs):
    return [{"A": {row.key: a}, "B": {row.key: b}} for a, b in pairs]


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


class Usage(unittest.TestCase):
    def test_help_and_version(self):
        self.assertIn("usage: compare_shmem", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"^compare_shmem \(Viaduct\) \d")

    def test_refusals(self):
        for argv in (["--bad"], ["x"], ["--rounds", "0"], ["--pin", "1"], ["--quick", "--plots", "d"]):
            done = run(*argv)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), argv)


class Values(unittest.TestCase):
    def test_what_a_launcher_says_is_no_value(self):
        text = ('vm: Segmentation fault\n{"program": "osb_put", "figure": "latency", "size_bytes": 8, "value": 0.02}\n'
                '{"program": "osb_amo", "figure": "swap", "value": 1}\n[1, 2]\n{"program": "osb_put"}\n{"prog')
        self.assertEqual(libs.values_of(text), {("osb_put", "latency", 8): 0.02, ("osb_amo", "swap", None): 1.0})

    def test_every_row_is_measured(self):
        measured = {(s.program, s.only) for s in rows.STEPS}
        self.assertEqual(measured, {row.key[:2] for row in rows.ROWS})
        self.assertEqual({(s.program, s.only) for s in rows.NEIGHBOUR_STEPS},
                         {row.key[:2] for row in rows.NEIGHBOUR_ROWS})

    def test_curves_have_every_power_of_two(self):
        self.assertEqual({(s.program, s.only, s.sizes) for s in rows.MOVES},
                         {(p, f, "1..64M") for p in ("osb_put", "osb_get") for f in ("latency", "bandwidth")})


class Verdicts(unittest.TestCase):
    def test_ratio_below_one_is_ours(self):
        self.assertEqual(TIME.ratio(1.0, 4.0), 0.25)
        self.assertEqual(RATE.ratio(4.0, 1.0), 0.25)

    def test_held(self):
        found = rows.outcome(TIME, rounds(TIME, [(1, 3)] * 5), "A", "B")
        self.assertEqual((found["outcome"], found["ours"], found["theirs"]), (rows.HELD, 1, 3))
        self.assertTrue(rows.good(found))

    def test_missed_although_faster(self):
        found = rows.outcome(TIME, rounds(TIME, [(2, 3)] * 5), "A", "B")
        self.assertEqual(found["outcome"], rows.MISSED)
        self.assertFalse(rows.good(found))

    def test_too_few_rounds(self):
        self.assertEqual(rows.outcome(TIME, rounds(TIME, [(1, 9)] * 4), "A", "B")["outcome"], rows.UNSURE)

    def test_even_is_near_one_only(self):
        even = rows.outcome(RATE, rounds(RATE, [(10, 9.9), (10, 10.2), (10, 10), (10, 9.8), (10, 10.3)]), "A", "B")
        self.assertEqual(even["outcome"], rows.EVEN)
        slow = rows.outcome(RATE, rounds(RATE, [(10, 9), (10, 12), (10, 12), (10, 12), (10, 12)]), "A", "B")
        self.assertEqual(slow["outcome"], rows.UNSURE)

    def test_a_round_without_the_figure_does_not_count(self):
        some = rounds(TIME, [(1, 3)] * 5) + [{"A": {TIME.key: 1}, "B": {}}]
        self.assertEqual(rows.outcome(TIME, some, "A", "B")["rounds"], 5)
        self.assertIsNone(rows.outcome(TIME, [{"A": {}, "B": {}}], "A", "B")["ratio"])

    def test_the_table_shows_rows_that_are_not_known(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            report.print_rows([rows.outcome(TIME, [{"A": {}, "B": {}}], "A", "B")], "B")
        self.assertIn("unsure", out.getvalue())


class Pictures(unittest.TestCase):
    def test_curves(self):
        values = {("osb_put", "latency", size): 0.01 * size for size in (1, 2, 4)}
        curves = report.curves_of([{"Viaduct": values, "B": {}, "Viaduct, neighbour hosts": values}] * 3)
        curve = {1: 0.01, 2: 0.02, 4: 0.04}
        self.assertEqual(curves, {"osb_put": {"latency": {"Viaduct": curve, "Viaduct, neighbour hosts": curve}}})
        python = next((p for p in (sys.executable, "/usr/bin/python3") if subprocess.run(
            [p, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0), None)
        if not python:
            self.skipTest("matplotlib is not installed (Debian: python3-matplotlib)")
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "result.json"
            report.write_json(source, {"curves": curves})
            subprocess.run([python, ROOT / "perf/compare_lib/shmem_plots.py", source, folder], check=True,
                           capture_output=True, timeout=60)
            self.assertTrue((Path(folder) / "shmem-put.png").read_bytes().startswith(b"\x89PNG"))


class Libraries(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def peer(self, version, job="true"):
        script(self.folder / "bin/oshcc", "true")
        script(self.folder / "bin/oshrun", f'[ "$1" = --version ] && echo "{version}" && exit\n{job}')
        found = libs.peer(self.folder, self.folder, 1)
        if found:
            found.launcher = list(map(str, found.launcher))
            found.folder = self.folder
        return found

    def test_none(self):
        self.assertIsNone(libs.peer(self.folder, self.folder, 1))

    def test_ours_is_no_peer(self):
        self.assertIsNone(self.peer("oshrun (Viaduct) 1.2.0"))

    def test_open_mpi_binds(self):
        found = self.peer("oshrun (OpenRTE) 4.1.4")
        self.assertEqual(found.name, "Open MPI 4.1.4")
        self.assertIn("--bind-to", found.launcher)
        self.assertEqual("--allow-run-as-root" in found.launcher, os.geteuid() == 0)

    def test_what_was_printed_before_a_crash_counts(self):
        line = '{\\"program\\": \\"osb_put\\", \\"figure\\": \\"latency\\", \\"size_bytes\\": 8, \\"value\\": 2}'
        found = self.peer("something 1.0", f'echo "{line}"; echo "Segmentation fault" >&2; exit 139')
        for _ in range(2):
            self.assertEqual(found.run(rows.STEPS[0], 5), {("osb_put", "latency", 8): 2.0})
        self.assertEqual(found.notes(), ["peer 1: osb_put ended with status 139 after it printed its figures "
                                         "(segmentation fault) (2 times)"])

    def test_a_program_that_says_nothing(self):
        found = self.peer("something 1.0")
        self.assertEqual(found.run(rows.STEPS[0], 5), {})
        self.assertEqual(found.notes(), ["peer 1: osb_put printed nothing"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
