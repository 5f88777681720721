#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every routine of the list is in the synopsis of a page, and no page makes the formatter complain.

usage: pages_test.py DIRECTORY SYMBOLS
"""
import pathlib
import re
import shutil
import subprocess
import sys


def described(page):
    """The routines that a page describes: its synopsis with the types and sizes it lists."""
    text = page.read_text(encoding="utf-8").replace("\\fI", "").replace("\\fP", "").replace("\\fB", "")
    synopsis = text.split(".SH SYNOPSIS", 1)[1].split("C11 and C++", 1)[0].split(".SH", 1)[0]
    lists = {}
    for heads, items in re.findall(r"^\.TP\n(.*)\n(.*)$", text.partition(".SH TYPES")[2].partition(".SH")[0], re.M):
        for head in heads.split(", "):
            lists[head] = items.replace(" (bits)", "").split(", ")
    for name in re.findall(r"([\w]+)\(", synopsis):
        stem = re.sub(r"_ctx_|_TYPENAME_", "_", re.sub(r"_ctx_TYPENAME_", "_", name))
        if "TYPENAME" in name:
            yield from (name.replace("TYPENAME", kind) for kind in lists[stem])
        elif "SIZE" in name:
            yield from (name.replace("SIZE", size) for size in lists["SIZE"])
        else:
            yield name


def main():
    directory = pathlib.Path(sys.argv[1])
    rows = [line.split("\t")[0] for line in pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
            if not line.startswith("#")]
    wanted, found, complaints = set(rows[1:]), set(), []
    pages = sorted(directory.glob("*.3")) + sorted(directory.glob("*.7"))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        if text.startswith(".so "):
            if not (directory / pathlib.Path(text.split()[1]).name).is_file():
                complaints.append(f"{page.name} leads nowhere")
            continue
        if page.suffix == ".3":
            found |= set(described(page))
        if re.search(r"^@", text, re.M):
            complaints.append(f"{page.name}: a line of the template was not replaced")
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-rLL=100n", str(page)],
                                  capture_output=True, text=True, check=False)
            if done.stderr or not done.stdout.strip():
                complaints.append(f"{page.name}: {done.stderr or 'empty'}")
    complaints += [f"no page describes {name}" for name in sorted(wanted - found)]
    complaints += [f"described, not in the list: {name}" for name in sorted(found - wanted)]
    print("\n".join(complaints[:50]))
    print(f"{len(pages)} pages, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
