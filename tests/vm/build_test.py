#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The modules of kmod/ compile without a warning of the compiler (W=1) or of sparse, and `make clean` removes them."""
import shutil
import sys
import tempfile
from pathlib import Path

from vm_kernel import SERIES, Missing, get_kernel
from vm_modules import BuildError, build_ours, get_modules, make

QUIET = ("  CC ", "  LD ", "  CHECK ", "  MODPOST ", "  BTF ", "Skipping BTF ", "make")


def main():
    try:
        if shutil.which("sparse") is None:
            raise Missing("sparse is not installed; scripts/setup --vm")
        kernel = get_kernel(*sys.argv[1:])
        get_modules(kernel)  # for the symbols of the NTB core
        with tempfile.TemporaryDirectory(prefix="viaduct-vm-") as folder:
            text = build_ours(kernel, Path(folder), "W=1", "C=2", "KCFLAGS=-Werror")
            make(kernel, Path(folder) / "kmod", target="clean")
            left = list((Path(folder) / "kmod").rglob("*.o"))
    except Missing as reason:
        print(f"skipped: {reason}")
        return 77
    except BuildError as error:
        print(error)
        return 1
    checked = [line for line in text.splitlines() if line.startswith("  CHECK ")]
    rest = [line for line in text.splitlines() if line.strip() and not line.startswith(QUIET)]
    rest += [f"make clean leaves {path.name}" for path in left]
    print("\n".join(rest))
    print(f"{kernel.release}: {len(checked)} files, {len(rest)} lines of complaint")
    return 1 if rest or not checked else 0


if __name__ == "__main__":
    assert len(sys.argv) == 1 or sys.argv[1] in SERIES
    sys.exit(main())
