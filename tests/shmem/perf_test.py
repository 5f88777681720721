#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The OpenSHMEM benchmarks: options, table, JSON, refusals, with the least measuring that they accept.

  perf_test.py [CLASS[.METHOD]...]

OSHRUN is the launcher, SHMEM_PERF the folder of the programs.
"""
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

OSHRUN = os.environ["OSHRUN"]
FOLDER = Path(os.environ["SHMEM_PERF"])
BY_SIZE = {"osb_put": ["latency", "quiet", "nbi", "bandwidth"],
           "osb_get": ["latency", "nbi", "bandwidth"],
           "osb_rate": ["put", "nbi", "p"],
           "osb_reduce": ["latency"],
           "osb_collect": ["broadcast", "collect", "fcollect", "alltoall"]}
BY_NAME = {"osb_barrier": ["barrier", "sync"],
           "osb_amo": ["fetch", "set", "swap", "compare_swap", "fetch_inc", "inc", "fetch_add", "add",
                       "fetch_and", "and", "fetch_or", "or", "fetch_xor", "xor"]}
QUICK = ("--batches", "3", "--batch-us", "2")
PATIENCE = limit(100)


def run(*argv):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=PATIENCE,
                          check=False, stdin=subprocess.DEVNULL)


def measure(npes, name, *options, launcher=()):
    return run(OSHRUN, "--timeout", PATIENCE - 20, "-np", npes, *launcher, FOLDER / name, *QUICK, *options)


class Case(unittest.TestCase):
    def said(self, done, status=0):
        self.assertEqual(done.returncode, status, f"{done.args}: {done.stdout}{done.stderr}")
        return done.stdout

    def values(self, npes, name, *options, launcher=()):
        done = measure(npes, name, "--json", *options, launcher=launcher)
        return [json.loads(line) for line in self.said(done).splitlines()]


class Output(Case):
    def test_json_of_sizes(self):
        for name, figures in BY_SIZE.items():
            found = self.values(2, name, "--sizes", "8,1K")
            self.assertEqual([(v["size_bytes"], v["figure"]) for v in found],
                             [(s, f) for s in (8, 1024) for f in figures], name)
            for value in found:
                self.assertEqual((value["program"], value["pes"]), (name, 2))
                self.assertGreater(value["value"], 0)

    def test_json_without_sizes(self):
        for name, figures in BY_NAME.items():
            found = self.values(2, name)
            self.assertEqual([v["figure"] for v in found], figures)
            self.assertNotIn("size_bytes", found[0])
            self.assertEqual({v["unit"] for v in found}, {"us"})

    def test_table_in_the_form_of_osu(self):
        lines = self.said(measure(2, "osb_put", "--sizes", "1..16")).splitlines()
        self.assertRegex(lines[0], r"^# .*Put Test.*2 PEs")
        self.assertIn("fit into a cache", lines[1])
        self.assertRegex(lines[2], r"^# Size +Latency \(us\) ")
        self.assertEqual([line.split()[0] for line in lines[3:]], ["1", "2", "4", "8", "16"])
        for line in lines[3:]:
            self.assertRegex(line, r"^\d+( +\d+\.\d{3}){4}$")

    def test_bandwidth_is_size_over_time(self):
        values = {v["figure"]: v for v in self.values(2, "osb_get", "--sizes", "4K")}
        self.assertEqual((values["nbi"]["unit"], values["bandwidth"]["unit"]), ("us", "MB/s"))

    def test_only_one_figure(self):
        found = self.values(2, "osb_amo", "--only", "swap")
        self.assertEqual([v["figure"] for v in found], ["swap"])

    def test_sizes_of_floats_only(self):
        found = self.values(2, "osb_reduce", "--sizes", "1..16")
        self.assertEqual([v["size_bytes"] for v in found], [4, 8, 16])


class Jobs(Case):
    def test_numbers_of_pes(self):
        for npes in (1, 3, 4, 8):
            for name in ("osb_barrier", "osb_reduce", "osb_collect"):
                options = ("--sizes", "64") if name in BY_SIZE else ()
                self.assertEqual({v["pes"] for v in self.values(npes, name, *options)}, {npes})
        self.assertTrue(self.values(4, "osb_rate"))
        self.assertTrue(self.values(3, "osb_put", "--sizes", "8"))

    def test_between_hosts(self):
        for name in ("osb_put", "osb_get", "osb_reduce"):
            self.assertTrue(self.values(2, name, "--sizes", "8,64K", launcher=("--hosts", "2")))

    def test_one_pe_is_too_few(self):
        done = measure(1, "osb_put")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("at least 2 PEs", done.stderr)


class Usage(Case):
    def test_help_and_version(self):
        for name, figures in {**BY_SIZE, **BY_NAME}.items():
            text = self.said(run(FOLDER / name, "--help"))
            self.assertTrue(text.startswith(f"Usage: oshrun -np N {name} "))
            self.assertEqual(re.search(r"^Figures: (.*)$", text, re.MULTILINE)[1].split(), figures)
            self.assertTrue(self.said(run(FOLDER / name, "--version")).startswith(f"{name} (Viaduct) "))

    def test_refusals(self):
        for argument in (["--sizes", "0"], ["--sizes", "8,,9"], ["--sizes", "8x"], ["--sizes", "16..8"],
                         ["--sizes", "2G"], ["--sizes", "1..1M,1..1M,1..1M,1..1M"], ["--batches", "0"],
                         ["--batches", "nan"], ["--batch-us", "-1"], ["--only", "nothing"], ["--bad"], ["x"]):
            done = run(FOLDER / "osb_put", *argument)
            self.assertEqual((done.returncode, done.stdout), (2, ""), argument)
            self.assertEqual(len(done.stderr.splitlines()), 1, argument)
        self.said(run(FOLDER / "osb_barrier", "--sizes", "8"), status=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
