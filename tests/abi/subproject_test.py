#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""As a subproject of Meson, Viaduct builds its library and its agent, and more only by options.

usage: subproject_test.py SOURCE_ROOT PROGRAM.c
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from run_compat import start_agent  # noqa: E402

PARENT = """project('parent', 'c')
vipl = dependency('vipl', fallback: ['viaduct', 'libvipl_dep'])
executable('program', 'program.c', dependencies: vipl)
test('own', find_program('true'))
"""
FABRIC = f'subproject-{os.getpid()}'
PARTS = {'util', 'provider', 'vipl'}  # the folders from which something is compiled
INSTALLED = {'libvipl.a', 'libvipl.so', 'libvipl.so.1', 'libvipl.so.1.4.0', 'viaductd', 'vipl.h', 'vipl_ext.h',
             'vipl.pc'}


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode:
        sys.exit(f'{" ".join(map(str, command))}: exit {done.returncode}\n{done.stdout}')
    return done.stdout


def introspect(build, what):
    done = subprocess.run(['meson', 'introspect', str(build), f'--{what}'], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def programs(build):
    return {t['name'] for t in introspect(build, 'targets') if t['type'] == 'executable'}


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f'{what}: found {found}, expected {wanted}')


def part_of(target):
    """The first folder of a target of the subproject."""
    words = target.split('/')
    return words[2] if words[:2] == ['subprojects', 'viaduct'] else None


def check_default(build, root, version):
    expect('programs', programs(build), {'program', 'viaductd'})
    expect('tests', [t['name'] for t in introspect(build, 'tests')], ['own'])
    expect('benchmarks', introspect(build, 'benchmarks'), [])
    compiled = [target for target in run(['ninja', '-C', str(build), '-t', 'targets', 'all']).splitlines() if '.o: ' in target]
    expect('parts', {part for part in (part_of(target) for target in compiled) if part}, PARTS)
    run(['nice', 'ninja', '-C', str(build)])
    run(['meson', 'install', '--no-rebuild', '-C', str(build), '--destdir', str(root / 'there')])
    expect('installed', {p.name for p in (root / 'there').rglob('*') if not p.is_dir()}, INSTALLED)
    agent = start_agent(str(next(build.rglob('viaductd'))), FABRIC)
    try:
        env = dict(os.environ, VIADUCT_AGENT='none', VIADUCT_FABRIC=FABRIC)
        print(len(compiled), 'files compiled;', run([str(build / 'program'), version], env=env, timeout=100).strip())
    finally:
        agent.terminate()
        agent.wait(timeout=100)


def main(argv):
    source, program = argv[1:3]
    version = next(line.split("'")[1] for line in pathlib.Path(source, 'meson.build').read_text().splitlines()
                   if line.strip().startswith('version:'))
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        (root / 'subprojects').mkdir()
        (root / 'subprojects' / 'viaduct').symlink_to(source)
        (root / 'meson.build').write_text(PARENT)
        (root / 'program.c').write_text(pathlib.Path(program).read_text())
        run(['meson', 'setup', str(root / 'plain'), str(root)])
        check_default(root / 'plain', root, version)
        run(['meson', 'setup', str(root / 'more'), str(root), '-Dviaduct:tools=enabled'])
        if not {'program', 'viaductd', 'vi_info', 'vi_fabric', 'vi_lat'} <= programs(root / 'more'):
            sys.exit(f'-Dviaduct:tools=enabled: the programs are {programs(root / "more")}')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
