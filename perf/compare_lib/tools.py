# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs that are compared: the raw limits and our tools."""
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .stats import Probe

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 60.0
SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
# Variables of all libraries that are measured, none of which is passed on.
FOREIGN = ("VIADUCT_", "SHMEM_", "SMA_", "OMPI_", "PRTE_", "PMIX_", "PMI_", "MPICH_", "MPIR_CVAR_", "UCX_", "FI_")
SMALL = 4096  # up to here round trips are timed by the hundred


def complain(text):
    print(f"compare: {text}", file=sys.stderr)


class Failed(Exception):
    """A measurement that failed, with the reason."""


class OutOfTime(Failed):
    """The whole comparison has no time left."""


def run_group(argv, env, directory, timeout):
    """As subprocess.run; with the time up, ends the processes the command started as well."""
    with subprocess.Popen(argv, env=env, cwd=directory, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          process_group=0) as process:
        try:
            out, said = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, said)


@dataclass
class Bench:
    """The paths of the programs, and the processors on which they run."""
    build: Path
    pin: tuple
    scratch: Path
    env: dict = field(default_factory=dict)
    dry: bool = False
    deadline: float = float("inf")  # of the whole comparison, by the monotonic clock
    ucx: Path = None  # where a newer UCX is installed
    wheels: Path = ROOT / ".cache/peers"  # where scripts/setup --peers puts them
    quick: bool = False

    def tool(self, name):
        return str(self.build / name)

    def run(self, argv, env=None, cpu=None, timeout=PATIENCE):
        """Standard output of a command that must succeed."""
        if cpu is not None:
            argv = ["taskset", "-c", str(cpu), *argv]
        if self.dry:
            settings = " ".join(f"{k}={v}" for k, v in (env or {}).items())
            print(f"{settings} {' '.join(argv)}".strip())
            return ""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime("no time left")
        try:
            done = run_group(argv, {**self.env, **(env or {})}, self.scratch, min(timeout, left))
        except subprocess.TimeoutExpired as error:
            if left < timeout:
                raise OutOfTime("no time left") from error
            raise Failed(f"{argv[0]}: {error}") from error
        except OSError as error:
            raise Failed(f"{argv[0]}: {error}") from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise Failed(f"{Path(argv[0]).name} ended with {done.returncode}: {' '.join(said)}")
        return done.stdout

    def has_option(self, tool, option):
        """Does the tool of this build know it?  Its --help lists all."""
        return self.dry or option in self.run([self.tool(f"perf/{tool}"), "--help"]).split()

    @property
    def pins(self):
        return f"{self.pin[0]},{self.pin[1]}"


@contextmanager
def fabric(bench, hosts):
    """Emulated hosts in a ring; taken down whatever the time."""
    bench.run([bench.tool("tools/vi_fabric"), "up", "--hosts", str(hosts)])
    try:
        yield
    finally:
        deadline, bench.deadline = bench.deadline, float("inf")
        bench.run([bench.tool("tools/vi_fabric"), "down"])
        bench.deadline = deadline


# ---- raw ----

def raw(bench, tests, *options):
    """Results of vi_raw, as it lists them."""
    out = bench.run([bench.tool("perf/raw/vi_raw"), "--json", "--pin", bench.pins, "--tests", tests,
                     *options])
    return json.loads(out)["results"] if out else []


def probe(bench):
    """The state of the machine now."""
    found = {result["test"]: result["value"] for result in raw(
        bench, "speed,line", "--batches", "51", "--batch-ms", "0.1")}
    return Probe(found["line"], found["speed"])


RAW_KEYS = {("asleep", "futex, other asleep"): "raw.futex",
            ("shared-core", "sched_yield"): "raw.one.yield",
            ("shared-core", "futex, wake when flagged"): "raw.one.futex",
            ("memcpy", "shared to shared"): "raw.memcpy.{size_bytes}",
            ("unix", "polled"): "unix.lat.{size_bytes}",
            ("unix", "blocking"): "unix.block.{size_bytes}",
            ("unix", "stream, polled"): "unix.bw.{size_bytes}",
            ("tcp", "polled"): "tcp.lat.{size_bytes}",
            ("tcp", "blocking"): "tcp.block.{size_bytes}",
            ("tcp", "stream, polled"): "tcp.bw.{size_bytes}",
            ("slot", "ring of 64"): "raw.slot",
            ("fifo", "sequence in slot"): "raw.fifo.{size_bytes}",
            ("pingpong", "copy in, flag, copy out"): "raw.pingpong.{size_bytes}",
            ("put", "copy in, flag"): "raw.put.{size_bytes}",
            ("stream", "two copies"): "raw.twocopy.{size_bytes}",
            ("chunk", "two copies in chunks"): "raw.chunk.{size_bytes}"}


