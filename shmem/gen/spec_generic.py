# SPDX-License-Identifier: BSD-2-Clause
"""The C11 generic names, as macros."""
import spec_table
import spec_types

HEAD = """\
void shmemx_type_has_no_routine(void); /* a call of it, with arguments, does not compile */

#define SHMEMX_FIRST(...) SHMEMX_FIRST_OF(__VA_ARGS__, 0)
#define SHMEMX_FIRST_OF(first, ...) first
#define SHMEMX_SECOND(...) SHMEMX_SECOND_OF(__VA_ARGS__, 0, 0)
#define SHMEMX_SECOND_OF(first, second, ...) second
"""


class Generic:
    """One generic name: where it looks, and the types that it has."""

    def __init__(self, name, on, ctx):
        self.name, self.on, self.ctx, self.types = name, on, ctx, []

    def pairs(self):
        return list(spec_types.association(self.types))


def generics():
    """The generic names in the order of the table."""
    found = {}
    for family in spec_table.families():
        for proto in family.protos:
            if proto.generic:
                one = found.setdefault(proto.generic,
                                       Generic(proto.generic, proto.on, "{c}" in proto.name))
                one.types += proto.types() or []
    return list(found.values())


def type_list(name, pairs, source):
    """A macro with the associations of these types."""
    lines = []
    for short, c_type in pairs:
        forms = ["", "volatile "] + (["const ", "const volatile "] if source else [])
        lines.append(", ".join(f"{q}{c_type} *: pre##{short}##post" for q in forms))
    body = ", \\\n\t".join(lines)
    return f"#define {name}(pre, post) \\\n\t{body}\n"


def macro(one, type_macro):
    """The definition of a generic name."""
    name, post = f"shmem_{one.name}", f"_{one.name}"
    if one.on == "team":
        return (f"#define {name}(...) \\\n\t_Generic((SHMEMX_FIRST(__VA_ARGS__)), shmem_team_t: shmem_team_{one.name}, "
                f"\\\n\t\tdefault: {name})(__VA_ARGS__)\n")
    if one.on == "context":
        return (f"#define {name}(...) \\\n\t_Generic((SHMEMX_FIRST(__VA_ARGS__)), shmem_ctx_t: shmem_ctx_{one.name}, "
                f"\\\n\t\tdefault: {name})(__VA_ARGS__)\n")
    where = "SECOND" if one.on == "second" else "FIRST"
    ctx = ""
    if one.ctx:
        ctx = ("\\\n\t\tshmem_ctx_t: _Generic((SHMEMX_SECOND(__VA_ARGS__)), \\\n"
               f"\t\t\t{type_macro}(shmem_ctx_, {post}), \\\n"
               "\t\t\tdefault: shmemx_type_has_no_routine), ")
    return (f"#define {name}(...) \\\n\t_Generic((SHMEMX_{where}(__VA_ARGS__)), {ctx}\\\n"
            f"\t\t{type_macro}(shmem_, {post}))(__VA_ARGS__)\n")


def text():
    out, lists = [HEAD], {}
    for one in generics():
        name = None
        if one.on not in ("team", "context"):
            key = (tuple(one.pairs()), one.on == "source")
            if key not in lists:
                lists[key] = f"SHMEMX_TYPES_{len(lists) + 1}"
                out.append(type_list(lists[key], *key))
            name = lists[key]
        out.append(macro(one, name))
    return "\n".join(out)
