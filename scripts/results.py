#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts what `meson test` ran, test case by test case.

  results.py [--rerun] BUILD_DIR [SETUP]

Prints the failed and skipped cases with their reasons, then one line
"N passed, N failed, N skipped".  Exit code 1 when something failed or nothing ran.

  --rerun   runs what failed again, alone, up to twice; what passes then is printed as
            unstable, written to meson-logs/unstable.jsonl and counted as passed.  More
            than five such programs are a failure (docs/testing.md).
"""
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import rerun

# So many programs may be unstable in a run; where more fail at first, the change is to blame and nothing is run again.
UNSTABLE = 5
WORTH_A_RERUN = 15

# A reason is cut after so many characters: a line is to say where to look.
REASON = 400


def gtest_file(build, entry, name):
    """The report this run of a GoogleTest program wrote, None if it wrote none."""
    path = build / f"{name}.xml"
    # Not that of an earlier run: a program that crashed leaves no report.
    if path.exists() and path.stat().st_mtime >= entry["starttime"] - 1:
        return path
    return None


def gtest_cases(path, name):
    """(case, outcome, reason) for every test case of a report."""
    for case in ET.parse(path).iter("testcase"):
        full = f"{name}: {case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        failure = case.find("failure")
        if failure is not None or case.find("error") is not None:
            text = failure.get("message") or failure.text or "" if failure is not None else ""
            yield full, "failed", " ".join(text.split())[:REASON]
        elif skipped is not None or case.get("result") == "skipped":
            text = (skipped.get("message") or skipped.text or "") if skipped is not None else ""
            yield full, "skipped", re.sub(r"^\S+:\d+ ", "", " ".join(text.split()))
        elif case.get("status") != "notrun":
            yield full, "passed", ""


def summary_cases(entry, name):
    """The cases of a GoogleTest program without a report, from what it printed at its end."""
    text = entry.get("stdout") or ""
    passed = re.search(r"^\[  PASSED  \] (\d+) tests?\.$", text, re.MULTILINE)
    if passed is None:
        return []
    cases = [(name, "passed", "")] * int(passed.group(1))
    failed = re.compile(r"^\[  FAILED  \] (\S+\.\w\S*?)(?:, .*)? \(\d+ ms\)$", re.MULTILINE)
    for case in failed.findall(text):
        cases.append((f"{name}: {case}", "failed", ""))
    skipped = re.search(r"^\[  SKIPPED \] (\d+) tests?", text, re.MULTILINE)
    if skipped:
        reasons = re.findall(r"^\S+:\d+: Skipped\n(.*)$", text, re.MULTILINE)
        reasons += [""] * (int(skipped.group(1)) - len(reasons))
        cases += [(name, "skipped", reason) for reason in reasons]
    return cases


def last_line(text):
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def failed_because(entry):
    """What became of the program, and the report of a sanitizer or the last line it printed."""
    output = (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")
    told = [line for line in output.splitlines() if line.startswith("SUMMARY: ") or "runtime error: " in line]
    text = told[0] if told else last_line(entry.get("stderr")) or last_line(entry.get("stdout"))
    return ": ".join(part for part in (entry["result"].lower(), text.strip()[:REASON]) if part)


def entry_cases(build, entry):
    name = entry["name"].split(" / ")[-1]
    outcome = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(
        entry["result"], "failed")
    report = gtest_file(build, entry, name)
    cases = list(gtest_cases(report, name)) if report else summary_cases(entry, name)
    if not cases:
        reason = {"skipped": last_line(entry.get("stdout")) or last_line(entry.get("stderr")),
                  "failed": failed_because(entry)}.get(outcome, "")
        return [(name, outcome, reason)]
    if outcome == "failed" and all(kind != "failed" for _, kind, _ in cases):
        cases.append((name, "failed", failed_because(entry)))
    return cases


def rerun_failed(build, entry, cases, limits):
    """The cases of a program that failed, when those that failed have been run again."""
    name = entry["name"].split(" / ")[-1]
    failed = [case for case, kind, _ in cases if kind == "failed"]
    # The program's own name stands for a failure that is not one of its cases'.
    single = [] if name in failed else [case.split(": ", 1)[1] for case in failed]
    limit = limits.get(name, 30) * int(entry["env"].get("TEST_LIMIT_FACTOR", 1))
    line = rerun.passes(build, entry, name, single, limit, build / "meson-logs" / "unstable.jsonl")
    if line is None:
        return cases
    reason = (f"{line['first_failure']}; seed {line['seed']}, pressure {line['pressure_before']} %, "
              f"passed alone at try {line['tries']}")
    return [(case, "unstable", reason) if kind == "failed" else (case, kind, why) for case, kind, why in cases]


def read_log(log):
    return [json.loads(line) for line in log.read_text(errors="replace").splitlines()] if log.exists() else []


def main():
    arguments = [a for a in sys.argv[1:] if a != "--rerun"]
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    build = Path(arguments[0])
    suffix = f"-{arguments[1]}" if len(arguments) == 2 else ""
    programs = [(entry, entry_cases(build, entry))
                for entry in read_log(build / "meson-logs" / f"testlog{suffix}.json")]
    bad = [number for number, (_, cases) in enumerate(programs) if any(kind == "failed" for _, kind, _ in cases)]
    if "--rerun" in sys.argv[1:] and len(bad) <= WORTH_A_RERUN:
        limits = rerun.limits(build)
        for number in bad:
            programs[number] = (programs[number][0], rerun_failed(build, *programs[number], limits))
    cases = [case for _, own in programs for case in own]
    count = {kind: sum(1 for _, k, _ in cases if k == kind)
             for kind in ("passed", "failed", "skipped", "unstable")}
    unstable = sum(1 for _, own in programs if any(kind == "unstable" for _, kind, _ in own))
    for kind in ("skipped", "unstable", "failed"):
        for name, k, reason in cases:
            if k == kind:
                print(f"{kind}: {name}" + (f" ({reason})" if reason else ""))
    if unstable > UNSTABLE:
        print(f"failed: {unstable} programs are unstable, more than {UNSTABLE}")
        count["failed"] += 1
    print(f"{count['unstable']} unstable, in {unstable} programs")
    count["passed"] += count["unstable"]
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count))
    return 1 if count["failed"] or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
