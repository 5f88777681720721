#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Maven builds the jars that Meson builds, and a project runs with these jars alone.

MAVEN_BUILD is the build folder, MAVEN_HERE a folder for Maven's output, MAVEN_JDKS the homes of
JDKs, separated by colons: one of 17 or later, and optionally one of 22 or later. Plugins come from
Debian's packages where these are installed, else from Maven's repository; without both this is
skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD, HERE = Path(os.environ["MAVEN_BUILD"]), Path(os.environ["MAVEN_HERE"])
JDKS = [Path(home) for home in os.environ["MAVEN_JDKS"].split(":") if home]
DEBIAN = Path("/usr/share/maven-repo")
# Maven needs javac: with a runtime and ECJ it makes no classes for JDK 22.
FOREIGN = [home for home in JDKS[1:] if (home / "bin/javac").exists()]
PLUGINS = ("plugins/maven-compiler-plugin/3.10.1", "plugins/maven-jar-plugin/3.3.0", "plugins/maven-resources-plugin/3.3.0",
           "plugins/maven-source-plugin/3.2.1", "plugins/maven-javadoc-plugin/3.4.1", "plugins/maven-install-plugin/3.1.0",
           "plugins/maven-enforcer-plugin/3.1.0", "plugins/maven-surefire-plugin/2.22.3")
PATIENCE = 1200
SKIP = 77
VERSION = re.search(r"<version>([^<]*)</version>", (ROOT / "java/pom.xml").read_text(encoding="utf-8")).group(1)


def from_debian():
    return all((DEBIAN / "org/apache/maven" / plugin).is_dir() for plugin in PLUGINS) and any(
        DEBIAN.glob("org/codehaus/mojo/build-helper-maven-plugin/3.3.0"))


def maven(project, out, *words):
    """Runs Maven on a project; returns its status and output."""
    command = ["mvn", "-B", "-ntp", f"-Dmaven.repo.local={HERE / 'repository'}", "-f", str(ROOT / project / "pom.xml"),
               f"-Dbuild.folder={HERE / out}", *words]
    if from_debian():
        command[1:1] = ["-s", str(ROOT / "packaging/maven/debian-settings.xml")]
    done = subprocess.run(command, env={**os.environ, "JAVA_HOME": str(JDKS[0])}, text=True, timeout=PATIENCE, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def jar(out, name, kind=""):
    return HERE / out / f"{name}-{VERSION}{kind}.jar"


def entries(path):
    """{file of a jar: its bytes}"""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


class Maven(unittest.TestCase):
    def fabric(self, env, *words):
        subprocess.run([BUILD / "tools/vi_fabric", *words], env=env, check=True, timeout=PATIENCE,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def test_classes_are_those_of_meson(self):
        ours, theirs = entries(BUILD / "java/viaduct.jar"), entries(jar("viaduct", "viaduct"))
        added = {name for name in theirs if name.startswith("META-INF/maven/")}
        if not FOREIGN:
            ours = {name: data for name, data in ours.items() if not name.startswith("META-INF/versions/")}
        self.assertEqual(set(theirs) - added, set(ours))
        self.assertIn(b"Multi-Release: true", theirs["META-INF/MANIFEST.MF"])
        self.assertEqual(any(name.startswith("META-INF/versions/22/") for name in theirs), bool(FOREIGN))
        # The classes of a module or a package have their constants in a different order.
        compared = [name for name in ours if not name.endswith(("-info.class", "MANIFEST.MF"))]
        self.assertEqual([name for name in compared if ours[name] != theirs[name]], [])
        self.assertGreater(len(compared), 60)

    def test_sources_and_documentation(self):
        self.assertIn("org/viaduct/vipl/Vi.java", entries(jar("viaduct", "viaduct", "-sources")))
        pages = entries(jar("viaduct", "viaduct", "-javadoc"))
        self.assertTrue(any(name.endswith("org/viaduct/vipl/Vi.html") for name in pages))
        self.assertFalse(any("/spi/" in name for name in pages), "what is not exported is described")

    def test_missing_parts_of_c_are_named(self):
        status, said = maven("java", "nothing", "-Dviaduct.build=/nowhere", "validate")
        self.assertNotEqual(status, 0)
        for word in ("/nowhere/java/layout.txt", "meson setup", "ninja -C build"):
            self.assertIn(word, said)

    def start(self, env, home, host, *words):
        path = ":".join(map(str, (jar("viaduct", "viaduct"), self.natives(), jar("examples", "viaduct-examples"))))
        command = [home / "bin/java", "-Xmx200m", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={self.folder}"]
        if home != JDKS[0]:
            command.append("--enable-native-access=ALL-UNNAMED")
        program = subprocess.Popen([*command, "-cp", path, "org.viaduct.examples.Hello", *words], text=True,
                                   env={**env, "VIADUCT_HOST": host}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, program)
        return program

    @staticmethod
    def natives():
        found = list((HERE / "repository/org/viaduct/viaduct" / VERSION).glob("*-natives-linux-*.jar"))
        assert len(found) == 1, found
        return found[0]

    @staticmethod
    def end(program):
        if program.poll() is None:
            program.kill()
        program.communicate()

    def test_hello_runs_from_these_jars_alone(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("VIADUCT_", "LD_"))}
        env = {**clean, "VIADUCT_AGENT": str(BUILD / "provider/agent/viaductd"), "VIADUCT_FABRIC": f"maven-{os.getpid()}"}
        self.fabric(env, "up", "--hosts", "2")
        self.addCleanup(self.fabric, env, "down")
        for home in JDKS:
            programs = [self.start(env, home, "host1"), self.start(env, home, "host0", "host1")]
            said = [program.communicate(timeout=PATIENCE) for program in programs]
            self.assertEqual([out for out, _ in said], ["hello from host0\n", "hello from host1\n"], said)
            self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith("viaduct")], [])


def main():
    if not shutil.which("mvn"):
        print("skipped: mvn is not installed")
        return SKIP
    for name in ("viaduct", "examples"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    newest = [f"-Djdk22.home={home}" for home in FOREIGN]
    status, said = maven("java", "viaduct", f"-Dviaduct.build={BUILD}", *newest, "install")
    if status == 0:
        status, said = maven("examples/java", "examples", "package")
    if status:
        if re.search(r"Could not (transfer|find) artifact|could not be resolved|UnresolvableModel", said):
            print("skipped: Maven has no plugins: neither Debian's packages nor Maven's repository can be had")
            return SKIP
        print(said)
        return 1
    return 0 if unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
