#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real guests that panic, hang or have a warning in their kernel's log are reported as failed."""
import contextlib
import io
import sys
import tempfile
from pathlib import Path

from vm_kernel import Missing, get_kernel
from vm_link import Link
from vm_run import Report, Run, Suite

# Name, script, time limit, text that the report must contain.
CASES = (
    ("panic", "ok one\necho c >/proc/sysrq-trigger\n", 60, ("the kernel says: ", "the guest ended, after it said")),
    ("warning", "ok one\necho '<4>WARNING: CPU: 0 PID: 1 at x.c:1' >/dev/kmsg\n", 60, ("the kernel says: ",)),
    ("hang", "ok one\nwhile :; do :; done\n", 12, ("no end after 12 s",)),
    ("exit", "ok one\npoweroff -f\n", 60, ("the guest ended, after it said: ok one",)),
    ("module", "load no_such_module\n", 60, ("insmod no_such_module",)),
)


def run_case(kernel, script, timeout):
    with tempfile.TemporaryDirectory(prefix="viaduct-vm-") as folder:
        path = Path(folder) / "suite.sh"
        path.write_text(script, encoding="utf-8")
        report, printed = Report(), io.StringIO()
        with contextlib.redirect_stdout(printed):
            Run(Suite("broken", {"A": []}, path, (), timeout=timeout), kernel, report).run()
    return report, printed.getvalue()


def main():
    failed = 0
    try:
        Link.qemu()
        kernel = get_kernel()
        for number, (name, script, timeout, wanted) in enumerate(CASES, 1):
            report, printed = run_case(kernel, script, timeout)
            good = report.failed == len(wanted) and all(text in printed for text in wanted)
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - a guest with a {name}")
            if not good:
                print("# " + printed.replace("\n", "\n# "))
    except Missing as reason:
        print(f"skipped: {reason}")
        return 77
    print(f"1..{len(CASES)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
