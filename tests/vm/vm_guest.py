# SPDX-License-Identifier: BSD-2-Clause
"""Guests: QEMU as a child, with a log of the kernel's console and a channel for results."""
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

from vm_image import Image
from vm_kernel import locked
from vm_link import Link

HERE = Path(__file__).resolve().parent
PROBE_SECONDS = 10
# If QEMU may run only one processor it compiles the atomics and fences of a guest away, and then
# memory that two guests share becomes inconsistent; with maxcpus=2 it keeps them.
ACCEL = {"tcg": ["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm"], "kvm": ["-accel", "kvm", "-cpu", "host"]}
MACHINE = ["-M", "pc"]
# Without caching mode QEMU does not learn of memory that is mapped for a device, only of memory that is unmapped.
IOMMU_MACHINE = ["-M", "q35", "-device", "intel-iommu,caching-mode=on"]
IOMMU_ARGS = "intel_iommu=on iommu.strict=1"
# Stalls and late timers come from the machine that the guests share, not from the code under test.
KERNEL_ARGS = ("console=ttyS0 loglevel=5 panic=-1 oops=panic nowatchdog rcupdate.rcu_cpu_stall_suppress=1 "
               "random.trust_cpu=on no_timer_check")
BAD_LOG = re.compile(r"BUG|WARNING:|Oops|KASAN|UBSAN|kmemleak|DMA-API|possible (circular|recursive)|"
                     r"inconsistent lock state|suspicious RCU|sleeping function|Call Trace|Kernel panic|"
                     r"general protection|unable to handle|INFO: task .* blocked|refcount_t|list_(add|del) corruption|"
                     r"x86/PAT:.*(conflict|freeing invalid)")


def bad_lines(log):
    """The lines of a kernel's log that report something wrong in it."""
    return [line.strip() for line in log.splitlines() if BAD_LOG.search(line)]


def memory_file(name):
    """A file in memory without a name, which ends with its last user."""
    return os.memfd_create(f"viaduct-vm-{name}", os.MFD_CLOEXEC)


def path_of(file):
    """The file's path in this process, and in those that inherit it."""
    return f"/proc/self/fd/{file}"


def text_of(file):
    return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")


def base_image():
    image = Image()
    image.busybox()
    for name in ("init", "lib.sh", "agents.sh", "program.sh", "port.sh"):
        image.file(HERE / "guest" / name, name)
    return image


def command(kernel, initrd, accel, log, args="", link=Link, machine=MACHINE):
    """link: the kind of links that the machine has."""
    # QEMU must end with this process, also when that is killed: nothing else would end it.
    tie = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return tie + link.qemu() + machine + ACCEL[accel] + link.memory(kernel.memory) + [
        "-smp", f"{kernel.processors},maxcpus=2", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", str(kernel.image), "-initrd", path_of(initrd), "-append", f"{KERNEL_ARGS} {args}".strip(),
        "-chardev", f"file,id=con,path={path_of(log)}", "-serial", "chardev:con"]


def choose_accel(kernel):
    """kvm if a kernel boots with it, else tcg: /dev/kvm may be there and not work."""
    wanted = os.environ.get("VIADUCT_VM_ACCEL", "")
    if wanted in ACCEL:
        return wanted
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    known = kernel.path / f"accel-{os.uname().release}"
    with locked(known):
        if not known.exists():
            known.write_text("kvm" if probe(kernel) else "tcg", encoding="utf-8")
        return known.read_text(encoding="utf-8")


def probe(kernel):
    """Does a guest with KVM reach its first program, and soon?"""
    image = base_image()
    image.data("suite.sh", b"reboot_now\n")
    initrd, log = memory_file("initrd"), memory_file("log")
    image.write(path_of(initrd))
    try:
        subprocess.run(command(kernel, initrd, "kvm", log), check=False, timeout=PROBE_SECONDS,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       pass_fds=[initrd, log])
        return "INIT-UP" in text_of(log)
    except subprocess.TimeoutExpired:
        return False
    finally:
        os.close(initrd)
        os.close(log)


class Guest:
    """A machine that runs; the end of its channel shows its end."""

    def __init__(self, name):
        self.name = name
        self.console = memory_file(name)
        self.process = None
        self.channel = None
        self.buffer = b""
        self.rc = None
        self.killed = False  # killed on purpose
        self.failed = False
        self.last = "nothing"

    def start(self, kernel, initrd, accel, adapters, suite, variables=(), network=None):
        """adapters: (link, port) of each one, in the order of their slots."""
        self.channel, theirs = socket.socketpair()
        sockets = [theirs]
        words = command(kernel, initrd, accel, self.console, link=suite.link, machine=IOMMU_MACHINE if suite.iommu else MACHINE,
                        args=f"{IOMMU_ARGS if suite.iommu else ''} VM_GUEST={self.name} VM_COUNT={len(suite.guests)} VM_PATIENCE={kernel.patience} "
                        f"{suite.kernel_args} {' '.join(variables)}")
        words += ["-chardev", f"socket,id=res,fd={theirs.fileno()}", "-serial", "chardev:res"]
        for slot, (link, port) in enumerate(adapters, 0x10):
            more, inherited = link.device(port, slot)
            words += more
            sockets += inherited
        if network is not None:
            more, inherited = network.device(self.name)
            words += more
            sockets += inherited
        try:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, pass_fds=[initrd, self.console] +
                                            [sock.fileno() for sock in sockets])
        finally:
            for sock in sockets:
                sock.close()

    def lines(self):
        """The lines that it sent since the last call; None when it has ended."""
        try:
            data = self.channel.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            return None
        self.buffer += data
        *whole, self.buffer = self.buffer.split(b"\n")
        return [line.decode(errors="replace").strip() for line in whole]

    def answer(self, text):
        try:
            self.channel.sendall(text.encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass

    def kill(self):
        self.killed = True
        self.process.kill()

    def end(self):
        """Waits until it has ended, and kills it if it does not; returns the complaints of QEMU itself."""
        process, self.process = self.process, None
        if process is None:
            return ""
        if process.poll() is None:
            process.kill()
        complaint = process.stderr.read().decode(errors="replace").strip()
        process.wait()
        process.stderr.close()
        self.channel.close()
        return complaint

    def log(self):
        return text_of(self.console)

    def close(self):
        self.end()
        os.close(self.console)
