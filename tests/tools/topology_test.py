#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Topologies as users see them: options, refusals, pictures, paths, JSON, links that go down and up.

  topology_test.py [CLASS[.METHOD]...]

The programs are named by the variables of tools_test.py.
"""
import itertools
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tools_test import AGENT, PATIENCE, VI_FABRIC, Fabric, environment, finish, run

numbers = itertools.count()
CPU = min(os.sched_getaffinity(0))


def fabric_tool(env, *args):
    return subprocess.run([VI_FABRIC, *args], env=env, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)


class Net:
    """A fabric brought up by vi_fabric; taken down at the end of the `with`."""

    def __init__(self, *args, **env):
        self.env = environment(f'topo{os.getpid()}-{next(numbers)}', VIADUCT_AGENT=AGENT, **env)
        self.said = self.vi_fabric('up', *args)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.vi_fabric('down')

    def vi_fabric(self, *args, code=0):
        done = fabric_tool(self.env, *args)
        if done.returncode != code:
            raise AssertionError(f'vi_fabric {args}: {done.stdout} {done.stderr}')
        return done.stdout if code == 0 else done.stderr

    def vi_info(self, *args, **env):
        done = run('vi_info', *args, env={**self.env, **env})
        if done.returncode != 0:
            raise AssertionError(f'vi_info {args}: {done.stderr}')
        return done.stdout

    def info(self, *args, **env):
        return json.loads(self.vi_info('--json', *args, **env))

    def explain(self, host, **env):
        return self.info('--explain', host, **env)['explain'][0]

    def relay(self, host):
        """The circuits and counters of a host's transfer threads."""
        status = fabric_tool(self.env, 'status', '--json')
        return json.loads(status.stdout)['hosts'][host]['relay']

    until = Fabric.until


# ---- refusals ----

