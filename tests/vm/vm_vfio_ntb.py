# SPDX-License-Identifier: BSD-2-Clause
"""A link of two NTB endpoints, for the kernel's driver ntb_hw_epf: devices over vfio-user, one in each of two guests.

It has the registers, scratchpads, doorbells and windows that the driver expects of an endpoint between two hosts.  A
window leads to the memory of the peer's guest, at the address that the peer's driver has asked for;
an address that is not translated, or is not memory of that guest, ignores stores and reads as ones.

A link may hold back stores into windows for a time (`early`), while doorbells and scratchpads pass, as endpoints do that
have a unit of address translation for each range.  A read through the same window lands the stores that came through it
before.  The answer to a read passes no store on its way back: it brings along what its reader's peer has stored.
"""
import collections
import json
import os
import selectors
import struct
import threading
import time

from vm_qemu import qemu_with_vfio_user
from vm_vfio import Connection, Interrupts, Listener, Memory

PORTS = 2
VENDOR, DEVICE = 0x1957, 0x0809
CLASS_MEMORY = 0x050000
# BARs by their use: this model of the driver's table has registers, doorbells and two windows.
BAR_REGISTERS, BAR_MSIX, BAR_DOORBELLS, BAR_WINDOW = 0, 1, 2, 4
WINDOWS = 2
VECTORS = 32  # 0 is for the link, 1 for nothing, each further one is a doorbell
SPADS = 64
PAGE = 4096
DEADLINE = 60
ANSWER_MS = 60000  # a guest that gets no answer in this time assumes an error of its device, and fails

COMMAND, ARGUMENT, STATUS, LINK_STATUS = 0x0, 0x4, 0x8, 0xa
LOWER_ADDRESS, UPPER_ADDRESS, LOWER_SIZE, UPPER_SIZE = 0x10, 0x14, 0x18, 0x1c
WINDOW_COUNT, WINDOW_OFFSET, SPAD_OFFSET, SPAD_COUNT = 0x20, 0x24, 0x28, 0x2c
DOORBELL_SIZE, DOORBELL_DATA, DOORBELL_OFFSET = 0x30, 0x34, 0xb4
SPAD_BASE = 0x400  # the scratchpads of this port, then those of the peer
DOORBELL_STRIDE, DOORBELL_PLACE, DOORBELL_VALUE = 64, 16, 0xbe110000
SET_DOORBELLS, CLEAR_DOORBELLS, SET_WINDOW, CLEAR_WINDOW, LINK_UP, LINK_DOWN = range(1, 7)
DONE, REFUSED = 1, 2


def config_space():
    """256 bytes, with MSI-X as the only capability."""
    space = bytearray(256)
    struct.pack_into("<HHHH", space, 0, VENDOR, DEVICE, 0, 0x10)  # command, status: has capabilities
    struct.pack_into("<I", space, 8, CLASS_MEMORY << 8)
    struct.pack_into("<HH", space, 0x2c, VENDOR, DEVICE)
    space[0x34] = 0x40
    struct.pack_into("<BBHII", space, 0x40, 0x11, 0, VECTORS - 1, BAR_MSIX, BAR_MSIX | 0x800)
    return space


