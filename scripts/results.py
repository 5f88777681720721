#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts what `meson test` ran, test case by test case.

  results.py [--rerun] [--benchmark] [--status N] BUILD_DIR [SETUP]

Prints the failed and skipped cases with their reasons, then one line
"N passed, N failed, N skipped".  Exit code 1 when something failed or nothing ran.

  --rerun      runs what failed again, alone, up to twice; what passes then is printed as
               unstable, written to meson-logs/unstable.jsonl and counted as passed.  More
               than five such programs are a failure (docs/testing.md).
  --benchmark  these were benchmarks of Meson
  --status N   the exit status of `meson test`: one that its log does not explain is a failure
"""
import argparse
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import machine
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
    """The cases of a program that failed, when it has been run again."""
    name = entry["name"].split(" / ")[-1]
    failed = [case for case, kind, _ in cases if kind == "failed"]
    limit = limits.get(name, 30) * machine.sanitizer_factor(entry["env"])
    line = rerun.passes(build, entry, name, failed, limit, build / "meson-logs" / "unstable.jsonl")
    if line is None:
        return cases
    reason = f"{line['first_failure']}; seed {line['seed']}, passed alone at try {line['tries']}"
    return [(case, "unstable", reason) if kind == "failed" else (case, kind, why) for case, kind, why in cases]


def read_log(build, setup):
    """The tests that ran, with what the machine did during each."""
    log = build / "meson-logs" / f"testlog{'-' + setup if setup else ''}.json"
    entries = [json.loads(line) for line in log.read_text(errors="replace").splitlines()] if log.exists() else []
    for entry in entries:
        entry["pressure"], entry["wakeup_us"] = machine.worst(build, entry["starttime"], entry["duration"])
    return entries


def print_where_it_stood(build, entry):
    path = build / "meson-logs" / "stacks" / f"{entry['name'].split(' / ')[-1].replace('/', '-')}.txt"
    if entry["result"] == "TIMEOUT" and path.exists():
        print(f"TIMEOUT: {entry['name']}, shortly before its limit:\n{path.read_text()}")


def told(entry, kind, reason):
    """The reason, and for a case that did not pass what the machine did during the test."""
    if kind in ("failed", "unstable") and entry["pressure"] is not None:
        reason += f"{'; ' if reason else ''}pressure {entry['pressure']} %, wake-ups {entry['wakeup_us']} us"
    return reason


def explained(status, entries):
    """Meson ends with the number of tests that failed; with anything else it has not run all of them."""
    bad = [entry for entry in entries if entry["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")]
    return status is None or status == min(len(bad), 255) or status == len(bad) % 256


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rerun", action="store_true")
    parser.add_argument("--benchmark", action="store_true")
    parser.add_argument("--status", type=int)
    parser.add_argument("build", type=Path)
    parser.add_argument("setup", nargs="?")
    return parser.parse_args()


def main():
    options = parse()
    build = options.build
    entries = read_log(build, options.setup)
    whole = explained(options.status, entries)
    programs = [(entry, entry_cases(build, entry)) for entry in entries]
    bad = [number for number, (_, cases) in enumerate(programs) if any(kind == "failed" for _, kind, _ in cases)]
    for number in bad:
        print_where_it_stood(build, programs[number][0])
    if options.rerun and whole and len(bad) <= WORTH_A_RERUN:
        limits = rerun.limits(build, "benchmarks" if options.benchmark else "tests")
        for number in bad:
            programs[number] = (programs[number][0], rerun_failed(build, *programs[number], limits))
    cases = [(case, kind, told(entry, kind, reason)) for entry, own in programs for case, kind, reason in own]
    unstable = sum(1 for _, own in programs if any(kind == "unstable" for _, kind, _ in own))
    if unstable > UNSTABLE:
        cases.append((f"{unstable} programs are unstable, more than {UNSTABLE}", "failed", ""))
    if not whole:
        cases.append((f"meson test ended with status {options.status}, which its log does not explain", "failed", ""))
    count = {kind: sum(1 for _, k, _ in cases if k == kind)
             for kind in ("passed", "failed", "skipped", "unstable")}
    for kind in ("skipped", "unstable", "failed"):
        for name, k, reason in cases:
            if k == kind:
                print(f"{kind}: {name}" + (f" ({reason})" if reason else ""))
    print(f"{count['unstable']} unstable, in {unstable} programs")
    count["passed"] += count["unstable"]
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count))
    return 1 if count["failed"] or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
