#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs under traffic in which a process, any of them, is killed at any moment: the job ends soon, says why, and nothing is
left of it: no process, shared memory, socket, file or semaphore.

usage: kills_test.py PROGRAM OSHRUN ROUNDS

VIADUCT_SEED chooses jobs, moments and victims. The end has to come within LIMIT_S; how long it took is printed. On a machine with
nothing else to do it takes less than two seconds, which the last line counts.
"""
import ctypes
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S = 20  # on a loaded machine
PATIENCE_S = 60
PLACES = (("-np", "4"), ("-np", "2"), ("--hosts", "3", "-np", "3"), ("--hosts", "2", "-np", "4"), ("--hosts", "4", "-np", "4"))
PR_SET_CHILD_SUBREAPER = 36


def bound():
    """The addresses of fabrics that are bound, by what a descriptor of their socket refers to."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()]
    return {f"socket:[{words[6]}]": words[7] for words in lines if len(words) > 7 and words[7].startswith("@viaduct/")}


class Left(Exception):
    """Something is left, or wrong, after a round."""


def stat(pid):
    """(name, state, parent) of a process, or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()[0], int(rest.split()[1])


def descendants():
    """{pid: (name, parent)} of running descendants of this process; it adopts those whose parent ends."""
    all_of = {int(p.name): stat(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()}
    found, more = {}, {os.getpid()}
    while more:
        below = {pid for pid, s in all_of.items() if s is not None and s[2] in more and pid not in found}
        found.update({pid: all_of[pid] for pid in below})
        more = below
    return {pid: (s[0], s[2]) for pid, s in found.items() if s[1] not in "ZX"}


def reap(but):
    """Reaps adopted processes that have ended."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != but:
            s = stat(path.name)
            if s is not None and s[1] == "Z" and s[2] == os.getpid():
                os.waitpid(int(path.name), 0)


def nap():
    select.select([], [], [], 0.002)


def shared_memory():
    """Names of shared memory and of named semaphores, and what the System V facilities have."""
    names = {path.name for path in Path("/dev/shm").iterdir()} if Path("/dev/shm").is_dir() else set()
    mine = {f"shm {line.split()[1]} of process {line.split()[4]}"
            for line in Path("/proc/sysvipc/shm").read_text(encoding="utf-8").splitlines()[1:]}
    return names | mine


