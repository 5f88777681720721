#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf/compare without measuring, and vi_raw with as little of it as it takes."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'perf'))
sys.dont_write_bytecode = True
from compare_lib import build, rows, scale, stats, tools  # noqa: E402  after the path to it

COMPARE = ROOT / 'perf/compare'
loader = importlib.machinery.SourceFileLoader('compare', str(COMPARE))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader('compare', loader))
loader.exec_module(compare)
VI_RAW = os.environ.get('VI_RAW')
PATIENCE = 120


def run(*argv, env=None):
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL)


def a_round(r, values, after=None):
    """A round with R around every value."""
    made = stats.Round(probes=[r, after or r])
    for key, value in values.items():
        made.take(key, value, r, after or r)
    return made


class Statistics(unittest.TestCase):
    def test_placement(self):
        self.assertEqual([stats.placement_of(r) for r in (22, 149.9, 150, 600, 601, 3000)],
                         ['near', 'near', 'far', 'far', 'very far', 'very far'])
        self.assertEqual(stats.Round(probes=[50, 900, 60]).placement, 'near')

    def test_quotients_stay_within_a_round(self):
        made = a_round(50, {'a': 150.0, 'b': 300.0})
        self.assertEqual(stats.quotient(made, 'b', 'a'), 2)
        self.assertEqual(stats.quotient(made, 'b', 'a', 2), 1)
        self.assertEqual(stats.quotient(made, 'a', None), 3)
        self.assertEqual(stats.quotient(made, 'a', ''), 150)
        self.assertIsNone(stats.quotient(made, 'a', 'missing'))
        self.assertIsNone(stats.quotient(made, 'missing', 'a'))

    def test_no_quotient_when_the_processors_moved(self):
        made = a_round(50, {'a': 100.0}, after=240)
        self.assertIsNone(stats.quotient(made, 'a', None))
        made = a_round(50, {'a': 100.0})
        made.take('b', 500.0, 240, 240)
        self.assertIsNone(stats.quotient(made, 'b', 'a'))
        self.assertEqual(stats.quotient(made, 'a', None), 2)

    def test_r_is_the_mean_around_the_sample(self):
        self.assertEqual(stats.quotient(a_round(50, {'a': 110.0}, after=60), 'a', None), 2)

    def test_very_far_rounds_count_only_alone(self):
        near, far, very_far = a_round(50, {}), a_round(200, {}), a_round(900, {})
        self.assertEqual(stats.placed([near, far, very_far]), {'near': [near], 'far': [far]})
        self.assertEqual(stats.placed([very_far]), {'near': [], 'far': [very_far]})

    def test_settled(self):
        calm = [1.0, 1.01, 0.99, 1.0, 1.01]
        wild = [1.0, 2.0, 0.5, 1.7, 1.2]
        self.assertTrue(stats.settled([calm, []]))
        self.assertFalse(stats.settled([calm, wild]))
        self.assertFalse(stats.settled([calm[:4]]))
        self.assertFalse(stats.settled([[], []]))
        self.assertLess(stats.uncertainty(calm), stats.uncertainty(wild))
        self.assertEqual(stats.uncertainty([1.0]), float('inf'))


