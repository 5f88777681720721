# SPDX-License-Identifier: BSD-2-Clause
"""Cases of twins.py for calls and options that few programs use."""
import array
import contextlib
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import tempfile
import termios
import threading
import time

from twins_pair import LIBC, PATIENCE, answer, no_answer, pair, poll, readable, ready_bytes

SIOCATMARK = 0x8905
SO_PEEK_OFF, TCP_REPAIR, TCP_ULP, TCP_FASTOPEN_CONNECT = 42, 19, 31, 30
RWF_NOWAIT, RWF_DSYNC = 8, 2


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Message(ctypes.Structure):
    """struct mmsghdr"""
    _fields_ = [("name", ctypes.c_void_p), ("name_size", ctypes.c_uint), ("vectors", ctypes.POINTER(Vector)), ("count", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("control_size", ctypes.c_size_t), ("flags", ctypes.c_long), ("size", ctypes.c_uint)]


def called(function, *args):
    """The result of a C function, or the name of its error."""
    ctypes.set_errno(0)
    rc = function(*args)
    return rc if rc >= 0 else errno.errorcode.get(ctypes.get_errno())


def vectors(buffers):
    return (Vector * len(buffers))(*[(ctypes.addressof(b), len(b)) for b in buffers])


def messages(*all_buffers):
    made = (Message * len(all_buffers))()
    made.kept = all_buffers
    for m, buffers in zip(made, all_buffers):
        m.vectors, m.count = vectors(buffers), len(buffers)
    return made


def room(size):
    return (ctypes.c_char * size)()


def text(data):
    return (ctypes.c_char * len(data))(*data)


def moved(a, b):
    """Exchanges some bytes, during which a pair is promoted."""
    for _ in range(3):
        a.send(b"x")
        b.recv(1)
        b.send(b"x")
        a.recv(1)


def case_linger_that_was_set_before_the_connection(a, b):
    """SO_LINGER {1, 0} of a listener, and of a socket that is not connected yet: the close resets."""
    address, resets = a.getsockname()[0], struct.pack("ii", 1, 0)
    for of_listener in (True, False):
        with socket.socket() as listener, socket.socket() as one:
            (listener if of_listener else one).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, resets)
            listener.bind((address, 0))
            listener.listen()
            one.bind((address, 0))
            one.connect(listener.getsockname())
            with listener.accept()[0] as other:
                moved(one, other)
                closed, left = (other, one) if of_listener else (one, other)
                closed.close()
                yield readable(left), answer(left.recv, 1)


def option(s, name, *value):
    return answer(s.setsockopt, socket.SOL_SOCKET, name, *value)


def fill(s):
    """Sends without blocking until there is no room for one byte, and not a moment later: how many bytes."""
    sent, piece, full = 0, 65536, 0
    while full < 3:
        n = answer(s.send, bytes(piece), socket.MSG_DONTWAIT)
        if isinstance(n, int):
            sent, full = sent + n, 0
        elif piece > 1:
            piece //= 2
        else:
            full += 0 if poll(s, select.POLLOUT, 20) else 1
    return sent


def drain(s, size):
    while size:
        size -= len(s.recv(min(size, 65536)))


# ---- urgent bytes ----

def at_mark(s):
    at = array.array("i", [9])
    fcntl.ioctl(s.fileno(), SIOCATMARK, at)
    return at[0], called(LIBC.sockatmark, s.fileno())


def case_the_mark_comes_after_bytes_that_are_unread(a, b):
    moved(a, b)
    a.send(b"abc")
    yield ready_bytes(b, 3)
    yield a.send(b"u", socket.MSG_OOB)
    yield poll(b, select.POLLPRI, PATIENCE)
    yield at_mark(b), ready_bytes(b, 3), poll(b, select.POLLIN | select.POLLPRI)
    yield b.recv(2), at_mark(b)
    yield b.recv(100), at_mark(b)
    yield b.recv(1, socket.MSG_OOB), at_mark(b)
    a.send(b"def")
    yield b.recv(100), at_mark(b)


