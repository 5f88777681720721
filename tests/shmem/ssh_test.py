#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""OpenSHMEM programs on several machines by OpenSSH: the emulated hosts of a fabric, to which ssh leads through an sshd.

The client starts the server itself and talks to it over a pair of pipes (ProxyCommand, sshd -i), so there is no port.
Keys and settings lie in a folder of the test; those of the user and of the machine are not read.

usage: ssh_test.py OSHRUN VI_FABRIC PROGRAM...
"""
import os
import pwd
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import sshd  # noqa: E402  after its path
from limit import limit  # noqa: E402

SKIPPED = 77
PATIENCE = limit(120)  # seconds
HOSTS = ("localhost", "m1:2", "m2")
SERVER = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
AcceptEnv VIADUCT_HOST
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
LogLevel ERROR
"""
CLIENT = """\
Host m1
	SetEnv VIADUCT_HOST=1
Host m2
	SetEnv VIADUCT_HOST=2
Host *
	ProxyCommand {server}
	User {user}
	HostKeyAlias here
	IdentityFile {folder}/user_key
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile {folder}/known
	GlobalKnownHostsFile none
	StrictHostKeyChecking yes
	BatchMode yes
	LogLevel ERROR
"""


class Skipped(Exception):
    """It cannot run here."""


def find(program):
    path = shutil.which(program)
    if path is None:
        raise Skipped(f"{program} is not installed")
    return path


def set_up(folder):
    """Makes keys and settings; returns the words of the remote shell."""
    ssh, keygen = find("ssh"), find("ssh-keygen")
    if lack := sshd.missing():
        raise Skipped(lack)
    for key in ("host_key", "user_key"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", folder / key], check=True,
                       timeout=PATIENCE)
    (folder / "known").write_text("here " + (folder / "host_key.pub").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "sshd_config").write_text(SERVER.format(folder=folder), encoding="utf-8")
    user = pwd.getpwuid(os.geteuid()).pw_name
    server = shlex.join(sshd.command("-i", "-f", folder / "sshd_config"))
    (folder / "ssh_config").write_text(CLIENT.format(folder=folder, server=server, user=user), encoding="utf-8")
    words = [ssh, "-F", str(folder / "ssh_config")]
    tried = subprocess.run(words + ["m2", "echo $VIADUCT_HOST"], check=False, text=True, capture_output=True,
                           stdin=subprocess.DEVNULL, timeout=PATIENCE)
    if tried.stdout != "2\n":
        said = (tried.stderr + tried.stdout).split("\n")[0] or f"ssh ended with {tried.returncode}"
        raise Skipped(f"sshd does not let {user} in: {said}")
    return words


class Tests:
    """oshrun with a remote shell."""

    def __init__(self, oshrun, folder, rsh):
        self.start = [oshrun, "--rsh", " ".join(rsh), "--timeout", str(PATIENCE)]
        self.hosts = ["--host", ",".join(HOSTS)]
        self.file = folder / "hosts"
        self.file.write_text("".join(f"{host.replace(':', ' slots=')}\n" for host in HOSTS), encoding="utf-8")
        self.failed = 0

    def result(self, good, text, said=""):
        print(f"{'ok    ' if good else 'FAILED'} {text}", flush=True)
        if not good:
            self.failed += 1
            print("\n".join(said.splitlines()[-8:]), flush=True)

    def run(self, *words):
        return subprocess.run(self.start + list(words), check=False, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * PATIENCE)

    def passes(self, program, places, text):
        done = self.run(*places, program)
        self.result(done.returncode == 0, f"{Path(program).name}, {text}", done.stdout)

    def exit_status(self):
        """PE 3, on the last machine, ends with an exit status."""
        done = self.run(*self.hosts, "sh", "-c", '[ "$OSHRUN_PE" != 3 ] || exit 7')
        self.result(done.returncode == 7, f"the exit status of a PE elsewhere is that of the job: {done.returncode}",
                    done.stdout)

    def death(self):
        """oshrun is killed: the other machines learn it by the end of their connections."""
        job = subprocess.Popen(self.start + self.hosts + ["sh", "-c", "echo pid $$; exec sleep 1000"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            pids = [int(job.stdout.readline().split()[1]) for _ in range(4)]
            ends = [os.pidfd_open(pid) for pid in pids]
        finally:
            job.kill()
            job.wait()
        self.result(all_end(ends), "no PE outlives an oshrun that is killed")
        job.stdout.close()


def all_end(ends):
    """Waits for the processes, and ends those that do not end."""
    deadline = time.monotonic() + PATIENCE
    good = True
    for end in ends:
        if not select.select([end], [], [], max(0, deadline - time.monotonic()))[0]:
            good = False
            signal.pidfd_send_signal(end, signal.SIGKILL)
        os.close(end)
    return good


def run(oshrun, programs, folder):
    tests = Tests(oshrun, folder, set_up(folder))
    for program in programs:
        tests.passes(program, tests.hosts, "--host")
    tests.passes(programs[0], ["--hostfile", str(tests.file)], "--hostfile")
    tests.exit_status()
    tests.death()
    print(f"{tests.failed} failed")
    return 1 if tests.failed else 0


def main():
    oshrun, vi_fabric, *programs = sys.argv[1:]
    os.environ.update(VIADUCT_FABRIC=f"ssh-{os.getpid()}", VIADUCT_HOST="0")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([vi_fabric, "up", "--hosts", "3"], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        try:
            return run(oshrun, programs, Path(folder))
        except Skipped as reason:
            print(f"skipped: {reason}")
            return SKIPPED
        finally:
            subprocess.run([vi_fabric, "down"], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)


if __name__ == "__main__":
    sys.exit(main())
