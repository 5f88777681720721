#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The list of rules names tests that there are, and the rules of all programs stand in it; the ten wishes of the
documentation name tests that there are.

usage: rules_list_test.py LIST DOCUMENTATION FOLDER...
"""
import re
import sys
from pathlib import Path


def source_of(folders, name):
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    return path.read_text(encoding="utf-8") if path else ""


def wishes(text, folders):
    """The errors of the table; a test is `FILE`, or `FILE` (`NAME`, NAME)."""
    rows = re.findall(r"^\| wish .*?\n\|---.*?\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    rows = [row.strip("|").split("|") for row in rows[0].splitlines()] if rows else []
    complaints = [] if len(rows) == 10 else [f"{len(rows)} wishes, not 10"]
    for row in rows:
        found = re.findall(r"`(\w+\.(?:py|c|cc))`(?: \(([^)]*)\))?", row[-1])
        if not found and "rules_*" not in row[-1]:
            complaints.append(f"no test for the wish: {row[0].strip()}")
        for name, parts in found:
            source = source_of(folders, name)
            if not source:
                complaints.append(f"the documentation names {name}, which there is not")
            complaints += [f"the documentation names {part} in {name}, which has it not"
                           for part in parts.replace("`", "").split(", ") if part not in source]
    return complaints


def main():
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    folders = [Path(name) for name in sys.argv[3:]]
    complaints, named = wishes(Path(sys.argv[2]).read_text(encoding="utf-8"), folders), set()
    rows = re.findall(r"^\|(?!---)(.*)\|(.*)\|$", text, re.MULTILINE)
    for rule, tests in rows:
        if tests.strip() == "shown by":
            continue
        found = re.findall(r"`([\w.]+)`: ([^;]*)", tests)
        if not found:
            complaints.append(f"no test: {rule.strip()}")
        for name, parts in found:
            source = source_of(folders, name)
            for part in parts.strip().split(", "):
                named.add((name, part))
                if part not in source:
                    complaints.append(f"{name} has no {part}")
    for path in sorted(folders[0].glob("*.c")):
        source = path.read_text(encoding="utf-8")
        for part in re.findall(r"\bRULE\((\w+)\)", source):
            if part != "name" and not re.search(rf"static void {part}\(void\)", source):
                complaints.append(f"{path.name}: {part} is no function")
            if part != "name" and path.name.startswith("rules_") and (path.name, part) not in named:
                complaints.append(f"{path.name}: {part} is not in the list")
    print("\n".join(complaints))
    print(f"{len(rows)} rows, {len(complaints)} complaints")
    return 1 if complaints or len(rows) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
