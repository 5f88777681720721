# SPDX-License-Identifier: BSD-2-Clause
"""Many VIs, processes, regions: the cost of one more.  These figures have no limits."""
import json
from dataclasses import replace
from pathlib import Path
from statistics import median

from . import tools

TIMES = 3
MANY = (256, 1000)


def busy_step(count, *more):
    """One VI carries messages, the others are connected and found idle before."""
    warmup = 400 if count == 1 else 400 * max(256, count)
    options = ("--spin", "--vis", str(count), "--busy", "1", *more)
    key = f"{'cq' if more else 'poll'}.{count}"
    return key, tools.latency_step(key, [4], *options, warmup=warmup)


def turn_step(count):
    key = f"turn.{count}"
    return key, tools.latency_step(key, [4], "--spin", "--cq", "--vis", str(count))


def rate_step(count, kind="rate", *more):
    key, options = f"{kind}.{count}", ("--cq", "--vis", str(count), "--spin", "--window", "16",
                                       "--duration", "0.05", *more)

    def step(bench):
        document = tools.ours(bench, "vi_rate", [4], options)
        return {key: r["messages_per_s"] for r in document["results"]}
    return key, step


def plan():
    return [*(busy_step(n) for n in (1, *MANY)), *(busy_step(n, "--cq") for n in (1, *MANY)),
            turn_step(256), rate_step(1), rate_step(256),
            *(rate_step(n, "many", "--batch", "8") for n in (1, 256))]


# figure, n, key, key of the same with one VI, unit of the values in it
FIGURES = [
    *((f"half round trip, 1 busy VI of {n}, polling", n, f"poll.{n}", "poll.1") for n in MANY),
    *((f"half round trip, 1 busy VI of {n}, CQ", n, f"cq.{n}", "cq.1") for n in MANY),
    ("half round trip, 256 VIs in turn, CQ", 256, "turn.256", "cq.1"),
    ("messages one way, 256 VIs all busy, CQ", 256, "rate.256", "rate.1"),
    ("the same, calls for many", 256, "many.256", "many.1"),
]


def repeated(bench, note):
    """Medians of interleaved repetitions, by key."""
    found = {}
    for _ in range(1 if bench.dry else TIMES):
        for key, step in plan():
            try:
                values = step(bench)
            except tools.OutOfTime:
                raise
            except tools.Failed as error:
                note(f"scale, {key}: {error}")
                continue
            found.setdefault(key, []).extend(values.values())
    return {key: median(values) for key, values in found.items() if values}


def compared(values):
    """The figures, compared with those of one VI."""
    made = []
    for figure, n, key, one in FIGURES:
        if key in values:
            made.append({"figure": figure, "n": n, "value": values[key],
                         "unit": "messages/s" if key.startswith(("rate", "many")) else "ns",
                         "of_one": values.get(one),
                         "over_one": values[key] / values[one] if values.get(one) else None})
    return made


def agent_pid(fabric):
    """The agent of host0, None when it cannot be found."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if words[0].endswith("viaductd") and f"--fabric {fabric} --host-id 0 " in " ".join(words):
            return int(process.name)
    return None


def program(bench):
    """The figures of vi_scale, on a host of its own, since an agent does not free memory again."""
    name = bench.env.get("VIADUCT_FABRIC", "compare") + "-scale"
    alone = replace(bench, env={**bench.env, "VIADUCT_FABRIC": name})
    with tools.fabric(alone, 1):
        pid = None if bench.dry else agent_pid(name)
        out = alone.run([bench.tool("perf/vi_scale"), "--json",
                         *(["--agent", str(pid)] if pid else [])])
    return [{"figure": f"{r['test']}: {r['variant']}", "n": r["n"], "value": r["value"],
             "unit": r["unit"], "of_one": None, "over_one": None}
            for r in (json.loads(out)["results"] if out else [])]


def measure(bench, note):
    """All figures; those that time or a failure left out are missing, and noted."""
    made = []
    for part in (lambda: compared(repeated(bench, note)), lambda: program(bench)):
        try:
            made += part()
        except tools.Failed as error:
            note(f"scale: {error}")
    return made


def show(made):
    print(f"\n{'scale':<58} {'n':>10} {'value':>14} unit          over one")
    for row in made:
        over = "" if row["over_one"] is None else f"{row['over_one']:.2f}"
        print(f"{row['figure']:<58} {row['n']:>10} {row['value']:>14.2f} {row['unit']:<13} {over}")
