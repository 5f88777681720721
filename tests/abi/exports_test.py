#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""libvipl exports exactly what vipl.map names, which is exactly what the headers declare.

usage: exports_test.py LIBRARY MAP HEADER...
"""
import pathlib
import re
import subprocess
import sys


def from_map(path):
    """{symbol: node}"""
    symbols = {}
    text = re.sub(r'/\*.*?\*/', '', pathlib.Path(path).read_text(), flags=re.S)
    for node, body in re.findall(r'([\w.]+)\s*\{(.*?)\}[^;]*;', text, re.S):
        body = body.split('local:')[0].split('global:')[-1]
        symbols.update({name: node for name in re.findall(r'(\w+);', body)})
    return symbols


def from_library(path):
    out = subprocess.run(['readelf', '--dyn-syms', '--wide', path], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    symbols = {}
    for line in out.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ('GLOBAL', 'WEAK') and fields[6] not in ('UND', 'ABS'):
            name, _, node = fields[7].partition('@')
            symbols[name] = node.lstrip('@')
    return symbols


def from_headers(paths):
    names = set()
    for path in paths:
        text = re.sub(r'/\*.*?\*/', '', pathlib.Path(path).read_text(), flags=re.S)
        names |= set(re.findall(r'^[\w ]+?[ *](Vipx?[A-Z]\w*)\(', text, re.M))
    return names


def difference(what, left, right):
    for item in sorted(left - right):
        print(f'{what}: {item}')
    return bool(left - right)


def main(argv):
    library, wanted, declared = from_library(argv[1]), from_map(argv[2]), from_headers(argv[3:])
    bad = difference('in the map, not exported', set(wanted.items()), set(library.items()))
    bad |= difference('exported, not in the map', set(library.items()), set(wanted.items()))
    bad |= difference('declared, not in the map', declared, set(wanted))
    bad |= difference('in the map, not declared', set(wanted), declared)
    for name, node in wanted.items():
        if not node.startswith('VIPLX_1.' if name.startswith('Vipx') else 'VIPL_1.0'):
            bad = True
            print(f'{name} is in node {node}')
    print(f'{len(library)} symbols exported')
    return 1 if bad or not library else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
