# SPDX-License-Identifier: BSD-2-Clause
"""Modules for a kernel: NTB core and clients, which Debian leaves out, and those of kmod/."""
import hashlib
import lzma
import os
import shutil
import subprocess
from pathlib import Path

from vm_kernel import Missing, locked

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("kmod", "kmod/test", "tests/vm/flaw")
NTB_KBUILD = """\
obj-m := ntb.o ntb_transport.o ntb_tool.o ntb_pingpong.o ntb_perf.o ntb_netdev.o ntb_hw_epf.o
ntb-y := core.o
"""


class BuildError(Exception):
    """The modules do not compile."""


def make(kernel, folder, *words, target="modules"):
    # Type information for BPF would need one more program, and nothing in guests reads it.
    words = ("CONFIG_DEBUG_INFO_BTF_MODULES=",) + words
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "CC", "CXX")}
    try:
        done = subprocess.run(["make", "-C", str(kernel.headers), f"M={folder}", target] + list(words), env=env,
                              check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise Missing("make is not installed") from error
    if done.returncode:
        raise BuildError(done.stdout)
    return done.stdout


def our_sources():
    for name in OURS:
        for path in sorted((ROOT / name).iterdir()):
            if path.suffix in (".c", ".h") or path.name == "Kbuild":
                yield path


def ntb_folder(kernel):
    return kernel.path / f"ntb-{hashlib.sha256(NTB_KBUILD.encode()).hexdigest()[:8]}"


def build_ntb(kernel):
    """Returns the folder with the modules of the kernel's own sources."""
    folder = ntb_folder(kernel)
    if not (folder / "done").exists():
        folder.mkdir(exist_ok=True)
        for source in kernel.sources.rglob("*.c"):
            shutil.copy(source, folder)
        (folder / "Kbuild").write_text(NTB_KBUILD, encoding="utf-8")
        make(kernel, folder)
        strip(folder)
        (folder / "done").touch()
    return folder


def strip(folder):
    for module in folder.rglob("*.ko"):
        subprocess.run(["strip", "-g", str(module)], check=True)


def build_ours(kernel, folder, *words):
    """Compiles kmod/ in a folder; returns the output of make."""
    shutil.rmtree(folder, ignore_errors=True)
    text = ""
    for name in OURS:
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        for source in our_sources():
            if source.parent == ROOT / name:
                shutil.copy(source, target)
        text += make(kernel, target, f"KBUILD_EXTRA_SYMBOLS={ntb_folder(kernel)}/Module.symvers", *words)
    return text


def get_modules(kernel):
    """Paths of all modules by name, compiled once for each state of their sources."""
    digest = hashlib.sha256()
    for path in our_sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    with locked(kernel.path):
        ntb = build_ntb(kernel)
        folder = kernel.path / f"kmod-{digest.hexdigest()[:16]}"
        if not (folder / "done").exists():
            build_ours(kernel, folder)
            strip(folder)
            (folder / "done").touch()
        os.utime(folder / "done")
        forget_old(kernel)
    found = list(ntb.glob("*.ko")) + list(folder.rglob("*.ko"))
    return {path.stem: path for path in found}


def stock_module(kernel, name):
    """The content of a module from the kernel's own package."""
    for path in kernel.modules.rglob(f"{name}.ko*"):
        data = path.read_bytes()
        return lzma.decompress(data) if path.suffix == ".xz" else data
    raise Missing(f"{kernel.release} has no module {name}")


def forget_old(kernel, keep=8):
    builds = sorted(kernel.path.glob("kmod-*/done"), key=lambda path: path.stat().st_mtime)
    for done in builds[:-keep]:
        shutil.rmtree(done.parent, ignore_errors=True)
