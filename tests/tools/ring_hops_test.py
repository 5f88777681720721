#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf/ring_hops: its conclusions from given samples, and its output, with little measuring."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True

PROGRAM = ROOT / 'perf/ring_hops'
loader = importlib.machinery.SourceFileLoader('ring_hops', str(PROGRAM))
hops = importlib.util.module_from_spec(importlib.util.spec_from_loader('ring_hops', loader))
loader.exec_module(hops)
BUILD = Path(os.environ['VIADUCT_BUILD'])
ONLY = os.environ.get('RING_HOPS_ONLY')
PATIENCE = limit(240)
SIZES = [64 << 10, 256 << 10, 1 << 20, 16 << 20]


def call(*argv):
    """main() with these arguments: (exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, 'argv', ['ring_hops', *argv]), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = hops.main()
    return status, out.getvalue(), err.getvalue()


def latency(number, one, two, three, lines=(100.0, 100.0)):
    """The samples of a round."""
    trips = [{'round': number, 'what': 'trip', 'hops': h, 'bytes': 4, 'ns': ns}
             for h, ns in ((1, one), (2, two), (3, three))]
    first, last = ({'round': number, 'what': 'line', 'ns': ns} for ns in lines)
    return [first, *trips, last]


def copies(number, rate, chunk=16384):
    return {'round': number, 'what': 'copies', 'hops': 3, 'bytes': 65536, 'gbs': rate,
            'chunk': chunk, 'ring': 262144}


def bandwidth(number, bound, send, write):
    return [copies(number, bound)] + [
        {'round': number, 'what': what, 'hops': 3, 'bytes': 65536, 'gbs': rate}
        for what, rate in (('send', send), ('write', write))]


def row_of(rows, figure, links):
    return next(r for r in rows if r['figure'] == figure and r['hops'] == links)


class Conclusions(unittest.TestCase):
    def test_what_a_relay_adds(self):
        for two, ratio, held in ((400.0, 1.0, True), (600.0, 2.0, True), (620.0, 2.1, False)):
            row = row_of(hops.conclude(latency(0, 200.0, two, 9000.0)), 'added by a relay', 2)
            self.assertAlmostEqual(row['ratio'], ratio)
            self.assertIs(row['held'], held)
            self.assertEqual((row['ours'], row['against'], row['must']), (two, 200.0, 2.0))

    def test_relays_on_one_processor_are_told_and_not_judged(self):
        row = row_of(hops.conclude(latency(0, 200.0, 400.0, 9000.0)), 'added by a relay', 3)
        self.assertIsNone(row['must'])
        self.assertIs(row['held'], True)
        self.assertAlmostEqual(row['ratio'], 22.0)

    def test_ratios_are_of_one_round(self):
        samples = latency(0, 100.0, 200.0, 1.0) + latency(1, 200.0, 600.0, 1.0) \
            + latency(2, 400.0, 1600.0, 1.0)
        row = row_of(hops.conclude(samples), 'added by a relay', 2)
        self.assertEqual((row['ratio'], row['ratio_min'], row['ratio_max'], row['rounds']),
                         (2.0, 1.0, 3.0, 3))

    def test_rounds_in_which_the_processors_moved_do_not_count(self):
        samples = latency(0, 200.0, 400.0, 1.0) + latency(1, 200.0, 2000.0, 1.0, (50.0, 100.0))
        self.assertEqual(row_of(hops.conclude(samples), 'added by a relay', 2)['rounds'], 1)
        row = row_of(hops.conclude(samples[5:]), 'added by a relay', 2)
        self.assertEqual((row['ratio'], row['held'], row['rounds']), (None, False, 0))
        self.assertIn('not measured', hops.line_of(row))
        far = latency(0, 200.0, 400.0, 1.0, (9000.0, 9000.0))
        self.assertIsNone(row_of(hops.conclude(far), 'neighbour', 1)['ratio'])

    def test_shares_of_the_copies(self):
        for send, held in ((8.0, True), (7.9, False)):
            rows = hops.conclude(bandwidth(0, 10.0, send, 9.0))
            self.assertIs(row_of(rows, 'send', 3)['held'], held)
            self.assertIs(row_of(rows, 'write', 3)['held'], True)
            self.assertEqual(row_of(rows, 'write', 3)['ratio'], 0.9)
            self.assertIn('ok' if held else 'FAILED', hops.line_of(row_of(rows, 'send', 3)))

    def test_the_bound_is_the_geometry_that_is_best_most_of_the_time(self):
        samples = []
        for number, lucky in enumerate((5.0, 40.0, 6.0)):
            samples += bandwidth(number, 10.0, 8.0, 9.0) + [copies(number, lucky, 32768)]
        row = row_of(hops.conclude(samples), 'send', 3)
        self.assertEqual((row['against'], row['ratio_min'], row['ratio_max']), (10.0, 0.8, 0.8))

    def test_the_exit_status_tells_whether_all_held(self):
        for two, status in ((400.0, 0), (900.0, 1)):
            with mock.patch.object(hops, 'measure',
                                   lambda *_, ns=two: latency(0, 200.0, ns, 9000.0)):
                self.assertEqual(call('--build', str(BUILD))[0], status)


class Output(unittest.TestCase):
    def test_one_round_in_earnest(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / 'result.json'
            done = subprocess.run(
                [sys.executable, str(PROGRAM), '--rounds', '1', '--build', str(BUILD), '--json',
                 str(path), *(['--only', ONLY] if ONLY else [])], capture_output=True, text=True, timeout=PATIENCE, check=False,
                stdin=subprocess.DEVNULL)
            if 'two processors are needed' in done.stderr:
                self.skipTest('one processor')
            self.assertTrue(path.exists(), done.stdout + done.stderr)
            document = json.loads(path.read_text(encoding='utf-8'))
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual((document['schema'], document['schema_version']), ('viaduct.ring_hops', 1))
        self.assertEqual((document['topology'], document['rounds'], document['ring_bytes']),
                         ('ring:6', 1, 262144))
        found = {}
        for s in document['samples']:
            self.assertGreater(s.get('ns', s.get('gbs')), 0, s)
            found.setdefault((s['what'], s.get('hops')), []).append(s.get('bytes'))
        self.assertEqual(found.pop(('line', None)), [None, None])
        for links in (1, 2, 3):
            self.assertEqual(found.pop(('trip', links)), [4, 64])
        for what, links in () if ONLY else (
                ('copies', 2), ('send', 2), ('write', 2), ('copies', 3), ('copies-apart', 3),
                ('send', 3), ('write', 3)):
            many = 9 if what in hops.COPIES else 1
            self.assertEqual(found.pop((what, links)), [s for s in SIZES for _ in range(many)])
        self.assertEqual(found, {})
        self.assertIn('over relays', done.stdout)
        self.assertEqual(done.returncode, 0 if all(r['held'] for r in document['rows']) else 1)


class Usage(unittest.TestCase):
    def test_what_makes_no_sense_is_refused(self):
        for argv in (['--onyl', 'latency'], ['latency'], ['--only', 'rate'], ['--rounds', '0'],
                     ['--rounds', 'many'], ['--pin', '0'], ['--pin', '0,0'], ['--pin', '0,9999'],
                     ['--topology', 'ring:5'], ['--topology', 'mesh:3x3'], ['--topology', 'chain'],
                     ['--ring-bytes', '5000'], ['--ring-bytes', '2048'], ['--json', '']):
            status, out, err = call(*argv)
            self.assertEqual((status, out), (2, ''), argv)
            self.assertEqual(len(err.splitlines()), 1, err)

    def test_a_build_without_the_programs_is_refused(self):
        with tempfile.TemporaryDirectory() as empty:
            status, _, err = call('--build', empty)
        self.assertEqual(status, 1)
        self.assertIn('ring_pair', err)

    def test_help_and_version(self):
        self.assertEqual(call('--help')[0], 0)
        self.assertRegex(call('--version')[1], r'^ring_hops \(Viaduct\) [0-9.]+$')

    def test_the_program_refuses_too(self):
        for argv in (['--pin', '1'], ['--pin', '1,1'], ['--hops', '1'], ['--hops', '5'],
                     ['--rounds', '0'], ['--only', 'both'], ['more']):
            done = subprocess.run([str(BUILD / 'perf/experiments/ring/ring_pair'), *argv],
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ''), argv)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
