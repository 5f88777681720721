#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The same calls on a pair of kernel sockets and on a promoted pair: every answer must be the same on both.

    twins.py cases [PART OF A NAME] | fuzz SEED STEPS

It runs under vi_run with promotion at once, --loopback, and a rule that leaves 127.0.0.2 to the kernel.
"""
import array
import ctypes
import faulthandler
import fcntl
import itertools
import os
import resource
import select
import signal
import socket
import struct
import sys
import tempfile
import termios
import threading
import time

import twins_calls
import twins_fuzz
from twins_pair import (EPOLL_CREATE1, KERNEL, LIBC, PATIENCE, PROMOTED, answer, ended, no_answer, pair, poll, readable,
                        ready_bytes)

STUCK = 150  # seconds that a case may take

# ---- cases: each is given a pair, and yields answers ----

def case_echo(a, b):
    yield a.send(b"hello")
    yield b.recv(100)
    yield b.send(b"x" * 1000)
    yield len(a.recv(1000, socket.MSG_WAITALL))


def case_nothing_there(a, b):
    yield answer(a.recv, 10, socket.MSG_DONTWAIT)
    a.setblocking(False)
    yield answer(a.recv, 10)
    yield poll(a, select.POLLIN | select.POLLOUT)
    yield answer(a.recv, 0)


def case_receive_timeout(a, b):
    a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20000))
    yield answer(a.recv, 10)
    yield b.send(b"abc")
    yield answer(a.recv, 10)
    yield b.send(b"abc")
    yield answer(a.recv, 10, socket.MSG_WAITALL)


def case_peek(a, b):
    a.send(b"abcdef")
    readable(b)
    yield b.recv(3, socket.MSG_PEEK)
    yield b.recv(6, socket.MSG_PEEK | socket.MSG_WAITALL)
    a.send(b"ghi")
    yield b.recv(9, socket.MSG_PEEK | socket.MSG_WAITALL)
    yield b.recv(2)
    yield b.recv(7, socket.MSG_WAITALL)


def case_truncated_is_thrown_away(a, b):
    a.send(b"abcdef")
    yield ready_bytes(b, 6)
    yield len(b.recv(4, socket.MSG_TRUNC))
    yield b.recv(10)


def case_vectors(a, b):
    yield a.sendmsg([b"ab", b"", b"cdef", b"g"])
    readable(b)
    parts = [bytearray(3), bytearray(0), bytearray(4)]
    n, ancillary, flags, _ = b.recvmsg_into(parts, 0, socket.MSG_WAITALL)
    yield n, ancillary, flags, [bytes(p) for p in parts]


def case_many_vectors(a, b):
    yield a.sendmsg([bytes([i % 256]) for i in range(1000)])
    parts = [bytearray(1) for _ in range(1000)]
    yield b.recvmsg_into(parts, 0, socket.MSG_WAITALL)[0], [p[0] for p in parts]


def case_half_close(a, b):
    a.send(b"last")
    yield a.shutdown(socket.SHUT_WR)
    yield answer(a.send, b"x", socket.MSG_NOSIGNAL)
    yield b.recv(10, socket.MSG_WAITALL)
    yield b.recv(10)
    yield poll(b, select.POLLIN | select.POLLRDHUP, PATIENCE)
    yield b.send(b"answer")
    yield a.recv(6, socket.MSG_WAITALL)
    b.close()
    yield a.recv(10)
    yield poll(a, select.POLLIN | select.POLLRDHUP, PATIENCE)


def case_close_with_unread_bytes_resets(a, b):
    a.send(b"unread")
    readable(b)
    b.close()
    poll(a, select.POLLIN, PATIENCE)
    yield answer(a.recv, 10)
    yield answer(a.send, b"x", socket.MSG_NOSIGNAL)


def case_linger_zero_resets(a, b):
    b.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    b.close()
    poll(a, select.POLLIN, PATIENCE)
    yield answer(a.recv, 10)
    yield a.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def case_send_after_close(a, b):
    b.close()
    poll(a, select.POLLIN, PATIENCE)
    yield answer(a.recv, 10)
    yield answer(a.send, b"first", socket.MSG_NOSIGNAL)


def case_low_water(a, b):
    b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 10)
    a.send(b"12345")
    yield poll(b, select.POLLIN, 30)
    a.send(b"67890")
    yield poll(b, select.POLLIN, PATIENCE)
    yield b.recv(100)


def case_epoll_edge_tells_an_end_that_was_read_unseen(a, b):
    with select.epoll() as e:
        e.register(b, select.EPOLLIN | select.EPOLLET)
        a.send(b"abc")
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]
        a.shutdown(socket.SHUT_WR)
        yield b.recv(100)
        yield [ev for _, ev in e.poll(5)]
        yield b.recv(100)


def case_peek_ends_with_the_stream(a, b):
    a.send(b"abc")
    a.shutdown(socket.SHUT_WR)
    yield no_answer(b, 9, socket.MSG_PEEK | socket.MSG_WAITALL)
    yield b.recv(9, socket.MSG_WAITALL), b.recv(9)


def case_the_end_is_told_before_the_bytes_are_read(a, b):
    a.send(b"abc")
    a.shutdown(socket.SHUT_WR)
    yield poll(b, select.POLLRDHUP, 5000)
    yield poll(b, select.POLLIN | select.POLLRDHUP)
    b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 9)
    yield poll(b, select.POLLIN, 5000)
    yield b.recv(100)


def case_shutdown_of_reading_leaves_what_came(a, b):
    a.send(b"abc")
    yield ready_bytes(b, 3)
    yield b.shutdown(socket.SHUT_RD)
    yield b.recv(100)
    yield b.recv(100)


def case_options_of_the_listener_are_inherited(a, b):
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50000))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 4)
        listener.bind((a.getsockname()[0], 0))
        listener.listen()
        with socket.create_connection(listener.getsockname(), source_address=(a.getsockname()[0], 0)) as one, listener.accept()[0] as other:
            other.settimeout(None)
            yield answer(other.recv, 10)
            one.send(b"abc")
            yield poll(other, select.POLLIN, 30)
            one.send(b"d")
            yield poll(other, select.POLLIN, PATIENCE), other.recv(10)


def case_negative_time_limit(a, b):
    b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", -1, 0))
    yield answer(b.recv, 10)
    b.setsockopt(socket.SOL_SOCKET, 66, struct.pack("qq", 0, 1000))  # SO_RCVTIMEO_NEW
    yield answer(b.recv, 10)


def case_splice_waits_for_nothing_that_the_kernel_does_not_wait_for(a, b):
    r, w = os.pipe()
    size = fcntl.fcntl(w, fcntl.F_GETPIPE_SZ)
    a.send(bytes(60000))
    yield ready_bytes(b, 60000)
    yield os.write(w, bytes(size))
    yield answer(os.splice, b.fileno(), w, 1000, None, None, os.SPLICE_F_NONBLOCK)
    os.read(r, size // 2)
    n = answer(os.splice, b.fileno(), w, 60000, None, None, os.SPLICE_F_NONBLOCK)
    yield 0 < n <= size // 2, ready_bytes(b, 60000 - n) == 60000 - n
    os.read(r, size)
    n += answer(os.splice, b.fileno(), w, 60000, None, None)
    yield n > size // 2, ready_bytes(b, 60000 - n) == 60000 - n
    os.close(r)
    os.close(w)


def numbered(f, fd):
    """Makes a copy with that number, which a thread of the library may hold for a moment."""
    until = time.monotonic() + 60
    while True:
        copy = fcntl.fcntl(f, fcntl.F_DUPFD, fd)
        if copy == fd:
            return
        os.close(copy)
        assert time.monotonic() < until, "the number stays in use"


def case_fclose_ends_the_descriptor(a, b):
    with tempfile.TemporaryFile() as f:
        f.write(b"a file")
        f.flush()
        f.seek(0)
        fd = b.detach()
        LIBC.fclose(ctypes.c_void_p(LIBC.fdopen(fd, b"r+")))
        numbered(f, fd)
        assert os.read(fd, 9) == b"a file", "a file is taken for the socket"
        os.close(fd)
    yield a.recv(10)


def case_standard_output_is_the_connection(a, b):
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(b.fileno(), 1)
    LIBC.puts(b"hello")
    LIBC.fflush(None)
    yield no_answer(a, 6, socket.MSG_WAITALL)
    os.dup2(saved, 1)
    os.close(saved)


def case_dup3_with_wrong_flags_ends_nothing(a, b):
    yield LIBC.dup3(a.fileno(), b.fileno(), 12345)
    a.send(b"abc")
    yield no_answer(b, 3)


def case_another_process_sets_the_mode(a, b):
    child = os.fork()
    if child == 0:
        a.setblocking(False)
        os._exit(0)
    os.waitpid(child, 0)
    later = threading.Timer(PATIENCE / 1000, b.send, [b"x"])  # if it waits though it must not
    later.start()
    yield answer(a.recv, 10)
    later.cancel()
    later.join()


def case_connect_to_nothing_ends_the_connection(a, b):
    yield LIBC.connect(a.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16)
    yield answer(a.send, b"x", socket.MSG_NOSIGNAL)
    with socket.create_server((b.getsockname()[0], 0)) as listener:
        a.bind((b.getsockname()[0], 0))
        yield answer(a.connect, listener.getsockname())
        with listener.accept()[0] as other:
            yield a.send(b"more"), other.recv(10)


def case_select_of_ends_that_are_in_no_set(a, b):
    r, w = os.pipe()
    os.close(w)
    began = time.monotonic()
    yield [bool(x) for x in select.select([b], [], [r], 0.1)]
    assert time.monotonic() - began >= 0.1, "select() returned before its time"
    a.send(b"x")
    yield [bool(x) for x in select.select([b], [], [r], PATIENCE / 1000)]
    os.close(r)


def case_poll_of_as_many_as_the_limit(a, b):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limit[1]))
    entries = (ctypes.c_int * 512)(*[-1, 0] * 256)
    entries[0], entries[1] = b.fileno(), select.POLLIN
    yield LIBC.poll(entries, 256, 20)
    a.send(b"x")
    yield LIBC.poll(entries, 256, PATIENCE)
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    yield LIBC.poll(None, 1, 0), ctypes.get_errno()


def case_flags_of_a_message(a, b):
    a.send(b"abcdef")
    yield ready_bytes(b, 6)
    yield b.recvmsg(2, 0, socket.MSG_PEEK | socket.MSG_TRUNC)[2], b.recvmsg(2, 0, socket.MSG_CMSG_CLOEXEC)[2]


def case_counts(a, b):
    a.send(b"x" * 321)
    yield ready_bytes(b, 321)
    b.recv(21)
    yield ready_bytes(b, 300)


def case_nothing_is_unsent_once_it_has_arrived(a, b):
    count = array.array("i", [-1])
    a.send(b"x" * 5000)
    yield ready_bytes(b, 5000)
    until = time.monotonic() + PATIENCE / 1000
    while count[0] != 0 and time.monotonic() < until:
        fcntl.ioctl(a.fileno(), termios.TIOCOUTQ, count)
    yield count[0]


def case_options(a, b):
    for level, name in ((socket.SOL_SOCKET, socket.SO_TYPE), (socket.SOL_SOCKET, socket.SO_ERROR),
                        (socket.SOL_SOCKET, socket.SO_RCVLOWAT),
                        (socket.IPPROTO_TCP, socket.TCP_NODELAY)):
        yield answer(a.getsockopt, level, name)
    yield answer(a.getsockopt, socket.SOL_SOCKET, 9999)
    yield answer(a.setsockopt, socket.SOL_SOCKET, socket.SO_RCVLOWAT, 5)
    yield a.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


def case_duplicates(a, b):
    other = a.dup()
    yield other.send(b"by the copy")
    a.close()
    yield b.recv(11, socket.MSG_WAITALL)
    yield other.send(b"still")
    yield b.recv(5, socket.MSG_WAITALL)
    other.close()
    yield b.recv(5)


def case_cork(a, b):
    a.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    a.send(b"ab")
    a.send(b"cd")
    a.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
    yield b.recv(4, socket.MSG_WAITALL)
    a.send(b"more", socket.MSG_MORE)
    yield b.recv(4, socket.MSG_WAITALL)


def case_select(a, b):
    yield [bool(x) for x in select.select([b], [b], [b], 0)]
    a.send(b"x")
    yield [bool(x) for x in select.select([b], [], [], PATIENCE / 1000)]


def case_epoll_level(a, b):
    with select.epoll() as e:
        e.register(b, select.EPOLLIN)
        yield [ev for _, ev in e.poll(0)]
        a.send(b"xy")
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]
        b.recv(1)
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]
        b.recv(1)
        yield [ev for _, ev in e.poll(0)]


def case_epoll_edge(a, b):
    with select.epoll() as e:
        e.register(b, select.EPOLLIN | select.EPOLLET)
        a.send(b"xy")
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]
        yield [ev for _, ev in e.poll(0)]
        a.send(b"z")
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]
        yield b.recv(3, socket.MSG_WAITALL)
        yield [ev for _, ev in e.poll(0)]


def case_epoll_once(a, b):
    with select.epoll() as e:
        e.register(b, select.EPOLLIN | select.EPOLLONESHOT)
        a.send(b"x")
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]
        yield [ev for _, ev in e.poll(0)]
        e.modify(b, select.EPOLLIN | select.EPOLLONESHOT)
        yield [ev for _, ev in e.poll(PATIENCE / 1000)]


def case_epoll_two_sets_and_nested(a, b):
    with select.epoll() as inner, select.epoll() as outer, select.epoll() as other:
        inner.register(b, select.EPOLLIN)
        other.register(b, select.EPOLLIN)
        outer.register(inner.fileno(), select.EPOLLIN)
        a.send(b"x")
        for e in (outer, inner, other):
            yield [ev for _, ev in e.poll(PATIENCE / 1000)]
        yield poll(inner, select.POLLIN, PATIENCE)


def case_epoll_set_of_a_system_call(a, b):
    e = select.epoll.fromfd(LIBC.syscall(EPOLL_CREATE1, 0))
    e.register(b, select.EPOLLIN)
    a.send(b"x")
    yield [ev for _, ev in e.poll(5)]
    e.close()


def case_epoll_errors(a, b):
    with select.epoll() as e:
        yield answer(e.modify, b.fileno(), select.EPOLLIN)
        yield answer(e.unregister, b.fileno())
        yield answer(e.register, b.fileno(), select.EPOLLIN)
        yield answer(e.register, b.fileno(), select.EPOLLIN)
        yield answer(e.unregister, b.fileno())


def case_much(a, b):
    block = bytes(range(256)) * 256
    a.setblocking(False)
    sent = got = 0
    while got < 4 << 20:
        if sent < 4 << 20:
            n = answer(a.send, block[sent % 256:][:(4 << 20) - sent])
            sent += n if isinstance(n, int) else 0
        if sent == got:
            poll(a, select.POLLOUT, PATIENCE)  # room may come back a little after the bytes were taken
            continue
        data = b.recv(70000)
        if data != bytes((got + i) % 256 for i in range(len(data))):
            yield "wrong bytes"
        got += len(data)
    yield sent, got


def all_cases():
    for module in (sys.modules[__name__], twins_calls):
        yield from sorted((name, case) for name, case in vars(module).items() if name.startswith("case_"))


def cases(part=""):
    wrong = 0
    for name, case in all_cases():
        if part not in name:
            continue
        answers = []
        # Its thread blocks signals only when it runs: until then one for the process might end there, and wake no call.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        faulthandler.dump_traceback_later(STUCK, exit=True)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for address in (KERNEL, PROMOTED):
            ends = pair(address)
            answers.append([])
            try:
                answers[-1].extend(case(*ends))
            except OSError as error:
                answers[-1].append(f"stopped by {error}")
            for s in ends:
                s.close()
        if answers[0] != answers[1] or "stopped by" in str(answers):
            wrong += 1
            for one, other in itertools.zip_longest(*answers):
                if one != other or "stopped by" in str(one):
                    print(f"{name}: the kernel {one!r:.200}, promoted {other!r:.200}")
    print(f"{wrong} cases differ")
    return wrong


def main():
    if sys.argv[1] == "cases":
        return 1 if cases(*sys.argv[2:]) else 0
    return twins_fuzz.fuzz(int(sys.argv[2]), int(sys.argv[3]))


if __name__ == "__main__":
    sys.exit(main())
