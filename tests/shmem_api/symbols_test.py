#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A library exports the routines of OpenSHMEM 1.6 and their profiling names, and nothing else.

Each routine is a weak symbol, so that a tool may define it, with the address of its profiling name.

usage: symbols_test.py LIBRARY SYMBOLS
"""
import pathlib
import subprocess
import sys


def exported(path):
    """{name: (binding, address)}"""
    out = subprocess.run(["readelf", "--dyn-syms", "--wide", path], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    symbols = {}
    for line in out.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] not in ("UND", "ABS"):
            symbols[fields[7].partition("@")[0]] = (fields[4], fields[1])
    return symbols


def main():
    have = exported(sys.argv[1])
    rows = [line.split("\t") for line in pathlib.Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
            if not line.startswith("#")][1:]
    names = {row[0] for row in rows}
    wanted = names | {"p" + name for name in names}
    complaints = [f"not exported: {name}" for name in sorted(wanted - set(have))]
    complaints += [f"exported, not in the list: {name}" for name in sorted(set(have) - wanted)]
    for name in sorted(names & set(have)):
        binding, address = have[name]
        if binding != "WEAK":
            complaints.append(f"{name} is not weak")
        if have.get("p" + name, (None, None)) != ("GLOBAL", address):
            complaints.append(f"p{name} is not the strong name of {name}")
    print("\n".join(complaints[:50]))
    print(f"{len(have)} symbols, {len(complaints)} complaints")
    return 1 if complaints or len(names) != 1788 else 0


if __name__ == "__main__":
    sys.exit(main())
