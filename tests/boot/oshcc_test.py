#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the compiler wrappers.

OSHCC and OSHCXX name them, SOURCE the source tree and BUILD the build.
"""
import os
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

WRAPPERS = {'SHMEM_CC': os.environ.get('OSHCC', 'oshcc'), 'SHMEM_CXX': os.environ.get('OSHCXX', 'oshc++')}
INCLUDES = [f"{os.environ.get('BUILD', '')}/shmem/include"]
LIBDIR = f"{os.environ.get('BUILD', '')}/shmem/lib"
COMPILE = [f'-I{folder}' for folder in INCLUDES]
LINK = [f'-L{LIBDIR}', f'-Wl,-rpath,{LIBDIR}', '-lviaduct-shmem']
PATIENCE = limit(60)


class Wrapper(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_wrapper(self, variable, *args, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(('SHMEM_', 'OSHC'))}
        return subprocess.run([WRAPPERS[variable], *args], env={**clean, **env}, text=True, timeout=PATIENCE,
                              capture_output=True, check=False, cwd=self.folder)

    def words(self, variable, *args, **env):
        out = self.run_wrapper(variable, *args, **env)
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        return shlex.split(out.stdout)

    def script(self, name, text):
        path = self.folder / name
        path.write_text(f'#!/bin/sh\n{text}\n')
        path.chmod(0o755)
        return str(path)

    def each(self):
        for variable in WRAPPERS:
            with self.subTest(variable):
                yield variable

    def test_show(self):
        for variable in self.each():
            for option in ('-show', '--show', '-showme', '--showme'):
                compiler, *rest = self.words(variable, option, 'a b.c', '-o', "it's")
                self.assertEqual(rest, [*COMPILE, 'a b.c', '-o', "it's", *LINK])
                self.assertNotIn('osh', Path(compiler).name)
            self.assertEqual(self.words(variable, '-c', 'a.c', '-showme', '-o', 'a b')[1:],
                             [*COMPILE, '-c', 'a.c', '-o', 'a b'])
            self.assertEqual(self.words(variable, '-O2', '--showme:link'), LINK)
            self.assertEqual(self.words(variable, '-show')[1:], COMPILE + LINK)
            self.assertEqual(self.words(variable, '-show', '-c', 'a.c')[1:], [*COMPILE, '-c', 'a.c'])

    def test_parts(self):
        for variable in self.each():
            self.assertEqual(self.words(variable, '--showme:compile'), COMPILE)
            self.assertEqual(self.words(variable, '-showme:link'), LINK)
            self.assertEqual(self.words(variable, '--showme:incdirs'), INCLUDES)
            self.assertEqual(self.words(variable, '--showme:libdirs'), [LIBDIR])
            self.assertEqual(self.words(variable, '--showme:libs'), ['viaduct-shmem'])
            self.assertEqual(self.words(variable, '--showme:command', **{variable: 'cc -m64'}), ['cc', '-m64'])
            self.assertIn('(Viaduct)', self.words(variable, '--showme:version'))
            self.assertTrue(self.run_wrapper(variable, '--showme:help').stdout.startswith('Usage: osh'))
            self.assertEqual(self.run_wrapper(variable, '--showme:none').returncode, 1)

    def test_arguments_reach_the_compiler(self):
        compiler = self.script('compiler', 'for word; do echo "<$word>"; done; exit 5')
        for variable in self.each():
            out = self.run_wrapper(variable, 'a  b.c', '', '$x', '*', **{variable: compiler + ' -first'})
            self.assertEqual(out.returncode, 5)
            self.assertEqual(out.stdout.splitlines(),
                             [f'<{word}>' for word in ('-first', *COMPILE, 'a  b.c', '', '$x', '*', *LINK)])

    def test_linking(self):
        compiler = self.script('compiler', 'echo "$@"')
        for args, links in ((['a.c'], True), (['-o', 'a', 'a.o'], True), (['-xc', '-'], True), (['-c', 'a.c'], False),
                            (['-E', 'a.c'], False), (['-MM', 'a.c'], False), (['--version'], False), (['-v'], False),
                            ([], False)):
            out = self.run_wrapper('SHMEM_CC', *args, SHMEM_CC=compiler)
            self.assertEqual('-lviaduct-shmem' in out.stdout, links, args)

    def test_order_of_variables(self):
        self.assertEqual(self.words('SHMEM_CC', '-show', SHMEM_CC='one', OSHCC_CC='two')[0], 'one')
        self.assertEqual(self.words('SHMEM_CC', '-show', SHMEM_CC='', OSHCC_CC='two', CC='three')[0], 'two')
        self.assertNotEqual(self.words('SHMEM_CC', '-show', CC='three')[0], 'three')

    def test_wrappers_as_compilers(self):
        for variable in self.each():
            for value in ('oshcc', 'ccache oshcc', '/usr/bin/shmemcc', WRAPPERS[variable]):
                out = self.run_wrapper(variable, 'a.c', **{variable: value})
                self.assertEqual((out.returncode, out.stderr.count('\n')), (1, 1))
                self.assertIn(f'{variable} names the wrapper', out.stderr)
            again = self.script('again', f'exec {WRAPPERS[variable]} "$@"')
            out = self.run_wrapper(variable, 'a.c', **{variable: again})
            self.assertEqual(out.returncode, 1)
            self.assertIn('has called this wrapper again', out.stderr)

    def test_no_compiler(self):
        out = self.run_wrapper('SHMEM_CC', 'a.c', SHMEM_CC='/none/cc')
        self.assertEqual((out.returncode, out.stderr), (1, 'oshcc: the compiler /none/cc (SHMEM_CC) is not there\n'))

    def test_what_cannot_be_linked(self):
        for variable in self.each():
            for option in ('-static', '-static-pie', '-m32'):
                out = self.run_wrapper(variable, option, 'a.c')
                self.assertEqual((out.returncode, out.stderr.count('\n')), (1, 1), out.stderr)
                self.assertRegex(out.stderr, f'{option}: .*; leave {option} out')

    def test_compiles(self):
        (self.folder / 'a.c').write_text('int main(void) { return 0; }\n')
        for variable in self.each():
            out = self.run_wrapper(variable, '-c', 'a.c', '-o', 'a.o')
            self.assertEqual((out.returncode, out.stderr), (0, ''))
            self.assertTrue((self.folder / 'a.o').exists())


if __name__ == '__main__':
    unittest.main(verbosity=2)
