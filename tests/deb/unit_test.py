#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The units of systemd and their generator.  Arguments: packaging/systemd viaductd [TEST...]."""
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

UNITS, AGENT = map(os.path.abspath, sys.argv[1:3])
USER = pwd.getpwuid(os.geteuid()).pw_name
INSTALLED = "/usr/libexec/viaduct/viaductd"


class Generator(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.settings = Path(self.folder.name, "viaduct")
        self.drop_in = Path(self.folder.name, "viaductd.socket.d/address.conf")

    def run_it(self, text=None, user=USER, code=0):
        if text is not None:
            self.settings.write_text(text, encoding="utf-8")
        done = subprocess.run([f"{UNITS}/viaductd-generator", self.folder.name, "early", "late"], check=False,
                              capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "VIADUCTD_USER": user,
                                   "VIADUCTD_SETTINGS": str(self.settings)})
        self.assertEqual(done.returncode, code, done)
        if code or not self.drop_in.exists():
            self.assertFalse(self.drop_in.exists())
            return done.stderr
        text = self.drop_in.read_text(encoding="utf-8")
        self.drop_in.unlink()
        return text

    def address(self, fabric, host):
        return f"[Socket]\nListenSequentialPacket=@viaduct/{os.geteuid()}/{fabric}/host{host}\n"

    def test_settings(self):
        self.assertEqual(self.run_it(), self.address("system", 0))
        self.assertEqual(self.run_it(Path(UNITS, "viaduct.default").read_text(encoding="utf-8")),
                         self.address("system", 0))
        self.assertEqual(self.run_it("#FABRIC=a\nFABRIC=\"b\"\nHOST_ID='63'\n"), self.address("b", 63))
        self.assertEqual(self.run_it("HOST_ID=1\nHOST_ID=2\nMY_FABRIC=x\n"), self.address("system", 2))

    def test_nobody(self):
        self.assertEqual(self.run_it(user="no-such-user"), "")

    def test_what_is_refused(self):
        for text, why in (("HOST_ID=64", "no number from 0 to 63"), ("HOST_ID=-1", "no number"),
                          ("HOST_ID=1x", "no number"), ("FABRIC=a/b", "characters other than"),
                          ("FABRIC=a b", "characters other than"), (f"FABRIC={'a' * 64}", "more than 63")):
            self.assertIn(why, self.run_it(text + "\n", code=1))
        self.assertEqual(self.run_it(f"FABRIC={'a' * 63}\n"), self.address("a" * 63, 0))


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class Units(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("viaductd.service", "viaductd.socket"):
            text = Path(UNITS, name).read_text(encoding="utf-8").replace(INSTALLED, AGENT)
            if name.endswith(".socket"):
                text += "\n[Socket]\nListenSequentialPacket=@viaduct/1/system/host0\n"
            (self.folder / name).write_text(text, encoding="utf-8")

    def analyze(self, *args):
        return subprocess.run(["systemd-analyze", *args], capture_output=True, text=True, check=False, timeout=120,
                              env=dict(os.environ, SYSTEMD_COLORS="0", LC_ALL="C.UTF-8"))

    def test_verify(self):
        for name in ("viaductd.service", "viaductd.socket"):
            done = self.analyze("verify", "--man=no", "--recursive-errors=no", str(self.folder / name))
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_exposure(self):
        done = self.analyze("security", "--offline=true", "--no-pager", "--threshold=15",
                            str(self.folder / "viaductd.service"))
        if "unrecognized option" in done.stderr:
            self.skipTest("this systemd-analyze has no --offline")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(re.search(r"exposure level for viaductd.service: (0|1)\.\d OK", done.stdout), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
