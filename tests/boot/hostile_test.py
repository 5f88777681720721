#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The protocol of oshrun with a hostile other end: PEs that break its rules, and a launcher that does.

  hostile_test.py [CLASS[.METHOD]...]
  hostile_test.py pe BYTES      as a PE of oshrun: sends the bytes, given as hexadecimal digits, and waits for the end
  hostile_test.py lingers BYTES as pe, and passes a socket that lingers on close

OSHRUN and BOOT_PE name the programs.
"""
import array
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

from launch import PATIENCE, PE, Case, environment

MAGIC, VERSION = 0x4e52534f, 1
JOIN, EXCHANGE, FINISH, ABORT, WELCOME, RESULT = range(1, 7)
STRIDE = 65536


def frame(kind, data=b'', arg=0, length=None, magic=MAGIC, version=VERSION):
    return struct.pack('<IHHII', magic, version, kind, len(data) if length is None else length, arg) + data


def be_a_pe(text):
    fd = int(os.environ['VIADUCT_OSHRUN'].split(':')[0])
    with socket.socket(fileno=fd) as sock:
        sock.sendall(bytes.fromhex(text))
        while sock.recv(65536):
            pass
    threading.Event().wait()  # oshrun, which has closed the connection, ends this process


def pass_a_socket_that_lingers(text):
    """Sends the frame with a socket whose close() would take longer than the test waits."""
    fd = int(os.environ['VIADUCT_OSHRUN'].split(':')[0])
    listener = socket.create_server(('127.0.0.1', 0))
    far = socket.create_connection(listener.getsockname())
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 10000))
    far.setblocking(False)
    try:
        while True:
            far.send(b' ' * 65536)
    except BlockingIOError:
        pass
    with socket.socket(fileno=fd) as sock:
        os.kill(os.getppid(), signal.SIGSTOP)  # so that oshrun is the last to close it
        socket.send_fds(sock, [bytes.fromhex(text)], [far.fileno()])
        far.close()
        os.kill(os.getppid(), signal.SIGCONT)
        threading.Event().wait()


class Pe(Case):
    """PE 1 sends wrong bytes, while PE 0 waits for it."""

    def hostile(self, data, pattern):
        out = self.oshrun('-np', 2, 'sh', '-c', f'test $OSHRUN_PE = 1 || exec {PE} start barrier wait; '
                          f'exec {sys.executable} {__file__} pe {data.hex()}')
        lines = [line for line in out.stderr.splitlines() if line.startswith('oshrun: ')]
        self.assertEqual((out.returncode, len(lines)), (1, 1), out.stderr)
        self.assertRegex(lines[0], '^oshrun: PE 1 on host0 ' + pattern)

    def test_frames(self):
        for name, data in {
                'magic': frame(JOIN, magic=1),
                'kind': frame(JOIN) + frame(99),
                'kind of oshrun': frame(JOIN) + frame(RESULT),
                'join with data': frame(JOIN, b'1234'),
                'finish with data': frame(JOIN) + frame(FINISH, b'1234'),
                'too long': frame(JOIN) + frame(EXCHANGE, length=65537),
                'far too long': frame(JOIN) + frame(EXCHANGE, length=0xffffffff),
                'abort here': frame(JOIN) + frame(ABORT, b'text'),
                'text': b'GET / HTTP/1.1\r\n\r\n',
        }.items():
            with self.subTest(name):
                self.hostile(data, 'broke the rules of oshrun: no such frame')

    def test_exchanges(self):
        for name, data in {
                'without joining': frame(EXCHANGE, b'1'),
                'after leaving': frame(JOIN) + frame(FINISH) + frame(EXCHANGE, b'1'),
                'of another number': frame(JOIN) + frame(EXCHANGE, b'1', arg=1),
                'of a number below 0': frame(JOIN) + frame(EXCHANGE, b'1', arg=0xffffffff),
                'twice': frame(JOIN) + frame(EXCHANGE, struct.pack('<Q', 0)) * 2,
        }.items():
            with self.subTest(name):
                # The barrier of PE 0 is an exchange of length 0; oshrun refuses it or the pair of 8
                # bytes, whichever comes last.
                self.hostile(data, 'broke the rules of oshrun: an exchange out of turn|exchanged data of another length')

    def test_version(self):
        self.hostile(frame(JOIN, version=2), "speaks another version of oshrun's protocol")

    def test_joins_twice(self):
        self.hostile(frame(JOIN) * 2, 'began again')

    def test_socket_that_lingers(self):
        """A socket comes with a frame, and holds data that nobody reads: its last close() would wait for these."""
        out = self.oshrun('-np', 2, 'sh', '-c', f'test $OSHRUN_PE = 1 || exec {PE} start barrier wait; '
                          f'exec {sys.executable} {__file__} lingers {(frame(JOIN) + frame(99)).hex()}')
        self.assertEqual(out.returncode, 1, out.stderr)
        self.assertIn('oshrun: PE 1 on host0 broke the rules of oshrun: no such frame\n', out.stderr)

    def test_random_frames(self):
        seed = int(os.environ.get('VIADUCT_SEED', 4711))
        dice = random.Random(seed)
        for _ in range(10):
            data = frame(JOIN) + b''.join(frame(dice.choice((2, 2, 3, 4, 5, 6, 77)), dice.randbytes(dice.randrange(40)),
                                                arg=dice.randrange(3)) for _ in range(20)) + b'\0' * 32
            with self.subTest(f'VIADUCT_SEED={seed}'):
                self.hostile(data, '')

    def test_part_of_a_frame_and_the_end(self):
        for data in (b'', frame(JOIN)[:7], frame(JOIN) + frame(EXCHANGE, b'1234', length=400)):
            out = self.oshrun('-np', 1, sys.executable, '-c',
                              'import os, socket; s = socket.socket(fileno=int(os.environ["VIADUCT_OSHRUN"].split(":")[0])); '
                              f's.sendall(bytes.fromhex("{data.hex()}"))')
            self.assertEqual((out.returncode, out.stderr), (0, ''))


class Launcher(Case):
    """The test takes the place of oshrun, and answers a PE wrongly: the PE ends with one line."""

    def talk(self, answers, commands=('start', 'barrier', 'exchange=8', 'finish')):
        """`answers`: bytes for each frame of the PE, with a list of descriptors or None."""
        mine, its = socket.socketpair()
        inode = os.fstat(its.fileno()).st_ino
        with its:
            child = subprocess.Popen([PE, *commands], pass_fds=[its.fileno()], text=True, stdin=subprocess.DEVNULL,
                                     env=environment(VIADUCT_OSHRUN=f'{its.fileno()}:{inode}'),
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with mine:
            mine.settimeout(PATIENCE)
            for data, fds in answers:
                if not mine.recv(65536):
                    break
                ancillary = [] if fds is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))]
                if data:
                    mine.sendmsg([data], ancillary)
            mine.shutdown(socket.SHUT_WR)
            _, err = child.communicate(timeout=PATIENCE)
        return child.returncode, err

    def welcome(self, pe=0, n_pes=1, exchanges=0, **kw):
        return frame(WELCOME, struct.pack('<QIIII', 5, pe, n_pes, exchanges, 0), **kw)

    def setUp(self):
        super().setUp()
        self.status = os.memfd_create('status')
        os.ftruncate(self.status, STRIDE)
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.fds = [self.status, self.theirs.fileno()]
        self.addCleanup(os.close, self.status)
        self.addCleanup(self.ours.close)
        self.addCleanup(self.theirs.close)

    def test_right(self):
        code, err = self.talk([(self.welcome(exchanges=7), self.fds), (frame(RESULT, arg=7), None),
                               (frame(RESULT, bytes(i * 7 % 256 for i in range(8)), arg=8), None)])
        self.assertEqual((code, err), (0, ''))

    def test_welcomes(self):
        small = os.memfd_create('small')
        self.addCleanup(os.close, small)
        wrong = {
            'nothing': (b'', None), 'no descriptors': (self.welcome(), None), 'one': (self.welcome(), [self.status]),
            'short file': (self.welcome(), [small, self.fds[1]]), 'pe': (self.welcome(pe=1), self.fds),
            'later pe': (self.welcome(pe=1, n_pes=2), self.fds), 'none': (self.welcome(n_pes=0), self.fds),
            'many': (self.welcome(n_pes=5000), self.fds), 'magic': (self.welcome(magic=3), self.fds),
            'version': (self.welcome(version=3), self.fds), 'length': (self.welcome(length=25), self.fds),
            'kind': (frame(RESULT, bytes(24)), self.fds), 'half': (self.welcome()[:20], self.fds),
            'no file': (self.welcome(), [self.fds[1], self.fds[1]]),
        }
        for name, answer in wrong.items():
            with self.subTest(name):
                code, err = self.talk([answer])
                self.assertEqual((code, err.count('\n')), (98, 1), err)

    def test_results(self):
        wrong = {
            'nothing': b'', 'kind': frame(WELCOME), 'longer': frame(RESULT, b'1'), 'number': frame(RESULT, arg=1),
            'magic': frame(RESULT, magic=0), 'version': frame(RESULT, version=0),
            'huge': frame(RESULT, length=0xffffffff), 'half': frame(RESULT)[:9],
        }
        for name, data in wrong.items():
            with self.subTest(name):
                code, err = self.talk([(self.welcome(), self.fds), (data, None)])
                self.assertEqual((code, err.count('\n')), (97, 1), err)


if __name__ == '__main__':
    if sys.argv[1:2] == ['pe']:
        be_a_pe(sys.argv[2])
    if sys.argv[1:2] == ['lingers']:
        pass_a_socket_that_lingers(sys.argv[2])
    unittest.main(verbosity=2)
