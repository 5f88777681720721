# SPDX-License-Identifier: BSD-2-Clause
"""Samples, rounds, ratios.

The processors of a virtual machine move between those of its host and share their cores with
others, so a time means nothing without R, the one-way time of a cache line, and without the time
of a step of arithmetic, both taken just before and just after it.  A ratio is formed of values of
one round only, between which both stayed about the same; the report shows the median of the ratios
of one placement and one speed.
"""
from dataclasses import dataclass, field
from math import comb
from statistics import median

R_STEADY = 1.5      # the largest R around a ratio's values over the smallest
STEP_STEADY = 1.25  # and of the times of a step
SPREAD = 0.03       # of the median of a row's ratios: repeated until it is no more than this
ENOUGH = 5          # ratios, to judge their median
DOUBT = 0.05        # that the median lies outside its interval


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

    def part(self, wanted):
        """The round with the samples that `wanted` accepts."""
        samples = {k: s for k, s in self.samples.items() if wanted(s)}
        return Round(samples, self.probes, self.started)


def quotient(a_round, over, under, factor=1.0):
    """samples[over] / (factor * samples[under]) in this round; None when that is not known.

    `under` None is R around the sample; "" leaves the value as it is.
    """
    top = a_round.samples.get(over)
    if top is None or not steady(top.probes):
        return None
    if under == "":
        return top.value
    if under is None:
        return top.value / (factor * top.r)
    bottom = a_round.samples.get(under)
    if bottom is None or bottom.value <= 0 or not steady(top.probes + bottom.probes):
        return None
    return top.value / (factor * bottom.value)


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


def settled(values):
    """Is the median of these known well enough?"""
    return len(values) >= ENOUGH and (known := spread(values)) is not None and known <= SPREAD
