# SPDX-License-Identifier: BSD-2-Clause
"""Pairs of connected sockets for twins.py, and calls of which the answers can be compared."""
import array
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import termios

LIBC = ctypes.CDLL(None, use_errno=True)  # these calls go through the preloaded library, like the program's own
LIBC.fdopen.restype = ctypes.c_void_p
KERNEL, PROMOTED, LATER = "127.0.0.2", "127.0.0.1", "127.0.0.3"  # LATER: promoted after some exchanges
PATIENCE = 20000  # ms
EPOLL_CREATE1 = {"x86_64": 291}.get(os.uname().machine, 20)  # the number of the system call


def pair(address, buffers=0):
    """Two ends of a connection; with `buffers` SO_RCVBUF and SO_SNDBUF are set."""
    with socket.socket() as listener, socket.socket() as one:
        for s in (listener, one) if buffers else ():
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers)
        listener.bind((address, 0))
        listener.listen()
        one.bind((address, 0))  # rules know each end's peer
        one.connect(listener.getsockname())
        one = socket.socket(fileno=one.detach())
        other, _ = listener.accept()
    for s in (one, other):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", PATIENCE // 1000, 0))
    return [one, other]


def answer(call, *args):
    """The result of a call: a value, or the name of its error."""
    try:
        return call(*args)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def poll(s, events, ms=0):
    p = select.poll()
    p.register(s, events)
    return [event for _, event in p.poll(ms)]


def readable(s):
    return poll(s, select.POLLIN, PATIENCE) != []


def ready_bytes(s, n):
    """FIONREAD once n bytes have come."""
    count = array.array("i", [0])
    while n and count[0] < n:
        readable(s)
        fcntl.ioctl(s.fileno(), termios.FIONREAD, count)
    fcntl.ioctl(s.fileno(), termios.FIONREAD, count)
    return count[0]


def no_answer(s, size, flags=0):
    """recv() with a time limit, where it would wait for ever."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 3, 0))
    return answer(s.recv, size, flags)


def ended(s):
    """Waits until the other end's close or shutdown has arrived."""
    return poll(s, select.POLLRDHUP, PATIENCE)