def case_bytes_are_read_up_to_the_mark(a, b):
    moved(a, b)
    a.send(b"abc")
    a.send(b"u", socket.MSG_OOB)
    a.send(b"def")
    yield poll(b, select.POLLPRI, PATIENCE)
    yield b.recv(100, socket.MSG_PEEK)
    yield b.recv(100, socket.MSG_WAITALL)
    yield at_mark(b)
    yield b.recv(100)
    yield at_mark(b)


def case_urgent_byte_of_a_connection_that_is_young(a, b):
    a.send(b"abc")
    a.send(b"u", socket.MSG_OOB)
    yield poll(b, select.POLLPRI, PATIENCE), at_mark(b)
    yield b.recv(100), at_mark(b), b.recv(9, socket.MSG_OOB)


def case_the_mark_comes_after_bytes_that_the_library_keeps(a, b):
    a.send(b"abc")
    yield readable(b)  # the pair is promoted during this, and what had come by TCP is kept
    a.send(b"u", socket.MSG_OOB)
    yield poll(b, select.POLLPRI, PATIENCE)
    yield at_mark(b), ready_bytes(b, 3), at_mark(b)
    yield b.recv(3), at_mark(b)


def case_select_of_an_urgent_byte(a, b):
    moved(a, b)
    yield [bool(x) for x in select.select([], [], [b], 0)]
    a.send(b"abc")
    later = threading.Thread(target=a.send, args=(b"u", socket.MSG_OOB))
    later.start()
    yield [bool(x) for x in select.select([], [], [b], PATIENCE / 1000)]
    later.join()
    yield b.recv(1, socket.MSG_OOB), [bool(x) for x in select.select([], [], [b], 0)]


def case_epoll_of_an_urgent_byte(a, b):
    moved(a, b)
    with select.epoll() as level, select.epoll() as edge:
        level.register(b, select.EPOLLPRI)
        edge.register(b, select.EPOLLPRI | select.EPOLLIN | select.EPOLLET)
        a.send(b"abc")
        yield [ev for _, ev in edge.poll(PATIENCE / 1000)]
        later = threading.Thread(target=a.send, args=(b"u", socket.MSG_OOB))
        later.start()
        yield [ev for _, ev in level.poll(PATIENCE / 1000)]
        later.join()
        yield [ev for _, ev in level.poll(PATIENCE / 1000)]
        told = 0
        while not told & select.EPOLLPRI:
            told |= sum(ev for _, ev in edge.poll(PATIENCE / 1000))
        yield told
        yield b.recv(1, socket.MSG_OOB), [ev for _, ev in level.poll(0)]


# ---- bytes on both sides of a change of path ----

def case_peeks_and_counts_go_on_after_a_change_of_path(a, b):
    moved(a, b)
    a.send(b"abc")
    yield ready_bytes(b, 3), option(a, socket.SO_OOBINLINE, 1)  # which moves the connection to the kernel
    a.send(b"def")
    yield ready_bytes(b, 6)
    yield b.recv(6, socket.MSG_PEEK | socket.MSG_WAITALL), b.recv(100, socket.MSG_PEEK)
    parts = [bytearray(2), bytearray(2), bytearray(9)]
    yield b.recvmsg_into(parts, 0, socket.MSG_PEEK)[0], [bytes(p) for p in parts]
    yield b.recv(1), b.recv(5, socket.MSG_PEEK | socket.MSG_WAITALL), ready_bytes(b, 5)
    option(b, socket.SO_RCVLOWAT, 5)
    yield poll(b, select.POLLIN, PATIENCE), b.recv(5, socket.MSG_WAITALL), ready_bytes(b, 0)