class Rows(unittest.TestCase):
    low = rows.Row('low', 'ns', 'ours', rows.R, must=rows.both(1.5, 1.0), goal=rows.both(1.2, 0.8),
                   peers={'ucx': 'ucx', 'gone': 'gone'})
    high = rows.Row('high', 'MB/s', 'bw', 'limit', must=0.8, goal=0.9, better=rows.HIGHER)
    itself = rows.Row('itself', 'us', 'slow', against='itself', must=3.0, goal=1.0)
    beside = rows.Row('beside', 'ns', 'ours', 'floor', against='ucx', must=0.8, goal=0.5,
                      peers={'ucx': 'ucx'})

    def test_medians_of_the_rounds_of_one_placement(self):
        near = [a_round(50, {'ours': 50.0 * n, 'ucx': 100.0}) for n in (1, 1.3, 9)]
        far = [a_round(200, {'ours': 300.0, 'ucx': 200.0})]
        made, left_out = rows.outcome([self.low], near + far)
        self.assertEqual([(r['placement'], r['rounds']) for r in made], [('near', 3), ('far', 1)])
        self.assertEqual(made[0]['ratio'], 1.3)
        self.assertEqual((made[0]['must_held'], made[0]['goal_held']), (True, False))
        self.assertEqual((made[0]['ours'], made[0]['limit'], made[0]['peers']),
                         (65, 50, {'ucx': 100}))
        self.assertEqual(made[1]['ratio'], 1.5)
        self.assertFalse(made[1]['must_held'])
        self.assertEqual(left_out, [])

    def test_what_is_left_out_is_said(self):
        made, left_out = rows.outcome([self.low, self.high],
                                      [a_round(50, {'ours': 50.0}), a_round(900, {'ours': 1.0})])
        self.assertEqual([r['figure'] for r in made], ['low'])
        said = '\n'.join(left_out)
        for part in ('far did not occur', '1 rounds were very far', 'not measured, near: high'):
            self.assertIn(part, said)

    def test_placement_is_near_or_far(self):
        made, left_out = rows.outcome([self.low], [a_round(900, {'ours': 900.0})])
        self.assertEqual([r['placement'] for r in made], ['far'])
        self.assertIn('count as far', '\n'.join(left_out))

    def test_direction_unit_and_base(self):
        made, _ = rows.outcome([self.high, self.itself, self.beside],
                               [a_round(50, {'bw': 85e6, 'limit': 100e6, 'slow': 2500.0,
                                             'ours': 60.0, 'ucx': 100.0, 'floor': 30.0})])
        high, itself, beside = made
        self.assertEqual((high['ratio'], high['ours'], high['limit']), (0.85, 85, 100))
        self.assertEqual((high['must_held'], high['goal_held']), (True, False))
        self.assertEqual((itself['ratio'], itself['ours'], itself['limit']), (2.5, 2.5, None))
        self.assertTrue(itself['must_held'])
        self.assertEqual((beside['ratio'], beside['limit']), (0.6, 30))

    def test_a_missing_peer_leaves_its_row_unmeasured(self):
        made, left_out = rows.outcome([self.beside], [a_round(50, {'ours': 60.0, 'floor': 30.0})])
        self.assertEqual(made, [])
        self.assertTrue(left_out[-1].startswith('not measured'))

    def test_every_row_can_be_judged(self):
        for row in rows.all_rows():
            self.assertIn(row.unit, rows.SCALES)
            self.assertTrue(row.against in ('limit', 'itself') or row.against in row.peers)
            for placement in stats.PLACEMENTS:
                must, goal = row.bar('must', placement), row.bar('goal', placement)
                self.assertTrue(row.holds(goal, must), row.figure)
                self.assertFalse(row.holds(must, goal), row.figure)

    def test_every_row_has_what_is_asked_of_it(self):
        """Any values will do: rows lack nothing but the peers that are not there."""
        class All(dict):
            def get(self, key, default=None):
                return self[key]

            def __missing__(self, key):
                return stats.Sample(50.0, 50.0, 50.0)

            def __contains__(self, key):
                return True
        made, left_out = rows.outcome(rows.all_rows(), [stats.Round(samples=All(), probes=[50])])
        self.assertEqual([t for t in left_out if t.startswith('not measured')], [])
        self.assertEqual(len(made), len(rows.all_rows()))
        for row in made:
            for key in ('ours', 'limit', 'ratio', 'must', 'goal'):
                self.assertIsInstance(row[key], (int, float), row['figure'])
            self.assertEqual(row['placement'], 'near')
            self.assertIsInstance(row['peers'], dict)
            self.assertIn(row['unit'], rows.SCALES)

    def test_the_rows_of_the_table(self):
        figures = '\n'.join(r.figure for r in rows.all_rows())
        for part in ('4 B send/recv, half', '4 B send/recv through a CQ', '64 B over 4 B',
                     '1 KiB half', '4 KiB half', '4 B one-way rate', '64 B one-way rate',
                     '64 KiB send/recv bandwidth', '1 MiB send/recv bandwidth',
                     '1 MiB RDMA write to window memory', '8 B RDMA write', 'inside VipPostSend',
                     '8 B RDMA read', 'blocking receive', 'VIADUCT_WAIT=yield',
                     'VIADUCT_WAIT=block', 'VIADUCT_WAIT=adaptive', 'unpinned', '1 busy VI of 256',
                     'reliable delivery over', 'neighbour link over'):
            self.assertIn(part, figures)


