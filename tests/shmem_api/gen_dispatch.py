#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a program, of C11 and of C++, that calls every generic name with every type that it is
specified for, and checks which routine that is.

The routines are replaced by functions that note their name, so the program needs no library.

usage: gen_dispatch.py OUTPUT
"""
import pathlib
import re
import sys

import spec_generic
import spec_table

# Names of types that are one C type here: the first stands for all.
SAME = ["schar int8", "short int16", "int int32", "long int64 ptrdiff", "uchar uint8",
        "ushort uint16", "uint uint32", "ulong uint64 size"]
ONE_OF = {name: names.split()[0] for names in SAME for name in names.split()}

TOP = """\
/* SPDX-License-Identifier: BSD-2-Clause */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static const char *called;
static int failed, count;

static void check(const char *call, const char *wanted)
{
	count++;
	if (called != NULL && strcmp(called, wanted) == 0)
		return;
	failed++;
	printf("%s calls %s, not %s\\n", call, called ? called : "nothing", wanted);
}

#define CHECK(wanted, ...)                                                                          \\
	(called = NULL, (void)(__VA_ARGS__), check(#__VA_ARGS__, wanted))
"""
END = """
int main(void)
{
	run();
	printf("%d calls, %d failed\\n", count, failed);
	return failed != 0;
}
"""


def one_name(routine):
    """The name of a routine, or of the one for the same C type."""
    kind = ONE_OF.get(routine.type_name, routine.type_name)
    return re.sub(rf"_{routine.type_name}_", f"_{kind}_", routine.name, count=1)


def replacement(routine):
    value = "" if routine.result.strip() == "void" else " return 0;"
    name = one_name(routine)
    if name == "shmem_wait_until":  # in C++ this name is the overload for long
        name = "shmem_long_wait_until"
    return (f"{routine.result}({routine.name})({routine.params})\n"
            f'{{ called = "{name}";{value} }}')


def arguments(params, qualifier=""):
    """Arguments of the right types; the first pointer gets the qualifier."""
    out, marked = [], not qualifier
    for param in params.split(", "):
        c_type = re.sub(r"\w+$", "", param).strip()
        if c_type.endswith("*"):
            base = c_type[:-1].replace("const ", "").strip()
            if not marked:
                base, marked = f"{qualifier} {base}", True
            out.append(f"({base} *)0")
        elif c_type in ("shmem_ctx_t", "shmem_team_t"):
            out.append("SHMEM_CTX_DEFAULT" if "ctx" in c_type else "SHMEM_TEAM_WORLD")
        else:
            out.append("1")
    return ", ".join(out)


def calls(routine):
    name = f"shmem_{routine.proto.generic}"
    qualifiers = [""] + (["const", "volatile", "const volatile"] if routine.proto.on == "source" else
                         ["volatile"])
    if routine.proto.on in ("team", "context") or routine.type_name is None:
        qualifiers = [""]
    for qualifier in qualifiers:
        call = f'\tCHECK("{one_name(routine)}", {name}({arguments(routine.params, qualifier)}));'
        yield f"#ifndef __cplusplus\n{call}\n#endif" if "volatile" in qualifier else call


def main():
    routines = [r for r in spec_table.routines() if r.proto.generic]
    lines = [TOP]
    lines += [replacement(r) for r in spec_table.routines()
              if r.proto.generic or r.name in ("shmem_sync", "shmem_wait_until")]
    lines.append("\nstatic void run(void)\n{")
    for routine in routines:
        lines += calls(routine)
    lines.append('\tCHECK("shmem_sync", shmem_sync(0, 0, 1, (long *)0));')
    lines.append("}")
    assert len({r.proto.generic for r in routines}) == len(spec_generic.generics())
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines) + END, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
