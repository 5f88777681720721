#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The answers that CONTRIBUTING.md gives to questions about the code are where it says.

usage: questions_test.py ROOT
"""
import re
import sys
from pathlib import Path

SECTION = '## Where to find an answer'
PLACE = re.compile(r'`([\w/]+\.\w+)`(?:: `(?:struct )?(\w+)(?:\(\))?`)?')
PAGE = re.compile(r'\]\((docs/[\w-]+\.md)\)(?:, «([^»]+)»)?')


def rows(text):
    """The cells of each row of the section's table, without its head."""
    table = re.findall(r'^\|(.*)\|$', text.partition(SECTION)[2].partition('\n## ')[0], re.MULTILINE)
    return [[cell.strip() for cell in row.split('|')] for row in table[2:]]


def wrong_places(root, cell):
    """Lines about files that do not exist, and names that they do not define or declare."""
    for path, name in PLACE.findall(cell):
        if not (root / path).is_file():
            yield f'there is no {path}'
        elif name and not re.search(rf'^(?!\s*(?:return|else)\b)[^;=(]*\b{name}\b(?:\(|\[| \{{)', (root / path).read_text(encoding='utf-8'),
                                    re.MULTILINE):
            yield f'{path} does not define {name}'
    for path, heading in PAGE.findall(cell):
        if not (root / path).is_file():
            yield f'there is no {path}'
        elif heading and not re.search(rf'^#+ (?:\d+\. )?{re.escape(heading)}$', (root / path).read_text(encoding='utf-8'),
                                       re.MULTILINE):
            yield f'{path} has no section «{heading}»'


def main():
    root = Path(sys.argv[1])
    found = rows((root / 'CONTRIBUTING.md').read_text(encoding='utf-8'))
    lines = [f'{row[0]}: {line}' for row in found for cell in row[1:] for line in wrong_places(root, cell)]
    lines += [f'{row[0]}: says no place' for row in found if not PLACE.search(row[1]) and not PAGE.search(row[1])]
    print('\n'.join(lines) or f'{len(found)} questions')
    return 1 if lines or len(found) < 20 else 0


if __name__ == '__main__':
    sys.exit(main())