class Outputs(unittest.TestCase):
    """What the peers print."""

    def test_ucx(self):
        text = ('x.batch,iterations,50.0_percentile_lat,...\n'
                't0,20000,0.295,0.300,0.300,12.71,12.71,3331920,3331920\n'
                't0,20000,0.305,0.300,0.300,12.71,12.71,3331920,3331920\n'
                't1,100000,0.170,0.140,0.140,27.22,27.22,7134626,7134626\n'
                't1,100000,0.170,0.140,0.140,27.22,27.22,7134626,5000000\n'
                't2,512,0.1,75,75,13188,13188,13188,13000\n')
        plan = {'t0': ('lat', 4), 't1': ('rate', 4), 't2': ('bw', 1048576)}
        self.assertEqual(tools.ucx_values(text, plan),
                         {'ucx.lat.4': 300.0, 'ucx.rate.4': 7134626.0,
                          'ucx.bw.1048576': 13000.0 * 1048576})

    def test_mpi(self):
        values = tools.mpi_values('lat 4 250.5\nrate 4 50.0\nnoise\nlat 64 x y\n', 'mpich')
        self.assertEqual(values, {'mpich.lat.4': 250.5, 'mpich.rate.4': 2e7, 'mpich.bw.4': 8e7})

    def test_libfabric(self):
        text = ('bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n'
                '4       1k      =1k      7.8k        0.00s      5.34       0.75       1.34\n'
                '64k     1k      =1k      7.8k        0.00s      5.34       5.50       1.34\n')
        self.assertEqual(tools.libfabric_values(text),
                         {'libfabric.lat.4': 750.0, 'libfabric.lat.65536': 5500.0})

    def test_the_best_geometry_is_the_limit(self):
        one = {'test': 'chunk', 'variant': 'two copies in chunks', 'size_bytes': 65536}
        self.assertEqual(tools.raw_values([{**one, 'value': v} for v in (3.0, 9.0, 5.0)]),
                         {'raw.chunk.65536': 9.0})

    def test_streams_count_by_the_median_round(self):
        document = {'test': {'window_messages': 64},
                    'results': [{'size_bytes': 8, 'round_p50_us': 16.0}]}
        self.assertEqual(tools.median_rates(document, 'k.{}', False), {'k.8': 2e6})
        self.assertEqual(tools.median_rates(document, 'k.{}', True), {'k.8': 16e6})


class Bench:
    """Stands for the machine where the program only passes it on."""
    build, pin, deadline, dry = Path('/nowhere'), (0, 1), float('inf'), False
    env = {}

    @staticmethod
    def tool(name):
        return f'/nowhere/{name}'


class Rounds(unittest.TestCase):
    """From rounds to the table, the file and the exit status."""
    row = rows.Row('a row', 'ns', 'ours', rows.R, must=2.0, goal=1.0)

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.json = Path(directory.name, 'rows.json')
        self.made = compare.Comparison(Bench(), [], [self.row])

    def reported(self):
        with contextlib.redirect_stdout(io.StringIO()), \
                mock.patch.object(tools, 'versions', return_value={}):
            status = compare.report(self.made, {'quick': True, 'json': str(self.json),
                                                'plots': None}, self.json.parent)
        return status, json.loads(self.json.read_text(encoding='utf-8'))

    def test_what_held_is_success(self):
        self.made.rounds = [a_round(50, {'ours': 90.0})]
        status, document = self.reported()
        self.assertEqual((status, document['schema'], document['quick']),
                         (0, 'viaduct.compare', True))
        (row,) = document['rows']
        self.assertEqual((row['figure'], row['placement'], row['ours'], row['limit'], row['peers'],
                          row['unit'], row['ratio'], row['must'], row['goal']),
                         ('a row', 'near', 90, 50, {}, 'ns', 1.8, 2, 1))

    def test_a_requirement_missed_in_one_placement_is_failure(self):
        self.made.rounds = [a_round(50, {'ours': 90.0}), a_round(200, {'ours': 500.0})]
        status, document = self.reported()
        self.assertEqual((status, [r['must_held'] for r in document['rows']]), (1, [True, False]))

    def test_nothing_measured_is_failure(self):
        for rounds in ([], [a_round(50, {})]):
            self.made.rounds = rounds
            status, document = self.reported()
            self.assertEqual((status, document['rows']), (1, []))

    def timed(self, *lengths):
        """Rounds of two values, of which the second may be the end of the time."""
        lengths = iter(lengths)

        def first(_):
            return {'ours': 90.0}

        def second(_):
            if not next(lengths):
                raise tools.OutOfTime('no time left')
            return {'other': 1.0}
        self.made.plan = [('first', first), ('second', second)]
        with mock.patch.object(tools, 'probe', return_value=50.0), \
                contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            self.made.run(time.monotonic() + PATIENCE, 3)
        return [sorted(r.samples) for r in self.made.rounds]

    def test_a_round_that_was_ended_counts_only_alone(self):
        self.assertEqual(self.timed(True, False), [['other', 'ours']])
        self.assertIn('discarded', list(self.made.notes)[-1])

    def test_the_only_round_counts_as_far_as_it_went(self):
        self.assertEqual(self.timed(False), [['ours']])
        self.assertIn('only one', list(self.made.notes)[-1])

    def test_a_failed_step_is_left_out_and_noted(self):
        def fails(_):
            raise tools.Failed('it broke')
        self.made.plan = [('bad', fails), ('good', lambda _: {'ours': 90.0})]
        with mock.patch.object(tools, 'probe', return_value=50.0), \
                contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            self.made.run(time.monotonic() + PATIENCE, 2)
        self.assertEqual([sorted(r.samples) for r in self.made.rounds], [['ours'], ['ours']])
        self.assertEqual(self.made.notes, {'bad: it broke': 2})


