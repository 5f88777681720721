#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Installs names by which programs look for an OpenSHMEM, beside those of Viaduct (-Dshmem_names=true).

usage: install_names.py PREFIX BINDIR LIBDIR VERSION

`pkg-config` finds sandia-openshmem, osss-ucx, oshmem and sma, the linker -lsma and -loshmem, a shell shmemcc, shmemc++
and shmemcxx. A name that another OpenSHMEM has is left alone, with a line. DESTDIR is put before all paths.
"""
import os
import sys

MODULES = ('sandia-openshmem', 'osss-ucx', 'oshmem', 'sma')
LIBRARIES = ('libsma.so', 'liboshmem.so')
WRAPPERS = {'shmemcc': 'oshcc', 'shmemc++': 'oshc++', 'shmemcxx': 'oshc++'}
LIBRARY = 'libviaduct-shmem.so'
MODULE = """# Made by Viaduct, whose OpenSHMEM is viaduct-shmem.
Name: {name}
Description: OpenSHMEM 1.6: viaduct-shmem by another name
Version: {version}
Requires: viaduct-shmem
"""


def is_ours(path, target):
    """Is the name free, or was it given by an earlier installation?"""
    if os.path.islink(path):
        return os.readlink(path) == target
    if target is None and os.path.isfile(path):
        with open(path, encoding='utf-8', errors='replace') as file:
            return 'Requires: viaduct-shmem\n' in file.read()
    return not os.path.lexists(path)


def install(path, target, text=None):
    if not is_ours(path, target):
        print(f'{path} is of another OpenSHMEM and stays as it is')
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    if target is None:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
    else:
        os.symlink(target, path)
    print(f'Installing {path}')


def main():
    prefix, bindir, libdir, version = sys.argv[1:5]

    def place(folder, name):
        path = os.path.join(prefix, folder, name)
        return os.environ.get('DESTDIR', '') + path
    for name in MODULES:
        install(place(libdir, f'pkgconfig/{name}.pc'), None, MODULE.format(name=name, version=version))
    for name in LIBRARIES:
        install(place(libdir, name), LIBRARY)
    for name, target in WRAPPERS.items():
        install(place(bindir, name), target)


if __name__ == '__main__':
    main()
