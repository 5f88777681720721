#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mail, hello, echo_server and vi_cp as programs: examples_test.py BUILD_EXAMPLES VI_FABRIC"""
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import tempfile
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
    """Starts a program and waits until it says that it is ready."""
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


def sparse(path):
    st = os.stat(path)
    return st.st_blocks * 512 < st.st_size // 2


def copies(top):
    src, dst = top + '/src', top + '/dst'
    make_source(src)
    os.mkdir(dst)
    with open(src + '/holes', 'wb') as f:
        f.truncate(70 << 20)
        f.seek(5 << 20)
        f.write(b'between')
    done = run(VI_CP, '-a', '-v', src, 'host1:' + dst, '--spawn')
    check('a tree is copied, all but a special file', done.returncode == 1 and
          'fifo: it is no file' in done.stderr and done.stderr.count('\n') == 1, str(done))
    check('it is the same tree', tree(src) == tree(dst + '/src'))
    check('its holes are kept', sparse(dst + '/src/holes') or not sparse(src + '/holes'))
    os.unlink(src + '/fifo')
    check('no bar without a terminal', '\r' not in done.stderr)
    check('SHA-256 printed for each file', done.stdout.count('  src/') == 8, done.stdout)
    done = run(VI_CP, '-a', src, 'host1:' + dst, '--spawn')
    check('it can be copied over itself', done.returncode == 0, done.stderr)
    check('and is still the same', tree(src) == tree(dst + '/src'))
    done = run(VI_CP, '-a', 'host1:' + src, dst + '/pulled', '--spawn')
    check('it can be pulled, to a new name', done.returncode == 0, done.stderr)
    check('and is the same', tree(src) == tree(dst + '/pulled'))
    check('with its holes', sparse(dst + '/pulled/holes') or not sparse(src + '/holes'))
    for top_of in (src, dst + '/src', dst + '/pulled'):
        os.chmod(top_of + '/sub/deep', 0o755)


def generated(top):
    """Files whose size the kernel does not tell, as it writes them when they are read."""
    files = [f for f in ('/proc/version', '/sys/kernel/mm/transparent_hugepage/enabled', '/sys/kernel/uevent_seqnum')
             if os.path.exists(f)]
    for name in files:
        with open(name, 'rb') as f:
            want = f.read()
        done = run(VI_CP, '-q', '--spawn', name, 'host1:' + top + '/generated')
        try:
            with open(top + '/generated', 'rb') as f:
                found = f.read()
            os.unlink(top + '/generated')
        except OSError:
            found = None
        check('a copy of ' + name, done.returncode == 0 and found == want, done.stderr)
    with open(top + '/nothing', 'wb'):
        pass
    done = run(VI_CP, '-q', '--spawn', top + '/nothing', 'host1:' + top + '/generated')
    check('a copy of an empty file', done.returncode == 0 and os.stat(top + '/generated').st_size == 0, done.stderr)


