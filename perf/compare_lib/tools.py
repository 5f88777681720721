# SPDX-License-Identifier: BSD-2-Clause
"""Runs the programs that are compared: the raw limits, our tools, the other libraries."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 60.0
SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SMALL = 4096  # up to here round trips are timed by the hundred


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
    """R, the one-way time of a cache line, in ns."""
    return raw(bench, "line", "--batches", "51", "--batch-ms", "0.2")[0]["value"]


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


# ---- servers of peers ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    """Is a server listening?  Asked of the kernel: a connection would be taken for the client."""
    wanted = f":{port:04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        if any(f[1].endswith(wanted) and f[3] == "0A" for f in map(str.split, lines)):
            return True
    return False


def with_server(bench, server, client, port, env):
    """Output of the client while the server runs on the other processor."""
    if bench.dry:
        bench.run(server, env, bench.pin[1])
        return bench.run(client, env, bench.pin[0])
    with tempfile.TemporaryFile(dir=bench.scratch) as said:
        process = subprocess.Popen(["taskset", "-c", str(bench.pin[1]), *server], cwd=bench.scratch,
                                   env={**bench.env, **env}, stdout=said, stderr=said,
                                   stdin=subprocess.DEVNULL)
        try:
            end = min(time.monotonic() + 10, bench.deadline)
            while not listens(port):
                if process.poll() is not None or time.monotonic() > end:
                    raise Failed(f"{server[0]}: its server did not come up")
                time.sleep(0.005)
            return bench.run(client, env, bench.pin[0])
        finally:
            try:
                process.wait(timeout=max(0.1, min(5.0, bench.deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


# ---- UCX ----

UCX_ENV = {"UCX_TLS": "posix,self", "UCX_LOG_LEVEL": "error"}
UCX_TESTS = {"lat": "tag_lat", "rate": "tag_bw", "bw": "tag_bw", "put": "ucp_put_bw",
             "putlat": "ucp_put_lat"}


def ucx_count(kind, size):
    """Iterations for a few milliseconds: a short run has a chance to keep its processors."""
    if kind in ("lat", "putlat"):
        return max(100, min(10000, (64 << 20) // size))
    return max(128, min(20000, (32 << 20) // size))


def ucx_values(text, plan):
    """Columns as ucx_perftest -v: the 50th percentile of a latency, the overall rate of a stream.

    Streams have no percentiles there, and other load only slows them: the best of the repeated
    short runs counts.
    """
    values = {}
    for line in text.splitlines():
        fields = line.split(",")
        if fields[0] not in plan or len(fields) < 9:
            continue
        kind, size = plan[fields[0]]
        if kind in ("lat", "putlat"):
            value = float(fields[2]) * 1e3
        else:
            value = float(fields[8]) * (1 if kind == "rate" else size)
        values.setdefault(f"ucx.{kind}.{size}", []).append(value)
    return {k: median(v) if ".lat." in k or ".putlat." in k else max(v)
            for k, v in values.items()}


def ucx_step(*wanted, times=1):
    """wanted: (kind, size) ..."""
    plan = {f"t{i}": w for i, w in enumerate(wanted)}

    def step(bench):
        counts = {name: ucx_count(kind, size) for name, (kind, size) in plan.items()}
        lines = [f"{name} -t {UCX_TESTS[kind]} -s {size} -n {counts[name]} "
                 f"-w {min(500, counts[name] // 4)}"
                 for name, (kind, size) in plan.items() for _ in range(times)]
        batch = bench.scratch / "ucx.batch"
        if bench.dry:
            print(f"# {batch.name}: {'; '.join(lines)}")
        else:
            batch.write_text("\n".join(lines) + "\n", encoding="ascii")
        port = free_port()
        client = ["ucx_perftest", "127.0.0.1", "-p", str(port), "-b", str(batch), "-f", "-v"]
        out = with_server(bench, ["ucx_perftest", "-p", str(port), "-b", str(batch)], client, port,
                          UCX_ENV)
        return ucx_values(out, plan)
    return step


# ---- MPI ----

MPI = {
    "openmpi": ("mpicc.openmpi", ["mpirun.openmpi", "-np", "2", "--bind-to", "none",
                                  "--oversubscribe"],
                {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"}),
    "mpich": ("mpicc.mpich", ["mpirun.mpich", "-np", "2", "-bind-to", "none"],
              {"UCX_TLS": "posix,self", "UCX_LOG_LEVEL": "error"}),
}


def build_mpi(bench, name):
    """The program for one MPI library, built once."""
    source, program = ROOT / "perf/mpi/mpi_pair.c", bench.build / f"perf/mpi_pair.{name}"
    if not os.access(program.parent, os.W_OK):
        program = bench.scratch / program.name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        bench.run([MPI[name][0], "-O2", "-D_GNU_SOURCE", "-o", str(program), str(source)])
    return str(program)


def mpi_values(text, name):
    values = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) != 3 or fields[0] not in ("lat", "rate"):
            continue
        size, ns = int(fields[1]), float(fields[2])
        if fields[0] == "lat":
            values[f"{name}.lat.{size}"] = ns
        else:
            values[f"{name}.rate.{size}"] = 1e9 / ns
            values[f"{name}.bw.{size}"] = size * 1e9 / ns
    return values


def mpi_step(name, sizes, batch_ms=0.25):
    _, launch, env = MPI[name]

    def step(bench):
        program = build_mpi(bench, name)
        # Removing the directory removes the files that Open MPI leaves there when it is killed.
        with tempfile.TemporaryDirectory(prefix="compare-", dir=SHM) as shared:
            out = bench.run([*launch, program, str(bench.pin[0]), str(bench.pin[1]),
                             str(batch_ms), *map(str, sizes)],
                            {**env, "OMPI_MCA_btl_vader_backing_directory": shared})
        return mpi_values(out, name)
    return step


# ---- libfabric ----

def libfabric_values(text):
    """fi_pingpong prints microseconds per transfer as the seventh column, bytes as the first."""
    values = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 8 and re.fullmatch(r"\d+[kKmM]?", fields[0]):
            number = int(re.match(r"\d+", fields[0])[0])
            size = number * {"k": 1024, "m": 1048576}.get(fields[0][-1].lower(), 1)
            values[f"libfabric.lat.{size}"] = float(fields[6]) * 1e3
    return values


def libfabric_step(sizes):
    def step(bench):
        values = {}
        for size in sizes:
            port = free_port()
            common = ["-p", "shm", "-e", "rdm", "-S", str(size), "-I", "2000"]
            out = with_server(bench, ["fi_pingpong", *common, "-B", str(port)],
                              ["fi_pingpong", *common, "-P", str(port), "127.0.0.1"], port, {})
            values.update(libfabric_values(out))
        return values
    return step


# ---- what is there ----

NEEDS = {"ucx": ["ucx_perftest"], "openmpi": ["mpicc.openmpi", "mpirun.openmpi"],
         "mpich": ["mpicc.mpich", "mpirun.mpich"], "libfabric": ["fi_pingpong"]}
PACKAGES = {"ucx": "ucx-utils", "openmpi": "openmpi-bin and libopenmpi-dev",
            "mpich": "mpich and libmpich-dev", "libfabric": "libfabric-bin"}


def present(name):
    """None, or a text about what is missing."""
    gone = [p for p in NEEDS.get(name, []) if not shutil.which(p)]
    if not gone:
        return None
    return f"{name} is skipped: no {gone[0]} here (Debian: {PACKAGES[name]})"


def first_match(argv, pattern, env=None):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False,
                              env=env, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else None


def versions(bench):
    root_ok = {**bench.env, **MPI["openmpi"][2]}
    found = {
        "viaduct": first_match([bench.tool("perf/vi_lat"), "--version"], r"(\d+\.\d+\.\d+)"),
        "ucx": first_match(["ucx_info", "-v"], r"(\d+\.\d+\.\d+)"),
        "openmpi": first_match(["mpirun.openmpi", "--version"], r"(\d+\.\d+\.\d+)", root_ok),
        "mpich": first_match(["mpirun.mpich", "--version"], r"Version:\s*(\S+)"),
        "libfabric": first_match(["fi_info", "--version"], r"libfabric: (\S+)"),
    }
    return {k: v for k, v in found.items() if v}


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
