#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes programs that call every routine which exists for several types, with checked results.

usage: gen_calls.py FOLDER
"""
import pathlib
import re
import sys

import call_bodies
import spec_table
import spec_types

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
OPERATIONS = {
    # name: (result for a and b, element i of a PE)
    "and": ("a & b", "(T)~((T)1 << ((pe) + 2 * (i)) % 7)"),
    "or": ("a | b", "(T)((T)1 << ((pe) + 2 * (i)) % 7)"),
    "xor": ("a ^ b", "(T)((pe) * 37 + (i) * 11 + 1)"),
    "max": ("b > a ? b : a", "(T)(((pe) * 5 + (i) * 3) % 7 - 3)"),
    "min": ("b < a ? b : a", "(T)(((pe) * 5 + (i) * 3) % 7 - 3)"),
    "sum": ("a + b", "(T)(((pe) + (i)) % 3 + 1)"),
    "prod": ("a * b", "(T)(((pe) + (i)) % 3 + 1)"),
}
GROUPS = {
    "rma": ["Remote memory access (9.6)"], "amo": ["Atomic operations (9.7)"],
    "signal": ["Signals (9.8)"], "collect": ["Collectives (9.10)"], "reduce": ["Collectives (9.10)"],
    "wait": ["Point-to-point synchronization (9.11)"],
}
AMO = call_bodies.amo_bodies()


def kind_of(routine):
    """The kind of a routine: its name without library, context, type and size."""
    name = re.sub(r"{c}|{(old_)?sz}|{\w+}_", "", routine.proto.name)
    return name.replace("shmem_", "")


def element(routine):
    """The C type of the elements of a routine that only moves them."""
    if routine.type_name:
        return spec_types.C_TYPES[routine.type_name]
    size = re.search(r"(128|8|16|32|64)", routine.name)
    return f"struct bytes{SIZES[size.group(1)]}" if size else "unsigned char"


def move_body(routine, kind):
    kind = re.sub(r"mem", "", kind)
    base = re.sub(r"_nbi$", "", kind)
    body = call_bodies.RMA[base]
    return body.replace("WAIT;", "QUIET;" if kind != base else ";")


def collective_body(routine, kind):
    """The body for a collective, and the group of its program."""
    found = re.match(r"(?:(and|or|xor|max|min|sum|prod)_)(reduce|to_all|inscan|exscan)", kind)
    if found is None:
        return call_bodies.COLLECTIVE.get(re.sub(r"mem", "", kind)), "collect"
    op, form = found.groups()
    body = call_bodies.COLLECTIVE["scan" if "scan" in form else "reduce"]
    result, small = OPERATIONS[op]
    if routine.type_name in spec_types.COMPLEX:
        small = f"({small} + (T)((pe) % 2 * 1.0i))"
    body = re.sub(r"SMALL\(([^,]*), ([^)]*)\)",
                  lambda m: small.replace("(pe)", f"({m.group(1)})").replace("(i)", f"({m.group(2)})"),
                  body)
    return body.replace("OP", result).replace("INCLUSIVE", "1" if form == "inscan" else "0"), "reduce"


def calls_collective(routine, body):
    """The body with a team or an active set; it checks what the form with a team returns."""
    if routine.family.deprecated:
        work = "pWrk, " if "pWrk" in routine.params else ""
        body = body.replace("TEAM ", "").replace(" ACTIVE", f", 0, 0, npes, {work}pSync")
        body = re.sub(r"NAME\((.*)\)CHECK0;", r"NAME(\1);", body).replace("OLD", "1")
        arrays = "\tstatic T pWrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 5];\n" if work else ""
        return "\n" + arrays + body.lstrip("\n")
    body = body.replace("TEAM", "SHMEM_TEAM_WORLD,").replace(" ACTIVE", "").replace("OLD", "0")
    return re.sub(r"NAME\((.*)\)CHECK0;", r"CHECK(NAME(\1) == 0);", body)


def wait_body(routine, kind):
    vector = kind.endswith("_vector")
    body = call_bodies.SYNC.get(kind.replace("_vector", ""))
    if body is None:
        return None
    kind_name = routine.type_name or "long"
    setter = "p" if routine.type_name in ("short", "ushort") else "atomic_set"
    for word, value in (("VALUE", "values" if vector else "5"), ("STEP", "1" if vector else "0"),
                        ("NOTHING", "NULL" if vector else "0"), ("SET(", setter + "("),
                        ("shmem_N_", f"shmem_{kind_name}_")):
        body = body.replace(word, value) if word != "VALUE" else re.sub(r"\bVALUE\b", value, body)
    return body


def body_of(routine, group):
    """The body for a routine in the program of this group; None if it is not in it."""
    kind = kind_of(routine)
    if group in ("rma", "signal"):
        return move_body(routine, kind)
    if group == "amo":
        return AMO[kind]
    if group == "wait":
        return wait_body(routine, kind)
    body, where = collective_body(routine, kind)
    return calls_collective(routine, body) if body and where == group else None


def function(routine, body):
    c_type = spec_types.C_TYPES.get(routine.type_name, "long")
    body = re.sub(r"\bV\(([^,]*), ([^)]*)\)", r"(T)((\1) * 10 + (\2) + 1)", body)
    for word, value in (("NAME", routine.name), ("CTX ", "ctx, " if routine.ctx else ""),
                        ("QUIET", "shmem_ctx_quiet(ctx)" if routine.ctx else "shmem_quiet()"),
                        ("E", element(routine)), ("T", c_type)):
        body = re.sub(rf"\b{word}(?!\w)" if word[-1] != " " else rf"\b{word}", value, body)
    return f"static void test_{routine.name}(void)\n{{{body}\n}}\n"


def program(group):
    sections = dict(spec_table.SECTIONS)
    out, names = [], []
    for title in GROUPS[group]:
        for family in sections[title]:
            for routine in family.routines():
                body = body_of(routine, group)
                if body is not None:
                    out.append(function(routine, body))
                    names.append(routine.name)
    rows = "".join(f'\t{{ "{name}", test_{name} }},\n' for name in names)
    structs = "".join(f"struct bytes{n} {{\n\tunsigned char b[{n}];\n}};\n" for n in SIZES.values())
    sync = ("\nstatic long pSync[SHMEM_REDUCE_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE +\n"
            "\t\t  SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_ALLTOALLS_SYNC_SIZE];\n\n")
    return ("/* SPDX-License-Identifier: BSD-2-Clause */\n#include \"calls.h\"\n\n" + structs +
            (sync if group in ("collect", "reduce") else "\n") +
            "\n".join(out) + "\nstatic const struct call calls[] = {\n" + rows + "};\n\n" +
            "int main(void)\n{\n\tbegin_calls();\n" +
            ("\tfor (size_t i = 0; i < sizeof(pSync) / sizeof(pSync[0]); i++)\n"
             "\t\tpSync[i] = SHMEM_SYNC_VALUE;\n\tshmem_barrier_all();\n"
             if group in ("collect", "reduce") else "") +
            "\trun_calls(calls, sizeof(calls) / sizeof(calls[0]));\n\tend_calls();\n\treturn 0;\n}\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    for group in GROUPS:
        (folder / f"calls_{group}.c").write_text(program(group), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
