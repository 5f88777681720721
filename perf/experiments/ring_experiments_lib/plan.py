# SPDX-License-Identifier: BSD-2-Clause
"""The points of the experiments, and the dilation of each."""
from dataclasses import dataclass, field
from statistics import mean

KIB = 1024
MIB = 1024 * KIB
HOP_HOSTS = 8  # a ring in which four hops are a shortest path
SIDES = ("raw", "baseline", "ours", "shmem", "blocking")  # the last: OpenSHMEM, each put waited for
ALGORITHMS = ("dissemination", "tree", "ring")  # of barriers
HAS = {"hop": ("raw", "baseline", "ours"), "barrier": ("baseline", "shmem"), "steps": ("baseline", "shmem"),
       "mixed": ("raw", "baseline", "ours"), "E3": SIDES[:4], "E4": SIDES[:4]}  # else all sides
# The published ring of three hosts: adapters of the links to the right of each, and their rates, at most.
ADAPTERS = ("pex8749", "pex8749", "pex8733")
PUBLISHED = {"pex8733": 3.5, "pex8749": 2.6}
PUBLISHED_UP_TO = MIB  # above it the published rates collapse, without a figure


@dataclass
class Point:
    """One row: a place in an experiment, and the figures of the sides."""
    experiment: str
    hosts: int
    threads: int
    bytes: int
    links: int = 1
    hops: int = 1
    algorithm: str = ""
    first: int = 0  # mixed: the direction of a link, as the programs number them
    unit: str = "GB/s"
    values: dict = field(default_factory=dict)
    every: dict = field(default_factory=dict)  # all figures of a side that was measured several times
    split: dict = field(default_factory=dict)  # steps of a transfer of the published protocol
    steps: dict = field(default_factory=dict)  # those of a put of OpenSHMEM

    def row(self):
        row = {"experiment": self.experiment, "hosts": self.hosts, "threads": self.threads,
               "bytes": self.bytes}
        row.update({side: self.values.get(side) for side in SIDES})
        row["unit"] = self.unit
        if self.experiment == "E2":
            row["links"] = self.links
        if self.experiment == "hop":
            row["hops"] = self.hops
        if self.experiment == "barrier":
            row["algorithm"] = self.algorithm
        if self.experiment == "mixed":
            row.update({"from": self.ends[0], "to": self.ends[1], "adapter": self.adapter,
                        "published": self.published})
        if self.every:
            row["spread"] = {side: {"mean": mean(all_of), "least": min(all_of), "most": max(all_of), "of": len(all_of)}
                             for side, all_of in self.every.items()}
        if self.split:
            row["split"] = self.split
        if self.steps:
            row["steps"] = self.steps
        return row

    @property
    def ends(self):
        host = self.first // 2
        return host, (host + (1 if self.first % 2 == 0 else self.hosts - 1)) % self.hosts

    @property
    def adapter(self):
        here, there = self.ends
        return ADAPTERS[here if self.first % 2 == 0 else there]

    @property
    def published(self):
        """The study's rate of that link; None: it has none for this size."""
        return PUBLISHED[self.adapter] if self.bytes == PUBLISHED_UP_TO else None

    @property
    def sides(self):
        return HAS.get(self.experiment, SIDES)

    def share(self, side, of="raw"):
        """One side as a part of another, or None."""
        if not self.values.get(side) or not self.values.get(of):
            return None
        return self.values[side] / self.values[of]


def sizes(first, last, step=2):
    made = [first]
    while made[-1] * step <= last:
        made.append(made[-1] * step)
    return made


def dilation(point):
    """
    How many times slower than the profile: an error of this machine of 100 us, a late wake-up, must
    be small against the measured time, and a large message must not take too long.  A neighbour's
    round trip of 64 bytes must not take so long that the library takes its VI for idle.
    """
    if point.experiment == "hop":
        return 1000 if point.hops == 1 else 10000
    if point.experiment == "barrier":
        return 2000
    if point.experiment in ("E1", "E2", "steps", "mixed"):
        return 1000 if point.bytes <= MIB else 250
    return 2000 if point.bytes <= 16 * KIB else 500


def count(experiment, side, size, hosts):
    """Messages of each sender, puts of each caller; of the latter a number for each other host."""
    if experiment == "hop" or (experiment, side) == ("steps", "shmem"):
        return 21
    if experiment in ("E3", "E4"):
        return hosts - 1
    if experiment == "barrier":
        return 9
    return max(4, min(16 if side == "baseline" else 256, MIB // size))


def rounds(point, side, thinned):
    """Short measurements are made three times, for the median; those of which the papers have the mean of five, five."""
    if (point.experiment, side, thinned) == ("E2", "blocking", False):
        return 5
    return 3 if point.experiment in (("hop",) if thinned else ("E1", "E2", "steps", "hop", "mixed")) else 1


def messages(algorithm, hosts):
    """How many messages of a barrier a host sends one after the other."""
    return {"dissemination": (hosts - 1).bit_length(), "tree": min(4, hosts - 1), "ring": 2}[algorithm]


def full():
    points = [Point("E1", 3, 1, size) for size in sizes(KIB, MIB)]
    points += [Point("E2", 3, 1, size, links=links)
               for links in (1, 2, 6) for size in sizes(KIB, 512 * KIB)]
    points += loaded((3, 4, 5), (1, 2, 4, 8), sizes(4 * KIB, MIB, 4))
    points += [Point("steps", 3, 1, size, unit="us") for size in sizes(KIB, MIB, 4)]
    points += [Point("hop", HOP_HOSTS, 1, 64, hops=hops, unit="us") for hops in (1, 2, 3, 4)]
    points += [Point("mixed", 3, 1, size, first=first)
               for size in (64 * KIB, MIB, 4 * MIB) for first in range(6)]
    return points + barriers(range(3, HOP_HOSTS + 1))


def quick():
    points = [Point("E1", 3, 1, size) for size in (KIB, 64 * KIB, MIB)]
    points += [Point("E2", 3, 1, 64 * KIB, links=links) for links in (1, 2, 6)]
    points += [Point("hop", HOP_HOSTS, 1, 64, hops=hops, unit="us") for hops in (1, 2)]
    points += [Point("mixed", 3, 1, MIB, first=first) for first in (0, 4)]
    points += loaded((3, 5), (1, 2), (64 * KIB,))
    points += [Point("steps", 3, 1, 64 * KIB, unit="us")]
    return points + barriers((3,))


def barriers(hosts):
    return [Point("barrier", h, 1, 0, algorithm=a, unit="us") for a in ALGORITHMS for h in hosts]


def loaded(hosts, threads, some):
    """E3, and E4 with as many hosts as there are at most: both come from the same runs."""
    points = [Point("E3", h, t, size, unit="us") for h in hosts for t in threads for size in some]
    return points + [Point("E4", hosts[-1], t, size) for t in threads for size in some]
