# SPDX-License-Identifier: BSD-2-Clause
"""Rounds, placements, ratios.

The processors of a virtual machine move between those of its host, so a time means nothing without
R, the one-way time of a cache line, taken just before and just after it.  A ratio is formed of
values of one round only, between which R stayed about the same; the report shows the median of
the ratios of the rounds of one placement.
"""
from dataclasses import dataclass, field
from statistics import median

NEAR_BELOW_NS = 150.0  # about the middle of the usual 48 and 235 ns
FAR_UP_TO_NS = 600.0
STEADY = 1.8       # the largest R of a ratio's values over the smallest
SETTLED = 0.03     # relative uncertainty of a median that is good enough
SETTLED_ROUNDS = 5

NEAR, FAR, VERY_FAR = "near", "far", "very far"
PLACEMENTS = (NEAR, FAR)


def placement_of(r_ns):
    """The placement that a one-way time shows."""
    if r_ns < NEAR_BELOW_NS:
        return NEAR
    return FAR if r_ns <= FAR_UP_TO_NS else VERY_FAR


@dataclass
class Sample:
    """A value, and R before and after it was taken."""
    value: float
    before: float
    after: float

    @property
    def r(self):
        return (self.before + self.after) / 2


@dataclass
class Round:
    """All values that were taken together."""
    samples: dict = field(default_factory=dict)
    probes: list = field(default_factory=list)
    started: float = 0.0

    @property
    def r(self):
        return median(self.probes)

    @property
    def placement(self):
        return placement_of(self.r)

    def take(self, key, value, before, after):
        self.samples[key] = Sample(value, before, after)

def placed(rounds):
    """The rounds of each placement.  Very far ones count, as far, only when there are no others."""
    found = {p: [r for r in rounds if r.placement == p] for p in PLACEMENTS}
    if not any(found.values()):
        found[FAR] = list(rounds)
    return found


def steady(samples):
    """Did R stay about the same over all of them?"""
    times = [t for s in samples for t in (s.before, s.after)]
    return max(times) <= STEADY * min(times)


def quotient(a_round, over, under, factor=1.0):
    """samples[over] / (factor * samples[under]) in this round; None when that is not known.

    `under` None is R around the sample; "" leaves the value as it is.
    """
    top = a_round.samples.get(over)
    if top is None:
        return None
    if under == "":
        return top.value
    if under is None:
        return top.value / (factor * top.r) if steady([top]) else None
    bottom = a_round.samples.get(under)
    if bottom is None or bottom.value <= 0 or not steady([top, bottom]):
        return None
    return top.value / (factor * bottom.value)


def uncertainty(values):
    """Relative standard error of the median, estimated by the median deviation."""
    middle = median(values)
    if len(values) < 2 or not middle:
        return float("inf")
    deviation = median(abs(v - middle) for v in values)
    return 1.4826 * 1.2533 * deviation / len(values) ** 0.5 / abs(middle)


def settled(lists):
    """Are the medians of all these lists known well enough?  Empty lists do not count."""
    lists = [v for v in lists if v]
    return bool(lists) and all(
        len(v) >= SETTLED_ROUNDS and uncertainty(v) <= SETTLED for v in lists)
