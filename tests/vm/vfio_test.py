# SPDX-License-Identifier: BSD-2-Clause
"""The NTB endpoints over vfio-user behave as ntb_hw_epf and QEMU expect; the tests need neither."""
import array
import errno
import fcntl
import json
import mmap
import os
import socket
import struct
import sys
import termios
import time
import unittest
from pathlib import Path

import vm_vfio as vfio
import vm_vfio_ntb as ntb

RAM_ADDRESS, RAM_BYTES = 0x100000, 1 << 20
WINDOW = 1 << 16
MULTI = struct.Struct("<QII8s")  # one write in a message of several: offset, region, bytes, content
LINK_VECTOR, VECTOR = 0, 5


class Client:
    """A machine with the device, which sends the messages that QEMU sends."""

    def __init__(self, link, port, ready=True):
        words, inherited = link.device(port, 0x10)
        assert not inherited
        settings = json.loads(words[1])
        assert (settings["driver"], settings["addr"]) == ("vfio-user-pci", "0x10"), settings
        self.number = 0
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(settings["socket"]["path"])
        self.path = settings["socket"]["path"]
        self.events = [os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) for _ in range(ntb.VECTORS)]
        fd = os.memfd_create("ram", os.MFD_CLOEXEC)
        os.ftruncate(fd, RAM_BYTES)
        self.ram = mmap.mmap(fd, RAM_BYTES)
        self.call(vfio.VERSION, struct.pack("<HH", 0, 0) + b"{}\0")
        if ready:
            self.call(vfio.DMA_MAP, vfio.MAP.pack(32, 3, 0, RAM_ADDRESS, RAM_BYTES), [fd])
            for first in range(0, ntb.VECTORS, vfio.FDS_MAX):
                fds = self.events[first:first + vfio.FDS_MAX]
                self.call(vfio.SET_IRQS, vfio.IRQ_SET.pack(20, 0x24, vfio.MSIX, first, len(fds)), fds)
            self.command(ntb.SET_DOORBELLS, 1 << 16 | ntb.VECTORS)
        os.close(fd)

    def send(self, command, body, fds=(), flags=0):
        self.number += 1
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([vfio.HEADER.pack(self.number, command, vfio.HEADER.size + len(body), flags, 0) + body], rights)

    def call(self, command, body=b"", fds=(), error=0):
        self.send(command, body, fds)
        number, answered, size, flags, code = vfio.HEADER.unpack(self.receive(vfio.HEADER.size))
        answer = self.receive(size - vfio.HEADER.size)
        assert (number, answered, flags & 0xf) == (self.number, command, vfio.REPLY)
        assert (bool(flags & vfio.ERROR), code) == (bool(error), error), (flags, code)
        return answer

    def receive(self, size):
        data = b""
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def read(self, region, offset, count=4, error=0):
        return self.call(vfio.REGION_READ, vfio.ACCESS.pack(offset, region, count), error=error)[vfio.ACCESS.size:]

    def value(self, offset, count=4):
        return int.from_bytes(self.read(ntb.BAR_REGISTERS, offset, count), "little")

    def write(self, region, offset, data):
        self.call(vfio.REGION_WRITE, vfio.ACCESS.pack(offset, region, len(data)) + data)

    def post(self, region, offset, data):
        self.send(vfio.REGION_WRITE, vfio.ACCESS.pack(offset, region, len(data)) + data, flags=vfio.NO_REPLY)

    def set(self, offset, value):
        self.write(ntb.BAR_REGISTERS, offset, struct.pack("<I", value))

    def command(self, number, argument=0):
        self.set(ntb.ARGUMENT, argument)
        self.set(ntb.COMMAND, number)
        return self.value(ntb.STATUS, 2)

    def translate(self, window, address, size):
        for offset, value in ((ntb.LOWER_ADDRESS, address), (ntb.LOWER_SIZE, size)):
            self.set(offset, value & 0xffffffff)
            self.set(offset + 4, value >> 32)
        return self.command(ntb.SET_WINDOW, window)

    def ring(self, index):
        place = index * self.value(ntb.DOORBELL_SIZE) + self.value(ntb.DOORBELL_OFFSET + 4 * index)
        self.write(ntb.BAR_DOORBELLS, place, self.read(ntb.BAR_REGISTERS, ntb.DOORBELL_DATA + 4 * index))

    def all_is_read(self):
        """Has the server read all that was sent?"""
        return struct.unpack("i", fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(4)))[0] == 0

    def fired(self, vector):
        try:
            return os.eventfd_read(self.events[vector])
        except BlockingIOError:
            return 0

    def wait(self, vector):
        os.set_blocking(self.events[vector], True)
        os.eventfd_read(self.events[vector])
        os.set_blocking(self.events[vector], False)

    def close(self):
        self.sock.close()
        self.ram.close()
        for event in self.events:
            os.close(event)


