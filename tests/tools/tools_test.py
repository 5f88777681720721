#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests of the tools as programs: their output, their exit codes, their behaviour when things break.

  tools_test.py [CLASS[.METHOD]...]

The programs are named by the variables VI_INFO VI_STAT VI_PORT VI_LAT VI_BW VI_RATE VI_SCALE
VI_STAGES VI_FABRIC VIADUCTD.  Every test runs a fabric of its own name, with agents that are children of the test, so tests run side by side.
"""
import csv
import io
import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

HERE = Path(__file__).resolve().parent
TOOLS = {name: os.environ.get(name.upper(), name)
         for name in ('vi_info', 'vi_stat', 'vi_port', 'vi_lat', 'vi_bw', 'vi_rate', 'vi_scale',
                      'vi_stages')}
PERF = ('vi_lat', 'vi_bw', 'vi_rate')
AGENT = os.environ.get('VIADUCTD', 'viaductd')
VI_FABRIC = os.environ.get('VI_FABRIC', 'vi_fabric')
PATIENCE = limit(60)
fabric_numbers = itertools.count()


def environment(fabric, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith('VIADUCT')}
    env.update(VIADUCT_FABRIC=fabric, VIADUCT_AGENT='none')
    env.update(more)
    return env


def run(tool, *args, env=None, timeout=PATIENCE):
    return subprocess.run([TOOLS[tool], *args], env=env, timeout=timeout, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)


class Fabric:
    """A fabric of `hosts` hosts, one agent process each."""

    def __init__(self, hosts=1, *args):
        self.name = f'test{os.getpid()}-{next(fabric_numbers)}'
        self.env = environment(self.name)
        self.children = []
        self.agents = []
        try:
            for host in range(hosts):
                self.agents.append(self.start(host, hosts, args))
        except BaseException:
            self.close()
            raise

    def start(self, host, hosts, args):
        reader, writer = os.pipe()
        agent = subprocess.Popen([AGENT, '--fabric', self.name, '--host-id', str(host), '--hosts',
                                  str(hosts), '--ready-fd', str(writer), *args],
                                 env=self.env, pass_fds=[writer], stdin=subprocess.DEVNULL)
        os.close(writer)
        ready, _, _ = select.select([reader], [], [], PATIENCE)
        text = os.read(reader, 1000).decode() if ready else ''
        os.close(reader)
        if not text:
            agent.kill()
            agent.wait()
            raise RuntimeError(f'agent {host} did not come up')
        return agent

    def run(self, tool, *args, timeout=PATIENCE, **env):
        return run(tool, *args, env={**self.env, **env}, timeout=timeout)

    def popen(self, tool, *args, **env):
        child = subprocess.Popen([TOOLS[tool], *args], env={**self.env, **env}, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.children.append(child)
        return child

    def until(self, check, what):
        """Waits until check() is true; each check is a run of a tool."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if check():
                return
        raise AssertionError(f'{what} did not happen in {PATIENCE} s')

    def linked(self):
        """Is every link up, seen from every host?"""
        out = self.run('vi_info', '--topology', '--json')
        hosts = json.loads(out.stdout)['topology']['hosts'] if out.returncode == 0 else []
        return hosts and all(h['answers'] and all(p['link'] == 'up' for p in h['ports'])
                             for h in hosts)

    def connected(self, n):
        """Do n processes have their connections?"""
        out = self.run('vi_info', '--json')
        clients = json.loads(out.stdout)['clients'] if out.returncode == 0 else []
        return sum(c['conns'] > 1 for c in clients) >= n

    def close(self):
        for child in self.children:
            if child.returncode is None:
                child.kill()
                child.communicate()
        for agent in self.agents:
            agent.kill()
        for agent in self.agents:
            agent.wait()


class FabricCase(unittest.TestCase):
    hosts = 1
    agent_args = ()

    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric(cls.hosts, *cls.agent_args)
        try:
            if cls.hosts > 1:
                cls.fabric.until(cls.fabric.linked, 'links')
        except BaseException:
            cls.fabric.close()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.fabric.close()

    def ok(self, tool, *args, **kw):
        out = self.fabric.run(tool, *args, **kw)
        self.assertEqual(out.returncode, 0, f'{tool} {args}: {out.stderr}')
        return out

    def fails(self, tool, *args, code=1, **kw):
        """Checks the exit code and that exactly one line says why; returns that line."""
        out = self.fabric.run(tool, *args, **kw)
        self.assertEqual(out.returncode, code, f'{tool} {args}: {out.stdout} {out.stderr}')
        self.assertEqual(out.stderr.count('\n'), 1, out.stderr)
        return out.stderr


