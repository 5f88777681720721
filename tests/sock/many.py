#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many connections at once, made and closed in rounds.

    many.py serve ADDRESS CONNECTIONS ROUNDS
    many.py ask ADDRESS PORT CONNECTIONS ROUNDS MESSAGES

The server prints its port, and sends back what it receives; the client compares that.  Each ends with a line that says
how many connections it had, and fails where a later round left more descriptors open than the first ones.
"""
import os
import resource
import selectors
import socket
import sys
import time


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


class Descriptors:
    """Those that are open between rounds: the first half opens what all connections share, once one is promoted."""

    def __init__(self, rounds):
        self.rounds = self.base = 0
        self.first = max(3, rounds // 2)

    def check(self):
        end = time.monotonic() + 60
        self.rounds += 1
        if self.rounds <= self.first:
            self.base = max(self.base, open_descriptors())
        while open_descriptors() > self.base:
            if time.monotonic() > end:
                sys.exit(f"{open_descriptors()} descriptors are open after round {self.rounds}, {self.base} were before")
            time.sleep(0.01)


def serve(address, count, rounds):
    ready = selectors.DefaultSelector()
    listener = socket.create_server((address, 0), backlog=count)
    ready.register(listener, selectors.EVENT_READ)
    print(listener.getsockname()[1], flush=True)
    open_now = served = 0
    descriptors = Descriptors(rounds)
    while served < count * rounds or open_now:
        for key, _ in ready.select():
            if key.fileobj is listener:
                ready.register(listener.accept()[0], selectors.EVENT_READ)
                open_now += 1
                served += 1
                continue
            data = key.fileobj.recv(4096)
            if data:
                key.fileobj.sendall(data)
                continue
            ready.unregister(key.fileobj)
            key.fileobj.close()
            open_now -= 1
            if not open_now and served % count == 0:
                descriptors.check()
    print("served", served)


def ask(address, port, count, rounds, messages):
    descriptors = Descriptors(rounds)
    for turn in range(rounds):
        ends = [socket.create_connection((address, port)) for _ in range(count)]
        for message in range(messages):
            for i, end in enumerate(ends):
                end.sendall(f"{turn:06} {message:02} {i:06}\n".encode())
            for i, end in list(enumerate(ends))[::-1]:
                got = end.recv(17, socket.MSG_WAITALL)
                if got != f"{turn:06} {message:02} {i:06}\n".encode():
                    sys.exit(f"connection {i} of round {turn}: {got}")
        for end in ends:
            end.close()
        del ends
        descriptors.check()
    print("asked", count * rounds)


def main():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    what, address, *numbers = sys.argv[1:]
    {"serve": serve, "ask": ask}[what](address, *map(int, numbers))


main()
