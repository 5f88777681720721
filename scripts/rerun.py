# SPDX-License-Identifier: BSD-2-Clause
"""Runs failed tests again, each alone, when the machine is quiet; used by results.py.

A program that passes then is unstable: it failed because of something that the change does not decide.  docs/testing.md says
what becomes of it.  It is run as a whole: one of its cases alone would not show a leak, nor what another case left behind.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

TRIES = 2
QUIET_PERCENT = 20  # of the time in which some task waited for a processor
QUIET_SECONDS = 60
STACK_LINES = 60
STACK_SECONDS = 120
RERUN = ("FAIL", "ERROR", "TIMEOUT")  # not what was interrupted


def pressure():
    """The percentage of the last ten seconds in which a task waited for a processor; None where the kernel does not tell."""
    try:
        text = Path("/proc/pressure/cpu").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^some avg10=([\d.]+)", text)
    return float(found.group(1)) if found else None


def wait_quiet():
    end = time.monotonic() + QUIET_SECONDS
    while time.monotonic() < end:
        now = pressure()
        if now is None or now < QUIET_PERCENT:
            break
        time.sleep(1)
    return pressure()


def worst_pressure(build, entry):
    """The worst that scripts/common.sh saw while the test ran, if it looked."""
    path = Path(build) / "meson-logs" / "pressure.txt"
    begin, end = entry["starttime"] - 1, entry["starttime"] + entry["duration"] + 10
    seen = [float(words[1]) for words in map(str.split, path.read_text().splitlines())
            if len(words) == 2 and begin <= float(words[0]) <= end] if path.exists() else []
    return max(seen, default=None)


def limits(build, kind):
    """Seconds that a program of each name is given, before the factor of a sanitizer; kind is tests or benchmarks."""
    path = Path(build) / "meson-info" / f"intro-{kind}.json"
    return {test["name"]: test["timeout"] for test in json.loads(path.read_text())} if path.exists() else {}


def factor(env):
    """As tests/cxx/limit.h has it."""
    found = re.match(r"\s*(\d+)", env.get("TEST_LIMIT_FACTOR", ""))
    return max(int(found.group(1)), 1) if found else 1


def session_members(leader):
    """Processes of the session that the test leads, but for those that have ended and wait for their parent."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(errors="replace")
            except OSError:
                continue
            fields = stat.rsplit(")", 1)[1].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                yield int(entry.name)


def stacks(leader):
    """Where each thread of a test stands that did not end in time."""
    if shutil.which("gdb") is None:
        return "where it stood is not known: gdb is not installed"
    text, end = [], time.monotonic() + STACK_SECONDS
    for pid in session_members(leader):
        try:
            done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], capture_output=True,
                                  stdin=subprocess.DEVNULL, text=True, errors="replace",
                                  timeout=max(end - time.monotonic(), 1), check=False)
            kept = [line for line in done.stdout.splitlines() if line.startswith(("Thread ", "#"))]
        except (subprocess.TimeoutExpired, OSError) as error:
            kept = [f"gdb: {error}"]
        text += [f"process {pid}:"] + kept[:STACK_LINES]
    return "\n".join(text)


def end_session(leader):
    """Returns when none of them runs any more: a signal takes its time."""
    end = time.monotonic() + QUIET_SECONDS + 10
    while time.monotonic() < end:
        members = list(session_members(leader))
        if not members:
            return
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


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
            code, output, stood = None, late.output or b"", stacks(test.pid)
        finally:
            end_session(test.pid)
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


def record(path, entry, name, cases, tries, before, after):
    output = (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")
    line = {"test": name, "cases": cases, "result": entry["result"], "first_failure": first_failure(output),
            "seed": seed(output), "tries": tries, "seconds": round(entry["duration"], 2), "pressure_before": before,
            "pressure_after": after, "load": os.getloadavg()[0], "time": int(time.time())}
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
            return record(log, entry, name, cases, number, worst_pressure(build, entry), after)
        print(f"exit status {code}: {first_failure(output)}")
    return None
