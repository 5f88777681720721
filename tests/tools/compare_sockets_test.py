#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf/compare_sockets: usage, verdicts, plots, and one round of the shortest figures."""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "perf"))
sys.dont_write_bytecode = True
from compare_lib import sock_report, sock_rows as rows, sock_run, sock_steps as steps, tools  # noqa: E402  after its path

COMPARE = ROOT / "perf/compare_sockets"
BUILD = Path(os.environ["VIADUCT_BUILD"])
BENCH = BUILD / "perf/sock/sock_bench"
PATIENCE = limit(240)
LEAST = rows.Row("rate", ("a", "k"), ("b", "k"), must=2.0, goal=3.0, most=False)
MOST = rows.Row("time", ("a", "k"), ("b", "k"), must=0.5, goal=0.25)


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          stdin=subprocess.DEVNULL)


def rounds(pairs):
    return [{("a", "k"): a, ("b", "k"): b} for a, b in pairs]


class Usage(unittest.TestCase):
    def test_help_and_version(self):
        self.assertIn("usage: compare_sockets", run(COMPARE, "--help").stdout)
        self.assertRegex(run(COMPARE, "--version").stdout, r"^compare_sockets \(Viaduct\) \d")
        self.assertIn("usage: sock_bench", run(BENCH, "--help").stdout)

    def test_refusals(self):
        for argv in (["--bad"], ["x"], ["--rounds", "0"], ["--pin", "1"], ["--quick", "--plots", "d"],
                     ["--only", "pingpong,x"]):
            done = run(COMPARE, *argv)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), argv)

    def test_sock_bench_refuses(self):
        for argv in ([], ["--test", "x"], ["--test", "pingpong"], ["--serve", "127.0.0.1", "--test", "call"],
                     ["--test", "call", "--sizes", "1,"], ["--test", "call", "--batches", "0"], ["--test", "call", "x"]):
            done = run(BENCH, *argv)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), argv)
        for place in ("127.0.0.1:99999", "here", "unix:", "127.0.0.1:1x"):
            done = run(BENCH, "--test", "pingpong", "--connect", place)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), place)


class Verdicts(unittest.TestCase):
    def judged(self, row, pairs):
        found = rows.outcome(row, rounds(pairs))
        return found["must_outcome"], found["goal_outcome"]

    def test_at_least(self):
        self.assertEqual(self.judged(LEAST, [(7, 2)] * 5), (rows.HELD, rows.HELD))
        self.assertEqual(self.judged(LEAST, [(5, 2)] * 5), (rows.HELD, rows.MISSED))
        self.assertEqual(self.judged(LEAST, [(1, 2)] * 5), (rows.MISSED, rows.MISSED))

    def test_at_most(self):
        self.assertEqual(self.judged(MOST, [(1, 5)] * 5), (rows.HELD, rows.HELD))
        self.assertEqual(self.judged(MOST, [(2, 5)] * 5), (rows.HELD, rows.MISSED))
        self.assertEqual(self.judged(MOST, [(3, 5)] * 5), (rows.MISSED, rows.MISSED))

    def test_few_or_scattered_values_decide_nothing(self):
        self.assertEqual(self.judged(MOST, [(1, 5)] * 4), (rows.UNSURE, rows.UNSURE))
        self.assertEqual(self.judged(MOST, [(1, 5)] * 4 + [(9, 5)])[0], rows.UNSURE)
        self.assertEqual(self.judged(MOST, []), (rows.UNSURE, rows.UNSURE))

    def test_a_difference(self):
        more = rows.Row("call", ("a", "k"), ("b", "k"), must=5.0, minus=True)
        self.assertEqual(rows.outcome(more, rounds([(103, 100)] * 5))["value"], 3)

    def test_every_row_is_of_a_step(self):
        for row in rows.ROWS:
            ways = {w for s in steps.ROUND if s.group == rows.group(row) for w in s.ways}
            self.assertIn(row.ours[0], ways, row.figure)


