# SPDX-License-Identifier: BSD-2-Clause
"""What perf/affinity_experiments found: the table, the JSON document, the plots."""
from dataclasses import asdict
from statistics import median

from . import stats
from .report import write_json
from .sock_report import draw, heading, number

SCHEMA, SCHEMA_VERSION = "viaduct.affinity_experiments", 1
SCALE = {"stream": (1e-9, "GB/s"), "sort": (1e-9, "GB/s"), "memcached": (1e-3, "1000/s"), "nginx": (1e-3, "1000/s")}


def conclude(cases, rounds, calls):
    """A row for each case: medians over the rounds."""
    made = []
    for case in cases:
        values = [r[case] for r in rounds if case in r]
        row = {**asdict(case), "rounds": len(values), "rate": None, "spread": None, "waits": None, "forced": None,
               "cpu_us": None, "calls": calls.get(case)}
        for key in ("rate", "waits", "forced", "cpu_us") if values else ():
            row[key] = median(v[key] for v in values)
        if values:
            row["spread"] = stats.spread([v["rate"] for v in values])
        made.append(row)
    return made


def show(made):
    print(f"\n{'load':<10} {'conn.':>5}  {'waiting':<9} {'role':<9} {'placement':<14} {'rate':>9} {'':<7} {'spread':>6} "
          f"{'sleeps':>8} {'forced':>8} {'CPU us':>8} {'calls':>7}   for each request or piece")
    for row in made:
        scale, unit = SCALE[row["load"]]
        spread = "-" if row["spread"] is None else f"{row['spread']:.0%}"
        rate = number(row["rate"] * scale) if row["rate"] is not None else "-"
        calls = "-" if row["calls"] is None else f"{row['calls']:.2f}"
        print(f"{row['load']:<10} {row['connections']:>5}  {row['wait']:<9} {row['role'] or '-':<9} {row['place']:<14} "
              f"{rate:>9} {unit:<7} {spread:>6} {number(row['waits']):>8} {number(row['forced']):>8} "
              f"{number(row['cpu_us']):>8} {calls:>7}")


def report(cases, rounds, calls, where, notes, options, scratch, pin):
    made = conclude(cases, rounds, calls)
    show(made)
    print("", *notes, sep="\n")
    content = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **heading(options, pin), "relations": where,
               "rows": made, "notes": notes,
               "rounds": [[{**asdict(case), **values} for case, values in r.items()] for r in rounds]}
    if options["json"]:
        write_json(options["json"], content)
    drawn = not options["plots"] or draw("affinity_plots.py", content, options["plots"], scratch)
    missing = sum(row["rate"] is None for row in made)
    print(f"{len(made) - missing} of {len(made)} rows measured")
    return 0 if drawn and made and not missing else 1
