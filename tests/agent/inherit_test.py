#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The properties that an agent inherits from the program that starts it, and others.  Argument: viaductd [TEST...]."""
import ctypes
import os
import re
import resource
import select
import signal
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

AGENT = os.path.abspath(sys.argv[1])
WAIT = limit(60)
OTHER = 31337  # a user that need not exist
NO_LIMIT = resource.RLIM_INFINITY
PR_SET_TIMERSLACK = 29
LIBC = ctypes.CDLL(None, use_errno=True)


def environment(name, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
    return {**env, "VIADUCT_FABRIC": name, **more}


def succeeds_in_child(call):
    """Root of a user name space has capabilities that give it no rights."""
    pid = os.fork()
    if pid == 0:
        try:
            call()
            os._exit(0)
        except (OSError, ValueError):
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def status(pid):
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def signals(pid, which):
    mask = int(status(pid)[which], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


class Inherit(unittest.TestCase):
    def setUp(self):
        self.name = f"vi{os.getpid()}.{self.id().rsplit('.', maxsplit=1)[-1]}"

    def start(self, *words, before=None, **more):
        """An agent, and the line that it writes to its starter."""
        ready, write = os.pipe()
        # An agent that a set-user-ID program starts does not read the environment.
        agent = subprocess.Popen([AGENT, "--ready-fd", str(write), "--fabric", self.name, *words], pass_fds=[write], text=True,
                                 env=environment(self.name, **more), stderr=subprocess.PIPE, preexec_fn=before)
        self.addCleanup(self.end, agent)
        os.close(write)
        readable, _, _ = select.select([ready], [], [], WAIT)
        self.assertTrue(readable, "the agent says nothing")
        line = os.read(ready, 1000).decode()
        os.close(ready)
        return agent, line

    @staticmethod
    def end(agent):
        if agent.poll() is None:
            agent.terminate()
        agent.communicate(timeout=WAIT)

    def started(self, *words, before=None, **more):
        agent, line = self.start(*words, before=before, **more)
        self.assertEqual(line, "ready\n")
        return agent

    def until(self, done):
        for _ in range(int(1000 * WAIT)):
            if done():
                return
            select.select([], [], [], 0.001)
        self.fail("it does not come about")

    def test_signals(self):
        def before():
            for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2, signal.SIGXCPU})

        agent = self.started(before=before)
        self.assertEqual(signals(agent.pid, "SigIgn"), {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP})
        # Its main thread may block all of them for a moment, while it starts others.
        self.until(lambda: not signals(agent.pid, "SigBlk"))

    def test_umask_and_timers(self):
        def before():
            os.umask(0o777)
            LIBC.prctl(PR_SET_TIMERSLACK, 900000000, 0, 0, 0)

        agent = self.started(before=before)
        self.assertEqual(status(agent.pid)["Umask"], "0077")
        if os.geteuid() == 0:
            self.assertEqual(Path(f"/proc/{agent.pid}/timerslack_ns").read_text(encoding="utf-8"), "50000\n")

    def test_processors(self):
        """An agent on demand may use all processors; one that is started by name keeps those that it was given."""
        every = os.sched_getaffinity(0)
        if len(every) < 2:
            self.skipTest("one processor")

        def before():
            os.sched_setaffinity(0, {min(every)})

        self.assertGreaterEqual(os.sched_getaffinity(self.started("--on-demand", before=before).pid), every)
        self.assertEqual(os.sched_getaffinity(self.started("--host-id", "1", "--hosts", "2", before=before).pid), {min(every)})

    def test_limits_of_the_owner(self):
        hard = {what: resource.getrlimit(what)[1] for what in (resource.RLIMIT_FSIZE, resource.RLIMIT_SIGPENDING)}

        def before():
            for what, most in hard.items():
                resource.setrlimit(what, (1000, most))
            resource.setrlimit(resource.RLIMIT_CPU, (1000, 2000))

        agent = self.started(before=before)
        for what, most in hard.items():
            self.assertEqual(resource.prlimit(agent.pid, what), (most, most))
        self.assertEqual(resource.prlimit(agent.pid, resource.RLIMIT_CPU), (1999, 2000))
        self.end(agent)

    def test_no_room_in_files(self):
        """The line that the starter gets names the limit."""
        agent, line = self.start(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1)))
        self.assertRegex(line, r"cannot start: a file may have 1 bytes only; raise the limit with ulimit -f\n?$")
        self.assertEqual(agent.wait(WAIT), 1)

    def test_processor_time_that_is_used_up(self):
        agent = self.started(before=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1000, 2000)))
        agent.send_signal(signal.SIGXCPU)
        _, text = agent.communicate(timeout=WAIT)
        self.assertEqual(agent.returncode, 0)
        self.assertRegex(text, r"this agent ends after 2000 s of processor time.*\(ulimit -t\)\n"
                               r".*the processor time of this agent is used up \(ulimit -t of its starter\), so it ends\n$")

    @unittest.skipIf(os.geteuid() != 0, "needs root to be called by somebody else")
    def test_caller_of_a_program_of_root(self):
        if not succeeds_in_child(lambda: [resource.setrlimit(resource.RLIMIT_CORE, (n, n)) for n in (0, 1)]):
            self.skipTest("root may not raise limits here")

        def before():
            resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            os.setresuid(OTHER, 0, 0)

        agent = self.started("--on-demand", before=before)
        for what in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
            self.assertEqual(resource.prlimit(agent.pid, what), (NO_LIMIT, NO_LIMIT))
        self.assertGreaterEqual(resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)[0], 1024)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be called by somebody else")
    def test_caller_with_little_priority(self):
        if not succeeds_in_child(lambda: [os.setpriority(os.PRIO_PROCESS, 0, n) for n in (19, 0)]):
            self.skipTest("root may not raise priorities here")

        def before():
            os.setpriority(os.PRIO_PROCESS, 0, 19)
            os.setresuid(OTHER, 0, 0)

        agent = self.started("--on-demand", before=before)
        self.assertEqual(set(status(agent.pid)["Uid"].split()), {"0"})
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, agent.pid), 0)
        # An agent that its owner starts keeps the limits of the owner.
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, self.started(
            "--hosts", "2", "--host-id", "1", before=lambda: os.setpriority(os.PRIO_PROCESS, 0, 19)).pid), 19)

    @unittest.skipIf(os.geteuid() != 0, "needs root to be called by somebody else")
    def test_caller_of_a_program_of_another(self):
        """The agent reports a limit that it may not raise, instead of failing by it later."""
        try:
            subprocess.run(["test", "-x", AGENT], check=True, user=OTHER, group=OTHER, extra_groups=[])
        except (PermissionError, subprocess.CalledProcessError):
            self.skipTest("other users may not run programs where the build lies")
        for what, most, letter, number in ((resource.RLIMIT_CPU, 5, "t", 5), (resource.RLIMIT_FSIZE, 1 << 20, "f", 1024),
                                           (resource.RLIMIT_NOFILE, 64, "n", 64)):
            def before(what=what, most=most):
                resource.setrlimit(what, (most, most))
                os.setgroups([])
                os.setresgid(OTHER + 1, OTHER, OTHER)
                os.setresuid(OTHER + 1, OTHER, OTHER)

            agent, line = self.start("--on-demand", before=before)
            self.assertEqual(agent.wait(timeout=WAIT), 1, line)
            self.assertTrue(re.match(rf"a set-user-ID program started the agent.*: ulimit -{letter} is {number}; raise it, or "
                                     "start the agent beforehand", line), line)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
