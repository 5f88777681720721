#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A child of fork closes the members of its parent's epoll set, which the two share in the kernel.

    forked_set.py sockets | set

is what the child closes first.  Afterwards the parent's set must still report events.
"""
import os
import select
import socket
import sys

PATIENCE = 30

listener = socket.create_server(("127.0.0.1", 0))
events = select.epoll()


def told():
    return [fd for fd, _ in events.poll(PATIENCE)]


def connection():
    """Makes a connection; its second end is in the set."""
    near = socket.create_connection(listener.getsockname())
    assert told() == [listener.fileno()]
    far = listener.accept()[0]
    events.register(far, select.EPOLLIN)
    return near, far


def exchange(near, far):
    for _ in range(30):
        near.sendall(b"there")
        assert told() == [far.fileno()] and far.recv(9) == b"there"
        far.sendall(b"back")
        assert near.recv(9) == b"back"


events.register(listener, select.EPOLLIN)
before = connection()
exchange(*before)
child = os.fork()
if child == 0:
    sockets = [listener, *before]
    for each in [*sockets, events] if sys.argv[1] == "sockets" else [events, *sockets]:
        each.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
exchange(*before)
exchange(*connection())
