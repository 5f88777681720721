# SPDX-License-Identifier: BSD-2-Clause
"""The types of OpenSHMEM 1.6 by their names in routines, and the families of them."""
import re

C_TYPES = {
    "float": "float", "double": "double", "longdouble": "long double", "char": "char",
    "schar": "signed char", "short": "short", "int": "int", "long": "long",
    "longlong": "long long", "uchar": "unsigned char", "ushort": "unsigned short",
    "uint": "unsigned int", "ulong": "unsigned long", "ulonglong": "unsigned long long",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "size": "size_t", "ptrdiff": "ptrdiff_t",
    "complexd": "shmemx_complexd_t", "complexf": "shmemx_complexf_t",
}
COMPLEX = ("complexd", "complexf")

AMO = "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff".split()
LOGIC = ("uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
         "size").split()
ORDERED = ("char schar short int long longlong ptrdiff".split() + LOGIC +
           "float double longdouble".split())

# A word in braces in a routine's name stands for each name of the list.
FAMILIES = {
    "rma": [t for t in C_TYPES if t not in COMPLEX],
    "amo": AMO,
    "xamo": ["float", "double"] + AMO,
    "bits": "uint ulong ulonglong int32 int64 uint32 uint64".split(),
    "logic": LOGIC,
    "ordered": ORDERED,
    "arith": ORDERED + list(COMPLEX),
    "old_rma": "float double int long longlong".split(),
    "old_amo": "int long longlong".split(),
    "old_wait": "short int long longlong".split(),
    "short": ["short", "ushort"],
    "old_logic": "short int long longlong".split(),
    "old_ordered": "short int long longlong float double longdouble".split(),
    "old_arith": "short int long longlong float double longdouble complexd complexf".split(),
    "sz": "8 16 32 64 128".split(),
    "old_sz": "32 64".split(),
    "logic_op": "and or xor".split(),
    "minmax_op": "max min".split(),
    "arith_op": "sum prod".split(),
}

# Types that a C11 generic tells apart, in the order of association; all others are one of them.
DISTINCT = ("char schar short int long longlong uchar ushort uint ulong ulonglong "
            "float double longdouble complexd complexf").split()
# Families without these names have the type under the name of a fixed width.
FIXED_WIDTH = {"schar": "int8", "short": "int16", "int": "int32", "long": "int64"}


def association(names):
    """(name, C type) of each type that a generic over these names tells apart."""
    for name in DISTINCT:
        if name in names:
            yield name, C_TYPES[name]
        elif FIXED_WIDTH.get(name) in names:
            name = FIXED_WIDTH[name]
            yield name, C_TYPES[name]


class Routine:
    """One function: what a prototype with braces stands for."""

    def __init__(self, proto, family, result, name, params, type_name, ctx):
        self.proto, self.family, self.result, self.name = proto, family, result, name
        self.params, self.type_name, self.ctx = params, type_name, ctx

    def declaration(self, prefix=""):
        return f"{self.result}{prefix}{self.name}({self.params});"


class Proto:
    """A prototype.  «{c}» in its name: also with a leading context; other braces: see FAMILIES.

    generic: its C11 generic name; on: what that looks at: "first" argument, its "source" (which
    may be const), "second" argument (after a team), or "context" only.
    """

    def __init__(self, text, generic=None, on="first"):
        self.text, self.generic, self.on = text, generic, on
        found = re.fullmatch(r"(.*?)([\w{}]+)\((.*)\)", text, re.DOTALL)
        self.result, self.name, self.params = found.groups()

    def types(self):
        """The list of names that stands for the type T, or None."""
        for word in re.findall(r"{(\w+)}", self.name):
            if word in FAMILIES and not word.endswith(("_op", "sz")):
                return FAMILIES[word]
        return None

    def expand(self, family):
        for ctx in (False, True) if "{c}" in self.name else (False,):
            name = self.name.replace("{c}", "ctx_" if ctx else "")
            params = "shmem_ctx_t ctx, " + self.params if ctx else self.params
            params = "shmem_ctx_t ctx" if params == "shmem_ctx_t ctx, void" else params
            yield from self._expand(family, name, params, self.result, None, ctx)

    def _expand(self, family, name, params, result, type_name, ctx):
        found = re.search(r"{(\w+)}", name)
        if found is None:
            yield Routine(self, family, result, name, params, type_name, ctx)
            return
        for item in FAMILIES[found.group(1)]:
            new = [name.replace(found.group(0), item, 1), params, result]
            kind = type_name
            if item in C_TYPES:
                new[1:] = (re.sub(r"\bT\b", C_TYPES[item], s) for s in new[1:])
                kind = item
            yield from self._expand(family, *new, kind, ctx)


class Family:
    """Routines that share one description."""

    def __init__(self, title, section, since, text, *protos, deprecated=None):
        self.title, self.section, self.since, self.text = title, section, since, text
        self.protos, self.deprecated = protos, deprecated

    def routines(self):
        for proto in self.protos:
            yield from proto.expand(self)
