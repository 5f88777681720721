#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that README.md shows only what exists: readme_test.py SOURCE BUILD

- the lines of C are lines of examples/mail.c, in their order, and few;
- pictures and pages to which it refers exist;
- the folders that it puts into PATH hold the tools of its table and what its lines call.
"""
import os
import re
import sys

LINES = 15
PROGRAMS = {'hello', 'oshcc', 'oshrun', 'vi_run'}


def lines_of_c(text, source):
    """Errors of the lines of C in the text."""
    with open(os.path.join(source, 'examples/mail.c'), encoding='utf-8') as file:
        rest = iter([line.strip() for line in file])
    shown = [line.strip() for block in re.findall(r'^```c\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
             for line in block.splitlines() if line.strip()]
    if not 0 < len(shown) <= LINES:
        yield f'{len(shown)} lines of C, 1 to {LINES} sought'
    for line in shown:
        if line not in rest:  # takes from the iterator what comes before
            yield f'no line of examples/mail.c, or not in its order: {line}'


def references(text, source):
    for name in re.findall(r'\]\(([^)#:]+)\)', text):
        if not os.path.exists(os.path.join(source, name)):
            yield f'it refers to {name}, which is not there'


def programs(text, build):
    folders = [os.path.join(build, path) for line in re.findall(r'^ +export PATH=(.*)$', text, re.MULTILINE)
               for path in re.findall(r'\$PWD/build/([^:]*):', line)]
    table = [line.split('|')[1] for line in text.splitlines() if line.startswith('| `vi_')]
    for name in sorted(PROGRAMS.union(*(re.findall(r'`(vi_\w+)`', tools) for tools in table))):
        if not any(os.access(os.path.join(folder, name), os.X_OK) for folder in folders):
            yield f'{name} is in no folder that it puts into PATH'


def main():
    source, build = sys.argv[1:3]
    with open(os.path.join(source, 'README.md'), encoding='utf-8') as file:
        text = file.read()
    wrong = [*lines_of_c(text, source), *references(text, source), *programs(text, build)]
    print('\n'.join(wrong) or 'README.md shows what is there')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