def case_close_after_the_last_byte_before_a_change_of_path(a, b):
    """The mark that tells of the change is not for the program, and no unread byte of the kernel's either."""
    for size in (1, 3, 5000):
        one, two = pair(a.getsockname()[0])
        moved(one, two)
        one.send(bytes(size))
        child = os.fork()
        if child == 0:
            os._exit(0)
        yield os.waitpid(child, 0)[1], len(two.recv(size, socket.MSG_WAITALL))
        yield two.close(), readable(one), answer(one.recv, 1)
        one.close()


# ---- vectors and several messages ----

def case_readv_and_writev(a, b):
    yield os.writev(a.fileno(), [b"ab", b"", b"cdef", b"g"])
    yield ready_bytes(b, 7)
    parts = [bytearray(3), bytearray(0), bytearray(2)]
    yield os.readv(b.fileno(), parts), [bytes(p) for p in parts]
    yield os.readv(b.fileno(), parts), [bytes(p) for p in parts]
    yield answer(os.readv, b.fileno(), [bytearray(1)] * 1025), answer(os.writev, a.fileno(), [b"x"] * 1025)
    yield called(LIBC.writev, a.fileno(), None, 0), called(LIBC.readv, b.fileno(), None, -1)


def case_preadv2_and_pwritev2(a, b):
    moved(a, b)
    data, got = text(b"abcdef"), room(6)  # so that none of the reads waits
    at, v = ctypes.c_long(-1), vectors([data])
    yield called(LIBC.preadv2, b.fileno(), vectors([got]), 1, at, RWF_NOWAIT)
    for flags in (0, RWF_NOWAIT, RWF_DSYNC, 1 << 30):
        yield called(LIBC.pwritev2, a.fileno(), v, 1, at, flags)
    yield ready_bytes(b, 18)
    for flags in (0, RWF_NOWAIT, RWF_DSYNC, 1 << 30):
        yield called(LIBC.preadv2, b.fileno(), vectors([got]), 1, at, flags), bytes(got)
    yield called(LIBC.preadv2, b.fileno(), v, 1, ctypes.c_long(0), 0), called(LIBC.pwritev2, a.fileno(), v, 1, ctypes.c_long(0), 0)


def case_several_messages(a, b):
    sent = messages([text(b"ab"), text(b"c")], [], [text(b"defg")], [text(b"h")])
    yield called(LIBC.sendmmsg, a.fileno(), sent, 4, 0), [m.size for m in sent]
    yield ready_bytes(b, 8)
    rooms = [room(2), room(1), room(3), room(9), room(9)]
    got = messages(rooms[:2], *[[r] for r in rooms[2:]])
    yield called(LIBC.recvmmsg, b.fileno(), got, 2, 0, None), [m.size for m in got], [r.value for r in rooms]
    yield called(LIBC.recvmmsg, b.fileno(), got, 4, 0x10000, None), [m.size for m in got], [r.value for r in rooms]  # MSG_WAITFORONE
    yield called(LIBC.recvmmsg, b.fileno(), got, 4, socket.MSG_DONTWAIT, None)
    yield called(LIBC.sendmmsg, a.fileno(), sent, 0, 0), called(LIBC.recvmmsg, b.fileno(), got, 0, 0, None)
    a.shutdown(socket.SHUT_WR)
    yield called(LIBC.sendmmsg, a.fileno(), sent, 4, socket.MSG_NOSIGNAL)
    yield called(LIBC.recvmmsg, b.fileno(), got, 2, 0, None), [m.size for m in got[:2]]


# ---- signals ----