class Job:
    """The job of one round."""

    def __init__(self, program, oshrun, folder, seed):
        self.random = random.Random(seed)
        self.place = self.random.choice(PLACES)
        self.hosts = int(self.place[1]) if self.place[0] == "--hosts" else 1
        self.folder = folder
        self.before = shared_memory()
        self.seen = {}
        self.may_survive = self.survived = False
        self.what = ""
        with open(folder / "stderr", "wb") as errors:
            self.process = subprocess.Popen([oshrun, *self.place, program, str(seed)], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=errors,
                                            env={**os.environ, "TMPDIR": str(folder / "tmp")})

    def look(self):
        found = descendants()
        self.seen.update(found)
        return found

    def under_way(self):
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0] or not self.process.stdout.readline():
            raise Left("the job does not get under way")

    def victim(self):
        """(kind, process id) of a process of this job."""
        found = self.look()
        kinds = {"oshrun": [self.process.pid]}
        for pid, (name, parent) in found.items():
            kind = {"viaductd": "agent", "vi_fabric": "fabric"}.get(name)
            if kind == "fabric" and parent != self.process.pid:
                continue  # forked, and about to be an agent
            if kind is None and parent == self.process.pid and pid != self.process.pid and name == "busy":
                kind = "PE"
            if kind is not None:
                kinds.setdefault(kind, []).append(pid)
        kind = self.random.choice([k for k in ("PE", "PE", "PE", "oshrun", "agent", "agent", "fabric") if k in kinds])
        return kind, self.random.choice(sorted(kinds[kind]))

    def number_of(self, pid):
        """The number of a PE, from its environment."""
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return None
        return next((int(w.partition(b"=")[2]) for w in words if w.startswith(b"OSHRUN_PE=")), None)

    def host_of(self, pid):
        """The host of an agent, from its arguments."""
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return None
        return int(words[words.index(b"--host-id") + 1]) if b"--host-id" in words else None

    def survives(self):
        """Waits until the job runs: an agent that no PE had used was killed, and the first PE has started another."""
        if self.may_survive and select.select([self.process.stdout], [], [], 0)[0] and self.process.stdout.readline():
            self.survived = True
        return self.survived

    def end(self):
        """Waits until no process is left; returns the time that it took."""
        start = time.monotonic()
        while True:
            if self.survives():
                self.process.terminate()
            self.process.poll()
            left = self.look()
            if not left:
                break
            if time.monotonic() - start > LIMIT_S:
                raise Left(f"still there after {LIMIT_S} s: {sorted(left.items())}")
            if self.process.returncode is not None:
                reap(self.process.pid)
            nap()
        took = time.monotonic() - start
        self.process.wait()
        self.process.stdout.close()
        reap(self.process.pid)
        return took

    def check_nothing_left(self):
        ours = re.compile("viaduct|osh-|" + "|".join(f"process {pid}$" for pid in self.seen))
        more = [name for name in shared_memory() - self.before if ours.search(name)]
        sockets = sorted(self.addresses & set(bound().values()))
        files = [str(path) for path in (self.folder / "tmp").iterdir()]
        if more or sockets or files:
            raise Left(f"left behind: {more + sockets + files}")

    def learn_addresses(self):
        """Finds the addresses at which the agents of the job listen, by the sockets of the agents."""
        names = bound()
        self.addresses = set()
        for pid, (name, _) in self.look().items():
            if name == "viaductd":
                try:
                    files = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
                except OSError:
                    continue
                self.addresses |= {names[file] for file in files if file in names}

    def check_message(self, kind, number, host, moment):
        """Checks that there is one line of oshrun, which names PE, host and cause."""
        text = (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.startswith("oshrun: ")]
        pattern = {"PE": rf"oshrun: PE {number} on host\d+ was killed by signal 9 \(Killed\)",
                   "agent": rf"oshrun: (PE \d+ on )?host{host}\b.* the agent of this host .*",
                   "fabric": r"oshrun: (vi_fabric, which has the hosts of the job, has ended|"
                             r"the hosts? of the job could not be started: vi_fabric was ended by a signal, Killed)"}
        if moment == "at the start" and "could not be started" in text:
            pattern["agent"] = "oshrun: the hosts? of the job could not be started"  # vi_fabric has said why
        elif moment == "at the start":
            pattern["agent"] = r"oshrun: PE \d+ on host\d+: .+"  # no NIC, no heap, or no other host
        if kind == "oshrun":
            if self.process.returncode != -signal.SIGKILL:
                raise Left(f"oshrun ended with {self.process.returncode}")
        elif number is None and host is None and kind != "fabric":
            pass  # so young that it was nobody yet
        elif len(lines) != 1 or not re.fullmatch(pattern[kind], lines[0]):
            raise Left(f"not one line like «{pattern[kind]}»: {text!r}")

    def kill_one(self, moment):
        """Kills a process; returns its kind, its number if it is a PE and its host if it is an agent."""
        while True:
            kind, pid = self.victim()
            self.learn_addresses()
            number, host = self.number_of(pid), self.host_of(pid)
            self.what = (f"{moment:13} {kind}{'' if number is None else f' {number}'}"
                         f"{'' if host is None else f' of host{host}'}")
            self.may_survive = moment == "at the start" and kind == "agent"
            try:
                os.kill(pid, signal.SIGKILL)
                return kind, number, host
            except ProcessLookupError:
                pass  # it has just ended

    def run(self):
        moment = "at the start" if self.random.random() < 0.25 else "under way"
        if moment == "under way":
            self.under_way()
        select.select([], [], [], self.random.random() * 0.15)
        if moment == "at the start" and select.select([self.process.stdout], [], [], 0)[0]:
            moment = "under way"
            self.under_way()
        kind, number, host = self.kill_one(moment)
        took = self.end()
        print(f"{took:6.3f} s  {' '.join(self.place):18} {self.what}{', replaced' if self.survived else ''}", flush=True)
        if not self.survived:
            self.check_message(kind, number, host, moment)
        self.check_nothing_left()
        return took

    def clean(self):
        for pid in descendants():
            os.kill(pid, signal.SIGKILL)


def main():
    program, oshrun, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(os.environ.get("VIADUCT_SEED", random.SystemRandom().randrange(1 << 30)))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    took, failed = [], 0
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tmp").mkdir()
            job = Job(program, oshrun, Path(folder), seed + number)
            try:
                took.append(job.run())
            except (Left, OSError) as wrong:
                failed += 1
                print(f"FAILED with VIADUCT_SEED={seed + number}: {' '.join(job.place)}, {job.what}: {wrong}", flush=True)
                job.clean()
                job.process.wait()
    took.sort()
    if took:
        print(f"{rounds} rounds from VIADUCT_SEED={seed}: to the end {took[len(took) // 2]:.3f} s in the middle, {took[-1]:.3f} s "
              f"at most, {sum(t < 2 for t in took)} in less than 2 s; {failed} failed")
    return 1 if failed or not took else 0


if __name__ == "__main__":
    sys.exit(main())
