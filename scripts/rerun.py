# SPDX-License-Identifier: BSD-2-Clause
"""Runs failed tests again, each alone, when the machine is quiet; used by results.py.

A program that passes then is unstable: it failed because of something that the change does not decide.  docs/testing.md says
what becomes of it.  It is run as a whole: one of its cases alone would not show a leak, nor what another case left behind.
"""
import json
import os
import re
import subprocess
import time

import machine
from build_info import introspect

TRIES = 2
QUIET_PERCENT = 20  # of the time in which some task waited for a processor
QUIET_SECONDS = 60
RERUN = ("FAIL", "ERROR", "TIMEOUT")  # not what was interrupted


def wait_quiet():
    end = time.monotonic() + QUIET_SECONDS
    while time.monotonic() < end:
        now = machine.pressure()
        if now is None or now < QUIET_PERCENT:
            break
        time.sleep(1)
    return machine.pressure()


def limits(build, kind):
    """Seconds that a program of each name is given, before the factor of a sanitizer; kind is tests or benchmarks."""
    return {test["name"]: test["timeout"] for test in introspect(build, kind)}


def run_alone(build, entry, limit):
    """(exit code or None at a time-out, what it printed, the stacks at a time-out).

    As for Meson, it ends when all that have its standard output have ended: a process that it leaves is a time-out.
    """
    options = ["--gtest_brief=0"] if is_gtest(entry) else []
    with subprocess.Popen(entry["command"] + options, cwd=build, env=entry["env"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as test:
        stood = ""
        try:
            output = test.communicate(timeout=limit)[0]
            code = test.returncode
        except subprocess.TimeoutExpired as late:
            code, output, stood = None, late.output or b"", machine.stacks(test.pid)
        finally:
            machine.end_session(test.pid)
        return code, output.decode(errors="replace"), stood


def is_gtest(entry):
    return "[==========]" in (entry.get("stdout") or "") or any(word.startswith("--gtest") for word in entry["command"])


def skips_what_failed(cases, output):
    skipped = set(re.findall(r"^\[  SKIPPED \] (\S+)", output, re.MULTILINE))
    return any(case.split(": ", 1)[-1] in skipped for case in cases)


def first_failure(text):
    """The first line of what a test printed that says what failed."""
    lines = [line for line in (text or "").splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if re.search(r": Failure\b|^(FAIL|ERROR): |SUMMARY: |runtime error: |assert", line, re.IGNORECASE):
            return " ".join(part.strip() for part in lines[number:number + 3])[:400]
    return lines[-1][:400] if lines else ""


def seed(text):
    found = re.search(r"\bseed[ =:]+(\d+)", text or "", re.IGNORECASE)
    return int(found.group(1)) if found else None


def record(path, entry, name, cases, tries, after):
    output = (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")
    line = {"test": name, "cases": cases, "result": entry["result"], "first_failure": first_failure(output),
            "seed": seed(output), "tries": tries, "seconds": round(entry["duration"], 2), "pressure_before": entry["pressure"],
            "pressure_after": after, "wakeup_us": entry["wakeup_us"], "load": os.getloadavg()[0], "time": int(time.time())}
    with open(path, "a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
    return line


def passes(build, entry, name, cases, limit, log):
    """Does the program, some of whose cases failed, pass alone?  Returns the line of `log` that says so, or None."""
    if entry["result"] not in RERUN:
        return None
    for number in range(1, TRIES + 1):
        after = wait_quiet()
        print(f"again, alone: {name}, try {number} of {TRIES}, pressure {after} %", flush=True)
        try:
            code, output, stood = run_alone(build, entry, limit)
        except OSError as error:
            print(f"it cannot be run again: {error}")
            return None
        if code is None:  # what stands still twice would stand still again
            print(f"TIMEOUT after {limit} s\n{stood}\n{output[-2000:]}")
            return None
        if code == 77 or code == 0 and skips_what_failed(cases, output):
            print("it skips now what failed, which proves nothing")
            return None
        if code == 0:
            return record(log, entry, name, cases, number, after)
        print(f"exit status {code}: {first_failure(output)}")
    return None
