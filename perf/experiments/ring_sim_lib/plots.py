#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws the results of perf/ring_sim: plots.py RESULT.json DIRECTORY"""
import io
import json
import os
import sys

import matplotlib
from PIL import Image  # comes with matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402  the backend comes first

COLOURS = {"ring": "#c8102e", "torus": "#1f5fa8", "mesh": "#2a8a3e", "chain": "#b8860b"}
SIZE, DOTS = (8.4, 4.4), 130
PALETTE = 32  # few colours, so that the files are small


def colour(topology):
    return COLOURS.get(topology.split(":")[0], "#444444")


def series(rows, x, y):
    """Points by topology."""
    found = {}
    for row in rows:
        found.setdefault(row["topology"], []).append((row[x], row[y]))
    return {name: sorted(points) for name, points in found.items()}


def axes_of(figure, position, title, xlabel, ylabel, sharey=None):
    axes = figure.add_subplot(*position, sharey=sharey)
    axes.set_title(title)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:g}"))
    axes.grid(True, alpha=0.3, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def lines(axes, rows, x, y, scale=1.0, style="-", suffix=""):
    for name, points in series(rows, x, y).items():
        axes.plot([p[0] for p in points], [p[1] * scale for p in points], style,
                  color=colour(name), marker="o", markersize=4, label=name + suffix)


def picture(directory, name, draw):
    figure = pyplot.figure(figsize=SIZE, layout="constrained")
    draw(figure)
    path, whole = os.path.join(directory, name), io.BytesIO()
    figure.savefig(whole, dpi=DOTS)
    pyplot.close(figure)
    image = Image.open(whole).convert("RGB").quantize(PALETTE, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    print(path)


def latency(rows):
    def draw(figure):
        axes = axes_of(figure, (1, 1, 1), "64 B alone, one way", "hosts", "µs")
        lines(axes, rows["latency"], "hosts", "mean_us", suffix=", mean pair")
        lines(axes, rows["latency"], "hosts", "worst_us", style=":", suffix=", worst pair")
        axes.legend(frameon=False, ncol=2)
    return draw


def stream(rows):
    def draw(figure):
        axes = axes_of(figure, (1, 1, 1), "one stream of 1 MiB messages alone", "hops", "GB/s")
        lines(axes, rows["stream"], "hops", "bytes_per_second", 1e-9)
    return draw


def bisection(rows):
    def draw(figure):
        axes = axes_of(figure, (1, 1, 1), "across the cut, both directions", "hosts", "GB/s")
        lines(axes, rows["bisection"], "hosts", "cut_bytes_per_second", 1e-9, ":",
              ", the links cut")
        lines(axes, rows["bisection"], "hosts", "moved_bytes_per_second", 1e-9, "-", ", moved")
        axes.legend(frameon=False, ncol=2)
    return draw


def congestion(rows):
    patterns = sorted({r["pattern"] for r in rows["congestion"]})

    def draw(figure):
        first = None
        for i, pattern in enumerate(patterns, 1):
            mine = [r for r in rows["congestion"] if r["pattern"] == pattern]
            axes = axes_of(figure, (1, len(patterns), i), f"{pattern}: slowest flow", "hosts",
                           "MB/s" if i == 1 else "", first)
            first = first or axes
            lines(axes, mine, "hosts", "slowest_flow_bytes_per_second", 1e-6)
            if i == len(patterns):
                axes.legend(frameon=False)
    return draw


def main():
    if len(sys.argv) != 3:
        print("usage: plots.py RESULT.json DIRECTORY", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    os.makedirs(sys.argv[2], exist_ok=True)
    pyplot.rcParams.update({"font.size": 10, "axes.titlesize": 11})
    for name, draw in (("latency", latency), ("stream", stream), ("bisection", bisection),
                       ("congestion", congestion)):
        picture(sys.argv[2], f"{name}.png", draw(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
