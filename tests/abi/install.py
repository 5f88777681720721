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
    static = ['--static'] if kind == 'static' else []
    flags = pkg_config(root, prefix, '--cflags', '--libs', *static)
    if kind == 'static':
        archive = str(find(root, 'libvipl.a'))
        flags = [archive if flag == '-lvipl' else flag for flag in flags]
    exe = root / f'installed-{kind}'
    run(compiler + ['-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror', '-o', str(exe), source]
        + flags)
    return exe


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
        kinds = ['shared'] + (['static'] if list(root.rglob('libvipl.a')) else [])
        if 'static' not in kinds:
            print('no libvipl.a is installed: static linking not tried')
        for kind in kinds:
            exe = build(kind, root, prefix, source, compiler)
            env = dict(os.environ)
            env.pop('LD_LIBRARY_PATH', None)
            if kind == 'shared':
                env['LD_LIBRARY_PATH'] = str(library)
            print(kind, run([str(exe)] + version, env=env).strip())
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
