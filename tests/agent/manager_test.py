#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""viaductd under a service manager: sockets handed over, readiness.  Arguments: vi_fabric vi_info viaductd [TEST...]."""
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from limit import limit  # noqa: E402  after its path

FABRIC, INFO, AGENT = map(os.path.abspath, sys.argv[1:4])
WAIT = limit(60)
# Descriptors of the test become 3, 4, ... of the program; only the shell knows its process id.
HAND_OVER = """
n=3
for fd in $HANDED; do eval "exec $n<&$fd"; n=$((n + 1)); done
[ -n "${LISTEN_PID:-}" ] || export LISTEN_PID=$$
unset HANDED
exec "$@"
"""


def address(name, host=0):
    return f"\0viaduct/{os.geteuid()}/{name}/host{host}"


def listening(name, kind=socket.SOCK_SEQPACKET):
    sock = socket.socket(socket.AF_UNIX, kind)
    sock.bind(address(name))
    sock.listen(16)
    return sock


def environment(name, **more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("VIADUCT_", "LISTEN_")) and k != "NOTIFY_SOCKET"}
    return {**env, "VIADUCT_FABRIC": name, "VIADUCT_AGENT": "none", **more}


class Manager(unittest.TestCase):
    def setUp(self):
        self.name = f"vm{os.getpid()}.{self.id().rsplit('.', maxsplit=1)[-1]}"
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(f"\0{self.name}")
        self.notify.settimeout(WAIT)
        self.addCleanup(self.notify.close)

    def start(self, *socks, words=(), **more):
        env = environment(self.name, NOTIFY_SOCKET=f"@{self.name}", LISTEN_FDS=str(len(socks)),
                          HANDED=" ".join(str(sock.fileno()) for sock in socks), **more)
        agent = subprocess.Popen(["sh", "-ec", HAND_OVER, "sh", AGENT, *words], env=env, text=True,
                                 pass_fds=[sock.fileno() for sock in socks], stderr=subprocess.PIPE)
        self.addCleanup(self.end, agent)
        return agent

    @staticmethod
    def end(agent):
        if agent.poll() is None:
            agent.terminate()
        agent.communicate(timeout=WAIT)

    def listener(self, *args):
        sock = listening(self.name, *args)
        self.addCleanup(sock.close)
        return sock

    def visitor(self):
        """A program that looks for the agent, and is in the queue of the socket."""
        program = subprocess.Popen([INFO], env=environment(self.name), text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.addCleanup(self.end, program)
        return program

    def served(self, program):
        text, _ = program.communicate(timeout=WAIT)
        self.assertEqual(program.returncode, 0, text)
        self.assertIn("host0", text)

    def refused(self, expected, *socks):
        agent = self.start(*socks)
        _, text = agent.communicate(timeout=WAIT)
        self.assertEqual(agent.returncode, 1, text)
        self.assertIn(expected, text)
        self.notify.setblocking(False)
        self.assertRaises(BlockingIOError, self.notify.recv, 64)

    def test_who_came_before_the_agent_is_served(self):
        sock = self.listener()
        early = self.visitor()
        self.assertTrue(select.select([sock], [], [], WAIT)[0])
        self.start(sock)
        self.served(early)
        self.assertEqual(self.notify.recv(64), b"READY=1")
        self.served(self.visitor())

    def test_who_comes_between_two_agents_is_served(self):
        sock = self.listener()
        agent = self.start(sock)
        self.assertEqual(self.notify.recv(64), b"READY=1")
        self.end(agent)
        self.assertEqual(agent.returncode, 0)
        between = self.visitor()
        self.assertTrue(select.select([sock], [], [], WAIT)[0])
        self.start(sock)
        self.served(between)

    def test_who_waits_when_an_agent_ends_is_left_to_the_next(self):
        sock = self.listener()
        agent = self.start(sock)
        self.assertEqual(self.notify.recv(64), b"READY=1")
        agent.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, agent.pid, os.WSTOPPED | os.WNOWAIT)
        waiting = self.visitor()
        self.assertTrue(select.select([sock], [], [], WAIT)[0])
        agent.kill()
        self.end(agent)
        self.start(sock)
        self.served(waiting)

    def test_the_agent_is_who_listens(self):
        """Its credentials, not the manager's, are what tools see."""
        sock = self.listener()
        agent = self.start(sock)
        self.assertEqual(self.notify.recv(64), b"READY=1")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            probe.connect(address(self.name))
            cred = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.assertEqual(int.from_bytes(cred[:4], sys.byteorder), agent.pid)

    def test_ready_on_a_path(self):
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(f"{folder}/notify")
            notify.settimeout(WAIT)
            env = environment(self.name, NOTIFY_SOCKET=f"{folder}/notify")
            agent = subprocess.Popen([AGENT], env=env, stderr=subprocess.PIPE, text=True)
            self.addCleanup(self.end, agent)
            self.assertEqual(notify.recv(64), b"READY=1")
        self.served(self.visitor())

    def test_an_agent_of_a_program_is_silent(self):
        """The manager of the program must not take the agent's messages for those of the program."""
        read, write = os.pipe()
        env = environment(self.name, NOTIFY_SOCKET=f"@{self.name}")
        agent = subprocess.Popen([AGENT, "--ready-fd", str(write)], env=env, pass_fds=[write],
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, agent)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as ready:
            self.assertEqual(ready.read(), "ready\n")
        self.notify.setblocking(False)
        self.assertRaises(BlockingIOError, self.notify.recv, 64)

    def test_sockets_of_another_process_are_not_taken(self):
        other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(other.close)
        self.start(other, LISTEN_PID="1")
        self.assertEqual(self.notify.recv(64), b"READY=1")
        self.served(self.visitor())

    def test_wrong_sockets_are_refused(self):
        sock = self.listener()
        self.refused("2 sockets were handed over", sock, sock)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as idle:
            self.refused("is not a listening Unix socket", idle)
        with listening(f"{self.name}.other") as other:
            self.refused(f"does not listen at @viaduct/{os.geteuid()}/{self.name}/host0", other)
        with socket.socket(socket.AF_UNIX) as stream:
            stream.bind(f"\0{self.name}.stream")
            stream.listen(1)
            self.refused("is not a listening Unix socket", stream)
        with open("/dev/null", encoding="utf-8") as null:
            self.refused("is not a listening Unix socket", null)

    def test_a_manager_is_not_ended(self):
        """vi_fabric down ends what does not answer at an agent's address, but no service manager."""
        sock = self.listener()
        code = "import sys; open('/proc/self/comm', 'w').write('systemd'); import socket; " \
               "socket.socket(fileno=int(sys.argv[1])).listen(16); print('listens', flush=True); sys.stdin.read()"
        manager = subprocess.Popen([sys.executable, "-c", code, str(sock.fileno())], pass_fds=[sock.fileno()],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, manager)
        self.assertEqual(manager.stdout.readline(), "listens\n")
        done = subprocess.run([FABRIC, "down", "--name", self.name], env=environment(self.name),
                              capture_output=True, text=True, timeout=2 * WAIT, check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(f"the service manager, pid {manager.pid}, holds the socket of host 0", done.stderr)
        self.assertIsNone(manager.poll())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
