# SPDX-License-Identifier: BSD-2-Clause
"""Runs the other libraries: Debian's, and the newest that PyPI has, which scripts/setup --peers brings."""
import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from . import tools


def wheel(bench, name):
    """The folder of a wheel, of the version that scripts/setup brought last, or None."""
    whole = max(bench.wheels.glob(f"{name}-[0-9]*/whole"), key=lambda f: f.stat().st_mtime, default=None)
    return whole.parent if whole else None


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
    newer: bool             # that of --ucx or of a wheel, else the one in PATH
    transports: str = "posix,self"

    def folder(self, bench):
        """None: there is none."""
        brought = None if bench.ucx else wheel(bench, "libucx-cu12")
        return bench.ucx or (next(brought.glob("lib/python3*/site-packages/libucx"), None) if brought else None)

    def program(self, bench, name):
        return str(self.folder(bench) / "bin" / name) if self.newer else name

    def environment(self, bench):
        env = {"UCX_TLS": self.transports, "UCX_LOG_LEVEL": "error"}
        if self.newer:
            folders = {str(p.parent) for p in self.folder(bench).glob("lib*/**/libucp.so*")}
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


# ---- the programs of perf/peers ----

SOURCES = tools.ROOT / "perf/peers"


def compiled(bench, source, name, compiler, *options):
    """The program of a library, compiled when its sources, its compiler or the library is newer."""
    sources, program = [SOURCES / source, SOURCES / "pair.c"], bench.build / f"perf/{name}"
    if not os.access(program.parent, os.W_OK):
        program = bench.scratch / program.name
    made_of = [*sources, SOURCES / "pair.h", *filter(os.path.isabs, (compiler, *options))]
    if not program.exists() or program.stat().st_mtime < max(os.stat(f).st_ctime for f in made_of):
        bench.run([compiler, "-O2", "-D_GNU_SOURCE", "-o", str(program), *map(str, sources), *options])
    return str(program)


def pair_values(text, name):
    """What a program of perf/peers printed."""
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


@dataclass(frozen=True)
class Mpi:
    """One of the MPI libraries that are measured."""
    name: str        # among the peers
    compiler: str
    launcher: str
    options: tuple
    env: dict = field(hash=False)
    wheel: str = None  # that has the programs, which are Debian's else

    def program(self, bench, name):
        """None: there is none."""
        if self.wheel is None:
            return shutil.which(name) or (name if bench.dry else None)
        folder = wheel(bench, self.wheel)
        return str(folder / "bin" / name) if folder else None


ROOT_MAY = {f"{what}_ALLOW_RUN_AS_ROOT{more}": "1" for what in ("OMPI", "PRTE") for more in ("", "_CONFIRM")}
OPENMPI_OPTIONS = ("-np", "2", "--bind-to", "none", "--oversubscribe")
OPENMPI = Mpi("openmpi", "mpicc.openmpi", "mpirun.openmpi", OPENMPI_OPTIONS,
              {**ROOT_MAY, "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"})
NEWER_OPENMPI = Mpi("newer_openmpi", "mpicc", "mpirun", OPENMPI_OPTIONS,
                    {**ROOT_MAY, "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"}, "openmpi")
MPICH = Mpi("mpich", "mpicc.mpich", "mpirun.mpich", ("-np", "2", "-bind-to", "none"),
            {"UCX_TLS": "posix,self", "UCX_LOG_LEVEL": "error"})
NEWER_MPICH = Mpi("newer_mpich", "mpicc", "mpirun", ("-np", "2", "-bind-to", "none"), {}, "mpich")


def mpi_program(bench, mpi):
    return compiled(bench, "mpi_pair.c", f"mpi_pair.{mpi.name}", mpi.program(bench, mpi.compiler))


