# SPDX-License-Identifier: BSD-2-Clause
"""Servers whose threads are placed while a load runs, and what they do during it.

A program that is held on one processor has all its threads there.  So the server starts on all processors, and each of
its threads is placed from outside, by its name, as soon as it is there.
"""
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import sock_run
from .sock_run import lines_of
from .sock_steps import NGINX, Server, need, nginx_command  # noqa: F401  the plan uses them from here
from .tools import Failed

TICKS = os.sysconf("SC_CLK_TCK")
TRANSFER, SERVICE = ("vi-xfer",), ("vi-sock", "vi-poll", "vi-service")
RELATIONS = ("same-core", "shared-cache", "other-package")


# ---- the machine ----

def processors(bench):
    """The core, cache and package of each processor, as vi_info knows them."""
    out = bench.run([bench.tool("tools/vi_info"), "--placement", "--json"])
    where = json.loads(out)["placement"]["machine"]["where"]
    return {one["cpu"]: one for one in where}


def relations(machine, app, load):
    """By relation to the program's processor: a processor, or the reason why there is none."""
    here, found = machine[app], {"same-core": app}
    others = [c for c in machine if machine[c]["core"] != here["core"]]
    cached = [c for c in others if machine[c]["cache"] == here["cache"] and here["cache"] is not None]
    away = [c for c in others if machine[c]["package"] != here["package"]]
    found["shared-cache"] = min(cached, key=lambda c: c == load, default="no other core shares a cache with it")
    found["other-package"] = min(away, key=lambda c: c == load, default="this machine has one package")
    return found


# ---- threads ----

def tree(root):
    """The process and all that came from it."""
    found = [root]
    for pid in found:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                text = Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii")
                found += [int(child) for child in text.split()]
        except (OSError, ValueError):
            continue
    return found


def threads(root):
    """(thread, its name) of all processes of the tree."""
    for pid in tree(root):
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                yield int(task), Path(f"/proc/{pid}/task/{task}/comm").read_text(encoding="utf-8").strip()
            except OSError:
                continue


def place(root, app, cpus):
    """Each thread on its processor: the named ones on those of `cpus`, all others on the program's."""
    for task, name in threads(root):
        cpu = next((cpu for names, cpu in cpus.items() if name.startswith(names)), app)
        try:
            os.sched_setaffinity(task, {cpu} if cpu is not None else os.sched_getaffinity(0))
        except ProcessLookupError:
            continue


@dataclass
class Usage:
    """What all threads of a server used, each since it began."""
    waits: int = 0    # voluntary switches: sleeps
    forced: int = 0   # involuntary ones
    cpu_s: float = 0.0

    def __sub__(self, other):
        return Usage(self.waits - other.waits, self.forced - other.forced, self.cpu_s - other.cpu_s)


def usage(root):
    total = Usage()
    for task, _ in threads(root):
        try:
            status = Path(f"/proc/{task}/status").read_text(encoding="utf-8")
            times = Path(f"/proc/{task}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        total.waits += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)[1])
        total.forced += int(re.search(r"^nonvoluntary_ctxt_switches:\s*(\d+)", status, re.MULTILINE)[1])
        total.cpu_s += (int(times[11]) + int(times[12])) / TICKS
    return total


# ---- a load, while the server's threads are placed ----

def load(bench, argv, env, root, app, cpus, patience):
    """The output of the load, and what the server used during it; the same names are placed again and again."""
    before, taken = usage(root), None
    with subprocess.Popen(list(map(str, argv)), env={**bench.env, **env}, cwd=bench.scratch, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          process_group=0) as process:
        try:
            for _ in range(int(patience / 0.02)):
                place(root, app, cpus)
                taken = usage(root)
                try:
                    process.wait(timeout=0.02)
                    break
                except subprocess.TimeoutExpired:
                    continue
            else:
                raise Failed(f"{Path(str(argv[0])).name} was not done after {patience:.0f} s")
            if process.returncode:
                raise Failed(f"the load ended with {process.returncode}")
            return process.stdout.read(), taken - before
        finally:
            if process.poll() is None:
                sock_run.end_group(process)


def asked(kind, out):
    """The rate of a load, and how many requests it made in all."""
    if kind == "nginx":
        rate, count = re.search(r"Requests/sec:\s+([0-9.]+)", out), re.search(r"(\d+) requests in", out)
        if not rate or not count:
            raise Failed("wrk printed no rate")
        return float(rate[1]), int(count[1])
    line = lines_of(out)
    if not line:
        raise Failed("the load printed no figure")
    return line[0]["value"], line[0]["operations"]


# ---- system calls ----

def count_calls(bench, root, argv, env, app, cpus, kind, patience):
    """System calls of the server for each request, counted by strace, which slows both."""
    strace, path = need("strace"), bench.scratch / "calls"
    with subprocess.Popen([strace, "-f", "-q", "-c", "-U", "calls,name", "-o", path,
                           *(x for pid in tree(root) for x in ("-p", str(pid)))], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0) as counter:
        try:
            out, _ = load(bench, argv, env, root, app, cpus, patience)
        finally:
            counter.send_signal(2)
            said = counter.communicate(timeout=30)[1]
    total = re.search(r"^\s*(\d+)\s+total$", path.read_text(encoding="utf-8"), re.MULTILINE) if path.exists() else None
    if not total:
        raise Failed(f"strace counted nothing: {said.strip()[:100]}")
    return int(total[1]) / max(1, asked(kind, out)[1])
