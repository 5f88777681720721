# SPDX-License-Identifier: BSD-2-Clause
"""The build that is measured: one that was named, or a release build made here when needed."""
import os
import shutil
import subprocess
from pathlib import Path

from .tools import ROOT, Failed

OWN = ROOT / "build-perf"
PROGRAMS = ("perf/vi_lat", "perf/vi_bw", "perf/vi_rate", "perf/vi_scale", "perf/raw/vi_raw",
            "tools/vi_fabric", "provider/agent/viaductd")


def command(build):
    return (f"meson setup {build} {ROOT} --buildtype=release && "
            f"ninja -C {build}")


def named(directory, programs=PROGRAMS):
    """The build that the caller chose; it is not touched."""
    build = Path(directory).resolve()
    for name in programs:
        if not (build / name).exists():
            raise Failed(f"no {name} in {build}: {command(build)}")
    return build


def run(argv):
    if not shutil.which(argv[0]):
        raise Failed(f"no {argv[0]} here, which builds {OWN.name}: scripts/setup installs it")
    done = subprocess.run(argv, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise Failed(f"{' '.join(argv)} failed:\n{said}")


def own(programs=PROGRAMS):
    """The release build in build-perf, made or brought up to date."""
    if not (OWN / "build.ninja").exists():
        print(f"builds Viaduct in {OWN.name} (release; only this first time)", flush=True)
        run(["meson", "setup", str(OWN), str(ROOT), "--buildtype=release", "-Dtests=disabled"])
    run(["ninja", "-C", str(OWN), *programs])
    return OWN


def choose(given, dry=False, programs=PROGRAMS):
    given = given or os.environ.get("VIADUCT_BUILD")
    if dry:
        return Path(given or OWN).resolve()
    return named(given, programs) if given else own(programs)
