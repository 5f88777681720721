#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs of others on sockets over VIs, each run plain, with promotion off, and with promotion at once.

    run_suites.py names | gating | NAME...

names: of all suites, one a line; gating: of those that a change must pass.  A suite passes when it fails nowhere, in two runs, that it did not fail in the plain run, and the statistics of the last
run show bytes over VIs; those of a suite that opens no TCP connection show none, which the table says.  What a suite needs
and is not installed makes it skipped, with the reason; exit 77 when all are.  SOCK_BUILD is the build folder.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from scene import Missing, Scene
from sock_test import Fabric
import suites_programs as programs
import suites_sources as sources

MODES = ("plain", "never", "eager")
SKIPPED = 77

# Tests that fail with promotion at once, and the reasons; docs/sockets.md, section 11, says more.
EXPECTED = {
    "http/close_detection": "a client that is promoted at once waits for its server, which is the same thread",
    "http/close_detection_delay": "likewise",
    "http/bad_request": "it gives an answer and the end of the connection 10 ms",
}

# Groups of tests of sockets to the outside world, or between processes that the suite starts: more
# than one word of regress each.
LIBEVENT = ("main/..", "listener/..", "bufferevent/..", "http/..", "rpc/..")

# Name: the suite, whether it opens TCP connections that are promoted or why these are not, whether a change must pass it:
# those are short, need no user but that of the test, and packages that start no service.
SUITES = {
    "test_epoll": (sources.cpython("test_epoll"), True, True),
    "test_socketserver": (sources.cpython("test_socketserver"), True, False),
    "test_socket": (sources.cpython("test_socket"), True, False),
    "test_selectors": (sources.cpython("test_selectors"), False, False),
    "test_select": (sources.cpython("test_select"), False, False),
    "test_poll": (sources.cpython("test_poll"), False, False),
    "redis": (programs.redis, True, False),
    "memcached": (programs.memcached, True, False),
    "nginx": (programs.nginx, True, False),
    "iperf3": (programs.iperf3, True, True),
    "apache_prefork": (programs.apache("prefork"), True, False),
    "apache_event": (programs.apache("event"), True, False),
    "load": (programs.load, True, False),
    "ssh": (programs.ssh, "sshd executes itself for each connection, and nobody tells it about the socket", False),
    "rsync": (programs.rsync, True, False),
    "socat": (programs.socat, True, True),
    "java": (programs.java, True, True),
    "node": (programs.node, True, False),
    "stress_ng": (programs.stress_ng, True, False),
    "libevent_epoll": (sources.libevent("EPOLL", *LIBEVENT), True, False),
    "libevent_poll": (sources.libevent("POLL", *LIBEVENT), True, False),
    "libevent_select": (sources.libevent("SELECT", *LIBEVENT), True, False),
    "redis_units": (sources.redis_tests("unit"), True, False),
    "redis_integration": (sources.redis_tests("integration"), True, False),
    "memcached_tests": (sources.memcached_tests, True, False),
    "curl_tests": (sources.curl_tests, True, False),
    "node_net": (sources.node_suite("net"), True, False),
    "node_http": (sources.node_suite("http"), True, False),
}


def play(suite, mode):
    become = getattr(suite, "become", ()) if os.geteuid() == 0 else ()
    with Fabric(become=become) as fabric, tempfile.TemporaryDirectory() as folder:
        if become:
            shutil.chown(folder, "nobody", "nogroup")
        scene = Scene(mode, folder, fabric)
        try:
            failed = suite(scene)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed = {str(error)[:200]}
        finally:
            scene.finish()
        return failed, scene.counts()


def judge(name):
    """Runs a suite; returns a line and the status of an exit."""
    suite, tcp, _ = SUITES[name]
    plain, failed, once, counts = set(), set(), set(), {}
    for mode in MODES:
        try:
            failed, counts = play(suite, mode)
            more = failed - plain - (EXPECTED.keys() if mode == "eager" else set())
            if mode != "plain" and more:
                # Many tests have time limits: one counts as failed if it fails in the next run, too.
                again, counts = play(suite, mode)
                once |= more - again
                more &= again
        except Missing as reason:
            return f"skipped {name}: {reason}", SKIPPED
        if mode == "plain":
            plain = failed
        elif more:
            return f"FAILED  {name}, {mode}: {', '.join(sorted(more))}", 1
    moved = counts.get("vi_bytes_received", 0) + counts.get("vi_bytes_sent", 0)
    if tcp is True and moved == 0:
        return f"FAILED  {name}: no byte went over a VI: {counts.get('reasons')}", 1
    what = f"{moved} bytes over VIs, {counts.get('promoted', 0)} promoted, {counts.get('demoted', 0)} demoted"
    if tcp is not True:
        what = f"no byte over VIs: {tcp}" if tcp else "it opens no TCP connection"
    notes = {"fails plainly": plain, "expected": (failed - plain) & EXPECTED.keys(), "failed once": once}
    also = "".join(f"; {key}: {', '.join(sorted(names))}" for key, names in notes.items() if names)
    return f"ok      {name}: {what}{also}", 0


def timed(name):
    began = time.monotonic()
    verdict = judge(name)
    return time.monotonic() - began, verdict


def main(words):
    if words in (["names"], ["gating"]):
        print("\n".join(name for name, (_, _, gates) in SUITES.items() if gates or words == ["names"]))
        return 0
    if not words or any(name not in SUITES for name in words):
        print(__doc__)
        return 2
    ends = set()
    # Most suites wait most of the time.
    with ThreadPoolExecutor(min(len(words), os.cpu_count())) as pool:
        for seconds, (line, status) in pool.map(timed, words):
            print(f"{line} ({seconds:.0f} s)", flush=True)
            ends.add(status)
    return 1 if 1 in ends else min(ends)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
