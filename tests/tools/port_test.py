#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of vi_port, which the variable VI_PORT names, on emulated ports: two processes and a cable.

Tests that need an adapter are in tests/vm/suites/vi_port.sh.
"""
import glob
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

VI_PORT = os.environ.get('VI_PORT', 'vi_port')
PATIENCE = limit(60)
cables = itertools.count()


def start(*args):
    return subprocess.Popen([VI_PORT, *args], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


class PortCase(unittest.TestCase):
    def setUp(self):
        self.device = f'emu:test{os.getpid()}-{next(cables)}'
        self.children = []

    def tearDown(self):
        for child in self.children:
            if child.returncode is None:
                child.kill()
                child.communicate()

    def behind(self, *args):
        child = start(self.device, *args)
        self.children.append(child)
        return child

    def end(self, child, status=0):
        out, err = child.communicate(timeout=PATIENCE)
        self.assertEqual(child.returncode, status, out + err)
        return out if status == 0 else err

    def run_one(self, *args, status=0):
        child = start(*args)
        self.children.append(child)
        return self.end(child, status)

    def port(self, *args, status=0):
        return self.run_one(self.device, *args, status=status)


class Usage(PortCase):
    def refused(self, word, *args):
        err = self.run_one(*args, status=2)
        self.assertEqual(err.count('\n'), 1, err)
        self.assertTrue(err.startswith('vi_port: '), err)
        self.assertIn(word, err)

    def test_commands(self):
        self.refused("'list'")
        self.refused('list', 'list', 'x')
        self.refused('stray', 'stray')
        self.refused('list', self.device, 'list')
        self.refused('zap', self.device, 'zap')
        self.refused('up, down or watch', self.device, 'link', 'side')
        self.refused('DEVICE ring BITS', self.device, 'ring')
        self.refused('DEVICE listen [BITS]', self.device, 'listen', '1', '2')
        self.refused('DEVICE serve [--bytes N]', self.device, 'serve', '1')

    def test_devices(self):
        self.refused('vi_fabric status', 'host0', 'link')
        self.refused('1 to 40 characters', 'emu:', 'link')
        self.refused('1 to 40 characters', 'emu:' + 41 * 'x', 'link')
        self.refused('+strict', 'emu+loose:x', 'link')
        self.refused('no DEVICE', 'emu', 'link')
        self.refused('no DEVICE', 'emulated:x', 'link')
        self.assertIn('no device of viaduct.ko', self.run_one('/dev/null', 'link', status=1))
        self.assertIn('is viaduct.ko loaded', self.run_one('/nowhere/viaduct0', 'link', status=1))

    def test_numbers(self):
        for bits in ('0', '0x10000', 'x', '-1', '1.5'):
            for command in ('ring', 'listen'):
                self.refused('1 to 0xffff', self.device, command, '--', bits)
        for index in ('8', '0x8', 'x'):
            self.refused('has 0 to 7', self.device, 'spad', index)
        for value in ('0x100000000', 'x', '1k'):
            self.refused('holds 0 to 0xffffffff', self.device, 'spad', '1', value)

    def test_options(self):
        for value in ('0', '1025M', 'x'):
            self.refused('--bytes', self.device, 'serve', '--bytes', value)
        for value in ('-1', 'x', '86401'):
            self.refused('--timeout', self.device, 'listen', '--timeout', value)
        self.refused('--peer', self.device, 'link', '--peer')
        self.refused('--bytes', self.device, 'ring', '1', '--bytes', '1k')
        self.refused('--timeout', 'list', '--timeout', '1')
        for value in ('0', 'x', '86401'):
            self.refused('--seconds', self.device, 'selftest', '--seconds', value)
        self.refused('--serve', self.device, 'link', '--serve')
        self.refused('--seconds', self.device, 'check', '--seconds', '1')
        self.refused('not for --serve', self.device, 'selftest', '--serve', '--json', 'x')
        self.refused('no other end', 'emu', 'selftest', '--serve')

    @unittest.skipIf(glob.glob('/dev/viaduct[0-9]*'), 'this machine has an adapter')
    def test_no_adapter(self):
        self.assertIn('is viaduct.ko loaded', self.run_one('list', status=1))


class Alone(PortCase):
    def test_registers_of_this_side(self):
        self.assertIn('link: down, not enabled at this end;', self.port('link'))
        self.assertEqual(self.port('link', 'down'), 'link: down\n')
        self.assertEqual(self.port('spad'), ''.join(f'spad{i}: 0x00000000\n' for i in range(8)))
        self.assertEqual(self.port('spad', '7', '0xfffffffe'), 'spad7: 0xfffffffe\n')

    def test_no_peer(self):
        for args in (('link', 'up'), ('link', 'watch'), ('spad', '--peer'), ('ring', '1'), ('listen', '1'), ('listen',),
                     ('serve',), ('check',), ('selftest',), ('selftest', '--serve')):
            self.assertIn('in 0.2 s', self.port(*args, '--timeout', '0.2', status=1), args)


class Pair(PortCase):
    def test_serve_and_check(self):
        for server, client in (('1M', '1M'), ('1', '4097'), ('300001', '7')):
            serve = self.behind('serve', '--bytes', server)
            check = self.port('check', '--bytes', client).splitlines()
            served = self.end(serve).splitlines()
            for lines in (check, served):
                self.assertEqual(len(lines), 2, lines)
            size = {'1M': 1 << 20}
            here, there = (size.get(n) or int(n) for n in (client, server))
            self.assertEqual(check[1], f'received: {here} bytes, all as they were stored')
            self.assertEqual(served[0], f'received: {there} bytes, all as they were stored')
            verdict = r'stored: {} bytes in [0-9.]+ s, [0-9.]+ MB/s; the peer received all as they were stored'
            self.assertRegex(check[0], verdict.format(there))
            self.assertRegex(served[1], verdict.format(here))

    def test_both_have_one_role(self):
        for role in ('serve', 'check'):
            other = self.behind(role)
            self.assertIn(f'the peer runs {role}, too', self.port(role, status=1))
            self.end(other, status=1)

    def test_a_peer_that_does_not_check(self):
        self.behind('link', 'watch')
        self.assertIn('no vi_port check has answered', self.port('serve', '--timeout', '4', status=1))

    def test_doorbells(self):
        listen = self.behind('listen', '0x5')
        self.assertEqual(self.port('ring', '4'), 'rang: 0x4\n')
        # The next process brings the link up again, which clears bits that have not been read.
        self.assertEqual(listen.stdout.readline(), 'rung: 0x4\n')
        self.assertEqual(self.port('ring', '0x3'), 'rang: 0x3\n')
        bits = [int(line.removeprefix('rung: '), 16) for line in self.end(listen).splitlines()]
        self.assertEqual(sum(bits) & 1, 1)

    def test_doorbells_of_any_bit(self):
        listen = self.behind('listen')
        self.assertEqual(self.port('ring', '0x8001'), 'rang: 0x8001\n')
        self.assertIn(listen.stdout.readline(), ('rung: 0x8001\n', 'rung: 0x8000\n', 'rung: 0x1\n'))

    def test_scratchpads_of_the_peer(self):
        self.behind('link', 'watch')
        self.assertEqual(self.port('spad', '--peer', '2', '4660'), 'peer spad2: 0x00001234\n')
        lines = self.port('spad', '--peer').splitlines()
        self.assertEqual(lines[1:3], ['peer spad1: 0x00000000', 'peer spad2: 0x00001234'])

    def test_the_link_ends_with_a_process(self):
        both = [self.behind('link', 'up') for _ in range(2)]
        for child in both:
            self.assertRegex(child.stdout.readline(), r'\Alink: up generation \d+\n\Z')
        both[0].kill()
        self.assertEqual(self.end(both[1]), 'link: down\n')

    def test_a_watch_sees_each_time(self):
        watch = self.behind('link', 'watch')
        self.assertEqual(watch.stdout.readline(), 'link: down\n')
        seen = set()
        for _ in range(3):
            up = self.behind('link', 'up')
            seen.add(watch.stdout.readline())
            up.kill()
            self.assertEqual(watch.stdout.readline(), 'link: down\n')
        self.assertEqual(len(seen), 3, seen)
        for line in seen:
            self.assertRegex(line, r'\Alink: up generation \d+\n\Z')

    def test_a_peer_that_was_killed(self):
        serve = self.behind('serve')
        first = self.behind('link', 'watch')
        self.assertEqual([first.stdout.readline().split()[1] for _ in range(2)], ['down', 'up'])
        first.kill()
        self.assertIn('all as they were stored', self.port('check'))
        self.assertIn('all as they were stored', self.end(serve))


UNTESTABLE = {'loads', 'atomics', 'hostile'}


class Selftest(PortCase):
    def report(self, *args, status=0):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / 'report.json'
            out = self.run_one(*args, '--seconds', '0.2', '--json', str(path), status=status)
            return out, json.loads(path.read_text())

    def check_kept(self, out, report, kind):
        self.assertEqual(report['schema'], 'viaduct.selftest')
        self.assertEqual(report['schema_version'], 1)
        self.assertEqual(report['state'], 'kept', report)
        for clause in report['clauses']:
            state = 'not testable' if clause['id'] in UNTESTABLE else 'kept'
            self.assertEqual(clause['state'], state, clause)
            if state == 'kept' and clause['id'] != 'reach':
                for way in ('to_peer', 'from_peer'):
                    self.assertGreater(clause[way]['tried'], 0, clause)
                    self.assertEqual(clause[way]['wrong'], 0, clause)
        self.assertEqual(len({clause['id'] for clause in report['clauses']}), 19)
        self.assertEqual(report['port']['kind'], kind)
        self.assertEqual(report['port']['kernel'], os.uname().release)
        self.assertEqual(report['port']['peer_kernel'], os.uname().release)
        self.assertIsNone(report['port']['chip'])
        self.assertIs(report['port']['reads_back'], False)
        self.assertIn('no read across the link before a ring', out)
        self.assertIn('stores', {measure['name'] for measure in report['measures']})
        self.assertIn('16 kept, 0 broken, 3 not testable', out)

    def test_alone(self):
        for kind in ('emu', 'emu+strict'):
            self.check_kept(*self.report(kind, 'selftest'), kind)

    def test_two_processes(self):
        for kind in ('emu', 'emu+fault'):
            device = self.device.replace('emu:', kind + ':')
            helper = start(device, 'selftest', '--serve')
            self.children.append(helper)
            self.check_kept(*self.report(device, 'selftest'), kind)
            self.assertIn('served', self.end(helper))

    def test_a_model_of_a_named_adapter(self):
        device = self.device.replace('emu:', 'emu+model:gen3x8:')
        helper = start(device, 'selftest', '--serve')
        self.children.append(helper)
        self.check_kept(*self.report(device, 'selftest'), 'emu+model')
        self.end(helper)

    def test_lost_rings_are_found(self):
        os.environ['VIADUCT_FAULT'] = 'drop_db=1'
        self.addCleanup(os.environ.pop, 'VIADUCT_FAULT')
        _, report = self.report('emu+fault', 'selftest', status=1)
        self.assertEqual(report['state'], 'broken')
        broken = {clause['id']: clause for clause in report['clauses'] if clause['state'] == 'broken'}
        self.assertIn('rings', broken)
        self.assertEqual(broken.keys(), {'rings', 'bits'})
        self.assertEqual({clause['id'] for clause in report['clauses'] if clause['state'] == 'not testable'},
                         UNTESTABLE | {'ring-order', 'clear', 'mask'})
        self.assertIn('a ring did not arrive', broken['rings']['text'])

    def test_a_report_that_cannot_be_written(self):
        err = self.run_one('emu', 'selftest', '--seconds', '0.1', '--json', '/nowhere/report.json', status=1)
        self.assertIn('/nowhere/report.json', err)

    def test_both_have_one_role(self):
        other = self.behind('selftest', '--serve')
        self.assertIn('the peer runs selftest --serve, too', self.port('selftest', '--serve', status=1))
        self.end(other, status=1)
        other = self.behind('selftest')
        child = start(self.device, 'selftest')
        self.children.append(child)
        out, err = child.communicate(timeout=PATIENCE)
        self.assertEqual((child.returncode, err), (1, ''), out)
        self.assertIn('the peer judges, too', out)
        self.end(other, status=1)


if __name__ == '__main__':
    unittest.main()
