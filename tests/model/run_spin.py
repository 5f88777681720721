#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks a Promela model exhaustively, and that the variants given as bad fail.

usage: run_spin.py MODEL [--plain] [--good DEFS ...] [--bad DEFS ...]   (DEFS: comma-separated macros)
--plain: searches are not optimized; for models that take longer to compile than to search.
Exit 77 (skip) when spin is not installed.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile


def verify(model, defs, folder, level):
    """Returns (errors, states) of an exhaustive search; gcc takes longer than most searches that fail."""
    flags = ['-D' + d for d in defs.split(',') if d]
    subprocess.run(['spin', *flags, '-a', model], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(['gcc', level, '-w', '-DSAFETY', '-DCOLLAPSE', '-DMEMLIM=2048', '-o', 'pan',
                    'pan.c'], cwd=folder, check=True)
    out = subprocess.run(['./pan', '-m100000', '-n'], cwd=folder, check=True, text=True,
                         capture_output=True).stdout
    line = next(l for l in out.splitlines() if 'errors:' in l)
    states = next(l for l in out.splitlines() if 'states, stored' in l).split()[0]
    if 'error: max search depth too small' in out or 'Search not completed' in out:
        if int(line.split('errors:')[1]) == 0:
            raise SystemExit('the search was not exhaustive:\n' + out)
    return int(line.split('errors:')[1]), states


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model')
    parser.add_argument('--plain', action='store_true')
    parser.add_argument('--good', nargs='*', default=[''])
    parser.add_argument('--bad', nargs='*', default=[])
    args = parser.parse_args()
    if shutil.which('spin') is None:
        print('skipped: spin is not installed (apt-get install spin)')
        return 77
    failed = 0
    for want, variants in ((0, args.good), (1, args.bad)):
        for defs in variants:
            with tempfile.TemporaryDirectory() as folder:
                errors, states = verify(os.path.abspath(args.model), defs, folder,
                                        '-O0' if want or args.plain else '-O2')
            ok = (errors > 0) == bool(want)
            failed += not ok
            print(f"{'ok  ' if ok else 'FAIL'} {defs or 'as built'}: {errors} errors, "
                  f"{states} states ({'must fail' if want else 'must hold'})")
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