class Plots(unittest.TestCase):
    def test_pictures_are_small_and_whole(self):
        python = '/usr/bin/python3'
        for candidate in (sys.executable, python):
            if run(candidate, '-c', 'import matplotlib').returncode == 0:
                python = candidate
                break
        else:
            self.skipTest('matplotlib is missing')
        sizes = [4 << 2 * i for i in range(10)]
        curves = {kind: {name: {str(s): 1.0 + i + s for s in sizes} for i, name in enumerate(
            ('raw', 'slot', 'ours', 'ucx', 'openmpi', 'mpich', 'libfabric', 'unix', 'tcp'))}
            for kind in ('latency', 'bandwidth')}
        document = {'placements': {'near': {'r_ns': 48.0}, 'far': {'r_ns': 235.0}},
                    'curves': {'near': curves, 'far': curves}}
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory, 'result.json')
            source.write_text(json.dumps(document), encoding='utf-8')
            out = run(python, str(ROOT / 'perf/compare_lib/plots.py'), str(source), directory,
                      env={'MPLCONFIGDIR': directory})
            self.assertEqual(out.returncode, 0, out.stderr)
            for name in ('latency.png', 'bandwidth.png'):
                picture = Path(directory, name).read_bytes()
                self.assertEqual(picture[:8], b'\x89PNG\r\n\x1a\n')
                self.assertTrue(picture.endswith(b'IEND\xaeB`\x82'))
                self.assertLess(len(picture), 100000)


class Scale(unittest.TestCase):
    def test_figures_stand_beside_those_of_one(self):
        made = scale.compared({'poll.256': 300.0, 'poll.1': 200.0, 'cq.1000': 500.0,
                               'rate.1': 4e6, 'rate.256': 2e6})
        self.assertEqual([(r['n'], r['value'], r['unit'], r['over_one']) for r in made],
                         [(256, 300.0, 'ns', 1.5), (1000, 500.0, 'ns', None),
                          (256, 2e6, 'messages/s', 0.5)])

    def test_every_figure_is_measured(self):
        keys = [key for key, _ in scale.plan()]
        for _, _, key, one in scale.FIGURES:
            self.assertIn(key, keys)
            self.assertIn(one, keys)


