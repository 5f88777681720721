#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Suites that come with the sources of programs: each returns the set of tests that failed.

They are unpacked, and some of them built, by scripts/suite-sources; SOCK_SOURCES is the folder, if not .cache/suites.
"""
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scene import Missing, need

ROOT = Path(__file__).resolve().parents[2]


def source(pattern, made=""):
    """The folder of a source package, in which `made` was built."""
    folder = Path(os.environ.get("SOCK_SOURCES", ROOT / ".cache/suites")).resolve()
    found = sorted(folder.glob(f"{pattern}/{made}"))
    if not found:
        raise Missing(f"there is no {pattern}/{made} in {folder}, which scripts/suite-sources fills")
    return found[-1]


def cpython(*modules):
    def suite(scene):
        python = shutil.which("/usr/bin/python3")
        if not python or subprocess.run([python, "-c", "import test.test_socket"], capture_output=True,
                                        check=False).returncode != 0:
            raise Missing("libpython3.11-testsuite is not installed")
        # Tests of AF_VSOCK wait for ever on machines without it, with and without this library.
        done = scene.run(python, "-m", "test", "-v", "-u", "network", "-i", "*VSOCK*", *modules,
                         cwd=scene.folder)
        failed = set(re.findall(r"^(?:FAIL|ERROR): (\S+ \(\S+\))", done.stdout, re.MULTILINE))
        return failed or ({f"status {done.returncode}"} if done.returncode else set())
    return suite


def libevent(back_end, *groups):
    """Its regression tests with one back end; tests that fail run once more, since many have time limits."""
    def suite(scene):
        regress = source("libevent-*", "test/regress")
        others = [f"EVENT_NO{name}=1" for name in ("EPOLL", "POLL", "SELECT") if name != back_end]
        command = ("env", "EVENT_NOEPOLLFD=1", *others, regress)

        def failures(*tests):
            said = scene.run(*command, *tests, cwd=scene.folder).stdout
            failed, group = set(), None
            for line in said.splitlines():
                begin = re.match(r"(\w+/\w+): ", line)
                group = begin.group(1) if begin else group
                if line.endswith("FAILED]"):
                    failed.add(group)
            if not re.search(r"\d+ tests ok|TESTS FAILED", said):
                failed.add(f"no end: {said[-200:]}")
            return failed
        failed = failures(*groups)
        return failures(*sorted(failed)) if failed else failed
    return suite


def failures_of(paths, run, patience):
    """The names of programs for which run(path, number, timeout=...) fails, run in parallel and then again alone."""
    def passes(number, path):
        try:
            return run(path, number, timeout=patience).returncode == 0
        except subprocess.TimeoutExpired:
            return False
    with ThreadPoolExecutor(4) as pool:
        failed = [path for path, good in zip(paths, pool.map(passes, range(len(paths)), paths)) if not good]
    return {path.name for path in failed if not passes(len(paths), path)}


# These need an outside network, names of this machine, or another version.
NODE_NOT = ("internet", "dns-", "autoselectfamily", "perf_hooks")


def node_suite(kind):
    """Node's own tests: each is a program, and another version of Node may fail some even without the library."""
    def suite(scene):
        need("node")
        folder = source("node*-*", "test/parallel")

        def run(path, number, timeout):
            flags = re.findall(r"^// Flags: (.*)$", path.read_text(errors="replace"), re.MULTILINE)
            env = {**scene.env, "NODE_TEST_DIR": str(scene.folder), "TEST_THREAD_ID": str(number)}
            return scene.run("node", *" ".join(flags).split(), path, cwd=folder, timeout=timeout, env=env)
        paths = sorted(folder.glob(f"test-{kind}-*.js"))
        return failures_of([path for path in paths if not any(word in path.name for word in NODE_NOT)], run, 60)
    return suite


# Short tests that are about connections; those of replication also fork.
REDIS_UNITS = {
    "unit": ("auth", "protocol", "quit", "pubsub", "pubsubshard", "multi", "networking", "tracking", "querybuf", "obuf-limits",
             "pendingquerybuf", "client-eviction", "introspection", "limits", "scan", "info", "wait", "pause", "type/list",
             "type/stream", "shutdown", "replybufsize"),
    "integration": ("block-repl", "replication-2", "replication-3", "redis-cli", "redis-benchmark", "aof", "rdb"),
}


def redis_tests(kind):
    """The tests of redis that start servers of their own, run with Debian's programs; without the slow ones."""
    def suite(scene):
        need("tclsh", "redis-server", "redis-cli")
        folder = source("redis-*", "runtest").parent
        for name in ("server", "cli", "benchmark", "check-rdb", "check-aof"):
            link = folder / f"src/redis-{name}"
            if not link.exists():
                link.symlink_to(shutil.which(f"redis-{name}"))
        units = [arg for name in REDIS_UNITS[kind] for arg in ("--single", f"{kind}/{name}")]
        # This test sends through two connections, and waits for ever if the second one's command is served first.
        left_out = "BRPOPLPUSH with multiple blocked clients"
        done = scene.run("./runtest", "--clients", 2, "--tags", "-slow", "--skiptest", left_out, *units, cwd=folder,
                         timeout=1200)
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
        failed = set(re.findall(r"^\[(?:err|exception)\]: (.+?)(?: in tests/.*)?$", said, re.MULTILINE))
        return failed or (set() if "All tests passed without errors" in said else {f"no end: {said[-200:]}"})
    return suite


def memcached_tests(scene):
    """The tests of memcached."""
    folder = source("memcached-*", "memcached-debug").parent

    def run(path, _, timeout):
        return scene.run("perl", path.relative_to(folder), cwd=folder, timeout=timeout)
    return failures_of(sorted(folder.glob("t/*.t")), run, 400)


def curl_tests(scene):
    """The first of curl's tests, which are for HTTP, FTP, IMAP, POP3 and SMTP, against servers of its own: the numbers of
    those that failed."""
    need("perl")
    folder = source("curl-*", "tests/server/sws").parents[1]
    done = scene.run("perl", f"-I{folder}", "runtests.pl", "-n", "-a", "-am", 1, "to", 300, cwd=folder,
                     timeout=1500)
    return set(re.findall(r"^FAIL: (\d+)", done.stdout, re.MULTILINE)) | (
        set() if "TESTDONE" in done.stdout else {f"no end: {done.stdout[-200:]}"})
