#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The static probes of libvipl: every point is there, says where its arguments are, and is a nop.

usage: probes_test.py LIBRARY U_TRACE_H
"""
import pathlib
import re
import subprocess
import sys

NOP = {'x86-64': b'\x90', 'AArch64': b'\x1f\x20\x03\xd5'}


def readelf(*args):
    return subprocess.run(['readelf', '--wide', *args], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def points(header):
    text = pathlib.Path(header).read_text()
    body = re.search(r'enum u_trace_point \{(.*?)\}', text, re.S)[1]
    return set(re.findall(r'U_TRACE_([a-z]\w*),', body))


def probes(library):
    """[(name, address, arguments)]"""
    return [(name, int(where, 16), args.split()) for name, where, args in re.findall(
        r'Provider: viaduct\s+Name: (\w+)\s+Location: (0x[0-9a-f]+).*\n\s+Arguments: *(.*)',
        readelf('-n', library))]


def code_at(library, address, count):
    for line in readelf('-l', library).splitlines():
        load = re.match(r'\s+LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+)', line)
        if load:
            offset, start, size = (int(v, 16) for v in load.groups())
            if start <= address < start + size:
                with open(library, 'rb') as file:
                    file.seek(offset + address - start)
                    return file.read(count)
    return b''


def main(argv):
    library, wanted = argv[1], points(argv[2])
    found = probes(library)
    machine = re.search(r'Machine:.*?(x86-64|AArch64)', readelf('-h', library))
    bad = [f'{name} is missing' for name in wanted - {name for name, _, _ in found}]
    bad += [f'{name} is in no header' for name in {name for name, _, _ in found} - wanted]
    for name, address, args in found:
        if not all(re.fullmatch(r'-?[1248]@\S+', arg) for arg in args) or len(args) != 2:
            bad.append(f'{name} at {address:#x} has the arguments {args}')
        if machine and code_at(library, address, len(NOP[machine[1]])) != NOP[machine[1]]:
            bad.append(f'{name} at {address:#x} is not a nop')
    print('\n'.join(bad) or f'{len(found)} probes at {len(wanted)} points')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
