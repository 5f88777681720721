#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The report of oshrun, on SIGQUIT: which PE waits in which routine, for which PE, at which address.

  hang_test.py [CLASS[.METHOD]...]

OSHRUN, HANGS and VIADUCT_AGENT name the programs.
"""
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

OSHRUN, HANGS = os.environ["OSHRUN"], os.environ["HANGS"]
PATIENCE = limit(60)


class Report(unittest.TestCase):
    def start(self, name, pes, *options):
        job = subprocess.Popen([OSHRUN, "-np", str(pes), *options, HANGS, name], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(self.end, job)
        self.pes = pes
        return job

    def end(self, job):
        if job.poll() is None:
            job.terminate()
        job.communicate(timeout=PATIENCE)

    def said(self, job, what):
        """The words of PE: `what` PE ADDRESS PROCESS."""
        line = job.stdout.readline().split()
        self.assertEqual(line[:1], [what])
        return line

    def table(self, job):
        """{PE: state}; a PE in the job also has the seconds since its last step."""
        job.send_signal(signal.SIGQUIT)
        lines = [job.stderr.readline() for _ in range(self.pes + 1)]
        self.assertRegex(lines[0], r"PE +process +host +no step for +state")
        states, self.seconds = {}, {}
        for line in lines[1:]:
            found = re.fullmatch(r"oshrun: +(\d+) +\d+ +host\d+ +(?:(\d+) s)? +(.*)\n", line)
            self.assertIsNotNone(found, line)
            states[int(found[1])] = found[3]
            self.seconds[int(found[1])] = int(found[2] or 0)
        return states

    def until(self, job, wanted):
        """Asks again until all states match `wanted`, {PE: pattern}."""
        end = time.monotonic() + PATIENCE
        while True:
            states = self.table(job)
            wrong = {pe: states[pe] for pe, pattern in wanted.items() if not re.fullmatch(pattern, states[pe])}
            if not wrong:
                return
            self.assertLess(time.monotonic(), end, wrong)

    def test_start(self):
        """PE 0 waits in the launcher, for a program that has not begun with OpenSHMEM."""
        job = self.start("start", 1, "-np", "1", HANGS, "barrier", ":", "-np", "1")
        self.pes = 2
        self.said(job, "at")
        self.until(job, {0: "waits in shmem_init for all PEs, 1 of 2 is there", 1: "before shmem_init"})

    def test_barrier(self):
        for options in ((), ("--hosts", "3")):
            with self.subTest(options=options):
                job = self.start("barrier", 3, *options)
                self.said(job, "at")
                self.until(job, {0: r"waits in shmem_barrier_all for PE [12]",
                                 1: r"waits in shmem_barrier_all for PE [02]", 2: "runs"})

    def test_wait_until(self):
        job = self.start("wait_until", 2)
        address = self.said(job, "at")[2]
        self.until(job, {0: f"waits in shmem_long_wait_until at {address}", 1: "runs"})

    def test_signal(self):
        job = self.start("signal", 2)
        address = self.said(job, "at")[2]
        self.until(job, {0: f"waits in shmem_signal_wait_until at {address}", 1: "runs"})

    def test_lock(self):
        for options in ((), ("--hosts", "3")):
            with self.subTest(options=options):
                job = self.start("lock", 3, *options)
                address = self.said(job, "at")[2]
                self.until(job, {0: f"waits in shmem_set_lock for PE 2 at {address}", 1: "runs", 2: "runs"})

    def test_exit(self):
        job = self.start("end", 2)
        address = self.said(job, "at")[2]
        self.until(job, {0: f"waits in shmem_long_wait_until at {address}",
                         1: "waits in exit, which implies shmem_finalize, for PE 0"})

    def test_reduction(self):
        job = self.start("reduce", 2)
        self.said(job, "at")
        self.until(job, {0: "waits in shmem_long_sum_reduce for PE 1", 1: "runs"})

    def quiet(self, what, pes, stopped, pattern, seconds=0):
        """Stops PEs or agents while PE 0 completes its operations on the PE in the middle.

        When they go on, the report no longer shows that, but the wait of another thread.
        """
        job = self.start(what, pes, "--hosts", str(pes))
        process = {f"PE {words[1]}": int(words[3]) for words in (self.said(job, "ready") for _ in range(pes))}
        process.update(self.agents(job))
        for name in stopped:
            os.kill(process[name], signal.SIGSTOP)
        try:
            for name in stopped:
                self.stops(process[name])
            job.stdin.write("they are stopped\n")
            self.until(job, {0: pattern})
            while self.seconds[0] < seconds:
                self.table(job)
        finally:
            for name in stopped:
                os.kill(process[name], signal.SIGCONT)
        self.said(job, "through")
        self.assertEqual(self.table(job)[0], "runs")
        job.stdin.write("another thread\n")
        address = self.said(job, "thread")[2]
        self.until(job, {0: f"waits in shmem_long_wait_until at {address}"})

    def agents(self, job):
        """{"agent N": process}, of the job's fabric."""
        commands = [(int(path.name), self.words(path)) for path in Path("/proc").iterdir() if path.name.isdigit()]
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text(encoding="utf-8").split()
        fabric = next(self.fabric(pid) for pid, words in commands if str(pid) in children and words[0] == "vi_fabric")
        return {f"agent {words[words.index('--host-id') + 1]}": pid for pid, words in commands
                if "--host-id" in words and self.fabric(pid) == fabric}

    def fabric(self, pid):
        """The fabric of a process, from its environment."""
        return [word for word in self.words(Path(f"/proc/{pid}"), "environ") if word.startswith("VIADUCT_FABRIC=")]

    def stops(self, pid):
        """Waits until no thread of the process runs any more."""
        end = time.monotonic() + PATIENCE
        while any((task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "T"
                  for task in Path(f"/proc/{pid}/task").iterdir()):
            self.assertLess(time.monotonic(), end)

    def words(self, path, file="cmdline"):
        try:
            return (path / file).read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return []

    def test_put_to_a_stopped_pe(self):
        self.quiet("put", 4, ["PE 2"], "waits in shmem_(quiet|long_put) for PE 2")

    def test_atomic_at_a_stopped_pe(self):
        self.quiet("atomic", 2, ["PE 1"], "waits in shmem_quiet for PE 1")

    def test_first_put_to_a_stopped_pe(self):
        self.quiet("first", 2, ["PE 1"], "waits in shmem_quiet for PE 1",
                   seconds=2)  # longer than a single wait of VipxFlush()

    def test_put_over_stopped_hosts(self):
        self.quiet("put", 4, ["agent 1", "agent 3"], "waits in shmem_(quiet|long_put) for PE 2")


if __name__ == "__main__":
    unittest.main(verbosity=2)