def as_cp_does(top):
    """Names, slashes and options have the meaning that they have for cp, scp and rsync."""
    here, there = top + '/here', top + '/there'
    os.makedirs(here + '/tree/below')
    os.mkdir(there)
    for name in ('one', 'two', 'tree/three', 'tree/below/four'):
        with open(os.path.join(here, name), 'w', encoding='utf-8') as f:
            f.write(name)
    os.chmod(here + '/one', 0o640)
    os.symlink('one', here + '/link')
    spawned = lambda *args, **more: subprocess.run(
        [VI_CP, '--spawn', '-q', *args], cwd=here, capture_output=True, text=True, timeout=DEADLINE,
        check=False, stdin=more.pop('stdin', subprocess.DEVNULL), **more)

    def contains(name, text):
        try:
            with open(os.path.join(there, name), encoding='utf-8') as f:
                return f.read() == text
        except OSError:
            return False

    def works(what, args, *found, **more):
        done = spawned(*args, **more)
        check(what, done.returncode == 0 and not done.stderr and
              all(contains(*pair) for pair in found), str(done))

    def fails(what, args, text):
        done = spawned(*args)
        check(what, done.returncode == 1 and text in done.stderr and
              done.stderr.count('\n') == 1, str(done))

    to = 'host1:' + there
    works('a new name', ['one', to + '/new'], ('new', 'one'))
    check('a new file is subject to the umask, and has its own time',
          os.stat(there + '/new').st_mode & 0o777 == 0o640 & ~umask() and
          os.stat(there + '/new').st_mtime_ns != os.stat(here + '/one').st_mtime_ns)
    works('-p keeps mode and time', ['-p', 'one', to + '/kept'], ('kept', 'one'))
    check('both', os.stat(there + '/kept').st_mtime_ns == os.stat(here + '/one').st_mtime_ns and
          os.stat(there + '/kept').st_mode & 0o777 == 0o640)
    works('an existing name is replaced', ['two', to + '/new'], ('new', 'two'))
    works('-n leaves it alone', ['-n', 'one', to + '/new'], ('new', 'two'))
    works('several into a directory', ['one', 'two', to], ('one', 'one'), ('two', 'two'))
    works('a directory that ends in a slash is made', ['one', to + '/made/'], ('made/one', 'one'))
    works('a link that is named is followed', ['link', to], ('link', 'one'))
    check('to a file', not os.path.islink(there + '/link'))
    works('-a keeps it', ['-a', 'link', to + '/a/'])
    check('as a link', os.path.islink(there + '/a/link'))
    fails('a directory without -r', ['tree', to], '-r copies directories')
    works('-r into a directory', ['-r', 'tree', to], ('tree/below/four', 'tree/below/four'))
    works('-r to a new name', ['-r', 'tree', to + '/wood'], ('wood/three', 'tree/three'))
    works('-r of the contents', ['-r', 'tree/', to + '/wood/in'], ('wood/in/three', 'tree/three'))
    check('and no more', not os.path.exists(there + '/wood/in/tree'))
    works('standard input', ['-', to + '/input'], ('input', ''))
    fails('standard input without a name', ['-', to], 'needs a name')
    read, write = os.pipe()
    os.write(write, b'piped')
    os.close(write)
    works('a pipe as standard input', ['-', to + '/piped'], ('piped', 'piped'), stdin=read)
    os.close(read)
    read, write = os.pipe()
    os.write(write, b'named')
    os.close(write)
    works('a pipe by name', ['/dev/fd/%d' % read, to + '/named'], ('named', 'named'),
          pass_fds=[read])
    os.close(read)
    os.chdir(here)
    works('pull of a file to a new name', ['host1:one', there + '/pulled'], ('pulled', 'one'))
    works('pull of several', ['host1:one', 'host1:two', there + '/many/'], ('many/two', 'two'))
    works('pull of a link that is named', ['host1:link', there + '/linked'], ('linked', 'one'))
    works('pull of a tree', ['-r', 'host1:tree', there + '/t'], ('t/three', 'tree/three'))
    works('pull of contents', ['-r', 'host1:tree/', there + '/t/u'], ('t/u/three', 'tree/three'))
    fails('pull of what is not there', ['host1:none', there], 'none: No such file')
    done = run(VI_CP, '--spawn', '--progress', '--stats', here + '/one', to)
    check('--progress without a terminal, --stats', '100 %' in done.stderr and
          'sender: reading' in done.stdout and 'receiver: writing' in done.stdout, str(done))


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def served(top):
    """A server reads and writes only files below its directory."""
    inside, outside = top + '/inside', top + '/outside'
    for folder in (inside, outside):
        os.mkdir(folder)
        with open(folder + '/file', 'w', encoding='utf-8') as f:
            f.write(folder)
    os.symlink('../outside', inside + '/door')
    os.symlink('../outside/file', inside + '/window')
    cases = (
        (0, ['host0:file', outside + '/got'], '', []),
        (1, ['host0:door/file', outside], 'Invalid cross-device link', []),
        (1, ['host0:window', outside], 'Invalid cross-device link', []),
        (1, ['host0:../outside/file', outside], 'Invalid cross-device link', []),
        (1, ['-r', 'host0:/', outside], 'Invalid cross-device link', []),
        (1, [inside + '/file', 'host0:../outside/x'], 'not a path below', []),
        (1, [inside + '/file', 'host0:door/x'], 'Not a directory', []),
        (1, [inside + '/file', 'host0:x'], 'takes nothing', ['--read-only']),
        (1, ['host0:file', outside], 'gives nothing', ['--write-only']),
        (0, ['-a', 'host0:', outside + '/all/'], '', ['--read-only']),
    )
    for code, args, text, options in cases:
        server = start(VI_CP, '--serve', inside, '--once', *options)
        done = run(VI_CP, '-q', *args)
        server.wait(timeout=DEADLINE)
        check('exit code %d and "%s" for %s' % (code, text, args[-2:]), done.returncode == code and
              text in done.stderr and done.stderr.count('\n') == (code != 0), str(done))
    check('a link inside stays a link', os.readlink(outside + '/all/window') == '../outside/file')
    check('nothing went out', not os.path.exists(outside + '/x'))