@contextlib.contextmanager
def held_back(number):
    """The signal waits until it is asked for: yields a function that says whether it has come."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    old = signal.signal(number, lambda *_: None)
    try:
        yield lambda seconds=0: signal.sigtimedwait([number], seconds) is not None
    finally:
        while signal.sigtimedwait([number], 0):
            pass
        signal.signal(number, old)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def case_sigpipe(a, b):
    moved(a, b)
    a.shutdown(socket.SHUT_WR)
    r, w = os.pipe()
    os.write(w, b"x")
    with tempfile.TemporaryFile() as f, held_back(signal.SIGPIPE) as came:
        f.write(b"x")
        f.flush()
        for call in (lambda: a.send(b"x"), lambda: a.send(b"x", socket.MSG_NOSIGNAL), lambda: os.write(a.fileno(), b"x"),
                     lambda: os.writev(a.fileno(), [b"x", b"y"]), lambda: a.sendmsg([b"x"]), lambda: a.sendto(b"x", b.getsockname()),
                     lambda: os.sendfile(a.fileno(), f.fileno(), 0, 1), lambda: os.splice(r, a.fileno(), 1)):
            yield answer(call), came()
        yield called(LIBC.sendmmsg, a.fileno(), messages([text(b"x")]), 1, 0), came()
    os.close(r)
    os.close(w)


def case_sigpipe_after_a_reset(a, b):
    moved(a, b)
    a.send(b"unread")
    readable(b)
    b.close()
    poll(a, select.POLLIN, PATIENCE)
    with held_back(signal.SIGPIPE) as came:
        yield answer(a.send, b"x"), came()
        yield answer(a.send, b"x"), came()


class Spec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("ns", ctypes.c_long)]


class Entry(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("found", ctypes.c_short)]


def case_masks_of_polls(a, b):
    moved(a, b)
    ran, none, number = [], room(128), signal.SIGUSR1
    old = signal.signal(number, lambda *_: ran.append(1))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    entry, bits = Entry(b.fileno(), select.POLLIN), room(128)

    def selected(spec):
        bits[b.fileno() // 8] = 1 << b.fileno() % 8
        return called(LIBC.pselect, b.fileno() + 1, bits, None, None, spec, none)
    with select.epoll() as e:
        e.register(b, select.EPOLLIN)
        calls = (lambda spec: called(LIBC.ppoll, ctypes.byref(entry), ctypes.c_ulong(1), spec, none, ctypes.c_long(8)), selected,
                 lambda spec: called(LIBC.epoll_pwait, e.fileno(), room(12), 1, 0 if spec else -1, none))
        for call in calls:
            os.kill(os.getpid(), number)
            yield call(None), len(ran)
            os.kill(os.getpid(), number)
            yield call(ctypes.byref(Spec(0, 0))), len(ran)
            yield call(ctypes.byref(Spec(0, 1000))) if call is not calls[2] else 0, len(ran)
        a.send(b"x")
        readable(b)
        for call in calls:
            os.kill(os.getpid(), number)
            yield call(None), len(ran)
            yield call(ctypes.byref(Spec(0, 0))), len(ran)
    signal.sigtimedwait([number], 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    signal.signal(number, old)


def case_sigio(a, b):
    moved(a, b)
    with held_back(signal.SIGIO) as came:
        fcntl.fcntl(b, fcntl.F_SETOWN, os.getpid())
        yield fcntl.fcntl(b, fcntl.F_SETFL, fcntl.fcntl(b, fcntl.F_GETFL) | os.O_ASYNC)
        came()
        a.send(b"abc")
        yield came(PATIENCE / 1000), b.recv(3, socket.MSG_WAITALL)
        fcntl.fcntl(b, fcntl.F_SETFL, fcntl.fcntl(b, fcntl.F_GETFL) & ~os.O_ASYNC)
        yield fcntl.ioctl(b.fileno(), 0x5452, struct.pack("i", 1))  # FIOASYNC
        while came():
            pass
        a.send(b"def")
        yield came(PATIENCE / 1000), b.recv(3, socket.MSG_WAITALL)
        fcntl.ioctl(b.fileno(), 0x5452, struct.pack("i", 0))


# ---- time limits, sendfile, splice ----

def case_send_timeout(a, b):
    moved(a, b)
    option(a, socket.SO_SNDTIMEO, struct.pack("ll", 0, 30000))
    n = a.send(bytes(32 << 20))
    yield 0 < n < 32 << 20
    while (more := answer(a.send, b"x")) == 1:
        n += 1
    yield more
    drain(b, n)
    yield a.send(b"more"), b.recv(4, socket.MSG_WAITALL)


def case_sendfile(a, b):
    moved(a, b)
    data = bytes(range(251)) * 1000
    with tempfile.TemporaryFile() as f:
        f.write(data)
        f.flush()
        f.seek(1000)
        yield os.sendfile(a.fileno(), f.fileno(), None, 500), os.lseek(f.fileno(), 0, os.SEEK_CUR)
        yield b.recv(500, socket.MSG_WAITALL) == data[1000:1500]
        yield os.sendfile(a.fileno(), f.fileno(), 7, 100000), os.lseek(f.fileno(), 0, os.SEEK_CUR)
        yield b.recv(100000, socket.MSG_WAITALL) == data[7:100007]
        yield os.sendfile(a.fileno(), f.fileno(), len(data) - 10, 100), b.recv(10, socket.MSG_WAITALL) == data[-10:]
        yield os.sendfile(a.fileno(), f.fileno(), len(data), 100), answer(os.sendfile, a.fileno(), f.fileno(), -1, 1)
        yield os.sendfile(a.fileno(), f.fileno(), 0, 0)
        yield answer(os.sendfile, f.fileno(), b.fileno(), None, 1), answer(os.sendfile, a.fileno(), a.fileno(), None, 1)
        a.setblocking(False)
        sent, at = fill(a), len(data) - 100
        while isinstance(n := answer(os.sendfile, a.fileno(), f.fileno(), at, 100), int):
            sent += n
        yield n
        drain(b, sent)
        poll(a, select.POLLOUT, PATIENCE)
        yield os.sendfile(a.fileno(), f.fileno(), at, 100), b.recv(100, socket.MSG_WAITALL) == data[-100:]


def case_splice_from_a_pipe(a, b):
    moved(a, b)
    r, w = os.pipe()
    yield answer(os.splice, r, a.fileno(), 10, None, None, os.SPLICE_F_NONBLOCK)
    os.write(w, b"abcdef")
    yield os.splice(r, a.fileno(), 4), b.recv(4, socket.MSG_WAITALL)
    yield os.splice(r, a.fileno(), 100, None, None, os.SPLICE_F_MORE), b.recv(2, socket.MSG_WAITALL)
    yield answer(os.splice, r, a.fileno(), 10, 0)
    yield os.splice(r, a.fileno(), 0)
    big, got = bytes(range(256)) * 1000, b""
    writer = threading.Thread(target=lambda: (os.write(w, big), os.close(w)))
    writer.start()
    sent = 0
    while n := os.splice(r, a.fileno(), 1 << 20):
        sent += n
        while len(got) < sent:
            got += b.recv(sent - len(got))
    writer.join()
    yield got == big, os.splice(r, a.fileno(), 10)
    os.close(r)


def case_splice_into_a_full_connection(a, b):
    moved(a, b)
    a.setblocking(False)
    sent = fill(a)
    r, w = os.pipe()
    os.write(w, b"abc")
    while isinstance(n := answer(os.splice, r, a.fileno(), 3), int):
        sent += n
        os.write(w, bytes(n))
    yield n, answer(os.splice, r, a.fileno(), 3, None, None, os.SPLICE_F_NONBLOCK)
    drain(b, sent)
    poll(a, select.POLLOUT, PATIENCE)
    yield os.splice(r, a.fileno(), 3), len(b.recv(3, socket.MSG_WAITALL))
    a.shutdown(socket.SHUT_WR)
    os.write(w, b"d")
    with held_back(signal.SIGPIPE):
        yield answer(os.splice, r, a.fileno(), 1)
    yield answer(b.recv, 1)
    os.close(r)
    os.close(w)


# ---- epoll ----

def case_epoll_exclusive(a, b):
    moved(a, b)
    with select.epoll() as one, select.epoll() as two:
        for e in (one, two):
            yield e.register(b, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        yield answer(one.modify, b, select.EPOLLIN), answer(one.modify, b, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        yield answer(two.register, a, select.EPOLLIN | select.EPOLLEXCLUSIVE | select.EPOLLONESHOT)
        a.send(b"x")
        yield [ev for _, ev in one.poll(PATIENCE / 1000)]
        b.recv(1)
        yield [ev for _, ev in one.poll(0)], [ev for _, ev in two.poll(0)]
        one.unregister(b)
        a.send(b"x")
        yield [ev for _, ev in two.poll(PATIENCE / 1000)]


def case_epoll_end_of_reading(a, b):
    moved(a, b)
    with select.epoll() as e, select.epoll() as edge, select.epoll() as bare:
        e.register(b, select.EPOLLRDHUP | select.EPOLLIN)
        edge.register(b, select.EPOLLRDHUP | select.EPOLLET)
        bare.register(b, 0)
        yield [[ev for _, ev in s.poll(0)] for s in (e, edge, bare)]
        a.send(b"abc")
        a.shutdown(socket.SHUT_WR)
        yield [ev for _, ev in edge.poll(PATIENCE / 1000)]
        yield [ev for _, ev in edge.poll(0)]
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]
        yield b.recv(100), [ev for _, ev in e.poll(0)]
        b.shutdown(socket.SHUT_WR)
        yield [ev for _, ev in bare.poll(PATIENCE / 1000)]
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]


def events(e, wait=PATIENCE):
    return [ev for _, ev in e.poll(wait / 1000)]


def case_epoll_taken_out_and_added(a, b):
    moved(a, b)
    for more in (0, select.EPOLLET, select.EPOLLONESHOT):
        with select.epoll() as e:
            for _ in range(3):
                e.register(b, select.EPOLLIN | more)
                yield events(e, 0), e.unregister(b)
            yield answer(e.unregister, b), answer(e.modify, b, select.EPOLLIN), e.register(b, select.EPOLLOUT | more)
            yield events(e), answer(e.register, b, select.EPOLLIN), e.unregister(b)
            a.send(b"xy")
            readable(b)
            yield events(e, 0), e.register(b, select.EPOLLIN | more), events(e)
            yield e.unregister(b), e.register(b, select.EPOLLIN | more), events(e), b.recv(1)
            yield e.modify(b, select.EPOLLIN | more), events(e), b.recv(1)
            yield e.modify(b, select.EPOLLIN | more), events(e, 0)


def case_epoll_taken_out_before_the_end(a, b):
    moved(a, b)
    with select.epoll() as e, select.epoll() as once_told:
        for s in (e, once_told):
            s.register(b, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
            s.poll(0)
        e.unregister(b)
        a.shutdown(socket.SHUT_WR)
        yield events(once_told), events(e, 0), b.recv(1)
        b.shutdown(socket.SHUT_WR)
        poll(b, 0, PATIENCE)
        yield events(once_told), events(e, 0), e.register(b, 0), events(e), e.unregister(b), events(e, 0)
        yield e.register(b, select.EPOLLIN), events(e), e.modify(b, select.EPOLLET), events(e), events(e, 0)


def case_epoll_taken_out_and_closed(a, b):
    """The number of a closed descriptor is another socket's in the same set."""
    moved(a, b)
    first, second = socket.socketpair()
    with select.epoll() as e:
        e.register(b, select.EPOLLIN)
        e.poll(0)
        e.unregister(b)
        copy = b.dup()
        number = b.fileno()
        b.close()
        os.dup2(first.fileno(), number)
        yield e.register(number, select.EPOLLIN), events(e, 0)
        copy.close()
        yield second.send(b"x"), events(e), a.recv(1)
        os.close(number)
    first.close()
    second.close()


