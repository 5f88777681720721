#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of a PE under other launchers: Open MPI's mpirun, which has PMIx, and MPICH's mpiexec, which has PMI-1.

  launcher_test.py [CLASS[.METHOD]...]

BOOT_PE names the program; PMIX_MISSING says why the build has no PMIx.  A launcher that is not installed is
skipped.  The test itself also speaks PMI-1, correctly and wrongly.
"""
import contextlib
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import unittest

from launch import PATIENCE, PE, Case, environment

# libpmix never frees some of its memory, so only the tests of oshrun look for leaks.
os.environ['ASAN_OPTIONS'] = os.environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'


class Launcher:
    """The tests of one launcher; `command` starts n PEs."""
    command = ()
    name = ''

    def run_pes(self, n, *commands, **env):
        return subprocess.run([*self.command, '-np', str(n), PE, *commands], env=environment(**env), text=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def ok(self, n, *commands):
        out = self.run_pes(n, *commands)
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        return out.stdout

    def test_exchange(self):
        for n in (1, 2, 8):
            out = self.ok(n, 'start', 'job', 'barrier', 'exchange=1', 'exchange=65536', 'exchange=0', 'exchanges=10',
                          'barrier', 'finish')
            lines = sorted(out.splitlines(), key=lambda line: int(line.split('/')[0]))
            self.assertEqual([line.split()[0] for line in lines], [f'{pe}/{n}' for pe in range(n)])
            self.assertEqual(len({line.split()[1] for line in lines}), 1, 'the PEs have different jobs')
            self.assertEqual({line.split()[2] for line in lines}, {self.name})

    def test_joins_again(self):
        self.ok(3, *('start', 'exchange=100', 'barrier', 'finish') * 3)

    def test_lengths_that_differ(self):
        out = self.run_pes(2, 'start', '0:exchange=5', '1:exchange=6', 'finish')
        self.assertIn(f'boot_exchange: -{errno.EBADMSG}\n', out.stderr)

    def test_children_do_not_disturb(self):
        out = self.run_pes(2, 'start', 'exchange=5', 'fork', 'exchange=6', 'finish', 'system=exit 98')
        self.assertEqual((out.returncode, out.stderr), (0, 'shmem: a child\n' * 2))

    def test_abort(self):
        self.assertEqual(self.run_pes(3, 'start', 'barrier', '1:abort=17', 'wait').returncode, 17)
        out = self.run_pes(3, 'start', 'barrier', '1:complain=no memory', 'wait')
        self.assertEqual(out.returncode, 3)
        self.assertIn('PE 1 of 3: no memory\n', out.stderr)

    def test_killed(self):
        self.assertNotEqual(self.run_pes(3, 'start', 'barrier', '1:kill=9', 'wait').returncode, 0)

    def test_program_that_a_pe_starts(self):
        out = self.run_pes(1, 'start', 'barrier', f'system={PE} start', 'barrier', 'finish')
        self.assertEqual(out.returncode, 0, out.stderr)


class Mpirun(Launcher, Case):
    name = 'PMIx'

    def setUp(self):
        super().setUp()
        mpirun = shutil.which('mpirun.openmpi')
        if os.environ.get('PMIX_MISSING'):
            self.skipTest('this build has no PMIx: ' + os.environ['PMIX_MISSING'])
        if mpirun is None:
            self.skipTest('Open MPI is not installed (scripts/setup --peers)')
        self.command = [mpirun, '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none']

    def test_size_that_does_not_fit(self):
        out = subprocess.run([*self.command, '-np', '2', 'sh', '-c', f'OMPI_COMM_WORLD_SIZE=5 exec {PE} start'],
                             env=environment(), text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                             capture_output=True, check=False)
        self.assertNotEqual(out.returncode, 0)
        self.assertIn('mpirun started 5 processes, but PMIx tells of 2', out.stderr)


class Mpiexec(Launcher, Case):
    name = 'PMI-1'

    def setUp(self):
        super().setUp()
        mpiexec = shutil.which('mpiexec.hydra')
        if mpiexec is None:
            self.skipTest('MPICH is not installed (scripts/setup --peers)')
        self.command = [mpiexec]


# A launcher of one process that speaks PMI-1, and leaves the descriptors open that it has inherited.
INNER_LAUNCHER = '''
import json, os, socket, subprocess, sys
answers = json.loads(sys.argv[1])
mine, its = socket.socketpair()
its.set_inheritable(True)
child = subprocess.Popen(sys.argv[2:], close_fds=False,
                         env={**os.environ, 'PMI_FD': str(its.fileno()), 'PMI_RANK': '0', 'PMI_SIZE': '1'})
its.close()
stream = mine.makefile('rw')
for line in stream:
    words = dict(word.split('=', 1) for word in line.split())
    print(answers[words['cmd']], file=stream, flush=True)
sys.exit(child.wait())
'''

# A process that looks, to a program that it starts, like one of a job of PMIx.
PARENT = '''
import ctypes, subprocess, sys
ctypes.CDLL('libpmix.so.2')
sys.exit(subprocess.run(['sh', '-c', '"$@"; exit $?', 'sh', *sys.argv[1:]]).returncode)
'''


class Within(Case):
    """Launchers that are started by processes of other launchers."""

    def test_launcher_in_a_pe_of_oshrun(self):
        out = self.oshrun('-np', 2, sys.executable, '-c', INNER_LAUNCHER, json.dumps(Pmi1.RIGHT), PE, 'start', 'job',
                          'barrier', 'finish')
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        self.assertEqual([line.split()[0::2] for line in out.stdout.splitlines()], [['0/1', 'PMI-1']] * 2)

    def test_oshrun_in_a_process_of_another(self):
        out = self.oshrun('-np', 2, PE, 'start', 'job', 'env=PMIX_RANK', 'env=PMI_RANK', 'finish',
                          env=environment(PMIX_NAMESPACE='outer', PMIX_RANK='0', PMI_FD='99', PMI_RANK='1', PMI_SIZE='2'))
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        lines = out.stdout.splitlines()
        self.assertEqual(sorted(line.split()[0::2] for line in lines if '/' in line), [['0/2', 'oshrun'], ['1/2', 'oshrun']])
        self.assertEqual(sorted(line for line in lines if '/' not in line), ['0 -', '0 -', '1 -', '1 -'])

    def test_program_of_a_process_of_pmix(self):
        """The program would act for its parent, and wait for ever for the others."""
        if os.environ.get('PMIX_MISSING'):
            self.skipTest('this build has no PMIx: ' + os.environ['PMIX_MISSING'])
        for more, code, pattern in (({}, 98, 'whose launcher knows that process alone: start it with oshrun -np N'),
                                    ({'SHMEM_VIADUCT_SINGLETON': '1'}, 0, '^0/1 .* singleton\n$')):
            out = subprocess.run([sys.executable, '-c', PARENT, PE, 'start', 'job', 'finish'], text=True, timeout=PATIENCE,
                                 env=environment(PMIX_NAMESPACE='none', PMIX_RANK='0', **more), stdin=subprocess.DEVNULL,
                                 capture_output=True, check=False)
            self.assertEqual(out.returncode, code, out.stderr)
            self.assertRegex(out.stdout + out.stderr, pattern)


class NoServer(Case):
    """The environment of a launcher without its server."""

    def refused(self, pattern, **env):
        out = subprocess.run([PE, 'start', 'finish'], env=environment(**env), text=True, timeout=PATIENCE,
                             stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual((out.returncode, out.stderr.count('\n')), (98, 1), out.stderr)
        self.assertRegex(out.stderr, pattern)

    def test_pmix(self):
        self.refused('PMIx.*oshrun -np N', PMIX_NAMESPACE='none', PMIX_RANK='0')
        self.refused('PMIx.*oshrun -np N', PMIX_NAMESPACE='none')

    def test_pmi1(self):
        for values in ({}, {'PMI_FD': '0'}, {'PMI_FD': '99'}, {'PMI_FD': 'x'}, {'PMI_FD': '-1'},
                       {'PMI_RANK': '2'}, {'PMI_SIZE': '0'}, {'PMI_SIZE': '99999999999'}):
            self.refused('PMI_FD is set, but', **{'PMI_FD': '5', 'PMI_RANK': '0', 'PMI_SIZE': '2', **values})


class Pmi1(Case):
    """The test is the other end of PMI_FD, and answers one PE with the lines of a dictionary."""
    RIGHT = {
        'init': 'cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0',
        'get_maxes': 'cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024',
        'get_my_kvsname': 'cmd=my_kvsname kvsname=kvs_1',
        'put': 'cmd=put_result rc=0 msg=success',
        'barrier_in': 'cmd=barrier_out',
        'finalize': 'cmd=finalize_ack',
    }

    def serve(self, sock, answers, asked):
        with sock, sock.makefile('rw') as stream, contextlib.suppress(OSError):
            for line in stream:
                words = dict(word.split('=', 1) for word in line.split())
                asked.append(words)
                answer = answers.get(words['cmd'])
                if answer is None:
                    return
                stream.write(answer)
                stream.flush()

    def talk(self, *commands, size=1, **answers):
        """Runs a PE; returns its result and its requests."""
        mine, its = socket.socketpair()
        asked = []
        all_answers = {cmd: text + '\n' for cmd, text in self.RIGHT.items()}
        server = threading.Thread(target=self.serve, args=(mine, {**all_answers, **answers}, asked))
        server.start()
        try:
            with its:
                child = subprocess.Popen([PE, *commands], pass_fds=[its.fileno()], text=True,
                                         env=environment(PMI_FD=str(its.fileno()), PMI_RANK='0', PMI_SIZE=str(size)),
                                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            _, err = child.communicate(timeout=PATIENCE)
        finally:
            server.join()
        return child.returncode, err, asked

    def test_right(self):
        code, err, asked = self.talk('start', 'barrier', 'finish', 'start', 'finish', get='cmd=get_result rc=0 value=00\n')
        self.assertEqual((code, err), (0, ''))
        self.assertEqual([words['cmd'] for words in asked],
                         ['init', 'get_maxes', 'get_my_kvsname', 'put', 'barrier_in', 'barrier_in', 'put',
                          'barrier_in', 'finalize'])

    def test_values_in_parts(self):
        code, err, asked = self.talk('start', 'exchange=100', 'finish',
                                     get_maxes='cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=21\n')
        self.assertEqual((code, err), (0, ''))
        values = [words['value'] for words in asked if words['cmd'] == 'put']
        self.assertEqual([len(value) for value in values], [16] + [20] * 10)
        self.assertEqual(len({words['key'] for words in asked if words['cmd'] == 'put'}), 11)

    def test_abort(self):
        code, _, asked = self.talk('start', 'abort=12')
        self.assertEqual((code, asked[-1]), (12, {'cmd': 'abort', 'exitcode': '12'}))

    def test_exit_without_leaving_is_not_finalized(self):
        _, _, asked = self.talk('start')
        self.assertNotIn('finalize', [words['cmd'] for words in asked])

    def test_wrong_answers(self):
        wrong = {
            'init': ['', '\n', 'cmd=response_to_init rc=0\n', 'cmd=response_to_init pmi_version=2 rc=0\n',
                     'cmd=response_to_init pmi_version=1 rc=-1\n', 'cmd=maxes\n', 'x' * 20000 + '\n',
                     'cmd=response_to_init pmi_version=1 rc=0\nand more\n', 'cmd=response_to_init\0 pmi_version=1 rc=0\n'],
            'get_maxes': ['cmd=maxes\n', 'cmd=maxes kvsname_max=256 keylen_max=4 vallen_max=1024\n',
                          'cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1\n',
                          'cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=-1\n',
                          'cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=99999999999999999999\n'],
            'get_my_kvsname': ['cmd=my_kvsname\n', f'cmd=my_kvsname kvsname={"k" * 300}\n'],
            'put': ['cmd=put_result rc=1 msg=no\n', None],
            'barrier_in': ['cmd=barrier_in\n', None],
        }
        for command, answers in wrong.items():
            for answer in answers:
                with self.subTest(command=command, answer=(answer or 'nothing')[:60]):
                    if answer == '':
                        answer = None
                    code, err, _ = self.talk('start', 'finish', **{command: answer})
                    self.assertEqual((code, err.count('\n')), (98, 1), err)

    def test_wrong_values(self):
        for value in ('', '0', '00' * 9, 'zz' * 8, '00' * 7 + '0g', '00' * 5000):
            with self.subTest(value=value[:40]):
                code, err, _ = self.talk('start', size=2, get=f'cmd=get_result rc=0 value={value}\n')
                self.assertEqual((code, err.count('\n')), (98, 1), err)

    def test_values_of_another_length(self):
        for length in (7, 9):
            code, err, _ = self.talk('start', f'exchange={length}', size=2, get='cmd=get_result rc=0 value=' + '00' * 8 + '\n')
            self.assertEqual((code, err), (99, f'PE 0: boot_exchange: -{errno.EBADMSG}\n'))

    def test_values_of_others(self):
        code, err, asked = self.talk('start', 'finish', size=3, get='cmd=get_result rc=0 msg=success value=' + '07' * 8 + '\n')
        self.assertEqual((code, err), (0, ''))
        self.assertEqual([words['key'] for words in asked if words['cmd'] == 'get'], ['viaduct-0-1-0', 'viaduct-0-2-0'])


if __name__ == '__main__':
    unittest.main(verbosity=2)
