#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws the curves of a result of perf/compare_shmem: shmem_plots.py RESULT.json DIRECTORY

A picture for each program, shmem-put.png and so on, in the form of those of perf/compare.
"""
import json
import sys
from pathlib import Path

import plots

LOOKS = {"Viaduct": ("#c8102e", "-", 2.6), "Viaduct, neighbour hosts": ("#c8102e", "--", 1.6)}
OTHERS = ("#1f5fa8", "#2a8a3e", "#7b4fb0")
FIGURES = {"latency": ("time of a call", 1e3, plots.time_name),
           "bandwidth": ("many at once", 1e6, plots.bytes_name)}


def look(name, names):
    return LOOKS.get(name) or (OTHERS[sorted(set(names) - set(LOOKS)).index(name) % len(OTHERS)], "-", 1.3)


def draw(axes, series, scale):
    for name, curve in sorted(series.items(), key=lambda s: s[0] in LOOKS):  # ours above the others
        colour, line, width = look(name, series)
        axes.plot(*plots.points(curve, scale), line, color=colour, marker="o", markersize=4, label=name,
                  linewidth=width)


def picture(program, figures, path):
    found = [figure for figure in FIGURES if figures.get(figure)]
    height = plots.HEIGHT * len(found) + plots.LEGEND
    figure, axes = plots.pyplot.subplots(len(found), 1, figsize=(plots.WIDTH, height), squeeze=False,
                                         layout="constrained")
    for one, kind in zip(axes[:, 0], found):
        title, scale, names = FIGURES[kind]
        draw(one, figures[kind], scale)
        plots.dress(one, figures[kind], names)
        one.set_title(f"{program.removeprefix('osb_')}, 2 PEs: {title}", fontsize=11)
    plots.legend(figure, axes[:, 0], plots.LEGEND / height)
    plots.save(figure, path)
    plots.pyplot.close(figure)


def main():
    if len(sys.argv) != 3:
        print(f"usage: {__doc__.strip().splitlines()[0].split(': ')[1]}", file=sys.stderr)
        return 2
    curves = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["curves"]
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    plots.pyplot.rcParams.update({"font.size": 10, "axes.titlesize": 11})
    for program, figures in curves.items():
        path = folder / f"shmem-{program.removeprefix('osb_')}.png"
        picture(program, figures, str(path))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
