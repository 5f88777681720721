# SPDX-License-Identifier: BSD-2-Clause
"""The server of a link, with clients that speak the protocol of ivshmem as QEMU does."""
import array
import mmap
import os
import select
import socket
import struct
import sys
import unittest

from vm_link import REG, Link

DEADLINE = 30


class Client:
    """One ivshmem device, as far as the server tells it."""

    def __init__(self, link, port):
        self.sock = link.connect(port)
        self.sock.settimeout(DEADLINE)
        self.link = link
        self.vectors = {}
        self.version, _ = self.receive()
        self.id, _ = self.receive()
        minus_one, self.memfd = self.receive()
        assert minus_one == -1
        self.memory = mmap.mmap(self.memfd, 0)

    def receive(self):
        rights = array.array("i")
        data, ancillary, _, _ = self.sock.recvmsg(8, socket.CMSG_SPACE(rights.itemsize))
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                rights.frombytes(content)
        return struct.unpack("<q", data)[0], rights[0] if rights else None

    def learn(self, count):
        """Receives the interrupts of `count` ports."""
        for _ in range(count * self.link.vectors):
            port, event = self.receive()
            self.vectors.setdefault(port, []).append(event)

    def word(self, offset):
        return struct.unpack_from("<I", self.memory, offset)[0]

    def set_word(self, offset, value):
        struct.pack_into("<I", self.memory, offset, value)

    def wait_link(self):
        """Waits until the vector of the link was raised."""
        event = self.vectors[self.id][-1]
        assert select.select([event], [], [], DEADLINE)[0], "the vector of the link was not raised"
        os.eventfd_read(event)

    def close(self):
        self.sock.close()
        self.memory.close()
        for fd in [self.memfd] + [event for events in self.vectors.values() for event in events]:
            os.close(fd)


class LinkTest(unittest.TestCase):
    def setUp(self):
        self.link = Link(windows=3, window_bytes=1 << 16, doorbells=5)
        self.addCleanup(self.link.close)
        self.clients = []

    def tearDown(self):
        for client in self.clients:
            client.close()

    def client(self, port, ports):
        client = Client(self.link, port)
        self.clients.append(client)
        client.learn(ports)
        return client

    def test_handshake(self):
        one = self.client(1, 1)
        self.assertEqual((one.version, one.id), (0, 1))
        self.assertEqual(set(one.vectors), {1})
        zero = self.client(0, 2)
        one.learn(1)
        self.assertEqual(set(zero.vectors), {0, 1})
        self.assertEqual([len(events) for events in one.vectors.values()], [6, 6])

    def test_header(self):
        zero = self.client(0, 1)
        for name, value in (("MAGIC", REG["MAGIC"]), ("VERSION", 1), ("WINDOWS", 3), ("WINDOW_LOG2", 16),
                            ("DOORBELLS", 5), ("CUT", 0)):
            self.assertEqual(zero.word(REG[f"H_{name}"]), value, name)
        # A size that a BAR can have, with room for the registers and two times three windows.
        self.assertEqual(len(zero.memory), 1 << 19)

    def test_memory_is_shared_and_interrupts_arrive(self):
        zero, one = self.client(0, 1), self.client(1, 2)
        zero.learn(1)
        zero.set_word(1 << 16, 0x1234)
        self.assertEqual(one.word(1 << 16), 0x1234)
        for vector, event in enumerate(zero.vectors[1]):
            one_event = one.vectors[1][vector]
            while select.select([one_event], [], [], 0)[0]:
                os.eventfd_read(one_event)
            os.eventfd_write(event, 1)
            self.assertEqual(os.eventfd_read(one_event), 1, vector)

    def test_death(self):
        zero, one = self.client(0, 1), self.client(1, 2)
        zero.learn(1)
        zero.wait_link()
        enabled, spad = self.link.register_of(1, "ENABLED"), self.link.register_of(1, "SPAD")
        one.set_word(enabled, 5)
        one.set_word(spad, 77)
        zero.set_word(self.link.register_of(0, "ENABLED"), 1)
        self.assertTrue(self.link.up())
        self.clients.pop().close()
        zero.wait_link()
        self.assertEqual(zero.word(REG["H_ALIVE"] + 4), 0)
        self.assertEqual(zero.word(REG["H_ALIVE"]), 1)
        self.assertEqual((zero.word(enabled), zero.word(spad)), (6, 0))
        self.assertFalse(self.link.up())

    def test_reconnect(self):
        zero, one = self.client(0, 1), self.client(1, 2)
        zero.learn(1)
        zero.wait_link()
        os.eventfd_write(zero.vectors[1][2], 1)
        self.clients.pop().close()
        zero.wait_link()
        again = self.client(1, 2)
        self.assertFalse(select.select([again.vectors[1][2]], [], [], 0)[0], "an interrupt of the guest before")
        zero.wait_link()
        self.assertEqual(zero.word(REG["H_ALIVE"] + 4), 1)
        # The survivor is told nothing: it has these interrupts, and QEMU cannot be told twice.
        self.assertFalse(select.select([zero.sock], [], [], 0)[0])
        os.eventfd_write(zero.vectors[1][3], 1)
        self.assertTrue(select.select([again.vectors[1][3]], [], [], DEADLINE)[0])
        self.assertIsNot(one, again)

    def test_an_end_can_be_waited_for(self):
        for _ in range(20):
            self.client(1, 1)
            self.clients.pop().close()
            self.link.wait_gone(1)

    def test_cut_and_restore(self):
        zero, one = self.client(0, 1), self.client(1, 2)
        zero.learn(1)
        for client in (zero, one):
            client.set_word(self.link.register_of(client.id, "ENABLED"), 1)
            client.wait_link()
        changes = zero.word(REG["H_CHANGES"])
        self.assertTrue(self.link.up())
        self.link.cut()
        for client in (zero, one):
            client.wait_link()
            self.assertEqual(client.word(REG["H_CUT"]), 1)
        self.assertFalse(self.link.up())
        self.link.restore()
        for client in (zero, one):
            client.wait_link()
        self.assertTrue(self.link.up())
        self.assertEqual(zero.word(REG["H_CHANGES"]), changes + 2)

    def test_refusals(self):
        self.client(0, 1)
        with self.assertRaisesRegex(ValueError, "port 0 is connected"):
            self.link.connect(0)
        with self.assertRaisesRegex(ValueError, "not a power of two"):
            Link(window_bytes=100000)
        with self.assertRaisesRegex(ValueError, "33 doorbells"):
            Link(doorbells=33)

    def test_close_leaves_no_descriptor(self):
        before = sorted(os.listdir("/proc/self/fd"))
        link = Link()
        end = link.connect(0)
        link.close()
        end.close()
        self.assertEqual(sorted(os.listdir("/proc/self/fd")), before)


if __name__ == "__main__":
    sys.exit(unittest.main())
