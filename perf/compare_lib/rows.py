# SPDX-License-Identifier: BSD-2-Clause
"""The rows: the figures that are compared, their limits and goals."""
from dataclasses import dataclass, field
from statistics import median

from .stats import PLACEMENTS, placed, quotient

LOWER, HIGHER = "lower", "higher"
R = None      # as a limit: the one-way time of a cache line around the sample
ITSELF = ""   # the value itself, in the row's unit


@dataclass
class Row:
    figure: str
    unit: str               # of ours, limit and peers
    ours: str               # key of the value
    limit: object = ITSELF  # key, or R
    factor: float = 1.0     # the limit is so many times its key
    against: str = "limit"  # limit, the name of a peer, or itself
    must: object = None     # number, or {placement: number}
    goal: object = None
    better: str = LOWER
    peers: dict = field(default_factory=dict)  # name: key
    floor: str = None       # key of the bound for any library

    def bar(self, which, placement):
        bar = getattr(self, which)
        return bar[placement] if isinstance(bar, dict) else bar

    def ratio_in(self, a_round):
        """The value that `must` limits, in one round; None when it is not known."""
        if self.against == "itself":
            value = quotient(a_round, self.ours, ITSELF)
            return None if value is None else value / SCALES[self.unit]
        under = self.limit if self.against == "limit" else self.peers[self.against]
        return quotient(a_round, self.ours, under,
                        self.factor if self.against == "limit" else 1.0)

    def holds(self, ratio, bar):
        return ratio <= bar if self.better == LOWER else ratio >= bar


# Values are in ns, messages/s and bytes/s.
SCALES = {"ns": 1.0, "us": 1e3, "M/s": 1e6, "MB/s": 1e6}
PEERS = ("ucx", "openmpi", "mpich")


def peers(kind, size, names=PEERS):
    return {name: f"{name}.{kind}.{size}" for name in names}


def both(near, far):
    return {"near": near, "far": far}


def latency_rows():
    r_bars = {"must": both(1.45, 0.96), "goal": both(1.15, 0.88)}
    small = peers("lat", 4, PEERS + ("libfabric", "unix", "tcp"))
    yield Row("4 B send/recv, half round trip over R", "ns", "ours.lat.4", R, peers=small,
              floor="raw.slot", **r_bars)
    yield Row("4 B send/recv through a CQ, half round trip over R", "ns", "ours.cq.4", R,
              peers=small, floor="raw.slot", **r_bars)
    yield Row("64 B over 4 B, half round trip", "ns", "ours.lat.64", "ours.lat.4", must=1.2,
              goal=1.05, peers=peers("lat", 64), floor="raw.pingpong.64")
    for size, name in ((1024, "1 KiB"), (4096, "4 KiB")):
        yield Row(f"{name} half round trip over UCX tag", "ns", f"ours.lat.{size}",
                  f"raw.pingpong.{size}", floor=f"raw.pingpong.{size}", against="ucx", must=0.8,
                  goal=0.55, peers=peers("lat", size))


def stream_rows():
    for size in (4, 64):
        yield Row(f"{size} B one-way rate over UCX tag", "M/s", f"ours.rate.{size}",
                  f"raw.fifo.{size}", floor=f"raw.fifo.{size}", against="ucx", must=2.0, goal=4.0,
                  better=HIGHER, peers=peers("rate", size))
    for size, name in ((65536, "64 KiB"), (1048576, "1 MiB")):
        yield Row(f"{name} send/recv bandwidth over two copies in chunks", "MB/s",
                  f"ours.bw.{size}", f"raw.chunk.{size}", must=0.85, goal=0.95, better=HIGHER,
                  peers=peers("bw", size))
    yield Row("1 MiB RDMA write to window memory over local memcpy", "MB/s", "ours.put.1048576",
              "raw.memcpy.1048576", must=0.93, goal=0.99, better=HIGHER,
              peers={"ucx": "ucx.put.1048576"})


def one_sided_rows():
    yield Row("8 B RDMA write to window memory, seen by a polling reader, half round trip over R", "ns",
              "ours.write.8", R, must=1.2, goal=1.0, peers={"ucx": "ucx.putlat.8"})
    yield Row("time inside VipPostSend, 4 B, nobody asleep", "ns", "ours.post.4",
              "raw.fifo_ns.4", against="itself", must=40.0, goal=15.0)
    yield Row("8 B RDMA read over two send/recv half round trips", "ns", "ours.read.8",
              "ours.lat.8", factor=2.0, must=1.3, goal=1.0)