def finish(process):
    """(exit code, stdout, stderr); a process that hangs is killed and fails the test."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err


# ---- without a fabric ----

BAD_VALUES = {
    '--op': ['', 'sen', 'SEND', 'send,write'],
    '--wait': ['', 'spin', '1'],
    '--level': ['', 'reliable', '2'],
    '--sizes': ['', '0x10', '8..4', '1..', ',', '4,', '2G', '-1', 'k'],
    '--iters': ['', '0', '-1', '1.5', '10k', '99999999999999999999'],
    '--duration': ['', '0', '-1', 'inf', 'nan', '1s'],
    '--warmup': ['', '-1', 'x'],
    '--vis': ['', '0', '1025', 'x'],
    '--segments': ['', '0', '253', 'x'],
    '--buffers': ['', '0', '65', 'x'],
    '--percentiles': ['', '101', '50,', 'median'],
    '--format': ['', 'xml', 'OSU'],
    '--expect': ['', 'p99_us', 'p99_us=3', 'nonsense<3', 'p99_us<x', 'p101_us<3'],
    '--pin': ['', '-1', 'a', '0,', '0,1,2', '99999'],
    '--timeout': ['', '0', '-3', 'x', '1e9'],
    '--name': ['', 'n' * 49],
    '--connect': ['', 'h' * 64],
    '--host': [''],
    '--hosts': ['', 'a', 'a,', ',b', 'a,b,c'],
    '--out': [''],
}
BAD_LATENCY = {
    '--busy': ['', '0', '1025', 'x'],
    '--batch': ['', '0', '100001', 'x'],
}
BAD_WINDOW = ['', '0', '4097', 'x']
BAD_TOGETHER = [
    ['--server', '--connect', 'h'], ['--server', '--hosts', 'a,b'], ['--host', 'a'],
    ['--iters', '1', '--duration', '1'], ['--spin', '--wait', 'block'],
    ['--op', 'read', '--level', 'unreliable'], ['--buffers', '2'],
    ['--buffers', '2', '--op', 'write', '--sizes', '8,1G'],
    ['--buffers', '2', '--op', 'write', '--verify'], ['--buffers', '2', '--op', 'write', '--vis', '2'],
]
BAD_LATENCY_TOGETHER = [
    ['--busy', '2'], ['--busy', '4', '--vis', '3'], ['--post-time', '--batch', '2'],
    ['--post-time', '--op', 'write'],
]


class Usage(unittest.TestCase):
    env = environment('unused')

    def usage_error(self, tool, *args):
        out = run(tool, *args, env=self.env)
        self.assertEqual(out.returncode, 2, f'{tool} {args}: {out.stdout} {out.stderr}')
        self.assertEqual(out.stdout, '')
        self.assertEqual(out.stderr.count('\n'), 1, out.stderr)
        self.assertTrue(out.stderr.startswith(f'{tool}: '), out.stderr)
        return out.stderr

    def test_help_is_golden(self):
        for tool in TOOLS:
            for flag in ('--help', '-h'):
                out = run(tool, flag, env=self.env)
                golden = (HERE / 'golden' / f'{tool}.help').read_text().partition('\n')[2]
                self.assertEqual((out.returncode, out.stderr), (0, ''))
                self.assertEqual(out.stdout, golden, f'{tool} {flag}')

    def test_help_of_the_agent_and_of_vi_fabric_is_golden(self):
        for name, program in (('viaductd', AGENT), ('vi_fabric', VI_FABRIC)):
            out = subprocess.run([program, '--help'], env=self.env, timeout=PATIENCE, text=True,
                                 capture_output=True, check=False)
            golden = (HERE / 'golden' / f'{name}.help').read_text().partition('\n')[2]
            self.assertEqual((out.returncode, out.stderr), (0, ''))
            self.assertEqual(out.stdout, golden, name)

    def test_version(self):
        for tool in TOOLS:
            for flag in ('--version', '-V'):
                out = run(tool, flag, env=self.env)
                self.assertEqual((out.returncode, out.stderr), (0, ''))
                self.assertRegex(out.stdout, rf'\A{tool} \(Viaduct\) \d+\.\d+\.\d+\n\Z')

    def test_unknown_options_and_arguments(self):
        for tool in TOOLS:
            self.assertIn('--nonsense', self.usage_error(tool, '--nonsense'))
            self.assertIn('-z', self.usage_error(tool, '-z'))
            self.assertIn('stray', self.usage_error(tool, 'stray'))
            self.usage_error(tool, '--help=x')

    def test_every_value_is_checked(self):
        for tool in PERF:
            values = dict(BAD_VALUES)
            if tool == 'vi_lat':
                values.update(BAD_LATENCY)
            else:
                values['--window'] = BAD_WINDOW
                values['--expect'] = [e.replace('p99', 'round_p99') for e in BAD_VALUES['--expect']]
            for option, bad in values.items():
                for value in bad:
                    self.assertIn(option, self.usage_error(tool, option, value))

    def test_an_argument_is_required(self):
        for tool in PERF:
            for option in BAD_VALUES:
                self.assertIn(option, self.usage_error(tool, option))

    def test_options_of_other_tools(self):
        for option in ('--bidir', '--window=4'):
            self.usage_error('vi_lat', option)
        for option in ('--busy=1', '--batch=257', '--post-time'):
            self.usage_error('vi_bw', option)

    def test_what_does_not_go_together(self):
        for tool in PERF:
            for args in BAD_TOGETHER:
                self.usage_error(tool, *args)
        for args in BAD_LATENCY_TOGETHER:
            self.usage_error('vi_lat', *args)
        self.usage_error('vi_lat', '--op', 'write', '--wait', 'block')
        self.usage_error('vi_rate', '--batch', '2', '--wait', 'block')
        self.usage_error('vi_lat', '--op', 'write', '--sizes', '0..4')
        self.usage_error('vi_lat', '--sizes', '4', '--expect', 'avg_us@8<1')

    def test_info(self):
        for args in (['-l', '-v'], ['--format=json', '-e'], ['--format=sh'], ['--format'],
                     ['--explain='], ['--explain', 'a', 'b'], ['--host'],
                     ['-e', '--format=sh', '--json']):
            self.usage_error('vi_info', *args)

    def test_stat(self):
        for args in (['-i', 'x'], ['-i', '0'], ['-i', 'nan'], ['-i'], ['-c', '0'], ['-c', '-1'],
                     ['-c', '2'], ['-c', '1x', '-i', '1'], ['--host']):
            self.usage_error('vi_stat', *args)

    def test_scale(self):
        for args in (['-t', 'vi,x'], ['-t', ''], ['-t'], ['--vis', '3'], ['--vis', '0'],
                     ['--vis', '4098'], ['--processes', '2'], ['--processes', '5'],
                     ['--processes', '66'], ['--regions', '0'], ['--regions', '1k'],
                     ['-s', '0'], ['-s', '4k,'], ['-D', '0'], ['-D', 'nan'], ['--agent', '0'],
                     ['--agent', 'x'], ['--timeout', '-1']):
            self.usage_error('vi_scale', *args)

    def test_stages(self):
        for args in (['--size', '0'], ['-s', '2M'], ['-s', 'x'], ['-n', '199'], ['-n', '1k'],
                     ['--hosts', 'a'], ['--hosts', 'a,'], ['--hosts', 'a,b,c'], ['--pin', '0'],
                     ['--pin', 'a,b'], ['--clock', 'sun'], ['--timeout', '0'], ['-t', 'x'],
                     ['--size']):
            self.usage_error('vi_stages', *args)

    def test_out_is_tried_first(self):
        out = run('vi_lat', '--out', '/nonexistent/file', '-q', env=self.env)
        self.assertEqual(out.returncode, 1)
        self.assertIn('/nonexistent/file', out.stderr)
        self.assertEqual(out.stderr.count('\n'), 1, out.stderr)


class Up(unittest.TestCase):
    """vi_fabric up refuses at once options that no agent would take, and names them."""

    def refused(self, code, texts, *args, **env):
        name = f'up{os.getpid()}'
        out = subprocess.run([VI_FABRIC, 'up', *args], text=True, capture_output=True, check=False,
                             env=environment(name, **{'VIADUCT_AGENT': AGENT, **env}),
                             stdin=subprocess.DEVNULL, timeout=PATIENCE)
        self.assertEqual(out.returncode, code, f'{args} {env}: {out.stdout} {out.stderr}')
        self.assertEqual(out.stderr.count('\n'), 1, out.stderr)
        self.assertTrue(out.stderr.startswith('vi_fabric: '), out.stderr)
        for text in texts:
            self.assertIn(text, out.stderr)
        self.assertIn('is not up', subprocess.run(
            [VI_FABRIC, 'status'], env=environment(name), text=True, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False).stderr)

    def test_options(self):
        for args, texts in (
                (['--names', 'a,a'], ['--names a,a', 'a is given twice']),
                (['--names', 'a,b', '--hosts', '3'], ['2 names for 3 hosts']),
                (['--names', 'a/b,c'], ["--names 'a/b,c'", 'A-Za-z0-9']),
                (['--port', 'foo'], ['--port foo', 'emu+strict']),
                (['--port', 'emu+'], ['--port emu+', 'emu+strict']),
                (['--port', 'emu+fault+zz'], ['--port emu+fault+zz']),
                (['--alias', 'x'], ['--alias x', 'NAME=HOST']),
                (['--alias', 'x=nobody'], ['--alias x=nobody', '2 hosts']),
                (['--alias', 'a b=host0'], ['--alias a b=host0', 'NAME']),
                (['--device-alias', '=host0'], ['--device-alias =host0', 'NAME']),
                (['--group', 'no such group'], ["--group 'no such group'", 'number of a group']),
                (['--window', '255k'], ['256k', "'255k'"]),
                (['--window', '2048T'], ['256k', "'2048T'"])):
            with self.subTest(args=args):
                self.refused(2, texts, *args)

    def test_variables(self):
        self.refused(1, ['VIADUCT_PORT is strict', 'emu+strict', 'unset'], VIADUCT_PORT='strict')
        self.refused(1, ['VIADUCT_FAULT is zz', 'drop_db=P'], VIADUCT_PORT='emu+fault',
                     VIADUCT_FAULT='zz')

    def test_no_agent_program(self):
        self.refused(1, ['viaductd', 'ended at once'], VIADUCT_AGENT='/bin/false')

    def test_agent_program_that_fails_after_its_check(self):
        """The message must not blame the options, which the agent took."""
        with tempfile.TemporaryDirectory() as scratch:
            for end, text in (('exit 3', 'took its options, but ended with status 3'),
                              ('kill -KILL $$', 'was ended by a signal, Killed')):
                agent = Path(scratch, 'agent')
                agent.write_text(f'#!/bin/sh\n"{AGENT}" "$@"\n{end}\n', encoding='utf-8')
                agent.chmod(0o755)
                self.refused(1, [text], VIADUCT_AGENT=str(agent))

    def test_the_least_window_is_taken(self):
        env = environment(f'up{os.getpid()}', VIADUCT_AGENT=AGENT)
        for args in (['up', '--hosts', '1', '--window', '256k', '--port', 'emu+fault+strict'], ['down']):
            out = subprocess.run([VI_FABRIC, *args], env=env, text=True, capture_output=True,
                                 stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
            self.assertEqual(out.returncode, 0, out.stderr)


class NoAgent(unittest.TestCase):
    """No agent runs and none may be started."""

    def test_all_say_so(self):
        env = environment(f'nobody{os.getpid()}')
        for tool, args in (('vi_info', []), ('vi_stat', []), ('vi_lat', ['-q']),
                           ('vi_bw', ['-q', '--server']), ('vi_rate', ['-q', '--connect', 'h'])):
            out = run(tool, *args, env=env)
            self.assertEqual(out.returncode, 1, f'{tool}: {out.stdout}')
            self.assertEqual(out.stdout, '')
            self.assertIn(env['VIADUCT_FABRIC'], out.stderr)


class Environment(unittest.TestCase):
    def test_every_variable_with_its_origin(self):
        env = environment('x1', VIADUCT_SLOTS='64')
        out = run('vi_info', '--env', env=env)
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        blocks = dict(re.findall(r'^(VIADUCT_\w+): .*\n((?:  .*\n)+)', out.stdout, re.M))
        self.assertGreater(len(blocks), 10)
        for name, text in blocks.items():
            keys = [line.split(':')[0].strip() for line in text.splitlines()]
            for key in ('origin', 'default', 'type', 'help'):
                self.assertIn(key, keys, name)
            self.assertIn('origin: ' + ('environment' if name in env else 'default'), text, name)
        self.assertIn('VIADUCT_SLOTS: 64\n', out.stdout)

    def test_json(self):
        out = run('vi_info', '-e', '--json', env=environment('x1'))
        doc = json.loads(out.stdout)
        self.assertEqual((doc['schema'], doc['schema_version']), ('viaduct.info', 1))
        for entry in doc['environment']:
            for key in ('name', 'type', 'default', 'value', 'origin', 'help'):
                self.assertIsInstance(entry[key], str)

    def test_shell_form_can_be_read_back(self):
        env = environment('x1', VIADUCT_DEVICE="it's=host0", VIADUCT_SLOTS='64',
                          VIADUCT_LOG_FILE=os.path.join(tempfile.gettempdir(), 'a b$c'))
        first = run('vi_info', '-e', '--format=sh', env=env)
        self.assertEqual((first.returncode, first.stderr), (0, ''))
        clean = {k: v for k, v in env.items() if not k.startswith('VIADUCT')}
        script = first.stdout + f'exec "{TOOLS["vi_info"]}" -e --format=sh'
        again = subprocess.run(['sh', '-c', script], env=clean, text=True, capture_output=True,
                               timeout=PATIENCE, check=False)
        self.assertEqual(again.stdout, first.stdout)

    def test_a_refused_value_is_told(self):
        out = run('vi_info', '-e', env=environment('x1', VIADUCT_SLOTS='many'))
        self.assertEqual(out.returncode, 1)
        self.assertIn('VIADUCT_SLOTS', out.stderr)
        self.assertIn('  refused: many\n', out.stdout)


# ---- on one host ----

PERF_KEYS = {'schema': str, 'schema_version': int, 'tool': str, 'version': str,
             'command_line': list, 'time_utc': str, 'test': dict, 'placement': dict,
             'environment': dict, 'results': list, 'expectations': dict}
TEST_KEYS = {'op': str, 'wait': str, 'level': str, 'value_meaning': str, 'cq': bool, 'vis': int,
             'busy_vis': int, 'batch_round_trips': int, 'batch_descriptors': int, 'post_time': bool,
             'segments': int, 'window_messages': int, 'bidir': bool, 'verify': bool,
             'window_memory': bool, 'adopted_memory': bool, 'buffers': int, 'spin': bool, 'timeout_s': float}
ENV_KEYS = {'cpu_model': str, 'architecture': str, 'kernel': str, 'governor': str,
            'cpus_online': int, 'cpus_allowed': int, 'virtual_machine': bool,
            'load_average_1min': float, 'cpu_quota_cpus': float, 'warnings': list}
ROW_KEYS = {'size_bytes': int, 'iterations': int, 'messages': int, 'bytes': int, 'samples': int,
            'elapsed_s': float, 'verified': bool}


class PerfCase(FabricCase):
    def keys(self, doc, keys):
        for key, kind in keys.items():
            self.assertIsInstance(doc.get(key), kind, f'{key} of {list(doc)}')

    def document(self, text, tool):
        doc = json.loads(text)
        self.keys(doc, PERF_KEYS)
        self.keys(doc['test'], TEST_KEYS)
        self.keys(doc['environment'], ENV_KEYS)
        self.assertEqual((doc['schema'], doc['schema_version'], doc['tool']),
                         ('viaduct.perf', 1, tool))
        for end in ('client', 'server'):
            self.keys(doc['placement'][end], {'host': str, 'pid': int})
            self.assertIn('pinned_cpu', doc['placement'][end])
        for row in doc['results']:
            self.keys(row, ROW_KEYS)
        return doc

    def measure(self, tool, *args, **kw):
        """One run in JSON, on few iterations; returns the document."""
        out = self.ok(tool, '-q', '--format', 'json', '--iters', '20', '--warmup', '3', *args, **kw)
        self.assertEqual(out.stderr, '')
        return self.document(out.stdout, tool)


class Latency(PerfCase):
    def check_row(self, row, size):
        self.assertEqual(row['size_bytes'], size)
        self.assertEqual(row['samples'], 20)
        self.assertGreater(row['min_us'], 0)
        for low, high in (('min_us', 'p50_us'), ('p50_us', 'p90_us'), ('p90_us', 'p99_us'),
                          ('p99_us', 'max_us'), ('min_us', 'avg_us'), ('avg_us', 'max_us')):
            self.assertLessEqual(row[low], row[high])

    def test_every_operation_wait_level_and_queue(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for wait in ('poll', 'block'):
                for level in ('unreliable', 'delivery', 'reception'):
                    if (op, wait) == ('write', 'block') or (op, level) == ('read', 'unreliable'):
                        continue
                    for cq in ([], ['--cq']):
                        with self.subTest(op=op, wait=wait, level=level, cq=cq):
                            doc = self.measure('vi_lat', '--op', op, '--wait', wait, '--level', level,
                                               '--sizes', '1,64,5000', '--verify', *cq)
                            for row, size in zip(doc['results'], (1, 64, 5000), strict=True):
                                self.check_row(row, size)

    def test_meaning_is_said(self):
        self.assertIn('half of the round trip',
                      self.measure('vi_lat', '--sizes', '4')['test']['value_meaning'])
        self.assertIn('whole',
                      self.measure('vi_lat', '--sizes', '4', '--op', 'read')['test']['value_meaning'])

    def test_empty_messages(self):
        for op in ('send', 'write-imm', 'read'):
            doc = self.measure('vi_lat', '--op', op, '--sizes', '0', '--verify')
            self.assertEqual(doc['results'][0]['bytes'], 0)

    def test_many_vis(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for cq in ([], ['--cq']):
                self.measure('vi_lat', '--op', op, '--vis', '7', '--sizes', '1,333', '--verify', *cq)

    def test_batches(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for cq in ([], ['--cq']):
                doc = self.measure('vi_lat', '--op', op, '--batch', '7', '--vis', '3', '--sizes',
                                   '1,333', '--verify', *cq)
                for row in doc['results']:
                    # 20 round trips in whole samples of seven
                    self.assertEqual((row['samples'], row['iterations']), (3, 21))
                    self.assertEqual(row['messages'], 21 if op == 'read' else 42)

    def test_many_descriptors_in_a_call(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for batch in ('2', '40', '256'):
                self.measure('vi_rate', '--op', op, '--batch', batch, '--sizes', '4,333',
                             '--verify')
        for cq in ([], ['--cq']):
            self.measure('vi_bw', '--batch', '5', '--vis', '3', '--bidir', '--sizes', '1,9999',
                         '--verify', *cq)

    def test_many_completions_of_a_cq_in_a_call(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for vis in ('1', '7'):
                for more in ([], ['--verify']):
                    self.measure('vi_rate', '--op', op, '--cq', '--vis', vis, '--batch', '8',
                                 '--iters', '500', '--sizes', '4,333', *more)

    def test_messages_that_are_alike(self):
        """Descriptors of equal messages are prepared once for each size, with and without calls for many."""
        for more in ([], ['--cq'], ['--wait', 'block'], ['--batch', '7'], ['--batch', '7', '--cq']):
            for vis in ('1', '3'):
                for tool, window in (('vi_rate', '64'), ('vi_bw', '1')):
                    doc = self.measure(tool, '--sizes', '4,5000,64', '--vis', vis, '--window',
                                       window, '--iters', '200', '--segments', '2', *more)
                    self.assertEqual([r['size_bytes'] for r in doc['results']], [4, 5000, 64])

    def test_few_busy_vis_of_many(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            doc = self.measure('vi_lat', '--op', op, '--vis', '9', '--busy', '2', '--cq', '--sizes',
                               '1,333', '--verify')
            self.assertEqual((doc['test']['vis'], doc['test']['busy_vis']), (9, 2))

    def test_time_inside_posts(self):
        for more in ([], ['--cq', '--vis', '3'], ['--wait', 'block']):
            doc = self.measure('vi_lat', '--post-time', '--sizes', '4,5000', '--verify', *more)
            self.assertTrue(doc['test']['post_time'])
            self.assertIn('inside VipPostSend', doc['test']['value_meaning'])
            for row in doc['results']:
                self.assertEqual((row['samples'], row['iterations'], row['messages']), (1, 32, 32))

    def test_segments(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for n in ('2', '251'):
                self.measure('vi_lat', '--op', op, '--segments', n, '--sizes', '1,100,9999',
                             '--verify')

    def test_window_memory(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for memory in ('--window-memory', '--adopt'):
                self.measure('vi_lat', '--op', op, memory, '--sizes', '8,70000', '--verify')

    def test_buffers(self):
        """A batch uses each buffer several times; the target sees a flag where it polls."""
        for op in ('write', 'write-imm', 'read'):
            for tool, more in (('vi_lat', ['--batch', '100']), ('vi_bw', ['--iters', '300'])):
                doc = self.measure(tool, '--op', op, '--buffers', '3', '--sizes', '8,5000',
                                   '--window-memory', *more)
                self.assertEqual(doc['test']['buffers'], 3)

    def test_large(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            out = self.ok('vi_lat', '-q', '--op', op, '--sizes', '4194305', '--iters', '2', '--verify')
            self.assertRegex(out.stdout, r'(?m)^4194305 +\d')

    def test_table_is_that_of_osu(self):
        out = self.ok('vi_lat', '-q', '--sizes', '1..8', '--iters', '5')
        lines = out.stdout.splitlines()
        self.assertEqual(lines[0].split(' v')[0], '# Viaduct VI Latency Test')
        self.assertIn('half of the round trip', out.stdout)
        self.assertRegex(out.stdout, r'(?m)^# Size +Latency \(us\)$')
        rows = [line.split() for line in lines if not line.startswith('#')]
        self.assertEqual([r[0] for r in rows], ['1', '2', '4', '8'])
        self.assertTrue(all(len(r) == 2 and float(r[1]) > 0 for r in rows))

    def test_table_with_percentiles(self):
        out = self.ok('vi_lat', '-q', '--sizes', '4', '--iters', '50', '-p', '50,99.9,max')
        self.assertRegex(out.stdout, r'# Size +Latency \(us\) +p50 \(us\) +p99_9 \(us\) +max \(us\)')
        row = [float(x) for x in out.stdout.splitlines()[-1].split()]
        self.assertEqual(len(row), 5)
        self.assertEqual(row[2:], sorted(row[2:]))

    def test_csv(self):
        out = self.ok('vi_lat', '-q', '--sizes', '4,8', '--iters', '5', '--format', 'csv', '-p', '50')
        rows = list(csv.DictReader(io.StringIO(out.stdout)))
        self.assertEqual(list(rows[0]), ['tool', 'op', 'wait', 'level', 'cq', 'vis', 'segments',
                                         'bidir', 'verify', 'size_bytes', 'iterations', 'messages',
                                         'elapsed_s', 'avg_us', 'min_us', 'max_us', 'stddev_us',
                                         'p50_us'])
        self.assertEqual([r['size_bytes'] for r in rows], ['4', '8'])
        self.assertTrue(all(float(r['p50_us']) > 0 and None not in r for r in rows))

    def test_duration(self):
        out = self.ok('vi_lat', '-q', '--sizes', '4', '--duration', '0.2', '--format', 'json')
        row = self.document(out.stdout, 'vi_lat')['results'][0]
        self.assertGreaterEqual(row['elapsed_s'], 0.2)
        self.assertEqual(row['samples'], row['iterations'])

    def test_expectations(self):
        args = ['-q', '--sizes', '4,8', '--iters', '5']
        self.ok('vi_lat', *args, '--expect', 'p99_us<1e9', '--expect', 'avg_us@8>0')
        out = self.fabric.run('vi_lat', *args, '--expect', 'p99.9_us<0.0001')
        self.assertEqual(out.returncode, 1)
        self.assertEqual(out.stderr.count('expected p99.9_us<0.0001'), 2, out.stderr)
        self.assertRegex(out.stdout, r'(?m)^8 ')

    def test_file(self):
        with tempfile.TemporaryDirectory() as where:
            path = Path(where) / 'result.json'
            out = self.ok('vi_lat', '-q', '--sizes', '4', '--iters', '5', '--format', 'json', '--out',
                          str(path))
            self.assertRegex(out.stdout, r'(?m)^4 +\d')
            self.document(path.read_text(), 'vi_lat')
            self.assertEqual([p.name for p in Path(where).iterdir()], ['result.json'])

    def test_a_fifo_stays_one_and_is_written(self):
        with tempfile.TemporaryDirectory() as where:
            path = Path(where) / 'fifo'
            os.mkfifo(path)
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                self.ok('vi_lat', '-q', '--sizes', '4', '--iters', '5', '--format', 'json', '--out',
                        str(path))
                self.document(os.read(reader, 1 << 16).decode(), 'vi_lat')
            finally:
                os.close(reader)
            self.assertTrue(path.is_fifo())
            self.assertEqual(len(list(Path(where).iterdir())), 1)

    def test_a_link_stays_one(self):
        with tempfile.TemporaryDirectory() as where:
            link, real = Path(where) / 'link', Path(where) / 'real'
            link.symlink_to('real')
            for state in ('dangling', 'to a file'):
                with self.subTest(state):
                    self.ok('vi_lat', '-q', '--sizes', '4', '--iters', '5', '--format', 'json',
                            '--out', str(link))
                    self.assertTrue(link.is_symlink())
                    self.assertFalse(real.is_symlink())
                    self.document(real.read_text(), 'vi_lat')
                    self.assertEqual(len(list(Path(where).iterdir())), 2)
                    real.write_text('old')

    def test_a_failure_keeps_the_file_behind_a_link(self):
        with tempfile.TemporaryDirectory() as where:
            link, real = Path(where) / 'link', Path(where) / 'real'
            link.symlink_to('real')
            real.write_text('old')
            self.fails('vi_lat', '-q', '--hosts', 'host0,nowhere', '--out', str(link))
            self.assertEqual(real.read_text(), 'old')

    def test_a_failure_leaves_no_file(self):
        with tempfile.TemporaryDirectory() as where:
            self.fails('vi_lat', '-q', '--hosts', 'host0,nowhere', '--out', f'{where}/f')
            self.assertEqual(list(Path(where).iterdir()), [])

    def test_pin(self):
        cpu = str(min(os.sched_getaffinity(0)))
        doc = self.measure('vi_lat', '--sizes', '4', '--pin', cpu)
        self.assertEqual(doc['placement']['client']['pinned_cpu'], int(cpu))
        self.assertEqual(doc['placement']['server']['pinned_cpu'], int(cpu))
        self.assertIn('--pin 1023', self.fails('vi_lat', '-q', '--sizes', '4', '--pin', f'1023,{cpu}'))

    def test_warnings_come_to_stderr_and_json(self):
        cpu = str(min(os.sched_getaffinity(0)))
        out = self.ok('vi_lat', '--sizes', '4', '--iters', '5', '--format', 'json', '--pin', cpu)
        warnings = [line.split(': warning: ')[1] for line in out.stderr.splitlines()]
        self.assertEqual(warnings, json.loads(out.stdout)['environment']['warnings'])
        self.assertTrue(any('2 processes measure on 1 processor' in w for w in warnings), warnings)


class Stream(PerfCase):
    def check(self, tool, doc, sizes, directions=1):
        vis = doc['test']['vis']
        for row, size in zip(doc['results'], sizes, strict=True):
            self.assertEqual(row['size_bytes'], size)
            self.assertEqual(row['messages'], row['iterations'] * vis * directions)
            self.assertEqual(row['bytes'], row['messages'] * size)
            rate = row['messages'] / row['elapsed_s']
            self.assertAlmostEqual(row['messages_per_s'] / rate, 1, places=2)
            self.assertAlmostEqual(row['bandwidth_mb_per_s'], rate * size / 1e6,
                                   delta=0.01 * rate * size / 1e6 + 0.01)

    def test_every_operation_wait_level_and_queue(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for wait in ('poll', 'block'):
                for level in ('unreliable', 'delivery', 'reception'):
                    if (op, level) == ('read', 'unreliable'):
                        continue
                    for cq in ([], ['--cq']):
                        with self.subTest(op=op, wait=wait, level=level, cq=cq):
                            doc = self.measure('vi_bw', '--op', op, '--wait', wait, '--level', level,
                                               '--sizes', '1,4000', '--window', '8', '--verify', *cq)
                            self.check('vi_bw', doc, (1, 4000))

    def test_both_ways(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            for cq in ([], ['--cq']):
                for wait in ('poll', 'block'):
                    with self.subTest(op=op, wait=wait, cq=cq):
                        doc = self.measure('vi_bw', '--bidir', '--op', op, '--wait', wait, '--vis', '3',
                                           '--sizes', '8,3000', '--window', '4', '--verify', *cq)
                        self.check('vi_bw', doc, (8, 3000), directions=2)

    def test_windows(self):
        for window in ('1', '2', '7', '64', '500'):
            doc = self.measure('vi_rate', '--window', window, '--sizes', '8', '--verify')
            self.check('vi_rate', doc, (8,))

    def test_rate_of_every_operation(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            self.check('vi_rate', self.measure('vi_rate', '--op', op, '--sizes', '0,8'), (0, 8))

    def test_large(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            doc = self.measure('vi_bw', '--op', op, '--sizes', '1M', '--window', '4', '--verify')
            self.check('vi_bw', doc, (1 << 20,))

    def test_window_memory_and_segments(self):
        for op in ('send', 'write', 'write-imm', 'read'):
            self.measure('vi_bw', '--op', op, '--window-memory', '--segments', '5', '--sizes', '3,30000',
                         '--verify')

    def test_titles(self):
        out = self.ok('vi_bw', '-q', '--sizes', '8', '--iters', '8')
        self.assertRegex(out.stdout, r'(?m)^# Size +Bandwidth \(MB/s\)$')
        self.assertRegex(out.stdout, r'(?m)^# .* fit into a cache ')
        out = self.ok('vi_rate', '-q', '--sizes', '8', '--iters', '8')
        self.assertRegex(out.stdout, r'(?m)^# Size +Messages/s$')

    def test_impossible_demands(self):
        self.assertIn('MaxSegmentsPerDesc', self.fails('vi_bw', '-q', '--op', 'write', '--segments',
                                                       '252', '--sizes', '8', '--iters', '2')
                      if self.segments() < 253 else 'MaxSegmentsPerDesc')

    def segments(self):
        doc = json.loads(self.ok('vi_info', '--json').stdout)
        return doc['nic']['max_segments_per_desc']


class ServerAndClient(PerfCase):
    def pair(self, tool, server_args=(), client_args=(), name='pair'):
        server = self.fabric.popen(tool, '-q', '--server', '--name', name, *server_args)
        client = self.fabric.popen(tool, '-q', '--connect', 'host0', '--name', name, '--format',
                                   'json', '--iters', '10', *client_args)
        result = finish(client)
        return finish(server), result

    def test_client_decides(self):
        for tool in PERF:
            server, client = self.pair(tool, [], ['--op', 'write-imm', '--sizes', '4,100', '--verify'])
            self.assertEqual(server, (0, '', ''))
            self.assertEqual(client[0], 0, client[2])
            self.assertEqual(len(self.document(client[1], tool)['results']), 2)

    def test_nobody_there(self):
        err = self.fails('vi_lat', '-q', '--connect', 'host0', '--name', 'nobody', '--timeout', '0.3')
        self.assertIn("'nobody'", err)
        self.assertIn('--server', err)

    def test_unknown_host(self):
        err = self.fails('vi_lat', '-q', '--connect', 'nowhere')
        self.assertIn("'nowhere'", err)
        self.assertIn('host0', err)
        err = self.fails('vi_lat', '-q', '--host', 'nowhere', '--server')
        self.assertIn("'nowhere'", err)

    def test_another_tool(self):
        server = self.fabric.popen('vi_bw', '-q', '--server', '--name', 'mixed')
        client = finish(self.fabric.popen('vi_lat', '-q', '--connect', 'host0', '--name', 'mixed'))
        self.assertEqual(finish(server)[0], 1)
        self.assertEqual(client[0], 1)
        self.assertIn('another tool', client[2])


class FullWindow(FabricCase):
    agent_args = ('--window', '1M')

    def test_cause_and_remedy_are_told(self):
        err = self.fails('vi_bw', '-q', '--sizes', '8', '--vis', '64')
        self.assertIn('VIP_ERROR_RESOURCE', err)
        self.assertIn('window', err)
        self.assertIn('--window', err)
        self.assertNotIn('itself', err)
        err = self.fails('vi_scale', '-t', 'vi')
        self.assertIn('VIP_ERROR_RESOURCE', err)
        self.assertIn('--vis', err)


class Death(FabricCase):
    """When one process dies the others soon end with an error line."""

    def endless(self, tool, *args):
        return self.fabric.popen(tool, '-q', '--duration', '1000', '--sizes', '64', '--timeout', '20',
                                 *args)

    def ends_badly(self, process):
        code, _, err = finish(process)
        self.assertEqual(code, 1, err)
        self.assertEqual(err.count('\n'), 1, err)
        return err

    def pair(self, tool, name, *args):
        server = self.fabric.popen(tool, '-q', '--server', '--name', name)
        client = self.endless(tool, '--connect', 'host0', '--name', name, *args)
        self.fabric.until(lambda: self.fabric.connected(2), 'connection')
        return server, client

    def each(self):
        for tool in ('vi_lat', 'vi_bw'):
            for op in ('send', 'write-imm', 'read'):
                for wait in ('poll', 'block'):
                    yield tool, f'{tool}{op}{wait}', ['--op', op, '--wait', wait]

    def test_server_killed(self):
        for tool, name, args in self.each():
            with self.subTest(name):
                server, client = self.pair(tool, name, *args)
                server.kill()
                finish(server)
                self.assertIn('lost', self.ends_badly(client))

    def test_client_killed(self):
        for tool, name, args in self.each():
            with self.subTest(name):
                server, client = self.pair(tool, name, *args)
                client.kill()
                finish(client)
                self.assertIn('lost', self.ends_badly(server))

    def test_server_stopped(self):
        # A time-out longer than a machine stands still while they connect.
        server, client = self.pair('vi_lat', 'stopped', '--timeout', '4.5')
        server.send_signal(signal.SIGSTOP)
        try:
            self.assertIn('4.5 s', self.ends_badly(client))
        finally:
            server.kill()
            finish(server)

    def test_both_started_by_one_die_together(self):
        both = self.endless('vi_lat')
        self.fabric.until(lambda: self.fabric.connected(2), 'connection')
        both.kill()
        finish(both)
        self.fabric.until(lambda: not self.fabric.connected(1), 'end of the server')


class AgentDeath(unittest.TestCase):
    def test_agent_killed(self):
        for tool, args in (('vi_lat', []), ('vi_bw', ['--wait', 'block'])):
            fabric = Fabric()
            try:
                both = fabric.popen(tool, '-q', '--duration', '1000', '--sizes', '64', '--timeout', '20',
                                    *args)
                fabric.until(lambda f=fabric: f.connected(2), 'connection')
                fabric.agents[0].kill()
                code, _, err = finish(both)
                self.assertEqual(code, 1)
                self.assertIn('lost', err)
            finally:
                fabric.close()

    def test_stat_while_the_agent_dies(self):
        fabric = Fabric()
        try:
            stat = fabric.popen('vi_stat', '-i', '0.05')
            self.assertTrue(stat.stdout.readline().startswith('host: host0'))
            fabric.agents[0].kill()
            code, _, err = finish(stat)
            self.assertEqual(code, 1)
            self.assertIn('host0', err)
        finally:
            fabric.close()


class StoppedAgent(unittest.TestCase):
    """An agent that does not answer is named, and does not hold up questions to the others."""

    def setUp(self):
        self.fabric = Fabric(3)
        self.addCleanup(self.fabric.close)
        self.fabric.until(self.fabric.linked, 'links')
        self.fabric.agents[0].send_signal(signal.SIGSTOP)
        self.silent = f'(pid {self.fabric.agents[0].pid}) did not answer within'

    def test_info_and_stat_of_another_host(self):
        out = self.fabric.run('vi_info', VIADUCT_HOST='host1')
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertRegex(out.stdout, r'(?m)^no_answer: host0: .*did not answer')
        self.assertNotIn('no_answer: host2', out.stdout)
        self.assertRegex(out.stdout, r'(?m)^nic: ')
        out = self.fabric.run('vi_info', '-v', VIADUCT_HOST='host1')
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertRegex(out.stdout, r'(?m)^host: host0 .*answers false error .*did not answer')
        self.assertRegex(out.stdout, r'(?m)^host: host2 .*answers true$')
        out = self.fabric.run('vi_stat', '--host', 'host2')
        self.assertEqual((out.returncode, out.stdout), (0, 'host: host2 clients 0 total\n'), out.stderr)

    def test_info_of_it(self):
        out = self.fabric.run('vi_info')
        self.assertEqual(out.returncode, 1)
        self.assertEqual(out.stderr.count('\n'), 1, out.stderr)
        self.assertIn(self.silent, out.stderr)
        self.assertIn('seen_from: host1\n', out.stdout)
        self.assertRegex(out.stdout, r'(?m)^reachable: .*\bhost2\b')
        self.assertNotIn('nic:', out.stdout)
        out = self.fabric.run('vi_info', '--topology')
        self.assertEqual(out.returncode, 1)
        self.assertRegex(out.stdout, r'(?m)^no_answer: host0: .*did not answer')
        out = self.fabric.run('vi_stat')
        self.assertEqual((out.returncode, out.stdout), (1, ''))
        self.assertIn(self.silent, out.stderr)

    def test_stat_while_the_agent_stops(self):
        stat = self.fabric.popen('vi_stat', '-i', '0.05', '--host', 'host1')
        self.assertTrue(stat.stdout.readline().startswith('host: host1'))
        self.fabric.agents[1].send_signal(signal.SIGSTOP)
        code, _, err = finish(stat)
        self.assertEqual(code, 1)
        self.assertIn('host1', err)


# ---- vi_info and vi_stat ----

class Info(FabricCase):
    def test_picture_and_few_lines(self):
        picture, lines = self.ok('vi_info').stdout.split('\n\n')
        self.assertEqual(picture, '<host0>\n<> this host')
        lines = lines.splitlines()
        self.assertEqual([line.split(': ')[0] for line in lines],
                         ['fabric', 'medium', 'own_host', 'reachable', 'nic', 'version'])
        self.assertEqual(lines[0], f'fabric: {self.fabric.name}, 1 host, 0 links')
        self.assertIn('emulated', lines[1])
        self.assertIn('no other host', lines[3])
        self.assertIn('messages of up to 1 GiB', lines[4])

    def test_all_attributes(self):
        out = self.ok('vi_info', '-v')
        for line in out.stdout.splitlines():
            self.assertRegex(line, r'^[a-z_.]+: \S')
        header = (HERE.parent.parent / 'vipl' / 'include' / 'vipl.h').read_text()
        body = header[header.index('typedef struct _VIP_NIC_ATTRIBUTES'):]
        count = body[:body.index('} VIP_NIC_ATTRIBUTES')].count(';')
        self.assertEqual(len(re.findall(r'(?m)^nic\.', out.stdout)), count)

    def test_names(self):
        self.assertEqual(self.ok('vi_info', '-l').stdout, 'host0\n')

    def test_json_has_all(self):
        doc = json.loads(self.ok('vi_info', '--json').stdout)
        self.assertEqual((doc['schema'], doc['schema_version']), ('viaduct.info', 1))
        for key in ('version', 'fabric', 'hosts', 'ports', 'aliases', 'clients', 'nic', 'explain',
                    'topology', 'environment', 'placement'):
            self.assertIn(key, doc)
        self.assertEqual(doc['fabric']['name'], self.fabric.name)
        self.assertEqual(doc['hosts'][0]['path'], 'self')
        self.assertIn('delivery', doc['nic']['reliability_levels'])

    def test_placement(self):
        allowed = sorted(os.sched_getaffinity(0))
        out = self.ok('vi_info', '--placement').stdout.splitlines()
        self.assertEqual(out[0], 'rules: none')
        self.assertRegex(out[1], r'^allowed: \d')
        self.assertRegex(out[2], r'^machine: (\d+ processors?, \d+ cores?, .*, \d+ memory nodes?|unknown: .*)$')
        self.assertEqual(out[-2:], ['application: not placed', 'vi-xfer: not placed'])
        last = allowed[-1]
        doc = json.loads(self.ok('vi_info', '--placement', '--json',
                                 VIADUCT_AFFINITY=f'transfer={last},8191;application={last};service={last}'
                                 ).stdout)['placement']
        threads = {t['thread']: t for t in doc['threads']}
        self.assertEqual(list(threads), ['application', 'vi-xfer', 'service'])
        self.assertEqual([t['cpus'] for t in threads.values()], [str(last)] * 3)
        self.assertEqual([t['as_asked'] for t in threads.values()], [True, False, True])
        self.assertIn(f'asked {last},8191, got these: this process may not use the others', threads['vi-xfer']['text'])
        self.assertIn('has one processor with ', threads['service']['warning'])
        self.assertFalse(doc['one_core'])
        if 'machine' in doc:
            self.assertLessEqual(set(allowed), {p['cpu'] for p in doc['machine']['where']})
            self.assertEqual(len(doc['machine']['where']), doc['machine']['processors'])
        else:
            self.assertIn('hwloc', doc['machine_unknown'])

    def test_unknown_hosts(self):
        self.assertIn("'nowhere'", self.fails('vi_info', '--explain', 'nowhere'))
        self.assertIn("'nowhere'", self.fails('vi_info', '--host', 'nowhere'))

    def test_explain_itself(self):
        out = self.ok('vi_info', '--explain', 'host0')
        self.assertIn('  path: self\n', out.stdout)
        self.assertIn('  port: self chosen: ', out.stdout)

    def test_one_host_is_not_hosts(self):
        done = subprocess.run([VI_FABRIC, 'status'], env=environment(self.fabric.name), text=True,
                              capture_output=True, timeout=60, check=True)
        self.assertEqual(done.stdout.splitlines()[0], f'fabric {self.fabric.name}: 1 host')
        self.assertIn('has 1 host and none is called so', self.fails('vi_info', VIADUCT_HOST='nowhere'))

    def test_single_host(self):
        self.assertEqual(self.ok('vi_info', '--topology').stdout,
                         'topology: ring\nhosts: 1\nlinks: 0\nseen_from: host0\n'
                         'transfer_threads: 0\n\n<host0>\n<> this host\n')


class Output(FabricCase):
    """A tool whose standard output cannot be written fails, and says so in one line."""

    def lost(self, command, redirection):
        out = subprocess.run(['sh', '-c', f'exec "$@" {redirection}', 'sh', *command], text=True,
                             env=self.fabric.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             timeout=PATIENCE, check=False)
        self.assertEqual(out.returncode, 1, f'{command}: {out.stderr}')
        self.assertEqual(out.stderr.count('\n'), 1, out.stderr)
        self.assertIn('writing to standard output: ', out.stderr)

    def test_full_and_closed(self):
        perf = ['-q', '--sizes', '4', '--iters', '5']
        for command in ([VI_FABRIC, 'status'], [VI_FABRIC, '--help'], [VI_FABRIC, '--version'],
                        [TOOLS['vi_stat']], [TOOLS['vi_stat'], '--help'],
                        [TOOLS['vi_stat'], '-i', '0.05'], [TOOLS['vi_info']],
                        [TOOLS['vi_info'], '-V'], [TOOLS['vi_lat'], '--help'],
                        [TOOLS['vi_lat'], *perf]):
            for redirection in ('>/dev/full', '>&-'):
                with self.subTest(command=command, redirection=redirection):
                    self.lost(command, redirection)


class Stat(FabricCase):
    def test_nobody(self):
        self.assertEqual(self.ok('vi_stat').stdout, 'host: host0 clients 0 total\n')

    def test_unknown_host(self):
        self.assertIn("no host 'nobody'", self.fails('vi_stat', '--host', 'nobody'))

    def test_counters_of_a_measurement(self):
        server = self.fabric.popen('vi_rate', '-q', '--server')
        client = self.fabric.popen('vi_rate', '-q', '--connect', 'host0', '--duration', '1000',
                                   '--sizes', '8', '--timeout', '1000')
        both = {client.pid, server.pid}
        try:
            self.fabric.until(lambda: self.sender_leads(client.pid, both), 'traffic')
            # The programs may stand still during one interval, but not during every one.
            self.fabric.until(lambda: self.interval_shows(client.pid, both),
                              'an interval with traffic')
            for pid in both:
                line = rf'(?m)^client: \d+ pid {pid} program vi_rate '
                self.fabric.until(lambda found=line + '.*messages_sent [1-9]': re.search(found, self.ok('vi_stat').stdout),
                                  'a line of the table')
                self.fabric.until(lambda found=line + r'.* \w+ 0\b': re.search(found, self.ok('vi_stat', '--all').stdout),
                                  'a counter of 0')
        finally:
            for p in (client, server):
                p.kill()
                finish(p)

    def sender_leads(self, sender, both):
        doc = json.loads(self.ok('vi_stat', '--json').stdout)
        self.assertEqual(doc['counting'], 'total')
        sent = self.sent(doc)
        return set(sent) == both and sent[sender] > max(1000, sent[(both - {sender}).pop()])

    def interval_shows(self, sender, both):
        reports = [json.loads(line) for line in
                   self.ok('vi_stat', '--json', '-i', '0.2', '-c', '2').stdout.splitlines()]
        self.assertEqual(len(reports), 2)
        for r in reports:
            self.assertEqual((r['schema'], r['schema_version']), ('viaduct.stat', 1))
            self.assertEqual(r['counting'], 'interval')
            self.assertEqual({c['program'] for c in r['clients']}, {'vi_rate'})
        sent = [self.sent(r) for r in reports]
        self.assertTrue(all(set(s) == both for s in sent), sent)
        return all(s[sender] > s[(both - {sender}).pop()] for s in sent)

    def sent(self, doc):
        return {c['pid']: c['counters']['messages_sent'] for c in doc['clients']}


def has_stopped(process):
    """Have all its threads?  The signal is taken by one of them, which needs a processor for that, and then stops the others."""
    return all('State:\tT' in (task / 'status').read_text(encoding='utf-8') for task in Path(f'/proc/{process.pid}/task').iterdir())


class StoppedClient(FabricCase):
    def test_stat_of_it(self):
        self.seen = ''
        server = self.fabric.popen('vi_rate', '-q', '--server')
        client = self.fabric.popen('vi_rate', '-q', '--connect', 'host0', '--duration', '1000',
                                   '--sizes', '8', '--timeout', '1000')
        try:
            self.fabric.until(lambda: self.fabric.connected(2), 'connection')
            for p in (client, server):
                p.send_signal(signal.SIGSTOP)
            self.fabric.until(lambda: has_stopped(client) and has_stopped(server), 'stop')
            doc = json.loads(self.ok('vi_stat', '--json').stdout)
            self.assertEqual({c['pid']: c['answers'] for c in doc['clients']},
                             {client.pid: False, server.pid: False})
            client.send_signal(signal.SIGCONT)
            # On a busy machine the one that goes on may need longer to answer than one call waits.
            self.fabric.until(lambda: self.answers(client.pid, server.pid), 'the one that goes on')
        except AssertionError as e:
            raise AssertionError(f'{e}; client {client.pid} ended with {client.poll()}, '
                                 f'vi_stat: {self.seen}') from e
        finally:
            for p in (client, server):
                p.kill()
                finish(p)

    def answers(self, goes_on, stopped):
        out = self.ok('vi_stat').stdout
        self.seen = out
        self.assertRegex(out, rf'(?m)^client: \d+ pid {stopped} program vi_rate does not answer$')
        return re.search(rf'(?m)^client: \d+ pid {goes_on} program vi_rate .*messages_sent', out)


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, 'needs two processors')
class Stages(FabricCase):
    hosts = 2
    POINTS = ['post entered', 'payload written', 'slot published', 'slot seen', 'payload copied',
              'completion written', 'completion taken']

    def check_stages(self, *args, size=4):
        doc = {}

        def some_are_followed():
            """On a busy machine the engine may receive all messages, and then none is followed."""
            doc.update(json.loads(self.ok('vi_stages', '--json', '-n', '1000', '--size',
                                          str(size), *args).stdout))
            return doc['messages'] > 0
        self.fabric.until(some_are_followed, 'a message whose stages are all known')
        self.assertEqual((doc['schema'], doc['schema_version'], doc['tool'], doc['size_bytes']),
                         ('viaduct.stages', 1, 'vi_stages', size))
        self.assertEqual([s['stage'] for s in doc['stages']],
                         [f'{a} -> {b}' for a, b in zip(self.POINTS, self.POINTS[1:])])
        # The first 10 of each 100 rounds do not count.
        self.assertEqual(doc['messages'] + doc['left_out'], 900)
        self.assertGreater(doc['messages'], 0)
        self.assertGreater(doc['stamp_ns'], 0)
        self.check_sums(doc)
        return doc

    def check_sums(self, doc):
        """Means add up, and the stages account for most of the time that the program's clock shows."""
        parts = sum(s['mean_ns'] for s in doc['stages'])
        self.assertAlmostEqual(parts / doc['whole']['mean_ns'], 1, places=3)
        for row in [*doc['stages'], doc['whole'], doc['turn']]:
            self.assertLessEqual(row['p10_ns'], row['p50_ns'])
            self.assertLessEqual(row['p50_ns'], row['p90_ns'])
            self.assertLessEqual(0, row['without_stamp_ns'])
            self.assertLessEqual(row['without_stamp_ns'], max(row['p50_ns'], 0))
        self.assertGreater(doc['half_round_trip_stamped_ns'], 0.3 * doc['whole']['p10_ns'])
        self.assertGreater(doc['half_round_trip_ns'], 0)

    def test_between_hosts(self):
        doc = self.check_stages('--hosts', 'host0,host1')
        self.assertEqual(doc['placement']['hosts'], ['host0', 'host1'])
        self.assertEqual(len(set(doc['placement']['pinned_cpus'])), 2)

    def test_one_host_and_the_systems_clock(self):
        doc = self.check_stages('--clock', 'monotonic')
        self.assertEqual((doc['clock'], doc['ns_per_tick']), ('monotonic', 1.0))

    def test_sizes(self):
        for size in (1, 64, 4096, 300000): # a line, two, the ring, several slots
            with self.subTest(size=size):
                self.check_stages(size=size)

    def test_table(self):
        out = self.ok('vi_stages', '--unpinned', '-n', '200').stdout
        self.assertEqual(len(re.findall(r'(?m)^[^#].* -> .*(?: +-?\d+\.\d){4}$', out)), 8)
        self.assertIn('a stamp takes', out)

    def test_failure_is_told(self):
        self.assertIn('nohost', self.fails('vi_stages', '--hosts', 'host0,nohost'))


