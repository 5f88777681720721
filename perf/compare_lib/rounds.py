# SPDX-License-Identifier: BSD-2-Clause
"""Rounds of measurements, between which R and the speed of the processors are taken."""
import time

from . import outcome, scale, stats, tools
from .classes import Classes
from .plan import why_missing

SCALE_SECONDS = 120.0


class Comparison:
    def __init__(self, bench, plan, rows, near_below=None):
        self.bench, self.rows, self.rounds, self.scale = bench, rows, [], []
        self.near_below = near_below
        self.notes = {}    # what was skipped or failed, in the order of its first time
        self.missing = {}  # a need of the plan: why it is not there
        self.keys = {}     # of the values that a measurement gives, by its name
        self.times = {}    # that it was made
        self.plan = []
        for name, need, step in plan:
            text = why_missing(bench, need) if need else None
            if text:
                self.missing[need] = text
                self.note(text)
            else:
                self.plan.append((name, step))

    def note(self, text):
        if text not in self.notes:
            tools.complain(text)
        self.notes[text] = self.notes.get(text, 0) + 1

    def probe(self, a_round):
        """The probe before, and one now.  Other load shows as a jump: then the least R of three."""
        now = tools.probe(self.bench)
        last = a_round.probes[-1] if a_round.probes else now
        if not stats.steady((last, now)):
            more = [tools.probe(self.bench) for _ in range(2)]
            now = min((now, *more), key=lambda p: p.r)
        a_round.probes.append(now)
        return last, now

    def step(self, a_round, name, step):
        """One measurement between two probes; once more when they differ."""
        for _ in range(2):
            try:
                values = step(self.bench)
            except tools.OutOfTime:
                raise
            except tools.Failed as error:
                self.note(f"{name}: {error}")
                return
            before, after = self.probe(a_round)
            if stats.steady((before, after)):
                break
        for key, value in values.items():
            a_round.take(key, value, before, after)
        self.keys.setdefault(name, set()).update(values)
        self.times[name] = self.times.get(name, 0) + 1

    def classes(self):
        return Classes([p for r in self.rounds for p in r.probes], self.near_below)

    def due(self):
        """The measurements that are still needed: for unsettled rows, or for curves."""
        if not self.rounds:
            return self.plan
        loose = outcome.unsettled(self.rows, self.rounds, self.classes(), self.missing)
        needed = set().union(*(row.keys() for row in loose))
        in_rows = set().union(*(row.keys() for row in self.rows))

        def wanted(name):
            keys = self.keys.get(name)
            return (not keys or bool(keys & needed)
                    or (not keys <= in_rows and self.times[name] < stats.ENOUGH))
        return [(name, step) for name, step in self.plan if wanted(name)]

    def round(self, plan, end):
        a_round = stats.Round(started=time.time(), probes=[tools.probe(self.bench)])
        self.rounds.append(a_round)
        for name, step in plan:
            if time.monotonic() > end:
                raise tools.OutOfTime("no time left")
            self.step(a_round, name, step)
        times, steps = [p.r for p in a_round.probes], [p.step for p in a_round.probes]
        print(f"round {len(self.rounds)}: {len(plan)} measurements, R {min(times):.0f} to "
              f"{max(times):.0f} ns, a step {min(steps):.2f} to {max(steps):.2f} ns", flush=True)

    def run(self, end, most):
        """Rounds until the medians have settled, the time or the number is up."""
        while (plan := self.due()) and (not most or len(self.rounds) < most):
            try:
                self.round(plan, end)
            except tools.OutOfTime:
                self.note("the time was up within a round, which counts as far as it went")
                return

    def measure_scale(self):
        self.bench.deadline = time.monotonic() + SCALE_SECONDS
        self.scale = scale.measure(self.bench, self.note)

    def dry(self, quick):
        for name, step in self.plan:
            print(f"# {name}")
            step(self.bench)
        if not quick:
            print("# scale")
            self.measure_scale()
