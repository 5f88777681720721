#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a program on a fabric of its own, and checks that nothing is left of it.

usage: run_compat.py AGENT PROGRAM
"""
import os
import signal
import subprocess
import sys

DEADLINE = 60


def start_agent(path, fabric):
    """Starts the agent; returns once its line of text says that it listens."""
    ready, write = os.pipe()
    agent = subprocess.Popen([os.path.abspath(path), '--fabric', fabric, '--ready-fd', str(write)],
                             pass_fds=[write], stdin=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(ready) as said:
        line = said.readline()
    if not line:
        sys.exit(f'{path} did not start: exit {agent.wait(DEADLINE)}')
    return agent


def run(program, env):
    """Returns 0, or 1 with the reason printed."""
    with subprocess.Popen([program], env=env, stdin=subprocess.DEVNULL,
                          start_new_session=True) as process:
        try:
            code = process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            print(f'not finished after {DEADLINE} s')
            code = 1
        try:
            os.killpg(process.pid, signal.SIGKILL)
            print('processes were left')
            code = 1
        except ProcessLookupError:
            pass
    return 0 if code == 0 else 1


def main(argv):
    fabric = f'compat-{os.getpid()}'
    env = {name: value for name, value in os.environ.items() if not name.startswith('VIADUCT_')}
    agent = start_agent(argv[1], fabric)
    try:
        code = run(argv[2], dict(env, VIADUCT_AGENT='none', VIADUCT_FABRIC=fabric))
    finally:
        agent.terminate()
        ended = agent.wait(DEADLINE)
    if ended not in (0, -signal.SIGTERM):
        print(f'the agent ended with {ended}')
        code = 1
    return code


if __name__ == '__main__':
    sys.exit(main(sys.argv))
