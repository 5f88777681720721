#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws the experiments of a result of perf/ring_experiments: plots.py RESULT.json DIRECTORY"""
import json
import os
import sys

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  the backend comes first

LOOKS = {"raw": ("raw link", "#444444", ":"), "baseline": ("published protocol", "#1f5fa8", "--"),
         "ours": ("Viaduct", "#c8102e", "-"), "shmem": ("OpenSHMEM", "#2e8b3d", "-."),
         "blocking": ("OpenSHMEM, each put waited for", "#7a4fa3", "-."),
         "published": ("published, at most", "#b8860b", "none")}
MARKERS = "osD^vP"
PANEL = (5.6, 3.8)


def size_name(size):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit}{name}"
    return str(size)


def groups(rows, experiment):
    """The keys of a line of a picture, and of a panel."""
    return {"E1": ((), ()), "E2": ((), ("links",)), "E3": (("threads",), ("hosts",)),
            "E4": (("threads",), ()), "hop": ((), ()), "barrier": (("algorithm",), ()),
            "mixed": ((), ("adapter",))}[experiment]


def value_of(row, names):
    return tuple(row[name] for name in names)


def label_of(label, side, lines, group):
    if side == "raw" or not lines:
        return label
    if lines == ("algorithm",):
        return label if side == "baseline" else f"{label}, {group[0]}"
    return f"{label}, {group[0]} thread{'s' if group[0] > 1 else ''}"


def draw(axes, rows, lines, across):
    for side, (label, colour, line) in LOOKS.items():
        for i, group in enumerate(sorted({value_of(r, lines) for r in rows})):
            if (side == "raw" or side == "baseline" and lines == ("algorithm",)) and i > 0:
                continue
            points = sorted((r[across], r[side]) for r in rows
                            if value_of(r, lines) == group and r.get(side) is not None)
            if not points:
                continue
            name = label_of(label, side, lines, group)
            axes.plot(*zip(*points), linestyle=line, color=colour, marker=MARKERS[i], markersize=4,
                      linewidth=1.3, alpha=1 - 0.15 * i, label=name)


def dress(axes, rows, across):
    values = sorted({r[across] for r in rows})
    if across == "bytes":
        axes.set_xscale("log", base=2)
        axes.set_xticks(values, [size_name(v) for v in values])
        if rows[0]["experiment"] == "mixed":  # within a decade
            axes.set_ylim(bottom=0)
        else:
            axes.set_yscale("log")
    else:
        axes.set_xticks(values)
        axes.set_ylim(bottom=0)
    axes.minorticks_off()
    axes.grid(True, alpha=0.3, linewidth=0.6)
    axes.set_xlabel({"bytes": "bytes of a message", "hops": "links to cross", "hosts": "hosts"}[across])
    axes.set_ylabel(rows[0]["unit"].replace("us", "µs"))


def means(rows):
    """One row for each adapter and size: links with one adapter have one line."""
    made = []
    for key in sorted({(r["adapter"], r["bytes"]) for r in rows}):
        same = [r for r in rows if (r["adapter"], r["bytes"]) == key]
        row = dict(same[0])
        for side in LOOKS:
            values = [r[side] for r in same if r.get(side) is not None]
            row[side] = sum(values) / len(values) if values else None
        made.append(row)
    return made


def picture(rows, experiment, path):
    mine = [r for r in rows if r["experiment"] == experiment]
    if experiment == "mixed":
        mine = means(mine)
    if not any(r.get(side) is not None for r in mine for side in LOOKS):
        return False
    lines, panels = groups(mine, experiment)
    across = {"hop": "hops", "barrier": "hosts"}.get(experiment, "bytes")
    names = sorted({value_of(r, panels) for r in mine})
    figure, axes = pyplot.subplots(1, len(names), figsize=(PANEL[0] * len(names), PANEL[1] + 1),
                                   squeeze=False, sharey=True, layout="constrained")
    for one, name in zip(axes[0], names):
        shown = [r for r in mine if value_of(r, panels) == name]
        draw(one, shown, lines, across)
        dress(one, shown, across)
        one.set_title(", ".join(f"{value} {what}" for what, value in zip(panels, name)))
    legend = 0.9 / (PANEL[1] + 1)
    figure.get_layout_engine().set(rect=(0, legend, 1, 1 - legend))
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncol=4,
                  frameon=False, fontsize=8)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True


def main():
    if len(sys.argv) != 3:
        print("usage: plots.py RESULT.json DIRECTORY", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    os.makedirs(sys.argv[2], exist_ok=True)
    for experiment in ("E1", "E2", "E3", "E4", "hop", "mixed", "barrier"):
        path = os.path.join(sys.argv[2], f"ring-{experiment.lower()}.png")
        if picture(document["rows"], experiment, path):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
