# SPDX-License-Identifier: BSD-2-Clause
"""The states that the machine was in during a session.

Two things change on a virtual machine from one moment to the next: the distance of the processors,
which R shows, and their speed, which the time of a step shows.  Each stays about the same for a
while and then jumps, so the values of a session form groups with few values between them.  A fixed
bound would cut a group in two when it drifts.
"""
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

FEW = 10           # fewer values than this are one group
CLOSE = 1.06       # the density at a point counts the values within this factor
THIN = 0.25        # between two groups it is at most this share of the smaller one's largest
STRAY = 0.1        # values at which it is below this share of their group's largest are no members
R_APART = 1.4      # the medians of two groups differ by this factor
STEP_APART = 1.3
SHARE = 0.1        # a group holds at least this share of all values
COUNTS = 1 / 3     # and with this one it counts: rows are made of its values, and judged
FAR_FROM_NS = 180  # a group whose median R is below is near: 50 and 135 ns are usual, far 215, 235

NEAR, FAR = "near", "far"
PLACEMENTS = (NEAR, FAR)
COUNTED, OTHER = "counted", "other"


@dataclass(frozen=True)
class Group:
    """Values close to each other, and the bounds of what counts as one of them."""
    low: float
    high: float
    middle: float
    count: int

    def holds(self, value):
        return self.low <= value < self.high


def density(values, point):
    """How many of the sorted values are close to the point."""
    return bisect_right(values, point * CLOSE) - bisect_left(values, point / CLOSE)


def group_of(values):
    """The group of these sorted values, without its strays."""
    dense = [density(values, v) for v in values]
    members = [v for v, d in zip(values, dense) if d >= STRAY * max(dense)]
    return Group(members[0] / CLOSE, members[-1] * CLOSE, median(members), len(members))


def cut(values, apart):
    """The index at which the sorted values are best cut in two groups, None if they are one."""
    count, dense = len(values), [density(values, v) for v in values]
    below, above = list(accumulate(dense, max)), list(accumulate(dense[::-1], max))[::-1]

    def badness(i):
        between = (values[i - 1] * values[i]) ** 0.5
        return density(values, between) / min(below[i - 1], above[i]), values[i - 1] / values[i]

    # A half's median is in its middle, since the values are sorted.
    best = min((i for i in range(1, count) if values[(i + count) // 2] >= apart * values[i // 2]),
               key=badness, default=None)
    return best if best and badness(best)[0] <= THIN else None


def split(values, apart):
    place = cut(values, apart)
    if place is None:
        return [values]
    return split(values[:place], apart) + split(values[place:], apart)


def groups(values, apart):
    """The groups of the values, lowest first."""
    values = sorted(values)
    if not values:
        return []
    parts = split(values, apart) if len(values) >= FEW else [values]
    return [group_of(p) for p in parts if len(p) >= SHARE * len(values)] or [group_of(values)]


def counting(found, probes):
    """Those of the groups that count: of a third of the probes, or if there is none the largest."""
    large = [g for g in found if g.count >= COUNTS * probes]
    return large or sorted(found, key=lambda g: g.count)[-1:]


def bounded(times, bound):
    """The groups below and above a bound that was given."""
    parts = ((0.0, bound), (bound, float("inf")))
    found = [(low, high, [t for t in times if low <= t < high]) for low, high in parts]
    return [Group(low, high, median(v), len(v)) for low, high, v in found if v]


def placements(times, near_below):
    """The group of each placement, by its name."""
    found = bounded(times, near_below) if near_below else groups(times, R_APART)
    named = {NEAR: [g for g in found if g.middle < (near_below or FAR_FROM_NS)],
             FAR: [g for g in found if g.middle >= (near_below or FAR_FROM_NS)]}
    largest = {name: max(v, key=lambda g: g.count) for name, v in named.items() if v}
    count = counting(largest.values(), len(times))
    return {name: group for name, group in largest.items() if group in count}


class Classes:
    """Tells the placement and the speed that probes show.

    Near is the largest group of R below FAR_FROM_NS, far the largest above; `near_below` is a
    fixed bound instead.  A placement that the machine had for less than a third of the session is
    none.  The speed that counts is the fastest that it had for as long.
    """

    def __init__(self, probes, near_below=None):
        self.placements = placements([p.r for p in probes], near_below)
        self.speeds = groups([p.step for p in probes], STEP_APART)
        self.counted = next(iter(counting(self.speeds, len(probes))), None)

    def placement(self, probe):
        return next((n for n, g in self.placements.items() if g.holds(probe.r)), None)

    def speed(self, probe):
        group = next((g for g in self.speeds if g.holds(probe.step)), None)
        return group and (COUNTED if group is self.counted else OTHER)

    def of(self, sample):
        """The placement and the speed around a sample; None where they are not known."""
        found = {(self.placement(p), self.speed(p)) for p in (sample.before, sample.after)}
        (one, *others) = found
        return None if others or None in one else one
