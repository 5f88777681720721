#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mkman.py makes pages from comments, and refuses a comment that does not fit its function.

usage: mkman_test.py MKMAN
"""
import pathlib
import subprocess
import sys
import tempfile

GOOD = '''/**
 * VipThing - do it
 * @First: in, the first
 *	and more of it
 * @Handler: in, a handler
 *
 * A paragraph with VIP_SUCCESS and VipThing().
 *
 * Ownership: nothing.
 *
 * Return:
 *  - VIP_SUCCESS: done
 *    so
 *
 * Context: none.
 *
 * Ordering: none.
 *
 * Since: 1.0
 * Spec: VIPL 1.0
 */
VIP_RETURN VipThing(VIP_ULONG First, void (*Handler)(VIP_ULONG, int));
'''
STREAM = '''/* ---- things ---- */

/**
 * st_thing - do it
 * @s: in, the caller's stream
 * @iov: in, elements of `iov`
 *
 * Ownership: the caller's.
 *
 * Return:
 *  - above 0: done
 *  - -EMFILE, -ENFILE: no descriptor
 *
 * Context: does not block.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_thing(struct st_stream *s, const struct iovec *iov);
'''
STREAM_WANTED = ('VI Provider Library', False), ('\\-lvistream', True), ("the caller's stream", True), (
    'elements of \\fIiov\\fP', True), ('.B above 0\ndone', True), ('.B \\-EMFILE, \\-ENFILE\nno', True), (
    '.BR vistream (7)', True), ('STANDARDS', False)
BAD = {
    'a parameter that is not documented': (' * @First: in, the first\n *\tand more of it\n', ''),
    'a parameter that does not exist': ('@First', '@Second'),
    'no return codes': (' * Return:\n *  - VIP_SUCCESS: done\n *    so\n', ''),
    'another function': (' * VipThing - do it', ' * VipOther - do it'),
    'no effect': (' * VipThing - do it', ' * VipThing'),
    'no comment': (GOOD[:GOOD.index('VIP_RETURN')], ''),
}


def mkman(script, text, directory, name='vipl.h'):
    header = pathlib.Path(directory, name)
    header.write_text(text)
    return subprocess.run([sys.executable, script, 'functions', '9.9', directory, str(header)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def main(argv):
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        done = mkman(argv[1], GOOD, directory)
        page = pathlib.Path(directory, 'VipThing.3')
        text = page.read_text() if page.exists() else done.stderr
        for wanted in ('.I First\nin, the first and more of it\n', '.B VIP_SUCCESS\ndone so\n',
                       'Viaduct 9.9', '.SH STANDARDS\nVIPL 1.0\n'):
            if wanted not in text:
                failed += 1
                print(f'not found: {wanted!r} in\n{text}')
        done = mkman(argv[1], STREAM, directory, 'st_stream.h')
        page = pathlib.Path(directory, 'st_thing.3')
        text = page.read_text() if page.exists() else done.stderr
        for wanted, there in STREAM_WANTED:
            if (wanted in text) != there:
                failed += 1
                print(f'{"not " if there else ""}found: {wanted!r} in\n{text}')
        for what, (old, new) in BAD.items():
            assert old in GOOD
            done = mkman(argv[1], GOOD.replace(old, new, 1), directory)
            if done.returncode != 1 or 'mkman.py: ' not in done.stderr:
                failed += 1
                print(f'{what}: exit {done.returncode}, {done.stderr!r}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
