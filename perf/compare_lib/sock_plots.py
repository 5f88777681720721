#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws a result of perf/compare_sockets: sock_plots.py RESULT.json DIRECTORY

sockets-latency.png and sockets-stream.png by size, and sockets-programs.png, in the form of those of perf/compare.
"""
import json
import sys
from pathlib import Path

import plots

# way: colour, line, marker
LOOKS = {"VIs": ("#c8102e", "-", "o"), "off": ("#e08a9a", "--", "o"), "TCP": ("#6b4423", "-", "X"),
         "Unix": ("#b8860b", "-", "P"), "rsockets": ("#2a8a3e", "-", "^"), "SMC": ("#7a3e9d", "-", "v"), "VIPL": ("#444444", ":", "")}
CURVES = {"pingpong.poll": ("sockets-latency.png", "half round trip, polled, two processors", plots.time_name),
          "stream": ("sockets-stream.png", "stream, by the size of a piece", plots.bytes_name)}
PROGRAMS = {"redis.1": "redis\n1 client", "redis.50": "redis\n50", "memcached.50": "memcached\n50",
            "nginx.keep": "nginx\nkeep-alive", "nginx.close": "nginx\na connection each", "connect.64": "short\nconnections"}


def curve(series, title, names, path):
    height = plots.HEIGHT + plots.LEGEND
    figure, axes = plots.pyplot.subplots(figsize=(plots.WIDTH, height), layout="constrained")
    for way, (colour, line, marker) in LOOKS.items():
        if series.get(way):
            axes.plot(*plots.points(series[way], 1.0), line, color=colour, marker=marker, label=way,
                      markersize=5.5 if way == "VIs" else 4, linewidth=2.6 if way == "VIs" else 1.3)
    plots.dress(axes, series, names)
    axes.set_title(title, fontsize=11)
    plots.legend(figure, [axes], plots.LEGEND / height)
    plots.save(figure, path)
    plots.pyplot.close(figure)


def programs(figures, path):
    """Rates over those of TCP."""
    found = {label: figures[key]["VIs, auto"]["median"] / figures[key]["TCP"]["median"]
             for key, label in PROGRAMS.items() if {"VIs, auto", "TCP"} <= set(figures.get(key, {}))}
    if not found:
        return False
    figure, axes = plots.pyplot.subplots(figsize=(plots.WIDTH, plots.HEIGHT), layout="constrained")
    bars = axes.bar(list(found), list(found.values()), color="#c8102e", width=0.6)
    axes.bar_label(bars, [f"{v:.2f}" for v in found.values()])
    axes.axhline(1.0, color="#6b4423", linewidth=1.3)
    axes.set_title("requests per second over VIs, as multiples of those over TCP", fontsize=11)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    plots.save(figure, path)
    plots.pyplot.close(figure)
    return True


def main():
    if len(sys.argv) != 3:
        print(f"usage: {__doc__.strip().splitlines()[0].split(': ')[1]}", file=sys.stderr)
        return 2
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    plots.pyplot.rcParams.update({"font.size": 10, "axes.titlesize": 11})
    for test, (name, title, names) in CURVES.items():
        if document["curves"].get(test):
            curve(document["curves"][test], title, names, str(folder / name))
            print(folder / name)
    if programs(document["figures"], str(folder / "sockets-programs.png")):
        print(folder / "sockets-programs.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
