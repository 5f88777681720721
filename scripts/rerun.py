# SPDX-License-Identifier: BSD-2-Clause
"""Runs failed tests again, each alone, when the machine is quiet; used by results.py.

A program that passes then is unstable: it failed because of something that the change does not decide.  docs/testing.md says
what becomes of it.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

TRIES = 2
QUIET_PERCENT = 20  # of the time in which some task waited for a processor
QUIET_SECONDS = 60
STACK_LINES = 60


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


def limits(build):
    """Seconds that a program of each name is given, before the factor of a sanitizer."""
    found = {}
    for kind in ("tests", "benchmarks"):
        path = Path(build) / "meson-info" / f"intro-{kind}.json"
        if path.exists():
            found.update({test["name"]: test["timeout"] for test in json.loads(path.read_text())})
    return found


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
    text = []
    for pid in session_members(leader):
        done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], capture_output=True, text=True,
                              errors="replace", timeout=60, check=False)
        kept = [line for line in done.stdout.splitlines() if line.startswith(("Thread ", "#"))]
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


def run_alone(build, entry, cases, limit):
    """(exit code or None at a time-out, what it printed, the stacks at a time-out)."""
    command = list(entry["command"])
    if cases:
        command.append("--gtest_filter=" + ":".join(cases))
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, cwd=build, env=entry["env"], stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT, start_new_session=True) as test:
            stood = ""
            try:
                code = test.wait(limit)
            except subprocess.TimeoutExpired:
                code, stood = None, stacks(test.pid)
            end_session(test.pid)
        output.seek(0)
        return code, output.read().decode(errors="replace"), stood


def all_ran(cases, output):
    """A filter that matches less than these cases of a GoogleTest program proves nothing of the others."""
    ran = re.search(r"^\[=+\] (\d+) tests? from \d+ test suites? ran", output, re.MULTILINE)
    return not cases or (ran is not None and int(ran.group(1)) >= len(cases))


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
    """Does the program, or do these cases of it, pass alone?  Returns the line of `log` that says so, or None."""
    before = pressure()
    for number in range(1, TRIES + 1):
        after = wait_quiet()
        print(f"again, alone: {name}, try {number} of {TRIES}, pressure {after} %", flush=True)
        code, output, stood = run_alone(build, entry, cases, limit)
        if code == 0 and all_ran(cases, output):
            return record(log, entry, name, cases, number, before, after)
        if code == 77:  # it cannot tell
            return None
        print(f"TIMEOUT after {limit} s\n{stood}" if code is None else f"exit status {code}: {first_failure(output)}")
    return None
