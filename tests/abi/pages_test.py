#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every exported function and every option has its page, and no page makes the formatter complain.

usage: pages_test.py DIRECTORY MAP...

A function of libvistream.so has the page of its name in the source (st_names.h).
"""
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from exports_test import from_map  # noqa: E402

NEEDED = ('SYNOPSIS', 'RETURN VALUE', 'CONTEXT', 'OWNERSHIP', 'SEE ALSO')


def formatted(page):
    done = subprocess.run(['groff', '-man', '-ww', '-Tutf8', '-rLL=100n', str(page)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.stdout, done.stderr


def options(text):
    """The options that a tool's --help lists."""
    return re.findall(r'^ +(?:-\w, )?(--[a-z-]+)', text.read_text(), re.M) if text.exists() else []


def main(argv):
    directory, bad = pathlib.Path(argv[1]), 0
    pages = sorted(p for p in directory.iterdir() if p.suffix in ('.1', '.3', '.7'))
    names = {p.name for p in pages}
    exported = {name for path in argv[2:] for name in from_map(path)}
    for missing in sorted({re.sub('^vistream_', 'st_', name) + '.3' for name in exported} - names):
        print(f'no page {missing}')
        bad += 1
    overviews = {'vipl.7', 'viaduct.7'} | ({'vistream.7'} if len(argv) > 3 else set())
    for missing in sorted(overviews - names):
        print(f'no page {missing}')
        bad += 1
    for page in pages:
        source = page.read_text()
        if page.suffix == '.3':
            for heading in NEEDED:
                if f'.SH {heading}\n' not in source:
                    print(f'{page.name}: no section {heading}')
                    bad += 1
        for option in options(directory / f'{page.stem}.txt') if page.suffix == '.1' else ():
            if option.replace('-', '\\-') not in source:
                print(f'{page.name}: option {option} is not named')
                bad += 1
        if any(line.startswith('@') for line in source.splitlines()):
            print(f'{page.name}: a line of the template was not replaced')
            bad += 1
        if shutil.which('groff'):
            text, warnings = formatted(page)
            if warnings or not text.strip():
                print(f'{page.name}: {warnings or "empty"}')
                bad += 1
    print(f'{len(pages)} pages' + ('' if shutil.which('groff') else ', not formatted: no groff'))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
