#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The C programs printed in the README compile: readme_test.py README INCLUDE_DIR CC..."""
import re
import subprocess
import sys


def main():
    readme, include, compiler = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(readme, encoding="utf-8") as file:
        programs = re.findall(r"^```c\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    failed = 0
    for program in programs:
        done = subprocess.run(
            compiler + ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{include}",
                        "-x", "c", "-"], input=program, text=True, check=False)
        failed += done.returncode != 0
    print(f"{len(programs)} programs, {failed} do not compile")
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
