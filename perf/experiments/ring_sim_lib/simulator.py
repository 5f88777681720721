# SPDX-License-Identifier: BSD-2-Clause
"""Finds vi_sim and the profiles, and runs one case."""
import json
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OWN = ROOT / "build-perf"
PROGRAM = "perf/experiments/sim/vi_sim"
PROFILES = ROOT / "perf/experiments/sim/profiles"
SOFTWARE = PROFILES / "software.json"
INSTALL = ("SimGrid is missing: install libsimgrid-dev (scripts/setup --all does, or: apt-get "
           "install libsimgrid-dev)")


class Failed(Exception):
    """An error with its remedy."""


class Usage(Failed):
    """A wrong command line."""


# ---- the program ----

running = set()  # commands, of all threads


def end_all():
    """No command outlives this program."""
    for process in list(running):
        process.kill()


def run(argv):
    """Output of a command; its own words when it fails."""
    try:
        process = subprocess.Popen([str(a) for a in argv], text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise Failed(f"{argv[0]}: {error.strerror}") from error
    running.add(process)
    try:
        out, errors = process.communicate()
    finally:
        running.discard(process)
    if process.returncode:
        said = (errors.strip() or out.strip() or f"exit code {process.returncode}").splitlines()
        raise Failed(f"{Path(argv[0]).name} failed: {said[-1]}")
    return out


def has_simgrid():
    if not shutil.which("pkg-config"):
        return False
    return subprocess.run(["pkg-config", "--exists", "simgrid"], check=False).returncode == 0


def named(directory, programs):
    build = Path(directory).resolve()
    for name in programs:
        if not (build / name).exists():
            todo = INSTALL if name == PROGRAM and not has_simgrid() else (
                f"ninja -C {build} {name} (after: meson setup --reconfigure {build})")
            raise Failed(f"no {name} in {build}: {todo}")
    return build


def own(programs):
    """The release build in build-perf, made or brought up to date."""
    if PROGRAM in programs and not has_simgrid():
        raise Failed(INSTALL)
    if not (OWN / "build.ninja").exists():
        print(f"builds Viaduct in {OWN.name} (release; only this first time)", flush=True)
        run(["meson", "setup", OWN, ROOT, "--buildtype=release", "-Dtests=disabled"])
    elif not (OWN / PROGRAM).exists():
        run(["meson", "setup", "--reconfigure", OWN])
    run(["ninja", "-C", OWN, *programs])
    return OWN


def choose_build(given, *more):
    programs = (PROGRAM, *more)
    given = given or os.environ.get("VIADUCT_BUILD")
    return named(given, programs) if given else own(programs)


# ---- profiles ----

def profile_file(name):
    """A file, or the profile of that name."""
    if "/" in name or name.endswith(".json"):
        if not Path(name).is_file():
            raise Usage(f"--profile '{name}' is not a file")
        return Path(name)
    if (PROFILES / f"{name}.json").is_file():
        return PROFILES / f"{name}.json"
    known = sorted({p.stem for p in PROFILES.glob("*.json")} - {SOFTWARE.stem})
    raise Usage(f"--profile '{name}' is none of: {' '.join(known)}")


def profile_values(path):
    """Every key with its value and source; the first file that has a key counts."""
    values = {}
    for file in (path, SOFTWARE):
        try:
            content = json.loads(Path(file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Failed(f"profile {file}: {error}") from error
        for key, entry in content.items():
            if isinstance(entry, dict) and "value" in entry:
                values.setdefault(key, {"value": entry["value"],
                                        "source": entry.get("source", "")})
    return values


# ---- a case ----

class Simulator:
    def __init__(self, build, profile, options=()):
        self.program = build / PROGRAM
        self.profiles = ["--profile", str(profile), "--profile", str(SOFTWARE)]
        self.options = [str(o) for o in options]

    def case(self, topology, hosts, pattern, **options):
        argv = [self.program, *self.profiles, *self.options, "--topology", topology, "--hosts",
                str(hosts), "--pattern", pattern]
        for name, value in options.items():
            argv += [f"--{name.replace('_', '-')}", str(value)]
        return json.loads(run(argv))
