#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts the instructions of the calls that move a message, and compares them with a budget.

usage: budget_test.py [--write] [--build WORDS] AGENT PATH SCRATCH

AGENT is viaductd, PATH the program of path.c, SCRATCH a folder for callgrind's files, kept if a
count exceeds the budget.  --build describes the build: «COMPILER ARCH OPTIMIZATION SANITIZER»; the
budget is for one such build only.  --write writes the counts into budget.txt instead. Exit 77
(skip) where nothing can be counted, with the reason.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'abi'))
sys.dont_write_bytecode = True
from run_compat import start_agent  # noqa: E402

BUDGET = HERE / 'budget.txt'
BUILD = 'gcc x86_64 2 none'
SLACK = 0.10
BATCHES = 5
ROUNDS = 256  # once round the fifo of slots, so that work done once for each quarter of it counts evenly
DEADLINE = 240
# On a busy machine the engine's thread can wait for a processor as long as a row lasts, and every
# send of it then sees that the peer asked for a doorbell: such a run is repeated.
RUNS = 4

# name, the row of path.c, the calls that count
FIGURES = (
    ('send 4 B', 'message-4', ('VipPostSend', 'VipSendDone')),
    ('send 64 B', 'message-64', ('VipPostSend', 'VipSendDone')),
    ('send 4096 B', 'message-4096', ('VipPostSend', 'VipSendDone')),
    ('send 4 B, two regions in turn', 'in-turn-4', ('VipPostSend', 'VipSendDone')),
    ('receive 4 B', 'message-4', ('VipPostRecv', 'VipRecvDone')),
    ('receive 64 B', 'message-64', ('VipPostRecv', 'VipRecvDone')),
    ('receive 4096 B', 'message-4096', ('VipPostRecv', 'VipRecvDone')),
    ('VipRecvDone, nothing there', 'empty', ('VipRecvDone',)),
    ('VipCQDone, a message of 4 B', 'cq-4', ('VipCQDone',)),
    ('VipCQDone, nothing there', 'cq-empty', ('VipCQDone',)),
    ('RDMA write 8 B', 'write-8', ('VipPostSend', 'VipSendDone')),
)
SLOW_LOCK = ('u_biased_slow', 'u_biased_try_slow', 'u_biased_drop_slow')


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(77)


# ---- counting ----

def count_command(path, out):
    """The command that counts.  Copies by the C library do not count: its routine depends on the processor."""
    return ['valgrind', '--tool=callgrind', '--quiet', '--fair-sched=try',
            f'--callgrind-out-file={out}',
            '--compress-strings=no', '--compress-pos=no', '--toggle-collect=measured',
            '--toggle-collect=*memcpy*', '--toggle-collect=*memmove*',
            '--zero-before=measured', '--dump-after=measured',
            path, str(BATCHES), str(ROUNDS)]


