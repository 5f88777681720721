# SPDX-License-Identifier: BSD-2-Clause
"""The rows: the figures that are compared, their limits and goals."""
from dataclasses import dataclass, field, replace

from . import stats
from .classes import FAR, NEAR
from .peers import NEWEST

LOWER, HIGHER = "lower", "higher"
R = None      # as a limit: the one-way time of a cache line around the sample
NO_LIMIT = ""
HELD, MISSED, UNSURE = "held", "missed", "unsure"


@dataclass
class Row:
    figure: str
    unit: str               # of ours, limit and peers
    ours: str               # key of the value
    limit: object = NO_LIMIT  # key, or R
    factor: float = 1.0     # the limit is so many times its key
    against: tuple = ("limit",)  # or ("itself",), or peers: each of them
    must: object = None     # number, or {placement: number}
    goal: object = None
    better: str = LOWER
    peers: dict = field(default_factory=dict)  # name: key
    floor: str = None       # key of the bound for any library
    needs: str = None       # what the plan says that the measurement needs
    all_peers: bool = False  # left out where one of those that it is held against is missing
    name: str = None        # of the value, without what it is held against; else the figure has it before " over "

    def __post_init__(self):
        self.name = self.name or self.figure.partition(" over ")[0].rstrip(",")

    def bar(self, which, placement):
        bar = getattr(self, which)
        return bar[placement] if isinstance(bar, dict) else bar

    def compared_with(self, pool, key, factor=1.0):
        """How many times `factor` of the key ours are; None when there are no values of either."""
        ours, theirs = pool.of_both(self.ours, key)
        values = [factor * s.value for s in theirs]
        if not ours or not values or min(values) <= 0:
            return None
        return stats.of_two([s.value for s in ours], values, stats.alike(ours, theirs))

    def estimate(self, pool, against):
        """The value that `must` limits; None when it is not known."""
        if against == "limit" and self.limit is not R:
            return self.compared_with(pool, self.limit, self.factor)
        if against not in ("limit", "itself"):
            return self.compared_with(pool, self.peers[against])
        ours = pool.of(self.ours)
        values = [s.value / (self.factor * s.r if against == "limit" else SCALES[self.unit]) for s in ours]
        return stats.of_one(values) if values else None

    def estimates(self, pool):
        """By what it is held against: how it compares with that, or None."""
        return {against: self.estimate(pool, against) for against in self.against}

    def hardest(self, estimates):
        """The one of those that is hardest to beat, and how ours compare with it; None when nothing is known."""
        known = {against: one for against, one in estimates.items() if one}
        if self.better == LOWER:
            return max(known.items(), key=lambda one: one[1].high, default=None)
        return min(known.items(), key=lambda one: one[1].low, default=None)

    def holds(self, ratio, bar):
        return ratio <= bar if self.better == LOWER else ratio >= bar

    def judge_one(self, known, bar):
        """Is the median on the good side of the bar, with its whole interval?"""
        if known is None or not known.enough:
            return UNSURE
        holding = [self.holds(v, bar) for v in (known.low, known.high)]
        return HELD if all(holding) else UNSURE if any(holding) else MISSED

    def judge(self, estimates, bar):
        """Is it so compared with each of those that it is held against?"""
        outcomes = {self.judge_one(known, bar) for known in estimates.values()}
        return next(outcome for outcome in (MISSED, UNSURE, HELD) if outcome in outcomes)

    def keys(self):
        """The keys of all values that it shows."""
        return {self.ours, self.limit, self.floor, *self.peers.values()} - {None, NO_LIMIT}

    def absent(self, missing):
        """The needs for want of which there can be no ratio."""
        if self.needs in missing:
            return [self.needs]
        absent = [a for a in self.against if a in missing]
        return absent if self.all_peers or len(absent) == len(self.against) else []

    def without(self, missing):
        """The row without the peers that are not here."""
        return replace(self, against=tuple(a for a in self.against if a not in missing),
                       peers={name: key for name, key in self.peers.items() if name not in missing})


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
              name="4 B half round trip", floor="raw.slot", must=both(1.12, far_must), goal=both(1.05, far_goal))
    yield Row("4 B send/recv, half round trip over newer UCX tag", "ns", "ours.lat.4", R,
              name="4 B half round trip", against=("newer_ucx",), must=0.8, goal=0.75, peers=small, floor="raw.slot")
    yield Row("4 B send/recv through a CQ, half round trip over R", "ns", "ours.cq.4", R,
              name="4 B half round trip through a CQ", peers=small, floor="raw.slot", must=both(1.45, far_must), goal=both(1.15, far_goal))
    yield Row("64 B over 4 B, half round trip", "ns", "ours.lat.64", "ours.lat.4", must=1.1,
              name="64 B half round trip", goal=1.05, peers=peers("lat", 64), floor="raw.pingpong.64")
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
                  needs="vi_rate --batch" if calls else None,
                  name=f"{size} B one-way rate" + (" by calls for many" if calls else ""))
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
              name="8 B RDMA write to window memory", must=1.2, goal=1.0, peers=peers("putlat", 8, TAGGED))
    yield Row("time inside VipPostSend, 4 B, nobody asleep", "ns", "ours.post.4",
              "raw.fifo_ns.4", against=("itself",), must=24.0, goal=15.0)
    yield Row("8 B RDMA read over two send/recv half round trips", "ns", "ours.read.8",
              "ours.lat.8", factor=2.0, must=1.3, goal=1.0)


def waiting_rows():
    yield Row("blocking receive, two cores, over a bare futex", "ns", "ours.block.4", "raw.futex",
              name="blocking receive", must=1.2, goal=1.05, peers={"unix": "unix.block.4", "tcp": "tcp.block.4"})
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
