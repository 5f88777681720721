#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The units of a folder have an order, that of their sources in its meson.build, and a unit uses only those before it.

    units_test.py [--includes] TARGET SOURCE...

TARGET is a library or program that was built from the C files SOURCE, named in their order.  Reads the symbols that
each object file defines and needs, and fails with a line for each symbol that is defined in a later unit.

With --includes a unit is its C file and the header of that name in its folder, and an include is a use as well, which
symbols do not show for types and inline functions.  A header without a C file has no place in the order: what it
includes is used by each unit that includes it.
"""
import os
import re
import subprocess
import sys


def objects_of(target):
    """The object files of a target by the names that Meson gave them, without `.o`."""
    folder = target + '.p'
    return {name[:-len('.o')]: os.path.join(folder, name)
            for name in sorted(os.listdir(folder)) if name.endswith('.c.o')}


def object_of(found, source):
    """The object file of a source, whose name has the folders below the target's before it, with underscores."""
    parts = source.split(os.sep)
    for first in range(len(parts) - 1, -1, -1):
        name = '_'.join(parts[first:])
        if name in found:
            return found[name]
    sys.exit(f'units_test.py: no object file was made from {source}')


def symbols(path):
    """The symbols that an object file defines for others, and those that it needs."""
    defined, needed = set(), set()
    out = subprocess.run(['nm', '-g', '-P', path], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        name, kind = line.split()[:2]
        (needed if kind in 'Uvw' else defined).add(name)
    return defined, needed


def upward(sources, tables):
    """Lines that name each use of a later unit by an earlier one."""
    home = {name: i for i, (defined, _) in enumerate(tables) for name in defined}
    lines = []
    for i, (_, needed) in enumerate(tables):
        for name in sorted(needed):
            if home.get(name, i) > i:
                lines.append(f'{sources[i]} needs {name} of {sources[home[name]]}, which comes after it')
    return lines


def included(path):
    """The names in the #include lines with quotes of a file."""
    with open(path, encoding='utf-8') as file:
        return re.findall(r'^#include "([^"/]+)"', file.read(), re.MULTILINE)


def used_headers(source, own, headers, homes):
    """The headers of units, keys of `homes`, that a unit includes, also by headers without a C file."""
    left, seen = included(source) + (included(headers[own]) if own in homes else []), {own}
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            if name in headers and name not in homes:
                left += included(headers[name])
    return sorted(seen & homes.keys())


def upward_includes(sources):
    """Lines that name each include of a later unit's header by an earlier unit."""
    headers = {name: os.path.join(folder, name) for folder in {os.path.dirname(s) or '.' for s in sources}
               for name in os.listdir(folder) if name.endswith('.h')}
    owns = [os.path.splitext(os.path.basename(s))[0] + '.h' for s in sources]
    homes = {own: i for i, own in enumerate(owns) if os.path.exists(os.path.splitext(sources[i])[0] + '.h')}
    return [f'{source} includes {name} of {sources[homes[name]]}, which comes after it'
            for i, source in enumerate(sources) for name in used_headers(source, owns[i], headers, homes)
            if homes[name] > i]


def main(args):
    includes = args[1:2] == ['--includes']
    args = args[includes:]
    if len(args) < 3:
        sys.exit('usage: units_test.py [--includes] TARGET SOURCE...')
    target, sources = args[1], args[2:]
    found = objects_of(target)
    if len(found) != len(sources):
        sys.exit(f'units_test.py: {target} was built from {len(found)} C files, {len(sources)} are listed')
    lines = upward(sources, [symbols(object_of(found, s)) for s in sources])
    lines += upward_includes(sources) if includes else []
    print('\n'.join(lines) or f'{len(sources)} units, no upward use')
    return 1 if lines else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
