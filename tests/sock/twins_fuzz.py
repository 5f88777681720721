# SPDX-License-Identifier: BSD-2-Clause
"""Random calls on a kernel pair and a promoted pair, for twins.py."""
import contextlib
import os
import random
import select
import socket
import struct
import tempfile
import threading
import time

from twins_calls import called, drain, fill, messages, room, text
from twins_pair import KERNEL, LIBC, LATER, PATIENCE, PROMOTED, answer, pair, poll, ready_bytes

# Bytes that are under way to one end, but for steps that end with none: the kernel's buffer holds them after a change of path.
MOST = {0: 30000, 10000: 4000, 100000: 30000}
LARGE = 1 << 20
PATTERN = bytes(range(251)) * (LARGE // 251 + 2)
SIZES = [1, 2, 7, 64, 500, 1000, 4096, 8000, 16384]
STEPS = {"send": 20, "recv": 20, "poll": 8, "peek": 6, "count": 4, "throw": 2, "nothing": 4, "zero": 2, "large": 3, "full": 1,
         "mode": 4, "low": 2, "push": 3, "dup": 2, "out": 4, "demote": 1, "fork": 1, "shut": 1}
ENDS = ["close", "close unread", "reset", "shut", "shut reading"]


def data(at, size):
    """The bytes of a direction from there on."""
    return PATTERN[at % 251:at % 251 + size]


class Twin:
    """A pair, with the state that the calls so far must have left."""

    def __init__(self, address, buffers, most, file):
        self.most = most
        self.ends, self.address, self.file = pair(address, buffers), address, file
        self.sent, self.got = [0, 0], [0, 0]  # bytes sent to each end, and received by it
        self.ended = [False, False]  # has the direction of each end ended?
        self.least, self.blocks = [1, 1], [True, True]
        self.set, self.members = select.epoll(), [False, False]
        for me in (0, 1):
            self.add(me)

    def close(self):
        self.set.close()
        for s in self.ends:
            s.close()

    def way(self, me):
        return self.sent[me] - self.got[me]

    def add(self, me):
        if not self.members[me]:
            self.set.register(self.ends[me], select.EPOLLIN | select.EPOLLRDHUP)
        self.members[me] = True

    def take_out(self, me):
        if self.members[me]:
            self.set.unregister(self.ends[me])
        self.members[me] = False

    def step(self, draw):
        what = draw.choices(list(STEPS), STEPS.values())[0]
        return what, getattr(self, what)(draw, draw.randrange(2))

    # ---- sending ----

    def send_by(self, how, me, some):
        s, size = self.ends[me], len(some)
        if how == "write":
            return answer(os.write, s.fileno(), some)
        if how == "writev":
            return answer(os.writev, s.fileno(), [some[:size // 3], b"", some[size // 3:]])
        if how == "sendmsg":
            return answer(s.sendmsg, [some[:1], some[1:size // 2], some[max(1, size // 2):]], [], socket.MSG_NOSIGNAL)
        if how == "sendmmsg":
            sent = messages([text(some[:size // 2])], [text(some[size // 2:])])
            n = called(LIBC.sendmmsg, s.fileno(), sent, 2, socket.MSG_NOSIGNAL)
            return sum(m.size for m in sent[:n]) if isinstance(n, int) else n
        if how == "sendfile":
            return answer(os.sendfile, s.fileno(), self.file.fileno(), self.sent[1 - me] % 251, size)
        return answer(s.send, some, socket.MSG_NOSIGNAL | (socket.MSG_MORE if how == "more" else 0))

    def send(self, draw, me):
        size, how = draw.choice(SIZES), draw.choice(["send", "write", "writev", "sendmsg", "sendmmsg", "sendfile", "more"])
        if self.way(1 - me) + size > self.most:
            return "full"
        n = self.send_by(how, me, data(self.sent[1 - me], size))
        if n == "EAGAIN":  # room may come back a little after bytes were taken
            poll(self.ends[me], select.POLLOUT, PATIENCE)
            n = self.send_by(how, me, data(self.sent[1 - me], size))
        self.sent[1 - me] += n if isinstance(n, int) else 0
        return how, size, n

    def zero(self, _, me):
        return answer(self.ends[me].send, b"", socket.MSG_NOSIGNAL)

    def large(self, draw, me):
        """A long call, while the other end receives."""
        size, said = draw.randrange(1, LARGE + 1), []
        if self.ended[me] or not self.blocks[me]:
            return None
        sender = threading.Thread(target=lambda: said.append(answer(self.ends[me].sendall, data(self.sent[1 - me], size))))
        sender.start()
        self.sent[1 - me] += size
        right = self.take(1 - me, self.way(1 - me), "recv")
        sender.join()
        return size, said, right

    def full(self, _, me):
        """Until there is no room; of a kernel's pair all bytes would arrive, but seconds later."""
        if self.ended[me]:
            return None
        self.ends[me].setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
        right = self.take(1 - me, self.way(1 - me), "recv")
        if self.address == KERNEL:
            return right, True, "EAGAIN"
        n = fill(self.ends[me])
        self.ends[1 - me].setblocking(True)
        drain(self.ends[1 - me], n)
        self.ends[1 - me].setblocking(self.blocks[1 - me])
        poll(self.ends[me], select.POLLOUT, PATIENCE)  # room may come back a little after the bytes were taken
        return right, n > 0, answer(self.ends[1 - me].recv, 1, socket.MSG_DONTWAIT)

    # ---- receiving ----

    def recv_by(self, how, me, size, flags):
        s = self.ends[me]
        if how == "read":
            return os.read(s.fileno(), size)
        if how in ("readv", "recvmsg"):
            parts = [bytearray(size // 3), bytearray(0), bytearray(size - size // 3)]
            n = os.readv(s.fileno(), parts) if how == "readv" else s.recvmsg_into(parts, 0, flags)[0]
            return b"".join(parts)[:n]
        if how == "recvmmsg":
            rooms = [room(max(1, size // 2)), room(max(1, size - size // 2))]
            got = messages(*[[r] for r in rooms][:1 if size == 1 else 2])
            n = called(LIBC.recvmmsg, s.fileno(), got, len(got), socket.MSG_DONTWAIT, None)
            if not isinstance(n, int):
                raise BlockingIOError(11, n)
            return b"".join(bytes(r)[:m.size] for r, m in zip(rooms, got[:n]))
        return s.recv(size, flags)

    def no_mark(self, me):
        """The kernel wakes no call that waits for fewer bytes than the low-water mark."""
        if self.least[me] > 1:
            self.least[me] = 1
            self.ends[me].setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)

    def take(self, me, size, how):
        """Receives so many bytes; whether they were the right ones, or an error."""
        until, right = time.monotonic() + PATIENCE / 1000, True
        self.no_mark(me)
        while size:
            try:
                some = self.recv_by(how, me, size, socket.MSG_WAITALL)
            except BlockingIOError:
                if time.monotonic() > until:
                    return "they do not come"
                poll(self.ends[me], select.POLLIN, 1)
                continue
            except OSError as error:
                return str(error)
            if not some:
                return "the end"
            right = right and some == data(self.got[me], len(some))
            self.got[me] += len(some)
            size -= len(some)
        return right

    def recv(self, draw, me):
        size, how = draw.choice(SIZES), draw.choice(["recv", "read", "readv", "recvmsg", "recvmmsg"])
        return how, self.take(me, min(size, self.way(me)), how)

    def nothing(self, _, me):
        if self.way(me):
            return None
        if self.ended[1 - me]:
            poll(self.ends[me], select.POLLRDHUP, PATIENCE)
        return answer(self.ends[me].recv, 10, socket.MSG_DONTWAIT)

    def peek(self, draw, me):
        size = min(draw.choice(SIZES), self.way(me))
        if not size:
            return answer(self.ends[me].recv, 0)
        self.no_mark(me)
        self.ends[me].setblocking(True)
        some = answer(self.ends[me].recv, size, socket.MSG_PEEK | socket.MSG_WAITALL)
        self.ends[me].setblocking(self.blocks[me])
        return some == data(self.got[me], size)

    def throw(self, draw, me):
        size = min(draw.choice(SIZES), self.way(me))
        if not size or self.way(me) < self.least[me] or ready_bytes(self.ends[me], self.way(me)) < size:
            return None
        left = size
        while left:  # a call ends where the path changes
            left -= len(self.ends[me].recv(left, socket.MSG_TRUNC | socket.MSG_DONTWAIT))
        self.got[me] += size
        return size

    # ---- questions ----

    def poll(self, draw, me):
        s, low, rdhup = self.ends[me], self.least[me], self.ended[1 - me]
        there = rdhup or self.way(me) >= low
        how = draw.choice(["poll", "select", "epoll"])
        if how == "poll":
            said = poll(s, select.POLLIN, PATIENCE if there else 0)
        elif how == "select":
            said = bool(select.select([s], [], [], PATIENCE / 1000 if there else 0)[0])
        else:
            self.add(me)
            until, said = time.monotonic() + PATIENCE / 1000, 0
            while True:
                said = dict(self.set.poll(0.1 if there else 0)).get(s.fileno(), 0) & (select.EPOLLIN if not rdhup else ~0)
                if bool(said & select.EPOLLIN) == there or time.monotonic() > until:
                    break
        # There is room, except while the direction changes its path.
        return how, there, bool(said), poll(s, select.POLLOUT, PATIENCE) != []

    def count(self, _, me):
        return None if self.ended[1 - me] or self.way(me) < self.least[me] else ready_bytes(self.ends[me], self.way(me))

    # ---- state ----

    def mode(self, draw, me):
        self.blocks[me] = draw.random() < 0.5
        return self.ends[me].setblocking(self.blocks[me])

    def low(self, draw, me):
        self.least[me] = n = draw.choice([1, 1, 2, 100, 3000])
        return answer(self.ends[me].setsockopt, socket.SOL_SOCKET, socket.SO_RCVLOWAT, n)

    def push(self, draw, me):
        """Options that hold bytes back, and let them go."""
        name = draw.choice([socket.TCP_NODELAY, socket.TCP_CORK])
        return name, answer(self.ends[me].setsockopt, socket.IPPROTO_TCP, name, draw.randrange(2))

    def dup(self, _, me):
        s = self.ends[me]
        self.take_out(me)
        self.ends[me] = s.dup()
        s.close()
        self.add(me)
        self.ends[me].setblocking(self.blocks[me])

    def out(self, draw, me):
        """Out of the set, and in again, now or later; meanwhile the set tells nothing of it."""
        self.take_out(me)
        told = self.ends[me].fileno() in dict(self.set.poll(0))
        if draw.random() < 0.5:
            self.add(me)
        return told

    def demote(self, _, me):
        return answer(self.ends[me].setsockopt, socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)

    def fork(self, draw, me):
        """A child that sends, or only ends; after an end, or where bytes are unread, the connection is the parent's alone."""
        size = draw.choice([0, 1, 1000, 4096])
        if self.way(me) or self.ended[me] or self.ended[1 - me] or self.way(1 - me) + size > self.most:
            size = 0
        child = os.fork()
        if child == 0:
            with contextlib.suppress(OSError):
                os._exit(0 if size == 0 or self.ends[me].send(data(self.sent[1 - me], size)) == size else 1)
            os._exit(2)
        self.sent[1 - me] += size
        return size, os.waitpid(child, 0)[1]

    def shut(self, _, me):
        if self.ended[me]:
            return None
        self.ended[me] = True
        return answer(self.ends[me].shutdown, socket.SHUT_WR)

    # ---- ends ----

    def last(self, draw):
        """An end of the connection, and what the other end gets."""
        what, me = draw.choice(ENDS), draw.randrange(2)
        s, peer, unread = self.ends[me], self.ends[1 - me], self.way(me)
        for end in (s, peer):
            end.setblocking(True)
        if what == "shut reading":
            right = self.take(me, unread, "recv")
            if all(self.ended):
                return what, right
            return what, right, answer(s.shutdown, socket.SHUT_RD), answer(s.recv, 1), poll(s, select.POLLIN)
        if what == "shut":
            answers = [None if self.ended[e] else answer(self.ends[e].shutdown, socket.SHUT_WR) for e in (0, 1)]
            for e in (0, 1):
                answers += [self.take(e, self.way(e), "recv"), answer(self.ends[e].recv, 1)]
            return what, answers
        if what == "close":
            right = self.take(me, unread, "recv")
        else:
            self.no_mark(me)
            right = None if unread == 0 else ready_bytes(s, 1) > 0
        if what == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.take_out(me)
        s.close()
        if what != "close" and self.way(1 - me):  # a reset of the kernel's may overtake bytes that were not acknowledged
            return what, right
        return what, right, self.take(1 - me, self.way(1 - me), "recv"), answer(peer.recv, 1)


def fuzz(seed, steps):
    done = 0
    draw = random.Random(seed)
    with tempfile.TemporaryFile() as file:
        file.write(PATTERN)
        file.flush()
        while done < steps:
            buffers, other = draw.choice([0, *MOST]), draw.choice([PROMOTED, LATER])
            twins = [Twin(KERNEL, 0, MOST[buffers], file), Twin(other, buffers, MOST[buffers], file)]
            said = []
            for i in range(n := draw.randrange(5, 120)):
                key = draw.random()
                steps_of = [twin.step if i < n - 1 else twin.last for twin in twins]
                answers = [step(random.Random(key)) for step in steps_of]
                done += 1
                said.append(answers[0])
                if answers[0] != answers[1]:
                    print(f"seed {seed}, call {done}, {other}: the kernel {answers[0]!r:.300}, promoted {answers[1]!r:.300}")
                    print("before it:", said[-12:-1])
                    return 1
            for twin in twins:
                twin.close()
    print(f"{done} calls gave the same")
    return 0
