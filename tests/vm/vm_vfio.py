# SPDX-License-Identifier: BSD-2-Clause
"""The server's side of vfio-user: a PCI device outside of QEMU.

QEMU connects to a socket, asks what the device has, and sends each access of the guest to its regions as a message.  It
hands over the guest's memory as files, so the device reads and writes that directly, and an eventfd for each interrupt.

QEMU does not wait for the answer to a write, and puts several into a message when they come faster than they are served;
an answer to a read comes after all writes before it.  It queues writes without a limit, where an adapter without room
would make the processor wait: the next read then waits for all of them, and the guest for the read.  So stores have to
be served faster than a guest makes them: many are read from the socket at once, and the target of a page is looked up
once for a run of them.
"""
import array
import bisect
import contextlib
import errno
import json
import mmap
import os
import socket
import struct
import tempfile
from pathlib import Path

VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION_INFO, _, GET_IRQ_INFO, SET_IRQS, REGION_READ, REGION_WRITE = range(1, 11)
RESET, WRITE_MULTI = 13, 15
HEADER = struct.Struct("<HHIII")
REPLY, NO_REPLY, ERROR = 0x1, 0x10, 0x20
ACCESS = struct.Struct("<QII")  # offset, region, bytes
MAP = struct.Struct("<IIQQQ")  # size of this, flags, offset in the file, address, bytes
UNMAP = struct.Struct("<IIQQ")
MAP_WRITE = 2
UNMAP_ALL = 2
IRQ_SET = struct.Struct("<IIIII")  # size of this, flags, kind, first, count
IRQ_EVENTFD, IRQ_TRIGGER = 0x4, 0x20
DEVICE_RESETS, DEVICE_PCI = 1, 2
REGIONS, CONFIG_REGION = 9, 7  # BARs 0 to 5, ROM, configuration space, VGA
IRQ_KINDS, MSIX = 5, 2
MESSAGE_MAX = 2 << 20
FDS_MAX = 8  # in a message: QEMU refuses a server that announces more than 16
TURN = 1 << 16  # bytes that are served before the next connection
PAGE = 4096
WORD = 8


class ProtocolError(Exception):
    """QEMU sent a message that is not valid here."""


class Memory:
    """A guest's memory, as its devices see it: parts of whole pages that do not overlap, thousands behind an IOMMU."""

    def __init__(self):
        self.parts = {}  # address: (bytes, map, may the device write?)
        self.starts = []  # their addresses, sorted

    def add(self, address, size, fd, offset, writable=True):
        if address in self.parts:
            raise OSError(errno.EEXIST, "mapped")
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, fd)
            self.parts[address] = (size, mmap.mmap(fd, size, offset=offset), writable)
            bisect.insort(self.starts, address)

    def remove(self, address):
        part = self.parts.pop(address, None)
        if part is not None:
            del self.starts[bisect.bisect_left(self.starts, address)]
            part[1].close()

    def clear(self):
        for address in list(self.parts):
            self.remove(address)

    def place(self, address, size, write=False):
        """(map, offset) of a range that lies in one part, or nothing if the device cannot reach it."""
        index = bisect.bisect_right(self.starts, address)
        if index == 0:
            return None
        start = self.starts[index - 1]
        length, part, writable = self.parts[start]
        if address + size > start + length or write and not writable:
            return None
        return part, address - start

    def page(self, address):
        """The words of a page that the device may write, or nothing.  They are to be released soon."""
        place = self.place(address, PAGE, write=True)
        return memoryview(place[0])[place[1]:place[1] + PAGE].cast("Q") if place else None

    def overwrite(self):
        """Stores into all that the device may write; returns the number of bytes."""
        parts = [(size, part) for size, part, writable in self.parts.values() if writable]
        for size, part in parts:
            part[:] = b"\xdb" * size
        return sum(size for size, _ in parts)


