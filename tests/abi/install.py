#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The installed tree is complete: a program finds header and library by pkg-config and runs.

usage: install.py BUILD_DIR SOURCE PREFIX --cc COMPILER...

Exit 77 (skipped) without pkg-config.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from compat import start_agent  # noqa: E402

FABRIC = f'installed-{os.getpid()}'


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=100, **options)
    if done.returncode:
        sys.exit(f'{" ".join(map(str, command))}: exit {done.returncode}\n{done.stdout}')
    return done.stdout


def find(root, name):
    found = sorted(root.rglob(name))
    if not found:
        sys.exit(f'{name} is not installed')
    return found[0]


def pkg_config(root, prefix, *arguments):
    pc = find(root, 'vipl.pc')
    moved = root / pathlib.Path(prefix).relative_to('/')
    env = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent))
    return run(['pkg-config', f'--define-variable=prefix={moved}', *arguments, 'vipl'],
               env=env).split()


def build(kind, root, prefix, source, compiler):
    """shared: libvipl.so; static: libvipl.a beside a shared C library; whole: nothing shared."""
    static = [] if kind == 'shared' else ['--static']
    flags = pkg_config(root, prefix, '--cflags', '--libs', *static)
    if kind == 'static':
        flags = [part for flag in flags for part in
                 (['-Wl,-Bstatic', flag, '-Wl,-Bdynamic'] if flag == '-lvipl' else [flag])]
    elif kind == 'whole':
        flags.append('-static')
    exe = root / f'installed-{kind}'
    run(compiler + ['-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror', '-o', str(exe), source]
        + flags)
    return exe


def needed(exe):
    """The shared libraries the program asks for."""
    lines = run(['readelf', '-d', str(exe)]).splitlines()
    return [line.split('[')[1].rstrip(']') for line in lines if '(NEEDED)' in line]


def check_needed(kind, exe):
    found = needed(exe)
    wrong = {'shared': 'libvipl.so.1' not in found, 'whole': bool(found),
             'static': any('vipl' in name for name in found)}[kind]
    if wrong:
        sys.exit(f'the {kind} program needs {found}')


def main(argv):
    build_dir, source, prefix = argv[1:4]
    compiler = argv[argv.index('--cc') + 1:]
    if not shutil.which('pkg-config'):
        return 77
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        run(['meson', 'install', '--no-rebuild', '--quiet', '-C', build_dir,
             '--destdir', directory])
        library = find(root, 'libvipl.so.1').parent
        find(root, 'VipPostSend.3')
        find(root, 'vipl.7')
        headers = {p.name for p in find(root, 'vipl.h').parent.iterdir()}
        if headers != {'vipl.h', 'vipl_ext.h'}:
            sys.exit(f'installed headers are {sorted(headers)}, expected vipl.h and vipl_ext.h')
        version = pkg_config(root, prefix, '--modversion')
        find(root, 'libvipl.a')
        agent = start_agent(str(find(root, 'viaductd')), FABRIC)
        try:
            for kind in ('shared', 'static', 'whole'):
                exe = build(kind, root, prefix, source, compiler)
                check_needed(kind, exe)
                env = dict(os.environ, VIADUCT_AGENT='none', VIADUCT_FABRIC=FABRIC)
                env.pop('LD_LIBRARY_PATH', None)
                if kind == 'shared':
                    env['LD_LIBRARY_PATH'] = str(library)
                print(kind, run([str(exe)] + version, env=env).strip())
        finally:
            agent.terminate()
            agent.wait(timeout=100)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
