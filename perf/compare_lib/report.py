# SPDX-License-Identifier: BSD-2-Clause
"""What a comparison found: the table, the JSON document, the plots."""
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median_high, median_low

from . import outcome, peers, scale, stats, tools, words
from .classes import COUNTED, OTHER
from .plan import OPTIONAL
from .rows import HELD, MISSED, UNSURE

SCHEMA, SCHEMA_VERSION = "viaduct.compare", 3


def number(value):
    if value is None:
        return "-"
    return f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"


def print_rows(made):
    print(f"\n{'figure':<66} {'place':<5} {'ours':>9} {'steps':>8} {'limit':>9} {'ratio':>7} "
          f"{'spread':>6} {'of':>3} {'must':>6} {'goal':>6}  ours over floor and peers")
    for row in made:
        others = {"floor": row["floor_ratio"], **row["peer_ratios"]}
        over = "  ".join(f"{n} {number(v)}" for n, v in others.items() if v is not None)
        spread = "-" if row["spread"] is None else f"{row['spread']:.1%}"
        print(f"{row['figure']:<66} {row['placement']:<5} {number(row['ours']):>9} "
              f"{number(row['ours_steps']):>8} {number(row['limit']):>9} "
              f"{number(row['ratio']):>7} {spread:>6} {row['values']:>3} "
              f"{number(row['must']):>6} {number(row['goal']):>6}  {row['unit']:<4} "
              f"{word_for(row):<6} {over}")


def word_for(row):
    if row["goal_outcome"] == HELD:
        return "goal"
    return {HELD: "must", MISSED: "MISSED", UNSURE: "unsure"}[row["must_outcome"]]


def count(made, which):
    return sum(r["must_outcome"] == which for r in made)


def curve_points(key, sample):
    """(kind of curve, series, size, value) of a sample; of latencies the ratio to R."""
    if key == "raw.slot":
        for size in ("4", "16", "64"):  # whatever fits into the slot
            yield "latency", "slot", size, sample.value / sample.r
    parts = key.split(".")
    if len(parts) != 3 or not parts[2].isdigit():
        return
    name, kind, size = parts
    if kind in ("lat", "pingpong"):
        yield "latency", name, size, sample.value / sample.r
    elif kind in ("bw", "chunk"):
        yield "bandwidth", name, size, sample.value


def curves_of(pool):
    """By kind and series, size: the median, of an even number of values the quieter one."""
    middle = {"latency": median_low, "bandwidth": median_high}
    found = {"latency": {}, "bandwidth": {}}
    for key, samples in pool.samples.items():
        for sample in samples.values():
            for kind, name, size, value in curve_points(key, sample):
                found[kind].setdefault(name, {}).setdefault(size, []).append(value)
    return {kind: {name: {size: middle[kind](v) for size, v in sizes.items()}
                   for name, sizes in series.items()} for kind, series in found.items()}


def states(classes):
    """The placements and speeds that occurred."""
    def told(name, unit, group):
        return {"name": name, unit: group.middle, "low_ns": group.low, "high_ns": group.high,
                "probes": group.count}
    return {"placements": [told(n, "r_ns", g) for n, g in classes.placements.items()],
            "speeds": [told(COUNTED if g is classes.counted else OTHER, "step_ns", g)
                       for g in classes.speeds]}


def round_told(a_round):
    def told(sample):
        return {"value": sample.value,
                "r_before_ns": sample.before.r, "r_after_ns": sample.after.r,
                "step_before_ns": sample.before.step, "step_after_ns": sample.after.step}
    return {"started": a_round.started,
            "probes": [{"r_ns": p.r, "step_ns": p.step} for p in a_round.probes],
            "values": {key: told(sample) for key, sample in a_round.samples.items()}}


def document(comparison, classes, found, quick):
    bench = comparison.bench
    by_place = {p: outcome.pool_of(comparison.rounds, classes, p, COUNTED) for p in classes.placements}
    return {
        "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "quick": quick,
        "time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": tools.machine(), "pinned_cpus": list(bench.pin),
        "versions": peers.versions(bench), "revision": tools.revision(),
        "near_below_ns": comparison.near_below, "spread_wanted": stats.SPREAD,
        "states": states(classes),
        "placements": {p: {"r_ns": classes.placements[p].middle} for p in by_place},
        "rows": found.made, "other_rows": found.other, "left_out": found.left_out,
        "notes": list(comparison.notes), "scale": comparison.scale,
        "curves": {p: curves_of(v) for p, v in by_place.items()},
        "rounds": [round_told(r) for r in comparison.rounds],
    }


def write_json(path, content):
    """The file gets its name when it is whole."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def draw(content, directory, scratch):
    """By an interpreter that has matplotlib; says so if none has."""
    source = scratch / "result.json"
    write_json(source, content)
    script = Path(__file__).resolve().parent / "plots.py"
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import matplotlib"], capture_output=True,
                          check=False).returncode == 0:
            return subprocess.run([python, str(script), str(source), str(directory)],
                                  check=False).returncode == 0
    tools.complain("no plots: matplotlib is missing (Debian: python3-matplotlib)")
    return False


def print_states(classes, found):
    """What the machine did, and how the rows of other speeds would be judged."""
    for name, group in classes.placements.items():
        print(f"{name}: R {group.middle:.0f} ns in {group.count} probes")
    for group in classes.speeds:
        print(f"a step took {group.middle:.2f} ns in {group.count} probes"
              + (", which count" if group is classes.counted else ""))
    if found.other:
        print(f"at other speeds: {count(found.other, HELD)} rows held, "
              f"{count(found.other, MISSED)} missed, {count(found.other, UNSURE)} within their "
              "spread")


def report(comparison, options, scratch):
    classes = comparison.classes()
    found = outcome.conclude(comparison.rows, comparison.rounds, classes, comparison.missing,
                             OPTIONAL)
    print_rows(found.made)
    if comparison.scale:
        scale.show(comparison.scale)
    for text in found.left_out:
        print(f"left out: {text}")
    content = document(comparison, classes, found, options["quick"])
    if options["json"]:
        write_json(options["json"], content)
    drawn = not options["plots"] or draw(content, options["plots"], scratch)
    held = count(found.made, HELD)
    print_states(classes, found)
    print(f"{held} of {len(found.made)} requirements held, {count(found.made, MISSED)} missed, "
          f"{count(found.made, UNSURE)} within their spread, {found.unknown} not measured, "
          f"{sum(r['goal_outcome'] == HELD for r in found.made)} goals reached")
    print(words.in_words(found.made, content["versions"]))
    return 0 if drawn and held and held == len(found.made) and not found.unknown else 1
