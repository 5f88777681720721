#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that scripts/demo builds the product without its tests: product_test.py SOURCE BUILD"""
import subprocess
import sys

WANTED = {'provider/agent/viaductd', 'tools/vi_fabric', 'tools/vi_info', 'perf/vi_lat', 'examples/hello'}


def main():
    source, build = sys.argv[1:3]
    done = subprocess.run(['sh', '-euc', f'. "{source}/scripts/common.sh"; root=$1; product_targets "$2"', f'{source}/scripts/demo',
                           source, build], capture_output=True, text=True, check=False)
    targets = set(done.stdout.split())
    missing, tests = WANTED - targets, {t for t in targets if t.startswith(('tests/', 'man/', '..', '/'))}
    print(f'{len(targets)} targets; missing: {missing or "none"}; of tests, pages or elsewhere: {tests or "none"}{done.stderr}')
    return 1 if done.returncode or missing or tests else 0


if __name__ == '__main__':
    sys.exit(main())
