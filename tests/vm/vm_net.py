# SPDX-License-Identifier: BSD-2-Clause
"""An Ethernet that all guests of a suite share, in addition to their links: a hub in the runner.

Each guest's adapter is one end of a pair of datagram sockets, and a frame that arrives from one goes to all others.
"""
import os
import selectors
import socket
import threading

FRAME_MAX = 65536
BUFFER = 4 << 20


class Network:
    """One network; a guest that boots again gets a new socket."""

    def __init__(self, names):
        self.numbers = {name: number for number, name in enumerate(names, 1)}
        self.sockets = {}
        self.lock = threading.Lock()
        self.selector = selectors.DefaultSelector()
        self.wake_in, self.wake_out = os.pipe2(os.O_CLOEXEC)
        self.selector.register(self.wake_in, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self.watch, name="vm-net", daemon=True)
        self.thread.start()

    def device(self, name):
        """(words for QEMU, sockets that it inherits)"""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        for sock in (ours, theirs):
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        with self.lock:
            self.forget(name)
            self.sockets[name] = ours
            self.selector.register(ours, selectors.EVENT_READ, name)
        os.write(self.wake_out, b"+")
        return ["-netdev", f"dgram,id=lan,local.type=fd,local.str={theirs.fileno()}", "-device",
                f"e1000,netdev=lan,romfile=,mac=52:54:00:00:00:{self.numbers[name]:02x}"], [theirs]

    def forget(self, name):
        sock = self.sockets.pop(name, None)
        if sock is not None:
            self.selector.unregister(sock)
            sock.close()

    def watch(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    if b"x" in os.read(self.wake_in, 64):
                        return
                    continue
                with self.lock:
                    self.forward(key.data)

    def forward(self, name):
        """Forwards one frame; as on an Ethernet, it is lost if there is no room for it."""
        sock = self.sockets.get(name)
        try:
            frame = sock.recv(FRAME_MAX) if sock is not None else None
        except BlockingIOError:
            return
        except OSError:
            frame = None
        if not frame:  # its guest has ended
            self.forget(name)
            return
        for other, peer in self.sockets.items():
            if other != name:
                try:
                    peer.send(frame)
                except OSError:
                    pass

    def close(self):
        os.write(self.wake_out, b"x")
        self.thread.join()
        with self.lock:
            for name in list(self.sockets):
                self.forget(name)
        self.selector.close()
        os.close(self.wake_in)
        os.close(self.wake_out)
