#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf/compare without measuring, and vi_raw with the least measuring that it accepts."""
import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'perf'))
sys.dont_write_bytecode = True
from compare_lib import (build, classes, outcome, peers, plan,  # noqa: E402  after its path
                         report, rounds, rows, scale, stats, tools, words)

COMPARE = ROOT / 'perf/compare'
VI_RAW = os.environ.get('VI_RAW')
PATIENCE = limit(120)


def run(*argv, env=None):
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL)


STEP = 0.3


def probe(r, step=STEP):
    return stats.Probe(r, step)


def a_round(r, values, after=None, step=STEP, step_after=None):
    """A round with these probes before and after every value."""
    before, after = probe(r, step), probe(after or r, step_after or step)
    made = stats.Round(probes=[before, after])
    for key, value in values.items():
        made.take(key, value, before, after)
    return made


def times(middle, count, width=0.05):
    """`count` values, evenly around the middle."""
    return [middle * (1 - width + 2 * width * i / max(1, count - 1)) for i in range(count)]


class Classes(unittest.TestCase):
    """The placements and speeds that are derived from the probes of a session."""

    # The values of R in a session, as (middle, count), and the placements {name: (low, high)} to be found.
    sessions = (
        ('one group', [(50, 90)], {'near': (47, 53)}),
        ('one group, wide', [(140, 200, 0.15)], {'near': (119, 161)}),
        ('one group that is far', [(235, 50)], {'far': (223, 247)}),
        ('near and far', [(50, 60), (215, 40)], {'near': (47, 53), 'far': (204, 226)}),
        ('near and far that are close', [(140, 60), (235, 40)], {'near': (133, 147),
                                                                 'far': (223, 247)}),
        ('a slow spell without a gap', [(130, 60), (145, 30), (160, 20)], {'near': (123, 168)}),
        ('a slow spell behind a gap', [(50, 80), (90, 15)], {'near': (47, 53)}),
        ('far for a moment', [(50, 80), (215, 15)], {'near': (47, 53)}),
        ('nothing for long', [(26, 30), (50, 25), (215, 24), (900, 22)], {'near': (24, 28)}),
        ('few on one core', [(26, 15), (50, 85)], {'near': (47, 53)}),
        ('most on one core', [(26, 85), (50, 15)], {'near': (24, 28)}),
        ('strays between', [(50, 60), (215, 40), (75, 1), (110, 1), (160, 1)],
         {'near': (47, 53), 'far': (204, 226)}),
        ('moves between, caught half-way', [(50, 60), (215, 40), (75, 3), (110, 4), (160, 3)],
         {'near': (47, 53), 'far': (204, 226)}),
        ('strays above', [(50, 97), (300, 1), (900, 1), (4000, 1)], {'near': (47, 53)}),
        ('far and farther', [(235, 60), (900, 20)], {'far': (223, 247)}),
        ('few values', [(50, 4), (215, 2)], {'near': (47, 226)}),
        ('one value', [(50, 1)], {'near': (47.5, 47.5)}),
        ('none', [], {}),
    )

    @staticmethod
    def probes(parts, step=STEP):
        return [probe(r, step) for part in parts for r in times(*part)]

    def test_placements(self):
        for name, parts, expected in self.sessions:
            with self.subTest(name=name):
                found = classes.Classes(self.probes(parts)).placements
                self.assertEqual(set(found), set(expected))
                for place, (low, high) in expected.items():
                    self.assertAlmostEqual(found[place].low, low / classes.CLOSE, delta=low / 30)
                    self.assertAlmostEqual(found[place].high, high * classes.CLOSE,
                                           delta=high / 30)

    def test_a_drift_stays_one_group(self):
        drift = [probe(100 * 1.02 ** i) for i in range(30)]
        (group,) = classes.Classes(drift).placements.values()
        self.assertEqual(group.count, 30)

    def test_order_does_not_matter(self):
        probes = self.probes([(50, 60), (215, 40)])
        self.assertEqual(classes.Classes(probes).placements,
                         classes.Classes(probes[::-1]).placements)

    def test_a_bound_may_be_given(self):
        probes = self.probes([(50, 60), (140, 30)])
        found = classes.Classes(probes, near_below=100)
        self.assertEqual({n: g.count for n, g in found.placements.items()},
                         {'near': 60, 'far': 30})
        self.assertEqual([found.placement(probe(r)) for r in (1, 99.9, 100, 1000)],
                         ['near', 'near', 'far', 'far'])

    # [(middle of the step, count)], number of groups to be found, middle of the one that counts.
    speeds = (
        ('one', [(0.27, 90)], 1, 0.27),
        ('two, much fast', [(0.35, 40), (0.65, 60)], 2, 0.35),
        ('two, little fast', [(0.35, 15), (0.65, 85)], 2, 0.65),
        ('two, moves between', [(0.27, 65), (0.31, 6), (0.36, 5), (0.41, 8), (0.5, 100)], 2, 0.27),
        ('two, a stray fast', [(0.27, 2), (0.5, 98)], 1, 0.5),
        ('three, none has a third', [(0.27, 30), (0.4, 31), (0.6, 32), (0.9, 10)], 3, 0.6),
        ('few', [(0.35, 2), (0.65, 3)], 1, 0.62),
    )

    def test_speeds(self):
        for name, parts, count, middle in self.speeds:
            with self.subTest(name=name):
                found = classes.Classes([probe(50, s) for part in parts for s in times(*part)])
                self.assertEqual(len(found.speeds), count)
                self.assertAlmostEqual(found.counted.middle, middle, delta=0.03)

    def test_a_sample_has_the_class_of_both_probes(self):
        found = classes.Classes([probe(r, s) for r in times(50, 30) + times(215, 30)
                                 for s in times(0.3, 3) + times(0.5, 2)])
        near, far, slow = probe(50, 0.3), probe(215, 0.3), probe(50, 0.5)
        self.assertEqual(found.of(stats.Sample(1, near, near)), ('near', 'counted'))
        self.assertEqual(found.of(stats.Sample(1, far, far)), ('far', 'counted'))
        self.assertEqual(found.of(stats.Sample(1, slow, slow)), ('near', 'other'))
        for before, after in ((near, far), (near, slow), (near, probe(100, 0.3)),
                              (near, probe(50, 2.0)), (probe(20), probe(20))):
            self.assertIsNone(found.of(stats.Sample(1, before, after)))


