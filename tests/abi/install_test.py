#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The installed tree is complete: a program finds header and library by pkg-config and runs.

usage: install_test.py BUILD_DIR SOURCE PREFIX README --cc COMPILER...

The examples are built by the lines that README.md and the installed examples/README.md print, and run.

Exit 77 (skipped) without pkg-config.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from run_compat import start_agent  # noqa: E402

FABRIC = f'installed-{os.getpid()}'


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=100, **options)
    if done.returncode:
        sys.exit(f'{" ".join(map(str, command))}: exit {done.returncode}\n{done.stdout}')
    return done.stdout


def find(root, name):
    found = sorted(root.rglob(name))
    if not found:
        sys.exit(f'{name} is not installed')
    return found[0]


def pkg_config(root, prefix, *arguments):
    pc = find(root, 'vipl.pc')
    moved = root / pathlib.Path(prefix).relative_to('/')
    env = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent))
    return run(['pkg-config', f'--define-variable=prefix={moved}', *arguments, 'vipl'],
               env=env).split()


def build(kind, root, prefix, source, compiler):
    """Links with libvipl.so (shared), libvipl.a and a shared C library (static), or no shared library (whole)."""
    static = [] if kind == 'shared' else ['--static']
    flags = pkg_config(root, prefix, '--cflags', '--libs', *static)
    if kind == 'static':
        flags = [part for flag in flags for part in
                 (['-Wl,-Bstatic', flag, '-Wl,-Bdynamic'] if flag == '-lvipl' else [flag])]
    elif kind == 'whole':
        flags.append('-static')
    exe = root / f'installed-{kind}'
    run(compiler + ['-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror', '-o', str(exe), source]
        + flags)
    return exe


def needed(exe):
    """The shared libraries that the program needs."""
    lines = run(['readelf', '-d', str(exe)]).splitlines()
    return [line.split('[')[1].rstrip(']') for line in lines if '(NEEDED)' in line]


def check_needed(kind, exe):
    found = needed(exe)
    wrong = {'shared': 'libvipl.so.1' not in found, 'whole': bool(found),
             'static': any('vipl' in name for name in found)}[kind]
    if wrong:
        sys.exit(f'the {kind} program needs {found}')


def shell_lines(text, first_word):
    """The lines of indented blocks that begin with a word."""
    return [line.strip() for line in text.splitlines()
            if line.startswith('    ' + first_word + ' ')]


def build_examples(root, prefix, readme, compiler):
    """Builds a copy of the installed examples by the lines that are printed; returns its folder."""
    installed = find(root, 'mailbox.c').parent
    copy = root / 'copy'
    shutil.copytree(installed, copy)
    text = pathlib.Path(readme).read_text(encoding='utf-8')
    lines = shell_lines(text, 'cc') + shell_lines((copy / 'README.md').read_text(encoding='utf-8'),
                                                  'cc')
    if len(lines) < 5:
        sys.exit(f'the README files show only {lines}')
    moved = root / pathlib.Path(prefix).relative_to('/')
    programs = root / 'programs'
    programs.mkdir()
    # A launcher such as ccache would call this script as its compiler, again and again.
    words = compiler[1:] if compiler[0].endswith('cache') else compiler
    for name, command in (('cc', ' '.join([shutil.which(words[0]), *words[1:]])),
                          ('pkg-config', f'{shutil.which("pkg-config")} '
                                         f'--define-variable=prefix={moved}')):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding='utf-8')
        (programs / name).chmod(0o755)
    env = dict(os.environ, PATH=f'{programs}:{os.environ["PATH"]}',
               PKG_CONFIG_PATH=f'{find(root, "vipl.pc").parent}')
    for line in lines:
        run(['sh', '-euc', line], cwd=copy, env=env)
        print('built:', line)
    return copy


def deliver_mail(root, examples, library):
    """Sends one message from host0 to host1, as README.md shows."""
    env = dict(os.environ, VIADUCT_FABRIC=FABRIC + '-mail', LD_LIBRARY_PATH=str(library),
               VIADUCT_AGENT=str(find(root, 'viaductd')))
    fabric = str(find(root, 'vi_fabric'))
    run([fabric, 'up', '--hosts', '2'], env=env)
    try:
        with subprocess.Popen([examples / 'mailbox'], env=dict(env, VIADUCT_HOST='host1'),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as mailbox:
            sent = subprocess.run([examples / 'mail'], env=env, timeout=100, check=False)
            if sent.returncode:
                mailbox.kill()
                sys.exit(f'mail: exit {sent.returncode}')
            got, told = mailbox.communicate(timeout=100)
            # It prints nothing when the sender disconnects: nothing was lost.
            if mailbox.returncode or got != 'hello over there\n' or told:
                sys.exit(f'mailbox: exit {mailbox.returncode}, received {got!r}, told {told!r}')
    finally:
        run([fabric, 'down'], env=env)


def main(argv):
    build_dir, source, prefix, readme = argv[1:5]
    compiler = argv[argv.index('--cc') + 1:]
    if not shutil.which('pkg-config'):
        return 77
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        run(['meson', 'install', '--no-rebuild', '--quiet', '-C', build_dir,
             '--destdir', directory])
        library = find(root, 'libvipl.so.1').parent
        find(root, 'VipPostSend.3')
        find(root, 'vipl.7')
        headers = {p.name for p in find(root, 'vipl.h').parent.iterdir()}
        expected = {'vipl.h', 'vipl_ext.h'}
        if list(root.rglob('libviaduct-shmem.so')):
            expected |= {'shmem.h', 'shmemx.h', 'pshmem.h', 'mpp'}
        if list(root.rglob('libvistream.so')):
            expected |= {'viaduct'}
        if headers != expected:
            sys.exit(f'installed headers are {sorted(headers)}, expected {sorted(expected)}')
        version = pkg_config(root, prefix, '--modversion')
        find(root, 'libvipl.a')
        agent = start_agent(str(find(root, 'viaductd')), FABRIC)
        try:
            for kind in ('shared', 'static', 'whole'):
                exe = build(kind, root, prefix, source, compiler)
                check_needed(kind, exe)
                env = dict(os.environ, VIADUCT_AGENT='none', VIADUCT_FABRIC=FABRIC)
                env.pop('LD_LIBRARY_PATH', None)
                if kind == 'shared':
                    env['LD_LIBRARY_PATH'] = str(library)
                print(kind, run([str(exe)] + version, env=env).strip())
            deliver_mail(root, build_examples(root, prefix, readme, compiler), library)
        finally:
            agent.terminate()
            agent.wait(timeout=100)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