class VfioCase(unittest.TestCase):
    EARLY = 0

    def setUp(self):
        self.link = ntb.VfioLink(window_bytes=WINDOW, early=self.EARLY)
        self.addCleanup(self.link.close)
        self.sides = [self.client(0), self.client(1)]

    def client(self, port, ready=True):
        client = Client(self.link, port, ready)
        self.addCleanup(client.close)
        return client

    def come_up(self):
        for side in self.sides:
            self.assertEqual(side.command(ntb.LINK_UP), ntb.DONE)


class VfioTest(VfioCase):
    def test_registers_are_where_the_header_of_the_driver_says(self):
        side = self.sides[0]
        config = side.read(vfio.CONFIG_REGION, 0, 256)
        self.assertEqual(struct.unpack_from("<HH", config), (ntb.VENDOR, ntb.DEVICE))
        self.assertEqual(config[0x40], 0x11)
        self.assertEqual(struct.unpack_from("<H", config, 0x42)[0] + 1, ntb.VECTORS)
        self.assertEqual((side.value(0x20), side.value(0x28), side.value(0x2c)), (2, 0x400, 64))
        info = side.call(vfio.GET_REGION_INFO, struct.pack("<IIIIQQ", 32, 0, ntb.BAR_WINDOW, 0, 0, 0))
        self.assertEqual(struct.unpack_from("<IIIIQ", info)[4], WINDOW)
        self.assertFalse(os.path.exists(side.path), "the path of a socket is gone with its use")

    def test_link(self):
        a, b = self.sides
        self.assertEqual(a.command(ntb.LINK_UP), ntb.DONE)
        self.assertEqual((a.value(ntb.LINK_STATUS, 2), a.fired(LINK_VECTOR)), (0, 0))
        b.command(ntb.LINK_UP)
        for side in self.sides:
            self.assertEqual((side.value(ntb.LINK_STATUS, 2), side.fired(LINK_VECTOR)), (1, 1))
        a.command(ntb.LINK_DOWN)
        self.assertEqual((b.value(ntb.LINK_STATUS, 2), b.fired(LINK_VECTOR)), (0, 1))

    def test_unknown_commands_are_refused(self):
        side = self.sides[0]
        self.assertEqual(side.command(9), ntb.REFUSED)
        self.assertEqual(side.command(ntb.SET_WINDOW, 2), ntb.REFUSED)
        self.assertEqual(side.translate(0, RAM_ADDRESS + 8, 4096), ntb.REFUSED)
        self.assertEqual(side.translate(0, RAM_ADDRESS, WINDOW + 1), ntb.REFUSED)
        self.assertEqual(side.command(ntb.SET_DOORBELLS, ntb.VECTORS + 1), ntb.REFUSED)

    def test_scratchpads(self):
        a, b = self.sides
        a.set(ntb.SPAD_BASE + 4 * (ntb.SPADS + 3), 77)
        self.assertEqual(b.value(ntb.SPAD_BASE + 12), 77)
        self.assertEqual(a.value(ntb.SPAD_BASE + 4 * (ntb.SPADS + 3)), 77)
        self.assertEqual(a.value(ntb.SPAD_BASE + 12), 0)

    def test_a_window_leads_to_the_memory_that_was_named(self):
        a, b = self.sides
        self.assertEqual(b.translate(1, RAM_ADDRESS + 0x3000, 0x2000), ntb.DONE)
        a.write(ntb.BAR_WINDOW + 1, 0x10, b"12345678")
        self.assertEqual(b.ram[0x3010:0x3018], b"12345678")
        b.ram[0x4ff8:0x5008] = b"the last" + b"beyond"[:1] * 8
        self.assertEqual(a.read(ntb.BAR_WINDOW + 1, 0x1ff8, 8), b"the last")
        self.assertEqual(a.read(ntb.BAR_WINDOW + 1, 0x2000, 8), b"\xff" * 8)
        a.write(ntb.BAR_WINDOW + 1, 0x1ffc, b"12345678")
        self.assertEqual(b.ram[0x4ff8:0x5000], b"the last")
        self.assertEqual(a.read(ntb.BAR_WINDOW, 0, 8), b"\xff" * 8)
        b.command(ntb.CLEAR_WINDOW, 1)
        a.write(ntb.BAR_WINDOW + 1, 0x10, b"abcdefgh")
        self.assertEqual(b.ram[0x3010:0x3018], b"12345678")

    def test_what_is_no_memory_of_the_guest_cannot_be_reached(self):
        a, b = self.sides
        self.assertEqual(b.translate(0, RAM_ADDRESS + RAM_BYTES - 4096, 8192), ntb.DONE)
        a.write(ntb.BAR_WINDOW, 4096, b"12345678")
        self.assertEqual(a.read(ntb.BAR_WINDOW, 4096, 8), b"\xff" * 8)
        b.call(vfio.DMA_UNMAP, vfio.UNMAP.pack(24, 0, RAM_ADDRESS, RAM_BYTES))
        self.assertEqual(a.read(ntb.BAR_WINDOW, 0, 8), b"\xff" * 8)

    def test_memory_that_is_mapped_for_reading_is_not_written(self):
        a, b = self.sides
        b.call(vfio.DMA_UNMAP, vfio.UNMAP.pack(24, 0, RAM_ADDRESS, RAM_BYTES))
        fd = os.memfd_create("rom", os.MFD_CLOEXEC)
        os.truncate(fd, 8192)
        for page, flags in enumerate((1, 3)):
            b.call(vfio.DMA_MAP, vfio.MAP.pack(32, flags, 4096 * page, RAM_ADDRESS + 4096 * page, 4096), [fd])
        b.translate(0, RAM_ADDRESS, 8192)
        for offset, found in ((0, bytes(8)), (4096, b"12345678")):
            a.write(ntb.BAR_WINDOW, offset, b"12345678")
            self.assertEqual(a.read(ntb.BAR_WINDOW, offset, 8), found)
        self.assertEqual(self.link.overwrite(1), 4096)
        self.assertEqual(os.pread(fd, 8192, 0), bytes(4096) + b"\xdb" * 4096)
        os.close(fd)

    def test_doorbells(self):
        a, b = self.sides
        a.ring(VECTOR)
        self.assertEqual((b.fired(VECTOR), b.fired(VECTOR - 1), a.fired(VECTOR)), (1, 0, 0))
        a.write(ntb.BAR_DOORBELLS, VECTOR * ntb.DOORBELL_STRIDE + ntb.DOORBELL_PLACE, b"none")
        a.write(ntb.BAR_DOORBELLS, VECTOR * ntb.DOORBELL_STRIDE, struct.pack("<I", ntb.DOORBELL_VALUE + VECTOR))
        self.assertEqual(b.fired(VECTOR), 0)
        b.command(ntb.CLEAR_DOORBELLS)
        a.ring(VECTOR)
        self.assertEqual(b.fired(VECTOR), 0)

    def test_posted_writes_come_in_order_and_before_the_answer_to_a_read(self):
        a, b = self.sides
        b.translate(0, RAM_ADDRESS, WINDOW)
        for number in range(1000):
            a.post(ntb.BAR_WINDOW, 0, struct.pack("<Q", number))
        many = [MULTI.pack(8 * i, ntb.BAR_WINDOW, 8, b"several%d" % i) for i in range(1, 4)]
        a.send(vfio.WRITE_MULTI, struct.pack("<Q", 3) + b"".join(many), flags=vfio.NO_REPLY)
        self.assertEqual(a.read(ntb.BAR_WINDOW, 0, 8), struct.pack("<Q", 999))
        self.assertEqual(b.ram[8:32], b"several1several2several3")

    def test_each_write_of_several_goes_where_it_leads(self):
        a, b = self.sides
        b.translate(0, RAM_ADDRESS, 0x2800)
        b.ram[0x100c:0x1010] = b"kept"
        writes = [(0xff8, b"before  "), (0x1000, b"after   "), (0x1008, b"four"), (0x1010, b"again   "), (0x1010, b"and more"),
                  (0x1018, b"the next"), (0x27f8, b"the last"), (0x2800, b"too far "), (0x14, b"odd here")]
        many = [(ntb.BAR_WINDOW, *one) for one in writes]
        many.insert(6, (ntb.BAR_WINDOW + 1, 0x1020, b"nowhere "))
        many.insert(3, (ntb.BAR_REGISTERS, ntb.SPAD_BASE + 4 * ntb.SPADS, b"spad"))
        body = b"".join(MULTI.pack(offset, region, len(data), data) for region, offset, data in many)
        a.call(vfio.WRITE_MULTI, struct.pack("<Q", len(many)) + body)
        self.assertEqual(b.ram[0xff8:0x1028], b"before  after   fourkeptand morethe next" + bytes(8))
        self.assertEqual(b.ram[0x27f8:0x2808], b"the last" + bytes(8))
        self.assertEqual(b.ram[0x14:0x1c], b"odd here")
        self.assertEqual(b.read(ntb.BAR_REGISTERS, ntb.SPAD_BASE), b"spad")

    def test_a_page_that_may_not_be_written_swallows_writes_of_several(self):
        a, b = self.sides
        b.call(vfio.DMA_UNMAP, vfio.UNMAP.pack(24, 0, RAM_ADDRESS, RAM_BYTES))
        fd = os.memfd_create("rom", os.MFD_CLOEXEC)
        os.truncate(fd, 8192)
        for page, flags in enumerate((1, 3)):
            b.call(vfio.DMA_MAP, vfio.MAP.pack(32, flags, 4096 * page, RAM_ADDRESS + 4096 * page, 4096), [fd])
        b.translate(0, RAM_ADDRESS, 8192)
        many = [MULTI.pack(offset, ntb.BAR_WINDOW, 8, b"12345678") for offset in range(0xff0, 0x1010, 8)]
        a.call(vfio.WRITE_MULTI, struct.pack("<Q", len(many)) + b"".join(many))
        self.assertEqual(os.pread(fd, 0x30, 0xff0), bytes(16) + b"12345678" * 2 + bytes(16))
        os.close(fd)
        b.call(vfio.DMA_UNMAP, vfio.UNMAP.pack(24, vfio.UNMAP_ALL, 0, 0))

    def test_messages_come_together_and_in_pieces(self):
        """Descriptors belong to the message that they were sent with."""
        a, b = self.sides
        a.call(vfio.DMA_UNMAP, vfio.UNMAP.pack(24, vfio.UNMAP_ALL, 0, 0))
        a.translate(0, RAM_ADDRESS, 8192)
        fd = os.memfd_create("ram", os.MFD_CLOEXEC)
        os.truncate(fd, 8192)
        with self.link.lock:  # so that the server reads all messages at once
            a.post(ntb.BAR_WINDOW, 0, b"12345678")
            a.send(vfio.DMA_MAP, vfio.MAP.pack(32, 3, 0, RAM_ADDRESS, 4096), [fd], flags=vfio.NO_REPLY)
            a.post(ntb.BAR_WINDOW, 0, b"12345678")
        self.assertEqual(a.read(ntb.BAR_REGISTERS, ntb.WINDOW_COUNT), struct.pack("<I", ntb.WINDOWS))
        message = vfio.HEADER.pack(7, vfio.DMA_MAP, vfio.HEADER.size + 32, vfio.NO_REPLY, 0) + \
            vfio.MAP.pack(32, 3, 4096, RAM_ADDRESS + 4096, 4096)
        a.sock.sendmsg([message[:10]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        self.assertTrue(any(a.all_is_read() or time.sleep(0.001) for _ in range(60000)))
        a.sock.sendall(message[10:30])
        a.sock.sendall(message[30:] + vfio.HEADER.pack(8, vfio.RESET, vfio.HEADER.size, 0, 0))
        self.assertEqual(vfio.HEADER.unpack(a.receive(vfio.HEADER.size))[:2], (8, vfio.RESET))
        a.translate(0, RAM_ADDRESS, 8192)
        for offset in (0, 4096):
            b.write(ntb.BAR_WINDOW, offset, b"%08d" % offset)
            self.assertEqual(os.pread(fd, 8, offset), b"%08d" % offset)
        os.close(fd)

    def test_a_cut(self):
        a, b = self.sides
        self.come_up()
        b.translate(0, RAM_ADDRESS, WINDOW)
        a.fired(LINK_VECTOR)
        self.link.cut()
        self.assertEqual((a.value(ntb.LINK_STATUS, 2), a.fired(LINK_VECTOR)), (0, 1))
        a.write(ntb.BAR_WINDOW, 0, b"12345678")
        a.set(ntb.SPAD_BASE + 4 * ntb.SPADS, 5)
        a.ring(VECTOR)
        self.assertEqual(a.value(ntb.SPAD_BASE + 4 * ntb.SPADS), 0xffffffff)
        self.link.restore()
        self.assertEqual((a.value(ntb.LINK_STATUS, 2), a.fired(LINK_VECTOR)), (1, 1))
        self.assertEqual((b.ram[:8], b.value(ntb.SPAD_BASE), b.fired(VECTOR)), (bytes(8), 0, 0))

    def test_the_end_of_a_guest_and_another_one(self):
        a, b = self.sides
        self.come_up()
        b.translate(0, RAM_ADDRESS, WINDOW)
        a.fired(LINK_VECTOR)
        b.sock.shutdown(socket.SHUT_RDWR)
        a.wait(LINK_VECTOR)
        self.assertEqual(a.value(ntb.LINK_STATUS, 2), 0)
        self.assertEqual(a.read(ntb.BAR_WINDOW, 0, 8), b"\xff" * 8)
        self.link.wait_gone(1)
        again = self.client(1)
        again.command(ntb.LINK_UP)
        self.assertEqual((a.value(ntb.LINK_STATUS, 2), a.fired(LINK_VECTOR)), (1, 1))
        self.assertEqual(a.read(ntb.BAR_WINDOW, 0, 8), b"\xff" * 8, "the window of the one before")

    def test_a_reset_makes_registers_new(self):
        a, b = self.sides
        self.come_up()
        b.translate(0, RAM_ADDRESS, WINDOW)
        b.call(vfio.RESET)
        self.assertEqual(a.value(ntb.LINK_STATUS, 2), 0)
        self.assertEqual(a.read(ntb.BAR_WINDOW, 0, 8), b"\xff" * 8)

    def test_bad_requests_are_refused(self):
        side = self.sides[0]
        side.call(99, error=errno.ENOTSUP)
        side.read(ntb.BAR_REGISTERS, 4096, error=errno.EINVAL)
        side.read(ntb.BAR_REGISTERS, 4094, error=errno.EINVAL)
        side.read(8, 0, error=errno.EINVAL)
        side.call(vfio.SET_IRQS, vfio.IRQ_SET.pack(20, 0x24, vfio.MSIX, ntb.VECTORS, 1), error=errno.EINVAL)
        self.assertEqual(side.value(ntb.WINDOW_COUNT), 2)

    def test_a_port_has_one_guest(self):
        with self.assertRaisesRegex(ValueError, "connected"):
            self.link.device(0, 0x10)


class EarlyCase(VfioCase):
    """A link whose doorbells overtake stores; side 0 stores through both windows."""

    def setUp(self):
        super().setUp()
        for window in range(ntb.WINDOWS):
            self.sides[1].translate(window, RAM_ADDRESS + 0x1000 * window, 0x1000)

    def store_and_ring(self):
        for window in range(ntb.WINDOWS):
            self.sides[0].write(ntb.BAR_WINDOW + window, 8, b"12345678")
        self.sides[0].ring(VECTOR)
        self.sides[1].wait(VECTOR)

    def seen(self):
        """Is what was stored through each window there?"""
        return [self.sides[1].ram[0x1000 * window + 8:0x1000 * window + 16] == b"12345678"
                for window in range(ntb.WINDOWS)]


class EarlyTest(EarlyCase):
    EARLY = 3600

    def test_a_ring_passes_stores_and_a_read_through_their_window_does_not(self):
        self.store_and_ring()
        self.assertEqual(self.seen(), [False, False])
        self.assertEqual(self.sides[0].read(ntb.BAR_WINDOW, 0, 8), bytes(8))
        self.assertEqual(self.seen(), [True, False])
        self.assertEqual(self.sides[0].read(ntb.BAR_WINDOW + 1, 8, 8), b"12345678")
        self.assertEqual(self.seen(), [True, True])

    def test_a_scratchpad_passes_stores_and_its_read_lands_none(self):
        a, b = self.sides
        a.write(ntb.BAR_WINDOW, 8, b"12345678")
        a.set(ntb.SPAD_BASE + 4 * ntb.SPADS, 5)
        self.assertEqual(a.value(ntb.SPAD_BASE + 4 * ntb.SPADS), 5)
        self.assertEqual((b.value(ntb.SPAD_BASE), self.seen()), (5, [False, False]))

    def test_stores_of_a_message_with_several_are_held_in_their_order(self):
        many = [MULTI.pack(8, ntb.BAR_WINDOW, 8, content) for content in (b"not this", b"12345678")]
        self.sides[0].call(vfio.WRITE_MULTI, struct.pack("<Q", 2) + b"".join(many))
        self.assertEqual(self.seen(), [False, False])
        self.sides[0].read(ntb.BAR_WINDOW, 0, 8)
        self.assertEqual(self.seen(), [True, False])

    def test_the_answer_to_a_read_of_the_other_side_brings_stores_along(self):
        a, b = self.sides
        a.translate(0, RAM_ADDRESS, 0x1000)
        self.store_and_ring()
        b.read(ntb.BAR_WINDOW, 0, 8)
        self.assertEqual(self.seen(), [True, True])

    def test_what_is_on_its_way_when_the_link_is_cut_is_lost(self):
        self.store_and_ring()
        self.link.cut()
        self.link.restore()
        self.sides[0].read(ntb.BAR_WINDOW, 0, 8)
        self.sides[0].read(ntb.BAR_WINDOW + 1, 0, 8)
        self.assertEqual(self.seen(), [False, False])

    def test_a_reset_of_the_port_that_stored_loses_them(self):
        self.store_and_ring()
        self.sides[0].call(vfio.RESET)
        self.sides[0].read(ntb.BAR_WINDOW, 0, 8)
        self.assertEqual(self.seen(), [False, False])

    def test_a_time_below_zero_is_refused(self):
        with self.assertRaisesRegex(ValueError, "held back for -1"):
            ntb.VfioLink(early=-1)


class LateTest(EarlyCase):
    EARLY = 0.01

    def test_stores_that_were_held_back_arrive_by_themselves(self):
        self.store_and_ring()
        self.assertTrue(any(all(self.seen()) or time.sleep(0.001) for _ in range(60000)))


class LeftoverTest(unittest.TestCase):
    def test_descriptors_and_files(self):
        """All are closed, also when a port waits for a guest that does not come."""
        before = sorted(os.listdir("/proc/self/fd"))
        link = ntb.VfioLink()
        client = Client(link, 0)
        words, _ = link.device(1, 0x10)
        folder = Path(json.loads(words[1])["socket"]["path"]).parent
        self.assertTrue(folder.exists())
        link.close()
        client.close()
        self.assertFalse(folder.exists())
        self.assertEqual(sorted(os.listdir("/proc/self/fd")), before)


if __name__ == "__main__":
    sys.exit(unittest.main())
