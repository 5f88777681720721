# SPDX-License-Identifier: BSD-2-Clause
"""The generic names in C++, as overloaded functions."""
import re

import spec_table
import spec_types

# The function of C with this name is the one for long.
OF_C = {"wait_until": "long"}


def names_of(params):
    return ", ".join(re.search(r"(\w+)$", param).group(1) for param in params.split(", "))


def definition(proto, ctx):
    """One function, with NAME for the name of a type in routines and T for the type."""
    params = ("shmem_ctx_t ctx, " if ctx else "") + proto.params
    called = proto.name.replace("{c}", "ctx_" if ctx else "")
    called = re.sub(r"{\w+}", "##NAME##", called)
    back = "" if proto.result.strip() == "void" else "return "
    return (f"inline {proto.result}shmem_{proto.generic}({params})",
            f"{back}{called}({names_of(params)});")


def of_types(protos):
    """A macro with all functions of these prototypes for one type."""
    lines = ["#define SHMEMX_OVERLOAD(NAME, T)"]
    for proto in protos:
        for ctx in (False, True) if "{c}" in proto.name else (False,):
            head, body = definition(proto, ctx)
            lines += ["\t" + head, "\t{", "\t\t" + body, "\t}"]
    return " \\\n".join(lines) + "\n"


def uses(pairs):
    out, guarded = [], False
    for name, c_type in pairs:
        complex_type = name in spec_types.COMPLEX
        if complex_type != guarded:
            out.append("#ifdef SHMEMX_COMPLEX" if complex_type else "#endif")
            guarded = complex_type
        out.append(f"SHMEMX_OVERLOAD({name}, {c_type})")
    return "\n".join(out + (["#endif"] if guarded else [])) + "\n#undef SHMEMX_OVERLOAD\n"


def text():
    groups, out = {}, []
    for family in spec_table.families():
        for proto in family.protos:
            if proto.generic and proto.on in ("team", "context"):
                head, body = definition(proto, proto.on == "context")
                out.append(f"{head}\n{{\n\t{body}\n}}\n")
            elif proto.generic:
                pairs = [pair for pair in spec_types.association(proto.types())
                         if pair[0] != OF_C.get(proto.generic)]
                groups.setdefault(tuple(pairs), []).append(proto)
    for pairs, protos in groups.items():
        out.append(of_types(protos) + "\n" + uses(pairs))
    return "\n".join(out)
