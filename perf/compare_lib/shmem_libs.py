# SPDX-License-Identifier: BSD-2-Clause
"""The OpenSHMEM libraries that perf/compare_shmem finds, and how their programs are made and run.

Ours also runs on two emulated hosts, and is compared with RDMA writes of VIPL over the same link.

Compilers and launchers are called by absolute path: oshcc and oshrun are names that each library has.
"""
import copy
import json
import os
import shlex
import subprocess
from pathlib import Path

from . import tools
from .tools import ROOT, Failed, first_match, run_group

SOURCES = ROOT / "perf/shmem"
NAMES = ("osb_put", "osb_get", "osb_amo", "osb_rate", "osb_barrier", "osb_reduce")
OURS = "Viaduct"
NEIGHBOUR = "Viaduct, neighbour hosts"
VIPL = "VIPL"
DEBIAN = Path("/usr")


def clean_environment():
    return {**{k: v for k, v in os.environ.items() if not k.startswith(tools.FOREIGN)}, "LC_ALL": "C"}


class Library:
    """One implementation: its programs are in a folder of their own."""

    def __init__(self, name, compiler, launcher, folder, env=None, after=()):
        self.name, self.folder = name, folder
        self.compiler, self.after, self.launcher = list(compiler), list(after), list(launcher)
        self.env = {**clean_environment(), **(env or {})}
        self.problems = {}

    def compile(self):
        self.folder.mkdir()
        common = [str(SOURCES / "osb_options.c"), str(SOURCES / "osb.c")]
        for name in NAMES:
            argv = [*self.compiler, "-O2", "-o", str(self.folder / name),
                    str(SOURCES / f"{name}.c"), *common, *self.after]
            done = subprocess.run(argv, capture_output=True, text=True, check=False, env=self.env,
                                  stdin=subprocess.DEVNULL)
            if done.returncode:
                raise Failed(f"{self.name}: {shlex.join(argv)}: {done.stderr.strip()[-500:]}")

    def run(self, step, batches):
        """What a program printed, also when it failed later: values by program, figure and size."""
        argv = [*self.launcher, str(self.folder / step.program), "--batches", str(batches),
                *step.options()]
        try:
            done = run_group(argv, self.env, self.folder, step.patience)
        except subprocess.TimeoutExpired as late:
            self.complain(step, f"was ended after {step.patience:.0f} s")
            text = late.stdout or ""
            return values_of(text.decode() if isinstance(text, bytes) else text)
        values = values_of(done.stdout)
        if done.returncode:
            self.complain(step, f"ended with status {done.returncode} "
                          f"{'after' if values else 'before'} it printed its figures"
                          f"{reason(done.stderr)}")
        elif not values:
            self.complain(step, "printed nothing")
        return values

    def complain(self, step, what):
        key = f"{step.program} {what}"
        self.problems[key] = self.problems.get(key, 0) + 1

    def notes(self):
        return [f"{self.name}: {what}" + (f" ({times} times)" if times > 1 else "")
                for what, times in self.problems.items()]


def reason(text):
    """The line that names a signal or an error, without what differs from run to run."""
    for word in ("Segmentation fault", "Aborted", "Bus error", "Floating point"):
        if word in text:
            return f" ({word.lower()})"
    return ""


def values_of(text):
    values = {}
    for line in text.splitlines():
        try:
            one = json.loads(line)
            values[(one["program"], one["figure"], one.get("size_bytes"))] = float(one["value"])
        except (ValueError, KeyError, TypeError):
            continue  # what a launcher says of itself
    return values


def ours(build, scratch):
    library = build / "shmem/lib"
    paths = [f"-Wl,-rpath,{library}", f"-Wl,-rpath,{build / 'vipl/lib'}"]
    return Library(OURS, [os.environ.get("CC", "cc").split()[-1], f"-I{build / 'shmem/include'}"],
                   [build / "shmem/tools/oshrun", "--bind-to", "core", "-np", "2"],
                   scratch / "ours", {"VIADUCT_AGENT": str(build / "provider/agent/viaductd")},
                   [f"-L{library}", "-lviaduct-shmem", *paths])


def peer(directory, scratch, number):
    """An installed library; None when the folder has none."""
    compiler, launcher = directory / "bin/oshcc", directory / "bin/oshrun"
    if not os.access(compiler, os.X_OK) or not os.access(launcher, os.X_OK):
        return None
    version = first_match([str(launcher), "--version"], r"(?s)^(.*)$") or ""
    if "iaduct" in version:
        return None
    options, name = [], f"peer {number}"
    if "Open MPI" in version or "OpenRTE" in version or "open-mpi" in version:
        release = first_match([str(launcher), "--version"], r"([0-9]+\.[0-9.]+)")
        name, options = f"Open MPI {release}", ["--bind-to", "core"]
        if os.geteuid() == 0:
            options.append("--allow-run-as-root")
    return Library(name, [compiler], [launcher, *options, "-np", "2"], scratch / f"peer{number}")


def find(build, folders, pin, scratch):
    """Ours first, then the others that compile; and what there is to say about the rest."""
    libraries, notes = [ours(build, scratch)], []
    for number, folder in enumerate([DEBIAN, *map(Path, folders)]):
        found = peer(folder.resolve(), scratch, number)
        if found:
            libraries.append(found)
        elif folder != DEBIAN:
            raise Failed(f"--peer {folder}: no bin/oshcc and bin/oshrun of another library there")
    kept = []
    for library in libraries:
        # All of them may run on these processors only; two of them bind their PEs themselves.
        library.launcher = ["taskset", "-c", f"{pin[0]},{pin[1]}", *map(str, library.launcher)]
        library.compiler = list(map(str, library.compiler))
        try:
            library.compile()
            kept.append(library)
        except Failed as error:
            if library.name == OURS:
                raise
            notes.append(str(error))
    return kept, notes


# ---- neighbour hosts ----

def on_two_hosts(library):
    """The same programs, with a PE on each of two emulated hosts."""
    other = copy.copy(library)
    other.name, other.problems = NEIGHBOUR, {}
    other.launcher = [*library.launcher, "--hosts", "2"]
    return other


class Vipl:
    """RDMA writes between two emulated hosts that are up, under the names of the puts that are held against them."""

    name = VIPL
    WRITE = ("--op", "write", "--window-memory")

    def __init__(self, bench):
        self.bench, self.problems = bench, {}
        self.steps = {
            "quiet": (tools.latency_step("{}", [8], "--spin", *self.WRITE, "--buffers", "16"), 1e-3),
            "bandwidth": (tools.stream_step("{}", "vi_bw", [1 << 20], *self.WRITE), 1e-6),
        }

    def run(self, step, _):
        measure, scale = self.steps[step.only]
        try:
            found = measure(self.bench)
        except Failed as error:
            self.problems[str(error)] = self.problems.get(str(error), 0) + 1
            return {}
        return {(step.program, step.only, int(size)): value * scale for size, value in found.items()}

    notes = Library.notes


def neighbours(library, build, pin, scratch):
    """OpenSHMEM and VIPL on two hosts, and the bench whose fabric has to be up for the latter."""
    env = {**clean_environment(), "VIADUCT_FABRIC": f"compare-shmem-{os.getpid()}",
           "PATH": f"{build / 'provider/agent'}:{os.environ.get('PATH', '')}"}
    bench = tools.Bench(build, pin, scratch, env=env)
    return [on_two_hosts(library), Vipl(bench)], bench
