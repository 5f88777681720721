#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The checkers of the debug kernel report each error of flaw/flaw.c, which a guest makes."""
import contextlib
import io
import sys
import tempfile
from pathlib import Path

from vm_debug import get_debug_kernel
from vm_guest import bad_lines
from vm_kernel import Missing
from vm_link import Link
from vm_run import Report, Run, Suite

# Kind, text that the log must contain.  The checker of locks stops after its first report and after
# a report of a wrong access, to which the last kind leads, too; the checker of accesses reports the
# first one only.
KINDS = (
    ("dma", "DMA-API: "),
    ("sleep", "BUG: sleeping function called from invalid context"),
    ("locks", "WARNING: possible circular locking dependency detected"),
    ("memory", "BUG: KASAN: use-after-free in use_after_free"),
    ("undefined", "UBSAN: "),
)


class Watched(Run):
    """Keeps the log of its guest."""

    log = ""

    def judge_log(self, guest):
        self.log = guest.log()
        super().judge_log(guest)


def main():
    try:
        Link.qemu()
        kernel = get_debug_kernel()
        report, printed = Report(), io.StringIO()
        with tempfile.TemporaryDirectory(prefix="viaduct-vm-") as folder, contextlib.redirect_stdout(printed):
            path = Path(folder) / "suite.sh"
            kinds = " ".join(kind for kind, _ in KINDS)
            path.write_text(f"for kind in leak {kinds}; do\nload flaw kind=$kind\nrmmod flaw\ndone\n", encoding="utf-8")
            run = Watched(Suite("flaw", {"A": []}, path, ("flaw",)), kernel, report)
            run.run()
    except Missing as reason:
        print(f"skipped: {reason}")
        return 77
    bad = bad_lines(run.log)
    found = [(kind, any(text in line for line in bad)) for kind, text in KINDS]
    found.append(("leak", "no memory is lost: «unreferenced object" in printed.getvalue()))
    for number, (kind, good) in enumerate(found, 1):
        print(f"{'ok' if good else 'not ok'} {number} - an error of the kind {kind} is reported")
    if not all(good for _, good in found):
        print("# " + (printed.getvalue() + run.log).replace("\n", "\n# "))
    print(f"1..{len(found)}")
    return 0 if all(good for _, good in found) else 1


if __name__ == "__main__":
    sys.exit(main())
