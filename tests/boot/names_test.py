#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names of other OpenSHMEM libraries: names_test.py INSTALL_NAMES BUILD CC...  Exit 77 (skipped) without pkg-config."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MODULES = ('sandia-openshmem', 'osss-ucx', 'oshmem', 'sma')
PROGRAM = '#include <shmem.h>\nint main(void) { shmem_init(); shmem_finalize(); return 0; }\n'
failures = []


def check(what, good, more=''):
    print('ok  ' if good else 'FAIL', what, '' if good else more)
    if not good:
        failures.append(what)


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


def needs_ours(program):
    return 'libviaduct-shmem.so.1' in run('readelf', '-d', program).stdout


def main():
    script, build, *compiler = sys.argv[1:]
    if not shutil.which('pkg-config'):
        return 77
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory, 'there')
        lib = root / 'lib'
        (lib / 'pkgconfig').mkdir(parents=True)
        (root / 'bin').mkdir()
        (lib / 'libviaduct-shmem.so').symlink_to(f'{build}/shmem/lib/libviaduct-shmem.so')
        module = pathlib.Path(build, 'meson-private/viaduct-shmem.pc').read_text(encoding='utf-8')
        for name, value in (('libdir', lib), ('includedir', f'{build}/shmem/include')):
            module = re.sub(rf'(?m)^{name}=.*$', f'{name}={value}', module)
        (lib / 'pkgconfig/viaduct-shmem.pc').write_text(module, encoding='utf-8')
        (lib / 'liboshmem.so').write_text('of another', encoding='utf-8')
        (root / 'bin/shmemcc').symlink_to('opal_wrapper')
        source = root / 'a.c'
        source.write_text(PROGRAM, encoding='utf-8')

        for time in ('first', 'second'):
            done = run(sys.executable, script, str(root), 'bin', 'lib', '1.2.3')
            check(f'the {time} installation', done.returncode == 0 and done.stdout.count('stays as it is') == 2,
                  done.stdout + done.stderr)
        check('a library of another stays', (lib / 'liboshmem.so').read_text(encoding='utf-8') == 'of another')
        check('a wrapper of another stays', os.readlink(root / 'bin/shmemcc') == 'opal_wrapper')
        check('a free wrapper is ours', os.readlink(root / 'bin/shmemc++') == 'oshc++')
        beneath = f'-Wl,-rpath-link,{build}/vipl/lib'  # the folder of libvipl.so.1, in an installation the same folder
        env = dict(os.environ, PKG_CONFIG_PATH=str(lib / 'pkgconfig'))
        for name in MODULES:
            out = root / name
            flags = run('pkg-config', '--cflags', '--libs', name, env=env).stdout.split()
            done = run(*compiler, '-o', str(out), str(source), *flags, beneath)
            check(f'pkg-config {name}', done.returncode == 0 and needs_ours(str(out)), done.stderr)
        done = run(*compiler, '-o', str(root / 'l'), str(source), f'-I{build}/shmem/include', f'-L{lib}', '-lsma', beneath)
        check('-lsma', done.returncode == 0 and needs_ours(str(root / 'l')), done.stderr)
        moved = dict(os.environ, DESTDIR=str(root / 'dest'))
        run(sys.executable, script, '/opt/x', 'bin', 'lib', '1.2.3', env=moved)
        check('below DESTDIR', (root / 'dest/opt/x/lib/libsma.so').is_symlink())
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
