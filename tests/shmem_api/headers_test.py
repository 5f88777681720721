#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The headers of OpenSHMEM, each alone and as programs use them, compile without a warning.

usage: headers_test.py INCLUDE_DIR SOURCE_DIR --cc COMPILER... --cxx COMPILER...
"""
import pathlib
import subprocess
import sys

WARN = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
# Further warnings that other programs enable; they also check what the macros of the headers expand to.
MORE = {"c": ["-Wcast-qual", "-Wconversion", "-Wundef"],
        "c++": ["-Wold-style-cast", "-Wuseless-cast", "-Wcast-qual", "-Wconversion", "-Wundef"]}
C = ["c99", "c11", "c17", "gnu99", "gnu11"]
OLD = {"c": ["c90", "gnu90"], "c++": ["c++98", "gnu++98"]}
CXX = ["c++11", "c++17", "gnu++17"]
HEADERS = ["shmem.h", "shmemx.h", "pshmem.h", "mpp/shmem.h", "mpp/shmemx.h"]
ALONE = "#include <{0}>\n#include <{0}>\nint main(void) {{ return SHMEM_TEAM_WORLD == SHMEM_TEAM_INVALID ||\n" \
        "SHMEM_TEAM_SHARED == SHMEM_TEAM_WORLD || SHMEM_CTX_DEFAULT == SHMEM_CTX_INVALID; }}\n"

# Programs that must not compile: each has one error, in the marked line.
WRONG_C11 = {
    "a type without put": "int main(void) { struct s { int i; } a = {0}; shmem_put(&a, &a, 1, 0); return 0; }",
    "a type without put, on a context":
        "int main(void) { struct s { int i; } a = {0}; "
        "shmem_put(SHMEM_CTX_DEFAULT, &a, &a, 1, 0); return 0; }",
    "atomic addition of floats":
        "int main(void) { float f = 0; shmem_atomic_add(&f, 1.0f, 0); return 0; }",
    "bits of signed long long":
        "int main(void) { long long x = 0; shmem_atomic_and(&x, 1LL, 0); return 0; }",
    "a variable that is not used": "int main(void) { int unused; return 0; }",
    "a context for a team": "int main(void) { return shmem_team_sync(SHMEM_CTX_DEFAULT); }",
}


def compiles(compiler, standard, language, include, text, more=()):
    """The complaints of the compiler, None if there are none."""
    done = subprocess.run(compiler + [f"-std={standard}", "-x", language, f"-I{include}"] + WARN + [*more, "-"],
                          input=text, capture_output=True, text=True, check=False)
    return done.stderr or f"exit code {done.returncode}" if done.returncode else None


def main():
    include, source = sys.argv[1], pathlib.Path(sys.argv[2])
    rest = sys.argv[3:]
    middle = rest.index("--cxx")
    compilers = {"c": rest[1:middle], "c++": rest[middle + 1:]}
    texts = {name: ALONE.format(name) for name in HEADERS}
    for name in ("constants.c", "generics.c"):
        texts[name] = (source / name).read_text(encoding="utf-8")
    failed = count = 0
    for language, standards in (("c", C), ("c++", CXX)):
        for standard in standards + OLD[language]:
            for name, text in texts.items():
                if name == "generics.c" and standard in ("c99", "gnu99"):
                    continue
                if name not in HEADERS and standard in OLD[language]:
                    continue
                count += 1
                complaint = compiles(compilers[language], standard, language, include, text,
                                     MORE[language] if name in HEADERS else ())
                if complaint:
                    failed += 1
                    print(f"{name} with -std={standard}: {complaint[:2000]}")
    for what, text in WRONG_C11.items():
        count += 1
        if compiles(compilers["c"], "c11", "c", include, "#include <shmem.h>\n" + text) is None:
            failed += 1
            print(f"compiles, and must not: {what}")
    print(f"{count} compilations, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