def odd_names(top):
    """A name from the other side plays no tricks on a terminal, nor is it two lines."""
    there, here, name = top + '/odd', top + '/taken', 'a\033[2J\nb'
    os.mkdir(there)
    with open(os.path.join(there, name), 'w', encoding='utf-8') as f:
        f.write('odd')
    pull = (VI_CP, '-r', '-v', 'host1:' + there, here, '--spawn')
    os.mkdir(here)
    done = run(*pull)
    got = os.path.join(here, 'odd', name)
    check('an odd name is copied and printed in one line', done.returncode == 0 and
          os.path.isfile(got) and done.stdout.count('odd/a?[2J?b\n') == 1 and
          '\033' not in done.stdout, str(done))
    os.unlink(got)
    os.mkdir(got)
    done = run(*pull)
    check('a complaint about it is one line', done.returncode == 1 and
          'odd/a?[2J?b: Is a directory' in done.stderr and done.stderr.count('\n') == 1, str(done))


def errors(top):
    src = top + '/src/one'
    cases = (
        (1, [top + '/missing', 'host1:' + top, '--spawn'], 'No such file'),
        (1, [src, 'host1:' + top + '/missing/x', '--spawn'], 'No such file'),
        (1, [src, 'nohost:x'], 'no such name'),
        (1, [src, 'nohost:x', '--spawn'], 'no such name'),
        (1, ['nohost:x', top], 'no such name'),
        (1, [src, 'host1:x', '--wait', '1'], 'none answered'),
        (2, [src], 'see vi_cp --help'),
        (2, [src, src], 'HOST:PATH sought'),
        (2, ['host0:a', 'host1:b'], 'one local side'),
        (2, ['host0:a', 'host1:b', top], 'one HOST'),
        (2, ['--wait', 'x', src, 'host1:x'], 'seconds'),
        (2, ['--serve', top, src], 'see vi_cp --help'),
        (0, ['--help'], ''),
        (0, ['--version'], ''),
    )
    for code, args, text in cases:
        done = run(VI_CP, *args)
        check('exit code %d and one line "%s" for %s' % (code, text, args[0]),
              done.returncode == code and text in done.stderr and
              done.stderr.count('\n') == (code != 0), str(done))


def temporaries(path):
    return [n for n in os.listdir(path) if '.vi_cp.' in n]


