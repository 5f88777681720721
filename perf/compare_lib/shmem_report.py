# SPDX-License-Identifier: BSD-2-Clause
"""What perf/compare_shmem found: the table, the JSON document, the plots."""
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from . import shmem_rows as rows
from . import tools
from .shmem_libs import NEIGHBOUR, OURS, VIPL

SCHEMA, SCHEMA_VERSION = "viaduct.compare_shmem", 1


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def print_rows(made, peer):
    print(f"\n{'row':<32} {'ours':>9} {peer:>16} {'ratio':>7}  {'interval':<13} {'spread':>6} "
          f"{'of':>3} {'must':>5}  outcome")
    for row in made:
        known = row["ratio"] is not None
        between = f"{row['ratio_low']:.2f} to {row['ratio_high']:.2f}" if known else "-"
        spread = "-" if row["spread"] is None else f"{row['spread']:.0%}"
        print(f"{row['figure']:<32} {number(row['ours']):>9} {number(row['theirs']):>16} "
              f"{format(row['ratio'], '.2f') if known else '-':>7}  {between:<13} {spread:>6} "
              f"{row['rounds']:>3} {row['must']:>5.2f}  {row['outcome']}")


def curves_of(rounds):
    """By program, figure, library and size: the median over the rounds."""
    found = {}
    for name in dict.fromkeys(name for r in rounds for name in r):
        keys = {key for r in rounds for key in r.get(name, ())}
        for program, figure, size in sorted(keys, key=str):
            values = [r[name][(program, figure, size)] for r in rounds
                      if (program, figure, size) in r.get(name, ())]
            found.setdefault(program, {}).setdefault(figure, {}).setdefault(name, {})[size] = median(values)
    return found


def write_json(path, content):
    Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def draw(content, directory, scratch):
    """By an interpreter that has matplotlib; says so if none has."""
    source = scratch / "result.json"
    write_json(source, content)
    script = Path(__file__).resolve().parent / "shmem_plots.py"
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import matplotlib"], capture_output=True,
                          check=False).returncode == 0:
            return subprocess.run([python, str(script), str(source), str(directory)],
                                  check=False).returncode == 0
    print("compare_shmem: no plots: matplotlib is missing (Debian: python3-matplotlib)",
          file=sys.stderr)
    return False


def listed(rounds):
    return [{name: [{"program": k[0], "figure": k[1], "size_bytes": k[2], "value": v}
                    for k, v in values.items()] for name, values in r.items()} for r in rounds]


def document(made, libraries, rounds, curves, notes, quick, pin):
    return {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "quick": quick,
            "time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": tools.machine(), "pinned_cpus": list(pin), "revision": tools.revision(),
            "libraries": [library.name for library in libraries], "rows": made, "notes": notes,
            "curves": curves, "rounds": listed(rounds)}


def report(libraries, rounds, curve_rounds, notes, options, scratch, pin):
    made = []
    pairs = [(rows.ROWS, OURS, library.name) for library in libraries[1:]]
    for table, ours, theirs in [*pairs, (rows.NEIGHBOUR_ROWS, NEIGHBOUR, VIPL)]:
        mine = [rows.outcome(row, rounds, ours, theirs) for row in table]
        if theirs == VIPL:
            print(f"\n{NEIGHBOUR}, compared with RDMA writes of VIPL")
        print_rows(mine, theirs)
        made += mine
    print("", *notes, sep="\n")
    content = document(made, libraries, rounds, curves_of(curve_rounds), notes,
                       options["quick"], pin)
    if options["json"]:
        write_json(options["json"], content)
    drawn = not options["plots"] or draw(content, options["plots"], scratch)
    held = sum(map(rows.good, made))
    print(f"{held} of {len(made)} requirements held")
    return 0 if drawn and made and held == len(made) else 1
