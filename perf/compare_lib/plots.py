#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws the curves of a result of perf/compare: plots.py RESULT.json DIRECTORY

One picture for each of latency and bandwidth, a panel for each placement that occurred.  They are
made for the width of a README: twice its pixels, letters as large as the text around them.
"""
import io
import json
import os
import sys

import matplotlib
from PIL import Image  # comes with matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402  the backend comes first

# name in the keys: label, colour, line, marker
SERIES = {
    "ours": ("Viaduct", "#c8102e", "-", "o"),
    "ucx": ("UCX", "#1f5fa8", "-", "s"),
    "newer_ucx": ("newer UCX", "#6fa8dc", "-", "*"),
    "openmpi": ("Open MPI", "#2a8a3e", "-", "^"),
    "newer_openmpi": ("newer Open MPI", "#8ac69a", "-", "<"),
    "mpich": ("MPICH", "#12a0a0", "-", "v"),
    "newer_mpich": ("newer MPICH", "#8fd4d4", "-", ">"),
    "libfabric": ("libfabric shm", "#7b4fb0", "-", "D"),
    "newer_libfabric": ("newer libfabric shm", "#bda3dc", "-", "d"),
    "unix": ("Unix socket", "#b8860b", "-", "P"),
    "tcp": ("TCP", "#6b4423", "-", "X"),
    "raw": ("bare copies", "#444444", ":", ""),
    "slot": ("bare 64 B slot", "#444444", "--", ""),
}
WIDTH, HEIGHT, DOTS = 8.4, 4.2, 200  # inches as in the page, 100 dots of the page to an inch
LEGEND = 0.55                        # inches at the bottom
COLOURS = 48                         # few, so that the files are small


def size_name(size):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit}{name}"
    return str(size)


def time_name(ns, _):
    for unit, name in ((1e6, "ms"), (1e3, "µs")):
        if ns >= unit:
            return f"{ns / unit:g} {name}"
    return f"{ns:g} ns"


def bytes_name(rate, _):
    for unit, name in ((1e9, "GB/s"), (1e6, "MB/s")):
        if rate >= unit:
            return f"{rate / unit:g} {name}"
    return f"{rate / 1e3:g} KB/s"


def points(curve, scale):
    return zip(*sorted((int(size), value * scale) for size, value in curve.items()))


def draw(axes, curves, scale):
    """All series, ours above the others."""
    for order, (name, (label, colour, line, marker)) in enumerate(SERIES.items()):
        if curves.get(name):
            ours = name == "ours"
            axes.plot(*points(curves[name], scale), line, color=colour, label=label, marker=marker,
                      markersize=5.5 if ours else 4, linewidth=2.6 if ours else 1.3,
                      zorder=20 if ours else 10 - order)


def dress(axes, curves, names):
    sizes = sorted({int(s) for c in curves.values() for s in c})
    shown = [s for s in sizes if (s.bit_length() - 1) % 2 == 0] or sizes
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(shown, [size_name(s) for s in shown])
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(names))
    axes.minorticks_off()
    axes.grid(True, alpha=0.3, linewidth=0.6)
    axes.set_xlabel("bytes of a message")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def legend(figure, axes, height):
    """One for all panels, each series once."""
    entries = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    figure.legend(entries.values(), entries.keys(), loc="lower center", ncol=5, frameon=False)
    figure.get_layout_engine().set(rect=(0, height, 1, 1 - height))


def picture(document, kind, path):
    """Latencies were taken as multiples of R, and are shown at the median R of the placement."""
    title, names = {"latency": ("half round trip", time_name),
                    "bandwidth": ("one way, many messages outstanding", bytes_name)}[kind]
    found = [p for p in ("near", "far") if document["curves"].get(p, {}).get(kind)]
    if not found:
        return False
    height = HEIGHT * len(found) + LEGEND
    figure, axes = pyplot.subplots(len(found), 1, figsize=(WIDTH, height), squeeze=False,
                                   sharey=True, layout="constrained")
    for one, placement in zip(axes[:, 0], found):
        r, curves = document["placements"][placement]["r_ns"], document["curves"][placement][kind]
        draw(one, curves, r if kind == "latency" else 1.0)
        dress(one, curves, names)
        one.set_title(f"{title}, {placement} (a cache line takes {r:.0f} ns)", fontsize=11)
    legend(figure, axes[:, 0], LEGEND / height)
    save(figure, path)
    pyplot.close(figure)
    return True


def save(figure, path):
    whole = io.BytesIO()
    figure.savefig(whole, dpi=DOTS)
    image = Image.open(whole).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(path, optimize=True)


def main():
    if len(sys.argv) != 3:
        print(f"usage: {__doc__.strip().splitlines()[0].split(': ')[1]}", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    os.makedirs(sys.argv[2], exist_ok=True)
    pyplot.rcParams.update({"font.size": 10, "axes.titlesize": 11})
    for kind in ("latency", "bandwidth"):
        path = os.path.join(sys.argv[2], f"{kind}.png")
        if picture(document, kind, path):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
