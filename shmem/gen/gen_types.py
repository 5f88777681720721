#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes api_types.h, the families of types as lists of macros, from the families of spec_types.py.

usage: gen_types.py FILE
"""
import pathlib
import sys

import spec_types

HEAD = """\
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Made by shmem/gen/gen_types.py from the families of types of spec_types.py.
 *
 * API_FAMILY_TYPES(X): X(name in routines, type) of each type of the family.
 */
#ifndef API_TYPES_H
#define API_TYPES_H
"""


def macro(name, items):
    return f"\n#define {name}(X) \\\n\t" + " \\\n\t".join(f"X({', '.join(item)})" for item in items) + "\n"


def main():
    text = HEAD
    for family, names in spec_types.FAMILIES.items():
        if names[0] in spec_types.C_TYPES:
            text += macro(f"API_{family.upper()}_TYPES", [(name, spec_types.C_TYPES[name]) for name in names])
    text += "\n/* X(bits, bytes) */" + macro("API_SIZES", [(bits, str(int(bits) // 8)) for bits in spec_types.FAMILIES["sz"]])
    pathlib.Path(sys.argv[1]).write_text(text + "\n#endif\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
