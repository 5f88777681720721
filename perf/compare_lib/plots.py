#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws the curves of a result of perf/compare: plots.py RESULT.json DIRECTORY"""
import json
import os
import sys

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  the backend comes first

# name in the keys: label, colour, line
SERIES = {
    "raw": ("limit: bare copies", "#888888", ":"),
    "ours": ("Viaduct, neighbour link", "#c03020", "-"),
    "self": ("Viaduct, self port", "#e08030", "--"),
    "ucx": ("UCX tag", "#3060b0", "-"),
    "openmpi": ("Open MPI", "#308030", "-"),
    "mpich": ("MPICH", "#50a0a0", "-"),
    "libfabric": ("libfabric shm", "#8050a0", "-"),
    "unix": ("Unix socket, polled", "#a08050", "-."),
    "tcp": ("TCP loopback, polled", "#604020", "-."),
}


def size_name(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def draw(axes, curves, scale, log):
    sizes = sorted({int(s) for c in curves.values() for s in c})
    for name, (label, colour, line) in SERIES.items():
        points = sorted((int(s), v / scale) for s, v in curves.get(name, {}).items())
        if points:
            axes.plot(*zip(*points), line, color=colour, label=label, marker="o", markersize=3,
                      linewidth=2 if name == "ours" else 1.2)
    axes.set_xscale("log", base=2)
    if log:
        axes.set_yscale("log")
    axes.set_xticks(sizes, [size_name(s) for s in sizes], rotation=45)
    axes.minorticks_off()
    axes.grid(True, alpha=0.3)


def picture(document, kind, title, label, scale, log, path):
    placements = [p for p in ("near", "far") if document["curves"].get(p, {}).get(kind)]
    if not placements:
        return False
    figure, axes = pyplot.subplots(1, len(placements), figsize=(6.4 * len(placements), 4.8),
                                   squeeze=False)
    for one, placement in zip(axes[0], placements):
        r = document["placements"][placement]["r_ns"]
        draw(one, document["curves"][placement][kind], scale, log)
        one.set_title(f"{title}, {placement} (R = {r:.0f} ns)")
        one.set_ylabel(label)
        one.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    os.makedirs(sys.argv[2], exist_ok=True)
    for kind, title, label, scale, log in (
            ("latency", "half round trip over R", "multiples of R", 1.0, True),
            ("bandwidth", "one-way bandwidth", "GB/s", 1e9, False)):
        path = os.path.join(sys.argv[2], f"{kind}.png")
        if picture(document, kind, title, label, scale, log, path):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