class Statistics(unittest.TestCase):
    def test_samples_are_pooled_where_the_machine_was_steady(self):
        kept = [a_round(50, {'a': 1.0, 'b': 2.0}), a_round(200, {'a': 3.0}), a_round(50, {'a': 4.0}, after=70)]
        moved = [a_round(50, {'a': 100.0}, after=240), a_round(50, {'a': 100.0}, step=0.35, step_after=0.65)]
        pool = stats.Pool(moved + kept)
        self.assertEqual({key: [s.value for s in pool.of(key)] for key in ('a', 'b', 'c')},
                         {'a': [1.0, 3.0, 4.0], 'b': [2.0], 'c': []})
        near = stats.Pool(kept, lambda sample: sample.r < 100)
        self.assertEqual([s.value for s in near.of('a')], [1.0, 4.0])

    def test_two_are_compared_by_rounds_that_have_both(self):
        """A value of such a round counts in its own placement, wherever the other one was taken."""
        made = [a_round(50, {'a': 1.0}), a_round(50, {'a': 2.0, 'b': 3.0}), a_round(50, {'b': 4.0}), a_round(50, {'a': 5.0})]
        made[3].take('b', 6.0, probe(200), probe(200))
        pool = stats.Pool(made, lambda sample: sample.r < 100)
        self.assertEqual([[s.value for s in samples] for samples in pool.of_both('a', 'b')], [[2.0, 5.0], [3.0]])

    def test_r_is_the_mean_around_the_sample(self):
        (sample,) = stats.Pool([a_round(50, {'a': 110.0}, after=60)]).of('a')
        self.assertEqual((sample.r, sample.step), (55, STEP))

    def test_what_is_far_apart_is_not_alike(self):
        def samples(r, step=STEP):
            return [stats.Sample(1.0, probe(r, step), probe(r, step))] * 4
        self.assertTrue(stats.alike(samples(50), samples(56)))
        self.assertFalse(stats.alike(samples(50), samples(60)))
        self.assertFalse(stats.alike(samples(50), samples(50, 0.4)))

    def test_two_series(self):
        known = stats.of_two([2.0, 2.2, 2.1, 1.9], [1.0, 1.0, 0.5, 1.25])
        self.assertAlmostEqual(known.middle, 2.05)
        self.assertAlmostEqual(known.low, 1.9 / 1.25)
        self.assertAlmostEqual(known.high, 2.2 / 0.5)
        self.assertTrue(known.enough)
        self.assertFalse(stats.of_two([2.0] * 9, [1.0] * 3).enough)
        self.assertFalse(stats.of_two([2.0] * 3, [1.0] * 9).enough)
        self.assertFalse(stats.of_two([2.0] * 9, [1.0] * 9, False).enough)

    def test_unlike_series_have_their_ratio_in_the_interval(self):
        """Series of as many values or of many and few, the one calm, the other wild: 300 drawn samples of each."""
        draw = random.Random(1)
        for ours, theirs in ((5, 5), (12, 12), (30, 5)):
            hits = 0
            for _ in range(300):
                known = stats.of_two([3 * draw.lognormvariate(0, 0.01) for _ in range(ours)],
                                     [draw.lognormvariate(0, 0.2) for _ in range(theirs)])
                hits += known.low <= 3 <= known.high
            self.assertGreater(hits, 270, (ours, theirs))

    def test_the_interval_of_a_median(self):
        """The ranks of the usual table: the extremes for 6 values or more, the second for 9, the third for 12."""
        for count, rank in ((1, 1), (2, 1), (5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3),
                            (15, 4), (20, 6), (25, 8), (50, 18), (100, 40)):
            values = [float(v) for v in range(1, count + 1)]
            self.assertEqual(stats.interval(values[::-1]), (rank, count + 1 - rank), count)

    def test_spread_and_settled(self):
        calm, wild = [1.0, 1.01, 0.99, 1.0, 1.01], [1.0, 2.0, 0.5, 1.7, 1.2]
        self.assertAlmostEqual(stats.spread(calm), 0.01)
        self.assertAlmostEqual(stats.of_one(calm).spread, 0.01)
        self.assertTrue(stats.of_one(calm).settled)
        self.assertFalse(stats.of_one(wild).settled)
        self.assertFalse(stats.of_one(calm[:4]).settled)
        self.assertIsNone(stats.spread([1.0]))
        self.assertTrue(stats.of_one(calm * 5 + wild).settled)  # a few cannot move the median
        self.assertTrue(stats.of_two(calm, calm).settled)
        self.assertFalse(stats.of_two(calm, wild).settled)
        self.assertFalse(stats.of_two(calm[:3], calm).settled)


def concluded(table, made, missing=None, optional=()):
    """The outcome that perf/compare concludes from these rounds."""
    found = classes.Classes([p for r in made for p in r.probes])
    return outcome.conclude(table, made, found, missing or {}, optional)


