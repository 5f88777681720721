# SPDX-License-Identifier: BSD-2-Clause
"""Common parts of the tests of launchers: the programs, their environment, processes that end."""
import os
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

OSHRUN = os.environ.get('OSHRUN', 'oshrun')
PE = os.environ.get('BOOT_PE', 'boot_pe')
PATIENCE = limit(120)
LAUNCHERS = ('VIADUCT', 'OSHRUN', 'SHMEM_', 'PMI', 'OMPI', 'SLURM', 'MPI_', 'PALS')


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    for name in ('VIADUCTD',):
        if name in os.environ:
            env['VIADUCT_AGENT'] = os.environ[name]
    env.update(more)
    return env


def heed_signals():
    """Stops ignoring signals.  Whoever started the tests may do so, as nohup does, and programs would inherit it."""
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) == signal.SIG_IGN:
            signal.signal(ending, signal.SIG_DFL)


def alive(pid):
    """Does the process run?  One that has ended and was not waited for does not."""
    try:
        stat = Path(f'/proc/{pid}/stat').read_text(encoding='utf-8', errors='replace')
    except OSError:
        return False
    return stat.rpartition(')')[2].split()[0] not in 'ZX'


def processes():
    """Yields (pid, command line) of all processes."""
    for folder in Path('/proc').iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / 'cmdline').read_bytes().decode(errors='replace').split('\0')
            except OSError:
                continue
            yield int(folder.name), words


def fabric_name(pid):
    """The fabric that a process was given by its environment; None if it was given none, or has ended."""
    try:
        words = Path(f'/proc/{pid}/environ').read_bytes().decode(errors='replace').split('\0')
    except OSError:
        return None
    names = [word.split('=', 1)[1].split(':')[-1] for word in words if word.startswith('VIADUCT_FABRIC=')]
    return names[0] if names else None


def processes_of(fabric):
    """[(pid, command line)] of the processes that were given this fabric."""
    return [(pid, words) for pid, words in processes() if fabric_name(pid) == fabric]


def until(check, what):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if check():
            return
        select.select([], [], [], 0.01)
    raise AssertionError(f'{what} did not happen in {PATIENCE} s')


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def oshrun(self, *args, stdin=subprocess.DEVNULL, text=None, env=None):
        given = {'input': text} if text is not None else {'stdin': stdin}
        return subprocess.run([OSHRUN, *map(str, args)], env=env or environment(), text=True, timeout=PATIENCE,
                              capture_output=True, check=False, **given)

    def pes(self, n, *commands, options=()):
        return self.oshrun('-np', n, *options, PE, *commands)

    def ok(self, n, *commands, options=()):
        out = self.pes(n, *commands, options=options)
        self.assertEqual((out.returncode, out.stderr), (0, ''))
        return out.stdout

    def fails(self, code, line, n, *commands, options=()):
        """Checks the exit status, and that oshrun prints one line that matches (`line` None: none)."""
        out = self.pes(n, *commands, options=options)
        lines = [text for text in out.stderr.splitlines() if text.startswith('oshrun: ')]
        self.assertEqual(out.returncode, code, out.stderr)
        self.assertEqual(len(lines), 0 if line is None else 1, out.stderr)
        if line is not None:
            self.assertRegex(lines[0], line)
        return out

    def started(self, *args, n=2, **kw):
        """Starts oshrun; returns it and the ids of its PEs once each has executed all of `args`."""
        mark = self.folder / 'here'
        process = subprocess.Popen([OSHRUN, '-np', str(n), *kw.pop('options', ()), PE, 'start',
                                    f'pid={self.folder / "pid"}', *args, f'touch={mark}', 'wait'],
                                   env=environment(), text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        until(lambda: all(Path(f'{mark}.{pe}').exists() for pe in range(n)) or process.poll() is not None,
              'the start')
        self.assertIsNone(process.poll())
        return process, [int((self.folder / f'pid.{pe}').read_text()) for pe in range(n)]

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)

    def fabric_of(self, process):
        """The name of the job's fabric, which its vi_fabric was given."""
        children = Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split()
        for pid in children:
            words = Path(f'/proc/{pid}/cmdline').read_bytes().decode().split('\0')
            if words[0] == 'vi_fabric' and fabric_name(pid):
                return fabric_name(pid)
        raise AssertionError('oshrun has no vi_fabric')

    def assert_gone(self, pids, fabric):
        until(lambda: not any(map(alive, pids)), 'the end of the PEs')
        until(lambda: not processes_of(fabric), 'the end of the fabric')
