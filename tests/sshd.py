# SPDX-License-Identifier: BSD-2-Clause
"""An sshd that a test starts by itself."""
import os
import shlex
import shutil
import subprocess


def find():
    return shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def has_its_folder():
    """As root, sshd wants a folder that the service's unit makes."""
    return os.geteuid() != 0 or os.path.isdir("/run/sshd")


def missing():
    """Why none can be started here, or None."""
    if find() is None:
        return "sshd is not installed"
    if not has_its_folder() and (shutil.which("unshare") is None or subprocess.run(
            private_run("true"), capture_output=True, check=False).returncode):
        return "there is no /run/sshd, which sshd needs as root, and no mount can be made for it"
    return None


def private_run(words):
    """That command with a /run that only it sees."""
    return ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o mode=755 none /run && mkdir -m 755 /run/sshd && exec {words}"]


def command(*words):
    """sshd with these arguments; without its folder, with one that only this sshd sees."""
    words = [find(), *map(str, words)]
    return words if has_its_folder() else private_run(shlex.join(words))
