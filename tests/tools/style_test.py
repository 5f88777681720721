#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""scripts/check-style refuses texts that are not plain English: style_test.py SCRIPTS"""
import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("check_style", str(Path(sys.argv.pop(1)).resolve() / "check-style"))
SPEC = importlib.util.spec_from_loader("check_style", LOADER)
style = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(style)

# The words are split, so that this file passes the check.
OF = "O" "f"
ANEW = "a" "new"
BESIDE = "be" "side"


def lines(text, name="util/u_a.c"):
    return [line for line, _, _ in style.unplain(name, text)]


class Sentences(unittest.TestCase):
    def test_a_sentence_that_begins_with_of_is_refused(self):
        for text in (f"{OF} two slots the later counts.", f"/* {OF} two slots one. */", f" * {OF} each VI.",
                     f"\t// {OF} a channel.", f"# {OF} the processors.", f'    """{OF} a round.', f"- {OF} many",
                     f"Slots. {OF} two one counts.", f"| row | {OF} `a` and b one |", f"**Rule.** {OF} two one",
                     f"a list: {OF} two"):
            self.assertEqual(lines(text), [1], text)

    def test_other_uses_of_of_are_not(self):
        for text in ("the count of slots", f"{OF} course it holds.", f"VIP_{OF}_a", f'put("{OF} the")', f"{OF} VIs",
                     f"the Bank {OF} england", "a line that is wrapped\n * of two"):
            self.assertEqual(lines(text), [], text)

    def test_the_line_is_told(self):
        self.assertEqual(lines(f"one\ntwo\n * {OF} three.\nfour {ANEW}\n"), [3, 4])


class Words(unittest.TestCase):
    def test_a_word_is_refused_everywhere(self):
        self.assertEqual(lines(f"It is made {ANEW}."), [1])
        self.assertEqual(lines(f"{ANEW.capitalize()}, {ANEW}ly and de{ANEW}"), [1])

    def test_a_word_is_refused_in_documents(self):
        for name in ("docs/ring.md", "README.md", "man/vi_lat.1.in"):
            self.assertEqual(lines(f"measured {BESIDE} TCP", name), [1])
        self.assertEqual(lines(f"the header {BESIDE} it"), [])


class Tree(unittest.TestCase):
    def refused(self, name, text):
        complaints = []
        report = style.Report()
        report.result = lambda _, found: complaints.extend(found)
        style.text_of = lambda _: text
        style.check_plain(report, [name])
        return complaints

    def setUp(self):
        self.addCleanup(setattr, style, "text_of", style.text_of)

    def test_every_folder_is_checked(self):
        for name in ("provider/agent/a.c", "tests/a.py", "README.md"):
            self.assertIn(f"{name}:1: " + OF, self.refused(name, f"/* {OF} two one. */\n")[0])

    def test_a_file_that_is_no_text_is_passed_over(self):
        self.assertEqual(self.refused("docs/a.bin", None), [])


if __name__ == "__main__":
    unittest.main()
