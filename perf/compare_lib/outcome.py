# SPDX-License-Identifier: BSD-2-Clause
"""From rounds to rows: the median of the ratios, how well it is known, and what it shows."""
from dataclasses import dataclass, field
from statistics import median

from . import stats
from .classes import COUNTED, OTHER, PLACEMENTS
from .rows import SCALES, R
from .stats import quotient


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


def in_steps(row, rounds):
    """A time of ours as a number of steps of arithmetic."""
    if row.unit not in ("ns", "us"):
        return None
    return median(s.value / s.step for s in (r.samples[row.ours] for r in rounds))


def row_of(row, placement, speed, rounds):
    """The outcome in one placement and speed; None when no round of it has the figure."""
    against, usable = row.ratios(rounds)
    if not usable:
        return None
    used, values = [r for r, _ in usable], [v for _, v in usable]
    must, goal = row.bar("must", placement), row.bar("goal", placement)
    low, high = stats.interval(values)
    return {
        "figure": row.figure, "placement": placement, "speed": speed, "unit": row.unit,
        "ours": in_unit(row, used, row.ours), "ours_steps": in_steps(row, used),
        "limit": limit_of(row, used),
        "peers": {n: v for n, k in row.peers.items()
                  if (v := in_unit(row, used, k)) is not None},
        "peer_ratios": {n: v for n, k in row.peers.items()
                        if (v := median_quotient(used, row.ours, k)) is not None},
        "floor": in_unit(row, used, row.floor),
        "floor_ratio": median_quotient(used, row.ours, row.floor) if row.floor else None,
        "against": against, "better": row.better, "ratio": median(values), "must": must,
        "goal": goal, "must_outcome": row.judge(values, must),
        "goal_outcome": row.judge(values, goal), "rounds": len(used),
        "ratio_low": low, "ratio_high": high, "spread": stats.spread(values),
    }


def parts(rounds, classes, placement, speed):
    """The rounds with their samples of one placement and speed."""
    made = [r.part(lambda s: classes.of(s) == (placement, speed)) for r in rounds]
    return [r for r in made if r.samples]


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
            possible.append(row)
    for placement in PLACEMENTS:
        counted = parts(rounds, classes, placement, COUNTED)
        if not counted:
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
        other = parts(rounds, classes, placement, OTHER)
        out.other += [one for row in possible if (one := row_of(row, placement, OTHER, other))]
    return out


def unsettled(rows, rounds, classes, missing):
    """The rows whose median is not known well enough in some placement that occurred, or in any."""
    places = [found for p in PLACEMENTS if (found := parts(rounds, classes, p, COUNTED))] or [[]]
    return [row for row in rows if not row.absent(missing) and not all(
        stats.settled([v for _, v in row.ratios(found)[1]]) for found in places)]
