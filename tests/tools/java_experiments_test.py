#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf/java_experiments: usage, a small file by the program of C, and all rows with little measuring.

usage: java_experiments_test.py CLASS"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ["VIADUCT_BUILD"])
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("java_experiments", str(ROOT / "perf/java_experiments"))
java = importlib.util.module_from_spec(importlib.util.spec_from_loader("java_experiments", loader))
loader.exec_module(java)
TRANSFERS = BUILD / "perf/experiments/java/transfers"


def call(*argv):
    """main() with these arguments: (exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = java.main(argv)
    return status, out.getvalue(), err.getvalue()


class Usage(unittest.TestCase):
    def test_what_makes_no_sense_is_refused(self):
        for argv in (["--rows", "C"], ["files"], ["--rounds", "0"], ["--file-mb", "many"], ["--fabric", "emu,tcp"]):
            status, out, err = call(*argv)
            self.assertEqual((status, out, len(err.splitlines())), (2, "", 1), argv)

    def test_help(self):
        status, out, _ = call("--help")
        self.assertEqual(status, 0)
        self.assertIn("usage: java_experiments", out)

    def test_a_build_without_the_programs_is_refused(self):
        with tempfile.TemporaryDirectory() as empty:
            status, _, err = call("--build", empty)
        self.assertEqual(status, 1)
        self.assertIn("java_experiments: ", err)

    def test_the_program_of_c_refuses_too(self):
        with tempfile.NamedTemporaryFile() as file:
            for argv in ([], ["serve"], ["ask", file.name, 1, 1, 1, 1], ["serve", file.name, 0, 1, 1, 1],
                         ["serve", file.name, 1, 1 << 40, 1, 1], ["serve", file.name, 1, 1, 65, 1],
                         ["serve", file.name, 1, 1, 1, "1x"]):
                done = subprocess.run([TRANSFERS, *map(str, argv)], capture_output=True, text=True, timeout=limit(20), check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""), argv)


class File(unittest.TestCase):
    def test_arrives_whole(self):
        """By one thread; and by three, in buffers that do not divide their parts, of which there are more than slots."""
        options = java.parse(["--file-mb", "3"])
        with mock.patch.object(java, "WINDOW", "256M"), java.Bench(BUILD, "emu", options) as bench:
            for buffer, threads in ((1 << 20, 1), (10000, 3)):
                rates = bench.file("C", buffer, threads)
                self.assertEqual(len(rates), 1)
                self.assertGreater(rates[0], 0)


class Round(unittest.TestCase):
    def test_every_row_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            status, out, err = call("--quick", "--rounds", "1", "--file-mb", "4", "--build", str(BUILD), "--json", str(path))
            self.assertEqual(status, 0, out + err)
            document = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((document["schema"], document["version"], document["file_mb"]), ("viaduct.java", 1, 4))
        for fabric, rows in (("emu", {"C", "JNI", "TCP"}), ("model", {"C", "JNI"})):
            for kind, points in (("stream", 3), ("file", 4)):
                found = [r for r in document["rows"] if (r["fabric"], r["kind"]) == (fabric, kind) and r["row"] != "FFM"]
                self.assertEqual({r["row"] for r in found}, rows)
                self.assertEqual(len(found), points * len(rows))
        self.assertTrue(all(r["best_mb_per_s"] >= r["median_mb_per_s"] > 0 for r in document["rows"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
