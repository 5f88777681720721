#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A build in a folder with an odd name, for a prefix where the loader does not look: elsewhere_test.py SOURCE"""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

PREFIX = '/opt/elsewhere'
OPTIONS = [f'-D{name}=disabled' for name in ('tests', 'man', 'java', 'sock', 'examples', 'pmix')]


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f'{shlex.join(map(str, command))}: exit {done.returncode}\n{done.stdout}')
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        build = root / 'it\'s $(touch run) "there"'
        run('meson', 'setup', build, sys.argv[1], f'--prefix={PREFIX}', '-Dshmem_names=true', *OPTIONS)
        said = run('sh', build / 'shmem/tools/oshcc', '--showme:libdirs', cwd=root)
        if shlex.split(said) != [str(build / 'shmem/lib')] or (root / 'run').exists():
            sys.exit(f'oshcc has its libraries in {said}')
        run('sh', build / 'shmem/tools/oshcc', '--showme:help', cwd=root)
        run('nice', 'ninja', '-C', build)
        run('meson', 'install', '--no-rebuild', '-C', build, '--destdir', root / 'dest')
        there = root / f'dest{PREFIX}'
        env = {name: value for name, value in os.environ.items() if name != 'LD_LIBRARY_PATH'}
        for name in ('vi_info', 'vi_lat', 'oshrun'):
            print(run(there / 'bin' / name, '--version', env=env).strip())
        library = next(there.rglob('libviaduct-shmem.so'))
        if 'not found' in run('ldd', library, env=env) or not (library.parent / 'libsma.so').exists():
            sys.exit(f'{library} does not find libvipl.so.1, or libsma.so is not beside it')
        if (there / 'bin/shmemcc').resolve().name != 'oshcc':
            sys.exit('shmemcc is not installed')
    return 0


if __name__ == '__main__':
    sys.exit(main())