class Port:
    """The endpoint as one of the two guests sees it."""

    def __init__(self, link, number, window_bytes):
        self.link = link
        self.number = number
        self.window_bytes = window_bytes
        self.regions = {BAR_REGISTERS: PAGE, BAR_MSIX: PAGE, BAR_DOORBELLS: PAGE}
        for index in range(WINDOWS):
            self.regions[BAR_WINDOW + index] = window_bytes
        self.memory = Memory()
        self.interrupts = Interrupts(VECTORS)
        self.alive = False
        self.power_up()

    def power_up(self):
        self.config = config_space()
        self.registers = bytearray(PAGE)
        self.enabled = False
        self.doorbells = 0  # the number that the driver serves
        self.windows = [None] * WINDOWS  # (address, bytes) in this guest's memory, for the peer
        self.drop_held()
        for offset, value in ((WINDOW_COUNT, WINDOWS), (SPAD_OFFSET, SPAD_BASE), (SPAD_COUNT, SPADS),
                              (DOORBELL_SIZE, DOORBELL_STRIDE)):
            self.set(offset, value)
        for index in range(VECTORS):
            self.set(DOORBELL_DATA + 4 * index, DOORBELL_VALUE + index)
            self.set(DOORBELL_OFFSET + 4 * index, DOORBELL_PLACE)

    def get(self, offset):
        return struct.unpack_from("<I", self.registers, offset)[0]

    def set(self, offset, value):
        struct.pack_into("<I", self.registers, offset, value)

    @property
    def peer(self):
        return self.link.ports[1 - self.number]

    def reset(self):
        """The reset of the machine: the registers are as after power-up."""
        self.power_up()
        self.link.settle()

    def drop_held(self):
        """Stores that are on their way are lost."""
        self.held = [collections.deque() for _ in range(WINDOWS)]  # (when it lands, offset, data), for each window

    def land(self, index, until=None):
        """Stores through a window arrive in their order: all, or those whose time has come at `until`."""
        held = self.held[index]
        while held and (until is None or held[0][0] <= until):
            _, offset, data = held.popleft()
            self.store(index, offset, data)

    def store(self, index, offset, data):
        place = self.translate(index, offset, len(data), write=True)
        if place:
            place[0][place[1]:place[1] + len(data)] = data

    def show_link(self, up):
        before = struct.unpack_from("<H", self.registers, LINK_STATUS)[0]
        struct.pack_into("<H", self.registers, LINK_STATUS, int(up))
        if before != int(up):
            self.interrupts.fire(0)

    def read(self, bar, offset, count):
        if bar >= BAR_WINDOW:
            self.land(bar - BAR_WINDOW)
            for index in range(WINDOWS):
                self.peer.land(index)
            place = self.translate(bar - BAR_WINDOW, offset, count)
            return place[0][place[1]:place[1] + count] if place else b"\xff" * count
        if bar != BAR_REGISTERS:
            return bytes(count)
        spad = self.peer_spad(offset, count)
        if spad is None:
            return bytes(self.registers[offset:offset + count])
        if not self.link.connected():
            return b"\xff" * count
        return bytes(self.peer.registers[spad:spad + count])

    def write(self, bar, offset, data):
        if bar >= BAR_WINDOW and self.link.early:
            self.held[bar - BAR_WINDOW].append((time.monotonic() + self.link.early, offset, bytes(data)))
        elif bar >= BAR_WINDOW:
            self.store(bar - BAR_WINDOW, offset, data)
        elif bar == BAR_DOORBELLS:
            self.ring(offset, data)
        elif bar == BAR_REGISTERS:
            self.write_register(offset, data)

    def page(self, bar, offset):
        """The words of the peer's memory that a page of a window leads to, or None, also if stores are held back."""
        window = self.peer.windows[bar - BAR_WINDOW] if bar >= BAR_WINDOW and not self.link.early else None
        if window is None or not self.link.connected() or offset + PAGE > window[1]:
            return None
        return self.peer.memory.page(window[0] + offset)

    @staticmethod
    def peer_spad(offset, count):
        """The offset in the peer's registers to which an access to a scratchpad of the peer leads."""
        start = SPAD_BASE + 4 * SPADS
        return offset - 4 * SPADS if start <= offset and offset + count <= start + 4 * SPADS else None

    def write_register(self, offset, data):
        spad = self.peer_spad(offset, len(data))
        if spad is not None:
            if self.link.connected():
                self.peer.registers[spad:spad + len(data)] = data
            return
        readable = WINDOW_COUNT <= offset < SPAD_BASE or offset == LINK_STATUS
        if readable or offset + len(data) > SPAD_BASE + 4 * SPADS:
            return
        self.registers[offset:offset + len(data)] = data
        if offset == COMMAND:
            good = self.do(self.get(COMMAND), self.get(ARGUMENT))
            struct.pack_into("<H", self.registers, STATUS, DONE if good else REFUSED)

    def do(self, command, argument):
        """Executes a command of the driver; returns whether it succeeded."""
        if command == SET_DOORBELLS:
            count = argument & 0xffff
            self.doorbells = count if count <= VECTORS else 0
            return count <= VECTORS
        if command == CLEAR_DOORBELLS:
            self.doorbells = 0
            return True
        if command in (SET_WINDOW, CLEAR_WINDOW):
            return self.set_window(argument, command == SET_WINDOW)
        if command in (LINK_UP, LINK_DOWN):
            self.enabled = command == LINK_UP
            self.link.settle()
            return True
        return False

    def set_window(self, index, there):
        if index >= WINDOWS:
            return False
        address = self.get(UPPER_ADDRESS) << 32 | self.get(LOWER_ADDRESS)
        size = self.get(UPPER_SIZE) << 32 | self.get(LOWER_SIZE)
        if there and (address % PAGE or not 0 < size <= self.window_bytes):
            return False
        self.windows[index] = (address, size) if there else None
        return True

    def translate(self, index, offset, count, write=False):
        """(map, offset) in the memory of the peer's guest, or nothing."""
        window = self.peer.windows[index]
        if window is None or not self.link.connected() or offset + count > window[1]:
            return None
        return self.peer.memory.place(window[0] + offset, count, write)

    def ring(self, offset, data):
        """A doorbell has a place and a value; a store of another value does not ring."""
        index, place = divmod(offset, DOORBELL_STRIDE)
        if place == DOORBELL_PLACE and data == struct.pack("<I", DOORBELL_VALUE + index) and self.link.connected() \
                and index < self.peer.doorbells:
            self.peer.interrupts.fire(index)


