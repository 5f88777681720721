#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The choices, runs and output of scripts/night, scripts/repeat and scripts/canary: night_test.py SCRIPTS [BUILD], the latter with all tests"""
import contextlib
import importlib.util
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path

SCRIPTS = Path(sys.argv.pop(1)).resolve()
BUILD = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
ROOT = SCRIPTS.parent
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True


def load(name):
    """Imports a script whose name does not end in .py."""
    loader = SourceFileLoader(name, str(SCRIPTS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


night, repeat = load("night"), load("repeat")


def without_env(command):
    """A command without env and the variables that it sets."""
    return command if command[0] != "env" else command[1 + sum("=" in word for word in command):]


def tests_of(command):
    """The names of tests in the command of an entry."""
    command = without_env(command)
    if command[0] == "scripts/canary":
        return command[2:]
    if command[0] != "scripts/test":
        return []
    valued = ("--repeat", "--setup", "--suite")
    return [word for before, word in zip(command, command[1:]) if not word.startswith("-") and before not in valued]


def main_of(module, *words):
    sys.argv = [module.__name__, *words]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = module.main()
    return code, said.getvalue()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "meson-info").mkdir()


class Night(Case):
    def setUp(self):
        super().setUp()
        self.text = ""
        night.ENTRIES = self.build / "night.toml"
        os.environ["VIADUCT_BUILD"] = str(self.build)

    def add(self, name, script, more="", minutes=1.0):
        self.text += f'[[entry]]\nname = "{name}"\nminutes = {minutes}\n{more}\ncommand = ["sh", "-c", \'{script}\']\n'
        night.ENTRIES.write_text(self.text)

    def lines(self):
        return [json.loads(line) for line in (self.build / "night.jsonl").read_text().splitlines()]

    def test_each_result_is_a_line(self):
        self.add("good", 'echo "$VIADUCT_SEED $CLUSTER_SEED"')
        self.add("bad", "echo noise; echo failed: this one; exit 1")
        self.add("none", "echo 0 passed, 0 failed, 2 skipped")
        code, said = main_of(night, "--seed", "42")
        self.assertEqual((code, said.splitlines()[-1]), (1, "1 passed, 1 failed, 1 skipped"))
        line = {one["entry"]: one for one in self.lines()}
        self.assertEqual({name: one["result"] for name, one in line.items()}, {"good": "passed", "bad": "failed", "none": "skipped"})
        self.assertEqual((line["bad"]["failures"], line["bad"]["status"]), (["failed: this one"], 1))
        self.assertRegex(line["good"]["commit"], r"^([0-9a-f]{40}\+?|unknown)$")
        self.assertEqual((self.build / line["good"]["log"]).read_text(), "42 42\n")

    def test_what_does_not_end_in_time_is_ended(self):
        self.add("stands", f"sleep 600 & echo $! >{self.build}/child; wait", minutes=0.01)
        code, said = main_of(night)
        self.assertEqual((code, said.splitlines()[-1], self.lines()[0]["result"]), (1, "0 passed, 1 failed, 0 skipped", "timeout"))
        child = night.machine.status_fields((self.build / "child").read_text().strip())
        self.assertTrue(child is None or child[0] in "ZX", child)

    def test_a_line_is_replayed_with_its_seed(self):
        self.add("other", "exit 1")
        self.add("seeded", "echo $VIADUCT_SEED")
        main_of(night, "--entry", "seeded", "--entry", "other")
        number = [one["entry"] for one in self.lines()].index("seeded") + 1
        main_of(night, "--replay", str(number))
        self.assertEqual([self.lines()[-1][key] for key in ("entry", "seed")], ["seeded", self.lines()[number - 1]["seed"]])
        for wrong in ("0", "9", "-9"):
            with self.assertRaises(SystemExit):
                main_of(night, "--replay", wrong)

    def test_no_entry_begins_that_could_not_end(self):
        self.add("long", "exit 1", minutes=90)
        self.add("short", "exit 0")
        code, said = main_of(night, "--minutes", "60")
        self.assertEqual((code, said.splitlines()[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertEqual([one["entry"] for one in self.lines()], ["short"])

    def test_a_night_without_a_result_is_a_failure(self):
        self.add("none", "exit 77")
        self.assertEqual(main_of(night)[0], 1)

    def test_the_order_follows_the_weights(self):
        entries = [{"name": "light"}, {"name": "heavy", "weight": 9}, {"name": "first", "first": True}]
        draw = random.Random(1)
        orders = [[entry["name"] for entry in night.order(entries, draw)] for _ in range(200)]
        self.assertTrue(all(sorted(one) == ["first", "heavy", "light"] and one[0] == "first" for one in orders))
        self.assertGreater(sum(one[1] == "heavy" for one in orders), 150)

    def test_the_entries_of_the_project(self):
        entries = night.read_entries(ROOT / "tests/night.toml").values()
        self.assertTrue(any("canary" in entry["name"] and entry["first"] for entry in entries))
        for entry in entries:
            self.assertTrue((ROOT / without_env(entry["command"])[0]).exists(), entry)
            self.assertGreater(entry["minutes"], 0)

    @unittest.skipUnless(BUILD, "no build with all tests was given")
    def test_the_entries_name_tests(self):
        tests = {test["name"] for test in json.loads((BUILD / "meson-info/intro-tests.json").read_text())}
        for entry in night.read_entries(ROOT / "tests/night.toml").values():
            self.assertEqual(set(tests_of(entry["command"])) - tests, set(), entry["name"])

    @unittest.skipUnless(shutil.which("patch"), "patch is not installed")
    def test_the_known_faults_can_be_made(self):
        for patch in (ROOT / "tests/canary").glob("*.patch"):
            done = subprocess.run(["patch", "--dry-run", "--strip=1", "--fuzz=0", "--directory", str(ROOT), "--input", str(patch)],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{patch.name}: make it again for the code as it is now: {done.stdout}")


class Repeat(Case):
    def make(self, **scripts):
        made = []
        for name, script in scripts.items():
            program = self.build / name
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            made.append({"name": name, "cmd": [str(program)], "env": {"OWN": str(self.build / f"{name}.runs")}, "timeout": 60,
                         "suite": ["viaduct:unit"], "workdir": None, "protocol": "exitcode", "depends": []})
        (self.build / "meson-info/intro-tests.json").write_text(json.dumps(made))
        return made

    def test_each_runs_so_often_and_one_failure_counts(self):
        self.make(steady="echo run >>$OWN", rare='echo run >>$OWN; [ "$(wc -l <$OWN)" != 3 ]', none="exit 77")
        code, said = main_of(repeat, "--build", str(self.build), "--rounds", "4", "steady", "rare", "none")
        self.assertEqual((code, said.splitlines()[-1]), (1, "1 passed, 1 failed, 1 skipped"))
        self.assertIn("failed: rare (1 of 4 runs)", said)
        self.assertIn("skipped: none (it skips itself)", said)
        self.assertEqual((self.build / "steady.runs").read_text().count("run"), 4)

    def test_time_that_is_over(self):
        self.make(steady="exit 0")
        code, said = main_of(repeat, "--build", str(self.build), "--minutes", "0", "steady")
        self.assertEqual((code, said.splitlines()[-2:]), (0, ["skipped: steady (the time was over)", "0 passed, 0 failed, 1 skipped"]))

    def test_a_program_is_found_by_its_own_files(self):
        made = self.make(one="", two="", script="")
        made[2]["cmd"] = ["python3", str(self.build / "script_test.py")]
        targets = [{"filename": made[0]["cmd"], "target_sources": [{"sources": ["/src/one_test.cc"]}, {"linker": ["cc"]}]},
                   {"filename": made[1]["cmd"], "target_sources": [{"sources": ["/src/two_test.cc"]}]}]
        for changed, found in (("/src/two_test.cc", ["two"]), (str(self.build / "script_test.py"), ["script"]), ("/src/three.cc", [])):
            self.assertEqual([test["name"] for test in made if repeat.own_files(test, targets) & {changed}], found)

    def test_models_go_with_files(self):
        def models(*names):
            return sorted(repeat.models_of({str(ROOT / name) for name in names}))
        self.assertEqual(models("provider/relay/rl_move.c"), ["model-relay"])
        self.assertEqual(models("util/u_biased.h", "provider/ntb/nvi_arm.c"), ["model-biased", "model-sleep", "model-wake"])
        self.assertEqual(models("provider/relay.md", "docs/testing.md"), [])

    def test_the_table_of_models_is_whole(self):
        described = {model for _, models in repeat.model_table() for model in models}
        made = set(re.findall(r"^ *test\('([^']+)'", (ROOT / "tests/model/meson.build").read_text(), re.MULTILINE))
        self.assertEqual(described, made)
        files = [os.path.relpath(path, ROOT) for folder in ("kmod", "provider", "util", "sock", "tests/model")
                 for path in (ROOT / folder).rglob("*") if path.is_file()]
        for pattern, _ in repeat.model_table():
            self.assertTrue(any(repeat.matches(name, pattern) for name in files), pattern)


if __name__ == "__main__":
    unittest.main()