# ---- on two and three hosts ----

class Scale(FabricCase):
    """vi_scale measures each of its figures, with the least work that it accepts, and leaves nothing."""

    little = ('--vis', '4', '--processes', '4', '--regions', '100', '--sizes', '4k,1M',
              '--duration', '0.02')

    def measure(self, *args):
        out = self.ok('vi_scale', '--json', *self.little, *args)
        self.assertEqual(out.stderr, '')
        document = json.loads(out.stdout)
        self.assertEqual((document['schema'], document['schema_version']), ('viaduct.scale', 1))
        return document['results']

    def test_every_figure(self):
        results = self.measure('--agent', str(self.fabric.agents[0].pid))
        figures = {(r['test'], r['variant'], r['n'], r['unit']) for r in results}
        memory = ('private memory', 'memory of the agent')
        windows = ('window memory mapped', 'window memory touched')
        self.assertEqual(figures, {
            *(('vi', v, 4, 'bytes') for v in memory + windows),
            *(('process', v, 4, 'bytes') for v in memory),
            *(('region', v, 100, 'bytes') for v in memory),
            ('connect', 'connections made and closed', 1, '1/s'),
            *(('connect', v, 1, 'ns') for v in ('connect', 'disconnect')),
            *(('register', 'register and deregister', n, 'ns') for n in (4096, 1 << 20)),
            *(('pairs', 'streams, all together', n, 'messages/s') for n in (2, 4)),
            *(('pairs', 'to and fro, all together', n, 'round trips/s') for n in (2, 4)),
            *(('pairs', f'{v}, least over mean', n, 'ratio') for n in (2, 4)
              for v in ('streams', 'to and fro'))})
        for r in results:
            if r['unit'] not in ('bytes', 'ratio'):
                self.assertGreater(r['value'], 0, r)
            elif r['unit'] == 'ratio':
                self.assertLessEqual(r['value'], 1, r)
        self.fabric.until(lambda: not self.fabric.connected(1), 'the end of all connections')

    def test_one_test_and_the_table(self):
        self.assertEqual({r['test'] for r in self.measure('-t', 'connect')}, {'connect'})
        out = self.ok('vi_scale', *self.little, '-t', 'register,region')
        self.assertEqual([line.split()[0] for line in out.stdout.splitlines()],
                         ['#', 'region', 'register', 'register'])

    def test_signal_of_children_that_is_ignored(self):
        """Some shells and services leave SIGCHLD ignored: the kernel then tells no parent how a child has ended."""
        ignoring = ('import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); '
                    'os.execv(sys.argv[1], sys.argv[1:])')
        for words, status in ((('vi_scale', *self.little, '-t', 'connect'), 0), (('vi_lat', '-n', '100', '-s', '8'), 0),
                              (('vi_fabric', 'up', '--hosts', '2', '--topology', 'file:/nowhere'), 2)):
            out = subprocess.run([sys.executable, '-c', ignoring, TOOLS.get(words[0], VI_FABRIC), *words[1:]], env=self.fabric.env,
                                 timeout=PATIENCE, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            self.assertEqual(out.returncode, status, out.stderr)

    def test_failures_are_told(self):
        self.assertIn('--timeout', self.fails('vi_scale', '-t', 'pairs', '-D', '60', '--timeout',
                                              '0.1'))
        self.assertIn('status',
                      self.fails('vi_scale', '-t', 'region', '--agent', str(2 ** 31 - 1)))


class TwoHosts(PerfCase):
    hosts = 2

    def test_between_hosts(self):
        for tool in PERF:
            for op in ('send', 'write', 'write-imm', 'read'):
                with self.subTest(tool=tool, op=op):
                    doc = self.measure(tool, '--hosts', 'host0,host1', '--op', op, '--sizes', '1,4000',
                                       '--verify')
                    place = doc['placement']
                    self.assertEqual((place['client']['host'], place['server']['host'],
                                      place['path'], place['hops']), ('host0', 'host1', 'neighbour', 1))

    def test_options_choose_the_hosts(self):
        server = self.fabric.popen('vi_lat', '-q', '--server', '--host', 'host1')
        client = finish(self.fabric.popen('vi_lat', '-q', '--connect', 'host1', '--host', 'host0',
                                          '--sizes', '4', '--iters', '5'))
        self.assertEqual(finish(server)[0], 0)
        self.assertEqual(client[0], 0, client[2])
        self.assertIn('# host0 -> host1, path neighbour', client[1])

    def test_large_both_ways(self):
        self.measure('vi_bw', '--hosts', 'host1,host0', '--bidir', '--sizes', '1M', '--window', '4',
                     '--verify')

    def test_info_from_either(self):
        for here, there in (('host0', 'host1'), ('host1', 'host0')):
            out = self.ok('vi_info', VIADUCT_HOST=here)
            self.assertIn(f'own_host: {here}\n', out.stdout)
            self.assertIn(f'reachable: {there}\n', out.stdout)
            self.assertIn('2 hosts, 1 link\n', out.stdout)
            self.assertTrue(out.stdout.startswith('<host0>--' if here == 'host0' else '[host0]--'))
            verbose = self.ok('vi_info', '-v', VIADUCT_HOST=here)
            self.assertRegex(verbose.stdout, rf'(?m)^host: {there} .*path neighbour')
            self.assertEqual(self.ok('vi_info', '--host', here).stdout, out.stdout)

    def test_explain(self):
        out = self.ok('vi_info', '--explain', 'host1')
        self.assertIn('  path: neighbour\n', out.stdout)
        self.assertIn('  port: self rejected: ', out.stdout)
        self.assertIn('  port: right chosen: ', out.stdout)

    def test_topology(self):
        self.assertEqual(self.ok('vi_info', '--topology').stdout,
                         'topology: ring\nhosts: 2\nlinks: 1\nseen_from: host0\n'
                         'transfer_threads: 0\n\n<host0>-----[host1]\n<> this host\n')


class Ring(FabricCase):
    hosts = 3

    def test_host_gone(self):
        fabric = Fabric(3)
        try:
            fabric.until(fabric.linked, 'links')
            fabric.agents[1].kill()
            fabric.agents[1].wait()

            def gone():
                return 'reachable: no' in fabric.run('vi_info', '--explain', 'host1').stdout
            fabric.until(gone, 'loss of the link')
            out = fabric.run('vi_info', '--explain', 'host1').stdout
            self.assertRegex(out, r'  port: right rejected: .*down')
            out = fabric.run('vi_info', '--topology')
            self.assertEqual(out.returncode, 0)
            self.assertIn('no_answer: host1: ', out.stdout)
            self.assertIn('down: host0 right -> left host1\n', out.stdout)
            out = fabric.run('vi_info')
            self.assertRegex(out.stdout, r'(?m)^fabric: .*, 3 hosts, 3 links, 2 of them down$')
            self.assertRegex(out.stdout, r'(?m)^not_reachable: host1: .*down')
        finally:
            fabric.close()


if __name__ == '__main__':
    unittest.main(verbosity=2)