def mpi_step(mpi, sizes, batch_ms=0.25):
    def step(bench):
        command = [mpi.program(bench, mpi.launcher), *mpi.options, mpi_program(bench, mpi), *map(str, bench.pin)]
        # Removing the directory removes the files that Open MPI leaves there when it is killed.
        with tempfile.TemporaryDirectory(prefix="compare-", dir=tools.SHM) as shared:
            out = bench.run([*command, str(batch_ms), *map(str, sizes)],
                            {**mpi.env, "OMPI_MCA_btl_vader_backing_directory": shared,
                             "OMPI_MCA_btl_sm_backing_directory": shared})
        return pair_values(out, mpi.name)
    return step


# ---- libfabric ----

HEADER = Path("/usr/include/rdma/fi_tagged.h")


@dataclass(frozen=True)
class Libfabric:
    """One of the libfabric that are measured, by its provider shm."""
    name: str
    wheel: str = None  # that brings it along

    def library(self, bench):
        """Options of the linker, or None: there is none."""
        if self.wheel is None:
            return ["-lfabric"]
        folder = wheel(bench, self.wheel)
        found = sorted(folder.glob("lib/*/libfabric.so.1")) if folder else []
        return [str(found[0]), f"-Wl,-rpath,{found[0].parent}"] if found else None


LIBFABRIC = Libfabric("libfabric")
NEWER_LIBFABRIC = Libfabric("newer_libfabric", "openmpi")


def libfabric_program(bench, fabric):
    return compiled(bench, "fi_pair.c", f"fi_pair.{fabric.name}", "gcc", *fabric.library(bench))


def libfabric_step(fabric, sizes, batch_ms=0.25):
    def step(bench):
        out = bench.run([libfabric_program(bench, fabric), *map(str, bench.pin), str(batch_ms), *map(str, sizes)])
        return pair_values(out, fabric.name)
    return step


# ---- what is there ----

MPIS = {mpi.name: mpi for mpi in (OPENMPI, NEWER_OPENMPI, MPICH, NEWER_MPICH)}
LIBFABRICS = {fabric.name: fabric for fabric in (LIBFABRIC, NEWER_LIBFABRIC)}
NEWEST = (NEWER_UCX.name, NEWER_OPENMPI.name, NEWER_MPICH.name, NEWER_LIBFABRIC.name)
OPTIONAL = (*NEWEST, NEWER_UCX_CMA.name)
SETUP = "scripts/setup --peers"


def lacks(bench, name):
    """What of a peer is not here, or None."""
    if name in (NEWER_UCX.name, NEWER_UCX_CMA.name):
        return None if NEWER_UCX.folder(bench) else "newer UCX, nor does --ucx name one"
    if name in MPIS:
        mpi = MPIS[name]
        return next((p for p in (mpi.compiler, mpi.launcher) if not mpi.program(bench, p)), None)
    if name in LIBFABRICS:
        return str(HEADER) if not HEADER.exists() else None if LIBFABRICS[name].library(bench) else "libfabric of a wheel"
    return None if shutil.which("ucx_perftest") else "ucx_perftest"


def present(bench, name):
    """None, or a text about what is missing."""
    lack = lacks(bench, name)
    return f"{name} is skipped: no {lack} here; {SETUP} installs it" if lack else None


def ucx_version(bench, ucx):
    return tools.first_match([ucx.program(bench, "ucx_info"), "-v"], r"(\d+\.\d+\.\d+)",
                             {**bench.env, **ucx.environment(bench)})


def pair_version(bench, name):
    """That of the library of a program of perf/peers."""
    if lacks(bench, name):
        return None
    try:
        program = mpi_program(bench, MPIS[name]) if name in MPIS else libfabric_program(bench, LIBFABRICS[name])
    except tools.Failed:
        return None  # the steps have told why
    return tools.first_match([program, "--version"], r"(\d+\.\d+\.\d+)", bench.env)


def versions(bench):
    found = {
        "viaduct": tools.first_match([bench.tool("perf/vi_lat"), "--version"], r"(\d+\.\d+\.\d+)"),
        "ucx": ucx_version(bench, UCX),
        "newer_ucx": ucx_version(bench, NEWER_UCX) if NEWER_UCX.folder(bench) else None,
        **{name: pair_version(bench, name) for name in (*MPIS, *LIBFABRICS)},
    }
    return {k: v for k, v in found.items() if v}
