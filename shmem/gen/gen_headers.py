#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes shmem.h and pshmem.h from the table of routines.

usage: gen_headers.py VERSION FOLDER
"""
import pathlib
import sys
import textwrap

import spec_generic
import spec_overload
import spec_table
import spec_types

COLUMNS = 100

PSHMEM = """\
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pshmem.h - the profiling names of OpenSHMEM
 *
 * Every routine of shmem.h under its name with a p in front.  A tool that defines shmem_NAME itself
 * calls pshmem_NAME for the library's.
 */
#ifndef PSHMEM_H
#define PSHMEM_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#pragma GCC visibility push(default)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wlong-long"
#endif

"""
PSHMEM_END = """
#ifdef __GNUC__
#pragma GCC diagnostic pop
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
"""


def comment(family):
    """The description of a family as a comment."""
    spec = f"Section {family.section}; since {family.since}."
    if family.deprecated:
        spec += f" Deprecated since {family.deprecated}."
    parts = [family.title + "."] + family.text.strip().split("\n\n") + [spec]
    out = ["/*"]
    for part in parts:
        out += [" * " + line for line in textwrap.wrap(" ".join(part.split()), COLUMNS - 3)]
        out.append(" *")
    out[-1] = " */"
    return "\n".join(out) + "\n"


def wrapped(declaration):
    return "\n".join(textwrap.wrap(declaration, COLUMNS - 8, break_long_words=False,
                                   break_on_hyphens=False,
                                   subsequent_indent="\t"))


def declarations(family, prefix=""):
    out, guarded = [], False
    for routine in family.routines():
        complex_type = routine.type_name in spec_types.COMPLEX
        if complex_type != guarded:
            out.append("#ifdef SHMEMX_COMPLEX" if complex_type else "#endif")
            guarded = complex_type
        out.append(wrapped(routine.declaration(prefix)))
    if guarded:
        out.append("#endif")
    return "\n".join(out) + "\n"


def prototypes():
    out = []
    for title, section in spec_table.SECTIONS:
        out.append(f"/* ---- {title} {'-' * (66 - len(title))} */\n")
        for family in section:
            out.append(comment(family) + declarations(family))
    return "\n".join(out)


def main():
    version, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    text = (pathlib.Path(__file__).parent / "shmem.h.in").read_text(encoding="utf-8")
    for mark, value in (("@VERSION@", version), ("@PROTOTYPES@", prototypes()),
                        ("@GENERICS@", spec_generic.text()), ("@OVERLOADS@", spec_overload.text())):
        text = text.replace(mark, value)
    (folder / "shmem.h").write_text(text, encoding="utf-8")
    text = "\n".join(declarations(family, "p") for family in spec_table.families())
    (folder / "pshmem.h").write_text(PSHMEM + text + PSHMEM_END, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
