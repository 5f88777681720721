#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Includes point down only.

For every layer and every header of the project, with the include directories
the build gives to that layer: a header of a layer below must compile alone in
a one-line C file; any other must not be found.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

# Folder of each layer, with the folders in it, and the layers it may include, those below given in full.
LAYERS = {
    "util/place": [],
    "util": ["util/place"],
    "util/option": [],
    "provider/wire": ["util", "util/place"],
    "provider/port": ["util", "util/place"],
    "provider/route": ["util", "util/place"],
    "provider/client": ["provider/wire", "util", "util/place"],
    "provider/relay": ["provider/wire", "provider/port", "util", "util/place"],
    "provider/agent": ["provider/relay", "provider/route", "provider/wire", "provider/port", "util", "util/place"],
    "vipl/include": [],
    "vipl/core": ["vipl/include", "util", "util/place"],
    "vipl/api": ["vipl/core", "vipl/include", "util", "util/place"],
    "provider/ntb": ["vipl/core", "vipl/include", "provider/client", "provider/wire",
                     "provider/port", "util", "util/place"],
    "perf/common": ["vipl/include", "util/option"],
    "shmem/boot": [],
    "shmem/core/mem": ["shmem/boot", "vipl/include"],
    "shmem/core/net": ["shmem/core/mem", "shmem/boot", "vipl/include"],
    "shmem/core/group": ["shmem/core/net", "shmem/core/mem", "shmem/boot", "vipl/include"],
    "shmem/core/job": ["shmem/core/group", "shmem/core/net", "shmem/core/mem", "shmem/boot", "vipl/include",
                        "util/place"],
    "shmem/api": ["shmem/core/job", "shmem/core/group", "shmem/core/net", "shmem/core/mem", "shmem/boot",
                  "vipl/include", "util/place", "shmem/include"],
    "shmem/tools": ["shmem/boot", "util/option", "util/place"],
    "sock/include": [],
    "sock/stream": ["sock/include", "vipl/include"],
    "sock/common": [],
    "sock/hook": ["sock/common", "sock/include", "vipl/include"],
    "sock/forward": ["sock/common", "vipl/include"],
    "sock/run": ["sock/common", "util/option"],
}
# The file that stands for a folder whose files do not all have the same include directories.
FILES = {"perf/common": "pf_run.c", "shmem/core/mem": "osh_heap.c", "shmem/api": "api_rma.c", "sock/hook": "vs_io.c"}


def compile_entry(entries, source, folder):
    """The compile command of one C file of `folder` that is part of a library."""
    for entry in entries:
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        again = "U_TRACE_STAMPS" in entry.get("command", "")  # all layers as one, for perf/stages
        named = path.name == FILES.get(folder, path.name)
        if path.suffix == ".c" and path.parent == source / folder and named and not again:
            return entry
    return None


def flags_of(entry):
    """Compiler and the options that decide what an include finds."""
    words = shlex.split(entry["command"]) if "command" in entry else entry["arguments"]
    start = next(i for i, word in enumerate(words) if "ccache" not in word)
    options = [w for w in words[start + 1:] if w.startswith(("-I", "-isystem", "-D", "-std="))]
    return [words[start]] + options


def errors_of(command, directory, header, scratch):
    """The errors of a C file that includes the header; "" if it compiles."""
    with tempfile.NamedTemporaryFile("w", suffix=".c", dir=scratch, delete=False) as one_line:
        one_line.write(f'#include "{header}"\n')
    done = subprocess.run(command + ["-fsyntax-only", one_line.name], cwd=directory,
                          capture_output=True, text=True, check=False,
                          env=dict(os.environ, LC_ALL="C"))
    return done.stderr or f"exit status {done.returncode}" if done.returncode else ""


def finds(command, directory, header):
    """Whether the header lies in an include directory of the command."""
    folders = [word[len("-I"):] for word in command if word.startswith("-I")]
    return any((Path(directory) / folder / header).exists() for folder in folders)


def judge(command, directory, layer, owner, header, scratch):
    """None, or what is wrong."""
    if owner != layer and owner not in LAYERS[layer]:
        if finds(command, directory, header):
            return f"{layer} can include {owner}/{header}, which is not below it"
        return None
    errors = errors_of(command, directory, header, scratch)
    return f"{layer} must be able to include {owner}/{header}:\n{errors}" if errors else None


def main():
    build, source = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    entries = json.loads((build / "compile_commands.json").read_text())
    headers = [(owner, h.name) for owner in LAYERS for h in sorted((source / owner).rglob("*.h"))
               if h.parent == source / owner or str(h.parent.relative_to(source)) not in LAYERS]
    owners = {owner for owner, _ in headers}
    checks = []
    with tempfile.TemporaryDirectory() as scratch:
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            for layer in LAYERS:
                entry = compile_entry(entries, source, layer)
                if entry is None and layer not in ("vipl/include", "sock/include"):
                    print(f"no compile command for a file of {layer}")
                    return 1
                if entry is not None:
                    flags = flags_of(entry)
                    checks += [pool.submit(judge, flags, entry["directory"], layer, owner,
                                           header, scratch) for owner, header in headers]
            wrong = [text for text in (check.result() for check in checks) if text]
    for text in wrong:
        print(text)
    print(f"{len(checks)} includes checked over {len(owners)} folders, {len(wrong)} wrong")
    return 1 if wrong or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
