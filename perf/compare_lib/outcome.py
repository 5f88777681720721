# SPDX-License-Identifier: BSD-2-Clause
"""From rounds to rows: how ours compare, how well that is known, and what it shows."""
from dataclasses import dataclass, field
from statistics import median

from .classes import COUNTED, OTHER, PLACEMENTS
from .rows import LOWER, SCALES, UNSURE, R
from .stats import Pool

AHEAD, EVEN, BEHIND = "ahead", "even", "behind"
CLOSE, NEAR_ONE = 1.05, 1.15  # even: the ratio is between the first and its inverse, its interval between the second and its inverse


def in_unit(row, pool, key, factor=1.0):
    samples = pool.of(key)
    return median(s.value for s in samples) * factor / SCALES[row.unit] if samples else None


def limit_of(row, pool):
    if row.limit is R:
        return median(s.r for s in pool.of(row.ours))
    return in_unit(row, pool, row.limit, row.factor) if row.limit else None


def in_steps(row, pool):
    """A time of ours as a number of steps of arithmetic."""
    return median(s.value / s.step for s in pool.of(row.ours)) if row.unit in ("ns", "us") else None


def standing(row, known):
    """Ahead of a peer or behind it with the whole interval, or even; unsure when neither is known."""
    if known is None or not known.enough:
        return UNSURE
    ahead, behind = (known.high < 1, known.low > 1) if row.better == LOWER else (known.low > 1, known.high < 1)
    if ahead or behind:
        return AHEAD if ahead else BEHIND
    even = 1 / CLOSE <= known.middle <= CLOSE and 1 / NEAR_ONE <= known.low and known.high <= NEAR_ONE
    return EVEN if even else UNSURE


def row_of(row, placement, speed, pool):
    """The outcome in one placement and speed; None when the figure is not known there."""
    estimates = row.estimates(pool)
    hardest = row.hardest(estimates)
    if not hardest:
        return None
    against, known = hardest
    must, goal = row.bar("must", placement), row.bar("goal", placement)
    peers = {name: row.compared_with(pool, key) for name, key in row.peers.items()}
    floor = row.compared_with(pool, row.floor)
    return {
        "figure": row.figure, "name": row.name, "key": row.ours, "placement": placement, "speed": speed,
        "unit": row.unit, "ours": in_unit(row, pool, row.ours), "ours_steps": in_steps(row, pool),
        "limit": limit_of(row, pool),
        "peers": {name: in_unit(row, pool, row.peers[name]) for name, one in peers.items() if one},
        "peer_ratios": {name: one.middle for name, one in peers.items() if one},
        "peer_outcomes": {name: standing(row, one) for name, one in peers.items()},
        "floor": in_unit(row, pool, row.floor), "floor_ratio": floor.middle if floor else None,
        "against": against, "better": row.better, "must": must, "goal": goal,
        "must_outcome": row.judge(estimates, must), "goal_outcome": row.judge(estimates, goal),
        "ratio": known.middle, "ratio_low": known.low, "ratio_high": known.high,
        "spread": known.spread, "values": known.count,
    }


def pool_of(rounds, classes, placement, speed):
    """The samples of one placement and speed."""
    return Pool(rounds, lambda sample: classes.of(sample) == (placement, speed))


@dataclass
class Outcome:
    """What a session showed."""
    made: list = field(default_factory=list)      # rows as row_of() gives them
    other: list = field(default_factory=list)     # of other speeds than the one that counts
    left_out: list = field(default_factory=list)  # in words
    unknown: int = 0  # rows that could not be measured


def conclude(rows, rounds, classes, missing, optional=()):
    """All rows of the placements that occurred.

    `missing` tells why a need is not there; what is `optional` may be missing.
    """
    out, possible = Outcome(), []
    for row in rows:
        absent = row.absent(missing)
        if absent:
            out.left_out.append(f"{row.figure}: {'; '.join(missing[n] for n in absent)}")
            out.unknown += not set(absent) <= set(optional)
        else:
            possible.append(row.without(missing))
    for placement in PLACEMENTS:
        counted = pool_of(rounds, classes, placement, COUNTED)
        if not counted.samples:
            out.left_out.append(f"the processors were not {placement} for long: "
                                "those rows are left out")
            continue
        for row in possible:
            one = row_of(row, placement, COUNTED, counted)
            if one:
                out.made.append(one)
            else:
                out.left_out.append(f"not measured, {placement}: {row.figure}")
                out.unknown += 1
        other = pool_of(rounds, classes, placement, OTHER)
        out.other += [one for row in possible if (one := row_of(row, placement, OTHER, other))]
    return out


def unsettled(rows, rounds, classes, missing):
    """The rows that are not known well enough in some placement that occurred, or in any."""
    pools = [pool for p in PLACEMENTS if (pool := pool_of(rounds, classes, p, COUNTED)).samples] or [Pool([])]

    def settled(row, pool):
        row = row.without(missing)
        estimates = row.estimates(pool)
        known = [*estimates.values(), *(row.compared_with(pool, key) for key in row.peers.values())]
        return all(one and one.enough for one in known) and row.hardest(estimates)[1].settled
    return [row for row in rows if not row.absent(missing) and not all(settled(row, pool) for pool in pools)]