def case_epoll_taken_out_then_shared(a, b):
    moved(a, b)
    with select.epoll() as e:
        e.register(b, select.EPOLLIN)
        e.poll(0)
        e.unregister(b)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                os._exit(0 if answer(e.register, b.fileno(), select.EPOLLIN) is None else 1)
            os._exit(2)
        yield os.waitpid(child, 0)[1], answer(e.register, b, select.EPOLLIN), e.unregister(b)
        a.send(b"x")
        yield readable(b), events(e, 0), e.register(b, select.EPOLLIN | select.EPOLLEXCLUSIVE), events(e)
        yield answer(e.modify, b, select.EPOLLIN), b.recv(1)


def case_epoll_taken_out_and_added_exclusively(a, b):
    moved(a, b)
    with select.epoll() as e:
        for more in (0, select.EPOLLEXCLUSIVE, 0):
            yield e.register(b, select.EPOLLIN | more), a.send(b"x"), events(e), b.recv(1)
            yield answer(e.modify, b, select.EPOLLIN), e.unregister(b), events(e, 0)


def case_epoll_taken_out_then_demoted(a, b):
    moved(a, b)
    with select.epoll() as e:
        e.register(b, select.EPOLLIN)
        e.poll(0)
        e.unregister(b)
        a.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        b.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        for _ in range(200):
            a.send(b"x")
            b.recv(1)
            b.send(b"y")
            a.recv(1)
        yield events(e, 0), a.send(b"z"), readable(b), events(e, 0), e.register(b, select.EPOLLIN), events(e), b.recv(1), events(e, 0)
        yield e.unregister(b), a.send(b"z"), readable(b), events(e, 0), e.register(b, select.EPOLLIN), events(e)


