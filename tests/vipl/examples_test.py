#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hello, echo_server and vi_cp as programs: examples_test.py BUILD_EXAMPLES VI_FABRIC"""
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

EXAMPLES, VI_FABRIC = sys.argv[1:3]
VI_CP = os.path.join(EXAMPLES, 'vi_cp')
DEADLINE = 60
failures = []


def check(what, good, more=''):
    print('ok  ' if good else 'FAIL', what, '' if good else more, flush=True)
    if not good:
        failures.append(what)


def run(*args, env=None):
    return subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=DEADLINE, env=dict(os.environ, **(env or {})))


def until(good):
    end = time.monotonic() + DEADLINE
    while not good():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def start(*args, env=None):
    """A program that says when it is ready."""
    proc = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL, env=dict(os.environ, **(env or {})))
    proc.stdout.readline()
    return proc


def tree(path):
    """Every name with its kind, mode, time and contents."""
    found = {}
    for folder, dirs, files in os.walk(path):
        for name in dirs + files:
            full = os.path.join(folder, name)
            st = os.lstat(full)
            if os.path.islink(full):
                found[os.path.relpath(full, path)] = ('link', os.readlink(full), st.st_mtime_ns)
            elif os.path.isdir(full):
                found[os.path.relpath(full, path)] = ('dir', st.st_mode, st.st_mtime_ns)
            elif os.path.isfile(full):
                with open(full, 'rb') as f:
                    found[os.path.relpath(full, path)] = (st.st_mode, st.st_mtime_ns, f.read())
    return found


def make_source(src):
    os.makedirs(src + '/sub/deep')
    os.makedirs(src + '/empty')
    for name, size in (('zero', 0), ('one', 1), ('mib-1', 2**20 - 1), ('mib', 2**20),
                       ('mib+1', 2**20 + 1), ('big name', 20 * 2**20 + 77), ('sub/deep/x', 5000)):
        with open(os.path.join(src, name), 'wb') as f:
            f.write(os.urandom(size))
    os.symlink('../zero', src + '/sub/link')
    os.symlink('nowhere', src + '/dangling')
    os.mkfifo(src + '/fifo')
    os.chmod(src + '/one', 0o600)
    os.utime(src + '/one', ns=(0, 981173106789012345))
    os.chmod(src + '/sub/deep', 0o555)
    os.utime(src + '/sub', ns=(0, 10**18))


def copies(top):
    src, dst = top + '/src', top + '/dst'
    make_source(src)
    os.mkdir(dst)
    done = run(VI_CP, '-v', src, 'host1:' + dst, '--spawn')
    check('a tree is copied, all but a special file', done.returncode == 1 and
          'fifo: not copied' in done.stderr and done.stderr.count('\n') == 1, str(done))
    check('it is the same tree', tree(src) == tree(dst + '/src'))
    os.unlink(src + '/fifo')
    check('no bar without a terminal', '\r' not in done.stderr)
    check('SHA-256 printed for each file', done.stdout.count('  src/') == 7, done.stdout)
    done = run(VI_CP, src, 'host1:' + dst, '--spawn')
    check('it can be copied over itself', done.returncode == 0, done.stderr)
    check('and is still the same', tree(src) == tree(dst + '/src'))
    os.chmod(src + '/sub/deep', 0o755)
    os.chmod(dst + '/src/sub/deep', 0o755)


def errors(top):
    src = top + '/src/one'
    cases = (
        (1, [top + '/missing', 'host1:' + top, '--spawn'], 'No such file'),
        (1, [src, 'host1:' + top + '/missing', '--spawn'], 'make it first'),
        (1, [src, 'nohost:x'], 'no such name'),
        (1, [src, 'host1:x', '--wait', '1'], 'none answered'),
        (2, [src], 'see vi_cp --help'),
        (2, [src, src], 'HOST:DIR sought'),
        (2, ['--wait', 'x', src, 'host1:x'], 'seconds'),
        (2, ['--serve', top, src], 'see vi_cp --help'),
        (0, ['--help'], ''),
        (0, ['--version'], ''),
    )
    for code, args, text in cases:
        done = run(VI_CP, *args)
        check('exit code %d and "%s" for %s' % (code, text, args[0]),
              done.returncode == code and text in done.stderr, str(done))


def temporaries(path):
    return [n for n in os.listdir(path) if '.vi_cp.' in n]


