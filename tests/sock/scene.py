#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The base of suites of third-party programs: a run in one mode, its fabric, its servers, and the statistics."""
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from sock_test import VI_RUN

PATIENCE = 400
numbers = itertools.count()


class Missing(Exception):
    """A suite needs something that this machine does not have."""


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Missing(f"{program} is not installed")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Scene:
    """One run of a suite in one mode: a folder, a fabric, and the statistics of its programs."""

    def __init__(self, mode, folder, fabric):
        self.mode, self.folder, self.env, self.become = mode, Path(folder), fabric.env, fabric.become
        self.running, self.stats = [], []

    def command(self, args):
        if self.mode == "plain":
            return [str(a) for a in (*self.become, *args)]
        path = self.folder / f"stats{next(numbers)}"
        self.stats.append(path)
        return [str(a) for a in (*self.become, VI_RUN, "--promote", self.mode, "--loopback", f"--stats={path}", *args)]

    def run(self, *args, timeout=PATIENCE, input=None, **more):
        """Like subprocess.run, but at its time limit everything that the program started is killed with it."""
        with subprocess.Popen(self.command(args), text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              start_new_session=True,
                              **{"stdin": subprocess.DEVNULL, "env": self.env, **more}) as program:
            try:
                said, _ = program.communicate(input, timeout)
            except BaseException:
                os.killpg(program.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(program.args, program.returncode, said)

    def start(self, port, *args, said=None):
        """Starts a server, and waits until it accepts connections, or has printed `said`."""
        path = self.folder / f"out{next(numbers)}"
        out = path.open("w")
        server = subprocess.Popen(self.command(args), env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, start_new_session=True)  # apache2 ends all of its group
        out.close()
        self.running.append(server)
        end = time.monotonic() + PATIENCE
        while True:
            if said in path.read_text() if said else accepts(port):
                return server
            if server.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{args[0]} does not accept connections")
            moment(server)

    def finish(self):
        for server in self.running:
            if server.poll() is None:
                server.send_signal(signal.SIGTERM)
            server.wait(timeout=PATIENCE)

    def counts(self):
        """The sums over all programs, and the reasons why connections were not promoted."""
        sums, reasons = {}, {}
        for path in self.stats:
            if not path.exists():
                continue
            for key, n in json.loads(path.read_text())["all"].items():
                if isinstance(n, int):
                    sums[key] = sums.get(key, 0) + n
                elif key == "not_promoted":
                    for why, times in n.items():
                        reasons[why] = reasons.get(why, 0) + times
        return {**sums, "reasons": reasons}


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except ConnectionRefusedError:
        return False


def moment(server):
    """Waits a moment, or until the server ends."""
    try:
        server.wait(timeout=0.05)
    except subprocess.TimeoutExpired:
        pass


def await_that(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.02)


def await_text(path, text, count=1):
    """Waits until the file has the text so many times."""
    await_that(lambda: path.exists() and path.read_text(errors="replace").count(text) >= count,
               f"{path.name} says '{text}' {count} times")