# ---- descriptors that others get ----

def case_a_socket_is_passed(a, b):
    moved(a, b)
    here, there = socket.socketpair()
    yield socket.send_fds(here, [b"x"], [b.fileno()])
    other = socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0])
    b.close()
    a.send(b"abc")
    yield other.recv(3, socket.MSG_WAITALL), other.send(b"def"), a.recv(3, socket.MSG_WAITALL)
    other.close()
    yield a.recv(1)
    here.close()
    there.close()


def case_a_child_gets_a_socket(a, b):
    moved(a, b)
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        other = socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0])
        data = other.recv(3, socket.MSG_WAITALL)
        other.send(data)
        os._exit(0)
    one, two = pair(a.getsockname()[0])
    moved(one, two)
    sent = messages([text(b"x")])
    control = struct.pack("QIIi4x", 20, socket.SOL_SOCKET, socket.SCM_RIGHTS, two.fileno())
    sent[0].control, sent[0].control_size = ctypes.addressof(kept := text(control)), len(kept)
    yield called(LIBC.sendmmsg, here.fileno(), sent, 1, 0)
    two.close()
    one.send(b"abc")
    yield one.recv(3, socket.MSG_WAITALL), one.recv(1)
    os.waitpid(child, 0)
    one.close()
    here.close()
    there.close()


