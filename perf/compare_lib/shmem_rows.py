# SPDX-License-Identifier: BSD-2-Clause
"""What perf/compare_shmem measures, and what must hold."""
from dataclasses import dataclass
from statistics import median

from . import stats

K, M = 1 << 10, 1 << 20
HELD, EVEN, MISSED, UNSURE = "held", "even", "MISSED", "unsure"
CLOSE = 1.05  # a ratio up to which two libraries count as even when the interval has 1


@dataclass(frozen=True)
class Step:
    """One run of a program: its name, options, and the seconds that it may take."""
    program: str
    only: str
    sizes: str = ""
    patience: float = 60.0

    def options(self):
        return ["--json", "--only", self.only] + (["--sizes", self.sizes] if self.sizes else [])


@dataclass(frozen=True)
class Row:
    figure: str
    key: tuple           # program, figure, size or None
    must: float = 1.0    # the largest ratio of times, ours over theirs
    rate: bool = False   # is more better?

    def ratio(self, ours, theirs):
        """Ours over theirs as times, also of rates: below 1 ours is better."""
        return theirs / ours if self.rate else ours / theirs


STEPS = (
    Step("osb_put", "latency", "8,4K,64K,1M"), Step("osb_put", "bandwidth", "1M"),
    Step("osb_get", "latency", "8,4K,64K,1M"), Step("osb_get", "bandwidth", "1M"),
    Step("osb_rate", "put", "8"),
    # One by one: where one of them ends the process the others are known.
    Step("osb_amo", "fetch_add"), Step("osb_amo", "swap"), Step("osb_amo", "compare_swap"),
    Step("osb_barrier", "barrier"), Step("osb_reduce", "latency", "4,1K,1M"),
)
# Of OpenSHMEM on two emulated hosts, and of VIPL there.
NEIGHBOUR_STEPS = (Step("osb_put", "quiet", "8"), Step("osb_put", "bandwidth", "1M"))
MOVES = tuple(Step(program, figure, "1..64M", 180.0) for program in ("osb_put", "osb_get")
              for figure in ("latency", "bandwidth"))
CURVES = (*MOVES, Step("osb_reduce", "latency", "4..4M", 120.0))


def size_name(size):
    for unit, name in ((M, "MiB"), (K, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def moves(kind):
    return [Row(f"{kind} {size_name(size)}, us", (f"osb_{kind}", "latency", size),
                must=0.5 if size == 8 else 1.0) for size in (8, 4 * K, 64 * K, M)]


ROWS = (
    *moves("put"), *moves("get"),
    *(Row(f"{kind} bandwidth 1 MiB, MB/s", (f"osb_{kind}", "bandwidth", M), rate=True)
      for kind in ("put", "get")),
    Row("message rate 8 B, M/s", ("osb_rate", "put", 8), rate=True),
    *(Row(f"{name.replace('_', ' ')}, us", ("osb_amo", name, None), must=0.5)
      for name in ("fetch_add", "swap", "compare_swap")),
    Row("barrier, us", ("osb_barrier", "barrier", None)),
    *(Row(f"reduce {size_name(size)}, us", ("osb_reduce", "latency", size)) for size in (4, K, M)),
)


# Neighbour hosts; theirs are RDMA writes of VIPL.
NEIGHBOUR_ROWS = (
    Row("8 B put and quiet, us", ("osb_put", "quiet", 8), must=1.5),
    Row("put bandwidth 1 MiB, MB/s", ("osb_put", "bandwidth", M), must=1 / 0.97, rate=True),
)


def judge(row, ratios):
    """held or missed with the whole interval; even: the median is near 1, and 1 is in it."""
    low, high = stats.interval(ratios)
    if len(ratios) < stats.ENOUGH:
        return UNSURE
    if high <= row.must:
        return HELD
    if low > row.must:
        return MISSED
    return EVEN if row.must == 1.0 and median(ratios) <= CLOSE else UNSURE


def outcome(row, rounds, ours, theirs):
    """A row of the table for one other library; without a ratio when either was not measured."""
    pairs = [(r[ours][row.key], r[theirs][row.key]) for r in rounds
             if row.key in r[ours] and row.key in r[theirs]]
    found = {"figure": row.figure, "peer": theirs, "must": row.must, "rounds": len(pairs),
             "ours": None, "theirs": None, "ratio": None, "ratio_low": None, "ratio_high": None,
             "spread": None, "outcome": UNSURE}
    if pairs:
        ratios = [row.ratio(a, b) for a, b in pairs]
        low, high = stats.interval(ratios)
        found.update(ours=median(a for a, _ in pairs), theirs=median(b for _, b in pairs),
                     ratio=median(ratios), ratio_low=low, ratio_high=high,
                     spread=stats.spread(ratios), outcome=judge(row, ratios))
    return found


def good(row):
    return row["outcome"] in (HELD, EVEN)
