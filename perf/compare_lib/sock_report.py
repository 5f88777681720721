# SPDX-License-Identifier: BSD-2-Clause
"""What perf/compare_sockets found: the tables, the JSON document, the plots."""
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from . import sock_rows as rows
from . import stats, tools
from .report import write_json
from .sock_steps import AUTO, OFF, RSOCKETS, SLEEP, SMC, TCP, UNIX, VI, VIPL

SCHEMA, SCHEMA_VERSION = "viaduct.compare_sockets", 1
ORDER = (VI, SLEEP, AUTO, OFF, TCP, UNIX, RSOCKETS, SMC, VIPL)
UNITS = {"pingpong": ("us", 1e-3), "epoll": ("us", 1e-3), "stream": ("GB/s", 1e-9), "connect": ("1000/s", 1e-3),
         "call": ("ns", 1.0), "idle": ("ms", 1.0), "redis": ("1000/s", 1e-3), "memcached": ("1000/s", 1e-3),
         "nginx": ("1000/s", 1e-3)}


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def figures_of(rounds):
    """By key and way: the median of the rounds, its spread, and how many there are."""
    found = {}
    for way, key in dict.fromkeys(k for r in rounds for k in r):
        values = [r[way, key] for r in rounds if (way, key) in r]
        found.setdefault(key, {})[way] = {"median": median(values), "spread": stats.spread(values),
                                          "rounds": len(values)}
    return found


def print_figures(figures):
    ways = [w for w in ORDER if any(w in by for by in figures.values())]
    print(f"\n{'figure':<26} {'unit':<7}" + "".join(f"{w:>17}" for w in ways))
    for key, by in figures.items():
        unit, scale = UNITS[key.split(".")[0]]
        shown = []
        for way in ways:
            one = by.get(way)
            around = f" ±{one['spread']:.0%}" if one and one["spread"] is not None else ""
            shown.append(f"{(number(one['median'] * scale) + around) if one else '-':>17}")
        print(f"{key:<26} {unit:<7}" + "".join(shown))


def print_rows(made):
    print(f"\n{'row':<52} {'value':>7}  {'interval':<15} {'of':>3} {'must':>11} {'goal':>7}  outcome")
    for row in made:
        known = row["value"] is not None
        between = f"{row['low']:.2f} to {row['high']:.2f}" if known else "-"
        sign = "<=" if row["limits"] == "most" else ">="
        word = "goal" if row["goal_outcome"] == rows.HELD else row["must_outcome"]
        print(f"{row['figure']:<52} {format(row['value'], '.2f') if known else '-':>7}  {between:<15} {row['rounds']:>3} "
              f"{sign:>4} {row['must']:>6.2f} {row['goal']:>7.2f}  {word if known else 'not measured'}")


def curves_of(figures):
    """By test and way, size: the medians."""
    curves = {}
    for key, by in figures.items():
        test, _, size = key.rpartition(".")
        if test in ("pingpong.poll", "stream") and size.isdigit():
            for way, one in by.items():
                curves.setdefault(test, {}).setdefault(way, {})[size] = one["median"]
    return curves


def listed(rounds):
    return [[{"way": way, "figure": key, "value": value} for (way, key), value in r.items()] for r in rounds]


def draw(script, content, directory, scratch):
    """By an interpreter that has matplotlib; says so if none has."""
    source = scratch / "result.json"
    write_json(source, content)
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0:
            done = subprocess.run([python, str(Path(__file__).resolve().parent / script), str(source), str(directory)],
                                  check=False)
            return done.returncode == 0
    print("no plots: matplotlib is missing (Debian: python3-matplotlib)", file=sys.stderr)
    return False


def heading(options, pin):
    return {"time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": tools.machine(),
            "pinned_cpus": list(pin), "revision": tools.revision(), "quick": options["quick"]}


def report(rounds, curve_rounds, notes, options, scratch, pin):
    wanted = [row for row in rows.ROWS if not options["only"] or rows.group(row) in options["only"]]
    made, figures = [rows.outcome(row, rounds) for row in wanted], figures_of(rounds)
    print_figures(figures)
    print_rows(made)
    print("", *notes, sep="\n")
    content = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **heading(options, pin), "rows": made,
               "figures": figures, "curves": curves_of(figures_of([*rounds, *curve_rounds])), "notes": notes,
               "rounds": listed(rounds)}
    if options["json"]:
        write_json(options["json"], content)
    drawn = not options["plots"] or draw("sock_plots.py", content, options["plots"], scratch)
    held = sum(row["must_outcome"] == rows.HELD for row in made)
    missed = sum(row["must_outcome"] == rows.MISSED for row in made)
    unknown = sum(row["value"] is None for row in made)
    print(f"{held} of {len(made)} requirements held, {missed} missed, {len(made) - held - missed - unknown} within their "
          f"spread, {unknown} not measured, {sum(r['goal_outcome'] == rows.HELD for r in made)} goals reached")
    return 0 if drawn and made and held == len(made) else 1