def case_dprintf(a, b):
    moved(a, b)
    yield LIBC.dprintf(a.fileno(), b"%d and %s", 5, b"more"), b.recv(10, socket.MSG_WAITALL)
    yield a.send(b"again"), b.recv(5, socket.MSG_WAITALL), b.send(b"back"), a.recv(4, socket.MSG_WAITALL)


def case_freopen_ends_the_connection(a, b):
    moved(a, b)
    f = LIBC.fdopen(b.detach(), b"w")
    LIBC.fputs(b"last", ctypes.c_void_p(f))
    LIBC.freopen.restype = ctypes.c_void_p
    f = LIBC.freopen(b"/dev/null", b"w", ctypes.c_void_p(f))
    yield a.recv(4, socket.MSG_WAITALL), a.recv(1)
    LIBC.fclose(ctypes.c_void_p(f))


# ---- connect ----

def case_connect_without_blocking(a, b):
    host = a.getsockname()[0]
    with socket.socket() as listener, socket.socket() as s:
        listener.bind((host, 0))
        listener.listen()
        s.bind((host, 0))
        s.setblocking(False)
        yield s.connect_ex(listener.getsockname()) in (errno.EINPROGRESS, 0)
        yield poll(s, select.POLLOUT, PATIENCE), s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        with listener.accept()[0] as other:
            yield errno.errorcode.get(s.connect_ex(listener.getsockname())), errno.errorcode.get(s.connect_ex(listener.getsockname()))
            yield s.send(b"abc"), other.recv(3, socket.MSG_WAITALL)