class Methods(unittest.TestCase):
    def test_rsockets_are_left_out_with_a_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            library, devices = Path(folder) / "librspreload.so", Path(folder) / "infiniband"
            self.assertIn("not installed", sock_run.rsockets(devices, [library])[1])
            library.touch()
            self.assertIn("no RDMA device", sock_run.rsockets(devices, [library])[1])
            (devices / "rxe0").mkdir(parents=True)
            way, missing = sock_run.rsockets(devices, [library])
            self.assertIsNone(missing)
            self.assertIn(f"LD_PRELOAD={library}", way.command(None, 0, 1, ["program"]))

    def test_smc_is_left_out_with_a_reason(self):
        def refused():
            raise OSError(97, "Address family not supported by protocol")

        line = "ACTIVE 00000 0067005 127.0.0.1:40000 127.0.0.1:{} 0000 {}\n"
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "libsmc-preload.so"
            self.assertIn("not installed", sock_run.smc([library])[1])
            library.touch()
            self.assertIn("no AF_SMC", sock_run.smc([library], refused)[1])
            for listed in (line.format(52000, "TCP 0x03010000"), line.format(52001, "SMCD"), ""):
                self.assertIn("fall back", sock_run.smc([library], lambda: (listed, 52000))[1])
            way, missing = sock_run.smc([library], lambda: (line.format(52000, "SMCD"), 52000))
            self.assertIsNone(missing)
            self.assertIn(f"LD_PRELOAD={library}", way.command(None, 0, 1, ["program"]))

    def test_a_run_without_bytes_over_vis_does_not_count(self):
        with tempfile.TemporaryDirectory() as folder:
            stats = Path(folder) / "stats"
            with self.assertRaises(sock_run.Failed):
                sock_run.moved(stats)
            stats.write_text('{"all": {"vi_bytes_sent": 2, "vi_bytes_received": 3}}', encoding="utf-8")
            self.assertEqual(sock_run.moved(stats), 5)


class Pairs(unittest.TestCase):
    def test_many_connections(self):
        with tempfile.TemporaryDirectory() as folder:
            allowed = sorted(os.sched_getaffinity(0))
            bench = tools.Bench(BUILD, (allowed[0], allowed[-1]), Path(folder), env=dict(os.environ))
            for test, argv in (("epoll", ["--batches", "3", "--poll"]), ("idle", ["--seconds", "1"])):
                figure, = sock_run.pair(bench, steps.WAYS[steps.TCP], ["--test", test, "--connections", "10", *argv])
                self.assertEqual((figure["test"], figure["connections"]), (test, 10))
                self.assertGreater(figure["value"], 0)


class Rounds(unittest.TestCase):
    def test_one_round(self):
        """Every figure of two groups is measured, and the document is complete."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            done = run(COMPARE, "--build", BUILD, "--rounds", "1", "--only", "stream,call", "--json", path)
            said = done.stdout + done.stderr
            self.assertEqual(done.returncode, 1, said)  # one round decides nothing
            self.assertIn("0 not measured", done.stdout, said)
            document = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(document["schema"], "viaduct.compare_sockets")
            self.assertEqual(set(document["figures"]), {"stream.65536", "stream.1048576", "call"})
            self.assertEqual(set(document["figures"]["stream.65536"]), {"VIs", "TCP", "Unix", "VIPL"})
            self.assertEqual(len(document["rows"]), 5)
            self.assertTrue(all(row["value"] > 0 or "a call" in row["figure"] for row in document["rows"]))
            self.draw(document, Path(folder))

    def draw(self, document, folder):
        if any(subprocess.run([p, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0
               for p in (sys.executable, "/usr/bin/python3")):
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertTrue(sock_report.draw("sock_plots.py", document, folder, folder))
            self.assertTrue((folder / "sockets-stream.png").read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