class Options(unittest.TestCase):
    def refused(self, code, texts, *args, **env):
        env = environment(f'topo{os.getpid()}', **{'VIADUCT_AGENT': AGENT, **env})
        done = fabric_tool(env, 'up', *args)
        self.assertEqual(done.returncode, code, f'{args}: {done.stdout} {done.stderr}')
        self.assertEqual(done.stdout, '')
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        clean = environment(env['VIADUCT_FABRIC'])
        self.assertIn('is not up', fabric_tool(clean, 'status').stderr)

    def test_topology(self):
        for args, texts in (
                (['star'], ['topology "star"', 'not known', 'mesh:WxH']),
                ([''], ['--topology', 'ring, chain', "''"]),
                (['ring:4'], ['topology "ring:4"', 'not known']),
                (['mesh:3'], ['not a width and a height', 'mesh:WxH']),
                (['mesh:3x3', '--hosts', '4'], ['9 hosts, the fabric has 4', 'mesh:2x2']),
                (['torus:9x9'], ['81 hosts', 'up to 64']),
                (['graph:0-1,2-3'], ['no path from host 0 to host 2', 'add links']),
                (['graph:0-1', '--hosts', '3'], ['no path from host 0 to host 2']),
                (['graph:0-1,1-1'], ['link 1-1 joins a host to itself']),
                (['graph:0-1', '--hosts', '1'], ['no host 1 in a fabric of 1 host; use 0 to 0']),
                (['file:/nonexistent'], ['/nonexistent', 'No such file', 'A-B'])):
            with self.subTest(args=args):
                self.refused(2, texts, '--topology', *args)

    def test_lines_of_a_file(self):
        for text, texts in (
                ('0-1\n# far\n1-x\n', ['line 3: "1-x" is not a link', 'as in 0-1']),
                ('0-1\n\n1-1\n', ['line 3: link 1-1']),
                ('0-1\n0-99\n', ['line 2: no host 99 in a fabric of 64 hosts']),
                ('0-1\n2-3\n', ['no path from host 0 to host 2']),
                ('0-1\n' * 8, ['line 8: host 0 has more than 7 links'])):
            with self.subTest(text=text), tempfile.NamedTemporaryFile('w', suffix='.links') as file:
                file.write(text)
                file.flush()
                self.refused(2, texts, '--topology', f'file:{file.name}')

    def test_relay(self):
        for args, texts in (
                (['--relay-threads', '0'], ["--relay-threads '0'", '1 to 8']),
                (['--relay-threads', '9'], ["--relay-threads '9'", '1 to 8']),
                (['--relay-threads', 'two'], ["--relay-threads 'two'", '1 to 8']),
                (['--relay-threads', '7', '--doorbells', '8'],
                 ['7 transfer threads', 'of 8 bits 6', '--doorbells']),
                (['--relay-threads', '1', '--doorbells', '2'], ['of 2 bits 0']),
                (['--relay-cpus', ''], ['--relay-cpus', '2-5']),
                (['--relay-cpus', '5-2'], ["--relay-cpus '5-2'", '2-5']),
                (['--relay-cpus', '0-8'], ["--relay-cpus '0-8'", 'up to 8']),
                (['--relay-cpus', f'{CPU},1023'], ['processor 1023', 'name others']),
                (['--relay-wait', 'spin'], ["--relay-wait 'spin'", 'adaptive, poll or block'])):
            with self.subTest(args=args):
                self.refused(2, texts, *args)

    def test_profiles(self):
        model = ['--hosts', '3', '--port', 'emu+model', '--profiles']
        for args, texts in (
                ([*model, '0-1'], ['--profiles 0-1: LINK=PROFILE expected, as in 0-1=pex8733']),
                ([*model, '0-1=pex'], ['no such profile', 'gen3x8, pex8733, pex8749, pxh810']),
                ([*model, '0-3=pex8733'], ['hosts 0 and 3 of this fabric of 3 are not joined']),
                ([*model, '0.up=pex8733'], ['host 0 has no port up; it has left, right']),
                ([*model, '0-1=pex8733,1.left=pex8749'], ['port left of host 1 has a profile already']),
                (['--profiles', '0-1=pex8733'], ['ports of kind emu have no model', 'emu+model'])):
            with self.subTest(args=args):
                self.refused(2, texts, *args)
        self.refused(1, ['VIADUCT_PROFILES: 0-1=pex:', 'no such profile'], VIADUCT_PORT='emu+model',
                     VIADUCT_PROFILES='0-1=pex')

    def test_variables(self):
        for env, texts in (
                ({'VIADUCT_TOPOLOGY': 'star'}, ['VIADUCT_TOPOLOGY', 'not known', 'unset']),
                ({'VIADUCT_RELAY_THREADS': '9'}, ["VIADUCT_RELAY_THREADS is '9'", '0 to 8']),
                ({'VIADUCT_RELAY_CPUS': '2-'}, ["VIADUCT_RELAY_CPUS is '2-'", '2-5']),
                ({'VIADUCT_RELAY_CPUS': '1023'}, ['VIADUCT_RELAY_CPUS is 1023', 'processor 1023']),
                ({'VIADUCT_RELAY_WAIT': 'spin'}, ['VIADUCT_RELAY_WAIT', 'adaptive, poll, block'])):
            with self.subTest(env=env):
                self.refused(1, texts, **env)
        self.refused(1, ['8 transfer threads', 'VIADUCT_RELAY_THREADS'], '--doorbells', '4',
                     VIADUCT_RELAY_THREADS='8')

    def test_the_agent_itself(self):
        for code, text, args in (
                (2, '9 hosts, the fabric has 2', ['--topology', 'mesh:3x3', '--hosts', '2']),
                (2, '--host-id 4: 0..3 expected in a fabric of 4 hosts',
                 ['--topology', 'mesh:2x2', '--host-id', '4']),
                (2, '7 transfer threads', ['--relay-threads', '7', '--doorbells', '8']),
                (0, '', ['--topology', 'mesh:2x2', '--host-id', '3'])):
            done = subprocess.run([AGENT, '--check', *args], env=environment('unused'), text=True,
                                  capture_output=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)

    def test_variables_choose_and_options_win(self):
        with tempfile.TemporaryDirectory() as where:
            (Path(where) / 'links').write_text('0-1 # near\n\n1-2\n')
            with Net(VIADUCT_TOPOLOGY=f'file:{where}/links', VIADUCT_RELAY_WAIT='block') as net:
                topology = net.info('--topology')['topology']
                self.assertEqual((topology['spec'], topology['relay']['wait']),
                                 ('graph:0-1,1-2', 'block'))
                self.assertIn('VIADUCT_RELAY_WAIT: block\n  origin: environment',
                              net.vi_info('--env'))
            with Net('--topology', 'chain', '--hosts', '3', VIADUCT_TOPOLOGY='mesh:2x2') as net:
                self.assertEqual(net.info('--topology')['topology']['spec'], 'chain')

    def test_an_agent_on_demand_has_one_host(self):
        env = environment(f'topo{os.getpid()}-od', VIADUCT_AGENT=AGENT, VIADUCT_TOPOLOGY='mesh:2x2')
        done = run('vi_info', '--list', env=env)
        fabric_tool(env, 'down')
        self.assertEqual((done.returncode, done.stdout), (0, 'host0\n'), done.stderr)


