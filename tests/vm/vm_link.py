# SPDX-License-Identifier: BSD-2-Clause
"""A link: the shared memory and the interrupts that two ivshmem-doorbell devices of QEMU have in common.

It is their ivshmem server, with a socket for each port, so that the number of a port does not
depend on the order of connecting.  It maps the memory too: it tells a port when the guest of its
peer has ended, and can cut the link and restore it.  kmod/test/ivn_reg.h describes the memory.
"""
import array
import mmap
import os
import re
import selectors
import socket
import struct
import threading
from pathlib import Path

from vm_qemu import installed

HEADER = Path(__file__).resolve().parent.parent.parent / "kmod/test/ivn_reg.h"


def registers():
    """The numbers of ivn_reg.h, by their names without IVN_."""
    text = HEADER.read_text(encoding="utf-8")
    return {name: int(value, 0) for name, value in re.findall(r"^#define IVN_(\w+)\s+(\w+)", text, re.MULTILINE)}


REG = registers()
PROTOCOL = 0  # of ivshmem
PORTS = REG["PORTS"]
DEADLINE = 60


class Link:
    """One link; each port may be connected, and again after its guest has ended."""

    def __init__(self, windows=2, window_bytes=4 << 20, doorbells=16):
        if window_bytes & (window_bytes - 1) or window_bytes < 1 << 16:
            raise ValueError(f"windows of {window_bytes} bytes: not a power of two, or below 64 KiB")
        if not 0 < doorbells <= REG["DOORBELLS"]:
            raise ValueError(f"{doorbells} doorbells, not 1 to {REG['DOORBELLS']}")
        size = 1 << ((1 + PORTS * windows) * window_bytes - 1).bit_length()
        self.vectors = doorbells + 1
        self.memfd = os.memfd_create("viaduct-vm-link", os.MFD_CLOEXEC)
        os.ftruncate(self.memfd, size)
        self.memory = mmap.mmap(self.memfd, REG["PORT_BASE"] + PORTS * REG["PORT_SIZE"])
        self.events = [[os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(self.vectors)]
                       for _ in range(PORTS)]
        self.sockets = [None] * PORTS
        self.introduced = [False] * PORTS  # was the guest that this port now has told of its peer's interrupts?
        self.lock = threading.Lock()
        self.ended = threading.Condition(self.lock)
        for name, value in (("MAGIC", REG["MAGIC"]), ("VERSION", REG["VERSION"]), ("WINDOWS", windows),
                            ("WINDOW_LOG2", window_bytes.bit_length() - 1), ("DOORBELLS", doorbells)):
            self.write(REG[f"H_{name}"], value)
        self.error = None
        self.selector = selectors.DefaultSelector()
        self.wake_in, self.wake_out = os.pipe2(os.O_CLOEXEC)
        self.selector.register(self.wake_in, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self.watch, name="vm-link", daemon=True)
        self.thread.start()

    # The options of machines that have such a link.
    qemu = staticmethod(installed)

    @staticmethod
    def memory(size):
        return ["-m", str(size)]

    def device(self, port, slot):
        """(words for QEMU, sockets that it inherits)"""
        sock = self.connect(port)
        name = f"link{slot}"
        return ["-chardev", f"socket,id={name},fd={sock.fileno()}", "-device",
                f"ivshmem-doorbell,chardev={name},vectors={self.vectors},addr={slot:#x}"], [sock]

    def read(self, offset):
        return struct.unpack_from("<I", self.memory, offset)[0]

    def write(self, offset, value):
        struct.pack_into("<I", self.memory, offset, value & 0xffffffff)

    def register_of(self, port, name):
        return REG["PORT_BASE"] + port * REG["PORT_SIZE"] + REG[f"R_{name}"]

    def alive(self, port):
        return bool(self.read(REG["H_ALIVE"] + 4 * port))

    def up(self):
        """Do both ports live and have the link enabled, and is it not cut?"""
        return not self.read(REG["H_CUT"]) and all(
            self.alive(port) and self.read(self.register_of(port, "ENABLED")) & 1 for port in range(PORTS))

    # The messages of ivshmem's server: a number, with a descriptor or without.
    @staticmethod
    def send(sock, number, fd=None):
        rights = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        sock.sendmsg([struct.pack("<q", number)], rights)

    def connect(self, port):
        """A socket for QEMU, which the caller closes when QEMU has it.  The port counts as alive from now on."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        with self.lock:
            if self.sockets[port] is not None:
                ours.close()
                theirs.close()
                raise ValueError(f"port {port} is connected")
            peer = self.sockets[1 - port]
            self.send(ours, PROTOCOL)
            self.send(ours, port)
            self.send(ours, -1, self.memfd)
            self.drain(port)
            self.introduced[port] = peer is not None
            if peer is not None:
                self.introduce(ours, 1 - port)
                # QEMU 7.2 corrupts its memory when a peer that had left comes again, so it is never told
                # that one has left: the interrupts of a port always stay the same.
                if not self.introduced[1 - port]:
                    self.introduce(peer, port)
                    self.introduced[1 - port] = True
            self.introduce(ours, port)
            self.sockets[port] = ours
            self.change(REG["H_ALIVE"] + 4 * port, 1)
            self.selector.register(ours, selectors.EVENT_READ, port)
        os.write(self.wake_out, b"+")
        return theirs

    def introduce(self, sock, port):
        """Tells one guest of the interrupts of a port; if that has just ended its reader notices."""
        try:
            for event in self.events[port]:
                self.send(sock, port, event)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def drain(self, port):
        """Discards interrupts for a guest that has ended, so that the next one does not get them."""
        for event in self.events[port]:
            try:
                os.eventfd_read(event)
            except BlockingIOError:
                pass

    def change(self, offset, value):
        """Writes a word of the header and interrupts both ports."""
        self.write(offset, value)
        self.write(REG["H_CHANGES"], self.read(REG["H_CHANGES"]) + 1)
        for events in self.events:
            os.eventfd_write(events[-1], 1)

    def cut(self):
        with self.lock:
            self.change(REG["H_CUT"], 1)

    def restore(self):
        with self.lock:
            self.change(REG["H_CUT"], 0)

    def gone(self, port):
        """The guest of a port has ended: sets its registers as those of a machine that was switched off."""
        with self.lock:
            sock, self.sockets[port] = self.sockets[port], None
            self.selector.unregister(sock)
            sock.close()
            enabled = self.register_of(port, "ENABLED")
            if self.read(enabled) & 1:
                self.write(enabled, self.read(enabled) + 1)
            for index in range(REG["SPADS"]):
                self.write(self.register_of(port, "SPAD") + 4 * index, 0)
            self.change(REG["H_ALIVE"] + 4 * port, 0)
            self.ended.notify_all()

    def wait_gone(self, port):
        """Waits until this link has seen the end of a port's guest, which has ended."""
        with self.ended:
            self.ended.wait_for(lambda: self.sockets[port] is None or self.error is not None, DEADLINE)

    def watch(self):
        try:
            self.watch_sockets()
        except Exception as error:  # pylint: disable=broad-except
            with self.ended:
                self.error = error  # for close()
                self.ended.notify_all()

    def watch_sockets(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    if os.read(self.wake_in, 1) == b"x":
                        return
                elif not self.receive(key.fileobj):
                    self.gone(key.data)

    @staticmethod
    def receive(sock):
        """QEMU sends nothing: a read returns when QEMU has ended."""
        try:
            return bool(sock.recv(64))
        except (ConnectionResetError, BrokenPipeError):
            return False

    def close(self):
        os.write(self.wake_out, b"x")
        self.thread.join()
        if self.error is not None:
            raise self.error
        self.selector.close()
        self.memory.close()
        for sock in self.sockets:
            if sock is not None:
                sock.close()
        for fd in [self.memfd, self.wake_in, self.wake_out] + [event for port in self.events for event in port]:
            os.close(fd)
