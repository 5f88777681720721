#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vi_fabric: up, status, changes, down, wrong usage.  Arguments: vi_fabric viaductd [TEST...]."""
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

PATIENCE = limit(60)
TOOL, AGENT = map(os.path.abspath, sys.argv[1:3])
NAME = f"vf{os.getpid()}"


def environment(agent=AGENT):
    env = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
    return {**env, "VIADUCT_AGENT": agent, "VIADUCT_FABRIC": NAME}


def run(*args, code=0, **variables):
    done = subprocess.run([TOOL, *args], env={**environment(), **variables}, capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def ask_status():
    return subprocess.run([TOOL, "status", "--json"], env=dict(os.environ, VIADUCT_FABRIC=NAME), capture_output=True, text=True,
                          timeout=PATIENCE, check=False)


def status(code=0):
    done = ask_status()
    assert done.returncode == code, done
    return json.loads(done.stdout)


def awaited_status():
    """Its status when all links are up, which takes a moment."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done = ask_status()
        if done.returncode == 0:
            return json.loads(done.stdout)
    raise AssertionError(done)


def host_of(number):
    """What the status says of a host that is up, perhaps not all others; {}: it is not."""
    done = ask_status()
    hosts = json.loads(done.stdout)["hosts"] if done.stdout else []
    return next((host for host in hosts if host["id"] == number and host["agent"] == "up"), {})


def agents():
    """A line "- PID ARGUMENTS" for each agent of this fabric, without ps, which not all systems have."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as text:
                line = text.read().replace("\0", " ")
        except OSError:  # it has ended
            continue
        if f"--fabric {NAME} " in line:  # one that has ended, but was not waited for, has no arguments
            found.append(f"- {pid} {line}")
    return found


def agent_pid(host):
    return next(int(line.split()[1]) for line in agents() if f" --host-id {host} " in line)


def kill_agent(host):
    pid = agent_pid(host)
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([ended], [], [], PATIENCE)
    os.close(ended)


def variables_of(pid):
    with open(f"/proc/{pid}/environ", encoding="utf-8") as text:
        pairs = (item.partition("=") for item in text.read().split("\0"))
        return {k: v for k, _, v in pairs if k.startswith("VIADUCT_") and
                k not in ("VIADUCT_AGENT", "VIADUCT_FABRIC")}


def agent_that_waits(scratch, host, command):
    """The path of an agent that runs this shell command first where it is that of the host."""
    path = os.path.join(scratch, "agent")
    with open(path, "w", encoding="utf-8") as script:
        script.write(f'#!/bin/sh\ncase "$*" in *--check*) ;; *"--host-id {host} "*)\n{command}\n;; esac\nexec "{AGENT}" "$@"\n')
    os.chmod(path, 0o755)
    return path


class FabricCase(unittest.TestCase):
    def tearDown(self):
        for line in agents():
            os.kill(int(line.split()[1]), signal.SIGCONT)
        subprocess.run([TOOL, "down", "--name", NAME], capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(agents(), [])


class Fabric(FabricCase):
    def test_sizes(self):
        for hosts in (1, 2, 3, 8):
            self.assertIn(f"{hosts} host", run("up", "--hosts", str(hosts)))
            self.assertEqual(len(agents()), hosts)
            found = status()
            self.assertEqual((found["schema"], found["schema_version"]), ("viaduct.fabric", 1))
            self.assertEqual([h["id"] for h in found["hosts"]], list(range(hosts)))
            for host in found["hosts"]:
                self.assertEqual({p["link"] for p in host["ports"]}, {"up"})
                self.assertEqual(len(host["ports"]), min(hosts, 3))
            run("down")
            self.assertEqual(agents(), [])

    def test_options_reach_the_agents(self):
        run("up", "--hosts", "3", "--names", "a,b,c", "--alias", "head=a", "--device-alias",
            "/dev/clanvi0=2", "--window", "32M", "--doorbells", "8", "--scratchpads", "12",
            "--port", "emu+strict")
        found = status()
        self.assertEqual([h["name"] for h in found["hosts"]], ["a", "b", "c"])
        port = found["hosts"][1]["ports"][2]
        self.assertEqual((port["window_bytes"], port["db_bits"], port["spads"], port["kind"]),
                         (32 << 20, 8, 12, "emu+strict"))
        self.assertEqual({(a["name"], a["kind"], a["host"]) for a in found["aliases"]},
                         {("head", "host", 0), ("/dev/clanvi0", "device", 2)})
        run("alias", "tail=c")
        run("device", "VINIC=head")
        self.assertEqual({(a["name"], a["host"]) for a in status()["aliases"]},
                         {("head", 0), ("tail", 2), ("/dev/clanvi0", 2), ("VINIC", 0)})
        self.assertIn("no such host", run("alias", "x=nobody", code=1))

    def test_links(self):
        run("up", "--hosts", "3")
        run("link", "host0", "right", "down")
        text = status(code=1)
        self.assertEqual(text["hosts"][0]["ports"][2]["link"], "down")
        run("link", "0", "right", "up")
        self.assertIn("no host z", run("link", "z", "left", "down", code=1))
        self.assertIn("no port front", run("link", "0", "front", "down", code=1))
        run("link", "0", "left", "sideways", code=2)

    def test_dead_agent_is_shown(self):
        run("up", "--hosts", "3")
        kill_agent(1)
        self.assertEqual(status(code=1)["hosts"][1]["agent"], "down")

    def test_one_host(self):
        run("up", "--hosts", "4", "--names", "a,b,c,d", "--window", "32M", VIADUCT_SLOTS="64")
        run("alias", "bee=b")
        run("device", "VINIC=c")
        before = [(h["name"], [(p["name"], p["link"], p["window_bytes"]) for p in h["ports"]])
                  for h in status()["hosts"]]
        self.assertEqual(run("stop", "c"), f"host c of fabric {NAME} is down\n")
        self.assertIn("has no agent", run("stop", "c", code=1))
        self.assertEqual(status(code=1)["hosts"][2]["agent"], "down")
        kill_agent(1)
        self.assertIn("is up: 1 link\n", run("start", "b", VIADUCT_SLOTS="32", VIADUCT_RING_BYTES="8192"))
        self.assertIn("is up already", run("start", "bee", code=1))
        self.assertIn("is up: 2 links\n", run("start", "2"))
        self.assertEqual(before, [(h["name"], [(p["name"], p["link"], p["window_bytes"]) for p in h["ports"]])
                                  for h in status()["hosts"]])
        # Host 0 ends: the others tell its successor the settings with which it was not started.
        run("stop", "a")
        run("start", "a")
        self.assertEqual({(a["name"], a["kind"], a["host"]) for a in status()["aliases"]},
                         {("bee", "host", 1), ("VINIC", "device", 2)})
        for line in agents():
            self.assertEqual(variables_of(int(line.split()[1])), {"VIADUCT_SLOTS": "64"}, line)
        self.assertIn("no host e;", run("start", "e", code=1))
        run("down")
        self.assertIn("is not up", run("start", "a", code=1))
        self.assertIn("is not up", run("stop", "a", code=1))

    def test_a_host_beside_agents_started_by_hand(self):
        with tempfile.NamedTemporaryFile("w", suffix=".links") as links:
            print("0-1", "1-2", sep="\n", file=links, flush=True)
            for variables, arguments in (({"VIADUCT_TOPOLOGY": "chain"}, []),
                                         ({}, ["--topology", f"file:{links.name}"])):
                ready, write = os.pipe()
                with subprocess.Popen([AGENT, "--fabric", NAME, "--host-i=0", "--hosts", "3",
                                       "--rea", str(write), *arguments], pass_fds=[write],
                                      env={**environment(), **variables}) as agent:
                    os.close(write)
                    try:
                        self.assertEqual(os.read(ready, 100), b"ready\n")
                        self.assertIn("is up: 1 link\n", run("start", "1"))
                        self.assertIn("is up: 1 link\n", run("start", "2"))
                        run("down")
                    finally:
                        agent.kill()
                os.close(ready)

    def test_foreground(self):
        env = dict(os.environ, VIADUCT_AGENT=AGENT, VIADUCT_FABRIC=NAME)
        with subprocess.Popen([TOOL, "up", "--foreground"], env=env, stdout=subprocess.PIPE,
                              text=True) as tool:
            self.assertIn("is up", tool.stdout.readline())
            tool.send_signal(signal.SIGTERM)
            self.assertEqual(tool.wait(PATIENCE), 0)
        self.assertEqual(agents(), [])

    def test_foreground_whose_reader_is_gone(self):
        # Links are up a moment before the tool sees it; a signal in that moment interrupts its start.
        for _ in range(20):
            reader, writer = os.pipe()
            os.close(reader)
            with subprocess.Popen([TOOL, "up", "--foreground"], env=environment(), stdout=writer, stderr=subprocess.PIPE,
                                  text=True) as tool:
                os.close(writer)
                awaited_status()
                tool.send_signal(signal.SIGTERM)
                said = tool.communicate(timeout=PATIENCE)[1]
            self.assertEqual(tool.returncode, 1)
            self.assertEqual(agents(), [])
            if "interrupted" not in said:
                break
        self.assertIn("writing to standard output: Broken pipe", said)

    def test_up_that_is_interrupted_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as scratch:
            there, go_on = (os.path.join(scratch, name) for name in ("there", "go_on"))
            for name in (there, go_on):
                os.mkfifo(name)
            agent = agent_that_waits(scratch, 2, f'echo >"{there}"; read -r line <"{go_on}"')
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with subprocess.Popen([TOOL, "up", "--hosts", "4"], env=environment(agent),
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True) as tool:
                    with open(there, encoding="utf-8") as word:
                        word.read()
                    self.assertEqual(len(agents()), 3)
                    tool.send_signal(number)
                    with open(go_on, "w", encoding="utf-8") as word:
                        print(file=word)
                    out, said = tool.communicate(timeout=PATIENCE)
                self.assertEqual((tool.returncode, out), (1, ""), said)
                self.assertEqual(said, "vi_fabric: interrupted; what was started is stopped again\n")
                self.assertEqual(agents(), [])

    def test_up_without_descriptors_leaves_nothing(self):
        for most in (4, 8, 16, 24, 39):
            done = subprocess.run([TOOL, "up", "--hosts", "3"], env=environment(), capture_output=True, text=True,
                                  timeout=PATIENCE, check=False,
                                  preexec_fn=lambda n=most: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertIn(f"no file descriptor left (limit {most}); raise it with ulimit -n", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertEqual(agents(), [])
        # With as many descriptors as it asks for it has some left for tools.
        subprocess.run([TOOL, "up", "--hosts", "3"], env=environment(), capture_output=True, timeout=PATIENCE, check=True,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
        self.assertEqual({h["agent"] for h in status()["hosts"]}, {"up"})

    def test_up_takes_over_from_an_idle_agent(self):
        ready, write = os.pipe()
        with subprocess.Popen([AGENT, "--ready-fd", str(write), "--fabric", NAME, "--on-demand", "--grace-ms",
                               "3600000"], pass_fds=[write], env=environment()) as idle:
            os.close(write)
            self.assertEqual(os.read(ready, 100), b"ready\n")
            os.close(ready)
            self.assertEqual([h["agent"] for h in status()["hosts"]], ["up"])
            self.assertIn("is up: 3 hosts", run("up", "--hosts", "3"))
            self.assertEqual(idle.wait(PATIENCE), 0)
        self.assertEqual(len(agents()), 3)
        self.assertIn("is up already", run("up", code=1))
        self.assertEqual(len(agents()), 3)

    @staticmethod
    def asked_with_as_many_descriptors_as_are_open():
        for host in range(3):
            pid = agent_pid(host)
            used = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
            lowest = min(set(range(len(used) + 1)) - used)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, lowest))
        return subprocess.run([TOOL, "status"], env=environment(), capture_output=True, text=True, timeout=PATIENCE,
                              check=False).stderr

    def test_down_without_descriptors_to_be_asked(self):
        run("up", "--hosts", "3")
        awaited_status()
        # An agent may still be closing the descriptor of a tool that has ended: then it has one to spare.
        deadline = time.monotonic() + PATIENCE
        while "the agent has no file descriptor left (limit " not in self.asked_with_as_many_descriptors_as_are_open():
            self.assertLess(time.monotonic(), deadline)
        run("down")
        self.assertEqual(agents(), [])

    @unittest.skipIf(os.geteuid() != 0, "needs root to become somebody else")
    def test_others_are_told_whose_fabric_it_is(self):
        other = {"user": 31337, "group": 31337, "extra_groups": []}
        try:
            subprocess.run(["test", "-x", os.path.abspath(TOOL)], check=True, **other)
        except (PermissionError, subprocess.CalledProcessError):  # or they may run none at all
            self.skipTest("other users may not run programs where the build lies")
        run("up", "--hosts", "2")
        env = {**environment(), "VIADUCT_FABRIC": f"0:{NAME}"}
        for args in (["down"], ["status"], ["stop", "1"], ["start", "1"], ["alias", "x=1"], ["link", "0", "right", "down"]):
            done = subprocess.run([TOOL, *args], env=env, capture_output=True, text=True, timeout=PATIENCE, check=False,
                                  **other)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertEqual(done.stderr, f"vi_fabric: fabric {NAME} belongs to uid 0 and is not open to uid 31337\n")
        self.assertEqual(len(agents()), 2)

    def test_wrong_use(self):
        self.assertIn("is not up", run("down", code=1))
        self.assertIn("is not up", run("status", code=1))
        self.assertIn("is not up", run("alias", "a=b", code=1))
        run("up")
        self.assertIn("is up already", run("up", code=1))
        run("down")
        self.assertIn("1 name for 2 hosts", run("up", "--names", "a", code=2))
        for wrong in ([], ["sideways"], ["up", "--hosts", "0"], ["up", "--hosts", "65"],
                      ["up", "x"], ["up", "--json"], ["down", "--hosts", "2"], ["link"], ["start"], ["stop", "a", "b"],
                      ["up", "--window", "big"], ["up", "--doorbells", "1"],
                      ["up", "--scratchpads", "7"], ["--sideways"], ["status", "--name", "a/b"], ["up", "-x"],
                      ["up", "--topology"], ["status", "--json=yes"], ["up", "--do", "4", "--na", "a"]):
            said = run(*wrong, code=2)
            self.assertTrue(said.startswith("vi_fabric:") and said.count("\n") == 1, said)
        self.assertIn("no option --sideways;", run("--sideways", code=2))
        self.assertIn("--topology needs an argument;", run("up", "--topology", code=2))
        self.assertEqual(run("up", "--relay-threads", "9", code=2),
                         "vi_fabric: --relay-threads '9' is not a number from 1 to 8; see --help\n")

    def test_wrong_use_of_the_agent(self):
        for wrong, text in ((["--sideways"], "no option --sideways"), (["-x"], "no option -x"),
                            (["sideways"], "no argument 'sideways'"),
                            (["--hosts"], "--hosts needs an argument"),
                            (["--check=yes"], "--check takes no argument")):
            done = subprocess.run([AGENT, *wrong], env=environment(), capture_output=True,
                                  text=True, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done)
            self.assertTrue(done.stderr.startswith(f"viaductd: {text}"), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_help_and_version(self):
        self.assertIn("Usage: vi_fabric", run("--help"))
        self.assertRegex(run("--version"), r"^vi_fabric \(Viaduct\) \d+\.\d+")


class Patience(FabricCase):
    """What the tools wait some seconds for."""

    def test_a_host_whose_link_is_pulled(self):
        run("up", "--hosts", "3")
        run("link", "0", "right", "down")
        run("stop", "1")
        self.assertIn("its link left to host 0 is not", run("start", "1", code=1))
        run("link", "0", "right", "up")
        self.assertEqual(awaited_status()["hosts"][1]["agent"], "up")

    def test_agent_that_is_stopped(self):
        run("up", "--hosts", "3")
        pid = agent_pid(0)
        os.kill(pid, signal.SIGSTOP)
        found = status(code=1)["hosts"]
        self.assertEqual([h["agent"] for h in found], ["silent", "up", "up"])
        self.assertEqual([h["name"] for h in found], ["host0", "host1", "host2"])
        self.assertIn(f"(pid {pid}) did not answer", found[0]["error"])
        self.assertEqual([len(h["ports"]) for h in found[1:]], [3, 3])
        self.assertIn("the other hosts were told", run("alias", "x=host2", code=1))
        self.assertIn("is up already", run("up", code=1))
        # Other hosts are stopped and started while it does not answer; only commands about it mention it.
        run("stop", "x")
        self.assertIn("is up: 1 link\n", run("start", "host2"))
        self.assertIn(f"(pid {pid}) did not answer", run("start", "host0", code=1))
        self.assertEqual(run("stop", "host0"), f"host host0 of fabric {NAME} is down\n")
        self.assertIn("is up: 2 links\n", run("start", "host0"))
        self.assertEqual({h["agent"] for h in status()["hosts"]}, {"up"})

    def test_down_with_agents_that_are_stopped(self):
        for which in ((0,), (0, 1, 2)):
            run("up", "--hosts", "3")
            for host in which:
                os.kill(agent_pid(host), signal.SIGSTOP)
            run("down")
            self.assertEqual(agents(), [])
        run("up", "--hosts", "2")
        for host in range(2):
            os.kill(agent_pid(host), signal.SIGSTOP)
        said = run("status", code=1)
        self.assertIn("hosts 0 1 are silent", said)
        self.assertEqual(run("stop", "host1"), f"host host1 of fabric {NAME} is down\n")

    def test_up_with_an_agent_that_stands_for_a_while(self):
        """It takes longer than other waits for agents; the hosts after it come up in that time."""
        with tempfile.TemporaryDirectory() as scratch:
            agent = agent_that_waits(scratch, 3, f'while ! [ -e "{scratch}/stopped" ]; do sleep 0.01; done')
            with subprocess.Popen([TOOL, "up", "--hosts", "5"], env=environment(agent), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as tool:
                # Its links are up: what it is waited for is an answer.
                while [port["link"] for port in host_of(1).get("ports", [])] != ["up"] * 3:
                    self.assertIsNone(tool.poll())
                stopped = agent_pid(1)
                os.kill(stopped, signal.SIGSTOP)
                Path(scratch, "stopped").touch()
                with self.assertRaises(subprocess.TimeoutExpired):
                    tool.wait(12)
                os.kill(stopped, signal.SIGCONT)
                out, said = tool.communicate(timeout=PATIENCE)
            self.assertEqual((tool.returncode, said), (0, ""), out)
            self.assertEqual({h["agent"] for h in status()["hosts"]}, {"up"})


# The program that started the test may ignore these signals; programs that the test starts must not.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