class Halted:
    """A sender that stops halfway: it draws its bar on a terminal that takes no output."""

    def __init__(self, *args):
        self.terminal, end = os.openpty()
        termios.tcflow(end, termios.TCOOFF)
        self.proc = subprocess.Popen([VI_CP, *args], stdin=subprocess.DEVNULL, stderr=end)
        self.end = end

    def kill(self):
        self.proc.kill()
        self.proc.wait()
        os.close(self.end)
        os.close(self.terminal)

    def go_on(self):
        """Lets it run; its exit code and what it said."""
        said = b''
        termios.tcflow(self.end, termios.TCOON)
        os.close(self.end)
        while True:
            try:
                part = os.read(self.terminal, 4096)
            except OSError:  # nobody has the other end any more
                part = b''
            if not part:
                break
            said += part
        os.close(self.terminal)
        return self.proc.wait(timeout=DEADLINE), said.decode()


def stopped(top, source, under_way):
    """A receiver ended by a signal claims to have removed a file only when one was under way."""
    dst = top + '/stop'
    os.mkdir(dst)
    receiver = subprocess.Popen([VI_CP, '--serve', dst], stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    receiver.stdout.readline()
    sender = Halted(source, 'host0:')
    check('a session begins', until(lambda: os.listdir(dst)))
    receiver.send_signal(signal.SIGTERM)
    said = receiver.communicate(timeout=DEADLINE)[1]
    sender.kill()
    check('a stopped receiver tells what it removed', 'stopped by a signal' in said and
          ('was removed' in said) == under_way, said)
    shutil.rmtree(dst)


def kills(top):
    huge, dst = top + '/huge', top + '/kill'
    os.mkdir(dst)
    with open(huge, 'wb') as f:
        f.truncate(64 << 20)
    os.mkdir(top + '/special')
    os.mkfifo(top + '/special/fifo')
    stopped(top, top + '/special', under_way=False)
    stopped(top, huge, under_way=True)
    receiver = start(VI_CP, '--serve', dst)
    sender = Halted(huge, 'host0:')
    check('a copy begins', until(lambda: temporaries(dst)))
    check('and is under way', sender.proc.poll() is None and not os.path.exists(dst + '/huge'))
    sender.kill()
    check('kill -9 of the sender removes the unfinished file', until(lambda: not os.listdir(dst)))
    sender = Halted(huge, 'host0:')
    check('the next copy begins', until(lambda: temporaries(dst)))
    receiver.send_signal(signal.SIGKILL)
    receiver.wait()
    check('kill -9 of the receiver leaves the unfinished file', temporaries(dst))
    code, said = sender.go_on()
    check('the sender says so', code == 1 and 'is lost' in said, '%d %s' % (code, said))
    check('and nothing is under the final name', not os.path.exists(dst + '/huge'))
    receiver = start(VI_CP, '--serve', dst, '--once')
    check('the next receiver removes what was left', not temporaries(dst))
    done = run(VI_CP, top + '/src/one', 'host0:')
    check('and serves', done.returncode == 0 and filecmp.cmp(top + '/src/one', dst + '/one'))
    receiver.wait(timeout=DEADLINE)
    check('--once ends with the sender', receiver.returncode == 0)


def others():
    done = run(EXAMPLES + '/hello')
    with open('/dev/full', 'wb') as full:
        lost = subprocess.run([EXAMPLES + '/hello'], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=DEADLINE)
    check('hello tells lost output', lost.returncode == 1 and
          'writing to standard output' in lost.stderr, str(lost))
    check('hello', done.returncode == 0 and 'client received: hello from the server' in done.stdout,
          str(done))
    server = start(EXAMPLES + '/echo_server', '--until', '8', '--max', '4')
    bad = [run(EXAMPLES + '/echo_server', '--client', 'host0', '-n', '4', '-c', '200').returncode
           for _ in range(2)]
    server.wait(timeout=DEADLINE)
    check('echo_server', bad == [0, 0] and server.returncode == 0, str(bad))


def main():
    os.environ['VIADUCT_FABRIC'] = 'vi-cp-test-%d' % os.getpid()
    os.environ.pop('VIADUCT_HOST', None)
    fabric = start(VI_FABRIC, 'up', '--hosts', '2', '--foreground')
    top = tempfile.mkdtemp(prefix='vi_cp_test.')
    try:
        others()
        copies(top)
        errors(top)
        kills(top)
    finally:
        shutil.rmtree(top)
        fabric.send_signal(signal.SIGTERM)
        fabric.wait(timeout=DEADLINE)
    return 1 if failures else 0


sys.exit(main())
