#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""libvistream exports exactly what its map names, which is what st_stream.h declares, by the names of st_names.h.

usage: vistream_test.py LIBRARY MAP ST_STREAM_H ST_NAMES_H COMPILER...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from exports_test import difference, from_library, from_map  # noqa: E402

PROGRAM = '''#include <viaduct/st_stream.h>
int main(void) { struct st_config c = { sizeof(c) }; return st_version() != ST_VERSION || st_init(&c) != 0; }
'''


def declared(path):
    text = re.sub(r'/\*.*?\*/', '', pathlib.Path(path).read_text(), flags=re.S)
    return set(re.findall(r'^\w[\w ]*?[ *](st_\w+)\(', text, re.M))


def renamed(path):
    return dict(re.findall(r'^#define (st_\w+) (\w+)$', pathlib.Path(path).read_text(), re.M))


def headers_compile(folder, compiler):
    """Compiles the headers as an installed program includes them, in C and in C++."""
    with tempfile.TemporaryDirectory() as scratch:
        (pathlib.Path(scratch) / 'viaduct').symlink_to(folder, target_is_directory=True)
        for language in ('c', 'c++'):
            done = subprocess.run([*compiler, '-x', language, '-fsyntax-only', '-Wall', '-Wextra', '-Werror',
                                   '-Wno-missing-field-initializers', f'-I{scratch}', '-'],
                                  input=PROGRAM, text=True, capture_output=True, check=False)
            if done.returncode:
                print(f'{language}: {done.stderr}')
                return False
    return True


def main(argv):
    library, wanted = from_library(argv[1]), from_map(argv[2])
    names = renamed(argv[4])
    bad = difference('in the map, not exported', set(wanted.items()), set(library.items()))
    bad |= difference('exported, not in the map', set(library.items()), set(wanted.items()))
    bad |= difference('declared, without another name', declared(argv[3]), set(names))
    bad |= difference('with another name, not declared', set(names), declared(argv[3]))
    bad |= difference('with another name, not in the map', set(names.values()), set(wanted))
    bad |= difference('in the map, not the name of a function', set(wanted), set(names.values()))
    bad |= not headers_compile(pathlib.Path(argv[3]).resolve().parent, argv[5:])
    print(f'{len(library)} symbols exported')
    return 1 if bad or not library else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
