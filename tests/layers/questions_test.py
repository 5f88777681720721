#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The answers that CONTRIBUTING.md gives to questions about the code, and the functions that pages name with a file, are
where they say.

usage: questions_test.py ROOT
"""
import re
import sys
from pathlib import Path

SECTION = '## Where to find an answer'
PLACE = re.compile(r'`([\w/]+\.\w+)`(?:: `(?:struct )?(\w+)(?:\(\))?`)?')
PAIR = re.compile(r'`(\w+)\(\)`\*{0,2} \(`([\w/]+\.[ch])`')
SOURCES = ('provider', 'vipl', 'util', 'shmem', 'sock', 'tools', 'perf', 'kmod', 'java')
PAGE = re.compile(r'\]\((docs/[\w-]+\.md)\)(?:, «([^»]+)»)?')


def rows(text):
    """The cells of each row of the section's table, without its head."""
    table = re.findall(r'^\|(.*)\|$', text.partition(SECTION)[2].partition('\n## ')[0], re.MULTILINE)
    return [[cell.strip() for cell in row.split('|')] for row in table[2:]]


def defines(path, name):
    """Is a function or a variable of that name defined or declared there, and not just used?"""
    return re.search(rf'^(?!\s*(?:return|else)\b)[^;=(]*\b{name}\b(?:\(|\[| \{{)', path.read_text(encoding='utf-8'), re.MULTILINE)


def wrong_places(root, cell):
    """Lines about files that do not exist, and names that they do not define or declare."""
    for path, name in PLACE.findall(cell):
        if not (root / path).is_file():
            yield f'there is no {path}'
        elif name and not defines(root / path, name):
            yield f'{path} does not define {name}'
    for path, heading in PAGE.findall(cell):
        if not (root / path).is_file():
            yield f'there is no {path}'
        elif heading and not re.search(rf'^#+ (?:\d+\. )?{re.escape(heading)}$', (root / path).read_text(encoding='utf-8'),
                                       re.MULTILINE):
            yield f'{path} has no section «{heading}»'


def wrong_pairs(root):
    """Lines about functions of pages, `name()` (`file`), that such a file does not define."""
    sources = [path for folder in SOURCES for path in (root / folder).rglob('*.[ch]')]
    for page in sorted((root / 'docs').glob('*.md')):
        for number, line in enumerate(page.read_text(encoding='utf-8').splitlines(), 1):
            for name, file in PAIR.findall(line):
                if not any(defines(path, name) for path in sources if f'/{path}'.endswith(f'/{file}')):
                    yield f'docs/{page.name}:{number}: no {file} defines {name}'


def main():
    root = Path(sys.argv[1])
    found = rows((root / 'CONTRIBUTING.md').read_text(encoding='utf-8'))
    lines = [f'{row[0]}: {line}' for row in found for cell in row[1:] for line in wrong_places(root, cell)]
    lines += [f'{row[0]}: says no place' for row in found if not PLACE.search(row[1]) and not PAGE.search(row[1])]
    lines += wrong_pairs(root)
    print('\n'.join(lines) or f'{len(found)} questions')
    return 1 if lines or len(found) < 20 else 0


if __name__ == '__main__':
    sys.exit(main())