def raw_values(results):
    """Keys and values; of several geometries of a stream the best."""
    values = {}
    for result in results:
        key = RAW_KEYS.get((result["test"], result["variant"]))
        if key:
            key = key.format(**result)
            values[key] = max(values.get(key, 0), result["value"])
    if values.get("raw.fifo.4"):
        values["raw.fifo_ns.4"] = 1e9 / values["raw.fifo.4"]
    return values


def raw_step(tests, sizes=None, batches=51, batch_ms=0.25):
    options = ["--batches", str(batches), "--batch-ms", str(batch_ms)]
    if sizes:
        options += ["--sizes", ",".join(map(str, sizes))]
    return lambda bench: raw_values(raw(bench, tests, *options))


# ---- ours ----

def ours(bench, tool, sizes, options, env=None, hosts="host0,host1", pinned=None):
    """The document that one of our tools writes; without results when dry."""
    argv = [bench.tool(f"perf/{tool}"), "--quiet", "--format", "json", "--hosts", hosts,
            "--sizes", ",".join(map(str, sizes)), "--percentiles", "50", *options]
    if pinned != "":
        argv += ["--pin", pinned or bench.pins]
    out = bench.run(argv, env)
    return json.loads(out) if out else {"results": []}


def median_latencies(document, key):
    return {key.format(r["size_bytes"]): r["p50_us"] * 1e3 for r in document["results"]}


def median_rates(document, key, by_bytes):
    """By the median round, half a window, since means suffer from other load."""
    values = {}
    for result in document["results"]:
        messages = max(1, document["test"]["window_messages"] // 2)
        rate = messages * 1e6 / result["round_p50_us"]
        size = result["size_bytes"]
        values[key.format(size)] = rate * size if by_bytes else rate
    return values


def latency_step(key, sizes, *options, batch=200, seconds=0.03, warmup=400, **how):
    """Half round trips by vi_lat, several as one sample, the median sample."""
    options = ("--batch", str(batch), "--duration", str(seconds), "--warmup", str(warmup), *options)
    return lambda bench: median_latencies(ours(bench, "vi_lat", sizes, options, **how), key)


def post_time_step(bench):
    options = ("--post-time", "--spin", "--duration", "0.05")
    return median_latencies(ours(bench, "vi_lat", [4], options), "ours.post.{}")


def register_step(bench):
    """Registering and deregistering 1 GiB that was touched before, the median time."""
    out = bench.run([bench.tool("perf/vi_scale"), "--json", "--tests", "register",
                     "--sizes", "1G"], cpu=bench.pin[0])
    return {"ours.register": r["value"] for r in (json.loads(out)["results"] if out else [])}


def window_of(size):
    return 64 if size < 1 << 20 else 16


def stream_step(key, tool, sizes, *options, seconds=0.03, times=1):
    """Rates by vi_rate or bandwidths by vi_bw, the best of some runs if the peer has as many."""
    def step(bench):
        values = {}
        for window in sorted({window_of(s) for s in sizes}) * times:
            more = ("--spin", "--duration", str(seconds), "--window", str(window), *options)
            mine = [s for s in sizes if window_of(s) == window]
            for k, v in median_rates(ours(bench, tool, mine, more), key, tool == "vi_bw").items():
                values[k] = max(v, values.get(k, 0))
        return values
    return step


# ---- the conditions ----

def first_match(argv, pattern, env=None):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False,
                              env=env, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else None


def revision():
    """Commit of the tree, and whether files differ from it."""
    commit = first_match(["git", "-C", str(ROOT), "rev-parse", "HEAD"], r"([0-9a-f]{40})")
    changed = first_match(["git", "-C", str(ROOT), "status", "--porcelain", "-uno"], r"(\S)")
    return {"commit": commit, "modified": bool(changed)}


def machine():
    """The conditions of the measurement, besides the code."""
    def line_of(path, pattern):
        try:
            found = re.search(pattern, Path(path).read_text(encoding="utf-8"), re.MULTILINE)
        except OSError:
            return None
        return found[1].strip() if found else None
    cpuinfo = "/proc/cpuinfo"
    return {"cpu_model": line_of(cpuinfo, r"^model name\s*:\s*(.*)$"),
            "kernel": os.uname().release, "architecture": os.uname().machine,
            "cpus_online": os.cpu_count(), "cpus_allowed": len(os.sched_getaffinity(0)),
            "virtual_machine": bool(line_of(cpuinfo, r"^flags\s*:.*\b(hypervisor)\b")),
            "load_average_1min": os.getloadavg()[0],
            "governor": line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"(\S+)")}