def run_path(agent_path, path, out):
    """Returns the lines printed: one for each batch, and callgrind wrote a file for each batch."""
    fabric = f'budget-{os.getpid()}'
    env = {name: value for name, value in os.environ.items() if not name.startswith('VIADUCT')}
    env.update(VIADUCT_AGENT='none', VIADUCT_FABRIC=fabric)
    agent = start_agent(agent_path, fabric)
    try:
        done = subprocess.run(count_command(path, out), env=env, timeout=DEADLINE, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
    finally:
        agent.terminate()
        agent.wait(DEADLINE)
    if done.returncode:
        sys.exit(f'path under callgrind: exit {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout.splitlines()


def inclusive(file):
    """{function: instructions in it and in what it calls}, from the records of calls to it."""
    sums, callee = {}, None
    lines = iter(file.read_text(errors='replace').splitlines())
    for line in lines:
        if line.startswith('cfn='):
            callee = line[4:]
        elif line.startswith('calls='):
            cost = next(lines).split()
            sums[callee] = sums.get(callee, 0) + int(cost[1])
    return sums


def read_batches(lines, out):
    """{row of path.c: [(file, {function: instructions of a round})]}."""
    rows = {}
    for number, line in enumerate(lines[1:], start=1):
        file = Path(f'{out}.{number}')
        costs = {name: cost / ROUNDS for name, cost in inclusive(file).items()}
        rows.setdefault(line.split()[0], []).append((file, costs))
    return rows


def usual(batches, names):
    """(instructions, file) of the median batch: the engine's thread may disturb some batches."""
    counted = [(sum(costs.get(name, 0) for name in names), file) for file, costs in batches]
    median = statistics.median_low([count for count, _ in counted])
    return next((count, file) for count, file in counted if count == median)


def count(rows):
    """{figure: (instructions, file)}."""
    found = {}
    for name, row, calls in FIGURES:
        if usual(rows[row], SLOW_LOCK)[0] > 1:
            sys.exit(f'{name}: a lock of the path is taken the slow path each time, '
                     f'see callgrind_annotate --inclusive=yes {usual(rows[row], SLOW_LOCK)[1]}')
        found[name] = usual(rows[row], calls)
    return found


def count_once(args, out):
    lines = run_path(args.agent, args.path, out)
    if not re.fullmatch('biased yes', lines[0]):
        skip('valgrind, or the kernel, has no membarrier: locks would not be biased')
    return count(read_batches(lines, out))


# ---- the budget ----

def read_budget():
    lines = [l for l in BUDGET.read_text().splitlines() if l and not l.startswith('#')]
    return {name.strip(): int(value) for name, value in (l.rsplit(None, 1) for l in lines)}


def write_budget(found):
    head = [l for l in BUDGET.read_text().splitlines() if l.startswith('#')]
    rows = [f'{name:<30} {round(found[name][0]):5}' for name, _, _ in FIGURES]
    BUDGET.write_text('\n'.join(head + rows) + '\n')


def grew(found, budget):
    return [name for name, (now, _) in found.items() if now > budget[name] * (1 + SLACK)]


def compare(found, budget):
    """Prints the table; returns the figures that grew."""
    grown = grew(found, budget)
    print(f'{"instructions":<30} {"budget":>7} {"now":>9}')
    for name, (now, _) in found.items():
        allowed = budget[name]
        word = ''
        if name in grown:
            word = 'too many'
        elif now < allowed * (1 - SLACK):
            word = 'fewer: write it into budget.txt (--write)'
        print(f'{name:<30} {allowed:7} {now:9.1f} {(now / allowed - 1) * 100:+6.1f} %  {word}')
    return grown


def explain(grown, found):
    calls = {name: names for name, _, names in FIGURES}
    print(f'\nThe path grew by more than {SLACK:.0%}.  Where its instructions are:')
    for name in grown:
        print(f'  {name} ({" + ".join(calls[name])}):\n'
              f'    callgrind_annotate --inclusive=yes --tree=calling {found[name][1]}')
    print('The counts of a commit before are made by a build of it: meson test budget.\n'
          'What has to be so goes into tests/budget/budget.txt, by budget_test.py --write.')


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1].split('\n')[0])
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--build', default=BUILD)
    parser.add_argument('agent')
    parser.add_argument('path')
    parser.add_argument('scratch', type=Path)
    args = parser.parse_args()
    if args.build != BUILD:
        skip(f'counts are those of «{BUILD}» (compiler, processor, optimization, sanitizer), '
             f'this build is «{args.build}»')
    if shutil.which('valgrind') is None:
        skip('valgrind is not installed (apt-get install valgrind)')
    shutil.rmtree(args.scratch, ignore_errors=True)
    args.scratch.mkdir(parents=True)
    out = args.scratch / 'callgrind.out'
    found = count_once(args, out)
    if args.write:
        write_budget(found)
    for run in range(1, RUNS):
        if not grew(found, read_budget()):
            break
        again = count_once(args, out.with_name(f'{out.name}.again{run}'))
        found = {name: min(found[name], again[name]) for name in found}
    grown = compare(found, read_budget())
    if grown:
        explain(grown, found)
        return 1
    shutil.rmtree(args.scratch)
    return 0


if __name__ == '__main__':
    sys.exit(main())
