#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of oshrun on several machines, which are this one under other names: a script is the remote shell.

  machines_test.py [CLASS[.METHOD]...]
  machines_test.py relay COMMAND         a remote shell that stays between, as a process that copies
  machines_test.py says BYTES            in place of oshrun --serve: sends the bytes, in hexadecimal, and reads to the end

OSHRUN and BOOT_PE name the programs.
"""
import contextlib
import os
import random
import select
import signal
import struct
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from launch import OSHRUN, PATIENCE, PE, Case, alive, environment, heed_signals, until

RSH = """#!/bin/sh
echo $$ >>{folder}/shells
host=$1
shift
case $host in
m*) VIADUCT_HOST=${{host#m}} ;;
*) exit 9 ;;
esac
export VIADUCT_HOST
{before}
exec sh -c "$*"
"""
MAGIC, VERSION = 0x5246534f, 2
(START, RESULT, SIGNAL, HELLO, STARTED, JOIN, FINISH, EXCHANGE, ABORT, EXITED, STATUS, OUT, ERR, COMPLAIN,
 BYE, ALIVE) = range(1, 17)


def frame(kind, data=b'', arg=0, length=None, magic=MAGIC, version=VERSION):
    return struct.pack('<IHHII', magic, version, kind, arg, len(data) if length is None else length) + data


def relay(command):
    """Copies both ways, and ends when one side does; the other end of each pipe then sees that."""
    child = subprocess.Popen(['sh', '-c', command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def copy(source, target):
        while data := os.read(source, 65536):
            os.write(target, data)
        os._exit(0)

    threading.Thread(target=copy, args=(0, child.stdin.fileno()), daemon=True).start()
    copy(child.stdout.fileno(), 1)


class Machines(Case):
    def setUp(self):
        super().setUp()
        self.rsh = self.shell()

    def shell(self, before=':', name='rsh'):
        path = self.folder / name
        path.write_text(RSH.format(folder=self.folder, before=before))
        path.chmod(0o700)
        return path

    def run_on(self, hosts, *words, rsh=None, **kw):
        return self.oshrun('--rsh', rsh or self.rsh, '--host', hosts, *words, **kw)

    def shells(self):
        """The ids of the remote shells; each has become oshrun --serve."""
        path = self.folder / 'shells'
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def fails_on(self, hosts, code, line, *commands, **kw):
        out = self.run_on(hosts, PE, *commands, **kw)
        lines = [text for text in out.stderr.splitlines() if text.startswith('oshrun: ')]
        self.assertEqual((out.returncode, len(lines)), (code, 0 if line is None else 1), out.stderr)
        if line is not None:
            self.assertRegex(lines[0], line)
        until(lambda: not any(map(alive, self.shells())), 'the end of oshrun --serve')

    def started_on(self, hosts, n, *args, rsh=None):
        return self.started(*args, n=n, options=('--rsh', str(rsh or self.rsh), '--host', hosts))


class Exchange(Machines):
    def check(self, hosts, n):
        out = self.run_on(hosts, PE, 'start', 'job', 'barrier', 'exchange=1', 'exchange=65536', 'exchange=0',
                          'exchanges=50', 'barrier', 'finish')
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        lines = sorted(out.stdout.splitlines(), key=lambda line: int(line.split('/')[0]))
        self.assertEqual([line.split()[0] for line in lines], [f'{pe}/{n}' for pe in range(n)])
        self.assertEqual(len({line.split()[1] for line in lines}), 1, 'the PEs have different jobs')

    def test_others(self):
        self.check('m0,m1', 2)
        self.check('m0:3', 3)

    def test_with_this_one(self):
        self.check('localhost:2,m1:2,m2', 5)
        self.check('m1:2,localhost', 3)

    def test_many(self):
        self.check(','.join(f'm{i}:4' for i in range(8)), 32)

    def test_in_turn(self):
        out = self.oshrun('--rsh', self.rsh, '--host', 'm0:2,m1:2,localhost:2', '--map', 'cycle', PE, 'start',
                          'exchange=100', 'finish', 'start', 'exchange=300', 'finish')
        self.assertEqual((out.returncode, out.stderr), (0, ''))

    def test_programs_in_turn(self):
        out = self.run_on('m0:2,m1', 'sh', '-c', f'{PE} start exchange=10 finish && {PE} start exchange=20 finish')
        self.assertEqual((out.returncode, out.stderr), (0, ''))

    def test_unequal_lengths(self):
        self.fails_on('m0:2,localhost', 1, 'exchanged data of another length', 'start', '0:exchange=5', '1:exchange=6',
                      '2:exchange=6')
        self.fails_on('m0,localhost', 1, 'exchanged data of another length', 'start', '0:exchange=5', '1:exchange=6')


class Places(Machines):
    def words(self, *options):
        out = self.oshrun('--rsh', self.rsh, *options, 'sh', '-c', 'echo $OSHRUN_PE/$OSHRUN_NPES ${VIADUCT_HOST:-here}')
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        lines = sorted(line.split() for line in out.stdout.splitlines())
        self.assertEqual({line[0].split('/')[1] for line in lines}, {str(len(lines))})
        return ' '.join(line[1] for line in lines)

    def test_slots(self):
        self.assertEqual(self.words('--host', 'm0:2,m1'), '0 0 1')
        self.assertEqual(self.words('--host', 'm0:2,localhost,m1:2'), '0 0 here 1 1')
        self.assertEqual(self.words('-H', 'm0,m1,m0'), '0 0 1')
        self.assertEqual(self.words('-H', 'm0:2,m1:2', '-np', 2), '0 0')
        self.assertEqual(self.words('-H', 'm0:2,m1', '-np', 5), '0 0 1 0 0')

    def test_programs(self):
        """Each machine runs the programs of its PEs, with the options that are for one program alone."""
        show = ('sh', '-c', 'echo $OSHRUN_PE ${VIADUCT_HOST:-here} $ALL-$ONE-$TWO $PWD')
        out = self.oshrun('--rsh', self.rsh, '-H', 'm0,m1,localhost', '-x', 'ALL=1', '-env', 'ONE', '2', '--wdir', '/', *show, ':',
                          '-np', 2, '-x', 'TWO=3', '--wdir', self.folder, *show)
        here = self.folder.resolve()
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        self.assertEqual(sorted(out.stdout.splitlines()), ['0 0 1-2- /', f'1 1 1--3 {here}', f'2 here 1--3 {here}'])

    def test_in_turn(self):
        self.assertEqual(self.words('-H', 'm0:2,m1:3', '--map', 'cycle'), '0 1 0 1 1')
        self.assertEqual(self.words('-H', 'm0,m1', '-np', 5, '--map=cycle'), '0 1 0 1 0')

    def test_per_host(self):
        self.assertEqual(self.words('-H', 'm0,m1:9', '-N', 2), '0 0 1 1')
        self.assertEqual(self.words('-H', 'm0,m1', '-N', 2, '-np', 3), '0 0 1')
        out = self.oshrun('--rsh', self.rsh, '-H', 'm0,m1', '-N', 2, '-np', 5, 'true')
        self.assertEqual((out.returncode, out.stderr.count('\n')), (2, 1), out.stderr)

    def test_file(self):
        path = self.folder / 'hosts'
        path.write_text('# machines\nm0 slots=2\n\nm1 # one\nlocalhost slots=1 max_slots=4\n')
        self.assertEqual(self.words('--hostfile', path), '0 0 1 here')

    def test_folder_and_variables(self):
        text = 'echo $PWD $SHMEM_ONE $VIADUCT_TWO $MINE $OTHER ${VIADUCT_ADAPTERS:-none}'
        out = subprocess.run([OSHRUN, '--rsh', self.rsh, '-H', 'm0,m1', '-x', 'MINE', '-x', 'OTHER=a b', 'sh', '-c', text],
                             env=environment(SHMEM_ONE='1', VIADUCT_TWO='2', MINE='3', VIADUCT_ADAPTERS='x'),
                             cwd=self.folder, text=True, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        # The script is not another machine: it has the environment of this oshrun.
        self.assertEqual(set(out.stdout.splitlines()), {f'{self.folder.resolve()} 1 2 3 a b x'})
        bare = self.shell('exec env -i VIADUCT_HOST=$VIADUCT_HOST PATH="$PATH" sh -c "$*"', name='bare')
        out = subprocess.run([OSHRUN, '--rsh', bare, '-H', 'm0,m1', '-x', 'MINE', '-x', 'OTHER=a b', 'sh', '-c', text],
                             env=environment(SHMEM_ONE='1', VIADUCT_TWO='2', MINE='3', VIADUCT_ADAPTERS='x'),
                             cwd=self.folder, text=True, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        self.assertEqual(set(out.stdout.splitlines()), {f'{self.folder.resolve()} 1 2 3 a b none'})
        out = self.run_on('m0', '--wdir', self.folder, 'pwd')
        self.assertEqual(out.stdout, f'{self.folder.resolve()}\n')

    def test_wrong(self):
        for options in (('-H', '-oProxyCommand=x'), ('-H', 'm0;true'), ('-H', 'm0 m1'), ('-H', 'm0:0'), ('-H', '$(true)'),
                        ('-H', 'm0', '--hosts', '2'), ('-H', 'm0', '--topology', 'ring'), ('-H', 'm0', '--window', '1G'),
                        ('-H', ','.join(f'm{i}' for i in range(65))), ('--rsh', '', '-H', 'm0')):
            out = self.oshrun('--rsh', self.rsh, *options, 'true')
            self.assertEqual((out.returncode, out.stderr.count('\n')), (2, 1), (options, out.stderr))
        self.assertEqual(self.shells(), [])


class Output(Machines):
    def test_streams(self):
        out = self.run_on('m0,localhost', 'sh', '-c', 'echo error $OSHRUN_PE >&2; printf "output $OSHRUN_PE\n"')
        self.assertEqual((out.returncode, sorted(out.stdout.splitlines())), (0, ['output 0', 'output 1']))
        self.assertEqual(sorted(out.stderr.splitlines()), ['error 0', 'error 1'])

    def test_input(self):
        out = self.run_on('localhost,m0', 'sh', '-c', 'echo $OSHRUN_PE $(cat)', text='some text\n')
        self.assertEqual(sorted(out.stdout.splitlines()), ['0 some text', '1'])

    def test_tags_of_much(self):
        out = self.run_on('m0:2,m1', '-l', 'sh', '-c', 'seq 1 20000; printf "%0100000d" 0')
        lines = out.stdout.splitlines()
        for pe in range(3):
            mine = [line[4:] for line in lines if line.startswith(f'[{pe}] ')]
            self.assertEqual(mine[:20000], [str(i) for i in range(1, 20001)])
            self.assertEqual(''.join(mine[20000:]), '0' * 100000)

    def test_much(self):
        out = self.run_on('m0', 'seq', '1', '200000')
        self.assertEqual(out.stdout.splitlines(), [str(i) for i in range(1, 200001)])

    def test_reader_that_leaves(self):
        for tag in ((), ('-l',)):
            process = subprocess.Popen([OSHRUN, '--rsh', self.rsh, '-H', 'm0,m1', *tag, 'yes'], env=environment(), text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(self.end, process)
            process.stdout.read(100)
            process.stdout.close()
            self.assertEqual(process.wait(timeout=PATIENCE), 128 + signal.SIGPIPE)
            process.stderr.close()
        until(lambda: not any(map(alive, self.shells())), 'the end of oshrun --serve')

    def test_output_that_nobody_reads(self):
        for tag in ((), ('-l',)):
            out, into = os.pipe()
            self.addCleanup(os.close, out)
            process = subprocess.Popen([OSHRUN, '--rsh', self.rsh, '-H', 'm0,m1', *tag, 'yes'], env=environment(),
                                       stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.DEVNULL)
            self.addCleanup(self.end, process)
            room = select.poll()
            room.register(into, select.POLLOUT)
            until(lambda: not room.poll(0), 'a full pipe')
            os.close(into)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=PATIENCE), 128 + signal.SIGTERM)
        until(lambda: not any(map(alive, self.shells())), 'the end of oshrun --serve')

    def test_signals_of_the_user(self):
        script = 'trap "exit 5" USR2; : >$0.$OSHRUN_PE; while :; do sleep 0.05; done'
        process = subprocess.Popen([OSHRUN, '--rsh', self.rsh, '-H', 'm0,m1', 'sh', '-c', script, self.folder / 'here'],
                                   env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        until(lambda: all((self.folder / f'here.{pe}').exists() for pe in range(2)), 'the start')
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(process.wait(timeout=PATIENCE), 5)

    def test_verbose(self):
        out = self.run_on('m0,m1', '-v', 'true')
        self.assertRegex(out.stderr, r'oshrun: PE 1 on m1: process \d+\n')
        self.assertIn('oshrun: PE 0 on m0: ended with exit status 0\n', out.stderr)


class End(Machines):
    def test_statuses(self):
        self.fails_on('m0,m1', 42, None, 'start', 'barrier', '1:abort=42', 'wait')
        self.fails_on('m0,m1', 3, 'PE 1 on m1: no memory', 'start', 'barrier', '1:complain=no memory', 'wait')
        self.fails_on('m0:2,m1', 5, 'PE 2 on m1 ended with exit status 5', 'start', 'barrier', '2:exit=5', 'barrier', 'wait')
        self.fails_on('m0,m1', 7, None, 'start', 'barrier', 'finish', '1:exit=7')
        self.fails_on('m0,localhost', 137, r'PE 0 on m0 was killed by signal 9 \(Killed\)', 'start', 'barrier', '0:kill=9',
                      'barrier', 'wait')
        self.fails_on('m0,localhost', 137, 'PE 1 on localhost was killed by signal 9', 'start', 'ignore', 'barrier',
                      '1:kill=9', 'wait')
        self.fails_on('m0,m1', 3, r'PE 1 on m1: a\?\?b$', 'start', 'barrier', '1:complain=a\033\nb', 'wait')

    def test_loss(self):
        self.fails_on('m0,m1', 3, 'PE 1 on m1: no way', 'start', 'barrier', '1:lose=no way', 'wait')
        self.fails_on('m0,m1', 137, 'PE 0 on m0 was killed by signal 9', 'start', 'barrier', '1:lose=no way', '0:kill=9',
                      'wait')

    def test_ends_without_others(self):
        self.fails_on('m0:2,m1', 1, 'PE 2 on m1 has ended; PE', 'start', 'barrier', '2:exit=0', 'barrier', 'wait')
        self.fails_on('m0:2,m1', 1, 'PE 1 on m0 (has ended; PE|ended without)', 'start', 'barrier', '1:exit=0', '0:barrier',
                      'wait')
        self.fails_on('m0,m1', 1, 'PE 1 on m1 ended without shmem_finalize', 'start', 'barrier', '1:exit=0', 'wait')

    def test_breaks_the_rules(self):
        out = self.run_on('m0:2,m1', 'sh', '-c', f'{PE} start barrier 1:exit=0 finish; {PE} start exchange=20 finish')
        self.assertEqual(out.returncode, 1, out.stderr)
        self.assertIn('PE 1 on m0 began again', out.stderr)

    def test_no_program(self):
        out = self.run_on('m0,m1', self.folder / 'none')
        self.assertEqual((out.returncode, out.stderr), (127, f'oshrun: {self.folder}/none: No such file or directory\n'))
        out = self.run_on('m0,m1', '--wdir', '/none', 'true')
        self.assertEqual((out.returncode, out.stderr), (127, 'oshrun: /none: No such file or directory\n'))

    def test_limit_of_time(self):
        out = self.run_on('m0,localhost', '--timeout', '0.5', PE, 'start', 'barrier', 'wait')
        self.assertEqual(out.returncode, 124)
        self.assertIn('has not ended in 0.5 s', out.stderr)
        until(lambda: not any(map(alive, self.shells())), 'the end of oshrun --serve')

    def gone(self, process, pids):
        process.communicate(timeout=PATIENCE)
        until(lambda: not any(map(alive, pids + self.shells())), 'the end of all')

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.setUp()
            process, pids = self.started_on('m0,m1,localhost', 3, 'barrier')
            process.send_signal(number)
            self.gone(process, pids)
            self.assertEqual(process.returncode, 128 + number)

    def test_pes_that_finalize(self):
        mark = self.folder / 'here'
        process = subprocess.Popen([OSHRUN, '--rsh', self.rsh, '--host', 'm0,m1,localhost', PE, 'start', 'heed', 'barrier',
                                    f'touch={mark}', 'await', 'barrier', 'exchange=1000', 'finish', 'say=left'],
                                   env=environment(), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        until(lambda: all(Path(f'{mark}.{pe}').exists() for pe in range(3)), 'the start')
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out, err), (128 + signal.SIGTERM, 'left\n' * 3, ''))

    def test_signal_that_is_ignored(self):
        process, pids = self.started_on('m0,m1', 2, 'ignore', 'barrier')
        process.send_signal(signal.SIGTERM)
        self.gone(process, pids)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_oshrun_killed(self):
        process, pids = self.started_on('m0:2,m1,localhost', 4, 'ignore', 'barrier')
        process.kill()
        self.gone(process, pids)

    def test_serving_oshrun_killed(self):
        process, pids = self.started_on('m0:2,m1,localhost', 4, 'ignore', 'barrier')
        os.kill(self.shells()[0], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        self.gone(process, pids)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, '^oshrun: oshrun on m[01], or the connection to it, has ended\n$')

    def test_serving_oshrun_ended(self):
        process, pids = self.started_on('m0:2,m1', 3, 'barrier')
        os.kill(self.shells()[0], signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
        self.gone(process, pids)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertRegex(err, '^oshrun: oshrun on m[01] got signal 15')

    def test_serving_oshrun_that_does_not_answer(self):
        process, pids = self.started_on('m0:2,m1', 3, 'barrier')
        os.kill(self.shells()[0], signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.gone(process, pids)

    def test_serving_oshrun_that_is_silent(self):
        """As when its machine has lost its power: the connection does not show that."""
        process, pids = self.started('barrier', n=3, options=('--rsh', str(self.rsh), '--host', 'm0:2,m1', '--silence', '10'))
        os.kill(self.shells()[0], signal.SIGSTOP)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, r'^oshrun: nothing has come from oshrun on m[01] for 10 s \(--silence\)\n$')
        self.gone(process, pids)

    def test_connection_lost(self):
        process, pids = self.started_on('m0:2,m1', 3, 'ignore', 'barrier',
                                        rsh=self.shell(f'exec {sys.executable} {__file__} relay "$@"', 'relayed'))
        os.kill(self.shells()[0], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        self.gone(process, pids)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, 'oshrun on m[01], or the connection to it, has ended\n$')

    def test_report(self):
        process, pids = self.started_on('m0,m1', 2, 'status', 'barrier')
        # A PE reports what it waits for once in a second.
        lines = []
        while not any('waits in' in line for line in lines):
            process.send_signal(signal.SIGQUIT)
            lines = [process.stderr.readline() for _ in range(3)]
        for pe in range(2):
            self.assertRegex(lines[pe + 1], rf' {pe} +{pids[pe]} +m{pe} +\d+ s  ')
        self.assertIsNone(process.poll())

    def test_report_of_one_that_has_ended(self):
        """The report does not show what it waited for before."""
        process = subprocess.Popen([OSHRUN, '--rsh', self.rsh, '--host', 'm0:2', PE, 'start', 'barrier', 'status', '1:finish',
                                    '1:exit=0', 'wait'], env=environment(), text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        until(self.shells, 'the start')
        lines = [''] * 3
        while 'waits in' not in lines[1] or not lines[2].endswith(' ended\n'):
            process.send_signal(signal.SIGQUIT)
            lines = [process.stderr.readline() for _ in range(3)]
            self.assertIn(' state', lines[0])
        self.assertIsNone(process.poll())


class Shell(Machines):
    """Remote shells that do not start oshrun."""

    def test_exit_status(self):
        out = self.run_on('m0,x1', 'true')
        self.assertEqual((out.returncode, out.stderr.count('\n')), (1, 1), out.stderr)
        self.assertRegex(out.stderr, r'rsh does not start oshrun on x1, .*: it ended with exit status 9\n$')

    def test_signal(self):
        out = self.run_on('m0', 'true', rsh=self.shell('kill -9 $$'))
        self.assertRegex(out.stderr, r'^oshrun: .* does not start oshrun on m0, .*: it was ended by a signal, Killed\n$')

    def test_absent(self):
        out = self.run_on('m0', 'true', rsh=self.folder / 'none')
        self.assertEqual(out.returncode, 1)
        self.assertIn('none: No such file or directory; --rsh says how', out.stderr)

    def test_other_words(self):
        out = self.run_on('m0', 'true', rsh=self.shell('echo "Welcome to this machine"'))
        self.assertEqual((out.returncode, out.stderr.count('\n')), (1, 1), out.stderr)
        self.assertIn('wrote something that does not come from oshrun', out.stderr)

    def test_never_answers(self):
        out = self.run_on('m0', '--timeout', '0.3', 'true', rsh=self.shell('exec sleep 1000'))
        self.assertEqual(out.returncode, 124)
        until(lambda: not any(map(alive, self.shells())), 'the end of the remote shell')

    def test_options_of_the_shell(self):
        path = self.folder / 'with'
        path.write_text('#!/bin/sh\n[ "$1 $2" = "-p 22" ] || exit 3\nshift 2\nexec ' + f'{self.rsh} "$@"\n')
        path.chmod(0o700)
        out = self.run_on('m0', 'echo', 'here', rsh=f'{path} -p 22')
        self.assertEqual((out.returncode, out.stdout), (0, 'here\n'))


class Hostile(Machines):
    """The other machine sends wrong bytes: one line says so, and the job ends."""

    def says(self, data, pattern=r'oshrun on m1 broke the rules of its protocol$', commands=('start', 'barrier', 'wait')):
        rsh = self.shell(f'[ $host = m0 ] || exec {sys.executable} {__file__} says {data.hex()}')
        out = self.run_on('m0,m1:2', PE, *commands, rsh=rsh)
        lines = [line for line in out.stderr.splitlines() if line.startswith('oshrun: ')]
        self.assertEqual((out.returncode, len(lines)), (1, 1), out.stderr)
        self.assertRegex(lines[0], '^oshrun: ' + pattern)
        until(lambda: not any(map(alive, self.shells())), 'the end of the remote shells')

    started = frame(HELLO) + frame(STARTED, bytes(8))
    joined = started + frame(JOIN, arg=1) + frame(JOIN, arg=2)

    def test_frames(self):
        for name, data in {
                'magic': frame(HELLO) + frame(STARTED, bytes(8), magic=1),
                'kind': frame(HELLO) + frame(99),
                'kind of oshrun': frame(HELLO) + frame(START),
                'hello twice': frame(HELLO) * 2,
                'hello with data': frame(HELLO) + frame(JOIN, b'1', arg=1),
                'started twice': self.started + frame(STARTED, bytes(8)),
                'started of fewer': frame(HELLO) + frame(STARTED, bytes(4)),
                'started of more': frame(HELLO) + frame(STARTED, bytes(12)),
                'before started': frame(HELLO) + frame(JOIN, arg=1),
                'PE of another machine': self.started + frame(JOIN, arg=0),
                'no PE': self.started + frame(JOIN, arg=3),
                'far too long': self.started + frame(OUT, arg=1, length=0xffffffff),
                'output too long': self.started + frame(OUT, arg=1, length=32769),
                'exchange too long': self.joined + frame(EXCHANGE, length=2 * 65536 + 1),
                'status of another length': self.started + frame(STATUS, bytes(64), arg=1),
                'abort without a status': self.started + frame(ABORT, b'123', arg=1),
                'abort with a wrong status': self.started + frame(ABORT, struct.pack('<II', 256, 0), arg=1),
                'complaint with a wrong flag': self.started + frame(COMPLAIN, struct.pack('<II', 1, 2)),
                'exit of no process': self.started + frame(EXITED, struct.pack('<i', 0x137f), arg=1),
                'leaves what it has not joined': self.started + frame(FINISH, arg=1),
        }.items():
            with self.subTest(name):
                self.says(data)

    def test_pe_that_has_ended(self):
        ended = self.joined + frame(FINISH, arg=1) + frame(EXITED, bytes(4), arg=1)
        for more in (frame(EXITED, bytes(4), arg=1), frame(JOIN, arg=1), frame(OUT, b'text', arg=1)):
            self.says(ended + more, commands=('start', 'wait'))

    def test_exchanges(self):
        for name, data in {
                'of another number': self.joined + frame(EXCHANGE, arg=1),
                'before joining': self.started + frame(EXCHANGE),
                'of one alone': self.started + frame(JOIN, arg=1) + frame(EXCHANGE),
                'odd': self.joined + frame(EXCHANGE, b'123'),
        }.items():
            with self.subTest(name):
                self.says(data)
        # The barrier of PE 0 is an exchange of length 0.
        self.says(self.joined + frame(EXCHANGE, bytes(16)), '(PE 1 on m1|PE 0 on m0) exchanged data of another length')

    def test_twice(self):
        self.says(self.started + frame(JOIN, arg=1) * 2, 'PE 1 on m1 began again')

    def test_ends(self):
        self.says(self.started + frame(BYE), 'oshrun on m1 has left before its PEs')

    def test_version(self):
        self.says(frame(HELLO, version=1), 'oshrun on m1 is of another version')

    def test_text(self):
        self.says(frame(HELLO) + frame(COMPLAIN, struct.pack('<II', 1, 0) + b'\x1b[2Jtext\n\0more'), r'\?\[2Jtext\?$')

    def test_random_frames(self):
        seed = int(os.environ.get('VIADUCT_SEED', 4711))
        dice = random.Random(seed)
        for _ in range(10):
            data = self.joined + b''.join(
                frame(dice.choice((*range(4, 17), 77)), bytes(dice.choices(range(128), k=dice.choice((0, 0, 4, 8, 9, 128)))),
                      arg=dice.randrange(4)) for _ in range(30)) + frame(99)
            with self.subTest(f'VIADUCT_SEED={seed}'):
                rsh = self.shell(f'[ $host = m0 ] || exec {sys.executable} {__file__} says {data.hex()}')
                out = self.run_on('m0,m1:2', PE, 'start', 'barrier', 'wait', rsh=rsh)
                self.assertGreater(out.returncode, 0)
                self.assertLess(out.returncode, 256)

    def serve(self, data):
        out = subprocess.run([OSHRUN, '--serve'], env=environment(), input=data, capture_output=True, timeout=PATIENCE,
                             check=False)
        self.assertEqual(out.stdout[:16], frame(HELLO))
        return out.returncode, out.stderr.decode(), out.stdout[16:]

    @staticmethod
    def start(job=7, pes=2, here=1, exports=0, apps=((2, 0, 1),), bind=0, map_by=0, numbers=(0,), strings=b'm0\0\0true\0'):
        return frame(START, struct.pack('<QIIIIII', job, pes, here, exports, len(apps), bind, map_by) +
                     b''.join(struct.pack('<I', n) for n in numbers) + b''.join(struct.pack('<III', *app) for app in apps) + strings)

    def test_starts(self):
        """The first frame is none that oshrun sends: oshrun --serve starts nothing."""
        for name, data in {
                'text': b'GET / HTTP/1.1\r\n\r\n', 'kind': frame(RESULT), 'kind of --serve': frame(HELLO), 'short': frame(START, bytes(39)),
                'long': frame(START, length=(1 << 20) + 1), 'version': frame(START, version=9),
                'no job': self.start(job=0), 'no PE': self.start(here=0), 'more than all': self.start(here=3),
                'many': self.start(pes=5000), 'number': self.start(numbers=(2,)),
                'twice': self.start(here=2, numbers=(1, 1)), 'falling': self.start(here=2, numbers=(1, 0)),
                'no words': self.start(apps=((2, 0, 0),)), 'words that are not there': self.start(apps=((2, 0, 2),)),
                'no programs': self.start(apps=()), 'many programs': self.start(apps=((2, 0, 1),) * 65),
                'program without PEs': self.start(apps=((2, 0, 1), (2, 0, 1)), strings=b'm0\0\0true\0\0true\0'),
                'too few PEs': self.start(apps=((1, 0, 1),)), 'too many PEs': self.start(apps=((3, 0, 1),)),
                'fewer programs': self.start(apps=((1, 0, 1), (2, 0, 1))),
                'many exports of one': self.start(apps=((2, 65, 1),), strings=b'm0\0\0' + b'A=1\0' * 65 + b'true\0'),
                'more words': self.start(strings=b'm0\0\0true\0more\0'), 'no end': self.start(strings=b'm0\0\0true'),
                'many words': self.start(apps=((2, 0, 0xffffffff),)), 'exports': self.start(exports=1, strings=b'm0\0A\0\0true\0'),
                'many exports': self.start(exports=257), 'bind': self.start(bind=8), 'map by': self.start(map_by=5),
                'fewer numbers': self.start(pes=4096, here=4096, numbers=()), 'half': self.start()[:30],
        }.items():
            with self.subTest(name):
                code, err, more = self.serve(data)
                self.assertEqual((code, more), (1, b''))
                self.assertLessEqual(err.count('\n'), 1)

    def test_result_too_early(self):
        """The head of a RESULT is enough to refuse it: no memory is allotted for the rest."""
        code, err, more = self.serve(frame(RESULT, length=1 << 20))
        self.assertEqual((code, more), (1, b''))
        self.assertIn('does not come from oshrun', err)

    def test_start_that_is_right(self):
        code, err, more = self.serve(self.start(apps=((2, 0, 2),), strings=b'm0\0\0sleep\x001000\0'))
        # The connection ends at once, and so does the PE.
        self.assertEqual((code, err), (0, ''))
        self.assertEqual(more[6:8], struct.pack('<H', STARTED))

    def test_one_that_reads_nothing(self):
        """The second signal ends PEs and oshrun --serve."""
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        process = subprocess.Popen([OSHRUN, '--serve'], env=environment(), stdin=subprocess.PIPE, stdout=into,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        process.stdin.write(self.start(apps=((2, 0, 1),), strings=b'm0\0\0yes\0'))
        process.stdin.flush()
        room = select.poll()
        room.register(into, select.POLLOUT)
        until(lambda: not room.poll(0), 'a full pipe')
        os.close(into)
        until(lambda: process.poll() is not None or process.send_signal(signal.SIGTERM) is not None, 'the end')

    def test_frames_to_a_server(self):
        for data in (frame(RESULT), frame(SIGNAL, arg=65), frame(START), frame(BYE), frame(SIGNAL, b'1')):
            code, err, _ = self.serve(self.start(apps=((2, 0, 2),), strings=b'm0\0\0sleep\x001000\0') + data)
            self.assertEqual((code, err.count('\n')), (0, 1), err)
            self.assertIn('frames that do not come from oshrun', err)


if __name__ == '__main__':
    if sys.argv[1:2] == ['relay']:
        relay(' '.join(sys.argv[2:]))
    if sys.argv[1:2] == ['says']:
        os.write(1, bytes.fromhex(sys.argv[2]))
        # If oshrun closes the connection with bytes unread, the kernel resets it.
        with contextlib.suppress(ConnectionResetError):
            while os.read(0, 65536):
                pass
        sys.exit()
    heed_signals()
    unittest.main(verbosity=2)
