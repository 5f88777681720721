#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles Java sources and packs them, without Maven.

usage: build_jar.py --jdk HOME [--jdk22 HOME] [--version TEXT] [--add PATH=FILE]... [--sources22 FILE...]
                    [--class-path PATH] [--plain] OUT.jar [SOURCE...]

  --jdk HOME      compiles SOURCE for JDK 17
  --jdk22 HOME    compiles the sources of --sources22 for JDK 22, into META-INF/versions/22; with HOME/lib/ecj.jar
                  where it has no javac
  --add PATH=FILE puts a file into the jar, a library without its run path
  --plain         no check of documentation: tests, benchmarks
"""
import argparse
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LINTS = ["-Xlint:all", "-Werror", "-encoding", "UTF-8", "-g", "-Xpkginfo:always"]  # the last two as Maven does
DOCS = ["-Xdoclint:all/protected", "-Xdoclint/package:-org.viaduct.vipl.spi"]


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:4]))} ...: exit {done.returncode}\n{done.stdout}{done.stderr}")


def compile_java(home, release, out, sources, options):
    out.mkdir(parents=True, exist_ok=True)
    run([home / "bin/javac", *LINTS, *options, "--release", release, "-d", out, *sources])


def compile_foreign(home, out, sources, classes, documented):
    """The classes for JDK 22 and later. ECJ takes neither javac's lints nor its checks of documentation."""
    if (home / "bin/javac").exists():
        compile_java(home, 22, out, sources, ["-cp", classes, "-Xlint:-restricted", *documented])
        return
    out.mkdir(parents=True, exist_ok=True)
    run([home / "bin/java", "-jar", home / "lib/ecj.jar", "--system", home, "-source", "22", "-target", "22", "-encoding", "UTF-8",
         "-g", "-nowarn", "-cp", classes, "-d", out, *sources])


def without_run_path(elf):
    """A library of 64 bits without the folders of its build, in which it would look for those that it needs."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return elf
    data = bytearray(elf)
    first, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for header in range(first, first + size * count, size):
        if struct.unpack_from("<I", data, header)[0] != 2:  # PT_DYNAMIC
            continue
        begin, length = struct.unpack_from("<Q", data, header + 8)[0], struct.unpack_from("<Q", data, header + 32)[0]
        all_tags = [bytes(data[at:at + 16]) for at in range(begin, begin + length, 16)]
        kept = b"".join(tag for tag in all_tags if struct.unpack_from("<q", tag)[0] not in (15, 29))  # DT_RPATH, DT_RUNPATH
        data[begin:begin + length] = kept.ljust(length, b"\0")
    return bytes(data)


def pack(jar, version, trees):
    """Writes the archive, in an order and with times that do not depend on when it is built."""
    manifest = "Manifest-Version: 1.0\nMulti-Release: true\nAutomatic-Module-Name: org.viaduct.natives\n"
    if any((tree / "module-info.class").exists() for tree, _ in trees):
        manifest = manifest[:manifest.index("Automatic")]
    manifest += f"Implementation-Version: {version}\n"
    entries = [("META-INF/MANIFEST.MF", manifest.encode())]
    for tree, prefix in trees:
        files = sorted(p for p in tree.rglob("*") if p.is_file())
        entries += [(prefix + str(p.relative_to(tree)), p.read_bytes()) for p in files]
    with zipfile.ZipFile(f"{jar}.new", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    os.replace(f"{jar}.new", jar)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jdk", type=Path, required=True)
    parser.add_argument("--jdk22", type=Path)
    parser.add_argument("--version", default="0")
    parser.add_argument("--add", action="append", default=[])
    parser.add_argument("--sources22", nargs="*", default=[])
    parser.add_argument("--class-path", default="")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("jar")
    parser.add_argument("sources", nargs="*")
    asked = parser.parse_args()
    documented = [] if asked.plain else DOCS
    path = ["-cp", asked.class_path] if asked.class_path else []
    with tempfile.TemporaryDirectory() as temporary:
        base, new = Path(temporary, "base"), Path(temporary, "22")
        (base / "classes").mkdir(parents=True)
        if asked.sources:
            options = list(documented)
            if any(Path(source).name == "module-info.java" for source in asked.sources):
                options += ["--module-version", asked.version]
            compile_java(asked.jdk, 17, base / "classes", asked.sources, [*options, *path])
        for pair in asked.add:
            name, file = pair.split("=", 1)
            (base / "classes" / name).parent.mkdir(parents=True, exist_ok=True)
            (base / "classes" / name).write_bytes(without_run_path(Path(file).read_bytes()))
        if asked.jdk22 and asked.sources22:
            compile_foreign(asked.jdk22, new, asked.sources22, base / "classes", documented)
        pack(asked.jar, asked.version, [(base / "classes", ""), (new, "META-INF/versions/22/")])
    return 0


if __name__ == "__main__":
    sys.exit(main())
