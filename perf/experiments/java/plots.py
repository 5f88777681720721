#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws a result of perf/java_experiments: plots.py RESULT.json DIRECTORY

A picture for each fabric, java-emu.png and java-model.png: streams by size, and files by buffer, a line for each number
of threads.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "compare_lib"))
import plots  # noqa: E402  after the path to it

COLOURS = {"FFM": "#c8102e", "JNI": "#1f5fa8", "TCP": "#6b4423", "C": "#444444"}
LINES = {1: "-", 2: "--", 4: "-.", 8: ":"}


def curves(rows):
    """By row and threads: the best rate by size."""
    found = {}
    for row in rows:
        found.setdefault((row["row"], row["threads"]), {})[row["bytes"]] = row["best_mb_per_s"]
    return found


def panel(axes, rows, title):
    found = curves(rows)
    for (row, threads), curve in sorted(found.items(), reverse=True):
        label = row if threads == 1 else f"{row}, {threads} threads"
        axes.plot(*plots.points(curve, 1e6), LINES[threads], color=COLOURS[row], label=label, marker="o", markersize=4)
    plots.dress(axes, found, plots.bytes_name)
    if rows[0]["kind"] == "file":
        buffers = sorted({row["bytes"] for row in rows})
        axes.set_xticks(buffers, [plots.size_name(size) for size in buffers])
        axes.set_xlabel("bytes of a buffer")
        axes.set_yscale("linear")  # all rates are of one magnitude
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(plots.ticker.FuncFormatter(plots.bytes_name))
    axes.set_title(title, fontsize=11)


def picture(fabric, rows, path):
    kinds = [kind for kind in ("stream", "file") if any(r["kind"] == kind for r in rows)]
    height = plots.HEIGHT * len(kinds) + 2 * plots.LEGEND
    figure, axes = plots.pyplot.subplots(len(kinds), 1, figsize=(plots.WIDTH, height), squeeze=False, layout="constrained")
    for one, kind in zip(axes[:, 0], kinds):
        title = "many messages under way" if kind == "stream" else "a file in memory, by buffer"
        panel(one, [r for r in rows if r["kind"] == kind], f"{title}, {fabric}")
    plots.legend(figure, axes[:, 0], 2 * plots.LEGEND / height)
    plots.save(figure, path)
    plots.pyplot.close(figure)


def main():
    if len(sys.argv) != 3:
        print(f"usage: {__doc__.strip().splitlines()[0].split(': ')[1]}", file=sys.stderr)
        return 2
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["rows"]
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    plots.pyplot.rcParams.update({"font.size": 10, "axes.titlesize": 11})
    for fabric in sorted({row["fabric"] for row in rows}):
        path = folder / f"java-{fabric}.png"
        picture(fabric, [row for row in rows if row["fabric"] == fabric], str(path))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
