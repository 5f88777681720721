#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws the curves of a result of perf/compare_shmem: shmem_plots.py RESULT.json DIRECTORY

A picture for each program, put.png and so on, in the form of those of perf/compare.
"""
import json
import sys
from pathlib import Path

import plots

OURS, COLOUR = "Viaduct", "#c8102e"


def picture(program, series, path):
    height = plots.HEIGHT + plots.LEGEND
    figure, axes = plots.pyplot.subplots(figsize=(plots.WIDTH, height), layout="constrained")
    for name, curve in sorted(series.items(), key=lambda s: s[0] == OURS):  # ours above the others
        line = {"linewidth": 2.6, "color": COLOUR} if name == OURS else {"linewidth": 1.3}
        axes.plot(*plots.points(curve, 1e3), marker="o", markersize=4, label=name, **line)
    plots.dress(axes, series, plots.time_name)
    axes.set_title(f"{program.removeprefix('osh_')}, 2 PEs on one host", fontsize=11)
    plots.legend(figure, [axes], plots.LEGEND / height)
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
    for program, series in curves.items():
        path = folder / f"{program.removeprefix('osh_')}.png"
        picture(program, series, str(path))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
