#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the seeds of the fuzz targets: programs of the actions of a correct client or neighbour.

usage: seeds.py FOLDER

Existing files are replaced; others (regressions) stay.
"""
import struct
import sys
from pathlib import Path

(HELLO, LISTEN, UNLISTEN, CONNECT, PEER, CANCEL, ACCEPT, REJECT, CONFIRM, CLOSE, ALLOC, FREE, TELL,
 NAME, ADDR_NAME, ROUTE, LIST, ADMIN, COUNT, COUNTED) = range(1, 21)
CM_REQ, CM_REFUSE, CM_ACCEPT, CM_CONFIRM, CM_CANCEL, CM_CLOSE, CM_PEER, CM_PEER_CANCEL, CM_TELL = range(9)


# fuzz_agent: client, action, arguments.
def come(who, host):
    return [who, 20, host]


def say(who, kind, *args):
    return [who, 0, kind - 1, 1, *args]


def address(host, letter):
    return host | "abcd".index(letter) << 1


def step(count=1):
    return [0, 26, 0, 25] * count


def connect(hosts):
    server, client = 0, 1
    return (come(server, hosts[0]) + come(client, hosts[1]) + step() +
            say(server, LISTEN, 0, address(hosts[0], "a"), address(0, "a")) + step() +
            say(client, CONNECT, 0, address(hosts[1], "b"), address(hosts[0], "a")) + step(2) +
            say(server, ACCEPT, 0, 0) + step(2) + say(client, CONFIRM, 0) + step(2))


def peers(hosts):
    return (come(0, hosts[0]) + come(1, hosts[1]) + step() +
            say(0, PEER, 0, address(hosts[0], "a"), address(hosts[1], "b")) + step() +
            say(1, PEER, 0, address(hosts[1], "b"), address(hosts[0], "a")) + step(3) +
            say(0, CONFIRM, 0) + say(1, CONFIRM, 0) + step(3))


def tell(who, conn, memory):
    return say(who, ALLOC, 1, 1, 0, 0x20, 0, 0) + step() + say(who, TELL, conn, 1, memory, 4)


def agent_seeds():
    closes = say(1, CLOSE, 0) + step(2) + say(0, CLOSE, 1) + step(2)
    lists = [byte for what in range(1, 5) for i in range(3) for byte in say(0, LIST, what, 1, i)]
    admin = [byte for verb, name in ((2, 0), (3, 0), (4, 5), (5, 6), (4, 7), (2, 10))
             for byte in say(0, ADMIN, verb, name) + step()]
    return {
        "connect-inside": connect((0, 0)) + tell(1, 0, 1) + step(2) + closes,
        "connect-across": connect((1, 0)) + tell(1, 0, 1) + step(2) + closes,
        "connect-and-die": connect((0, 1)) + [1, 21] + step(2),
        "peers-inside": peers((0, 0)),
        "peers-across": peers((0, 1)) + tell(0, 0, 1) + step(3) + [1, 21] + step(2),
        "memory": come(0, 0) + say(0, ALLOC, 1, 1, 0, 0x20, 0, 0) + step() +
                  say(0, FREE, 1, 1, 0, 0, 0, 0) + step(),
        "names": come(0, 0) + lists + admin + [b for i in range(8) for b in
                 say(0, NAME, 1, i % 4, i) + say(0, ROUTE, i % 4) + say(0, COUNT, i)] + step(),
        "withdrawn": come(0, 0) + come(1, 1) + step() + say(0, PEER, 0, 0, address(1, "b")) +
                     say(0, CANCEL) + say(1, LISTEN, 0, 1, 1) + say(1, UNLISTEN) + step(2),
        "rejected": connect((1, 0))[:-27] + say(0, REJECT, 0) + step(2),
        "descriptors": come(0, 0) + say(0, ALLOC, 1, 1, 0, 0x20, 0, 0) + [0, 17, 3] +
                       step() + [0, 17, 20] + step(),
        "flood": connect((1, 0)) + say(1, TELL, 0, 0, 4) + [0, 19, 1, 18, 255] + step(4),
        "starved": come(0, 0) + come(1, 1) + step() + [0, 23, 1] +
                   say(0, ALLOC, 1, 1, 0, 0x20, 0, 0) + step() + come(2, 0) + step() +
                   [0, 24] + step(),
        "malformed": come(0, 0) + step() + [0, 13, HELLO - 1, 1, 1, 0, 1, 0, 0, 255] + step(),
    }


# fuzz_link: action, arguments; a cable that is plugged and announced first.
def link_up():
    return [1, 0, 0, 27, 27]


def record(kind, conn, *geometry):
    dst = [0] if conn is None else [1, conn]
    return [13, kind, 0, 4, *dst, 0, 0, *geometry, 0, 0, 27, 27]


def user(what, tokens, *args):
    return [21, what, 0, *([0] if tokens else []), *args, 27]


def relayed(kind, conn, *geometry):
    kinds = [CM_REQ, CM_CONFIRM, CM_CANCEL, CM_CLOSE, CM_PEER, CM_PEER_CANCEL, CM_TELL]
    dst = [0] if conn is None else [1, conn]
    status = [] if kind == CM_TELL else [0]
    return [30, kinds.index(kind), *status, 4, *dst, 0, 0, *geometry, 0, 0, 27, 27, 27]


def link_seeds():
    asked = link_up() + [27, 27] + relayed(CM_REQ, None) + [6, 0, 27]
    return {
        "relayed": asked + relayed(CM_CONFIRM, 0, 5) + relayed(CM_TELL, 0) + relayed(CM_CLOSE, 0) + [27],
        "relayed-cancelled": asked + relayed(CM_CANCEL, None) + [27] + relayed(CM_REQ, None) + [27],
        "relayed-lost": asked + relayed(CM_CONFIRM, 0, 5) + [10, 27],
        "relayed-peer": link_up() + [27] + relayed(CM_PEER, None) + relayed(CM_PEER_CANCEL, None),
        "relayed-forged": asked + [31, 1, 0, 4, 1, 0, 0, 0, 5, 0, 0, 2, 0, 9, 1, 0, 1, 3, 0, 27, 27],
        "set-up": link_up() + [6, 0, 12, 10, 6, 0, 12, 200, 10, 9, 0, 0, 27],
        "served": link_up() + user(2, 0, 0, 0) + record(CM_REQ, None) + user(3, 0, 0) +
                  [6, 0] + record(CM_CONFIRM, 0, 5) + user(4, 1, 0) + record(CM_TELL, 0) +
                  record(CM_CLOSE, 0) + user(7, 1),
        "asks": link_up() + user(0, 0, 0, 0) + [6, 0] + record(CM_ACCEPT, 0, 5) + user(6, 1) +
                user(4, 1, 0) + user(7, 1) + [6, 0],
        "accepts-twice": link_up() + user(0, 0, 0, 0) + [6, 0] + record(CM_ACCEPT, 0, 5) * 2 +
                         user(6, 1),
        "refused": link_up() + user(0, 0, 0, 0) + [6, 0] + record(CM_REFUSE, 0),
        "withdrawn": link_up() + user(0, 0, 0, 0) + [21, 5, 0, 0, 27],
        "peer-waits": link_up() + user(1, 0, 0, 0) + record(CM_PEER, None) + [6, 0] +
                      record(CM_CONFIRM, 0, 5),
        "peer-offers": link_up() + record(CM_PEER, None) + user(1, 0, 0, 0) +
                       record(CM_PEER_CANCEL, 0),
        "no-slice": link_up() + user(0, 0, 0, 0) + [6, 0] + record(CM_ACCEPT, 0, 0) + [12, 250, 27],
        "bad-credit": link_up() + [6, 1, 0, 1, 0, 0, 27],
        "garbage": link_up() + [2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 3, 1, 40] + [170] * 40 + [27],
        "scribble": link_up() + [4, 16, 0, 60] + [255] * 60 + [5, 0, 128, 60] + [255] * 60 + [27],
        "never-announced": [0, 11, 27, 27, 1, 0, 0, 0, 0, 1, 27, 10],
    }


# fuzz_grant: action, arguments; windows 0 and 1 are open.
STEP, PROGRESS_WRITER, PROGRESS_OWNER, RECONNECT = [5], [7], [8], [15]
ASK, GIVE, DENY, TAKE, GONE = range(1, 6)


def write(window, offset, *lengths):
    return [0, 0, window, offset >> 8 & 255, offset & 255, len(lengths) - 1,
            *(byte for n in lengths for byte in (n >> 8, n & 255))]


def consumed():
    return PROGRESS_OWNER + STEP * 2 + PROGRESS_WRITER


def granted(window):
    return write(window, 0, 64) + consumed()


def receive(window, length):
    return [4, 3, 0, length - 4096 >> 8, length - 4096 & 255, window]


def send(length):
    return [4, 2, 0, length - 4096 >> 8, length - 4096 & 255]


def advert(window, offset, n, how=0, *rest):
    return [4, 6, window, how, n % 64, offset >> 8 & 255, offset & 255, *rest, n, 0, 0, 0]


def read(window, length, how=0, *offer):
    return [16, window, how, length >> 8, length & 255, *offer]


def answered():
    return PROGRESS_WRITER + STEP * 2 + PROGRESS_OWNER


def forged(end, window, kind, how=0, *rest):
    return [10, window, end, how, kind, *rest]


def grant_seeds():
    begin = [1, 0]  # reliable delivery, plain port
    held = begin + granted(0)
    return {
        "stored": held + write(0, 100, 8) + write(0, 4000, 1000, 3, 700),
        "strict": [2, 3] + granted(0) + write(0, 77, 500) + [4, 0, 60] + write(0, 0, 8),
        "unreliable": [0, 0] + granted(1) + [13, 1, 0] + write(1, 0, 64) + consumed() + [13, 1, 1],
        "beyond": held + write(0, 8100, 200) + consumed(),
        "before": held + write(0, -8, 64) + consumed(),
        "closed": held + [13, 0, 0] + write(0, 0, 64) + STEP + RECONNECT + granted(0),
        "freed": held + [14, 1, 0, 1] + write(0, 0, 64) + RECONNECT + granted(0) + write(0, 9, 9),
        "parted": held + [14, 0, 1, 1] + write(0, 0, 64) + STEP + RECONNECT + granted(0),
        "lost": held + [14, 0, 0, 0] + STEP + [14, 0, 1, 0] + RECONNECT + granted(0),
        "both": begin + granted(0) + granted(1) + [13, 0, 1] + write(1, 5, 5),
        "asked-twice": held + forged(1, 0, ASK) + STEP + forged(1, 0, ASK) + STEP,
        "unasked": begin + forged(0, 1, GIVE, 4) + STEP + write(1, 0, 64),
        "too-long": begin + write(1, 0, 64) + forged(0, 1, GIVE, 6, 0, 0, 0, 0, 0, 255, 0, 0) + STEP,
        "no-slice": begin + write(1, 0, 64) + forged(0, 1, GIVE, 8) + STEP,
        "taken": held + forged(0, 0, TAKE) + write(0, 0, 64) + consumed() + write(0, 8, 8),
        "gone": held + forged(1, 0, GONE) + STEP + [13, 0, 0] + write(0, 0, 64),
        "placed": begin + (receive(0, 8000) + send(5000) + consumed()) * 4,
        "placed-strict": [2, 3] + (receive(1, 8000) + send(8000) + consumed()) * 3 + [13, 1, 0] +
                         receive(1, 8000) + send(8000) + consumed(),
        "dropped": [0, 0] + receive(0, 8000) + send(5000) + consumed() + send(5000) + consumed() +
                   (receive(0, 8000) + send(5000) + consumed()) * 2,
        "immediate": held + receive(1, 5000) * 3 + [0, 0, 0, 0, 9, 3, 11, 0] * 2 + consumed() * 2,
        "advert": held + advert(0, 0, 0) + send(5000) + consumed(),
        "advert-beyond": held + advert(0, 5000, 0) + send(5000) + consumed(),
        "advert-other": held + advert(1, 0, 0) + send(5000) + consumed() + advert(1, 0, 1) + send(5000),
        "read": begin + (read(0, 5000) + answered()) * 3 + read(1, 100) + answered(),
        "read-strict": [2, 3] + (read(1, 8000) + answered()) * 3 + [13, 1, 0] + read(1, 300) + answered(),
        "read-stream": begin + read(0, 5000) + answered() + read(0, 8192) * 5 + answered() * 5,
        "read-freed": begin + read(0, 5000) + answered() + read(0, 5000) + PROGRESS_WRITER + [14, 1, 0, 1] + answered(),
        "offer-beyond": begin + read(0, 5000) + answered() + read(0, 5000, 4, 0, 0, 100, 0, 0) + answered(),
        "offer-secret": begin + read(0, 5000) + answered() + read(0, 5000, 4, 0, 6, 0, 0, 0) + answered() * 2,
        "offer-other": begin + read(0, 5000) + answered() + read(0, 5000, 4, 1, 0, 0, 0, 31) + answered() * 2,
        "short": held + [10, 0, 1, 15, ASK, *([0] * 20), 3] + STEP,
    }


# fuzz_slice: a slot, a receive; 11 makes progress.
def slice_slot(op, flags, arg, frag):
    return [0, 0x7f, 0, 0, op, flags, arg >> 8, arg & 255, frag]


def slice_receive(length):
    return [8, length >> 8, length & 255]


def slice_offer(length, handle, consumed):
    return [0, 0xfd, 0, 0, length >> 8, length & 255, 3, 3, 0, 0, 32, 0, handle, consumed]


def slice_seeds():
    packed = 0x43
    receives = slice_receive(8) * 5
    offers = {"offered": [1] + (slice_offer(5000, 1, 0) + [11]) * 3 + slice_offer(200, 0, 9) + [11] +
                         [9, 2, 19, 136] + slice_slot(4, 0x23, 0, 200) + [11]}
    return offers | {f"packed-{name}": [level] + receives + slots + [11]
            for level, name in enumerate(("unreliable", "delivery", "reception"))
            for slots in [slice_slot(1, packed, 3, 8) + slice_slot(1, packed | 16, 2, 4) +
                          slice_slot(1, packed, 4, 4) + [11] + slice_receive(4) +
                          slice_slot(1, packed, 2, 5) + [11] + slice_slot(1, packed, 29, 4)]}


# fuzz_relay: action * 2 + side, arguments.
def relay_slot(side, op, flags, arg, frag):
    return [side, 0x5f, 0, op - 1, flags, arg >> 8, arg & 255, frag]


def relay_seeds():
    whole, first, last, ring, packed = 3, 1, 2, 8, 64
    go = [31]
    mail = relay_slot(0, 1, whole, 0, 48) + go + [13, 0] + go
    return {
        "passes": mail * 12 + relay_slot(1, 1, whole, 0, 112) + go + [12, 0] + go,
        "parts": relay_slot(0, 1, first, 100, 60) + relay_slot(0, 1, last, 0, 40) + go +
                 relay_slot(1, 2, first | ring, 200, 100) + relay_slot(1, 5, last, 0, 0) + go,
        "ring": relay_slot(0, 1, whole | ring, 0, 127) * 8 + go + [13, 0] + go,
        "reads": relay_slot(0, 3, whole, 0, 16) + go + relay_slot(1, 4, whole, 0, 96) + go,
        "overrun": relay_slot(0, 1, whole, 0, 4) * 9 + go,
        "credit": mail + [13, 1, 0, 0, 0, 9] + go,
        "error": relay_slot(0, 1, whole, 0, 4) + [18, 0, 0, 0, 0, 128, 0, 0, 6] + go + mail,
        "armed": [23] + relay_slot(0, 1, whole, 0, 4) + [24] + [20, 255] + go + [23] + [17, 0, 0, 0, 9] + mail,
        "packed": (relay_slot(0, 1, whole | packed, 28, 4) + relay_slot(1, 1, whole | packed, 2, 56) + go) * 3 +
                  relay_slot(0, 1, whole | packed, 29, 4) + go + mail,
        "again": relay_slot(0, 5, whole, 0, 4) + go + [27] + mail,
        "scribble": mail + [10, 16, 60, 63] + [255] * 63 + go,
    }


# fuzz_ctl: one message of each kind.
CTL_BYTES = {
    1: 88, 2: 200, 3: 24, 4: 200, 5: 200, 6: 24, 7: 64, 8: 24, 9: 24, 10: 24, 11: 40, 12: 40, 13: 128,
    14: 104, 15: 104, 16: 288, 17: 32, 18: 160, 19: 32, 20: 264, 64: 176, 65: 288, 66: 24, 67: 136,
    68: 136, 69: 192, 70: 32, 71: 40, 72: 128, 73: 104, 74: 288, 75: 432, 76: 192,
    **{kind: 248 for kind in range(128, 136)}, 136: 152, 137: 248,
}


def ctl_seeds():
    return {f"type-{kind}": struct.pack("<IHHII", 0x54434456, 1, kind, size, 0) +
                            bytes([1, 0, 0, 0]) * ((size - 16) // 4)
            for kind, size in CTL_BYTES.items() if size <= 136}


def cfg_seeds():
    seeds = {f"variable-{i}": [i, 1, word] for i, word in
             enumerate((21, 22, 22, 7, 9, 12, 20, 4, 0, 1, 5, 5, 8, 21, 18, 21, 0, 1, 2, 3))}
    seeds["options"] = [4, 3, 9, 10, 11, 5, 3, 12, 15, 13, 14, 3, 18, 15, 19]
    seeds["raw"] = [8, 1, 24 + 9] + list(b"12345678k") + [7, 2, 24, 6]
    return seeds


def cp_seeds():
    def entry(kind, path, target=b""):
        lengths = struct.pack("<HHI", len(path), len(target), 0)
        return bytes([kind - 1]) + bytes(23) + lengths + path + target

    return {
        "hello": entry(1, b""), "dir": entry(2, b"a/b"), "link": entry(4, b"a/l", b"../b"),
        "file": entry(5, b"a/b/file.txt"), "escape": entry(5, b"../../etc/passwd"),
        "rooted": entry(5, b"/a//b"), "credit": bytes([9]) + bytes(7), "end": bytes([5]) + bytes(39),
        "result": bytes([10, 0, 0, 0, 4, 0, 0, 0]) + b"\x1b[2J",
    }


# fuzz_route: hosts and words of a spec (0), a grid (1) or a graph (2), cuts, a drawing, then paths and hostile paths.
ROUTE_WORDS = ["ring", "chain", "mesh:", "torus:", "graph:", "x", "-", ",", "\n", "0", "1", "2", "3", "4",
               "5", "7", "8", "9", " ", "16", "1023", "1024"]


def route_seeds():
    def topology(hosts, *parts):
        return [0, hosts >> 8, hosts & 255, len(parts), *(ROUTE_WORDS.index(part) for part in parts)]

    def cut(*losses):
        return [len(losses), *(byte for host, mask in losses for byte in (0, host, mask))]

    def find(start, end, flow=0):
        return [0, start, 0, end, 0, 0, 0, flow]

    def hostile(start, step, *ports):
        return [0, start, step, len(ports), *ports]

    picture = [0, 1, 0, 40]
    links = ("0", "-", "1", ",", "2", "-", "1", ",", "0", "-", "1", "\n", "3", "-", "0")
    return {
        "ring": topology(9, "ring") + cut((1, 0xfb)) + picture + find(0, 4, 7) + hostile(3, 2, 1, 2),
        "ring-in-two": topology(6, "ring") + cut((1, 0xfb), (4, 0xfd)) + picture + find(0, 3),
        "long-ring": topology(1023, "ring") + cut() + picture + find(0, 200) + hostile(0, 64, *[2] * 64),
        "chain": topology(5, "chain") + cut((2, 0)) + picture + find(0, 4) + hostile(4, 4, 1, 2, 2, 2),
        "mesh": topology(16, "mesh:", "4", "x", "4") + cut((5, 0xf1)) + picture + find(0, 15, 99) +
                hostile(0, 6, 1, 2, 2, 3, 3, 3),
        "torus": topology(9, "torus:", "3", "x", "3") + cut((0, 0xf0)) + picture + find(0, 8, 3) +
                 hostile(0, 2, 4, 4),
        "graph": topology(4, "graph:", *links) + cut((0, 0xfd)) + picture + find(3, 2) + hostile(0, 1, 2),
        "one": topology(1, "graph:") + cut() + picture + find(0, 0) + hostile(0, 0),
        "not-one": topology(4, "graph:", "0", "-", "1", ",", "2", "-", "3"),
        "itself": topology(4, "graph:", "1", "-", "1"),
        "many-links": topology(2, "graph:", *("0", "-", "1", " ") * 8),
        "wrong-size": topology(16, "mesh:", "3", "x", "4"),
        "raw": [0, 0, 4, 2, 32 + 10] + list(b"graph:\x1b[2J") + [32 + 10] + [200] * 10,
        "sizes": [1, 6, 3, 1] + cut((8, 0xf0)) + picture + find(0, 20, 5) + hostile(3, 3, 1, 1, 4),
        "tree": [2, 3, 5, 0, 0, 1, 2, 3, 1, 2, 1, 2, 0, 5] + cut((2, 1)) + picture + find(5, 4) +
                hostile(5, 1, 1),
    }


# fuzz_boot: the launcher (0 oshrun, 1 PMI-1, 2 texts), then its messages.
def boot_seeds():
    def frame(kind, arg, data):
        return struct.pack("<IHHII", 0x4e52534f, 1, kind, len(data), arg) + data

    def welcome(pe, n_pes):
        return frame(5, 0, struct.pack("<QIIII", 5, pe, n_pes, 0, 0))

    lines = (b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0", b"cmd=maxes kvsname_max=9 keylen_max=64 vallen_max=64",
             b"cmd=my_kvsname kvsname=kvs", b"cmd=put_result rc=0", b"cmd=barrier_out", b"cmd=get_result rc=0 value=00010203")
    pmi1 = b"".join(bytes([1, len(line) + 1]) + line + b"\n" for line in lines)
    return {
        "oshrun": bytes([0, 2]) + welcome(0, 2) + frame(6, 0, b"") + frame(6, 1, b"12345678"),
        "oshrun-late": bytes([0, 2]) + welcome(3, 2), "oshrun-no-fds": bytes([0, 0]) + welcome(0, 1),
        "pmi1": bytes([1, 1]) + pmi1, "pmi1-refused": bytes([1, 1]) + pmi1.replace(b"rc=0", b"rc=9", 1),
        "text": bytes([2]) + b"7:1234", "text-line": bytes([2]) + lines[1],
    }


# fuzz_oshrun: PE, action (0 sends a frame, 1 bytes, 2 control, 3 ends), its arguments.
def oshrun_seeds():
    def frame(pe, kind, arg=0, data=()):
        return [pe, 0, kind, arg, len(data), *data]

    joined = frame(0, 1) + frame(1, 1) + frame(2, 1)
    rounds = [byte for arg in range(2) for pe in range(3) for byte in frame(pe, 2, arg, (1, 2, 3))]
    return {
        "rounds": joined + rounds + frame(0, 3) + frame(0, 1),
        "abort": joined + [1, 2, 4, 7, 3, 65, 66, 67], "ends": joined + frame(0, 2) + [1, 3],
        "unequal": joined + frame(0, 2, 0, (1,)) + frame(1, 2, 0, (1, 2)),
        "late": frame(0, 1) + frame(0, 2, 1, (1,)), "bytes": joined + [0, 1, 4, 1, 2, 3, 4],
    }


# fuzz_run_wire: the end, then, at the end that has the job, the machine of each action.
def run_wire_seeds():
    (start, result, signal, hello, started, join, finish, exchange, leaves, exited, status, out, err, complain, bye,
     alive) = range(1, 17)
    served, has, give, answer = [0], [1], [0], [1]

    def frame(kind, arg=0, data=()):
        return [3, kind, arg, len(data), *data]

    def begin(pes, here, *words, exports=()):
        """The first word is a program, which has PE 0 alone if there are more, all words another."""
        ends = (1, pes) if len(words) > 1 else (pes,)
        head = struct.pack("=QIIIIII", 7, pes, len(here), len(exports), len(ends), 0, 0)
        numbers = b"".join(struct.pack("=I", pe) for pe in here)
        apps = struct.pack("=III", ends[0], 0, 1) + (struct.pack("=III", pes, 1, len(words)) if len(words) > 1 else b"")
        strings = ("m", *exports, "/", words[0], *(("", "C=d", *words) if len(words) > 1 else ()))
        return frame(start, 0, head + numbers + apps + b"".join(w.encode() + b"\0" for w in strings))

    def first(*words):
        return [0, *frame(*words)]

    def second(*words):
        return [1, *frame(*words)]

    ready = has + [1] + first(hello) + second(hello) + first(started, 0, bytes(8)) + second(started, 0, bytes(4))
    joined = ready + first(join, 0) + first(join, 2) + second(join, 1)
    rounds = [byte for n in range(2) for byte in first(exchange, n, bytes(8)) + second(exchange, n, bytes(4))]
    ends = [byte for pe, who in ((0, first), (1, second), (2, first)) for byte in
            who(finish, pe) + who(exited, pe, bytes(4))]
    return {
        "served": served + begin(5, (0, 2, 4), "program", "word", exports=("A=b",)) + (give + give + answer) * 2 +
                  [2, *frame(signal, 15)],
        "served-killed": served + begin(2, (1,), "program") + give + [2, *frame(signal, 0)],
        "served-early": served + frame(signal, 15),
        "served-parts": served + [0, 16, *struct.pack("=IHHII", 0x5246534f, 2, start, 0, 60), 0, 32, *bytes(32)],
        "served-wrong": served + begin(5, (0, 4, 2), "program") + give,
        "job": joined + rounds + ends + first(bye) + second(bye),
        "job-output": joined + first(out, 0, b"a line\nand a part") + second(err, 1, b"\n\n") +
                      first(status, 2, bytes(128)) + second(alive) + [0, 1],
        "job-aborts": joined + first(leaves, 2, bytes((3, 0, 0, 0, 1, 0, 0, 0)) + b"gone") +
                      second(complain, 0, bytes(8) + b"why"),
        "job-dies": joined + second(exited, 1, bytes((9, 0, 0, 0))) + first(bye),
        "job-too-early": has + [0] + first(hello) + first(join, 0) + [1, 1],
    }


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] == ["--help"] else 2
    targets = {"agent": agent_seeds(), "link": link_seeds(), "ctl": ctl_seeds(), "cfg": cfg_seeds(),
               "cp": cp_seeds(), "grant": grant_seeds(), "route": route_seeds(),
               "relay": relay_seeds(), "slice": slice_seeds(), "boot": boot_seeds(), "oshrun": oshrun_seeds(),
               "run_wire": run_wire_seeds()}
    for target, seeds in targets.items():
        folder = Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (folder / name).write_bytes(bytes(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
