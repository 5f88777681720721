# SPDX-License-Identifier: BSD-2-Clause
"""The runner reports what went wrong in a guest: with a program in place of QEMU."""
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import vm_debug
import vm_figures
import vm_image
import vm_kernel
import vm_link
import vm_qemu
import vm_run

HERE = Path(__file__).resolve().parent
GOOD = [("say", "ok it works"), ("say", "rc 0")]


class FakeKernel(vm_kernel.Kernel):
    def __init__(self):
        super().__init__(Path("0.0"))


class FakeRun(vm_run.Run):
    """A run whose guests follow a script."""

    def write_image(self):
        os.write(self.initrd, json.dumps(self.suite.script_of).encode())

    def seconds_left(self, start):
        """The time is over when only a guest that hangs is left, and all its output was read."""
        left = [guest for guest in self.running() if not guest.killed]
        hangs = [guest for guest in left if guest.last == "# hangs"]
        return 0 if left and hangs == left else super().seconds_left(start)


def run(guests, timeout=60, late=()):
    """Makes a run; returns (report, what was printed)."""
    suite = vm_run.Suite("fake", {name: [("l", index)] for index, name in enumerate(guests)}, "none", (),
                         timeout=timeout, late=late)
    suite.script_of = guests
    report = vm_run.Report()
    printed = io.StringIO()
    with mock.patch.object(vm_link.Link, "qemu", lambda: [str(HERE / "fake_qemu.py")]), \
            mock.patch.object(vm_run, "choose_accel", lambda kernel: "tcg"), contextlib.redirect_stdout(printed):
        FakeRun(suite, FakeKernel(), report).run()
    return report, printed.getvalue()


class RunnerTest(unittest.TestCase):
    def assert_failed(self, outcome, text):
        report, printed = outcome
        self.assertEqual(report.failed, 1, printed)
        self.assertRegex(printed, rf"(?m)^not ok \d+ - {text}")

    def test_good(self):
        report, printed = run({"A": GOOD, "B": [("say", "# a figure")] + GOOD})
        self.assertEqual((report.count, report.failed), (2, 0), printed)
        self.assertIn("ok 1 - ", printed)
        self.assertIn("# B a figure", printed)

    def test_a_check_that_fails(self):
        self.assert_failed(run({"A": [("say", "not ok it works"), ("say", "rc 1")]}), "A: it works")

    def test_an_end_without_result(self):
        self.assert_failed(run({"A": [("say", "ok one"), ("say", "# two")]}),
                           "A: the guest ended, after it said: # two")

    def test_a_panic(self):
        outcome = run({"A": [("say", "ok one"), ("log", "Kernel panic - not syncing: sysrq")]})
        self.assertEqual(outcome[0].failed, 2)
        self.assertIn("A: the kernel says: Kernel panic", outcome[1])

    def test_a_hang(self):
        outcome = run({"A": [("say", "ok one"), ("hang", "")], "B": GOOD})
        self.assert_failed(outcome, "A: no end after 60 s; it said last: # hangs")

    def test_a_warning_of_the_kernel(self):
        for text in ("WARNING: CPU: 0 PID: 1 at x.c:1", "BUG: sleeping function called", "Oops: 0002",
                     "BUG: KASAN: slab-out-of-bounds", "WARNING: possible circular locking dependency detected"):
            self.assert_failed(run({"A": [("log", f"[ 1.0] {text}")] + GOOD}), "A: the kernel says: ")

    def test_nothing_checked(self):
        self.assert_failed(run({"A": [("say", "rc 0")]}), "the guests checked nothing")

    def test_an_unknown_question(self):
        self.assert_failed(run({"A": [("ask", "dance now")] + GOOD}), "A: asked for dance")

    def test_barrier_and_values(self):
        report, printed = run({"A": [("ask", "barrier x"), ("ask", "put k v")] + GOOD,
                               "B": [("ask", "barrier x"), ("ask", "get k")] + GOOD})
        self.assertEqual(report.failed, 0, printed)
        self.assertIn("# B answer v", printed)

    def test_a_guest_that_ends_holds_up_no_barrier(self):
        report, printed = run({"A": [("ask", "barrier x")] + GOOD, "B": GOOD})
        self.assertEqual(report.failed, 0, printed)

    def test_a_guest_that_was_killed_has_not_failed(self):
        report, printed = run({"A": [("ask", "kill B"), ("ask", "barrier x")] + GOOD,
                               "B": [("hang", "")]})
        self.assertEqual(report.failed, 0, printed)

    def test_a_guest_that_was_killed_can_be_started(self):
        report, printed = run({"A": [("ask", "kill B"), ("ask", "start B"), ("ask", "barrier x")] + GOOD,
                               "B": [("ask", "barrier x")] + GOOD})
        self.assertEqual((report.count, report.failed), (2, 0), printed)

    def test_nothing_is_left(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TMPDIR=folder):
            before = sorted(os.listdir("/proc/self/fd"))
            run({"A": [("say", "ok one"), ("hang", "")]})
            self.assertEqual(os.listdir(folder), [])
            self.assertEqual(sorted(os.listdir("/proc/self/fd")), before)
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="utf-8")
            self.assertEqual(children.split(), [])


