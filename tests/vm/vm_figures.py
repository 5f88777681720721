# SPDX-License-Identifier: BSD-2-Clause
"""Figures that guests measure, several times each: their medians as a table, and all of them as JSON."""
import json
import statistics
from pathlib import Path

SCHEMA = "viaduct.vm-figures"


def processor():
    """The model of this machine's processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


class Figures:
    """The figures of one run of a suite."""

    def __init__(self, about):
        """about: the suite and the machine."""
        self.about = about
        self.units = {}
        self.values = {}
        self.ratios = {}
        self.facts = {}

    def add(self, line):
        """
        A guest's line: NAME VALUE UNIT; NAME is WORD, for what is no number; ratio NAME ABOVE BELOW
        [WANTED], the ratio of two figures, which is taken round by round.
        """
        words = line.split()
        if words[0] == "ratio":
            self.ratios[words[1]] = (words[2], words[3], float(words[4]) if len(words) > 4 else None)
        elif words[1] == "is":
            self.facts[words[0]] = words[2]
        else:
            name, value, self.units[words[0]] = words
            self.values.setdefault(name, []).append(float(value))

    def rows(self):
        """(name, values, unit) of all figures and ratios."""
        for name, values in self.values.items():
            yield name, values, self.units[name]
        for name, (above, below, _) in self.ratios.items():
            values = self.quotients(above, below)
            if values:
                yield name, values, ""

    def quotients(self, above, below):
        """The ratios of all rounds; None if a round lacks one of the figures, which is a failure of its suite."""
        pairs = [self.values.get(name, []) for name in (above, below)]
        return [a / b for a, b in zip(*pairs)] if len(pairs[0]) == len(pairs[1]) else []

    def verdicts(self):
        """(name, requirement, is it met?) of each ratio that has a requirement."""
        for name, (above, below, wanted) in self.ratios.items():
            values = self.quotients(above, below)
            if wanted is not None and values:
                yield name, wanted, statistics.median(values) >= wanted

    def table(self):
        """The lines of the table; none without a figure."""
        if not self.values:
            return []
        lines = [("figure", "median", "least", "most", "rounds", "unit")]
        for name, values, unit in self.rows():
            middle = (statistics.median(values), min(values), max(values))
            lines.append((name, *(f"{v:.3f}" for v in middle), str(len(values)), unit))
        widths = [max(len(line[i]) for line in lines) for i in range(5)]
        text = ["  ".join([line[0].ljust(widths[0])] + [line[i].rjust(widths[i]) for i in range(1, 5)] + [line[5]]).rstrip()
                for line in lines]
        text += [f"{name}: {'at least' if good else 'below'} {wanted}" for name, wanted, good in self.verdicts()]
        return text + [f"{name}: {word}" for name, word in self.facts.items()]

    def as_object(self):
        figures = {name: {"unit": unit, "median": statistics.median(values), "rounds": values}
                   for name, values, unit in self.rows()}
        for name, wanted, good in self.verdicts():
            figures[name] |= {"wanted": wanted, "met": good}
        return {"schema": SCHEMA, "schema_version": 1, **self.about, "processor": processor(), "facts": self.facts,
                "figures": figures}


def write(path, runs):
    """Writes all runs that have figures, as one list."""
    objects = [figures.as_object() for figures in runs if figures.values]
    Path(path).write_text(json.dumps(objects, indent=2) + "\n", encoding="utf-8")
