# SPDX-License-Identifier: BSD-2-Clause
"""The initramfs of a guest: a cpio archive with busybox, modules, programs and the libraries that they load."""
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from vm_kernel import Missing

DIRS = ("bin", "sbin", "proc", "sys", "dev", "tmp", "run", "etc", "modules", "root")


class Image:
    """Collects files; write() makes the archive."""

    def __init__(self):
        self.entries = {}
        for name in DIRS:
            self.directory(name)

    def directory(self, name):
        if name and name not in self.entries:
            self.directory(str(Path(name).parent) if "/" in name else "")
            self.entries[name] = (stat.S_IFDIR | 0o755, b"")

    def data(self, name, content, mode=0o644):
        name = name.lstrip("/")
        self.directory(str(Path(name).parent) if "/" in name else "")
        self.entries[name] = (stat.S_IFREG | mode, content)

    def link(self, name, target):
        name = name.lstrip("/")
        self.directory(str(Path(name).parent) if "/" in name else "")
        self.entries[name] = (stat.S_IFLNK | 0o777, target.encode())

    def file(self, source, name=None):
        source = Path(source)
        self.data(name or str(source), source.read_bytes(), 0o755 if source.stat().st_mode & 0o100 else 0o644)

    def busybox(self):
        source = shutil.which("busybox")
        if source is None:
            raise Missing("busybox is not installed; scripts/setup --vm")
        if libraries(source):
            raise Missing("busybox is linked with libraries; scripts/setup --vm installs busybox-static")
        self.file(source, "bin/busybox")
        names = subprocess.run([source, "--list"], check=True, text=True, capture_output=True).stdout.split()
        for name in names:
            if name not in ("busybox", "modprobe"):
                self.link(f"bin/{name}", "busybox")

    def program(self, source, name=None):
        """Adds a program of this machine, under its own path or another, and the libraries that it loads."""
        found = shutil.which(str(source))
        if found is None:
            raise Missing(f"{source} is not installed")
        self.file(Path(found).resolve(), name or f"bin/{Path(found).name}")
        for library in libraries(found):
            # A library of a build is found by its place relative to the program, which is different in a guest.
            system = Path(library).parts[1] in ("lib", "lib64", "usr")
            self.file(Path(library).resolve(), library if system else f"lib/{Path(library).name}")

    def verbs_plugin(self, name):
        """Adds the plugin that libibverbs loads for adapters of a kind."""
        found = sorted(Path("/usr/lib").glob(f"*/libibverbs/lib{name}-rdmav*.so"))
        if not found:
            raise Missing("ibverbs-providers is not installed; scripts/setup --vm")
        self.file(f"/etc/libibverbs.d/{name}.driver")
        self.file(found[-1])

    def compiled(self, source, bits=None):
        """Compiles a C program statically and adds it under the name of its source, with bits="-m32" as NAME-32."""
        with tempfile.TemporaryDirectory(prefix="viaduct-vm-") as folder:
            target = Path(folder) / (Path(source).stem + ("-32" if bits else ""))
            words = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]
            # The kernel's headers are in the folder of the machine's own architecture.
            words += [bits, "-idirafter", "/usr/include/x86_64-linux-gnu"] if bits else []
            if bits and subprocess.run(words + ["-xc", "-", "-o", str(target)], check=False, text=True,
                                       input="#include <stdio.h>\nint main(void) { return puts(\"\"); }\n",
                                       stderr=subprocess.DEVNULL).returncode:
                raise Missing("gcc makes no programs of 32 bits; scripts/setup --vm")
            try:
                subprocess.run(words + ["-o", str(target), str(source)], check=True)
            except FileNotFoundError as error:
                raise Missing("gcc is not installed") from error
            self.file(target, target.name)

    def write(self, path):
        with open(path, "wb") as file:
            for number, (name, (mode, content)) in enumerate(self.entries.items(), 1):
                file.write(member(number, name, mode, content))
            file.write(member(0, "TRAILER!!!", 0, b""))


def member(number, name, mode, content):
    raw = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields)
    return pad(head + raw) + pad(content)


def pad(data):
    return data + b"\0" * (-len(data) % 4)


def libraries(program):
    """The shared libraries of a program, its loader included; none for a static one."""
    done = subprocess.run(["ldd", str(program)], check=False, text=True, capture_output=True)
    if done.returncode:
        return []
    if "not found" in done.stdout:
        raise Missing(f"{program}: {' '.join(done.stdout.split())}")
    return re.findall(r"(?:=> )?(/\S+) \(0x", done.stdout)