class FiguresTest(unittest.TestCase):
    LINES = ("fast 1 us", "slow 4 us", "fast 2 us", "slow 4 us", "fast 3 us", "slow 2 us", "way is direct",
             "ratio share fast slow 0.9", "ratio other slow fast 0.9")

    def test_medians_and_ratios_of_rounds(self):
        figures = vm_figures.Figures({"suite": "x"})
        for line in self.LINES:
            figures.add(line)
        found = figures.as_object()
        self.assertEqual((found["suite"], found["facts"]), ("x", {"way": "direct"}))
        self.assertEqual(found["figures"]["fast"], {"unit": "us", "median": 2, "rounds": [1, 2, 3]})
        self.assertEqual(found["figures"]["share"], {"unit": "", "median": 0.5, "rounds": [0.25, 0.5, 1.5], "wanted": 0.9,
                                                     "met": False})
        self.assertTrue(found["figures"]["other"]["met"])
        table = figures.table()
        self.assertEqual(table[1].split(), ["fast", "2.000", "1.000", "3.000", "3", "us"])
        self.assertEqual(table[-3:], ["share: below 0.9", "other: at least 0.9", "way: direct"])

    def test_a_round_without_one_of_two_figures_has_no_ratio(self):
        figures = vm_figures.Figures({})
        for line in ("fast 1 us", "fast 2 us", "slow 1 us", "ratio share fast slow 0.9"):
            figures.add(line)
        self.assertNotIn("share", figures.as_object()["figures"])

    def test_guests_tell_them_and_they_are_printed_and_written(self):
        report, printed = run({"A": [("say", "figure fast 1.5 us")] + GOOD})
        self.assertEqual(report.failed, 0, printed)
        self.assertRegex(printed, r"(?m)^# fast +1\.500 +1\.500 +1\.500 +1  us$")
        figures = vm_figures.Figures({"suite": "x"})
        figures.add("fast 1.5 us")
        with tempfile.TemporaryDirectory() as folder:
            vm_figures.write(f"{folder}/x.json", [figures, vm_figures.Figures({"suite": "none"})])
            found = json.loads(Path(f"{folder}/x.json").read_text(encoding="utf-8"))
        self.assertEqual([one["suite"] for one in found], ["x"])


class Sources:
    """Takes the place of apt, as far as the runner asks it."""

    images = {"linux-image-6.1.0-9-amd64": "6.1.9-1", "linux-image-6.1.0-10-amd64": "6.1.10-1",
              "linux-image-6.1.0-11-amd64": "6.1.11-1"}
    built_from = {"linux-source-6.1": ("6.1.10-1", "6.1.11-1"), "linux-kbuild-6.1": ("6.1.11-1",)}
    # The candidate of each package is its first version.
    kernels = {"linux-image-amd64": ["linux-image-6.1.0-11-amd64 (= 6.1.11-1)", "linux-image-6.12.9-amd64 (= 6.12.9-1)"],
               "linux-image-6.12-amd64": ["linux-image-6.12.11-amd64 (= 6.12.11-1)"]}

    def show(self, packages):
        return "".join(f"Package: {name}\nDepends: {text}\n" for name in packages for text in self.kernels.get(name, ()))

    def field(self, package, _name):
        if package.startswith("linux-headers-"):
            return "linux-headers-6.1.0-10-common (= 6.1.10-1), linux-kbuild-6.1 (>= 6.1.10-1), linux-compiler-gcc-12-x86"
        return self.kernels[package][0]

    def named(self, pattern):
        found = [name for name in list(self.images) + list(self.kernels) if re.search(pattern, name)]
        return [f"{name} - Linux" for name in found] + [""]

    def versions(self, packages):
        return [(name, self.images[name]) for name in packages if name in self.images] + \
            [(name, version) for name in packages for version in self.built_from.get(name, ())]


class KernelChoiceTest(unittest.TestCase):
    def test_the_release_has_its_own_line(self):
        self.assertEqual(vm_kernel.newest(Sources()), ("6.1.0-11-amd64", "6.1.11-1"))

    def test_the_newest_may_have_a_package_of_its_line(self):
        sources = Sources()
        self.assertEqual(vm_kernel.newest_of_all(sources), ("6.12.11-amd64", "6.12.11-1"))
        sources.kernels = {"linux-image-amd64": Sources.kernels["linux-image-amd64"]}
        self.assertEqual(vm_kernel.newest_of_all(sources), ("6.12.9-amd64", "6.12.9-1"))

    def test_the_oldest_is_the_first_with_its_sources(self):
        self.assertEqual(vm_kernel.oldest(Sources()), ("6.1.0-10-amd64", "6.1.10-1"))

    def test_what_the_headers_need_may_be_later(self):
        self.assertEqual(vm_kernel.package_names(Sources(), vm_kernel.oldest), ("6.1.0-10-amd64", [
            "linux-image-6.1.0-10-amd64=6.1.10-1", "linux-headers-6.1.0-10-amd64=6.1.10-1",
            "linux-headers-6.1.0-10-common=6.1.10-1", "linux-kbuild-6.1", "linux-source-6.1=6.1.10-1"]))

    def test_without_any_it_says_so(self):
        sources = Sources()
        sources.built_from = {}
        with self.assertRaisesRegex(vm_kernel.Missing, "no kernel 6.1.0 with its sources"):
            vm_kernel.oldest(sources)