class Interrupts:
    """The MSI-X vectors that the guest has enabled: an eventfd for each."""

    def __init__(self, count):
        self.events = [None] * count

    def set(self, first, fds):
        for number, fd in enumerate(fds, first):
            self.drop(number, 1)
            self.events[number] = fd

    def drop(self, first, count):
        for number in range(first, first + count):
            if self.events[number] is not None:
                os.close(self.events[number])
                self.events[number] = None

    def clear(self):
        self.drop(0, len(self.events))

    def fire(self, number):
        """Raises a vector; it is lost if the guest has not enabled it."""
        if self.events[number] is not None:
            os.eventfd_write(self.events[number], 1)


class Listener:
    """A socket for one QEMU.  QEMU knows sockets only by their paths, so it has one until QEMU is connected."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="viaduct-vm-")
        self.path = str(Path(self.folder) / "s")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.sock.bind(self.path)
        self.sock.listen(1)

    def accept(self):
        sock, _ = self.sock.accept()
        self.close()
        return sock

    def close(self):
        self.sock.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
            os.rmdir(self.folder)


class Connection:
    """Serves one QEMU.  The device has config (a bytearray), regions (bytes of each BAR), memory, interrupts, and
    read(bar, offset, count), write(bar, offset, data) and reset(), and page(bar, offset): the words of the memory that
    a page of a BAR leads to, or None."""

    def __init__(self, sock, device):
        self.sock = sock
        self.device = device
        self.data = b""  # the beginning of a message that has not come completely
        self.fds = []  # of that message
        self.actions = {VERSION: self.version, DMA_MAP: self.dma_map, DMA_UNMAP: self.dma_unmap,
                        GET_INFO: self.get_info, GET_REGION_INFO: self.get_region_info,
                        GET_IRQ_INFO: self.get_irq_info, SET_IRQS: self.set_irqs, REGION_READ: self.region_read,
                        REGION_WRITE: self.region_write, RESET: self.reset, WRITE_MULTI: self.write_multi}

    def serve(self):
        """Serves the messages that have come; False when QEMU has ended."""
        try:
            fds = self.receive()
            if fds is not None:
                self.serve_all(fds)
            return fds is not None
        except BlockingIOError:
            return True
        except (ConnectionResetError, BrokenPipeError):
            return False

    def receive(self):
        """The descriptors that came with the data; None when QEMU has ended.  Those are of the message that begins last,
        because a call that receives any ends with the data that they were sent with."""
        room = socket.CMSG_SPACE(FDS_MAX * 4)
        data, extra, flags, _ = self.sock.recvmsg(TURN, room, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
        fds = array.array("i")
        for level, kind, content in extra:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(content[:len(content) // 4 * 4])
        if flags & socket.MSG_CTRUNC:
            raise ProtocolError(f"more than {FDS_MAX} descriptors in a message")
        self.data += data
        return list(fds) if data else None

    def serve_all(self, fds):
        """Serves all messages that have come completely, and keeps the rest."""
        at, end = 0, len(self.data)
        while end - at >= HEADER.size:
            size = HEADER.unpack_from(self.data, at)[2]
            if not HEADER.size <= size <= MESSAGE_MAX:
                raise ProtocolError(f"a message of {size} bytes")
            if size > end - at:
                break
            self.serve_one(self.data[at:at + size], self.fds + (fds if at + size == end else []))
            self.fds = []
            at += size
        if at < end:
            self.fds += fds
        self.data = self.data[at:]

    def serve_one(self, message, fds):
        number, command, _, flags, _ = HEADER.unpack_from(message)
        error, answer = 0, b""
        try:
            action = self.actions.get(command)
            if action is None:
                raise OSError(errno.ENOTSUP, "unknown")
            answer = action(message[HEADER.size:], fds)
        except OSError as failure:
            error, answer = failure.errno, b""
        for fd in fds:  # those that no message used
            os.close(fd)
        if not flags & NO_REPLY:
            self.sock.sendall(HEADER.pack(number, command, HEADER.size + len(answer), REPLY | (ERROR if error else 0),
                                          error) + answer)

    def version(self, body, _fds):
        major, minor = struct.unpack_from("<HH", body)
        if (major, minor) != (0, 0):
            raise ProtocolError(f"version {major}.{minor} of vfio-user, not 0.0")
        able = {"capabilities": {"max_msg_fds": FDS_MAX, "max_data_xfer_size": 1 << 20, "write_multiple": True}}
        return struct.pack("<HH", 0, 0) + json.dumps(able).encode() + b"\0"

    def dma_map(self, body, fds):
        _, flags, offset, address, size = MAP.unpack_from(body)
        if fds:  # without a file it is memory that no device can use, such as a ROM
            self.device.memory.add(address, size, fds.pop(0), offset, bool(flags & MAP_WRITE))
        return b""

    def dma_unmap(self, body, _fds):
        _, flags, address, _ = UNMAP.unpack_from(body)
        if flags & UNMAP_ALL:
            self.device.memory.clear()
        else:
            self.device.memory.remove(address)
        return body[:UNMAP.size]

    def get_info(self, _body, _fds):
        return struct.pack("<IIII", 16, DEVICE_RESETS | DEVICE_PCI, REGIONS, IRQ_KINDS)

    def size_of(self, region):
        if region == CONFIG_REGION:
            return len(self.device.config)
        return self.device.regions.get(region, 0)

    def get_region_info(self, body, _fds):
        region = struct.unpack_from("<III", body)[2]
        size = self.size_of(region)
        return struct.pack("<IIIIQQ", 32, 3 if size else 0, region, 0, size, 0)

    def get_irq_info(self, body, _fds):
        kind = struct.unpack_from("<III", body)[2]
        count = len(self.device.interrupts.events) if kind == MSIX else 0
        return struct.pack("<IIII", 16, 1, kind, count)

    def set_irqs(self, body, fds):
        _, flags, kind, first, count = IRQ_SET.unpack_from(body)
        interrupts = self.device.interrupts
        if kind != MSIX or not flags & IRQ_TRIGGER or first + count > len(interrupts.events):
            raise OSError(errno.EINVAL, "interrupts")
        if not flags & IRQ_EVENTFD:
            interrupts.clear()
        elif fds:
            interrupts.set(first, fds)
            fds.clear()
        else:
            interrupts.drop(first, count)
        return b""

    def check(self, region, offset, count):
        size = self.size_of(region)
        if offset > size or count > size - offset:
            raise OSError(errno.EINVAL, "beyond the region")

    def region_read(self, body, _fds):
        offset, region, count = ACCESS.unpack_from(body)
        self.check(region, offset, count)
        if region == CONFIG_REGION:
            data = bytes(self.device.config[offset:offset + count])
        else:
            data = self.device.read(region, offset, count)
        return body[:ACCESS.size] + data

    def region_write(self, body, _fds):
        offset, region, count = ACCESS.unpack_from(body)
        self.store(region, offset, body[ACCESS.size:ACCESS.size + count])
        return body[:ACCESS.size]

    def write_multi(self, body, _fds):
        words = memoryview(body).cast("Q")
        if len(words) != 1 + 3 * words[0]:
            raise ProtocolError(f"{words[0]} writes in {len(body)} bytes")
        kind = expected = page = None
        index = 0
        for offset, what, word in zip(*(words[first::3].tolist() for first in (1, 2, 3))):
            if offset != expected or what != kind:
                kind, index, page = what, offset % PAGE // WORD, self.page(what, offset)
            if page is None:
                self.store(what & 0xffffffff, offset, word.to_bytes(WORD, "little")[:what >> 32])
                continue
            page[index] = word
            index += 1
            expected = offset + WORD if index < PAGE // WORD else None
        return body[:WORD]

    def page(self, what, offset):
        """The words of the page that stores of a kind go to; None: each store has to be served by itself."""
        region, size = what & 0xffffffff, what >> 32
        if size != WORD or offset % WORD or offset >= self.size_of(region):
            return None
        return self.device.page(region, offset - offset % PAGE)

    def store(self, region, offset, data):
        self.check(region, offset, len(data))
        if region == CONFIG_REGION:
            self.device.config[offset:offset + len(data)] = data
        else:
            self.device.write(region, offset, data)

    def reset(self, _body, _fds):
        self.device.reset()
        return b""

    def close(self):
        self.sock.close()
        self.device.memory.clear()
        self.device.interrupts.clear()
