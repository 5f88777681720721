#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A job ends as its program says: status, output, and nothing left of it.

usage: ends_test.py [--exits|--late|--no-signals] PROGRAM LAUNCHER [ARGUMENT]...

--exits: of PROGRAM, which is exits; --late: where a function of atexit() never returns;
--no-signals: where the limit of pending signals is 0.
"""
import resource
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

MANNERS = {
    # manner: (exit status, what the output contains)
    "finalize": (0, ""), "return": (0, "done"), "exit": (0, "done"),
    "atexit": (0, "done"), "atexit_later": (0, "done"), "start_pes": (0, "done"),
    "barrier": (42, "the end by PE"), "wait": (42, "the end by PE"), "lock": (42, "the end by PE"),
    "sleep": (42, "the end by PE"), "spin": (42, "the end by PE"), "thread": (42, "the end by a thread"),
}

# Output that the PE that ends the job has left to its end; nothing of it may be lost.
LEFT = ("a stream without end of line", "a static destructor", "a function of atexit")
EXITS = {manner: (42, LEFT) for manner in ("main", "thread", "destructor", "twice")}
LATE = {"never": (42, "")}
NO_SIGNALS = {manner: MANNERS[manner] for manner in ("finalize", "return", "barrier")}


def main():
    sets = {"--exits": EXITS, "--late": LATE, "--no-signals": NO_SIGNALS}
    manners = sets.get(sys.argv[1], MANNERS)
    program, *launcher = sys.argv[2 if sys.argv[1] in sets else 1:]
    if manners is NO_SIGNALS:
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0))
    failed = 0
    for manner, (status, text) in manners.items():
        texts = text if isinstance(text, tuple) else (text,)
        try:
            done = subprocess.run(launcher + [program, manner], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False, timeout=limit(60))
        except subprocess.TimeoutExpired:
            failed += 1
            print(f"{manner}: does not end")
            continue
        missing = [text for text in texts if text not in done.stdout]
        if done.returncode != status or missing or "without shmem_init" in done.stderr:
            failed += 1
            sys.stdout.write(done.stderr)
            print(f"{manner}: status {done.returncode}, not {status}, or output without {missing}: "
                  f"{done.stdout!r}")
    print(f"{len(manners)} manners, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