class ImageTest(unittest.TestCase):
    def test_archive(self):
        image = vm_image.Image()
        image.data("/a/b/file", b"12345", 0o755)
        image.link("a/link", "b/file")
        with tempfile.TemporaryDirectory() as folder:
            image.write(f"{folder}/x")
            data = Path(f"{folder}/x").read_bytes()
        found, at = {}, 0
        while at < len(data):
            self.assertEqual(data[at:at + 6], b"070701")
            fields = [int(data[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
            name = data[at + 110:at + 109 + fields[11]].decode()
            start = -(-(at + 110 + fields[11]) // 4) * 4
            found[name] = (fields[1], data[start:start + fields[6]])
            at = -(-(start + fields[6]) // 4) * 4
        self.assertEqual(found["a/b/file"], (0o100755, b"12345"))
        self.assertEqual(found["a/link"], (0o120777, b"b/file"))
        self.assertEqual(found["a/b"], (0o40755, b""))
        names = list(found)
        self.assertLess(names.index("a"), names.index("a/b"))
        self.assertEqual(names[-1], "TRAILER!!!")

    def test_a_program_may_have_another_name_in_the_guest(self):
        self.assertEqual(vm_run.named(("cmp", ("python3", "bin/other"))), [("cmp", None), ("python3", "bin/other")])

    def test_a_program_brings_its_libraries(self):
        image = vm_image.Image()
        image.program("python3")
        self.assertTrue([name for name in image.entries if "libc.so" in name], list(image.entries))
        with self.assertRaisesRegex(vm_kernel.Missing, "no-such-program is not installed"):
            image.program("no-such-program")


class DebugKernelTest(unittest.TestCase):
    def test_a_setting_that_the_sources_drop_is_named(self):
        text = vm_debug.FRAGMENT.read_text(encoding="utf-8")
        vm_debug.check_config(text)
        with self.assertRaisesRegex(vm_kernel.Missing, "do not take CONFIG_KASAN=y$"):
            vm_debug.check_config(text.replace("CONFIG_KASAN=y", "# CONFIG_KASAN is not set"))

    def test_what_is_not_set_is_n(self):
        text = vm_debug.FRAGMENT.read_text(encoding="utf-8")
        vm_debug.check_config(text.replace("CONFIG_SLOB=n", "# CONFIG_SLOB is not set"))
        with self.assertRaisesRegex(vm_kernel.Missing, "do not take CONFIG_SLOB=n$"):
            vm_debug.check_config(text.replace("CONFIG_SLOB=n", "CONFIG_SLOB=y"))

    def test_without_a_tool_it_says_so(self):
        with mock.patch.object(vm_debug.shutil, "which", lambda name: None if name == "flex" else name):
            with self.assertRaisesRegex(vm_kernel.Missing, "flex is not installed"):
                vm_debug.require_tools()


class NewerQemuTest(unittest.TestCase):
    def test_one_without_the_device_is_not_taken(self):
        """For a device that it does not have QEMU lists no options, and succeeds."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text, has in (("old", "", False), ("new", "  socket=<SocketAddress>", True)):
                path = Path(folder) / name
                path.write_text(f"#!/bin/sh\necho '{text}'\n", encoding="utf-8")
                path.chmod(0o755)
                self.assertEqual(vm_qemu.has_vfio_user([str(path)]), has)


class SkipTest(unittest.TestCase):
    def command(self, *words, **env):
        return subprocess.run([sys.executable, str(HERE / "run")] + list(words), check=False, text=True,
                              capture_output=True, env=dict(os.environ, **env))

    def test_without_qemu_it_says_so(self):
        done = self.command("link", PATH="/nonexistent")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "skipped: qemu-system-x86_64 is not installed; "
                         "scripts/setup --vm")

    def test_an_unknown_suite(self):
        done = self.command("none")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no suite none", done.stderr)

    def test_without_package_sources_it_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = Path(folder) / "bin"
            tools.mkdir()
            for name in ("qemu-system-x86_64", "apt-get", "apt-cache"):
                (tools / name).write_text("#!/bin/sh\necho E: nothing is here\nexit 100\n", encoding="utf-8")
                (tools / name).chmod(0o755)
            done = self.command("link", PATH=f"{tools}:/usr/bin:/bin", VIADUCT_VM_CACHE=f"{folder}/cache")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "skipped: apt-cache failed: E: nothing is here")


if __name__ == "__main__":
    sys.exit(unittest.main())
