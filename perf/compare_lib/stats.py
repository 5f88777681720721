# SPDX-License-Identifier: BSD-2-Clause
"""Samples, rounds, and what two series of values say about each other.

The processors of a virtual machine move between those of its host and share their cores with
others, so a time means nothing without R, the one-way time of a cache line, and without the time
of a step of arithmetic, both taken just before and just after it.  Values are compared with all
values of the other side that were taken in the same placement and at the same speed, of whatever
round: a machine that jumps every few seconds leaves few pairs of one round, and many values of
each placement.
"""
from dataclasses import dataclass, field
from math import comb
from statistics import median

R_STEADY = 1.5      # the largest R around a value over the smallest
STEP_STEADY = 1.25  # and of the times of a step
SPREAD = 0.03       # of a ratio: values are taken until it is no more than this
ENOUGH = 5          # values, to judge their median
EACH = 4            # on each side, to judge how they compare
ALIKE = 1.15        # the medians of R, and of the steps, around both sides differ by no more
DOUBT = 0.05        # that a median lies outside its interval


@dataclass(frozen=True)
class Probe:
    """The state of the machine at one moment, in ns."""
    r: float     # one-way time of a cache line
    step: float  # of arithmetic, while both processors compute


def steady(probes):
    """Did R and the speed stay about the same over all of them?"""
    times, steps = [p.r for p in probes], [p.step for p in probes]
    return (max(times) <= R_STEADY * min(times)
            and max(steps) <= STEP_STEADY * min(steps))


@dataclass
class Sample:
    """A value, and the probes before and after it."""
    value: float
    before: Probe
    after: Probe

    @property
    def r(self):
        return (self.before.r + self.after.r) / 2

    @property
    def step(self):
        return (self.before.step + self.after.step) / 2

    @property
    def probes(self):
        return self.before, self.after


@dataclass
class Round:
    """All values that were taken together."""
    samples: dict = field(default_factory=dict)
    probes: list = field(default_factory=list)
    started: float = 0.0

    def take(self, key, value, before, after):
        self.samples[key] = Sample(value, before, after)


class Pool:
    """All samples of some rounds around which the machine was steady and in one state, by their key."""

    def __init__(self, rounds, wanted=lambda sample: True):
        self.samples, self.rounds = {}, {}  # by key: those samples by the number of their round; all rounds that have it
        for number, a_round in enumerate(rounds):
            for key, sample in a_round.samples.items():
                self.rounds.setdefault(key, set()).add(number)
                if steady(sample.probes) and wanted(sample):
                    self.samples.setdefault(key, {})[number] = sample

    def of(self, key):
        return list(self.samples.get(key, {}).values())

    def of_both(self, one, other):
        """The samples of each, without rounds in which only one of them was taken, as the machine may have been another then."""
        both = self.rounds.get(one, set()) & self.rounds.get(other, set())
        return tuple([s for n, s in self.samples.get(key, {}).items() if n in both] for key in (one, other))


def alike(ours, theirs):
    """Was the machine in about the same state around both?"""
    for state in (lambda s: s.r, lambda s: s.step):
        one, other = (median(map(state, samples)) for samples in (ours, theirs))
        if max(one, other) > ALIKE * min(one, other):
            return False
    return True


# ---- a median, and the interval in which it is ----

@dataclass(frozen=True)
class Estimate:
    """A median or a ratio of medians, and its interval."""
    middle: float
    low: float
    high: float
    count: int    # of values; of two series, of the shorter one
    enough: bool  # to judge it

    @property
    def spread(self):
        """Half of the interval over the median; None where it is not known."""
        return (self.high - self.low) / 2 / abs(self.middle) if self.enough and self.middle else None

    @property
    def settled(self):
        return self.spread is not None and self.spread <= SPREAD


def of_one(values):
    """The median of some values."""
    return Estimate(median(values), *interval(values), len(values), len(values) >= ENOUGH)


def of_two(ours, theirs, enough=True):
    """How many times that of theirs the median of ours is: bounds by the intervals of both."""
    (low, high), (least, most), count = interval(ours), interval(theirs), min(len(ours), len(theirs))
    return Estimate(median(ours) / median(theirs), low / most, high / least, count, enough and count >= EACH)


def interval(values):
    """Bounds between which the median lies with 95 %, by ranks.

    As many of the sorted values are cut off at each end as chance allows.  With fewer than six
    values none are, and the certainty is lower: 94 % with five.
    """
    ordered, count = sorted(values), len(values)
    cut, below = 0, 2.0 ** -count
    while (below := below + comb(count, cut + 1) * 2.0 ** -count) <= DOUBT / 2:
        cut += 1
    return ordered[cut], ordered[-1 - cut]


def spread(values):
    """Half of that interval over the median; None where it is not known."""
    middle = median(values)
    if len(values) < 2 or not middle:
        return None
    low, high = interval(values)
    return (high - low) / 2 / abs(middle)