# ---- what is shown ----

RING = """\
+--<host0>-----[host1]
|                 |
+--[host3]-----[host2]
<> this host
"""
RING_DOWN = """\
+--<host0>--x--[host1]
|                 |
+--[host3]-----[host2]
<> this host
x  a link that is down
"""


def picture(text):
    return text.partition('\n\n')[2]


class Ring(unittest.TestCase):
    """A ring of four: pictures and answers follow a link that is taken down and brought up again."""

    def setUp(self):
        self.net = Net('--hosts', '4', '--relay-threads', '2')
        self.addCleanup(self.net.vi_fabric, 'down')

    def check_json(self, down=()):
        topology = self.net.info('--topology')['topology']
        self.assertEqual([(h['name'], h['hops']) for h in topology['hosts']],
                         [('host0', 0), ('host1', 3 if down else 1), ('host2', 2), ('host3', 1)])
        links = {tuple((e['host'], e['port']) for e in link['ends']): link['up']
                 for link in topology['links']}
        self.assertEqual(links, {((f'host{i}', 'right'), (f'host{(i + 1) % 4}', 'left')):
                                 i not in down for i in range(4)})
        self.assertEqual(topology['relay']['threads'], 2)

    def test_picture_and_paths_there_and_back(self):
        net = self.net
        self.assertEqual(picture(net.vi_info('--topology')), RING)
        self.assertIn('transfer_threads: 2, waiting adaptive, on any processor\n',
                      net.vi_info('--topology'))
        self.check_json()
        self.check_two_paths()
        net.vi_fabric('link', 'host0', 'right', 'down')
        net.until(lambda: picture(net.vi_info('--topology')) == RING_DOWN, 'the x')
        self.assertIn('down: host0 right -> left host1\n', net.vi_info('--topology'))
        self.check_json(down=[0])
        self.check_the_slow_path()
        # Hosts that are not at the link learn of it too.
        net.until(lambda: net.info('--topology', VIADUCT_HOST='host3')['topology']['hosts'][2]['hops']
                  == 1 and net.explain('host1', VIADUCT_HOST='host0')['hops'] == 3, 'the news')
        net.vi_fabric('link', 'host0', 'right', 'up')
        net.until(lambda: picture(net.vi_info('--topology')) == RING, 'the link')
        self.check_json()
        self.check_two_paths()

    def check_two_paths(self):
        route = self.net.explain('host2')
        self.assertEqual((route['hops'], route['path'], route['way_count']), (2, 'relayed', 2))
        paths = [[(h['host'], h['out'], h['in'], h['to']) for h in path] for path in route['ways']]
        self.assertEqual(paths, [[('host0', 'left', 'right', 'host3'), ('host3', 'left', 'right', 'host2')],
                                [('host0', 'right', 'left', 'host1'), ('host1', 'right', 'left', 'host2')]])
        self.assertEqual((route['outlives_link_loss'], route['alone']), ('yes', []))
        text = self.net.vi_info('--explain', 'host2')
        self.assertIn('  way: host0 right -> left host1 right -> left host2\n', text)
        self.assertIn('  outlives_link_loss: yes, ', text)
        self.assertEqual(text.count('chosen: one of equally short paths'), 2)

    def check_the_slow_path(self):
        route = self.net.explain('host1')
        self.assertEqual((route['hops'], route['way_count'], route['outlives_link_loss']),
                         (3, 1, 'not now'))
        self.assertEqual([h['to'] for h in route['ways'][0]], ['host3', 'host2', 'host1'])
        self.assertEqual(len(route['alone']), 3)
        text = self.net.vi_info('--explain', 'host1')
        self.assertIn('not now, nothing stands in for host0 left -> right host3, ', text)
        self.assertIn('port: right rejected: leads to host1; its link is down\n', text)

    def test_no_path(self):
        net = self.net
        net.vi_fabric('link', 'host0', 'right', 'down')
        net.vi_fabric('link', 'host2', 'right', 'down')
        net.until(lambda: not net.explain('host2')['reachable'], 'no path')
        route = net.explain('host2')
        self.assertEqual((route['ways'], route['way_count']), ([], 0))
        self.assertEqual(route['reason'],
                         'host 2 cannot be reached while links 0-1 and 2-3 are down')
        self.assertIn('  reason: host 2 cannot be reached', net.vi_info('--explain', 'host2'))
        self.assertTrue(net.explain('host3')['reachable'])

    def test_wrong_port(self):
        said = self.net.vi_fabric('link', '0', 'up', 'down', code=1)
        self.assertIn('host 0 has no port up with a link; it has left, right', said)

    def test_traffic_goes_on_over_another_path(self):
        """Slots pass one relay and, when its link is down, the other; the program notices nothing."""
        net = self.net
        with subprocess.Popen([os.environ['VI_LAT'], '-q', '--hosts', 'host0,host2', '--verify',
                               '--sizes', '4', '--duration', '1000'], env=net.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as lat:
            try:
                relays = {'right': 1, 'left': 3}
                slots = lambda port: net.relay(relays[port])['slots']
                net.until(lambda: any(slots(port) > 1000 for port in relays), 'traffic')
                # The other relay may have a connection by which the two ends agree on what to do.
                used, other = sorted(relays, key=slots, reverse=True)
                before = slots(other)
                net.vi_fabric('link', 'host0', used, 'down')
                net.until(lambda: slots(other) > before + 1000, 'traffic over the other relay')
                other = relays[other]
                self.assertIsNone(lat.poll())
                self.assertIn(f'relay threads 2 circuits {net.relay(other)["circuits"]} ',
                              fabric_tool(net.env, 'status').stdout)
            finally:
                lat.kill()
                _, out, err = finish(lat)
        self.assertEqual(err, '', out)


class Shapes(unittest.TestCase):
    """Fabrics of each shape come up and carry verified messages over their longest path."""

    def check(self, args, hosts, far, hops, **env):
        with Net(*args, **env) as net:
            topology = net.info('--topology')['topology']
            self.assertEqual(len(topology['hosts']), hosts)
            self.assertEqual(max(h['hops'] for h in topology['hosts']), hops)
            self.assertEqual(topology['hosts'][far]['hops'], hops)
            self.assertTrue(all(link['up'] for link in topology['links']))
            self.assertIn(f'{hosts} hosts', net.said)
            for op in ('send', 'read'):
                done = run('vi_lat', '-q', '--hosts', f'host0,host{far}', '--op', op, '--verify',
                           '--sizes', '1,5000', '--iters', '20', '--format', 'json', env=net.env)
                self.assertEqual(done.returncode, 0, done.stderr)
                place = json.loads(done.stdout)['placement']
                self.assertEqual((place['path'], place['hops']), ('relayed', hops))
            return topology

    def test_mesh(self):
        self.check(['--topology', 'mesh:3x3'], 9, 8, 4)

    def test_torus(self):
        self.check(['--topology', 'torus:4x3'], 12, 6, 3)

    def test_chain(self):
        self.check(['--topology', 'chain', '--hosts', '5'], 5, 4, 4)

    def test_graph_from_a_file(self):
        with tempfile.NamedTemporaryFile('w', suffix='.links') as file:
            file.write('# a triangle with a tail\n0-1\n1-2\n2-0\n\n 2-3 # the tail\n3-4\n')
            file.flush()
            topology = self.check(['--topology', f'file:{file.name}'], 5, 4, 3)
        self.assertEqual(topology['spec'], 'graph:0-1,0-2,1-2,2-3,3-4')
        self.assertEqual({e['port'] for link in topology['links'] for e in link['ends']
                          if e['host'] == 'host2'}, {'to0', 'to1', 'to3'})
        self.assertEqual([link['bridge'] for link in topology['links']],
                         [False, False, False, True, True])

    def test_a_long_spec_comes_whole(self):
        links = [(h, (h + k) % 64) for h in range(64) for k in (1, 2, 3)]
        spec = 'graph:' + ','.join(f'{min(link)}-{max(link)}' for link in sorted(
            links, key=lambda link: (min(link), max(link))))
        self.assertGreater(len(spec), 800)
        fabric = Fabric()
        try:
            # One host alone knows the complete topology.
            fabric.agents[0].kill()
            fabric.agents[0].wait()
            fabric.agents[0] = fabric.start(0, 64, ['--topology', spec])
            out = fabric.run('vi_info', '--topology', '--json')
            topology = json.loads(out.stdout)['topology']
        finally:
            fabric.close()
        self.assertEqual(topology['spec'], spec)
        self.assertEqual(len(topology['links']), 192)
        self.assertEqual([h['heard'] for h in topology['hosts']], [True] + [False] * 63)

    def test_ports_of_a_graph_are_pulled_by_name(self):
        with Net('--topology', 'graph:0-1,0-1,1-2') as net:
            self.assertEqual(net.explain('host2')['outlives_link_loss'], 'no')
            self.assertEqual([e['port'] for e in net.explain('host2')['alone'][0]['ends']],
                             ['to2', 'to1'])
            self.assertEqual(net.explain('host1')['way_count'], 2)
            net.vi_fabric('link', 'host0', 'to1.1', 'down')
            net.until(lambda: net.explain('host1')['way_count'] == 1, 'one link of two')
            self.assertRegex(net.vi_info('--topology'), r'(?m)^<host0> to1 host1, to1\.1 host1 x$')
            net.vi_fabric('link', 'host1', 'to2', 'down')
            net.until(lambda: not net.explain('host2')['reachable'], 'no path')

    def test_more_ways_than_are_shown(self):
        with Net('--topology', 'mesh:4x4') as net:
            route = net.explain('host15')
            self.assertEqual((route['way_count'], len(route['ways'])), (20, 8))
            self.assertEqual(len({tuple(h['host'] for h in path) for path in route['ways']}), 8)
            self.assertIn('  more_ways: 12 as short\n', net.vi_info('--explain', 'host15'))


class Profiles(unittest.TestCase):
    """Links of one fabric imitate different adapters."""
    MIXED = '0-1=pex8749,1.right=cpu-ntb,2.left=pxh810,2-0=pex8733'
    SHOWN = {(0, 'left'): 'pex8733', (0, 'right'): 'pex8749', (1, 'left'): 'pex8749',
             (1, 'right'): 'cpu-ntb', (2, 'left'): 'pxh810', (2, 'right'): 'pex8733'}

    def shown(self, net):
        status = json.loads(net.vi_fabric('status', '--json'))
        ports = {(host['id'], port['name']): port for host in status['hosts'] for port in host['ports']}
        self.assertEqual({p['dilation'] for p in ports.values() if 'profile' in p}, {2})
        return {end: port['profile'] for end, port in ports.items() if 'profile' in port}

    def check(self, *args, **env):
        with Net('--hosts', '3', *args, **env) as net:
            self.assertEqual(self.shown(net), self.SHOWN)
            self.assertRegex(net.vi_fabric('status'), r'port right .* profile cpu-ntb:2\n')
            self.assertIn('profiles: left pex8733:2, right pex8749:2\n', net.vi_info())
            net.vi_fabric('stop', 'host1')
            net.vi_fabric('start', 'host1')
            self.assertEqual(self.shown(net), self.SHOWN)
            done = run('vi_lat', '-q', '--hosts', 'host1,host2', '--verify', '--sizes', '1,5000',
                       '--iters', '20', '--format', 'json', env=net.env)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_by_options(self):
        self.check('--port', 'emu+model:gen3x8:2', '--profiles', self.MIXED)

    def test_by_variables(self):
        self.check(VIADUCT_PORT='emu+model:gen3x8:2', VIADUCT_PROFILES=self.MIXED)

    def test_a_link_that_is_not_named_has_the_profile_of_the_kind(self):
        with Net('--hosts', '2', '--port', 'emu+model:pxh810:2') as net:
            self.assertEqual(set(self.shown(net).values()), {'pxh810'})

    def test_ports_without_a_model_have_none(self):
        with Net('--hosts', '2') as net:
            self.assertNotIn('profile', net.vi_fabric('status'))
            self.assertNotIn('profile', net.vi_info())

    def test_a_fabric_of_one_host_that_a_program_starts_has_no_links(self):
        done = run('vi_info', env=environment(f'topo{os.getpid()}-{next(numbers)}', VIADUCT_AGENT=AGENT,
                                              VIADUCT_PROFILES='0-1=pex8733'))
        self.assertEqual(done.returncode, 0, done.stderr)


class Threads(unittest.TestCase):
    def test_as_many_as_were_asked_for_where_they_were_asked_for(self):
        """The relay of a chain of three has the threads of its option, with their names, on their processor."""
        fabric = Fabric(3, '--topology', 'chain', '--relay-threads', '3', '--relay-cpus', str(CPU),
                        '--relay-wait', 'block')
        try:
            fabric.until(fabric.linked, 'links')
            out = fabric.run('vi_info', '--topology', '--host', 'host1').stdout
            self.assertIn(f'transfer_threads: 3, waiting block, on processors {CPU}\n', out)
            self.assertIn('transfer_threads: 0\n', fabric.run('vi_info', '--topology').stdout)
            done = fabric.run('vi_lat', '-q', '--hosts', 'host0,host2', '--vis', '24', '--sizes', '4',
                              '--iters', '20', '--verify')
            self.assertEqual(done.returncode, 0, done.stderr)
            threads = {}
            for task in Path(f'/proc/{fabric.agents[1].pid}/task').iterdir():
                cpus = re.search(r'(?m)^Cpus_allowed_list:\s*(.*)$', (task / 'status').read_text())
                threads[(task / 'comm').read_text().strip()] = cpus[1]
            relays = {k: v for k, v in threads.items() if k.startswith('vi-relay')}
            self.assertLessEqual(set(relays), {'vi-relay0', 'vi-relay1', 'vi-relay2'})
            self.assertGreater(len(relays), 1)
            self.assertEqual(set(relays.values()), {str(CPU)})
        finally:
            fabric.close()

    def test_by_rules(self):
        """VIADUCT_AFFINITY places the threads, unless the option does, and vi_info --placement says so."""
        for options, rule, cpus in (((), f'relay={CPU}', f'{CPU}'), (('--relay-cpus', str(CPU)), 'relay=8190', f'{CPU}'),
                                    ((), 'relay=8190', ''), ((), 'relay=shared-cache', '')):
            with self.subTest(rule=rule, options=options), \
                 Net('--topology', 'chain', '--hosts', '3', '--relay-threads', '2', *options, VIADUCT_AFFINITY=rule) as net:
                out = json.loads(net.vi_info('--placement', '--json', '--host', 'host1'))['placement']
                relays = [t for t in out['threads'] if t['thread'].startswith('vi-relay')]
                self.assertEqual([t['thread'] for t in relays], ['vi-relay0', 'vi-relay1'])
                self.assertEqual([t['cpus'] for t in relays], [cpus] * 2)
                self.assertEqual([t['as_asked'] for t in relays], [cpus != ''] * 2)
                if cpus:
                    self.assertIn('has one processor with relay 1', relays[0]['warning'])
                else:
                    self.assertIn(f'not placed; asked {rule[6:]}: ', relays[0]['text'])

    def test_strict_rules_that_cannot_be_had(self):
        env = environment(f'topo{os.getpid()}-{next(numbers)}', VIADUCT_AFFINITY='strict;relay=8190')
        done = subprocess.run([AGENT, '--host-id', '1', '--hosts', '3', '--fabric', env['VIADUCT_FABRIC']], env=env,
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('placement of vi-relay0: not placed; asked 8190: ', done.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
