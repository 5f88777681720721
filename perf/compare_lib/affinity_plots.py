#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws a result of perf/affinity_experiments: affinity_plots.py RESULT.json DIRECTORY

affinity-nginx.png: requests by connections, a panel for each way of waiting; affinity-loads.png: the other loads.
"""
import json
import sys
from pathlib import Path

import plots

LOOKS = {"TCP": ("#6b4423", "X"), "not placed": ("#444444", "s"), "same-core": ("#1f5fa8", "^"),
         "shared-cache": ("#c8102e", "o"), "other-package": ("#2a8a3e", "D")}


def series_of(row):
    name = "TCP" if row["wait"] == "TCP" else row["place"]
    return name if row["role"] in ("", "transfer") else f"{row['role']}, {name}"


def look(name):
    return LOOKS.get(name.split(", ")[-1], ("#7b4fb0", "P"))


def curves(rows, path):
    waits = list(dict.fromkeys(r["wait"] for r in rows if r["wait"] != "TCP"))
    height = plots.HEIGHT * 0.8 * len(waits) + plots.LEGEND
    figure, axes = plots.pyplot.subplots(len(waits), 1, figsize=(plots.WIDTH, height), squeeze=False, sharey=True,
                                         layout="constrained")
    for one, wait in zip(axes[:, 0], waits):
        found = {}
        for row in rows:
            if row["wait"] in (wait, "TCP"):
                found.setdefault(series_of(row), []).append((row["connections"], row["rate"] / 1e3))
        for name, points in found.items():
            colour, marker = look(name)
            one.plot(*zip(*sorted(points)), "--" if name.startswith("service") else "-", color=colour, marker=marker,
                     markersize=4, label=name)
        one.set_xscale("log", base=2)
        counts = sorted({r["connections"] for r in rows})
        one.set_xticks(counts, map(str, counts))
        one.minorticks_off()
        one.set_ylim(bottom=0)
        one.grid(True, alpha=0.3, linewidth=0.6)
        one.set_title(f"nginx, thousands of requests a second by connections, waiting: {wait}", fontsize=11)
    plots.legend(figure, axes[:, 0], plots.LEGEND / height)
    plots.save(figure, path)
    plots.pyplot.close(figure)


def bars(rows, path):
    loads = list(dict.fromkeys(r["load"] for r in rows))
    figure, axes = plots.pyplot.subplots(len(loads), 1, figsize=(plots.WIDTH, plots.HEIGHT * len(loads)), squeeze=False,
                                         layout="constrained")
    for one, load in zip(axes[:, 0], loads):
        mine = [r for r in rows if r["load"] == load]
        scale, unit = (1e-9, "GB/s") if load in ("stream", "sort") else (1e-3, "thousand requests/s")
        names = [series_of(r) if r["wait"] == "TCP" else f"{r['wait']}, {series_of(r)}" for r in mine]
        drawn = one.barh(names, [r["rate"] * scale for r in mine], color=[look(series_of(r))[0] for r in mine])
        one.bar_label(drawn, fmt="%.3g")
        one.invert_yaxis()
        one.set_title(f"{load}, {unit}", fontsize=11)
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
    plots.save(figure, path)
    plots.pyplot.close(figure)


def main():
    if len(sys.argv) != 3:
        print(f"usage: {__doc__.strip().splitlines()[0].split(': ')[1]}", file=sys.stderr)
        return 2
    rows = [r for r in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["rows"] if r["rate"] is not None]
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    plots.pyplot.rcParams.update({"font.size": 10, "axes.titlesize": 11})
    for name, draw, mine in (("affinity-nginx.png", curves, [r for r in rows if r["load"] == "nginx"]),
                             ("affinity-loads.png", bars, [r for r in rows if r["load"] != "nginx"])):
        if mine:
            draw(mine, str(folder / name))
            print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
