# SPDX-License-Identifier: BSD-2-Clause
"""Tables, and the requirements that the experiments check."""
from . import plan

TITLES = {
    "E1": "E1: transfer rate to a neighbour, GB/s",
    "E2": "E2: one link, two links of one host, all links of three hosts; GB/s of each link",
    "E3": "E3: turnaround, all hosts sending, us (raw: one hop, nothing else under way)",
    "E4": "E4: throughput of a host, all hosts sending, GB/s (raw: of its link)",
    "hop": "hops: 64 bytes, one way, nothing else under way, us",
    "steps": "steps: puts to a neighbour, one after the other, us",
    "barrier": "barrier of all hosts, us",
    "mixed": "mixed: the published ring of three hosts on two kinds of adapters, GB/s of each link",
}


def size_name(size):
    for unit, name in ((plan.MIB, "M"), (plan.KIB, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def table(points, experiment):
    """Lines of one experiment; with what distinguishes its rows in front."""
    mine = [p for p in points if p.experiment == experiment]
    if not mine:
        return []
    if experiment == "barrier":
        return barriers(mine)
    if experiment == "steps":
        return steps(mine)
    if experiment == "mixed":
        return mixed(mine)
    lines = ["", TITLES[experiment],
             f"{'hosts':>6}{'threads':>8}{'links':>6}{'hops':>5}{'bytes':>7}"
             f"{'raw':>9}{'baseline':>10}{'ours':>9}{'shmem':>9}{'blocking':>10}"]
    for p in mine:
        lines.append(f"{p.hosts:>6}{p.threads:>8}{p.links:>6}{p.hops:>5}{size_name(p.bytes):>7}"
                     f"{number(p.values.get('raw')):>9}{number(p.values.get('baseline')):>10}"
                     f"{number(p.values.get('ours')):>9}{number(p.values.get('shmem')):>9}"
                     f"{number(p.values.get('blocking')):>10}")
    return lines + {"E1": splits, "E2": spreads}.get(experiment, lambda _: [])(mine)


def mixed(points):
    """A line for each direction of each link, with the study's figure where it has one."""
    lines = ["", TITLES["mixed"], f"{'link':>6}{'adapter':>9}{'bytes':>7}{'published':>13}{'raw':>9}"
             f"{'baseline':>10}{'ours':>9}"]
    for p in points:
        known = "collapses" if p.bytes > plan.PUBLISHED_UP_TO else "-"
        if p.published:
            known = f"up to {number(p.published)}"
        lines.append(f"{'>'.join(map(str, p.ends)):>6}{p.adapter:>9}{size_name(p.bytes):>7}{known:>13}"
                     f"{number(p.values.get('raw')):>9}{number(p.values.get('baseline')):>10}"
                     f"{number(p.values.get('ours')):>9}")
    return lines


def barriers(points):
    """A line for each number of hosts, with all algorithms."""
    kinds = list(dict.fromkeys(p.algorithm for p in points))
    lines = ["", TITLES["barrier"],
             f"{'hosts':>6}{'baseline':>10}" + "".join(f"{kind:>15}" for kind in kinds)]
    for hosts in sorted({p.hosts for p in points}):
        of = {p.algorithm: p for p in points if p.hosts == hosts}
        known = [p.values["baseline"] for p in of.values() if p.values.get("baseline")]
        lines.append(f"{hosts:>6}{number(known[0] if known else None):>10}"
                     + "".join(f"{number(of[kind].values.get('shmem') if kind in of else None):>15}"
                               for kind in kinds))
    return lines


def splits(points):
    """The parts of the time of a transfer of the published protocol."""
    parts = ("address_setup_ns", "doorbell_wait_ns", "data_ns", "metadata_ns", "interrupt_ns")
    lines = ["", f"{points[0].experiment}, baseline: us of a transfer by part; the interrupt is part of the next wait",
             f"{'bytes':>7}" + "".join(f"{name[:-3]:>15}" for name in parts)]
    for p in points:
        if p.split:
            lines.append(f"{size_name(p.bytes):>7}"
                         + "".join(f"{p.split[name] / 1e3:>15.2f}" for name in parts))
    return lines if len(lines) > 3 else []


def steps(points):
    """A line for each size: how long after the call of a put of OpenSHMEM each step was done."""
    names = ("call_us", "seen_us", "done_us")
    titles = ("call returned", "target saw it", "quiet returned")
    lines = ["", TITLES["steps"], f"{'bytes':>7}{'baseline':>10}" + "".join(f"{title:>16}" for title in titles)]
    for p in points:
        lines.append(f"{size_name(p.bytes):>7}{number(p.values.get('baseline')):>10}"
                     + "".join(f"{number(p.steps.get(name)):>16}" for name in names))
    return lines + splits(points)


def spreads(points):
    """The mean and the spread of what the papers have as the mean of some runs."""
    lines = []
    for p in points:
        of = p.row().get("spread", {}).get("blocking")
        if of:
            lines.append(f"{p.links:>6}{size_name(p.bytes):>7}{number(of['mean']):>9}"
                         f"{number(of['least']):>9} to {number(of['most'])}, of {of['of']}")
    return lines and ["", "E2, blocking: mean and spread", f"{'links':>6}{'bytes':>7}{'mean':>9}{'spread':>9}", *lines]


def find(points, experiment, **what):
    for p in points:
        if p.experiment == experiment and all(getattr(p, k) == v for k, v in what.items()):
            return p
    return None


def quotient(points, experiment, side, above, below):
    """The value of one row as a multiple of another's, or None."""
    a, b = find(points, experiment, **above), find(points, experiment, **below)
    if not a or not b or not a.values.get(side) or not b.values.get(side):
        return None
    return a.values[side] / b.values[side]


def added_per_hop(points):
    """The largest share of one hop's latency that a further hop added."""
    one = find(points, "hop", hops=1)
    shares = []
    for p in points:
        before = find(points, "hop", hops=p.hops - 1)
        if p.experiment != "hop" or p.hops == 1 or not before:
            continue
        if all(x.values.get("ours") for x in (one, before, p)):
            shares.append((p.values["ours"] - before.values["ours"]) / one.values["ours"])
    return max(shares, default=None)


def eight_against_four(points):
    """The worst ratio of turnarounds of ours, eight threads to four."""
    ratios = [quotient(points, "E3", "ours", {"hosts": p.hosts, "threads": 8, "bytes": p.bytes},
                       {"hosts": p.hosts, "threads": 4, "bytes": p.bytes})
              for p in points if p.experiment == "E3" and p.threads == 8]
    known = sorted(r for r in ratios if r is not None)
    return known[len(known) // 2] if known else None


def requirements(points):
    """(what, value, bound, holds) of each that could be checked."""
    made = []
    for side, name, size, least in (("ours", "ours", plan.MIB, 0.97),
                                    ("ours", "ours", 64 * plan.KIB, 0.90),
                                    ("shmem", "an OpenSHMEM put", plan.MIB, 0.97),
                                    ("shmem", "an OpenSHMEM put", 64 * plan.KIB, 0.95)):
        p = find(points, "E1", bytes=size)
        share = p.share(side) if p else None
        made.append((f"{name} is a share of the raw link at {size_name(size)}", share,
                     f">= {least}", share is not None and share >= least))
    added = added_per_hop(points)
    made.append(("a further hop costs this share of one hop", added, "<= 1.5",
                 added is not None and added <= 1.5))
    shares = [p.values["ours"] / p.published for p in points
              if p.experiment == "mixed" and p.published and p.values.get("ours")]
    least = min(shares, default=None)
    made.append(("ours is a share of the published rate of a link of the mixed ring, the least", least,
                 ">= 0.97", least is not None and least >= 0.97))
    worse = eight_against_four(points)
    made.append(("turnaround with eight threads to four, the median", worse, "<= 1.05",
                 worse is not None and worse <= 1.05))
    return made


def shape(points):
    """The papers' figures of the baseline next to those found here: (what, papers, here)."""
    found = []
    shares = [(p, p.share("baseline")) for p in points if p.experiment == "E1"]
    text = ", ".join(f"{size_name(p.bytes)} {s * 100:.0f} %" for p, s in shares
                     if s is not None and p.bytes >= 64 * plan.KIB)
    found.append(("transfers to a neighbour, of the raw link", "80 to 85 %", text or None))
    found.append(("one host more, one thread", "+22 to 36 %", changes(points, "hosts")))
    found.append(("two threads for one", "38 to 45 % less", changes(points, "threads", 2, 1)))
    found.append(("eight threads for four", "little", changes(points, "threads", 8, 4)))
    return found


def changes(points, what, high=None, low=None):
    """By how much the baseline's turnaround changes, for each size: the mean over the rest."""
    by_size = {}
    for p in points:
        if p.experiment != "E3" or not p.values.get("baseline"):
            continue
        if what == "hosts" and p.threads != 1 or what == "threads" and p.threads != high:
            continue
        other = {"hosts": p.hosts - 1, "threads": 1} if what == "hosts" \
            else {"hosts": p.hosts, "threads": low}
        q = quotient(points, "E3", "baseline",
                     {"hosts": p.hosts, "threads": p.threads, "bytes": p.bytes},
                     {**other, "bytes": p.bytes})
        if q is not None:
            by_size.setdefault(p.bytes, []).append(q - 1)
    return ", ".join(f"{size_name(size)} {sum(v) / len(v) * 100:+.0f} %"
                     for size, v in sorted(by_size.items())) or None