def case_connect_to_nobody_without_blocking(a, b):
    with socket.socket() as closed, socket.socket() as s:
        closed.bind((a.getsockname()[0], 0))
        s.setblocking(False)
        yield s.connect_ex(closed.getsockname()) in (errno.EINPROGRESS, errno.ECONNREFUSED)
        yield poll(s, select.POLLIN | select.POLLOUT | select.POLLRDHUP, PATIENCE)
        s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        yield s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), answer(s.recv, 1), answer(s.send, b"x", socket.MSG_NOSIGNAL)


def case_connect_that_waits(a, b):
    host, kept = a.getsockname()[0], []
    with socket.socket() as listener:
        listener.bind((host, 0))
        listener.listen(0)
        for _ in range(3):  # the first ones fill the queue of the listener, the last one waits
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(listener.getsockname())
            kept.append(s)
        yield errno.errorcode.get(s.connect_ex(listener.getsockname())), poll(s, select.POLLOUT), answer(s.recv, 1)
        yield answer(s.send, b"x"), s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    for s in kept:
        s.close()


# ---- options that only the kernel serves ----

def goes_on(a, b):
    return a.send(b"abc"), b.recv(3, socket.MSG_WAITALL), b.send(b"def"), a.recv(3, socket.MSG_WAITALL)


def case_options_of_the_kernel(a, b):
    for level, name, value in ((socket.SOL_SOCKET, SO_PEEK_OFF, 0), (socket.SOL_SOCKET, socket.SO_OOBINLINE, 1),
                               (socket.SOL_SOCKET, 60, 1), (socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1),
                               (socket.IPPROTO_TCP, TCP_ULP, b"no-such-ulp"), (socket.IPPROTO_TCP, 35, 0),
                               (socket.IPPROTO_TCP, TCP_REPAIR, 7), (socket.IPPROTO_TCP, 14, 0)):
        one, two = pair(a.getsockname()[0])
        moved(one, two)
        yield level, name, answer(one.setsockopt, level, name, value), goes_on(one, two)
        one.close()
        yield two.recv(1)
        two.close()


def case_peek_offset(a, b):
    moved(a, b)
    a.send(b"abcdef")
    yield ready_bytes(b, 6)
    b.recv(2)
    yield option(b, SO_PEEK_OFF, 0)
    a.send(b"ghi")
    yield ready_bytes(b, 7)
    yield b.recv(3, socket.MSG_WAITALL)


def case_urgent_byte_in_line(a, b):
    moved(a, b)
    yield option(b, socket.SO_OOBINLINE, 1)
    a.send(b"abc")
    a.send(b"u", socket.MSG_OOB)
    a.send(b"def")
    yield b.recv(100), at_mark(b)
    yield b.recv(4, socket.MSG_WAITALL), at_mark(b)


def case_fast_open(a, b):
    with socket.socket() as listener, socket.socket() as s:
        listener.bind((a.getsockname()[0], 0))
        yield answer(listener.setsockopt, socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
        listener.listen()
        s.bind((a.getsockname()[0], 0))
        yield s.sendto(b"abc", socket.MSG_FASTOPEN, listener.getsockname())
        with listener.accept()[0] as other:
            yield other.recv(3, socket.MSG_WAITALL), goes_on(s, other)
