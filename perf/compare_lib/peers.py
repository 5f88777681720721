# SPDX-License-Identifier: BSD-2-Clause
"""Runs the other libraries."""
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from . import tools


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
                    raise tools.Failed(f"{server[0]}: its server did not come up")
                time.sleep(0.005)
            return bench.run(client, env, bench.pin[0])
        finally:
            try:
                process.wait(timeout=max(0.1, min(5.0, bench.deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


# ---- UCX ----

@dataclass(frozen=True)
class Ucx:
    """One of the UCX that are measured."""
    name: str               # among the peers
    given: bool             # the one of --ucx, else the one in PATH
    transports: str = "posix,self"

    def program(self, bench, name):
        return str(bench.ucx / "bin" / name) if self.given else name

    def environment(self, bench):
        env = {"UCX_TLS": self.transports, "UCX_LOG_LEVEL": "error"}
        if self.given:
            folders = {str(p.parent) for p in bench.ucx.glob("lib*/**/libucp.so*")}
            env["LD_LIBRARY_PATH"] = ":".join(sorted(folders))
        return env


UCX = Ucx("ucx", False)
NEWER_UCX = Ucx("newer_ucx", True)
NEWER_UCX_CMA = Ucx("newer_ucx_cma", True, "posix,cma,self")
UCX_TESTS = {"lat": "tag_lat", "rate": "tag_bw", "bw": "tag_bw", "put": "ucp_put_bw",
             "putlat": "ucp_put_lat"}


def ucx_count(kind, size):
    """Iterations for a few milliseconds: a short run has a chance to keep its processors."""
    if kind in ("lat", "putlat"):
        return max(100, min(10000, (64 << 20) // size))
    return max(128, min(20000, (32 << 20) // size))


def ucx_values(text, plan, name="ucx"):
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
        values.setdefault(f"{name}.{kind}.{size}", []).append(value)
    return {k: median(v) if ".lat." in k or ".putlat." in k else max(v)
            for k, v in values.items()}


def ucx_step(ucx, *wanted, times=1):
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
        program = ucx.program(bench, "ucx_perftest")
        client = [program, "127.0.0.1", "-p", str(port), "-b", str(batch), "-f", "-v"]
        out = with_server(bench, [program, "-p", str(port), "-b", str(batch)], client, port,
                          ucx.environment(bench))
        return ucx_values(out, plan, ucx.name)
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
    source, program = tools.ROOT / "perf/mpi/mpi_pair.c", bench.build / f"perf/mpi_pair.{name}"
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
        with tempfile.TemporaryDirectory(prefix="compare-", dir=tools.SHM) as shared:
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
OPTIONAL = (NEWER_UCX.name, NEWER_UCX_CMA.name)


def present(bench, name):
    """None, or a text about what is missing."""
    if name in OPTIONAL:
        return None if bench.ucx else "a newer UCX is skipped: --ucx names none"
    gone = [p for p in NEEDS.get(name, []) if not shutil.which(p)]
    if not gone:
        return None
    return f"{name} is skipped: no {gone[0]} here; scripts/setup --peers installs it"


def ucx_version(bench, ucx):
    return tools.first_match([ucx.program(bench, "ucx_info"), "-v"], r"(\d+\.\d+\.\d+)",
                             {**bench.env, **ucx.environment(bench)})


def versions(bench):
    root_ok = {**bench.env, **MPI["openmpi"][2]}
    found = {
        "viaduct": tools.first_match([bench.tool("perf/vi_lat"), "--version"], r"(\d+\.\d+\.\d+)"),
        "ucx": ucx_version(bench, UCX),
        "newer_ucx": ucx_version(bench, NEWER_UCX) if bench.ucx else None,
        "openmpi": tools.first_match(["mpirun.openmpi", "--version"], r"(\d+\.\d+\.\d+)", root_ok),
        "mpich": tools.first_match(["mpirun.mpich", "--version"], r"Version:\s*(\S+)"),
        "libfabric": tools.first_match(["fi_info", "--version"], r"libfabric: (\S+)"),
    }
    return {k: v for k, v in found.items() if v}
