#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Ethernet of guests: frames reach all others, also when a guest has ended."""
import select
import socket
import unittest

from vm_net import Network

DEADLINE = 60


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.network = Network(["A", "B", "C"])
        self.addCleanup(self.network.close)

    def end(self, name):
        """The socket that QEMU inherits for this guest."""
        words, (sock,) = self.network.device(name)
        self.assertIn(f"local.str={sock.fileno()}", words[1])
        self.addCleanup(sock.close)
        return sock

    def heard(self, sock):
        self.assertTrue(select.select([sock], [], [], DEADLINE)[0], "no frame came")
        return sock.recv(65536)

    def nothing(self, *socks):
        self.assertEqual(select.select(socks, [], [], 0)[0], [])

    def test_addresses_differ(self):
        macs = {self.network.device(name)[0][3].split("mac=")[1] for name in "ABC"}
        self.assertEqual(len(macs), 3)

    def test_frames_reach_all_others(self):
        a, b, c = map(self.end, "ABC")
        for text in (b"one", b"x" * 9000):
            a.send(text)
            self.assertEqual((self.heard(b), self.heard(c)), (text, text))
        c.send(b"back")
        self.assertEqual((self.heard(a), self.heard(b)), (b"back", b"back"))
        self.nothing(a, b, c)

    def test_guest_that_ends_and_boots_anew(self):
        a, b, c = map(self.end, "ABC")
        b.close()
        a.send(b"one")
        self.assertEqual(self.heard(c), b"one")
        again = self.end("B")
        a.send(b"two")
        self.assertEqual((self.heard(again), self.heard(c)), (b"two", b"two"))
        again.send(b"three")
        self.assertEqual((self.heard(a), self.heard(c)), (b"three", b"three"))

    def test_guest_that_does_not_listen(self):
        """Frames for it are lost, those for the others are not."""
        a, b, c = map(self.end, "ABC")
        for sock in (b, c):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for number in range(2000):
            a.setblocking(True)
            a.send(b"%d" % number)
            self.assertEqual(self.heard(c), b"%d" % number)
        self.assertEqual(self.heard(b), b"0")


if __name__ == "__main__":
    unittest.main()
