#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf/affinity_experiments: usage, relations on other machines, the rows of a plan, and one round of a load."""
import contextlib
import json
import os
import shutil
import signal
import socket
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
from compare_lib import affinity_plan as plan, affinity_report as report, affinity_run as run  # noqa: E402

EXPERIMENTS = ROOT / "perf/affinity_experiments"
BUILD = Path(os.environ["VIADUCT_BUILD"])
SORT = BUILD / "perf/sock/sock_sort"
PATIENCE = limit(240)


def command(*argv):
    return subprocess.run([EXPERIMENTS, *argv], capture_output=True, text=True, timeout=PATIENCE, check=False,
                          stdin=subprocess.DEVNULL)


def machine(packages, cores, siblings=1, caches=True):
    """Processors in the form that vi_info gives: a cache for each package."""
    return {n: {"cpu": n, "core": n // siblings, "cache": n // siblings // cores if caches else None,
                "package": n // siblings // cores} for n in range(packages * cores * siblings)}


class Usage(unittest.TestCase):
    def test_help_and_version(self):
        self.assertIn("usage: affinity_experiments", command("--help").stdout)
        self.assertRegex(command("--version").stdout, r"^affinity_experiments \(Viaduct\) \d")

    def test_refusals(self):
        for argv in (["--bad"], ["x"], ["--rounds", "0"], ["--rounds", "0.5"], ["--only", "redis"], ["--waits", "often"],
                     ["--connections", "0"], ["--connections", "1,"], ["--seconds", "0"], ["--records", "0"], ["--pin", "a"]):
            done = command(*argv)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), argv)


class Relations(unittest.TestCase):
    def found(self, *shape, app=0, load=1, **more):
        return run.relations(machine(*shape, **more), app, load)

    def test_two_packages(self):
        self.assertEqual(self.found(2, 4), {"same-core": 0, "shared-cache": 2, "other-package": 4})

    def test_siblings_are_no_other_core(self):
        self.assertEqual(self.found(1, 4, 2), {"same-core": 0, "shared-cache": 2,
                                               "other-package": "this machine has one package"})

    def test_two_processors_share_with_the_load(self):
        self.assertEqual(self.found(1, 2)["shared-cache"], 1)

    def test_unknown_caches(self):
        self.assertIn("no other core", self.found(1, 4, caches=False)["shared-cache"])


class Rows(unittest.TestCase):
    def test_cases(self):
        found = plan.cases({"nginx": (1, 4)}, ("block", "spin"), ("transfer",), ("same-core", "shared-cache"))
        self.assertEqual(len(found), 2 * (1 + 2 * 3))
        self.assertEqual(len(set(found)), len(found))

    def test_only_the_role_is_placed(self):
        runner = plan.Runner.__new__(plan.Runner)
        runner.where = {"same-core": 3}
        cpus = runner.cpus(plan.Case("stream", 1, "block", "transfer", "same-core"))
        self.assertEqual(cpus, {run.TRANSFER: 3, run.SERVICE: None})

    def test_medians(self):
        case = plan.Case("stream", 1, "block", "transfer", "same-core")
        values = [{case: {"rate": r, "waits": 1.0, "forced": 0.0, "cpu_us": 2.0}} for r in (1, 5, 2)]
        (row,) = report.conclude([case], values, {case: 3.5})
        self.assertEqual((row["rate"], row["rounds"], row["calls"]), (2, 3, 3.5))

    def test_calls_are_of_all_requests(self):
        self.assertEqual(run.asked("nginx", "  10 requests in 1.0s\nRequests/sec:   9.5\n"), (9.5, 10))
        self.assertEqual(run.asked("stream", '{"value": 3, "operations": 7}\n'), (3, 7))
        with self.assertRaises(run.Failed):
            run.asked("nginx", "nothing")


class Threads(unittest.TestCase):
    def test_they_are_placed_by_name(self):
        """A child's thread is placed on the processor given for its name, others on those of the program."""
        cpu = min(os.sched_getaffinity(0))
        with subprocess.Popen([sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            name = dict(run.threads(process.pid))[process.pid]
            run.place(process.pid, None, {(name,): cpu})
            self.assertEqual(os.sched_getaffinity(process.pid), {cpu})
            run.place(process.pid, None, {("other",): cpu})
            self.assertEqual(os.sched_getaffinity(process.pid), os.sched_getaffinity(0))
            while run.usage(process.pid).waits == 0:  # until the child waits for its input
                os.sched_yield()
            process.stdin.close()


class Sort(unittest.TestCase):
    def setUp(self):
        self.server = subprocess.Popen([SORT, "--serve", "127.0.0.1", "--reducers", "3"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, process_group=0)
        self.ports = [int(self.server.stdout.readline().split()[1]) for _ in range(3)]

    def tearDown(self):
        os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait()
        self.server.stdout.close()

    def sort(self, *argv):
        places = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return subprocess.run([SORT, "--connect", places, *argv], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)

    def test_sorts_again_and_again(self):
        for mappers, records in ((1, 1), (2, 20000), (5, 4), (3, 99999)):
            done = self.sort("--mappers", str(mappers), "--records", str(records))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads(done.stdout)["size_bytes"], records * 100)

    def test_a_reducer_that_ends_ends_the_sort(self):
        with socket.create_connection(("127.0.0.1", self.ports[1])) as wrong:
            wrong.sendall(b"no mapper would say this")
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(wrong.recv(1), b"")
        done = self.sort("--records", "1000")
        self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_refusals(self):
        for argv in ((), ("--serve", "127.0.0.1", "--connect", "127.0.0.1:1"), ("--connect", "127.0.0.1:1", "--mappers", "33"),
                     ("--connect", "127.0.0.1:1", "--records", "-1"), ("--serve", "127.0.0.1", "x")):
            done = subprocess.run([SORT, *argv], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), argv)


class Round(unittest.TestCase):
    def test_one_round(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            load = "memcached" if shutil.which("memcached") else "stream"
            done = command("--build", BUILD, "--rounds", "1", "--only", f"{load},sort", "--waits", "adaptive",
                           "--seconds", "0.05", "--records", "10000", "--json", path)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            document = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(document["schema"], "viaduct.affinity_experiments")
            self.assertGreaterEqual(len(document["rows"]), 6)
            self.assertEqual({row["load"] for row in document["rows"]}, {load, "sort"})
            for row in document["rows"]:
                self.assertGreater(row["rate"], 0, row)
            self.assertEqual("one package" in done.stdout,
                             isinstance(document["relations"]["other-package"], str))
            if any(subprocess.run([p, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0
                   for p in (sys.executable, "/usr/bin/python3")):
                self.assertTrue(report.draw("affinity_plots.py", document, folder, Path(folder)))
                self.assertTrue((Path(folder) / "affinity-loads.png").read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
