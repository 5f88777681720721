#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every global symbol of a layer's library starts with one of its prefixes."""
import subprocess
import sys


def symbols(library):
    out = subprocess.run(["nm", "--extern-only", "--defined-only", "--format=posix", library],
                         check=True, capture_output=True, text=True).stdout
    # Member headers end in a colon; underscores belong to compiler, sanitizers and <sys/sdt.h>.
    names = [line.split()[0] for line in out.splitlines() if line and not line.endswith(":")]
    return sorted({name for name in names if not name.startswith(("__", "_.stapsdt"))})


def main():
    prefixes = tuple(sys.argv[1].split(","))
    names = symbols(sys.argv[2])
    wrong = [name for name in names if not name.startswith(prefixes)]
    for name in wrong:
        print(f"{name} does not start with {' or '.join(prefixes)}")
    if not names:
        print(f"{sys.argv[2]} defines no symbol")
    print(f"{len(names)} symbols, {len(wrong)} wrong")
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
