# SPDX-License-Identifier: BSD-2-Clause
"""The debug kernel: Debian's sources, a small configuration with checkers (debug.config), built once and cached.

It is in the folder debug of the cache, under the version of the sources and a hash of its configuration.
"""
import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from vm_kernel import (NTB_SOURCES, Apt, Kernel, Missing, cache_dir, call, locked, one,
                       package_names, require_x86)

FRAGMENT = Path(__file__).resolve().parent / "debug.config"
# Parts of the sources that a kernel for one machine never reads: two thirds of them.
UNREAD = ("Documentation/", "drivers/gpu/drm/", "sound/", "tools/testing/", "tools/perf/")
# Parts of the built tree with which modules are compiled.
KEPT = ("Makefile", "Kbuild", ".config", "Module.symvers", "include", "scripts", "arch/x86/include", "arch/x86/Makefile",
        "tools/objtool/objtool")


class DebugKernel(Kernel):
    """A kernel whose modules are compiled in the tree that it was built in."""

    memory = 512
    processors = 2
    patience = 10

    @property
    def image(self):
        # It does not boot through the PVH entry: code that KASAN checks would run there before KASAN can.
        return self.path / "bzImage"

    @property
    def headers(self):
        return self.path / "tree"

    @property
    def modules(self):
        raise Missing("the debug kernel has no modules but those of tests")


def compiler():
    return "ccache gcc" if shutil.which("ccache") else "gcc"


def require_tools():
    for tool in ("gcc", "make", "flex", "bison", "bc"):
        if shutil.which(tool) is None:
            raise Missing(f"{tool} is not installed; scripts/setup --vm")
    if not Path("/usr/include/gelf.h").exists():
        raise Missing("libelf-dev is not installed; scripts/setup --vm")


def wanted(member):
    """Is this member of the archive needed?  Kconfig files of all folders are, else only files that x86 compiles."""
    name = member.name.split("/", 1)[-1]
    if Path(name).name.startswith(("Kconfig", "Makefile")) or name in NTB_SOURCES:
        return True
    if name.startswith("arch/"):
        return name.startswith("arch/x86/") or name.count("/") == 1
    return not name.startswith(UNREAD)


def unpack(deb, tree):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as dpkg:
        with tarfile.open(fileobj=dpkg.stdout, mode="r|") as outer:
            for member in outer:
                if member.name.endswith(".tar.xz"):
                    unpack_sources(outer.extractfile(member), tree)
        dpkg.stdout.close()
        dpkg.wait()


def unpack_sources(file, tree):
    with tarfile.open(fileobj=file, mode="r|xz") as inner:
        for member in inner:
            if wanted(member):
                member.name = member.name.split("/", 1)[-1]
                inner.extract(member, tree)


def configure(tree):
    make(tree, "tinyconfig")
    with open(tree / ".config", "a", encoding="utf-8") as file:
        file.write(FRAGMENT.read_text(encoding="utf-8"))
    make(tree, "olddefconfig")
    check_config((tree / ".config").read_text(encoding="utf-8"))


def settings(text):
    """The lines of a configuration, as a dictionary; a setting that is off is n."""
    pairs = (line.split("=", 1) for line in text.splitlines() if line.startswith("CONFIG_"))
    return dict(pairs)


def check_config(text):
    """Checks that each setting is there: make drops one whose conditions do not hold, silently."""
    have = settings(text)
    lost = [f"{name}={value}" for name, value in settings(FRAGMENT.read_text(encoding="utf-8")).items()
            if have.get(name, "n") != value]
    if lost:
        raise Missing(f"these sources do not take {', '.join(lost)}")


def make(tree, *words):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "CC", "CXX")}
    call(["nice", "make", "-s", "-C", tree, f"CC={compiler()}"] + list(words), env=env)


def prune(kernel):
    """Removes all that modules do not need; the complete tree has a gigabyte."""
    tree, kept = kernel.path / "tree", kernel.path / "kept"
    for name in KEPT:
        target = kept / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(tree / name, target)
    for path in list(kept.rglob("*.o")):
        path.unlink()
    shutil.rmtree(tree)
    kept.rename(tree)


def build(kernel, deb):
    tree = kernel.path / "tree"
    unpack(deb, tree)
    for name in NTB_SOURCES:
        target = kernel.sources / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(one(tree, name), target)
    configure(tree)
    make(tree, f"-j{os.cpu_count()}", "bzImage", "modules")
    shutil.copy(tree / "arch/x86/boot/bzImage", kernel.image)
    prune(kernel)
    (kernel.path / "done").touch()


def digest():
    made_by = subprocess.run(["gcc", "--version"], check=True, capture_output=True).stdout.splitlines()[0]
    return hashlib.sha256(FRAGMENT.read_bytes() + made_by).hexdigest()[:12]


def get_debug_kernel(refresh=False):
    """The debug kernel, from the cache or built now, which takes some minutes; raises Missing."""
    require_x86()
    require_tools()
    base = cache_dir() / "debug"
    base.mkdir(exist_ok=True)
    with locked(base):
        built = sorted(base.glob(f"*-{digest()}/done"), key=lambda done: done.stat().st_mtime)
        if built and not refresh:
            return DebugKernel(built[-1].parent)
        apt = Apt(base / ".apt")
        apt.update()
        package = package_names(apt)[1][-1]
        kernel = DebugKernel(base / f"{package.split('=')[1]}-{digest()}")
        if not kernel.complete():
            shutil.rmtree(kernel.path, ignore_errors=True)
            debs = kernel.path / "debs"
            debs.mkdir(parents=True)
            print(f"# fetches {package} and builds the debug kernel", flush=True)
            apt.download([package], debs)
            build(kernel, one(debs, "*.deb"))
            shutil.rmtree(debs)
        return kernel
