#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf/ring_experiments: its plan, its conclusions and its output, with little measuring."""
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
sys.path[:0] = [str(ROOT / 'perf'), str(ROOT / 'perf/experiments')]
sys.dont_write_bytecode = True
from ring_experiments_lib import plan, run, show  # noqa: E402  after the path to it

PROGRAM = ROOT / 'perf/ring_experiments'
loader = importlib.machinery.SourceFileLoader('ring_experiments', str(PROGRAM))
ring = importlib.util.module_from_spec(importlib.util.spec_from_loader('ring_experiments', loader))
loader.exec_module(ring)
BUILD = Path(os.environ['VIADUCT_BUILD'])
PATIENCE = limit(120)
KEYS = ['experiment', 'hosts', 'threads', 'bytes', 'raw', 'baseline', 'ours', 'shmem', 'blocking', 'unit']


def tool(name, *argv, **env):
    return subprocess.run([str(BUILD / name), *map(str, argv)], capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env={**os.environ, **env},
                          stdin=subprocess.DEVNULL)


def call(*argv):
    """main() with these arguments: (exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, 'argv', ['ring_experiments', *argv]), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = ring.main()
    return status, out.getvalue(), err.getvalue()


def point(experiment, raw=None, baseline=None, ours=None, shmem=None, **what):
    made = plan.Point(experiment, what.pop('hosts', 3), what.pop('threads', 1),
                      what.pop('bytes', 65536), **what)
    made.values = {'raw': raw, 'baseline': baseline, 'ours': ours, 'shmem': shmem}
    return made


class Plan(unittest.TestCase):
    def places(self, points):
        return [(p.experiment, p.hosts, p.threads, p.bytes, p.links, p.hops, p.algorithm, p.first)
                for p in points]

    def test_rows_are_distinct(self):
        for points in (plan.quick(), plan.full()):
            self.assertEqual(len(set(self.places(points))), len(points))
            self.assertEqual({p.experiment for p in points}, set(ring.EXPERIMENTS))

    def test_the_full_plan_covers_what_was_published(self):
        points = plan.full()
        of = {e: [p for p in points if p.experiment == e] for e in ring.EXPERIMENTS}
        self.assertEqual({p.bytes for p in of['E1']}, {1024 << i for i in range(11)})
        self.assertEqual({(p.links, p.bytes) for p in of['E2']},
                         {(n, 1024 << i) for n in (1, 2, 6) for i in range(10)})
        self.assertEqual({p.bytes for p in of['steps']}, {1024 << 2 * i for i in range(6)})
        for e in ('E3', 'E4'):
            self.assertEqual({p.threads for p in of[e]}, {1, 2, 4, 8})
            self.assertEqual({min(p.bytes for p in of[e]), max(p.bytes for p in of[e])},
                             {4096, 1 << 20})
        self.assertEqual({p.hosts for p in of['E3']}, {3, 4, 5})
        self.assertEqual({(p.hosts, p.algorithm) for p in of['barrier']},
                         {(h, a) for h in range(3, 9) for a in ('dissemination', 'tree', 'ring')})

    def test_the_mixed_ring_is_the_published_one(self):
        """Host 0 has an 8733 and an 8749, host 1 two 8749, host 2 an 8749 and an 8733."""
        points = [p for p in plan.full() if p.experiment == 'mixed' and p.bytes == plan.MIB]
        self.assertEqual({(*p.ends, p.adapter, p.published) for p in points},
                         {(0, 1, 'pex8749', 2.6), (1, 0, 'pex8749', 2.6), (1, 2, 'pex8749', 2.6),
                          (2, 1, 'pex8749', 2.6), (2, 0, 'pex8733', 3.5), (0, 2, 'pex8733', 3.5)})
        self.assertEqual({p.published for p in plan.full() if p.bytes != plan.MIB and p.experiment == 'mixed'},
                         {None})
        self.assertEqual(run.profiles_of_ring(plan.ADAPTERS), '0-1=pex8749,1-2=pex8749,2-0=pex8733')

    def test_blocking_puts_to_all_neighbours_are_measured_five_times(self):
        for p in plan.full():
            for side in p.sides:
                times = plan.rounds(p, side, False)
                self.assertEqual(times == 5, (p.experiment, side) == ('E2', 'blocking'), p)
                self.assertIn(times, (1, 3, 5))

    def test_messages_of_a_barrier(self):
        self.assertEqual([plan.messages('dissemination', n) for n in (2, 3, 4, 5, 8)], [1, 2, 2, 3, 3])
        self.assertEqual([plan.messages('tree', n) for n in (3, 5, 8)], [2, 4, 4])

    def test_the_quick_plan_is_part_of_the_full_one(self):
        self.assertLessEqual(set(self.places(plan.quick())), set(self.places(plan.full())))


class Conclusions(unittest.TestCase):
    def verdicts(self, points):
        return {what: holds for what, value, _, holds in show.requirements(points)
                if value is not None}

    def test_shares_of_the_raw_link(self):
        for ours, holds in ((6.3, True), (6.1, False)):
            points = [point('E1', 6.4, 5.0, ours, bytes=1 << 20)]
            self.assertEqual(list(self.verdicts(points).values()), [holds])
        for ours, holds in ((5.9, True), (5.7, False)):
            points = [point('E1', 6.4, 5.0, ours)]
            self.assertEqual(list(self.verdicts(points).values()), [holds])

    def test_shares_of_openshmem(self):
        for size, shmem, holds in ((65536, 6.1, True), (65536, 6.0, False), (1 << 20, 6.22, True),
                                   (1 << 20, 6.19, False)):
            points = [point('E1', 6.4, shmem=shmem, bytes=size)]
            self.assertEqual(list(self.verdicts(points).values()), [holds])

    def test_shares_of_what_was_published(self):
        for first, ours, holds in ((0, 2.55, True), (0, 2.5, False), (4, 3.45, True), (4, 2.6, False)):
            points = [point('mixed', ours=ours, bytes=plan.MIB, first=first),
                      point('mixed', ours=0.1, bytes=4 * plan.MIB, first=first)]
            self.assertEqual(list(self.verdicts(points).values()), [holds])

    def test_what_a_hop_adds(self):
        for second, holds in ((1.2, True), (1.6, False)):
            points = [point('hop', ours=v, hops=h, bytes=64) for h, v in ((1, 0.6), (2, second))]
            self.assertEqual(list(self.verdicts(points).values()), [holds])
        self.assertEqual(self.verdicts([point('hop', ours=0.6, bytes=64)]), {})

    def test_eight_threads_against_four(self):
        for eight, holds in ((100, True), (104, True), (106, False)):
            points = [point('E3', ours=v, threads=t) for t, v in ((4, 100), (8, eight))]
            self.assertEqual(list(self.verdicts(points).values()), [holds])

    def test_nothing_measured_is_nothing_concluded(self):
        points = [point('E1'), point('E3', threads=8), point('hop', hops=2)]
        self.assertEqual(self.verdicts(points), {})
        self.assertTrue(all(here is None for _, _, here in show.shape(points)))

    def test_the_papers_shape(self):
        points = [point('E3', baseline=v, hosts=h, threads=t)
                  for h, t, v in ((3, 1, 100), (4, 1, 130), (5, 1, 169), (3, 2, 60), (3, 4, 50),
                                  (3, 8, 45))]
        points.append(point('E1', 6.4, 5.12, 6.4))
        found = [here for _, _, here in show.shape(points)]
        self.assertEqual(found, ['64K 80 %', '64K +30 %', '64K -40 %', '64K -10 %'])

    def test_tables_show_what_is_missing(self):
        lines = '\n'.join(show.table([point('E1', 6.4, None, 6.3)], 'E1'))
        self.assertIn('6.4', lines)
        self.assertRegex(lines, r'64K +6\.4 +- +6\.3')
        lines = show.table([point('barrier', baseline=20, shmem=v, algorithm=a)
                            for a, v in (('tree', 3), ('ring', 9))], 'barrier')
        self.assertEqual(lines[-1].split(), ['3', '20', '3', '9'])
        self.assertEqual(show.table([], 'E1'), [])
        lines = show.table([point('mixed', 2.6, None, 2.5, bytes=size, first=first) for size, first in
                            ((65536, 0), (1 << 20, 4), (4 << 20, 5))], 'mixed')
        self.assertEqual([line.split() for line in lines[3:]],
                         [['0>1', 'pex8749', '64K', '-', '2.6', '-', '2.5'],
                          ['2>0', 'pex8733', '1M', 'up', 'to', '3.5', '2.6', '-', '2.5'],
                          ['2>1', 'pex8749', '4M', 'collapses', '2.6', '-', '2.5']])


    def test_steps_stand_next_to_those_of_the_published_protocol(self):
        put = point('steps', baseline=22.5, shmem=11.3)
        put.steps = {'call_us': 9.7, 'seen_us': 10.9, 'done_us': 11.3}
        put.split = {'address_setup_ns': 1000, 'doorbell_wait_ns': 10600, 'data_ns': 9600, 'metadata_ns': 1200,
                     'interrupt_ns': 11900}
        lines = [line.split() for line in show.table([put], 'steps')]
        self.assertIn(['64K', '22.5', '9.7', '10.9', '11.3'], lines)
        self.assertEqual(lines[-1], ['64K', '1.00', '10.60', '9.60', '1.20', '11.90'])
        put.steps = {}
        self.assertIn(['64K', '22.5', '-', '-', '-'], [line.split() for line in show.table([put], 'steps')])

    def test_blocking_puts_have_a_mean_and_a_spread(self):
        all_links = point('E2', links=6)
        all_links.values['blocking'], all_links.every['blocking'] = 5.7, [5.6, 5.7, 5.9, 5.5, 5.8]
        spread = all_links.row()['spread']['blocking']
        self.assertEqual((round(spread['mean'], 9), spread['least'], spread['most'], spread['of']), (5.7, 5.5, 5.9, 5))
        self.assertEqual(show.table([all_links], 'E2')[-1].split(),
                         ['6', '64K', '5.7', '5.5', 'to', '5.9,', 'of', '5'])
        self.assertNotIn('spread', point('E2').row())


class Output(unittest.TestCase):
    """The smallest plan, measured for real."""

    def measure(self, points, *argv):
        with tempfile.TemporaryDirectory() as scratch, \
                mock.patch.object(plan, 'quick', lambda: points):
            path = Path(scratch) / 'result.json'
            status, out, err = call('--quick', '--build', str(BUILD), '--slower', '0.2', '--json',
                                    str(path), *argv)
            self.assertTrue(path.exists(), out + err)
            return status, out, json.loads(path.read_text(encoding='utf-8'))

    def test_rows_have_all_sides(self):
        points = [plan.Point('E1', 3, 1, 4096), plan.Point('E2', 3, 1, 4096, links=2),
                  plan.Point('E3', 3, 2, 4096, unit='us'), plan.Point('E4', 3, 2, 4096),
                  plan.Point('steps', 3, 1, 4096, unit='us'), plan.Point('hop', 3, 1, 64, unit='us'),
                  plan.Point('barrier', 3, 1, 0, algorithm='ring', unit='us'),
                  plan.Point('mixed', 3, 1, 1 << 20, first=4)]
        _, out, document = self.measure(points)
        self.assertEqual((document['schema'], document['schema_version']), ('viaduct.ring', 1))
        self.assertIs(document['quick'], True)
        self.assertEqual([r['experiment'] for r in document['rows']],
                         ['E1', 'E2', 'E3', 'E4', 'steps', 'hop', 'barrier', 'mixed'], out)
        for row in document['rows']:
            self.assertEqual(list(row)[:len(KEYS)], KEYS)
            for side in plan.HAS.get(row['experiment'], plan.SIDES):
                if (row['experiment'], side) != ('hop', 'baseline'):
                    self.assertGreater(row[side] or 0, 0, (row, document['missing']))
            self.assertIn(row['unit'], ('GB/s', 'us'))
        self.assertEqual(document['rows'][1]['links'], 2)
        self.assertEqual(document['rows'][6]['algorithm'], 'ring')
        mixed = document['rows'][7]
        self.assertEqual([mixed[key] for key in ('from', 'to', 'adapter', 'published')],
                         [2, 0, 'pex8733', 3.5])
        self.assertIn('2>0  pex8733     1M    up to 3.5', out)
        # A busy machine makes it slower, never faster.
        self.assertLess(mixed['raw'], 3.6)
        split = document['rows'][0]['split']
        self.assertEqual(sorted(split), ['address_setup_ns', 'data_ns', 'doorbell_wait_ns',
                                         'interrupt_ns', 'metadata_ns'])
        steps = document['rows'][4]['steps']
        self.assertEqual(sorted(steps), ['call_us', 'done_us', 'seen_us'])
        self.assertLess(0, min(steps.values()))
        self.assertLess(steps['call_us'], steps['done_us'])
        self.assertEqual(sorted(document['rows'][4]['split']), sorted(split))
        self.assertGreater(document['profile']['line_rate'], 0)
        self.assertIn('E3: turnaround', out)

    def test_relays_carry_puts(self):
        """In a ring of four hosts one of the others is two links away."""
        _, out, document = self.measure([plan.Point('E3', 4, 1, 4096, unit='us')])
        self.assertGreater(document['rows'][0]['ours'] or 0, 0, out)
        self.assertGreater(document['rows'][0]['shmem'] or 0, 0, out)

    def test_what_fails_is_left_out_with_its_reason(self):
        def refuse(*_):
            raise run.Failed('no such link')

        with mock.patch.object(run.Bench, 'port', refuse):
            status, out, document = self.measure([plan.Point('E1', 3, 1, 4096)])
        self.assertEqual(status, 1)
        self.assertIsNone(document['rows'][0]['raw'])
        self.assertIsNone(document['rows'][0]['baseline'])
        self.assertEqual(document['missing'], {'no such link': 2})
        self.assertIn('left out, 2 times: no such link', out)

    def test_what_there_is_none_of_is_no_failure(self):
        with mock.patch.object(run.Bench, 'vipl', lambda *_: {'value': 1.0}), \
                mock.patch.object(run.Bench, 'port', lambda *_: {'value': 1.0}):
            status, _, document = self.measure([plan.Point('hop', 3, 1, 64, unit='us')])
        self.assertEqual((status, document['rows'][0]['baseline']), (0, None))
        self.assertEqual(list(document['missing'].values()), [1])

    def test_only_names_experiments(self):
        points = [plan.Point('E1', 3, 1, 4096), plan.Point('E2', 3, 1, 4096)]
        _, _, document = self.measure(points, '--only', 'E2')
        self.assertEqual([r['experiment'] for r in document['rows']], ['E2'])


class Usage(unittest.TestCase):
    def test_what_makes_no_sense_is_refused(self):
        for argv in (['--onyl', 'E1'], ['E1'], ['--only', 'E5'], ['--slower', '0'],
                     ['--rounds', 'many'], ['--rounds', '-1'], ['--json', '']):
            status, out, err = call(*argv)
            self.assertEqual((status, out), (2, ''), argv)
            self.assertEqual(len(err.splitlines()), 1, err)

    def test_a_build_without_the_programs_is_refused(self):
        with tempfile.TemporaryDirectory() as empty:
            status, _, err = call('--quick', '--build', empty)
        self.assertEqual(status, 1)
        self.assertIn('no perf/experiments/ring/ring_port', err)

    def test_help_and_version(self):
        self.assertEqual(call('--help')[0], 0)
        self.assertRegex(call('--version')[1], r'^ring_experiments \(Viaduct\) [0-9.]+\n$')

    def test_the_programs_refuse_what_makes_no_sense(self):
        for name, argv in (('ring_port', ['--hosts', 2]), ('ring_port', ['--bytes', 100]),
                           ('ring_port', ['--experiment', 'E5']), ('ring_port', ['--links', 7]),
                           ('ring_port', ['--profile', 'gen9']),
                           ('ring_port', ['--profile', 'gen3x8,pex8733']),
                           ('ring_port', ['--profile', 'gen3x8,,pxh810']),
                           ('ring_port', ['--first', 6]), ('ring_vipl', ['--first', 6]),
                           ('ring_port', ['--profile', 'rcar-s4', '--dilation', 2000]),
                           ('ring_port', ['--dilation', 0]),
                           ('ring_port', ['--threads', '1x']), ('ring_port', ['more']),
                           ('ring_port', ['--experiment', 'barrier']),
                           ('ring_vipl', ['more']), ('ring_vipl', ['--hops', 0]),
                           ('ring_vipl', ['--experiment', 'E9']), ('ring_vipl', ['--bytes', 65])):
            done = tool(f'perf/experiments/ring/{name}', *argv)
            self.assertEqual((done.returncode, done.stdout), (2, ''), (name, argv))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for argv in (['more'], ['--experiment', 'E5'], ['--bytes', 65]):
            done = tool('perf/experiments/shmem/ring_shmem', *argv)
            self.assertEqual((done.returncode, done.stdout), (2, ''), argv)

    def test_vipl_programs_need_a_ring(self):
        done = tool('perf/experiments/ring/ring_vipl', VIADUCT_AGENT='none',
                    VIADUCT_FABRIC=f'none-{os.getpid()}')
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('ring_vipl: opening a NIC', done.stderr)


if __name__ == '__main__':
    unittest.main()
