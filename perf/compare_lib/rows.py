# SPDX-License-Identifier: BSD-2-Clause
"""The rows: the figures that are compared, their limits and goals."""
from dataclasses import dataclass, field
from statistics import median

from . import stats
from .classes import FAR, NEAR
from .peers import NEWEST
from .stats import quotient

LOWER, HIGHER = "lower", "higher"
R = None      # as a limit: the one-way time of a cache line around the sample
ITSELF = ""   # the value itself, in the row's unit
HELD, MISSED, UNSURE = "held", "missed", "unsure"


@dataclass
class Row:
    figure: str
    unit: str               # of ours, limit and peers
    ours: str               # key of the value
    limit: object = ITSELF  # key, or R
    factor: float = 1.0     # the limit is so many times its key
    against: tuple = ("limit",)  # or ("itself",), or peers: the one that is hardest to beat
    must: object = None     # number, or {placement: number}
    goal: object = None
    better: str = LOWER
    peers: dict = field(default_factory=dict)  # name: key
    floor: str = None       # key of the bound for any library
    needs: str = None       # what the plan says that the measurement needs
    all_peers: bool = False  # left out where one of those that it is held against is missing

    def bar(self, which, placement):
        bar = getattr(self, which)
        return bar[placement] if isinstance(bar, dict) else bar

    def ratio_in(self, a_round, against):
        """The value that `must` limits, in one round; None when it is not known."""
        if against == "itself":
            value = quotient(a_round, self.ours, ITSELF)
            return None if value is None else value / SCALES[self.unit]
        if against == "limit":
            return quotient(a_round, self.ours, self.limit, self.factor)
        return quotient(a_round, self.ours, self.peers[against])

    def ratios(self, rounds):
        """What it is held against, and the ratios of the rounds that have one."""
        found = {against: [(r, v) for r in rounds if (v := self.ratio_in(r, against)) is not None]
                 for against in self.against}
        hardest = max if self.better == LOWER else min
        return hardest(((a, v) for a, v in found.items() if v),
                       key=lambda one: median(v for _, v in one[1]), default=(None, []))

    def holds(self, ratio, bar):
        return ratio <= bar if self.better == LOWER else ratio >= bar

    def judge(self, values, bar):
        """Is the median on the good side of the bar, with its whole interval?"""
        if len(values) < stats.ENOUGH:
            return UNSURE
        holding = [self.holds(v, bar) for v in stats.interval(values)]
        return HELD if all(holding) else UNSURE if any(holding) else MISSED

    def keys(self):
        """The keys of all values that it shows."""
        return {self.ours, self.limit, self.floor, *self.peers.values()} - {None, ""}

    def absent(self, missing):
        """The needs for want of which there can be no ratio."""
        if self.needs in missing:
            return [self.needs]
        absent = [a for a in self.against if a in missing]
        return absent if self.all_peers or len(absent) == len(self.against) else []


# Values are in ns, messages/s and bytes/s.
SCALES = {"ns": 1.0, "us": 1e3, "M/s": 1e6, "MB/s": 1e6}
PEERS = ("ucx", "newer_ucx", "openmpi", "newer_openmpi", "mpich", "newer_mpich", "libfabric", "newer_libfabric")
TAGGED = ("ucx", "newer_ucx")


def peers(kind, size, names=PEERS):
    return {name: f"{name}.{kind}.{size}" for name in names}


def both(near, far):
    return {NEAR: near, FAR: far}


def latency_rows():
    far_must, far_goal = 0.96, 0.88
    small = peers("lat", 4, PEERS + ("unix", "tcp"))
    yield Row("4 B send/recv, half round trip over R", "ns", "ours.lat.4", R, peers=small,
              floor="raw.slot", must=both(1.12, far_must), goal=both(1.05, far_goal))
    yield Row("4 B send/recv, half round trip over newer UCX tag", "ns", "ours.lat.4", R,
              against=("newer_ucx",), must=0.8, goal=0.75, peers=small, floor="raw.slot")
    yield Row("4 B send/recv through a CQ, half round trip over R", "ns", "ours.cq.4", R,
              peers=small, floor="raw.slot", must=both(1.45, far_must), goal=both(1.15, far_goal))
    yield Row("64 B over 4 B, half round trip", "ns", "ours.lat.64", "ours.lat.4", must=1.1,
              goal=1.05, peers=peers("lat", 64), floor="raw.pingpong.64")
    for size, name, must, goal in ((1024, "1 KiB", 0.57, 0.5), (4096, "4 KiB", 0.8, 0.55)):
        yield Row(f"{name} half round trip over UCX tag", "ns", f"ours.lat.{size}",
                  f"raw.pingpong.{size}", floor=f"raw.pingpong.{size}", against=("ucx",),
                  must=must, goal=goal, peers=peers("lat", size))