class Time(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.bench = tools.Bench(Path(directory.name), (0, 1), Path(directory.name),
                                 env=dict(os.environ))

    def test_what_runs_at_the_deadline_is_ended_with_its_children(self):
        mark = self.bench.scratch / 'pid'
        for seconds in (0.2, 2, 20):  # until it got as far as starting its child
            self.bench.deadline = time.monotonic() + seconds
            with self.assertRaises(tools.OutOfTime):
                self.bench.run(['sh', '-c', f'sleep 1000 & echo $! > {mark}.new; '
                                f'mv {mark}.new {mark}; wait'])
            if mark.exists():
                break
        child = int(mark.read_text(encoding='ascii'))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.lives(child):
            pass
        self.assertFalse(self.lives(child))

    @staticmethod
    def lives(pid):
        try:
            return Path(f'/proc/{pid}/stat').read_text(encoding='ascii').split()[2] != 'Z'
        except OSError:
            return False

    def test_nothing_starts_after_it(self):
        self.bench.deadline = time.monotonic()
        with self.assertRaises(tools.OutOfTime):
            self.bench.run(['true'])

    def test_a_step_that_takes_too_long_is_another_matter(self):
        with self.assertRaises(tools.Failed) as caught:
            self.bench.run(['sleep', '1000'], timeout=0.1)
        self.assertNotIsInstance(caught.exception, tools.OutOfTime)


class CommandLine(unittest.TestCase):
    def usage_error(self, *args):
        out = run(COMPARE, *args)
        self.assertEqual((out.returncode, out.stdout), (2, ''), out.stderr)
        self.assertEqual(out.stderr.count('\n'), 1, out.stderr)

    def test_bad_usage(self):
        for args in (['--nonsense'], ['stray'], ['--pin', '0'], ['--pin', 'a,b'], ['--time', '0'],
                     ['--rounds', 'x'], ['--near-below', '-1'],
                     ['--json'], ['--quick', '--plots', 'd']):
            with self.subTest(args=args):
                self.usage_error(*args)

    def test_help_and_version(self):
        out = run(COMPARE, '--help')
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        self.assertIn('--quick', out.stdout)
        self.assertRegex(run(COMPARE, '--version').stdout, r'\Acompare \(Viaduct\) \d+\.\d+\.\d+\n')

    def test_no_build_is_said(self):
        with tempfile.TemporaryDirectory() as empty:
            out = run(COMPARE, '--quick', '--build', empty)
        self.assertEqual(out.returncode, 1)
        self.assertIn(f'meson setup {empty}', out.stderr)
        self.assertIn(f'ninja -C {empty}', out.stderr)

    def test_no_build_tools_are_said(self):
        with tempfile.TemporaryDirectory() as empty:
            path, os.environ['PATH'] = os.environ['PATH'], empty
            try:
                with self.assertRaisesRegex(tools.Failed, 'scripts/setup'):
                    build.run(['meson', 'setup'])
            finally:
                os.environ['PATH'] = path

    def test_dry_shows_the_commands_of_a_round(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest('two processors are needed')
        for more in ([], ['--quick']):
            out = run(COMPARE, '--dry', '--build', '/nowhere', *more)
            self.assertEqual(out.returncode, 0, out.stderr)
            self.assertEqual('/nowhere/perf/vi_scale' in out.stdout, not more)
            for part in ('/nowhere/perf/vi_lat', '--post-time', '--vis 256 --busy 1',
                         'VIADUCT_WAIT=adaptive', '/nowhere/perf/raw/vi_raw'):
                self.assertIn(part, out.stdout)


@unittest.skipUnless(VI_RAW, 'VI_RAW is not set')
class Raw(unittest.TestCase):
    little = ('--batches', '3', '--batch-ms', '0.05')

    def setUp(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest('two processors are needed')

    def results(self, *args):
        out = run(VI_RAW, '--json', *self.little, *args)
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        document = json.loads(out.stdout)
        self.assertEqual((document['schema'], document['schema_version']), ('viaduct.raw', 1))
        self.assertEqual(len(document['pinned_cpus']), 2)
        return document['results']

    def test_every_test(self):
        names = ['line', 'slot', 'fifo', 'pingpong', 'put', 'stream', 'chunk', 'memcpy', 'futex',
                 'asleep', 'shared-core', 'unix', 'tcp']
        for name in names:
            with self.subTest(name=name):
                results = self.results('--tests', name, '--sizes', '4,5000,300000')
                self.assertEqual({r['test'] for r in results}, {name})
                for result in results:
                    self.assertGreater(result['value'], 0)
                    self.assertIn(result['unit'], ('ns', 'messages/s', 'bytes/s'))

    def test_table(self):
        out = run(VI_RAW, *self.little, '--tests', 'line,slot')
        self.assertEqual(out.returncode, 0)
        self.assertEqual(len(out.stdout.splitlines()), 3)
        self.assertRegex(out.stdout, r'(?m)^line +R +0 +\d+\.\d+ ns')

    def test_bad_usage(self):
        for args in (['--tests', 'line,x'], ['--tests', ''], ['--sizes', '0x4'], ['--pin', '0'],
                     ['--pin', '0,x'], ['--batches', '0'], ['--batch-ms', '-1'], ['--timeout', 'x'],
                     ['--nonsense'], ['stray']):
            with self.subTest(args=args):
                out = run(VI_RAW, *args)
                self.assertEqual((out.returncode, out.stdout), (2, ''))
                self.assertEqual(out.stderr.count('\n'), 1, out.stderr)

    def test_help_and_version(self):
        for flag, text in (('--help', 'shared-core'), ('--version', 'vi_raw (Viaduct)')):
            out = run(VI_RAW, flag)
            self.assertEqual((out.returncode, out.stderr), (0, ''))
            self.assertIn(text, out.stdout)

    def test_the_time_limit_ends_it(self):
        out = run(VI_RAW, '--tests', 'line', '--batch-ms', '9000', '--timeout', '0.2')
        self.assertEqual(out.returncode, 1)
        self.assertIn('--timeout', out.stderr)

    def test_a_processor_that_is_not_there(self):
        out = run(VI_RAW, '--tests', 'line', '--pin', '1022,1023')
        self.assertEqual(out.returncode, 1)
        self.assertRegex(out.stderr, 'processor 102[23]')


if __name__ == '__main__':
    unittest.main()