class Rows(unittest.TestCase):
    low = rows.Row('low', 'ns', 'ours', rows.R, must=rows.both(1.5, 1.0), goal=rows.both(1.2, 0.8),
                   peers={'ucx': 'ucx', 'gone': 'gone'})
    high = rows.Row('high', 'MB/s', 'bw', 'limit', must=0.8, goal=0.9, better=rows.HIGHER)
    itself = rows.Row('itself', 'us', 'slow', against=('itself',), must=3.0, goal=1.0)
    beside = rows.Row('beside', 'ns', 'ours', 'floor', against=('ucx', 'other'), must=0.8,
                      goal=0.5, peers={'ucx': 'ucx', 'other': 'other'})

    def test_medians_of_the_values_of_one_placement(self):
        near = [a_round(50, {'ours': 50.0 * n, 'ucx': 100.0}) for n in (1, 1.3, 1.3, 1.3, 9)]
        far = [a_round(200, {'ours': 300.0, 'ucx': 200.0})] * 5
        found = concluded([self.low], near + far)
        self.assertEqual([(r['placement'], r['values']) for r in found.made],
                         [('near', 5), ('far', 5)])
        first, second = found.made
        self.assertEqual((first['ratio'], first['ratio_low'], first['ratio_high']), (1.3, 1, 9))
        self.assertEqual((first['must_outcome'], first['goal_outcome']), ('unsure', 'unsure'))
        self.assertEqual((first['ours'], first['limit'], first['peers']), (65, 50, {'ucx': 100}))
        self.assertEqual((first['peer_ratios'], first['peer_outcomes']), ({'ucx': 0.65}, {'ucx': 'unsure', 'gone': 'unsure'}))
        self.assertEqual((second['ratio'], second['must_outcome'], second['spread']),
                         (1.5, 'missed', 0))
        self.assertEqual((found.left_out, found.unknown), ([], 0))

    def test_a_machine_that_moves_in_each_round(self):
        """No round has both values in one placement; each placement has eight of each."""
        beside, made = self.beside.without({'other': ''}), []
        for n in range(16):
            near, far = probe(50), probe(200)
            one, other = (near, far) if n % 2 else (far, near)
            moved = stats.Round(probes=[one, other])
            moved.take('ours', 60.0 if one is near else 200.0, one, one)
            moved.take('ucx', 100.0 if other is near else 250.0, other, other)
            made.append(moved)
        found = concluded([beside], made).made
        self.assertEqual([(r['placement'], r['ratio'], r['must_outcome'], r['peer_outcomes']) for r in found],
                         [('near', 0.6, 'held', {'ucx': 'ahead'}), ('far', 0.8, 'held', {'ucx': 'ahead'})])

    def test_a_peer_that_is_here_counts_without_values_too(self):
        """Nothing is held, settled or ahead while it is not known."""
        moved = [a_round(50, {'ours': 60.0, 'ucx': 100.0}) for _ in range(6)]
        for one in moved:
            one.take('other', 10.0, probe(50), probe(200))
        (row,) = concluded([self.beside], moved).made
        self.assertEqual((row['must_outcome'], row['peer_outcomes']), ('unsure', {'ucx': 'ahead', 'other': 'unsure'}))
        found = classes.Classes([probe(50)])
        self.assertEqual(outcome.unsettled([self.beside], moved, found, {}), [self.beside])
        self.assertEqual(outcome.unsettled([self.beside], moved, found, {'other': ''}), [])
        (row,) = concluded([self.beside], moved, {'other': 'not here'}).made
        self.assertEqual((row['must_outcome'], row['peer_outcomes']), ('held', {'ucx': 'ahead'}))

    def test_each_of_several_is_held_against(self):
        for other, word in ((100.0, 'held'), (60.0, 'missed')):
            made = [a_round(50, {'ours': 60.0, 'ucx': 100.0, 'other': other})] * 4
            self.assertEqual(concluded([self.beside], made).made[0]['must_outcome'], word)
        made = [a_round(50, {'ours': 60.0, 'ucx': 100.0, 'other': other}) for other in (70.0, 80.0, 90.0, 60.0)]
        self.assertEqual(concluded([self.beside], made).made[0]['must_outcome'], 'unsure')

    def test_rounds_of_unlike_speed_are_apart(self):
        fast = [a_round(50, {'ours': 50.0}, step=0.35)] * 8
        slow = [a_round(50, {'ours': 100.0}, step=0.65)] * 8
        found = concluded([self.low], fast + slow)
        self.assertEqual([(r['speed'], r['ratio']) for r in found.made], [('counted', 1)])
        self.assertEqual([(r['speed'], r['ratio']) for r in found.other], [('other', 2)])

    def test_times_are_told_in_steps_too(self):
        (row,) = concluded([self.low], [a_round(50, {'ours': 60.0}, step=0.5)]).made
        self.assertEqual(row['ours_steps'], 120)
        (row,) = concluded([self.high], [a_round(50, {'bw': 2.0, 'limit': 1.0})]).made
        self.assertIsNone(row['ours_steps'])

    def test_what_is_left_out_is_said(self):
        found = concluded([self.low, self.high], [a_round(50, {'ours': 50.0})])
        self.assertEqual([r['figure'] for r in found.made], ['low'])
        self.assertEqual(found.left_out, ['not measured, near: high',
                                          'the processors were not far for long: those rows are left out'])
        self.assertEqual(found.unknown, 1)

    def test_direction_unit_and_base(self):
        made = [a_round(50, {'bw': 85e6, 'limit': 100e6, 'slow': 2500.0, 'ours': 60.0,
                             'ucx': 100.0, 'other': 120.0, 'floor': 30.0})] * 5
        high, itself, beside = concluded([self.high, self.itself, self.beside], made).made
        self.assertEqual((high['ratio'], high['ours'], high['limit']), (0.85, 85, 100))
        self.assertEqual((high['must_outcome'], high['goal_outcome']), ('held', 'missed'))
        self.assertEqual((itself['ratio'], itself['ours'], itself['limit']), (2.5, 2.5, None))
        self.assertEqual(itself['must_outcome'], 'held')
        self.assertEqual((beside['ratio'], beside['limit'], beside['against']), (0.6, 30, 'ucx'))

    def test_what_the_spread_allows(self):
        """Compared with a bar of 1.5: a judgement needs enough values on one side."""
        for values, word in (([1.0] * 5, 'held'), ([1.5] * 5, 'held'), ([1.6] * 5, 'missed'),
                             ([1.0] * 4, 'unsure'), ([2.0] * 4, 'unsure'),
                             ([1.0] * 4 + [1.6], 'unsure'), ([1.0] * 30 + [1.6] * 5, 'held'),
                             ([1.0] * 5 + [1.6] * 30, 'missed')):
            self.assertEqual(self.low.judge_one(stats.of_one(values), 1.5), word, values)
        self.assertEqual(self.high.judge_one(stats.of_two([0.8] * 4, [1.0] * 4), 0.8), 'held')
        self.assertEqual(self.high.judge_one(stats.of_two([0.7] * 4, [1.0] * 4), 0.8), 'missed')
        self.assertEqual(self.high.judge_one(stats.of_two([0.7] * 3, [1.0] * 9), 0.8), 'unsure')
        self.assertEqual(self.high.judge_one(None, 0.8), 'unsure')

    def test_ahead_even_and_behind(self):
        one = [1.0] * 4
        for row, ours, word in ((self.low, [0.9] * 4, 'ahead'), (self.low, [1.1] * 4, 'behind'), (self.low, one, 'even'),
                                (self.low, [0.9, 1.0, 1.0, 1.1], 'even'), (self.low, [0.5, 1.0, 1.0, 2.0], 'unsure'),
                                (self.low, [0.8, 0.9, 0.9, 1.05], 'unsure'),
                                (self.low, [0.9] * 3, 'unsure'), (self.low, [0.9, 0.9, 0.9, 1.0], 'unsure'),
                                (self.high, [0.9] * 4, 'behind'), (self.high, [1.1] * 4, 'ahead')):
            self.assertEqual(outcome.standing(row, stats.of_two(ours, one)), word, ours)

    def test_what_cannot_be_measured_is_left_out_with_its_reason(self):
        made = [a_round(50, {'ours': 60.0, 'floor': 30.0, 'other': 100.0})]
        missing = {'ucx': 'no ucx here', 'other': 'no other here'}
        found = concluded([self.beside], made, missing)
        self.assertEqual((found.made, found.unknown), ([], 1))
        self.assertEqual(found.left_out[0], 'beside: no ucx here; no other here')
        self.assertEqual(concluded([self.beside], made, missing, tuple(missing)).unknown, 0)
        del missing['other']
        (row,) = concluded([self.beside], made, missing).made
        self.assertEqual(row['against'], 'other')

    def test_what_is_not_settled(self):
        low = self.low.without({'ucx': '', 'gone': ''})
        found = classes.Classes([probe(50)])
        made = [a_round(50, {'ours': 50.0, 'bw': 1.0, 'limit': 1.0 + 0.1 * n}) for n in range(5)]
        self.assertEqual(outcome.unsettled([low, self.high, self.beside], made, found, {}),
                         [self.high, self.beside])
        self.assertEqual(outcome.unsettled([self.beside], made, found, {'ucx': '', 'other': ''}),
                         [])
        self.assertEqual(outcome.unsettled([low], made[:4], found, {}), [low])
        moved = [a_round(50, {'ours': 50.0}, after=240)] * 9
        self.assertEqual(outcome.unsettled([low], moved, found, {}), [low])

    def test_every_row_can_be_judged(self):
        for row in rows.all_rows():
            self.assertIn(row.unit, rows.SCALES)
            self.assertTrue(set(row.against) <= {'limit', 'itself', *row.peers}, row.figure)
            self.assertIn(row.against[0] in ('limit', 'itself'), (False, len(row.against) == 1))
            for placement in classes.PLACEMENTS:
                must, goal = row.bar('must', placement), row.bar('goal', placement)
                self.assertTrue(row.holds(goal, must), row.figure)
                self.assertFalse(row.holds(must, goal), row.figure)

    def test_every_row_has_what_is_asked_of_it(self):
        """Whatever the values, rows lack nothing but peers that are not installed."""
        keys = {key for row in rows.all_rows() for key in row.keys()}
        found = concluded(rows.all_rows(), [a_round(50, dict.fromkeys(keys, 50.0))])
        self.assertEqual(found.unknown, 0)
        self.assertEqual([r['figure'] for r in found.made if r['placement'] == 'near'],
                         [r.figure for r in rows.all_rows()])
        for asked, row in zip(rows.all_rows(), found.made):
            for key in ('ours', 'ratio', 'must', 'goal', *(['limit'] if asked.limit != '' else [])):
                self.assertIsInstance(row[key], (int, float), row['figure'])
            self.assertEqual(row['placement'], 'near')
            self.assertIsInstance(row['peers'], dict)
            self.assertIn(row['unit'], rows.SCALES)

    def test_the_rows_of_the_table(self):
        figures = '\n'.join(r.figure for r in rows.all_rows())
        for part in ('4 B send/recv, half', '4 B send/recv through a CQ', 'half round trip over newer UCX', '64 B over 4 B',
                     '1 KiB half', '4 KiB half', '4 B one-way rate', '64 B one-way rate',
                     '64 KiB send/recv bandwidth', '1 MiB send/recv bandwidth',
                     '1 MiB RDMA write to window memory', '8 B RDMA write', 'inside VipPostSend',
                     '8 B RDMA read', 'blocking receive', 'VIADUCT_WAIT=yield',
                     'VIADUCT_WAIT=block', 'VIADUCT_WAIT=adaptive', 'unpinned', '1 busy VI of 256',
                     'reliable delivery over', 'neighbour link over', 'calls for many',
                     '64 KiB half round trip into window memory', '1 MiB send/recv into window',
                     'RDMA write with immediate', '8 B RDMA write to adopted memory',
                     '256 busy VIs', 'deregister 1 GiB'):
            self.assertIn(part, figures)