class Halted:
    """A sender that stops halfway: it reads from a FIFO that its user is slow to fill."""

    def __init__(self, *args, fifo, given=3 << 20):
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        self.proc = subprocess.Popen([VI_CP, '-r', *args], stdin=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
        self.end = open(fifo, 'wb', buffering=0) if given else None
        if given:
            self.end.write(bytes(given))

    def kill(self):
        self.proc.kill()
        self.proc.communicate()
        if self.end:
            self.end.close()

    def go_on(self):
        """Lets it run to its end; returns its exit code and output."""
        try:
            self.end.write(bytes(61 << 20))
        except BrokenPipeError:
            pass
        self.end.close()
        said = self.proc.communicate(timeout=DEADLINE)[1]
        return self.proc.returncode, said


def stopped(top, sources, fifo, given, under_way):
    """A server ended by a signal claims to have removed a file only when one was under way."""
    dst = top + '/stop'
    os.mkdir(dst)
    server = subprocess.Popen([VI_CP, '--serve', dst], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    server.stdout.readline()
    sender = Halted(*sources, 'host0:', fifo=fifo, given=given)
    check('a session begins', until(lambda: os.listdir(dst)))
    server.send_signal(signal.SIGTERM)
    said = server.communicate(timeout=DEADLINE)[1]
    sender.kill()
    check('a stopped server tells what it removed', 'stopped by a signal' in said and
          ('was removed' in said) == under_way, said)
    shutil.rmtree(dst)


def kills(top):
    huge, dst = top + '/huge', top + '/kill'
    os.mkdir(dst)
    os.mkdir(top + '/empty')
    stopped(top, [top + '/empty', huge], huge, 0, under_way=False)
    stopped(top, [huge], huge, 3 << 20, under_way=True)
    server = start(VI_CP, '--serve', dst)
    sender = Halted(huge, 'host0:', fifo=huge)
    check('a copy begins', until(lambda: temporaries(dst)))
    check('and is under way', sender.proc.poll() is None and not os.path.exists(dst + '/huge'))
    sender.kill()
    check('kill -9 of the sender removes the unfinished file', until(lambda: not os.listdir(dst)))
    sender = Halted(huge, 'host0:', fifo=huge)
    check('the next copy begins', until(lambda: temporaries(dst)))
    server.send_signal(signal.SIGKILL)
    server.wait()
    check('kill -9 of the receiver leaves the unfinished file', temporaries(dst))
    code, said = sender.go_on()
    check('the sender says so', code == 1 and 'is lost' in said, '%d %s' % (code, said))
    check('and nothing is under the final name', not os.path.exists(dst + '/huge'))
    server = start(VI_CP, '--serve', dst, '--once')
    check('the next server removes what was left', not temporaries(dst))
    done = run(VI_CP, top + '/src/one', 'host0:')
    check('and serves', done.returncode == 0 and filecmp.cmp(top + '/src/one', dst + '/one'))
    server.wait(timeout=DEADLINE)
    check('--once ends with the client', server.returncode == 0)


def mail():
    """The one that sends may be started first: it waits for the one that receives."""
    sender = subprocess.Popen([EXAMPLES + '/mail'], stdin=subprocess.DEVNULL, text=True,
                              stderr=subprocess.PIPE)
    said = sender.stderr.readline()
    receiver = subprocess.Popen([EXAMPLES + '/mailbox'], stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=dict(os.environ, VIADUCT_HOST='host1'))
    rest = sender.communicate(timeout=DEADLINE)[1]
    check('mail before mailbox', sender.returncode == 0 and 'no mailbox waits' in said and not rest, said + rest)
    if sender.returncode:
        receiver.kill()
    out, err = receiver.communicate(timeout=DEADLINE)
    check('mailbox', receiver.returncode == 0 and out == 'hello over there\n' and not err, out + err)


def others():
    done = run(EXAMPLES + '/hello')
    with open('/dev/full', 'wb') as full:
        lost = subprocess.run([EXAMPLES + '/hello'], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=DEADLINE)
    check('hello tells lost output', lost.returncode == 1 and
          'writing to standard output' in lost.stderr, str(lost))
    check('hello', done.returncode == 0 and 'client received: hello from the server' in done.stdout,
          str(done))
    # The server may not have counted off the first four clients when the next four come.
    server = subprocess.Popen([EXAMPLES + '/echo_server', '--until', '8', '--max', '8'], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server.stdout.readline()
    clients = [run(EXAMPLES + '/echo_server', '--client', 'host0', '-n', '4', '-c', '200') for _ in range(2)]
    good = not any(done.returncode for done in clients)
    if not good:
        server.kill()  # it would wait for the eighth
    try:
        said = server.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        server.kill()
        said = server.communicate()
    check('echo_server', good and server.returncode == 0, f'{clients} {said}')


def main():
    os.environ['VIADUCT_FABRIC'] = 'vi-cp-test-%d' % os.getpid()
    os.environ.pop('VIADUCT_HOST', None)
    fabric = start(VI_FABRIC, 'up', '--hosts', '2', '--foreground')
    top = tempfile.mkdtemp(prefix='vi_cp_test.')
    try:
        mail()
        others()
        copies(top)
        generated(top)
        as_cp_does(top)
        served(top)
        odd_names(top)
        errors(top)
        kills(top)
    finally:
        os.chdir('/')
        shutil.rmtree(top)
        fabric.send_signal(signal.SIGTERM)
        fabric.wait(timeout=DEADLINE)
    return 1 if failures else 0


sys.exit(main())
