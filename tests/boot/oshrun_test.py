#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of oshrun and of the launcher side of a PE, by programs that call boot.h.

  oshrun_test.py [CLASS[.METHOD]...]

OSHRUN, BOOT_PE and VIADUCTD name the programs.  Each job has hosts of its own, so tests run side by side.
"""
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from launch import OSHRUN, PATIENCE, PE, Case, alive, environment, heed_signals, processes_of, until


# An agent that, as that of host 1, kills the vi_fabric which started it.
KILLING_AGENT = """
import os, pathlib, signal, sys
words = sys.argv[1:]
if '--check' not in words and words[words.index('--host-id') + 1] == '1':
    fabric = os.environ['VIADUCT_FABRIC']
    pathlib.Path('{fabric}').write_text(fabric)
    for path in pathlib.Path('/proc').iterdir():
        try:
            line = (path / 'cmdline').read_bytes().split(b'\\0') if path.name.isdigit() else []
            given = (path / 'environ').read_bytes().split(b'\\0') if b'up' in line else []
        except OSError:
            continue
        if b'VIADUCT_FABRIC=' + fabric.encode() in given:
            os.kill(int(path.name), signal.SIGKILL)
os.execv('{agent}', ['viaductd', *words])
"""


class Exchange(Case):
    def check(self, n):
        out = self.ok(n, 'start', 'job', 'barrier', 'exchange=1', 'exchange=65536', 'exchange=0', 'exchanges=50',
                      'barrier', 'finish')
        lines = sorted(out.split('\n')[:-1], key=lambda line: int(line.split('/')[0]))
        self.assertEqual([line.split()[0] for line in lines], [f'{pe}/{n}' for pe in range(n)])
        self.assertEqual(len({line.split()[1] for line in lines}), 1, 'the PEs have different jobs')
        self.assertEqual({line.split()[2] for line in lines}, {'oshrun'})
        return lines[0].split()[1]

    def test_pes(self):
        self.assertEqual(len({self.check(n) for n in (1, 2, 8)}), 3, 'different jobs have equal numbers')

    def test_64_pes(self):
        self.check(64)

    def test_joins_again(self):
        self.ok(4, *('start', 'exchange=100', 'barrier', 'finish') * 3)

    def test_programs_in_turn(self):
        out = self.oshrun('-np', 3, 'sh', '-c', f'{PE} start exchange=10 finish && {PE} start exchange=20 finish')
        self.assertEqual((out.returncode, out.stderr), (0, ''))

    def test_programs_in_turn_the_first_of_which_dies(self):
        out = self.oshrun('-np', 3, 'sh', '-c', f'{PE} start barrier 1:exit=0 finish; {PE} start exchange=20 finish')
        self.assertEqual(out.returncode, 1, out.stderr)
        self.assertIn('PE 1 on host0 began again', out.stderr)

    def test_children_do_not_disturb(self):
        out = self.pes(3, 'start', 'exchange=5', 'fork', 'exchange=6', 'fork', 'finish')
        self.assertEqual((out.returncode, out.stderr), (0, 'shmem: a child\n' * 6))

    def test_unequal_lengths(self):
        self.fails(1, 'exchanged data of another length', 3, 'start', '0:exchange=5', '1:exchange=5', '2:exchange=6')

    def test_programs_without_a_pe(self):
        out = self.oshrun('-np', 3, 'sh', '-c', 'echo $OSHRUN_PE of $OSHRUN_NPES')
        self.assertEqual(sorted(out.stdout.splitlines()), ['0 of 3', '1 of 3', '2 of 3'])
        self.assertEqual(out.returncode, 0)


class Reason(Case):
    def test_reason_of_several_threads(self):
        """No thread ends the process before the first has told oshrun its reason."""
        for _ in range(100):
            self.fails(3, 'PE 1 on host0: no memory$', 2, 'start', 'barrier', '1:complain_all=no memory', 'wait')


class End(Case):
    def test_status_of_an_abort(self):
        for status in (0, 1, 42, 255):
            self.fails(status, None, 3, 'start', 'barrier', f'1:abort={status}', 'wait')

    def test_reason_of_an_abort(self):
        self.fails(3, 'PE 1 on host0: no memory', 2, 'start', 'barrier', '1:complain=no memory', 'wait')
        self.fails(3, r'PE 1 on host0: a\?\?b$', 2, 'start', 'barrier', '1:complain=a\033\nb', 'wait')

    def test_loss_of_another(self):
        """The line of a PE that cannot reach another is the reason unless there is a better one; its end adds none."""
        self.fails(3, 'PE 1 on host0: no way to PE 0$', 3, 'start', 'barrier', '1:lose=no way to PE 0', 'wait')
        self.fails(3, r'PE \d on host0: no way$', 2, 'start', 'barrier', 'lose=no way')

    def test_loss_that_is_explained(self):
        self.fails(128 + 9, 'PE 0 on host0 was killed by signal 9', 3, 'start', 'barrier', '1:lose=no way to PE 0',
                   f'0:kill={int(signal.SIGKILL)}', 'wait')
        self.fails(3, 'PE 2 on host0: no power', 3, 'start', 'barrier', '1:lose=no way', '2:complain=no power', 'wait')

    def test_abort_of_all(self):
        out = self.pes(8, 'start', 'barrier', 'abort=9')
        self.assertEqual((out.returncode, out.stderr), (9, ''))

    def test_exit_status_of_the_job(self):
        self.fails(5, 'PE 2 on host0 ended with exit status 5', 4, 'start', 'barrier', '2:exit=5', 'barrier', 'wait')

    def test_exit_status_after_the_end(self):
        self.fails(7, None, 4, 'start', 'barrier', 'finish', '2:exit=7')

    def test_exit_status_of_no_pe(self):
        out = self.oshrun('-np', 3, 'sh', '-c', 'exit $((OSHRUN_PE == 1 ? 6 : 0))')
        self.assertEqual(out.returncode, 6)

    def test_killed(self):
        self.fails(128 + 9, r'PE 1 on host0 was killed by signal 9 \(Killed\)', 3, 'start', 'barrier',
                   f'1:kill={int(signal.SIGKILL)}', 'barrier', 'wait')

    def test_killed_while_it_is_waited_for(self):
        self.fails(128 + 11, 'PE 0 on host0 was killed by signal 11', 8, 'start',
                   f'0:kill={int(signal.SIGSEGV)}', 'barrier', 'wait')

    def test_killed_while_others_ignore_the_end(self):
        self.fails(128 + 9, 'PE 1 on host0', 3, 'start', 'ignore', 'barrier', f'1:kill={int(signal.SIGKILL)}', 'wait')

    def test_ends_while_it_is_waited_for(self):
        self.fails(1, 'PE 2 on host0 has ended; PE', 4, 'start', 'barrier', '2:exit=0', 'barrier', 'wait')

    def test_ends_and_others_do_not(self):
        self.fails(1, 'PE 2 on host0 ended without shmem_finalize', 4, 'start', 'barrier', '2:exit=0', 'wait')

    def test_all_end_alike(self):
        self.ok(4, 'start', 'barrier', 'exit=0')

    def test_ends_without_joining(self):
        out = self.oshrun('-np', 2, 'sh', '-c', f'test $OSHRUN_PE = 1 || exec {PE} start barrier wait')
        self.assertEqual(out.returncode, 1, out.stderr)
        self.assertIn('PE 1 on host0 has ended and never called shmem_init', out.stderr)

    def test_no_program(self):
        out = self.oshrun('-np', 2, self.folder / 'none')
        self.assertEqual((out.returncode, out.stderr),
                         (127, f'oshrun: {self.folder}/none: No such file or directory\n'))
        (self.folder / 'text').write_text('')
        self.assertEqual(self.oshrun(self.folder / 'text').returncode, 126)

    def test_no_folder(self):
        out = self.oshrun('--wdir', self.folder / 'none', 'true')
        self.assertEqual((out.returncode, out.stderr),
                         (127, f'oshrun: {self.folder}/none: No such file or directory\n'))

    def test_limit_of_time(self):
        out = self.pes(2, 'start', 'status', 'wait', options=('--timeout', '0.5'))
        self.assertEqual(out.returncode, 124)
        self.assertRegex(out.stderr, r' 0 +\d+ +host0 +\d+ s +waits in shmem_wait\?\[1m for PE 1 at 0x1234\n')
        self.assertRegex(out.stderr, r'oshrun: the job has not ended in 0.5 s \(--timeout\)\n$')

    def test_hosts_killed_while_they_start(self):
        """The first host is up, the second does not listen yet: both end."""
        agent = self.folder / 'agent'
        agent.write_text(f'#!{sys.executable}\n' + KILLING_AGENT.format(fabric=self.folder / 'fabric',
                                                                        agent=os.environ['VIADUCTD']))
        agent.chmod(0o700)
        out = self.oshrun('--hosts', 2, 'true', env=environment(VIADUCT_AGENT=str(agent)))
        fabric = (self.folder / 'fabric').read_text()
        until(lambda: not processes_of(fabric), 'the end of the hosts')
        self.assertEqual(out.returncode, 1)
        self.assertIn('oshrun: the hosts of the job could not be started: vi_fabric was ended by a signal, Killed\n', out.stderr)

    def test_nothing_is_left(self):
        process, pids = self.started('barrier', n=4, options=('--hosts', '2'))
        fabric = self.fabric_of(process)
        os.kill(pids[2], signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 137)
        self.assertIn('PE 2 on host0 was killed by signal 9', err)
        self.assert_gone(pids, fabric)


class Left(Case):
    """Processes that PEs leave running end with the job."""

    def left(self, script, n=2, code=0, **kw):
        """Runs the script; returns the processes whose numbers it writes to files."""
        for path in self.folder.iterdir():
            path.unlink()
        out = self.oshrun('-np', n, 'sh', '-c', f'exec </dev/null >/dev/null 2>&1; {script}', self.folder / 'pid', **kw)
        self.assertEqual((out.returncode, out.stderr), (code, ''))
        return [int(path.read_text()) for path in self.folder.glob('pid.*')]

    def test_children(self):
        pids = self.left('sleep 1000 & echo $! >$0.$OSHRUN_PE')
        self.assertEqual(len(pids), 2)
        self.assertFalse(any(map(alive, pids)))

    def test_daemon(self):
        """A process in a session of its own, whose parent has ended; the second ignores signals."""
        for first in ('', 'trap "" TERM INT HUP; '):
            pids = self.left(f"setsid sh -c '{first}(sh -c \"echo \\$\\$ >$0.$OSHRUN_PE; : >$0; exec sleep 1000\") &' $0; "
                             'while ! [ -s $0.$OSHRUN_PE ]; do :; done')
            self.assertEqual(len(pids), 2)
            self.assertFalse(any(map(alive, pids)))

    def test_daemon_in_exec(self):
        """During execve() /proc shows the process without arguments and environment for a moment."""
        for _ in range(10):
            pids = self.left("(setsid sh -c 'echo $$ >$0.$OSHRUN_PE; exec sh -c \"$1\" \"$1\"' $0 'exec sh -c \"$0\" \"$0\"' &); "
                             'while ! [ -s $0.$OSHRUN_PE ]; do :; done')
            self.assertEqual(len(pids), 2)
            self.assertFalse(any(map(alive, pids)))

    def test_after_an_error(self):
        out = self.oshrun('-np', 2, 'sh', '-c', f'sleep 1000 >/dev/null 2>&1 & echo $! >$0.$OSHRUN_PE; {PE} start; exit 3',
                          self.folder / 'pid')
        self.assertEqual(out.returncode, 3, out.stderr)
        self.assertFalse(any(alive(int(path.read_text())) for path in self.folder.glob('pid.*')))

    def test_agents_stay(self):
        """An agent that a PE has started on demand serves all programs of the user."""
        fabric = f'left{os.getpid()}'
        pids = self.left(f'VIADUCT_FABRIC={fabric} setsid {os.environ["VIADUCTD"]} --on-demand --grace-ms 3600000 --ready-fd 9 '
                         '9>$0 & echo $! >$0.agent; while ! [ -s $0 ]; do :; done; exit 0', n=1)
        self.assertTrue(all(map(alive, pids)))
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        until(lambda: not any(map(alive, pids)), 'the end of the agent')


class Signals(Case):
    def passed(self, number):
        process, pids = self.started('barrier')
        fabric = self.fabric_of(process)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + number)
        self.assert_gone(pids, fabric)

    def test_ending(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                self.setUp()
                self.passed(number)

    def test_pes_that_finalize(self):
        """oshrun answers requests of PEs after SIGTERM, so that all can leave the job in order."""
        mark = self.folder / 'here'
        process = subprocess.Popen([OSHRUN, '-np', '3', PE, 'start', 'heed', 'barrier', f'touch={mark}', 'await', 'barrier',
                                    'exchange=1000', 'finish', 'say=left'], env=environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        until(lambda: all(Path(f'{mark}.{pe}').exists() for pe in range(3)), 'the start')
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out, err), (128 + signal.SIGTERM, 'left\n' * 3, ''))

    def test_signals_of_the_user(self):
        """PEs get SIGUSR1 and the like; oshrun and the job go on."""
        script = 'trap "echo one >&2" USR1; trap "echo two >&2; exit 5" USR2; : >$0.$OSHRUN_PE; while :; do sleep 0.05; done'
        process = subprocess.Popen([OSHRUN, '-np', '2', 'sh', '-c', script, self.folder / 'here'], env=environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        until(lambda: all((self.folder / f'here.{pe}').exists() for pe in range(2)), 'the start')
        process.send_signal(signal.SIGUSR1)
        self.assertEqual([process.stderr.readline() for _ in range(2)], ['one\n'] * 2)
        process.send_signal(signal.SIGUSR2)
        self.assertEqual((process.wait(timeout=PATIENCE), process.stderr.read()), (5, 'two\n' * 2))

    def test_pes_that_are_stopped(self):
        """oshrun continues them, so that they can leave in order."""
        script = 'trap "echo left; exit 3" TERM; echo $$ >$0.$OSHRUN_PE; kill -STOP $$; while :; do sleep 0.05; done'
        files = [self.folder / f'here.{pe}' for pe in range(2)]
        process = subprocess.Popen([OSHRUN, '-np', '2', 'sh', '-c', script, self.folder / 'here'], env=environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        until(lambda: all(f.exists() and f.read_text() for f in files), 'the start')
        until(lambda: all(Path(f'/proc/{int(f.read_text())}/stat').read_text().rpartition(')')[2].split()[0] == 'T'
                          for f in files), 'the stop')
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out, err), (128 + signal.SIGTERM, 'left\n' * 2, ''))

    def test_pes_that_ignore_it(self):
        process, pids = self.started('ignore', 'barrier')
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertFalse(any(map(alive, pids)))

    def test_report(self):
        # As in a shell's background job: the signal that asks for a report has its effect all the same.
        before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGQUIT, before)
        process, pids = self.started('status', 'barrier')
        process.send_signal(signal.SIGQUIT)
        lines = [process.stderr.readline() for _ in range(3)]
        for pe in range(2):
            self.assertRegex(lines[pe + 1], rf' {pe} +{pids[pe]} +host0 +\d+ s  waits in shmem_wait\?\[1m for PE 1')
        self.assertIsNone(process.poll())
        self.assertTrue(all(map(alive, pids)))

    def test_report_of_a_standstill(self):
        process, _ = self.started('status', 'barrier', options=('--hang-report', '0.5'))
        self.assertIn('state', process.stderr.readline())
        self.assertIn('waits in shmem_wait', process.stderr.readline())

    def test_oshrun_killed(self):
        process, pids = self.started('ignore', 'barrier', n=4, options=('--hosts', '2'))
        fabric = self.fabric_of(process)
        process.kill()
        process.communicate(timeout=PATIENCE)
        self.assert_gone(pids, fabric)

    def test_oshrun_killed_and_pes_are_no_children(self):
        mark = self.folder / 'here'
        process = subprocess.Popen([OSHRUN, '-np', '2', 'sh', '-c',
                                    f'{PE} start pid={self.folder}/pid barrier touch={mark} wait; true'],
                                   env=environment(), stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        until(lambda: all(Path(f'{mark}.{pe}').exists() for pe in range(2)), 'the start')
        pids = [int((self.folder / f'pid.{pe}').read_text()) for pe in range(2)]
        fabric = self.fabric_of(process)
        process.kill()
        process.wait(timeout=PATIENCE)
        self.assert_gone(pids, fabric)

    def go_on(self, pid):
        if alive(pid):
            os.kill(pid, signal.SIGCONT)

    def test_hosts_stopped(self):
        process, pids = self.started('barrier')
        fabric = self.fabric_of(process)
        for pid, words in processes_of(fabric):
            if 'up' in words:
                os.kill(pid, signal.SIGSTOP)
                self.addCleanup(self.go_on, pid)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assert_gone(pids, fabric)

    def test_hosts_killed(self):
        process, pids = self.started('barrier')
        fabric = self.fabric_of(process)
        for pid, words in processes_of(fabric):
            if 'up' in words:
                os.kill(pid, signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertIn('vi_fabric, which has the hosts of the job, has ended', err)
        self.assert_gone(pids, fabric)


class Waits(Case):
    """oshrun waits for other programs, and ends all the same."""

    def with_fabric(self, text, *args):
        """Starts an oshrun that finds this script as vi_fabric, next to itself."""
        shutil.copy(OSHRUN, self.folder / 'oshrun')
        script = self.folder / 'vi_fabric'
        script.write_text(f'#!/bin/sh\n{text}\n')
        script.chmod(0o700)
        process = subprocess.Popen([self.folder / 'oshrun', *args], env=environment(), text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    def test_hosts_that_do_not_start(self):
        script = f'[ $1 = down ] && exit; : >{self.folder}/here; exec sleep 1000'
        process = self.with_fabric(script, 'true')
        until((self.folder / 'here').exists, 'the start of the hosts')
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.wait(timeout=PATIENCE), process.stderr.read()), (128 + signal.SIGTERM, ''))
        process = self.with_fabric(script, '--timeout', '0.3', 'true')
        self.assertEqual((process.wait(timeout=PATIENCE), process.stderr.read()),
                         (124, 'oshrun: the hosts of the job have not started in 0.3 s (--timeout)\n'))
        process = self.with_fabric(script, '--timeout', '0.3', '--fabric', 'some', 'true')
        self.assertEqual(process.wait(timeout=PATIENCE), 124)

    def test_hosts_that_do_not_end(self):
        """After another Ctrl-C the user gets the terminal back, while vi_fabric goes on ending the hosts."""
        os.mkfifo(self.folder / 'go')
        script = f'cd {self.folder}; [ $1 = up ] || exit 0; trap "" TERM; echo up; read line <go; : >ended'
        process = self.with_fabric(script, 'touch', self.folder / 'done')
        until((self.folder / 'done').exists, 'the end of the job')
        until(lambda: process.poll() is not None or process.send_signal(signal.SIGTERM) is not None, 'the end')
        self.assertIn(process.returncode, (0, 128 + signal.SIGTERM))
        with open(self.folder / 'go', 'r+b', buffering=0) as go:
            go.write(b'\n')
            until((self.folder / 'ended').exists, 'the end of the hosts')

    def test_program_that_is_a_fifo(self):
        os.mkfifo(self.folder / 'fifo', 0o700)
        out = self.oshrun('-np', 2, self.folder / 'fifo')
        self.assertEqual((out.returncode, out.stderr), (126, f'oshrun: {self.folder}/fifo: Permission denied\n'))


class Streams(Case):
    def test_input_is_of_pe_0(self):
        out = self.oshrun('-np', 3, 'sh', '-c', 'echo $OSHRUN_PE $(cat)', text='some text\n')
        self.assertEqual(sorted(out.stdout.splitlines()), ['0 some text', '1', '2'])

    def test_tags(self):
        out = self.ok(3, 'start', 'say=one', 'mutter=two', 'mutter=-three', 'finish', options=('-l',))
        self.assertEqual(sorted(out.splitlines()),
                         sorted(f'[{pe}] {text}' for pe in range(3) for text in ('one', 'two-three')))

    def test_tags_of_errors(self):
        out = self.oshrun('-np', 2, '--tag-output', 'sh', '-c', 'echo to error >&2; echo to output')
        self.assertEqual(sorted(out.stderr.splitlines()), ['[0] to error', '[1] to error'])
        self.assertEqual(sorted(out.stdout.splitlines()), ['[0] to output', '[1] to output'])

    def test_tags_of_much(self):
        out = self.oshrun('-np', 4, '-l', 'sh', '-c', 'seq 1 20000; printf "%0100000d" 0')
        lines = out.stdout.splitlines()
        for pe in range(4):
            mine = [line[4:] for line in lines if line.startswith(f'[{pe}] ')]
            self.assertEqual(mine[:20000], [str(i) for i in range(1, 20001)])
            self.assertEqual(''.join(mine[20000:]), '0' * 100000)
        self.assertTrue(all(re.match(r'\[[0-3]\] ', line) for line in lines))

    def test_reader_that_leaves(self):
        for tag in ((), ('-l',)):
            process = subprocess.Popen([OSHRUN, '-np', '2', *tag, 'yes'], env=environment(), text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(self.end, process)
            process.stdout.read(100)
            process.stdout.close()
            self.assertEqual(process.wait(timeout=PATIENCE), 128 + signal.SIGPIPE)
            process.stderr.close()

    def test_output_that_cannot_be_written(self):
        with open('/dev/full', 'wb', buffering=0) as full:
            out = subprocess.run([OSHRUN, '-np', '2', '-l', 'echo', 'text'], env=environment(), stdin=subprocess.DEVNULL,
                                 stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((out.returncode, out.stderr),
                         (1, 'oshrun: standard output cannot be written: No space left on device\n'))

    def test_output_that_does_not_block(self):
        """Standard output is a pipe that is full for a while, with O_NONBLOCK set, as other programs leave it."""
        out, into = os.pipe()
        os.set_blocking(into, False)
        process = subprocess.Popen([OSHRUN, '-np', '2', '-l', 'seq', '1', '40000'], env=environment(), stdin=subprocess.DEVNULL,
                                   stdout=into, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        room = select.poll()
        room.register(into, select.POLLOUT)
        until(lambda: not room.poll(0), 'a full pipe')
        os.close(into)
        with open(out, encoding='utf-8') as reader:
            lines = reader.read().splitlines()
        self.assertEqual((process.wait(timeout=PATIENCE), process.stderr.read()), (0, ''))
        self.assertEqual(lines.count('[0] 40000') + lines.count('[1] 40000'), 2)
        self.assertEqual(len(lines), 80000)

    def unread(self, *args, stream='stdout'):
        """Starts an oshrun that writes to a pipe which nobody reads; returns it once the pipe is full."""
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        process = subprocess.Popen([OSHRUN, *args], env=environment(), stdin=subprocess.DEVNULL,
                                   **{'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL, stream: into})
        self.addCleanup(self.end, process)
        room = select.poll()
        room.register(into, select.POLLOUT)
        until(lambda: not room.poll(0) or process.poll() is not None, 'a full pipe')
        os.close(into)
        return process

    def test_output_that_nobody_reads(self):
        """Signals and --timeout end the job all the same."""
        for stream, number, words in (('stdout', signal.SIGTERM, ('yes',)), ('stderr', signal.SIGINT, ('sh', '-c', 'yes >&2'))):
            process = self.unread('-np', '2', '-l', *words, stream=stream)
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=PATIENCE), 128 + number)
        process = self.unread('-np', '2', '-l', '--timeout', '1', 'yes')
        self.assertEqual(process.wait(timeout=PATIENCE), 124)

    def test_output_that_nobody_reads_of_pes_that_have_ended(self):
        process = self.unread('-np', '2', '-l', 'sh', '-c', f'seq 1 20000; touch {self.folder}/$OSHRUN_PE')
        until(lambda: process.poll() is not None or process.send_signal(signal.SIGTERM) is not None, 'the end')
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_output_that_is_read_late(self):
        """Nothing is lost, though the PEs have ended long before."""
        out, into = os.pipe()
        process = subprocess.Popen([OSHRUN, '-np', '2', '-l', 'sh', '-c', f'seq 1 9000; : >{self.folder}/$OSHRUN_PE'],
                                   env=environment(), stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        os.close(into)
        until(lambda: all((self.folder / str(pe)).exists() for pe in range(2)), 'the end of the PEs')
        with open(out, encoding='utf-8') as reader:
            lines = reader.read().splitlines()
        self.assertEqual(process.wait(timeout=PATIENCE), 0)
        self.assertEqual([line for line in lines if line[:4] == '[1] '], [f'[1] {i}' for i in range(1, 9001)])

    def test_child_that_writes_on(self):
        """The output of a child is not read any more after its PE has ended."""
        out = self.oshrun('-np', 2, '-l', 'sh', '-c', 'yes & exit 0')
        self.assertEqual((out.returncode, out.stderr), (0, ''))

    def test_much_output_before_an_error(self):
        """PEs print more than oshrun takes while nobody reads it: that is not lost when the job fails."""
        os.mkfifo(self.folder / 'fail')
        out, into = os.pipe()
        # The pipe of each PE has room for its output.
        process = subprocess.Popen([OSHRUN, '-np', '9', '-l', 'sh', '-c',
                                    f'[ $OSHRUN_PE != 0 ] || {{ read line <{self.folder}/fail; exec {PE} start exit=3; }}; '
                                    f'seq -f "%099g" 1 600; echo $$ >$0.$OSHRUN_PE; exec sleep 1000', self.folder / 'pid'],
                                   env=environment(), stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        os.close(into)
        paths = [self.folder / f'pid.{pe}' for pe in range(1, 9)]
        until(lambda: all(path.exists() and path.read_text() for path in paths), 'the end of what is printed')
        pids = [int(path.read_text()) for path in paths]
        (self.folder / 'fail').write_text('now\n')
        until(lambda: not any(map(alive, pids)), 'the end of the PEs')
        with open(out, encoding='utf-8') as reader:
            lines = reader.read().splitlines()
        self.assertEqual(process.wait(timeout=PATIENCE), 3)
        self.assertEqual(sorted(lines), sorted(f'[{pe}] {i:099}' for pe in range(1, 9) for i in range(1, 601)))

    def test_output_of_an_end(self):
        out = self.pes(2, 'start', 'barrier', '1:say=last words', '1:abort=1', 'wait', options=('-l',))
        self.assertEqual(out.stdout, '[1] last words\n')


class Options(Case):
    def words(self, *options, n=4):
        out = self.oshrun(*options, 'sh', '-c', 'echo $OSHRUN_PE $VIADUCT_HOST')
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        return ' '.join(line.split()[1] for line in sorted(out.stdout.splitlines()))

    def test_map(self):
        self.assertEqual(self.words('-np', 6, '--hosts', 3), '0 1 2 0 1 2')
        self.assertEqual(self.words('-np', 6, '--hosts', 3, '--map', 'block'), '0 0 1 1 2 2')
        self.assertEqual(self.words('--map=block', '-N', 2, '--hosts', 2), '0 0 1 1')
        self.assertEqual(self.words('-np', 2, '--hosts', 4, '--topology', 'chain'), '0 1')

    def test_spellings(self):
        for options in (('-np', '2'), ('--np', '2'), ('-n', '2'), ('-n2',), ('--np=2',), ('-np=2',),
                        ('-np', '2', '-oversubscribe', '--allow-run-as-root', '--map-by', 'socket'),
                        ('-c', '2'), ('--n', '2'), ('-ppn', '2'), ('--npernode', '2'), ('-np', '2', '-ppn', '4'),
                        ('-np', '2', '--mca', 'btl', 'self,vader', '-mca', 'a', 'b', '-q', '--bind-to', 'none'),
                        ('-H', 'localhost:2'), ('--host', 'localhost,127.0.0.1:1'), ('-host', os.uname().nodename + ':2'),
                        ('-np', '2', '-H', os.uname().nodename.split('.')[0])):
            self.assertEqual(self.words(*options), '0 0', options)

    def test_file_of_hosts(self):
        path = self.folder / 'hosts'
        for text, places in (('localhost slots=2\n', 2), ('# none\n\nlocalhost\n127.0.0.1:2 # two', 3), ('', 1)):
            path.write_text(text)
            for option in ('--hostfile', '-machinefile'):
                self.assertEqual(self.words(option, path), ' '.join('0' * places), text)
        for text in ('localhost\n-oProxyCommand=x slots=1', 'localhost slots=x', 'localhost:0'):
            path.write_text(text)
            out = self.oshrun('--hostfile', path, 'true')
            self.assertEqual((out.returncode, out.stderr.count('\n')), (2, 1), out.stderr)
            self.assertIn('--hostfile:', out.stderr)
        out = self.oshrun('--hostfile', self.folder / 'none', 'true')
        self.assertEqual((out.returncode, out.stderr), (1, 'oshrun: --hostfile: No such file or directory\n'))

    def test_options_of_the_program(self):
        out = self.oshrun('-np', 1, 'echo', '-np', '7', '--hosts', '9', '-l', '--')
        self.assertEqual(out.stdout, '-np 7 --hosts 9 -l --\n')
        self.assertEqual(self.oshrun('--', 'echo', '-l').stdout, '-l\n')

    def test_wrong(self):
        for options in (('-np', '0', 'true'), ('-np', 'x', 'true'), ('--hosts', '65', 'true'), ('-np', '2'), (),
                        ('-np', '3', '-N', '2', 'true'), ('-np', '5', '-N', '2', '--hosts', '2', 'true'), ('--topology', 'ring', 'true'), ('--none', 'true'),
                        ('-np', '5000', 'true'), ('-N', '100', '--hosts', '64', 'true'), ('--map', 'x', 'true'),
                        ('--fabric', 'f', '--window', '1G', 'true'), ('--bind-to', 'board', 'true'), ('-x', '=1', 'true'),
                        ('-H', 'else where', 'true'), ('--host', 'localhost:0', 'true'), ('--host', '', 'true'),
                        ('-H', 'localhost:2:3', 'true'), ('-H', 'localhost,', 'true'), ('-H', 'localhost:5000', 'true'),
                        ('--mca', 'a'), ('-genv', 'A'), ('-genv', 'A=1', 'x', 'true'), ('true', ':'), ('true', ':', ':', 'true'), ('true', ':', '-np', '1'),
                        ('true', ':', '--hosts', '2', 'true'), ('true', ':', '-x', '=a', 'true'), ('-np', '4000', 'true', ':', '-np', '97', 'true'),
                        ('-env', '', 'x', 'true'), ('true', *(':', 'true') * 64)):
            out = self.oshrun(*options)
            self.assertEqual((out.returncode, out.stderr.count('\n')), (2, 1), (options, out.stderr))

    def test_not_misread(self):
        """Refuses options of other launchers that begin like one of oshrun or have another meaning there."""
        for options in (('-f', 'true'), ('-p', '2'), ('-t', '5'), ('-b', 'none'), ('-hosty', 'x'), ('-hostfil', 'x'), ('-helping',),
                        ('-nolocal',), ('-xterm', '1'), ('-Hm0',), ('-cpus-per-proc', '2'), ('-verb',), ('--display', 'map'),
                        ('--report', 'x'), ('--time', '3'), ('--output-filename', 'x'), ('-output-filename', 'x'), ('-hosts', 'a,b'),
                        ('--map-by', 'board'), ('--map-by', 'ppr:2:socket'), ('--map-by', 'ppr:x:node'), ('--map-by', 'dist'),
                        ('--rankfile', 'x'), ('-V1',)):
            out = self.oshrun(*options, 'echo', 'run')
            self.assertEqual((out.returncode, out.stdout, out.stderr.count('\n')), (2, '', 1), (options, out.stderr))
            self.assertIn(options[0].lstrip('-').split('=')[0], out.stderr)

    def test_empty_arguments(self):
        for option in ('--topology', '--window', '--fabric', '--wdir', '-x'):
            out = self.oshrun('--hosts', 2, option, '', 'true')
            self.assertEqual((out.returncode, out.stderr.count('\n')), (2, 1), out.stderr)
            self.assertIn("'' is empty; see --help", out.stderr)

    def test_without_effect(self):
        """Options without effect are named in one line, unless -q is given."""
        for options, names in ((('-mca', 'a', 'b', '--mca', 'c', 'd', '--rank-by', 'slot'), '--mca, --rank-by'),
                               (('--display-map', '--report-bindings'), '--display-map, --report-bindings'),
                               (('--map-by', 'socket:PE=2'), '--map-by after the colon')):
            out = self.oshrun('-np', 2, *options, 'true')
            self.assertEqual((out.returncode, out.stderr), (0, f'oshrun: without effect here: {names}\n'))
            self.assertEqual(self.oshrun('-np', 2, *options, '-q', 'true').stderr, '')

    def test_map_by(self):
        self.assertEqual(self.words('-np', 4, '--hosts', 2, '--map-by', 'slot'), '0 0 1 1')
        self.assertEqual(self.words('-np', 4, '--hosts', 2, '--map-by', 'node:OVERSUBSCRIBE'), '0 1 0 1')
        self.assertEqual(self.words('--hosts', 2, '--map-by', 'ppr:2:node'), '0 1 0 1')

    def test_programs(self):
        """Several programs are one job."""
        join = (PE, 'start', 'job', 'barrier', 'exchange=9', 'finish')
        out = self.oshrun('-np', 2, *join, ':', '-n', 1, *join, 'exit=0', ':', 'sh', '-c', f'exec {" ".join(join)}')
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        lines = sorted(line.split() for line in out.stdout.splitlines())
        self.assertEqual([line[0] for line in lines], ['0/4', '1/4', '2/4', '3/4'])
        self.assertEqual(len({line[1] for line in lines}), 1)

    def test_programs_with_their_options(self):
        show = ('sh', '-c', 'echo $OSHRUN_PE/$OSHRUN_NPES $VIADUCT_HOST $ALL-$ONE-$TWO $PWD $*', 'sh')
        out = self.oshrun('--hosts', 2, '-x', 'ALL=1', '-env', 'ONE', '2', '--wdir', '/', *show, 'first', ':', '-np', 2,
                          '-x', 'TWO=3', '--wdir', self.folder, *show, '-np', '7')
        here = self.folder.resolve()
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        self.assertEqual(sorted(out.stdout.splitlines()),
                         ['0/3 0 1-2- / first', f'1/3 1 1--3 {here} -np 7', f'2/3 0 1--3 {here} -np 7'])

    def test_programs_that_fail(self):
        out = self.oshrun('true', ':', self.folder / 'none')
        self.assertEqual((out.returncode, out.stderr), (127, f'oshrun: {self.folder}/none: No such file or directory\n'))
        out = self.oshrun('true', ':', 'sh', '-c', 'exit 3')
        self.assertEqual((out.returncode, out.stderr), (3, ''))

    def test_program_of_another_library(self):
        """A program of another OpenSHMEM library is refused: its processes would not find each other."""
        (self.folder / 'library.c').write_text('int other(void) { return 0; }\n')
        (self.folder / 'main.c').write_text('int other(void);\nint main(void) { return other(); }\n')
        program = self.folder / 'program'
        for name, soname, refused in (('one', 'liboshmem.so.40', True), ('two', 'libother.so.1', False)):
            library = self.folder / f'lib{name}.so'
            subprocess.run(['cc', '-shared', '-fPIC', f'-Wl,-soname,{soname}', self.folder / 'library.c', '-o', library], check=True)
            (self.folder / soname).symlink_to(library)
            subprocess.run(['cc', self.folder / 'main.c', library, f'-Wl,-rpath,{self.folder}', '-o', program], check=True)
            for path in (program, './program', 'program'):
                out = self.oshrun('-np', 2, '-x', f'PATH=/nothing:{self.folder}', '--wdir', self.folder, path)
                self.assertEqual((out.returncode, out.stderr.count('\n')), (126, 1) if refused else (0, 0), out.stderr)
                self.assertEqual(f'{path} uses {soname} and not' in out.stderr, refused)
            self.assertEqual(self.oshrun('-np', 1, program).returncode, 0)

    def test_wrong_hosts(self):
        out = self.oshrun('--hosts', 4, '--topology', 'mesh:3x3', 'true')
        self.assertIn(out.returncode, (1, 2))
        self.assertIn('oshrun: the hosts of the job could not be started', out.stderr)

    def test_help_and_version(self):
        out = self.oshrun('--help')
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        self.assertIn('--hang-report', out.stdout)
        self.assertRegex(self.oshrun('--version').stdout, r'^oshrun \(Viaduct\) \d')

    def test_exports(self):
        out = self.oshrun('-x', 'ONE=1', '--export', 'TWO=a=b', '-x', 'HOME', 'sh', '-c', 'echo $ONE $TWO')
        self.assertEqual(out.stdout, '1 a=b\n')
        out = self.oshrun('-genv', 'ONE', 'a b', '-env', 'TWO', '', '-x', 'THREE=3', 'sh', '-c', 'echo $ONE,$TWO,$THREE')
        self.assertEqual(out.stdout, 'a b,,3\n')

    def test_folder(self):
        self.assertEqual(self.oshrun('--wdir', self.folder, 'pwd').stdout, f'{self.folder.resolve()}\n')

    def test_bind(self):
        allowed = sorted(os.sched_getaffinity(0))
        out = self.oshrun('-np', len(allowed) + 1, '--bind-to', 'core', 'sh', '-c',
                          'echo $OSHRUN_PE $(grep Cpus_allowed_list /proc/self/status)')
        got = {int(line.split()[0]): line.split()[2] for line in out.stdout.splitlines()}
        for pe in range(len(allowed) + 1):
            self.assertEqual(got[pe], str(allowed[pe % len(allowed)]))

    def bound(self, *options):
        """{PE: processors}, with two PEs for every processor of this machine."""
        out = self.oshrun('-np', 2 * len(os.sched_getaffinity(0)), *options, 'sh', '-c',
                          'echo $OSHRUN_PE $(grep Cpus_allowed_list /proc/self/status)')
        return {int(line.split()[0]): line.split()[2] for line in out.stdout.splitlines()}

    def test_bind_to_parts(self):
        """PEs get complete parts of the machine, in turn and until all are used, within the processors of oshrun."""
        def numbers(text):
            return [n for part in text.split(',') for n in range(int(part.split('-')[0]), int(part.split('-')[-1]) + 1)]

        allowed = sorted(os.sched_getaffinity(0))
        for what in ('hwthread', 'core', 'cache', 'l3cache', 'package', 'socket', 'numa'):
            with self.subTest(what=what):
                done = self.oshrun('-np', 1, '--bind-to', what, 'true')
                if done.returncode != 0:  # no hwloc, or a machine that does not tell
                    self.assertRegex(done.stderr, rf'(?m)^oshrun: .*--bind-to {what}: .*(hwloc|does not tell)')
                    continue
                for options in ((), ('--map-by', 'package'), ('--map-by', 'slot:PE=2')):
                    if options[1:] == ('package',) and what in ('hwthread', 'core'):
                        continue
                    got = self.bound('--bind-to', what, *options)
                    self.assertEqual(sorted(got), list(range(2 * len(allowed))))
                    parts = [numbers(text) for text in got.values()]
                    self.assertEqual(sorted({n for part in parts for n in part}), allowed)

    def test_verbose(self):
        out = self.oshrun('-np', 2, '-v', '--hosts', 2, 'true')
        self.assertRegex(out.stderr, r'oshrun: PE 1 on host1: process \d+\n')
        self.assertIn('oshrun: PE 0 on host0: ended with exit status 0\n', out.stderr)

    def test_fabric_of_the_user(self):
        name = f'of-the-user-{os.getpid()}'
        command = [os.environ['VI_FABRIC'], '--name', name]
        subprocess.run([*command, 'up', '--hosts', '1'], env=environment(), check=True, timeout=PATIENCE, capture_output=True)
        try:
            out = self.oshrun('-np', 2, '--fabric', name, 'sh', '-c', 'echo $VIADUCT_FABRIC:$VIADUCT_HOST')
        finally:
            subprocess.run([*command, 'down'], env=environment(), check=True, timeout=PATIENCE, capture_output=True)
        # The name contains the user id: in a user name space of its own a PE could have another id.
        self.assertEqual(out.stdout, f'{os.geteuid()}:{name}:\n' * 2)

    def test_fabric_that_does_not_run(self):
        out = self.oshrun('-np', 2, '--fabric', 'not-up', 'true')
        self.assertEqual((out.returncode, out.stderr.count('\n')), (1, 1))
        self.assertIn('fabric not-up is not up', out.stderr)


class Refused(Case):
    """A process that no launcher started, or that has lost its socket, says so in one line."""

    def refused(self, pattern, args=(), **env):
        out = subprocess.run([*args, PE, 'start', 'finish'], env=environment(**env), text=True, timeout=PATIENCE,
                             stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual((out.returncode, out.stderr.count('\n')), (98, 1), out.stderr)
        self.assertRegex(out.stderr, pattern)

    def test_alone(self):
        self.refused('no launcher started this program.*oshrun -np N')

    def test_other_launchers(self):
        self.refused("Open MPI's mpirun started this program", OMPI_COMM_WORLD_SIZE='2')
        self.refused('srun --mpi=pmix', SLURM_STEP_NUM_TASKS='2')
        self.refused('PMI', PMI_SIZE='2')

    def test_singleton_when_asked(self):
        out = subprocess.run([PE, 'start', 'job', 'barrier', 'exchange=9', 'finish', 'start', 'finish'],
                             env=environment(SHMEM_VIADUCT_SINGLETON='1'), text=True, timeout=PATIENCE,
                             stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        self.assertRegex(out.stdout, '^0/1 [0-9a-f]+ singleton\n$')

    def test_no_socket(self):
        for value in ('', ':', '5', '5:', '5:x', '-1:5', '0:1', '999999:1', '99999999999:1', '3:4 ',
                      '1:99999999999999999999999'):
            if value:
                self.refused('VIADUCT_OSHRUN=.* names no socket', VIADUCT_OSHRUN=value)

    def test_program_that_a_pe_starts(self):
        out = self.oshrun('-np', 1, PE, 'start', f'system={PE} start', 'barrier', 'finish')
        self.assertEqual((out.returncode, out.stderr.count('\n')), (0, 1), out.stderr)
        self.assertIn('names no socket of oshrun', out.stderr)


if __name__ == '__main__':
    heed_signals()
    unittest.main(verbosity=2)