class Outputs(unittest.TestCase):
    """The parsers of the peers' output."""

    def test_ucx(self):
        text = ('x.batch,iterations,50.0_percentile_lat,...\n'
                't0,20000,0.295,0.300,0.300,12.71,12.71,3331920,3331920\n'
                't0,20000,0.305,0.300,0.300,12.71,12.71,3331920,3331920\n'
                't1,100000,0.170,0.140,0.140,27.22,27.22,7134626,7134626\n'
                't1,100000,0.170,0.140,0.140,27.22,27.22,7134626,5000000\n'
                't2,512,0.1,75,75,13188,13188,13188,13000\n')
        plan = {'t0': ('lat', 4), 't1': ('rate', 4), 't2': ('bw', 1048576)}
        self.assertEqual(peers.ucx_values(text, plan),
                         {'ucx.lat.4': 300.0, 'ucx.rate.4': 7134626.0,
                          'ucx.bw.1048576': 13000.0 * 1048576})
        self.assertEqual(peers.ucx_values(text, {'t0': ('lat', 4)}, 'newer_ucx'),
                         {'newer_ucx.lat.4': 300.0})

    def test_a_newer_ucx_is_that_of_its_folder(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            library = folder / 'lib/deeper/libucp.so.0'
            library.parent.mkdir(parents=True)
            library.touch()
            bench = tools.Bench(Path('/nowhere'), (0, 1), folder, ucx=folder)
            self.assertIsNone(peers.present(bench, 'newer_ucx'))
            self.assertEqual(peers.NEWER_UCX.program(bench, 'ucx_perftest'),
                             f'{folder}/bin/ucx_perftest')
            self.assertEqual(peers.NEWER_UCX.environment(bench)['LD_LIBRARY_PATH'],
                             str(library.parent))
        self.assertEqual(peers.UCX.program(bench, 'ucx_perftest'), 'ucx_perftest')
        self.assertNotIn('LD_LIBRARY_PATH', peers.UCX.environment(bench))
        self.assertIn('--ucx', peers.present(Bench(), 'newer_ucx'))

    def test_wheels_are_those_that_setup_brought_last(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            bench = tools.Bench(Path('/nowhere'), (0, 1), folder, wheels=folder / 'peers')
            for name in peers.NEWEST:
                self.assertIn('scripts/setup --peers', peers.present(bench, name))
            for number, name in enumerate(('openmpi-5.0.9', 'openmpi-5.0.11', 'mpich-5.0.2')):
                home = folder / 'peers' / name
                for file in ('bin/mpicc', f'lib/{name[:-6]}/libfabric.so.1', 'whole'):
                    (home / file).parent.mkdir(parents=True, exist_ok=True)
                    (home / file).touch()
                os.utime(home / 'whole', (number, number))
            ucx = folder / 'peers/libucx-cu12-1.22.0/lib/python3.11/site-packages/libucx'
            ucx.mkdir(parents=True)
            (folder / 'peers/libucx-cu12-1.22.0/whole').touch()
            self.assertEqual(peers.NEWER_UCX.program(bench, 'ucx_perftest'), f'{ucx}/bin/ucx_perftest')
            self.assertEqual(peers.NEWER_OPENMPI.program(bench, 'mpicc'), f'{folder}/peers/openmpi-5.0.11/bin/mpicc')
            self.assertEqual(peers.NEWER_MPICH.program(bench, 'mpirun'), f'{folder}/peers/mpich-5.0.2/bin/mpirun')
            self.assertIn(f'{folder}/peers/openmpi-5.0.11/', peers.NEWER_LIBFABRIC.library(bench)[0])
            self.assertEqual(peers.LIBFABRIC.library(bench), ['-lfabric'])

    def test_programs_of_libraries_are_compiled_when_needed(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            compiler = folder / 'cc'
            compiler.write_text('#!/bin/sh\necho "$@" >>"$(dirname "$0")/calls"\n'
                                'while [ "$1" != -o ]; do shift; done\n: >"$2"\n', encoding='ascii')
            compiler.chmod(0o755)
            bench = tools.Bench(folder, (0, 1), folder, env=dict(os.environ))
            (folder / 'perf').mkdir()
            for _ in range(2):
                self.assertEqual(peers.compiled(bench, 'mpi_pair.c', 'made', str(compiler), '-lx'), f'{folder}/perf/made')
            calls, = (folder / 'calls').read_text(encoding='ascii').splitlines()
            self.assertRegex(calls, r'/mpi_pair\.c \S+/pair\.c -lx$')
            os.utime(folder / 'perf/made', (0, 0))
            peers.compiled(bench, 'mpi_pair.c', 'made', str(compiler))
            self.assertEqual(len((folder / 'calls').read_text(encoding='ascii').splitlines()), 2)

    def test_programs_of_libraries(self):
        values = peers.pair_values('lat 4 250.5\nrate 4 50.0\nnoise\nlat 64 x y\n', 'mpich')
        self.assertEqual(values, {'mpich.lat.4': 250.5, 'mpich.rate.4': 2e7, 'mpich.bw.4': 8e7})

    def test_the_best_geometry_is_the_limit(self):
        one = {'test': 'chunk', 'variant': 'two copies in chunks', 'size_bytes': 65536}
        self.assertEqual(tools.raw_values([{**one, 'value': v} for v in (3.0, 9.0, 5.0)]),
                         {'raw.chunk.65536': 9.0})

    def test_registration(self):
        said = json.dumps({'results': [{'test': 'register', 'n': 1 << 30, 'value': 1432.0}]})
        for out, values in ((said, {'ours.register': 1432.0}), ('{"results": []}', {}), ('', {})):
            with mock.patch.object(tools.Bench, 'run', return_value=out):
                bench = tools.Bench(Path('/nowhere'), (0, 1), Path('/nowhere'))
                self.assertEqual(tools.register_step(bench), values)

    def test_streams_count_by_the_median_round(self):
        document = {'test': {'window_messages': 64},
                    'results': [{'size_bytes': 8, 'round_p50_us': 16.0}]}
        self.assertEqual(tools.median_rates(document, 'k.{}', False), {'k.8': 2e6})
        self.assertEqual(tools.median_rates(document, 'k.{}', True), {'k.8': 16e6})


class Bench:
    """Takes the place of the bench where the program only passes it on."""
    build, pin, deadline, dry = Path('/nowhere'), (0, 1), float('inf'), False
    env = {}
    ucx, wheels, quick = None, Path('/nowhere'), False

    @staticmethod
    def tool(name):
        return f'/nowhere/{name}'


class Needs(unittest.TestCase):
    """If a measurement lacks something that it needs, its row is left out, with the reason."""

    def test_options_that_a_tool_lacks(self):
        with tempfile.TemporaryDirectory() as directory:
            tool = Path(directory, 'perf/vi_lat')
            tool.parent.mkdir()
            tool.write_text('#!/bin/sh\necho "  --adopted  text" "  --there N  text"\n',
                            encoding='ascii')
            tool.chmod(0o755)
            bench = tools.Bench(Path(directory), (0, 1), Path(directory), env=dict(os.environ))
            self.assertIsNone(plan.why_missing(bench, 'vi_lat --there'))
            self.assertEqual(plan.why_missing(bench, 'vi_lat --adopt'),
                             'vi_lat of this build has no --adopt')

    @staticmethod
    def known(tool):
        """The words of the tool's --help, which tools_test.py compares with this file."""
        return (ROOT / f'tests/tools/golden/{tool}.help').read_text(encoding='utf-8').split()

    def test_no_row_is_left_out_with_the_tools_of_this_tree(self):
        for need in {need for _, need, _ in plan.full_plan() + plan.quick_plan()} - {None}:
            tool, _, option = need.partition(' ')
            if option:
                self.assertTrue(option in self.known(tool), need)

    def test_the_tools_of_this_tree_have_every_option_of_the_plans(self):
        seen = set()
        nowhere = Path('/nowhere')
        bench = tools.Bench(nowhere, (0, 1), nowhere, dry=True, ucx=nowhere)
        with contextlib.redirect_stdout(io.StringIO()) as said, \
                contextlib.redirect_stderr(io.StringIO()):
            rounds.Comparison(bench, plan.full_plan() + plan.quick_plan(), []).dry(False)
        for line in said.getvalue().splitlines():
            tool = re.search(r'/nowhere/perf/(vi_(?:lat|bw|rate|scale)) ', line)
            for option in re.findall(r'(?<= )--[a-z-]+', line) if tool else ():
                self.assertTrue(option in self.known(tool[1]), f'{option}: {line}')
                seen.add((tool[1], option))
        self.assertLessEqual({('vi_lat', '--adopt'), ('vi_lat', '--window-memory'),
                              ('vi_bw', '--window-memory'), ('vi_rate', '--batch'),
                              ('vi_rate', '--vis')}, seen)

    def test_what_takes_long_is_not_quick(self):
        bench = Bench()
        self.assertIsNone(plan.why_missing(bench, plan.FULL))
        with mock.patch.object(bench, 'quick', True):
            self.assertIn('--quick', plan.why_missing(bench, plan.FULL))

    def test_the_plan_gives_what_the_rows_need(self):
        needs = {need for _, need, _ in plan.full_plan()}
        for row in rows.all_rows():
            for need in {row.needs, *set(row.against) - {'limit', 'itself'}} - {None}:
                self.assertIn(need, needs, row.figure)

    def test_both_plans_have_each_measurement_once(self):
        for made in (plan.quick_plan(), plan.full_plan()):
            names = [name for name, _, _ in made]
            self.assertEqual(len(names), len(set(names)))

    def test_a_missing_need_leaves_out_the_step_and_the_row(self):
        with mock.patch.object(plan, 'why_missing', return_value='it is not there'), \
                contextlib.redirect_stderr(io.StringIO()) as said, \
                mock.patch.object(rounds, 'why_missing', plan.why_missing):
            made = rounds.Comparison(Bench(), [('a', 'x', None), ('b', None, None)], [])
        self.assertEqual((made.plan, made.missing), ([('b', None)], {'x': 'it is not there'}))
        self.assertEqual(said.getvalue(), 'compare: it is not there\n')


class Setup(unittest.TestCase):
    """scripts/setup --peers in an environment without any of the programs."""

    def said(self, *args):
        with tempfile.TemporaryDirectory() as empty:
            return run(str(ROOT / 'scripts/setup'), '--peers', *args, env={'PATH': empty})

    def test_it_is_for_the_peers_alone(self):
        out = self.said('--dry-run')
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        packages, *wheels = out.stdout.splitlines()
        self.assertEqual(packages.partition(':')[2].split()[3:],
                         ['ucx-utils', 'openmpi-bin', 'libopenmpi-dev', 'mpich', 'libmpich-dev', 'pkg-config',
                          'libfabric-dev', 'gcc', 'python3-venv'])
        for line in wheels:  # none where they have been brought
            self.assertRegex(line, r'^setup: missing: \S+==\S+ of PyPI; it would be put into /\S+$')

    def test_it_looks_for_what_is_run(self):
        text = (ROOT / 'scripts/setup').read_text(encoding='utf-8')
        for mpi in peers.MPIS.values():
            for program in (mpi.compiler, mpi.launcher) if mpi.wheel is None else ():
                self.assertIn(f'have {program}\n', text)
            self.assertTrue(mpi.wheel is None or f'{mpi.wheel}==' in text, mpi.name)

    def test_other_sets_are_refused(self):
        for other in ('--all', '--arm64'):
            self.assertEqual(self.said('--dry-run', other).returncode, 2)


class Rounds(unittest.TestCase):
    """The table, the file and the exit status that follow from rounds."""
    row = rows.Row('a row', 'ns', 'ours', rows.R, must=2.0, goal=1.0)

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.json = Path(directory.name, 'rows.json')
        self.made = rounds.Comparison(Bench(), [], [self.row])
        self.said = ''

    def reported(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                mock.patch.object(peers, 'versions', return_value={}):
            status = report.report(self.made, {'quick': True, 'json': str(self.json),
                                               'plots': None}, self.json.parent)
        self.said = out.getvalue()
        return status, json.loads(self.json.read_text(encoding='utf-8'))

    def test_what_held_is_success(self):
        self.made.rounds = [a_round(50, {'ours': 90.0})] * 5
        status, document = self.reported()
        self.assertEqual((status, document['schema'], document['schema_version'],
                          document['quick']), (0, 'viaduct.compare', 3, True))
        (row,) = document['rows']
        self.assertEqual((row['figure'], row['placement'], row['speed'], row['ours'],
                          row['ours_steps'], row['limit'], row['peers'], row['unit'],
                          row['ratio'], row['spread'], row['values'], row['must'], row['goal'],
                          row['must_outcome'], row['goal_outcome']),
                         ('a row', 'near', 'counted', 90, 300, 50, {}, 'ns', 1.8, 0, 5, 2, 1,
                          'held', 'missed'))
        self.assertEqual(document['placements'], {'near': {'r_ns': 50}})
        self.assertEqual([(s['name'], s['step_ns'], s['probes'])
                          for s in document['states']['speeds']], [('counted', STEP, 10)])
        self.assertEqual(document['rounds'][0]['values']['ours'],
                         {'value': 90, 'r_before_ns': 50, 'r_after_ns': 50,
                          'step_before_ns': STEP, 'step_after_ns': STEP})
        self.assertIn('1 of 1 requirements held, 0 missed, 0 within their spread', self.said)

    def test_a_requirement_missed_in_one_placement_is_failure(self):
        self.made.rounds = [a_round(r, {'ours': ours}) for r, ours in ((50, 90.0), (200, 500.0))
                            for _ in range(5)]
        status, document = self.reported()
        self.assertEqual((status, [r['must_outcome'] for r in document['rows']]),
                         (1, ['held', 'missed']))

    def test_what_is_within_its_spread_is_not_shown(self):
        self.made.rounds = [a_round(50, {'ours': 90.0 + 3 * n}) for n in range(5)]
        status, document = self.reported()
        self.assertEqual((status, document['rows'][0]['must_outcome']), (1, 'unsure'))
        self.assertIn('0 of 1 requirements held, 0 missed, 1 within their spread', self.said)

    def test_a_slow_stretch_is_told_but_not_judged(self):
        self.made.rounds = [a_round(50, {'ours': ours}, step=step)
                            for ours, step in ((90.0, 0.35), (180.0, 0.65)) for _ in range(8)]
        status, document = self.reported()
        self.assertEqual((status, [r['must_outcome'] for r in document['rows']],
                          [r['must_outcome'] for r in document['other_rows']]),
                         (0, ['held'], ['missed']))
        self.assertIn('at other speeds: 0 rows held, 1 missed', self.said)

    def test_nothing_measured_is_failure(self):
        for made in ([], [a_round(50, {})]):
            self.made.rounds = made
            status, document = self.reported()
            self.assertEqual((status, document['rows']), (1, []))

    def run_plan(self, plan, most, probes=None):
        """Runs a plan; returns the keys of each round's values.  Probes find each R of `probes` in turn, else 50."""
        self.made.plan = plan
        taken = {'side_effect': map(probe, probes)} if probes else {'return_value': probe(50)}
        with mock.patch.object(tools, 'probe', **taken), \
                contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            self.made.run(time.monotonic() + PATIENCE, most)
        return [sorted(r.samples) for r in self.made.rounds]

    def test_a_round_that_was_ended_counts_as_far_as_it_went(self):
        lengths = iter((True, False))

        def second(_):
            if not next(lengths):
                raise tools.OutOfTime('no time left')
            return {'other': 1.0}
        plan = [('first', lambda _: {'ours': 90.0}), ('second', second)]
        self.assertEqual(self.run_plan(plan, 3), [['other', 'ours'], ['ours']])
        self.assertIn('as far as it went', list(self.made.notes)[-1])

    def test_nothing_is_measured_after_the_end(self):
        with self.assertRaises(tools.OutOfTime), \
                mock.patch.object(tools, 'probe', return_value=probe(50)):
            self.made.round([('first', self.fail)], time.monotonic() - 1)

    def test_a_failed_step_is_left_out_and_noted(self):
        def fails(_):
            raise tools.Failed('it broke')
        plan = [('bad', fails), ('good', lambda _: {'ours': 90.0})]
        self.assertEqual(self.run_plan(plan, 2), [['ours'], ['ours']])
        self.assertEqual(self.made.notes, {'bad: it broke': 2})

    def test_what_has_settled_is_not_measured_again(self):
        loose = rows.Row('loose', 'ns', 'loose', against=('itself',), must=9.0, goal=1.0)
        self.made.rows.append(loose)
        counts = iter(range(100))
        plan = [('settles', lambda _: {'ours': 90.0}), ('curve', lambda _: {'ours.lat.7': 1.0}),
                ('does not', lambda _: {'loose': 1.0 + next(counts) % 2})]
        self.assertEqual(self.run_plan(plan, 7),
                         5 * [['loose', 'ours', 'ours.lat.7']] + 2 * [['loose']])

    def test_rounds_end_when_all_has_settled(self):
        self.assertEqual(self.run_plan([('settles', lambda _: {'ours': 90.0})], 0),
                         5 * [['ours']])

    def test_a_measurement_between_unlike_probes_is_made_once_more(self):
        values = iter((1.0, 90.0, 2.0, 3.0))
        # The probes: before; after, and two to confirm it; after the second measurement.
        self.run_plan([('moved', lambda _: {'ours': next(values)})], 1,
                      (50, 200, 210, 205, 204))
        (made,) = self.made.rounds
        self.assertEqual([p.r for p in made.probes], [50, 200, 204])
        self.assertEqual((made.samples['ours'].value, made.samples['ours'].before.r), (90, 200))

    def test_what_stays_unlike_does_not_count(self):
        self.run_plan([('moves', lambda _: {'ours': 90.0})], 1,
                      (50, 200, 210, 205, 50, 51, 52))
        self.assertEqual(stats.Pool(self.made.rounds).of('ours'), [])


class Words(unittest.TestCase):
    """The last line of a report."""

    @staticmethod
    def row(key, name, peer_outcomes, ratio=0.5, placement='near'):
        """An outcome of the row of the table that has this value."""
        row = next(r for r in rows.all_rows() if r.ours == key)
        assert row.name == name, row.name
        return {'name': name, 'key': key, 'placement': placement, 'better': row.better, 'peer_outcomes': peer_outcomes,
                'peer_ratios': {peer: ratio for peer, outcome in peer_outcomes.items() if outcome != 'unsure'}}

    def test_where_ours_are_ahead_and_where_not(self):
        made = [
            self.row('ours.lat.4', '4 B half round trip', {'ucx': 'ahead', 'tcp': 'behind'}),
            self.row('ours.lat.4', '4 B half round trip', {'newer_ucx': 'ahead'}),
            self.row('ours.lat.64', '64 B half round trip', {'ucx': 'even', 'mpich': 'ahead'}, 0.98),
            self.row('ours.lat.1024', '1 KiB half round trip', {'newer_mpich': 'behind', 'ucx': 'even'}, 1.2),
            self.row('ours.many.4', '4 B one-way rate by calls for many', {'ucx': 'behind'}, 0.9),
            self.row('ours.write.8', '8 B RDMA write to window memory', {'ucx': 'unsure', 'newer_ucx': 'ahead'}),
            self.row('ours.block.4', 'blocking receive', {'unix': 'behind'}),
            self.row('ours.post.4', 'time inside VipPostSend, 4 B, nobody asleep', {}),
            self.row('ours.latwin.65536', '64 KiB half round trip into window memory', {'newer_ucx_cma': 'even'}, placement='far'),
        ]
        self.assertEqual(words.in_words(made, {'ucx': '1.13.1', 'newer_ucx': '1.22.0', 'newer_mpich': '5.0.2'}),
                         'near: Viaduct is ahead of all in 4 B half round trip; '
                         'is even in 64 B half round trip (0.98 of the time of UCX 1.13.1); '
                         'is behind in 1 KiB half round trip (1.20 of the time of MPICH 5.0.2), '
                         '4 B one-way rate by calls for many (0.90 of the rate of UCX 1.13.1); '
                         'is undecided in 8 B RDMA write to window memory. '
                         'far: Viaduct is even in 64 KiB half round trip into window memory (0.50 of the time of UCX 1.22.0 with one copy)')

    def test_without_libraries(self):
        self.assertEqual(words.in_words([self.row('ours.block.4', 'blocking receive', {'tcp': 'ahead'})], {}), words.NO_PEER)

    def test_every_library_has_a_name(self):
        for row in rows.all_rows():
            self.assertLessEqual(set(row.peers) - {'unix', 'tcp'}, set(words.NAMES))
            self.assertNotIn(',', row.name if set(row.peers) & set(words.NAMES) else '')


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
        for seconds in (0.2, 2, 20):  # until one has time to start its child
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

    def test_no_newer_ucx_is_said(self):
        with tempfile.TemporaryDirectory() as empty:
            out = run(COMPARE, '--dry', '--build', '/nowhere', '--ucx', empty)
        self.assertEqual(out.returncode, 1)
        self.assertIn(f'{empty}/bin/ucx_perftest', out.stderr)

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
        names = ['speed', 'line', 'slot', 'fifo', 'pingpong', 'put', 'stream', 'chunk', 'memcpy', 'futex',
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