def stream_rows():
    for size, ours, calls, must, goal in ((4, "rate", "", 3.2, 4.0),
                                          (4, "many", ", calls for many,", 4.8, 6.0),
                                          (64, "rate", "", 2.0, 4.0)):
        yield Row(f"{size} B one-way rate{calls} over UCX tag", "M/s", f"ours.{ours}.{size}",
                  f"raw.fifo.{size}", floor=f"raw.fifo.{size}", against=("ucx",), must=must,
                  goal=goal, better=HIGHER, peers=peers("rate", size),
                  needs="vi_rate --batch" if calls else None)
    for size, name in ((65536, "64 KiB"), (1048576, "1 MiB")):
        yield Row(f"{name} send/recv bandwidth over two copies in chunks", "MB/s",
                  f"ours.bw.{size}", f"raw.chunk.{size}", must=0.85, goal=0.95, better=HIGHER,
                  peers=peers("bw", size))
    yield Row("1 MiB RDMA write to window memory over local memcpy", "MB/s", "ours.put.1048576",
              "raw.memcpy.1048576", must=0.93, goal=0.99, better=HIGHER,
              peers=peers("put", 1048576, TAGGED))


def newest_rows():
    """Ahead of the fastest of the newest releases."""
    for size, name in ((4, "4 B"), (64, "64 B"), (1024, "1 KiB"), (4096, "4 KiB"), (65536, "64 KiB"), (1048576, "1 MiB")):
        yield Row(f"{name} half round trip over the fastest of the newest peers", "ns", f"ours.lat.{size}", f"raw.pingpong.{size}",
                  against=NEWEST, all_peers=True, must=1.0, goal=0.8, peers=peers("lat", size, NEWEST))
    for size, name in ((65536, "64 KiB"), (1048576, "1 MiB")):
        yield Row(f"{name} send/recv bandwidth over the fastest of the newest peers", "MB/s", f"ours.bw.{size}", f"raw.chunk.{size}",
                  against=NEWEST, all_peers=True, must=1.0, goal=1.25, better=HIGHER, peers=peers("bw", size, NEWEST))


def one_copy_rows():
    yield Row("64 KiB half round trip into window memory over others with one copy", "ns",
              "ours.latwin.65536", "raw.put.65536", against=("newer_ucx_cma", "openmpi"),
              floor="raw.put.65536", must=0.6, goal=0.45,
              peers=peers("lat", 65536, (*PEERS, "newer_ucx_cma")))
    yield Row("1 MiB send/recv into window memory over local memcpy", "MB/s",
              "ours.bwwin.1048576", "raw.memcpy.1048576", must=0.9, goal=0.97, better=HIGHER,
              peers=peers("bw", 1048576))
    yield Row("1 MiB RDMA write with immediate over plain RDMA write", "MB/s",
              "ours.putimm.1048576", "ours.put.1048576", must=0.95, goal=1.0, better=HIGHER)
    yield Row("8 B RDMA write to adopted memory, seen by a poller, over window memory", "ns",
              "ours.adopted.8", "ours.write.8", must=1.1, goal=1.0, needs="vi_lat --adopt")


def one_sided_rows():
    yield Row("8 B RDMA write to window memory, seen by a poller, over R", "ns", "ours.write.8", R,
              must=1.2, goal=1.0, peers=peers("putlat", 8, TAGGED))
    yield Row("time inside VipPostSend, 4 B, nobody asleep", "ns", "ours.post.4",
              "raw.fifo_ns.4", against=("itself",), must=24.0, goal=15.0)
    yield Row("8 B RDMA read over two send/recv half round trips", "ns", "ours.read.8",
              "ours.lat.8", factor=2.0, must=1.3, goal=1.0)


def waiting_rows():
    yield Row("blocking receive, two cores, over a bare futex", "ns", "ours.block.4", "raw.futex",
              must=1.2, goal=1.05, peers={"unix": "unix.block.4", "tcp": "tcp.block.4"})
    for mode, must, goal in (("yield", 1.4, 1.15), ("adaptive", 1.4, 1.15), ("block", 2.8, 1.2)):
        yield Row(f"one shared core, VIADUCT_WAIT={mode}", "us", f"ours.one.{mode}",
                  "raw.one.yield" if mode == "yield" else "raw.one.futex", against=("itself",),
                  must=must, goal=goal)
    yield Row("one shared core, polling with VipRecvDone", "us", "ours.one.poll", "raw.one.yield",
              against=("itself",), must=2.0, goal=1.15)
    yield Row("default settings, unpinned, VipRecvWait", "us", "ours.unpinned.wait",
              "raw.one.yield", against=("itself",), must=4.0, goal=1.5)
    yield Row("default settings, unpinned, polling", "us", "ours.unpinned.poll",
              "raw.one.yield", against=("itself",), must=4.0, goal=1.5)


def own_rows():
    yield Row("receive with 1 busy VI of 256 over 1 of 1, on a CQ", "ns", "ours.busy256.4",
              "ours.cq.4", must=1.5, goal=1.1)
    yield Row("256 busy VIs on a CQ, one to and fro, over one VI", "ns", "ours.turn256.4",
              "ours.cq.4", must=5.0, goal=3.0)
    yield Row("register and deregister 1 GiB of touched memory", "us", "ours.register",
              against=("itself",), must=20.0, goal=2.0, needs="full")
    yield Row("reliable delivery over unreliable, 4 B", "ns", "ours.lat.4", "ours.unreliable.4",
              must=1.1, goal=1.0)
    yield Row("neighbour link over self port, 4 B", "ns", "ours.lat.4", "self.lat.4", must=1.1,
              goal=1.0)


def all_rows():
    return [*latency_rows(), *stream_rows(), *newest_rows(), *one_copy_rows(), *one_sided_rows(), *waiting_rows(),
            *own_rows()]
