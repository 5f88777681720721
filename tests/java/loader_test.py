#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Libraries that do not fit are refused when they are loaded, and the error says what to do.

usage: loader_test.py jni|ffm JAVA_HOME
"""
import ctypes.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

BUILD = Path(os.environ["JAVA_BUILD"])
os.environ.pop("LD_LIBRARY_PATH", None)  # meson names the folders of this build there
WAY, HOME = (sys.argv[1:3] + ["jni", ""])[:2]
GLUE, VIPL = "libviaduct_java.so", "libvipl.so.1"


class Loader(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def probe(self, *options, path=(BUILD / "java", BUILD / "vipl/lib"), before=(), after=(), within=(), words_after=()):
        jars = [*before, os.environ["JAVA_JAR"], os.environ["JAVA_TESTS"], *after]
        words = [f"{HOME}/bin/java", "-XX:+UseSerialGC", f"-Dorg.viaduct.backend={WAY}", f"-Djava.library.path={self.folder}",
                 f"-Djava.io.tmpdir={self.folder}", *options]
        if WAY == "ffm":
            words.append("--enable-native-access=ALL-UNNAMED")
        if path:
            words.append("-Dorg.viaduct.library.path=" + ":".join(map(str, path)))
        done = subprocess.run([*within, *words, "-cp", ":".join(map(str, jars)), "org.viaduct.vipl.Probe", *words_after], text=True,
                              capture_output=True, timeout=100, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def refused(self, said, *words):
        self.assertEqual(said.count("refused "), 2, said)  # also at the second use
        for word in words:
            self.assertIn(word, said)

    def copy(self, source, name):
        shutil.copyfile(source, self.folder / name)

    def test_loads(self):
        self.assertEqual(self.probe(), f"loaded {WAY}\n" * 2)

    def test_old_library_is_refused_with_both_versions(self):
        self.copy(BUILD / "tests/java/libjava_old.so", VIPL)
        self.refused(self.probe(path=[self.folder, BUILD / "java"]), "of version 4", "release 0.9.0", "needs version 5", VIPL)

    def test_library_of_something_else_is_refused(self):
        self.copy(BUILD / "java/libviaduct_java.so", VIPL)
        self.refused(self.probe(path=[self.folder, BUILD / "java"]), "no library of Viaduct")

    def test_file_that_is_no_library_is_refused(self):
        (self.folder / VIPL).write_text("nothing\n", encoding="utf-8")
        self.refused(self.probe(path=[self.folder, BUILD / "java"]), str(self.folder / VIPL), "Name another folder")

    def test_missing_library_names_all_places(self):
        if ctypes.util.find_library("vipl"):
            self.skipTest("a libvipl is installed in the system's folders")
        missing = GLUE if WAY == "jni" else VIPL
        self.refused(self.probe(path=["/nowhere"]), f"{missing} was not loaded", f"/nowhere/{missing}",
                     f"{self.folder}/{missing} (java.library.path): no such file", "the system's folders",
                     "META-INF/native/linux-", "no such entry", "-Dorg.viaduct.library.path=FOLDER")

    def test_folders_of_distributions_are_looked_in(self):
        # A /usr/local/lib of its own, which this process alone sees.
        script = (f"mount -t tmpfs none /usr/local/lib && mkdir /usr/local/lib/jni && cp {BUILD}/java/{GLUE} /usr/local/lib/jni"
                  f" && cp {BUILD}/vipl/lib/{VIPL} /usr/local/lib || exit 77; exec \"$@\"")
        within = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
        if subprocess.run([*within, "true"], capture_output=True, check=False, timeout=100).returncode:
            self.skipTest("no name space of mounts can be made here")
        self.assertEqual(self.probe(path=[], within=within), f"loaded {WAY}\n" * 2)

    def test_libraries_of_a_jar_are_copied_and_removed(self):
        if ctypes.util.find_library("vipl"):
            self.skipTest("a libvipl is installed in the system's folders")
        self.assertEqual(self.probe(path=[], after=[os.environ["JAVA_NATIVES"]]), f"loaded {WAY}\n" * 2)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith("viaduct")], [])

    def test_channels_of_a_jar(self):
        if ctypes.util.find_library("vipl"):
            self.skipTest("a libvipl is installed in the system's folders")
        with zipfile.ZipFile(os.environ["JAVA_NATIVES"]) as jar:
            if not any(name.endswith("/libviaduct_nio.so") for name in jar.namelist()):
                self.skipTest("this build has no sockets")
        provider = "ViaductSelectorProvider"
        said = {"vipl": f"loaded {WAY}\n", "nio": f"loaded {provider}\n"}
        for order in (["nio", "vipl"], ["vipl", "nio"]):
            got = self.probe(f"-Djava.nio.channels.spi.SelectorProvider=org.viaduct.nio.{provider}", path=[],
                             after=[os.environ["JAVA_NATIVES"]], words_after=order)
            self.assertEqual(got, "".join(said[what] for what in order) + "copies 1\n")
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith("viaduct")], [])

    def test_other_layout_is_refused(self):
        entry = "org/viaduct/vipl/spi/layout.txt"
        with zipfile.ZipFile(os.environ["JAVA_JAR"]) as jar:
            table = jar.read(entry).decode()
        other = self.folder / entry
        other.parent.mkdir(parents=True)
        other.write_text(table.replace("DESC_STATUS 28", "DESC_STATUS 32"), encoding="utf-8")
        self.refused(self.probe(before=[self.folder]), "DESC_STATUS is 32 in C and 28 here", "same release")
        other.write_text(table.replace("DESC_STATUS 28\n", ""), encoding="utf-8")
        self.refused(self.probe(before=[self.folder]), "DESC_STATUS is null in C")

    def test_other_binding_is_refused(self):
        if WAY != "jni":
            self.skipTest("the foreign function interface has no library of its own")
        self.copy(BUILD / "tests/java/libjava_other.so", GLUE)
        self.refused(self.probe(path=[self.folder, BUILD / "vipl/lib"]), "BINDING is 0 in C and 1 here")

    def test_unknown_way_is_refused(self):
        self.refused(self.probe("-Dorg.viaduct.backend=pigeon"), '"pigeon"', "ffm or jni")

    def test_denied_native_access_is_refused_with_the_option(self):
        if WAY != "ffm":
            self.skipTest("only for the foreign function interface")
        done = subprocess.run([f"{HOME}/bin/java", "--illegal-native-access=deny", "--enable-native-access=java.base",
                               f"-Dorg.viaduct.library.path={BUILD}/vipl/lib", "-cp",
                               f"{os.environ['JAVA_JAR']}:{os.environ['JAVA_TESTS']}", "org.viaduct.vipl.Probe"],
                              text=True, capture_output=True, timeout=100, check=False, stdin=subprocess.DEVNULL)
        if "Unrecognized option" in done.stderr:
            self.skipTest("this JDK cannot deny native access")
        self.refused(done.stdout, "native access is denied", "--enable-native-access=org.viaduct")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
