# SPDX-License-Identifier: BSD-2-Clause
"""QEMU: that of the machine, or a newer one in the cache, fetched and unpacked, not installed.

A newer one comes from another release of Debian, and runs with the libraries and the loader of that release.
"""
import shutil
import subprocess

from vm_kernel import KEYRING, Apt, Missing, cache_dir, call, locked

QEMU = "qemu-system-x86_64"
PACKAGE = "qemu-system-x86"
RELEASE = "trixie"  # its backports have the oldest QEMU with a client of vfio-user, 10.1 or later
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def installed():
    """The command of the machine's own QEMU."""
    found = shutil.which(QEMU)
    if found is None:
        raise Missing(f"{QEMU} is not installed; scripts/setup --vm")
    return [found]


def has_vfio_user(command):
    # The command succeeds also for a device that does not exist.
    done = subprocess.run(command + ["-device", "vfio-user-pci,help"], check=False, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL)
    return "socket=" in done.stdout


def unpacked(root):
    """The command of a QEMU whose packages were unpacked in a folder."""
    library = root / LIBRARIES
    return ["env", f"QEMU_MODULE_DIR={library}/qemu", str(library / "ld-linux-x86-64.so.2"), "--library-path",
            str(library), str(root / "usr/bin" / QEMU), "-L", str(root / "usr/share/qemu"), "-L",
            str(root / "usr/share/seabios")]


def fetch(path):
    apt = Apt(path / ".apt", f"deb [signed-by={KEYRING}] http://deb.debian.org/debian {RELEASE} main\n"
              f"deb [signed-by={KEYRING}] http://deb.debian.org/debian {RELEASE}-backports main\n")
    apt.update()
    print(f"# fetches {PACKAGE} of {RELEASE}-backports", flush=True)
    call(["apt-get", "-q", "-y", "--download-only", "--no-install-recommends", "-t", f"{RELEASE}-backports", "install",
          PACKAGE], env=apt.env)
    for deb in sorted((apt.path / "cache/archives").glob("*.deb")):
        call(["dpkg-deb", "-x", deb, path / "root"])
    shutil.rmtree(apt.path)


def qemu_with_vfio_user():
    """The command of a QEMU that is a client of vfio-user; raises Missing."""
    try:
        if has_vfio_user(installed()):
            return installed()
    except Missing:
        pass
    path = cache_dir() / f"qemu-{RELEASE}"
    path.mkdir(exist_ok=True)
    with locked(path):
        if not (path / "done").exists():
            shutil.rmtree(path / "root", ignore_errors=True)
            fetch(path)
            if not has_vfio_user(unpacked(path / "root")):
                raise Missing(f"{PACKAGE} of {RELEASE}-backports has no vfio-user-pci, or does not run here")
            (path / "done").touch()
    return unpacked(path / "root")
