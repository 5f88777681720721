#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the machine does to tests: pressure, the time of wake-ups, and where a test stands that does not end.

  machine.py watch BUILD_DIR

Until its parent has ended it writes to BUILD_DIR/meson-logs/machine.txt, every two seconds, a line of three numbers: the time, the
pressure, the wake-up time in microseconds.  For a test of `meson test` that is about to exceed its limit, it writes the stacks of
all threads to BUILD_DIR/meson-logs/stacks/NAME.txt: Meson ends the program then, and it is too late to look.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from build_info import introspect

WAKEUPS = 200
WAKEUP_SECONDS = 0.2  # at most, all of them
SLOW_US = 1000  # limits of tests are those of a machine where a wake-up takes no longer
MOST = 8  # and no more than so many times that
WATCH_SECONDS = 2
STACK_LINES = 60
STACK_SECONDS = 120
END_SECONDS = 60


def pressure():
    """The percentage of the last ten seconds in which a task waited for a processor; None where the kernel does not tell."""
    try:
        text = Path("/proc/pressure/cpu").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^some avg10=([\d.]+)", text)
    return float(found.group(1)) if found else None


def wakeup_us():
    """The time that 99 of 100 sleeping threads need at most to run after they have been woken up, of 200, in microseconds."""
    there, back = os.pipe(), os.pipe()
    sent, took = [0], []

    def sleeper():
        while os.read(there[0], 1) == b"w":
            took.append(time.monotonic_ns() - sent[0])
            os.write(back[1], b"w")

    thread = threading.Thread(target=sleeper)
    thread.start()
    end = time.monotonic() + WAKEUP_SECONDS
    for _ in range(WAKEUPS):
        sent[0] = time.monotonic_ns()
        os.write(there[1], b"w")
        os.read(back[0], 1)
        if time.monotonic() > end:
            break
    os.write(there[1], b"e")
    thread.join()
    for fd in there + back:
        os.close(fd)
    return sorted(took)[len(took) * 99 // 100] // 1000


def sanitizer_factor(env):
    """What the test set-up says: limits of programs are multiplied by it."""
    found = re.match(r"\s*(\d+)", env.get("TEST_LIMIT_FACTOR", ""))
    return max(int(found.group(1)), 1) if found else 1


def limit_factor(env, wakeup):
    """What limits within tests are multiplied by; tests/cxx/limit.h does the same."""
    return sanitizer_factor(env) * min(max(wakeup // SLOW_US, 1), MOST)


def status_fields(pid):
    """Fields of /proc/PID/stat from the third on; None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None


def processes():
    """(id, state, parent, session, seconds since it began) of each."""
    up = float(Path("/proc/uptime").read_text().split()[0])
    for entry in Path("/proc").iterdir():
        fields = status_fields(entry.name) if entry.name.isdigit() else None
        if fields:
            yield int(entry.name), fields[0], int(fields[1]), int(fields[3]), up - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def session_members(leader):
    """Processes of the session that the test leads, but for those that have ended and wait for their parent."""
    return [pid for pid, state, _, session, _ in processes() if session == leader and state not in "ZX"]


def end_session(leader):
    """Returns when none of them runs any more: a signal takes its time."""
    end = time.monotonic() + END_SECONDS
    while time.monotonic() < end:
        members = session_members(leader)
        if not members:
            return
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def stacks(leader):
    """Where each thread of the session stands."""
    if shutil.which("gdb") is None:
        return "where it stood is not known: gdb is not installed"
    text, end = [], time.monotonic() + STACK_SECONDS
    for pid in session_members(leader):
        try:
            done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], capture_output=True,
                                  stdin=subprocess.DEVNULL, text=True, errors="replace",
                                  timeout=max(end - time.monotonic(), 1), check=False)
            kept = [line for line in done.stdout.splitlines() if line.startswith(("Thread ", "#"))]
        except (subprocess.TimeoutExpired, OSError) as error:
            kept = [f"gdb: {error}"]
        text += [f"process {pid}:"] + kept[:STACK_LINES]
    return "\n".join(text)


def process_words(pid, what):
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def runs(command, words):
    """Is this the command line of that command?  A script follows its interpreter, Meson appends options for GoogleTest."""
    words = [word for word in words if not word.startswith("--gtest_output")]
    return words[1:] == command or [os.path.basename(word) for word in words[:1]] + words[1:] == \
        [os.path.basename(command[0])] + command[1:]


class Watch:
    """Finds the tests that Meson runs in this session, and those among them that are late."""

    def __init__(self, build):
        self.logs = Path(build) / "meson-logs"
        self.session = os.getsid(0)
        self.seen = set()
        self.tests = introspect(build, "tests") + introspect(build, "benchmarks")

    def test(self, pid):
        words, env = process_words(pid, "cmdline"), dict(
            word.split("=", 1) for word in process_words(pid, "environ") if "=" in word)
        for test in self.tests:
            if runs(test["cmd"], words) and test["env"].items() <= env.items():
                return test["name"], test["timeout"] * sanitizer_factor(env)
        return None, None

    def late(self):
        """(process, name) of each test that has a tenth of its time left, at most 20 s, or less."""
        own = {pid for pid, _, _, session, _ in processes() if session == self.session}
        for pid, _, parent, session, seconds in list(processes()):
            if pid == session and parent in own and pid not in self.seen:
                name, limit = self.test(pid)
                if name and seconds > limit - min(limit / 10, 20) - WATCH_SECONDS:
                    self.seen.add(pid)
                    yield pid, name

    def write_stacks(self):
        for pid, name in self.late():
            folder = self.logs / "stacks"
            folder.mkdir(exist_ok=True)
            (folder / f"{name.replace('/', '-')}.txt").write_text(stacks(pid) + "\n")


def watch(build):
    parent = os.getppid()
    watcher = Watch(build)
    shutil.rmtree(watcher.logs / "stacks", ignore_errors=True)
    with open(watcher.logs / "machine.txt", "w", encoding="ascii", buffering=1) as log:
        while os.getppid() == parent:
            log.write(f"{time.time():.1f} {pressure()} {wakeup_us()}\n")
            watcher.write_stacks()
            time.sleep(WATCH_SECONDS)


def worst(build, begin, seconds):
    """(pressure, wake-up time) at their worst while a test ran; None where it was not watched."""
    path = Path(build) / "meson-logs" / "machine.txt"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    near = [line for line in lines if len(line) == 3 and begin - 1 <= float(line[0]) <= begin + seconds + 10]
    pressures = [float(line[1]) for line in near if line[1] != "None"]
    return max(pressures, default=None), max((int(line[2]) for line in near), default=None)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "watch":
        sys.exit(__doc__)
    watch(sys.argv[2])
