#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vi_sim against closed forms, and perf/ring_sim: ring_sim_test.py plain|simulated [TEST]...

plain: the tests that need no simulator; simulated: the rest, skipped where there is none.
"""
import contextlib
import io
import json
import os
import re
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
from compare_lib import tools  # noqa: E402  after the path to it
from ring_sim_lib import cases, check, simulator  # noqa: E402

RING_SIM = ROOT / 'perf/ring_sim'
VI_SIM = os.environ.get('VI_SIM')
REASON = os.environ.get('VI_SIM_MISSING') or 'VI_SIM does not name vi_sim'
PATIENCE = limit(240)
KIB, MIB = 1024, 1 << 20
FRAGMENT = 32 * KIB

DMA = {'link_bytes_per_second': 6.4e9, 'link_latency_ns': 500, 'register_write_ns': 100,
       'register_read_ns': 1000, 'interrupt_ns': 3000, 'dma_setup_ns': 300,
       'copy_bytes_per_second': 1e10, 'send_fragment_ns': 20, 'relay_fragment_ns': 50,
       'receive_fragment_ns': 30, 'shared_cores': 0, 'core_switch_ns': 0,
       'dma': True}
COPY = {**DMA, 'dma': False, 'copy_bytes_per_second': 5e9}

SKIPPED = 77
simulated = []


def needs_simgrid(cls):
    simulated.append(cls)
    return cls


def run(*argv, env=None):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                          timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          env={**os.environ, **(env or {})})


@contextlib.contextmanager
def profile_file(values):
    with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
        json.dump({k: {'value': v, 'source': 'test'} for k, v in values.items() if k != 'dma'},
                  file)
        file.flush()
        yield file.name


def sim_output(profile, topology, hosts, pattern, *options):
    with profile_file(profile) as path:
        done = run(VI_SIM, '--profile', path, '--topology', topology, '--hosts', hosts,
                   '--pattern', pattern, *(['--dma'] if profile['dma'] else []), *options)
    if done.returncode:
        raise AssertionError(f'vi_sim ended with {done.returncode}: {done.stderr}')
    return done.stdout


def sim(*arguments):
    return json.loads(sim_output(*arguments))


# ---- the closed forms: the nanoseconds that a fragment costs each part ----

def wire_bytes(payload):
    if payload <= 48:
        return 64
    return 128 if payload <= 112 else -(-payload // 64) * 64 + 64


class Cost:
    """The cost of a fragment to the sender, a relay, the receiver, and the link."""

    def __init__(self, profile, payload):
        dma = profile['dma']
        rate = profile['link_bytes_per_second']
        if not dma:
            rate = min(rate, profile['copy_bytes_per_second'])
        setup = profile['dma_setup_ns'] if dma and payload > 112 else 0
        self.link = wire_bytes(payload) / rate * 1e9
        self.latency = profile['link_latency_ns']
        stored = 0 if dma else self.link
        self.send = profile['send_fragment_ns'] + setup + stored
        self.relay = profile['relay_fragment_ns'] + setup + stored
        self.receive = (profile['receive_fragment_ns']
                        + payload / profile['copy_bytes_per_second'] * 1e9)
        self.carried = self.link if dma else 0

    def through(self, hops):
        return (self.send + (hops - 1) * self.relay + self.receive
                + hops * (self.carried + self.latency))

    def stage(self, hops):
        return max(self.send, self.receive, self.carried, self.relay if hops > 1 else 0)


@needs_simgrid
class ClosedForms(unittest.TestCase):
    def test_one_message_over_any_number_of_hops(self):
        for profile in (DMA, COPY):
            for size in (1, 48, 49, 64, 112, 113, 1000, 4096):
                with self.subTest(size=size, dma=profile['dma']):
                    flows = sim(profile, 'chain', 9, 'latency', '--bytes', size)['by_hops']
                    self.assertEqual([f['hops'] for f in flows], list(range(1, 9)))
                    for flow in flows:
                        self.assertAlmostEqual(flow['time_us'] * 1e3,
                                               Cost(profile, size).through(flow['hops']), places=5)

    def test_an_interrupt_for_each_that_sleeps(self):
        more = DMA['register_write_ns'] + DMA['interrupt_ns']
        for flow in sim(DMA, 'chain', 9, 'latency', '--bytes', 64, '--interrupts')['by_hops']:
            self.assertAlmostEqual(flow['time_us'] * 1e3,
                                   Cost(DMA, 64).through(flow['hops']) + flow['hops'] * more,
                                   places=5)

    def test_hops_of_a_stream_overlap(self):
        slow_end = {**DMA, 'copy_bytes_per_second': 2e9}
        messages, count = 4, 4 * MIB // FRAGMENT
        for profile in (DMA, COPY, slow_end):
            flows = sim(profile, 'chain', 17, 'stream', '--bytes', MIB, '--messages', messages,
                        '--ring-bytes', 64 * MIB, '--slots', 4096)['by_hops']
            self.assertEqual([f['hops'] for f in flows], [1, 2, 4, 8, 16])
            cost = Cost(profile, FRAGMENT)
            for flow in flows:
                expected = cost.through(flow['hops']) + (count - 1) * cost.stage(flow['hops'])
                # credit takes a line on the way back, which nothing else uses
                self.assertAlmostEqual(flow['time_us'] * 1e3 / expected, 1, delta=0.002)

    def test_the_window_bounds_a_long_path(self):
        """Credit returns by the quarter of the buffer: four quarters are under way in each round trip."""
        times, hops, messages = 16, 32, 16  # the path is longer than that to a neighbour by this factor
        ring = 256 * KIB
        flow = sim(DMA, 'chain', hops + 1, 'stream', '--bytes', MIB, '--messages', messages,
                   '--ring-bytes', ring // times)['by_hops'][-1]
        cost, credit = Cost(DMA, FRAGMENT), Cost(DMA, 0)
        back = (hops - 1) * credit.relay + hops * (credit.carried + credit.latency)
        turn = cost.through(hops) + back + (ring / 4 / FRAGMENT - 1) * cost.stage(hops)
        self.assertEqual(flow['hops'], hops)
        self.assertAlmostEqual(flow['bytes_per_second'] / (ring / turn * 1e9), 1, delta=0.03)
        self.assertLess(flow['bytes_per_second'], 0.3 * DMA['link_bytes_per_second'])

    def test_all_share_the_cores_there_are(self):
        profile = {**COPY, 'shared_cores': 1, 'link_latency_ns': 0}
        cost, count = Cost(profile, FRAGMENT), 4 * MIB // FRAGMENT
        for flow in sim(profile, 'chain', 5, 'stream', '--bytes', 4 * MIB)['by_hops']:
            work = count * (cost.send + (flow['hops'] - 1) * cost.relay + cost.receive)
            self.assertAlmostEqual(flow['time_us'] * 1e3 / work, 1, delta=0.02)

    def test_a_core_switches_between_threads(self):
        """Three threads run in turn on two cores: the third finds on both the work of another."""
        profile = {**COPY, 'shared_cores': 2, 'core_switch_ns': 700}
        flows = sim(profile, 'chain', 4, 'latency', '--bytes', 64)['by_hops']
        for flow, switches in zip(flows, (0, 1, 2)):
            self.assertAlmostEqual(flow['time_us'] * 1e3,
                                   Cost(profile, 64).through(flow['hops']) + 700 * switches,
                                   places=5)

    def test_two_flows_share_a_link(self):
        count = 2 * MIB // FRAGMENT
        cost = Cost(DMA, FRAGMENT)
        done = sim(DMA, 'chain', 2, 'bisection', '--bytes', MIB, '--per-pair', 2)
        expected = cost.through(1) + (count - 1) * cost.stage(1)
        self.assertEqual(done['flows'], 4)
        self.assertAlmostEqual(done['finish_us'] * 1e3 / expected, 1, delta=0.02)

    def test_time_between_simulated_hops_is_a_line(self):
        flows = sim(DMA, 'chain', 65, 'latency', '--bytes', 64)['by_hops']
        self.assertLess(len(flows), 64)
        times = cases.every_hop([(f['hops'], f['time_us']) for f in flows], 64)
        for hops, time in enumerate(times, 1):
            self.assertAlmostEqual(time * 1e3, Cost(DMA, 64).through(hops), places=4)


def net_of(topology, hosts):
    return sim(DMA, topology, hosts, 'routes')['net']


def mean_of_ring(hosts):
    return (hosts * hosts // 4) / (hosts - 1)


def mean_of_chain(hosts):
    return (hosts + 1) / 3


@needs_simgrid
class Topologies(unittest.TestCase):
    def test_bisection(self):
        for topology, hosts, links in (
                ('ring', 2, 1), ('ring', 3, 2), ('ring', 64, 2), ('chain', 64, 1),
                ('mesh:8x4', 32, 4), ('mesh:4x8', 32, 4), ('torus:8x4', 32, 8),
                ('torus:4x8', 32, 8), ('torus:2x2', 4, 2), ('torus:32x32', 1024, 64),
                ('graph:0-1,1-2,2-3,3-0,0-2', 4, 3)):
            with self.subTest(topology=topology, hosts=hosts):
                net = net_of(topology, hosts)
                self.assertEqual(net['bisection_links'], links)
                self.assertEqual(net['bisection_bytes_per_second'],
                                 2 * links * DMA['link_bytes_per_second'])

    def test_a_ring_is_halved_by_four_directions(self):
        self.assertEqual(net_of('ring', 10)['bisection_bytes_per_second'],
                         4 * DMA['link_bytes_per_second'])

    def test_distances(self):
        for hosts in (3, 8, 65, 1024):
            ring, chain = net_of('ring', hosts), net_of('chain', hosts)
            self.assertEqual((ring['links'], chain['links']), (hosts, hosts - 1))
            self.assertEqual(ring['diameter_hops'], hosts // 2)
            self.assertEqual(chain['diameter_hops'], hosts - 1)
            self.assertAlmostEqual(ring['mean_hops'], mean_of_ring(hosts), places=9)
            self.assertAlmostEqual(chain['mean_hops'], mean_of_chain(hosts), places=9)
            self.assertEqual(sum(chain['pairs_by_hops']), hosts * (hosts - 1))

    def test_what_the_product_does_not_reach(self):
        far = net_of('ring', 1024)
        self.assertEqual(far['pairs_beyond_longest_way'],
                         1024 * (1023 - 2 * far['longest_way_hops']))
        self.assertEqual(net_of('mesh:32x32', 1024)['pairs_beyond_longest_way'], 0)

    def test_paths_beyond_it_are_shortest_too(self):
        flows = sim(DMA, 'ring', 200, 'latency', '--bytes', 8)['by_hops']
        self.assertEqual(flows[-1]['hops'], 100)
        self.assertAlmostEqual(flows[-1]['time_us'] * 1e3, Cost(DMA, 8).through(100), places=4)


@needs_simgrid
class Congestion(unittest.TestCase):
    def test_all_to_all_on_an_odd_ring_loads_all_directions_alike(self):
        for hosts in (3, 7, 15):
            loads = sim(DMA, 'ring', hosts, 'alltoall', '--bytes', KIB)['loads']
            self.assertEqual(loads['directions'], 2 * hosts)
            self.assertEqual(loads['least_bytes'], loads['most_bytes'])
            self.assertEqual(loads['most_bytes'], (hosts * hosts - 1) // 8 * KIB)

    def test_neighbours_on_a_torus_do_not_meet(self):
        done = sim(DMA, 'torus:5x4', 20, 'neighbour', '--bytes', MIB)
        cost, count = Cost(DMA, FRAGMENT), MIB // FRAGMENT
        self.assertEqual(done['flows'], 80)
        self.assertEqual(done['loads']['least_bytes'], MIB)
        self.assertEqual(done['loads']['most_bytes'], MIB)
        self.assertAlmostEqual(done['slowest_flow_bytes_per_second']
                               / done['fastest_flow_bytes_per_second'], 1, delta=0.01)
        self.assertAlmostEqual(done['finish_us'] * 1e3
                               / (cost.through(1) + (count - 1) * cost.stage(1)), 1, delta=0.02)

    def test_every_hop_of_every_flow_is_some_direction_s_load(self):
        for pattern in ('alltoall', 'random', 'bisection'):
            done = sim(DMA, 'torus:4x4', 16, pattern, '--bytes', KIB)
            loads = done['loads']
            self.assertAlmostEqual(loads['mean_bytes'] * loads['directions'],
                                   done['flows'] * done['mean_flow_hops'] * KIB, places=3)
            self.assertLess(loads['most_over_mean'], 4)

    def test_nothing_is_faster_than_the_busiest_direction(self):
        for model in ('fragments', 'fluid'):
            for topology in ('ring', 'torus:4x4', 'mesh:4x4', 'chain'):
                done = sim(DMA, topology, 16, 'alltoall', '--model', model)
                self.assertEqual((done['model'], done['simulated_flows']), (model, 240))
                self.assertGreater(done['finish_us'], done['loads']['busiest_needs_us'] * 0.999)

    def test_streams_tell_what_fragments_tell(self):
        # copying threads wait for each other on a link, which the model of streams does not contain
        for profile, within in ((DMA, 0.15), (COPY, 0.25)):
            for topology in ('ring', 'torus:4x4', 'mesh:4x4', 'chain'):
                for pattern in ('alltoall', 'bisection'):
                    with self.subTest(topology=topology, pattern=pattern,
                                      dma=profile['dma']):
                        fragments, fluid = (sim(profile, topology, 16, pattern, '--model', m)
                                            for m in ('fragments', 'fluid'))
                        self.assertEqual(fragments['loads'], fluid['loads'])
                        self.assertAlmostEqual(fluid['finish_us'] / fragments['finish_us'], 1,
                                               delta=within)

    def test_a_sample_of_streams_stands_for_all(self):
        every = sim(DMA, 'torus:6x6', 36, 'alltoall', '--model', 'fluid', '--fluid', 10**9)
        some = sim(DMA, 'torus:6x6', 36, 'alltoall', '--model', 'fluid', '--fluid', 300000,
                   '--ways', 1000)
        self.assertEqual(every['simulated_flows'], 1260)
        self.assertLess(some['simulated_flows'], 320)
        self.assertEqual(some['loads']['flows_followed'], 1000)
        self.assertAlmostEqual(some['loads']['mean_bytes'] / every['loads']['mean_bytes'], 1,
                               delta=0.05)
        ratio = some['finish_us'] / every['finish_us']
        self.assertTrue(0.9 < ratio < 1.5, ratio)

    def test_more_transfer_threads_relay_more(self):
        slow = {**COPY, 'relay_fragment_ns': 20000}
        one, four = (sim(slow, 'chain', 5, 'bisection', '--per-pair', 16, '--threads', n)
                     for n in (1, 4))
        self.assertGreater(one['finish_us'], 1.5 * four['finish_us'])


@needs_simgrid
class Determinism(unittest.TestCase):
    def test_a_seed_makes_one_result(self):
        for pattern in ('random', 'bisection', 'alltoall'):
            for model in ('fragments', 'fluid'):
                case = (DMA, 'torus:4x4', 16, pattern, '--model', model, '--seed')
                first = sim_output(*case, 5)
                self.assertEqual(first, sim_output(*case, 5))
                self.assertNotEqual(first, sim_output(*case, 6))

    def test_the_command_too(self):
        with tempfile.TemporaryDirectory() as scratch:
            made = []
            for jobs in (1, 3):
                path = Path(scratch) / f'{jobs}.json'
                done = small_run(scratch, '--json', path, '--jobs', jobs, '--seed', 9)
                self.assertEqual((done.returncode, done.stderr), (0, ''))
                made.append(path.read_bytes())
            self.assertEqual(made[0], made[1])


@needs_simgrid
class SimUsage(unittest.TestCase):
    def refused(self, *arguments, profile=None):
        with profile_file(DMA if profile is None else profile) as path:
            done = run(VI_SIM, '--profile', path, *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ''), arguments)
        return done.stderr

    def test_bad_arguments(self):
        for arguments, said in (
                (('--hosts', '1'), "--hosts '1' is not a number from 2 to 1024"),
                (('--hosts', '1025'), "--hosts '1025' is not"),
                (('--hosts', '8x'), "--hosts '8x' is not"),
                (('--hosts', '-8'), "--hosts '-8' is not"),
                (('--bytes', '0'), "--bytes '0' is not"),
                (('--pattern', 'storm'), "--pattern 'storm' is not latency, stream"),
                (('--model', 'exact'), "--model 'exact' is not auto, fragments or fluid"),
                (('--ring-bytes', '5000'), 'must be powers of two'),
                (('--slots', '4'), "--slots '4' is not a number from 8 to 4096"),
                (('more',), "no argument 'more' is known")):
            stderr = self.refused(*arguments)
            self.assertIn(said, stderr)
            self.assertEqual(stderr.count('\n'), 1, stderr)

    def test_topologies_that_do_not_fit(self):
        for topology in ('mesh:3x3', 'graph:0-9', 'star'):
            stderr = self.refused('--topology', topology, '--hosts', '8')
            self.assertTrue(stderr.startswith('vi_sim: ') and stderr.count('\n') == 1, stderr)

    def test_profiles(self):
        for change, said in (({'link_bytes_per_second': 0}, 'link_bytes_per_second must be'),
                             ({'interrupt_ns': 'soon'}, 'interrupt_ns must be'),
                             ({'copy_bytes_per_second': -5e9}, 'copy_bytes_per_second must be'),
                             ({'shared_cores': 1.5}, 'shared_cores must be')):
            self.assertIn(said, self.refused(profile={**DMA, **change}))
        less = {k: v for k, v in DMA.items() if k != 'dma_setup_ns'}
        self.assertIn('no dma_setup_ns', self.refused(profile=less))
        done = run(VI_SIM, '--profile', '/nowhere/p.json')
        self.assertEqual(done.returncode, 2)
        self.assertIn('not a readable JSON object', done.stderr)
        self.assertIn('--profile FILE is needed', run(VI_SIM).stderr)

    def test_the_first_profile_with_a_key_counts(self):
        with profile_file({'link_latency_ns': 1500}) as first, profile_file(DMA) as second:
            done = run(VI_SIM, '--profile', first, '--profile', second, '--bytes', 8)
        self.assertAlmostEqual(json.loads(done.stdout)['by_hops'][0]['time_us'] * 1e3,
                               Cost({**DMA, 'link_latency_ns': 1500}, 8).through(1), places=5)

    def test_help(self):
        self.assertIn('usage: vi_sim', run(VI_SIM, '--help').stdout)
        self.assertRegex(run(VI_SIM, '--version').stdout, r'^vi_sim \(Viaduct\) \d+\.\d+')


# ---- the command ----

def small_run(scratch, *options):
    build = Path(scratch) / 'build/perf/experiments/sim'
    build.mkdir(parents=True, exist_ok=True)
    if not (build / 'vi_sim').exists():
        (build / 'vi_sim').symlink_to(Path(VI_SIM).resolve())
    return run(sys.executable, RING_SIM, '--build', Path(scratch) / 'build', '--topologies',
               'torus,ring', '--hosts', '6,2', '--bytes', '65536', *options)


@needs_simgrid
class Command(unittest.TestCase):
    def test_tables_and_json(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / 'r.json'
            done = small_run(scratch, '--json', path, '--interrupts')
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            document = json.loads(path.read_text(encoding='utf-8'))
        for title in ('One message of 64 B alone', 'One stream', 'Both halves', 'Congestion'):
            self.assertIn(title, done.stdout)
        self.assertEqual(document['schema'], 'viaduct.ring_sim')
        self.assertTrue(document['options']['interrupts'])
        self.assertTrue(all(v['source'] for v in document['profile']['values'].values()))
        rows = document['rows']
        self.assertEqual([(r['topology'], r['hosts']) for r in rows['latency']],
                         [('ring', 2), ('ring', 6), ('torus', 2), ('torus', 6)])
        self.assertEqual(len(rows['congestion']), 12)
        self.assertEqual([r['hops'] for r in rows['stream']], [1, 2, 3])

    def test_pictures(self):
        with tempfile.TemporaryDirectory() as scratch:
            plots = Path(scratch) / 'plots'
            done = small_run(scratch, '--plots', plots)
            if 'matplotlib is missing' in done.stderr:
                self.assertEqual(done.returncode, 1)
                self.skipTest('matplotlib is missing (Debian: python3-matplotlib)')
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in ('latency', 'stream', 'bisection', 'congestion'):
                self.assertEqual((plots / f'{name}.png').read_bytes()[:4], b'\x89PNG')


class Usage(unittest.TestCase):
    def test_bad_arguments(self):
        for arguments, said in (
                (('--hosts', '1,2'), "--hosts '1,2' is not a list of numbers from 2 to 1024"),
                (('--hosts', '2,,4'), "--hosts '2,,4' is not"),
                (('--topologies', 'ring,star'), "'star' is none of: ring torus mesh chain"),
                (('--threads', '0'), "--threads '0' is not a number from 1 to 64"),
                (('--ring-bytes', '300000'), 'is not a power of two'),
                (('--profile', 'gen9'), "--profile 'gen9' is none of: "),
                (('--profile', './gen9.json'), 'is not a file'),
                (('--calibrate', 'f'), '--calibrate needs --check'),
                (('--json', ''), '--json needs an argument'),
                (('--fast',), 'option --fast not recognized'),
                (('more',), "no argument 'more' is known")):
            done = run(sys.executable, RING_SIM, *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ''), arguments)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count('\n'), 1, done.stderr)

    def test_help_and_version(self):
        self.assertIn('usage: ring_sim', run(sys.executable, RING_SIM, '--help').stdout)
        self.assertRegex(run(sys.executable, RING_SIM, '--version').stdout, r'^ring_sim \d+\.\d+')

    def test_what_to_install(self):
        with tempfile.TemporaryDirectory() as empty:
            done = run(sys.executable, RING_SIM, '--build', empty, env={'PATH': empty})
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('install libsimgrid-dev', done.stderr)
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)


class Cases(unittest.TestCase):
    def test_rectangles(self):
        self.assertEqual([cases.sides(n) for n in (2, 8, 16, 30, 7, 1024)],
                         [(2, 1), (4, 2), (4, 4), (6, 5), (7, 1), (32, 32)])

    def test_profiles_say_where_values_are_from(self):
        for path in simulator.PROFILES.glob('*.json'):
            for key, entry in simulator.profile_values(path).items():
                self.assertTrue(entry['source'].strip(), f'{path}: {key}')

    def test_gen3x8_is_the_model_port_s(self):
        source = ROOT / 'provider/port/deco/port_model_profiles.c'
        if not source.exists():
            self.skipTest('there is no model port')
        text = source.read_text(encoding='utf-8').split('.name = "gen3x8"', 1)[1]
        port = {k: float(v) for k, v in re.findall(r'\.(\w+) = (\d+),', text.split('},', 1)[0])}
        mine = {k: e['value'] for k, e in
                simulator.profile_values(simulator.profile_file('gen3x8')).items()}
        for key in ('latency_ns', 'register_write_ns', 'register_read_ns', 'interrupt_ns',
                    'dma_setup_ns'):
            self.assertEqual(mine.get(f'link_{key}', mine.get(key)), port[key], key)
        self.assertEqual(mine['copy_bytes_per_second'], port['copy_rate'])
        full = port['line_rate'] * port['payload_bytes'] / (port['payload_bytes']
                                                            + port['packet_bytes'])
        self.assertAlmostEqual(mine['link_bytes_per_second'] / full, 1, delta=0.005)

    def test_mean_over_pairs(self):
        row = cases.latency_row({
            'topology': 'x', 'hosts': 4,
            'net': {'pairs_by_hops': [8, 4], 'links': 4, 'diameter_hops': 2, 'mean_hops': 4 / 3,
                    'pairs_beyond_longest_way': 3},
            'by_hops': [{'hops': 1, 'time_us': 1.0}, {'hops': 2, 'time_us': 4.0}]})
        self.assertEqual((row['neighbour_us'], row['mean_us'], row['worst_us']), (1, 2, 4))
        self.assertEqual(row['beyond_reach'], 0.25)


# ---- --check, with invented measurements ----

def made_up(reach, per_hop=0.3, rate=8e9):
    """In place of vi_lat and vi_bw: latencies grow by per_hop microseconds; hosts beyond reach cannot be reached."""
    def measured(bench, program, hosts, sizes, *options):
        hops = int(hosts.rsplit('host', 1)[1])
        if hops > reach:
            raise tools.Failed(f'{program} ended with 1: host {hops} is not reachable')
        if program == 'vi_bw':
            rows = [{'size_bytes': s, 'round_p50_us': s * 32 / rate * 1e6} for s in sizes]
            return {'test': {'window_messages': 64}, 'results': rows}
        if '--post-time' in options:
            return {'test': {}, 'results': [{'size_bytes': s, 'p50_us': 0.03} for s in sizes]}
        return {'test': {}, 'results': [
            {'size_bytes': s, 'p50_us': 0.2 + (hops - 1) * per_hop + 2 * (s - 8) / rate * 1e6}
            for s in sizes]}
    return measured


def check_with(reach, build):
    said = io.StringIO()
    with mock.patch.object(check, 'measured', made_up(reach)), \
            mock.patch.object(tools, 'raw', lambda *_: [{'value': 100.0}]), \
            mock.patch.object(tools, 'fabric', lambda *_: contextlib.nullcontext()), \
            contextlib.redirect_stdout(said):
        return check.compare(build, 8, True), said.getvalue()


class CheckShares(unittest.TestCase):
    def test_latency_is_shared_out_whole(self):
        for latency, post, line in ((180, 25, 120), (180, 500, 120), (180, 25, 900)):
            parts = check.share_out(latency, post, line)
            self.assertAlmostEqual(sum(parts), latency)
            self.assertTrue(all(p >= 0 for p in parts), parts)


@needs_simgrid
class Check(unittest.TestCase):
    def compare(self, reach):
        with tempfile.TemporaryDirectory() as scratch:
            build = Path(scratch)
            (build / 'perf/experiments/sim').mkdir(parents=True)
            (build / simulator.PROGRAM).symlink_to(Path(VI_SIM).resolve())
            return check_with(reach, build)

    def test_only_neighbours(self):
        content, said = self.compare(1)
        self.assertFalse(content['relays_compared'])
        self.assertEqual(sorted(content['not_compared']), ['2', '3', '4'])
        self.assertIn('not compared: 2 hops: vi_lat ended with 1: host 2 is not reachable', said)
        self.assertIn('only neighbours could be compared', said)

    def test_what_it_was_made_from_comes_out_again(self):
        content, _ = self.compare(1)
        known = [r for r in content['rows'] if r['calibrated']]
        self.assertEqual(len(known), 2)
        for row in known:
            self.assertAlmostEqual(row['measured_over_predicted'], 1, delta=0.02)

    def test_relays(self):
        content, said = self.compare(4)
        self.assertTrue(content['relays_compared'])
        self.assertEqual(content['not_compared'], {})
        self.assertNotIn('only neighbours', said)
        row = next(r for r in content['rows']
                   if (r['kind'], r['bytes'], r['hops']) == ('latency', 8, 3))
        self.assertAlmostEqual(row['measured_over_neighbour'], (0.2 + 0.6) / 0.2)
        self.assertGreater(row['predicted_over_neighbour'], 2)

    def test_a_machine_too_loud_to_calibrate(self):
        with mock.patch.object(check, 'share_out', return_value=(1, 1, 1)), \
                mock.patch.object(tools, 'raw', lambda *_: [{'value': 100.0}]):
            measurement = check.Measurement(tools.Bench(Path('x'), (0, 0), Path('x')), 1, 0.1)
            with mock.patch.object(check, 'measured', made_up(1)), \
                    self.assertRaisesRegex(simulator.Failed, 'too much else runs'):
                check.calibrate(measurement, {('latency', 8): 2.0, ('latency', 4096): 1.0})


def load_tests(loader, _, __):
    """The tests of the kind that was asked for."""
    found = [c for c in globals().values() if isinstance(c, type)
             and issubclass(c, unittest.TestCase) and (c in simulated) == (KIND == 'simulated')]
    return unittest.TestSuite(map(loader.loadTestsFromTestCase, found))


if __name__ == '__main__':
    KIND = sys.argv.pop(1) if len(sys.argv) > 1 else ''
    if KIND not in ('plain', 'simulated'):
        print(__doc__.splitlines()[0], file=sys.stderr)
        sys.exit(2)
    if KIND == 'simulated' and not VI_SIM:
        print(REASON)
        sys.exit(SKIPPED)
    unittest.main()