def waiting_rows():
    yield Row("blocking receive, two cores, over a bare futex", "ns", "ours.block.4", "raw.futex",
              must=1.2, goal=1.05, peers={"unix": "unix.block.4", "tcp": "tcp.block.4"})
    for mode in ("yield", "block", "adaptive"):
        yield Row(f"one shared core, VIADUCT_WAIT={mode}", "us", f"ours.one.{mode}",
                  "raw.one.yield" if mode == "yield" else "raw.one.futex", against="itself",
                  must=3.0, goal=1.2)
    yield Row("one shared core, polling with VipRecvDone", "us", "ours.one.poll", "raw.one.yield",
              against="itself", must=3.0, goal=1.2)
    yield Row("default settings, unpinned, VipRecvWait", "us", "ours.unpinned.wait",
              "raw.one.yield", against="itself", must=4.0, goal=1.5)
    yield Row("default settings, unpinned, polling", "us", "ours.unpinned.poll",
              "raw.one.yield", against="itself", must=4.0, goal=1.5)


def own_rows():
    yield Row("receive with 1 busy VI of 256 over 1 of 1, on a CQ", "ns", "ours.busy256.4",
              "ours.cq.4", must=1.5, goal=1.1)
    yield Row("reliable delivery over unreliable, 4 B", "ns", "ours.lat.4", "ours.unreliable.4",
              must=1.1, goal=1.0)
    yield Row("neighbour link over self port, 4 B", "ns", "ours.lat.4", "self.lat.4", must=1.1,
              goal=1.0)


def all_rows():
    return [*latency_rows(), *stream_rows(), *one_sided_rows(), *waiting_rows(), *own_rows()]


def median_quotient(rounds, over, under):
    values = [v for r in rounds if (v := quotient(r, over, under)) is not None]
    return median(values) if values else None


def in_unit(row, rounds, key, factor=1.0):
    values = [r.samples[key].value * factor for r in rounds if key in r.samples]
    return median(values) / SCALES[row.unit] if values else None


def limit_of(row, rounds):
    if row.limit is R:
        return median(r.samples[row.ours].r for r in rounds)
    return in_unit(row, rounds, row.limit, row.factor) if row.limit else None


def make_row(row, placement, rounds):
    """The outcome in one placement; None when no round of it has the figure."""
    usable = [(r, row.ratio_in(r)) for r in rounds]
    usable = [(r, v) for r, v in usable if v is not None]
    if not usable:
        return None
    used = [r for r, _ in usable]
    ratio = median(v for _, v in usable)
    must, goal = row.bar("must", placement), row.bar("goal", placement)
    return {
        "figure": row.figure, "placement": placement, "unit": row.unit,
        "ours": in_unit(row, used, row.ours), "limit": limit_of(row, used),
        "peers": {n: v for n, k in row.peers.items()
                  if (v := in_unit(row, used, k)) is not None},
        "peer_ratios": {n: v for n, k in row.peers.items()
                        if (v := median_quotient(used, row.ours, k)) is not None},
        "floor": in_unit(row, used, row.floor),
        "floor_ratio": median_quotient(used, row.ours, row.floor) if row.floor else None,
        "against": row.against, "better": row.better, "ratio": ratio, "must": must, "goal": goal,
        "must_held": row.holds(ratio, must), "goal_held": row.holds(ratio, goal),
        "rounds": len(used), "ratio_min": min(v for _, v in usable),
        "ratio_max": max(v for _, v in usable),
    }


def outcome(rows, rounds):
    """All rows of the placements that occurred, and in words what is left out."""
    made, left_out = [], []
    found = placed(rounds)
    for placement in PLACEMENTS:
        if not found[placement]:
            left_out.append(f"placement {placement} did not occur: its rows are left out")
    very_far = sum(r.placement not in PLACEMENTS for r in rounds)
    if very_far:
        kept = any(r.placement not in PLACEMENTS for r in found["far"])
        left_out.append(f"{very_far} rounds were very far apart and "
                        f"{'count as far, as there are no others' if kept else 'are discarded'}")
    for placement in PLACEMENTS:
        for row in rows if found[placement] else ():
            one = make_row(row, placement, found[placement])
            if one:
                made.append(one)
            else:
                left_out.append(f"not measured, {placement}: {row.figure}")
    return made, left_out


def series(rows, rounds):
    """The ratios of the rounds, one list per row and placement: have they settled?"""
    return [[v for r in mine if (v := row.ratio_in(r)) is not None]
            for mine in placed(rounds).values() for row in rows]