class VfioLink:
    """One link, served by a thread of its own; a port is connected again after its guest has ended.

    early: for how many seconds stores through windows are held back, while doorbells pass; 0: not at all."""

    def __init__(self, window_bytes=1 << 20, early=0):
        if window_bytes & (window_bytes - 1) or window_bytes < PAGE:
            raise ValueError(f"windows of {window_bytes} bytes: not a power of two, or below a page")
        if early < 0:
            raise ValueError(f"stores are held back for {early} seconds")
        self.early = early
        self.cut_off = False
        self.ports = [None] * PORTS
        self.ports = [Port(self, number, window_bytes) for number in range(PORTS)]
        self.connections = [None] * PORTS
        self.listeners = [None] * PORTS
        self.lock = threading.RLock()
        self.ended = threading.Condition(self.lock)
        self.error = None
        self.selector = selectors.DefaultSelector()
        self.wake_in, self.wake_out = os.pipe2(os.O_CLOEXEC)
        self.selector.register(self.wake_in, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self.watch, name="vm-vfio", daemon=True)
        self.thread.start()

    # The options of machines that have such a link.
    qemu = staticmethod(qemu_with_vfio_user)

    @staticmethod
    def memory(size):
        """The memory of a guest is a file, so that the device can reach it."""
        return ["-m", str(size), "-object", f"memory-backend-memfd,id=ram,size={size}M,share=on", "-machine",
                "memory-backend=ram"]

    def device(self, port, slot):
        """(words for QEMU, sockets that it inherits)"""
        with self.lock:
            if self.connections[port] is not None or self.listeners[port] is not None:
                raise ValueError(f"port {port} is connected")
            listener = self.listeners[port] = Listener()
            self.selector.register(listener.sock, selectors.EVENT_READ, (self.accept, port))
        os.write(self.wake_out, b"+")
        words = {"driver": "vfio-user-pci", "addr": f"{slot:#x}", "socket": {"type": "unix", "path": listener.path},
                 "x-msg-timeout": ANSWER_MS}
        return ["-device", json.dumps(words)], []

    def overwrite(self, port):
        """Lets the adapter of a port write all memory that it can reach; returns the number of bytes."""
        with self.lock:
            return self.ports[port].memory.overwrite()

    def connected(self):
        """Does an access reach the other side?"""
        return not self.cut_off and all(port.alive for port in self.ports)

    def up(self):
        return self.connected() and all(port.enabled for port in self.ports)

    def settle(self):
        """Tells both ports the state of the link; what is on its way when a side goes is lost."""
        for port in self.ports:
            if not self.connected():
                port.drop_held()
            port.show_link(self.up())

    def cut(self):
        with self.lock:
            self.cut_off = True
            self.settle()

    def restore(self):
        with self.lock:
            self.cut_off = False
            self.settle()

    def accept(self, port):
        listener, self.listeners[port] = self.listeners[port], None
        self.selector.unregister(listener.sock)
        self.ports[port].power_up()
        self.ports[port].alive = True
        self.connections[port] = Connection(listener.accept(), self.ports[port])
        self.selector.register(self.connections[port].sock, selectors.EVENT_READ, (self.serve, port))

    def serve(self, port):
        if not self.connections[port].serve():
            self.gone(port)

    def gone(self, port):
        """The guest of a port has ended."""
        connection, self.connections[port] = self.connections[port], None
        self.selector.unregister(connection.sock)
        connection.close()
        self.ports[port].alive = False
        self.ports[port].power_up()
        self.settle()
        self.ended.notify_all()

    def wait_gone(self, port):
        """Waits until this link has seen the end of a port's guest, which has ended."""
        with self.ended:
            self.ended.wait_for(lambda: self.connections[port] is None or self.error is not None, DEADLINE)

    def watch(self):
        try:
            while self.turn():
                pass
        except Exception as error:  # pylint: disable=broad-except
            with self.ended:
                self.error = error  # for close()
                self.ended.notify_all()

    def land_due(self):
        """Lands stores whose time has come; returns the seconds until the next one is due, or None."""
        if not self.early:
            return None
        with self.lock:
            now = time.monotonic()
            for port in self.ports:
                for index in range(WINDOWS):
                    port.land(index, now)
            dues = [held[0][0] for port in self.ports for held in port.held if held]
            return max(0, min(dues) - now) if dues else None

    def turn(self):
        for key, _ in self.selector.select(self.land_due()):
            if key.data is None:
                if os.read(self.wake_in, 1) == b"x":
                    return False
            else:
                action, port = key.data
                with self.lock:
                    action(port)
        return True

    def close(self):
        os.write(self.wake_out, b"x")
        self.thread.join()
        if self.error is not None:
            raise self.error
        self.selector.close()
        for one in self.listeners + self.connections:
            if one is not None:
                one.close()
        os.close(self.wake_in)
        os.close(self.wake_out)
