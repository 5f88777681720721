# SPDX-License-Identifier: BSD-2-Clause
"""Runs a suite: boots its guests, executes their requests, collects their results."""
import os
import selectors
import time
from pathlib import Path

from vm_figures import Figures
from vm_guest import Guest, bad_lines, base_image, choose_accel, memory_file, path_of
from vm_link import Link
from vm_modules import get_modules, stock_module
from vm_net import Network

LOG_LINES = 40


def build_folder():
    """The folder where the project is built: VIADUCT_BUILD, or build/ in the checkout."""
    return Path(os.environ.get("VIADUCT_BUILD") or Path(__file__).resolve().parent.parent.parent / "build")


def named(programs):
    """(program, name in the guest, or None)"""
    return [(program, None) if isinstance(program, str) else program for program in programs]


class Suite:
    """A suite.  guests: for each its adapters, as (name of link, port) in the order of their slots."""

    def __init__(self, name, guests, script, modules, timeout=200, programs=(), files=(), late=(), kernel_args="",
                 compiled=(), compiled32=(), built=(), stock=(), plugins=(), network=False,
                 iommu=False, link=Link, **link_options):
        self.name = name
        self.guests = guests
        self.script = Path(script)
        self.modules = modules
        self.timeout = timeout
        self.programs = programs  # of this machine; or (program, name in the guest)
        self.files = files  # (path here, name in the guest)
        self.compiled = compiled  # sources of programs for guests
        self.compiled32 = compiled32  # sources of programs of 32 bits, which are named NAME-32
        self.built = built  # programs and libraries of the build, by their path there, likewise
        self.stock = stock  # modules that the kernel's package has
        self.plugins = plugins  # of libibverbs
        self.network = network  # do guests have an Ethernet in addition to the links?
        self.iommu = iommu  # does an IOMMU translate the accesses of adapters?
        self.late = late  # guests that are booted only when another guest asks for it
        self.kernel_args = kernel_args
        self.link = link  # the kind of its links
        self.link_options = link_options

    def links(self):
        return sorted({link for adapters in self.guests.values() for link, _ in adapters})


class Report:
    """Results in the format of the Test Anything Protocol."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def result(self, good, text):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}", flush=True)

    @staticmethod
    def note(text):
        print(f"# {text}", flush=True)


class Run:
    """One run of a suite."""

    def __init__(self, suite, kernel, report, variables=()):
        self.suite = suite
        self.kernel = kernel
        self.report = report
        self.variables = variables  # NAME=VALUE, for the scripts
        self.links = {name: suite.link(**suite.link_options) for name in suite.links()}
        self.network = Network(suite.guests) if suite.network else None
        self.guests = {}
        self.selector = selectors.DefaultSelector()
        self.barriers = {}
        self.values = {}
        self.seekers = {}
        self.marked = time.monotonic()
        self.accel = choose_accel(kernel)
        self.figures = Figures({"suite": suite.name, "kernel": kernel.release, "accel": self.accel})
        self.initrd = memory_file("initrd")
        self.write_image()

    def write_image(self):
        image = base_image()
        image.file(self.suite.script, "suite.sh")
        modules = get_modules(self.kernel)
        for name in self.suite.modules:
            image.file(modules[name], f"modules/{name}.ko")
        for name in self.suite.stock:
            image.data(f"modules/{name}.ko", stock_module(self.kernel, name))
        for name in self.suite.plugins:
            image.verbs_plugin(name)
        for program, name in named(self.suite.programs):
            image.program(program, name)
        for program, name in named(self.suite.built):
            image.program(build_folder() / program, name)
        for source in self.suite.compiled:
            image.compiled(source)
        for source in self.suite.compiled32:
            image.compiled(source, "-m32")
        for source, name in self.suite.files:
            image.file(source if Path(source).is_absolute() else self.kernel.sources / source, name)
        image.write(path_of(self.initrd))

    def boot(self, name):
        adapters = [(self.links[link], port) for link, port in self.suite.guests[name]]
        before = self.guests.pop(name, None)
        if before is not None:
            if before in self.running():
                self.drop(before)  # it was killed a moment ago, and its end was not seen yet
            before.close()
            for link, port in adapters:
                link.wait_gone(port)
        guest = Guest(name)
        guest.start(self.kernel, self.initrd, self.accel, adapters, self.suite, self.variables, self.network)
        self.guests[name] = guest
        self.selector.register(guest.channel, selectors.EVENT_READ, guest)

    def running(self):
        return [key.data for key in self.selector.get_map().values()]

    def drop(self, guest):
        self.selector.unregister(guest.channel)
        complaint = guest.end()
        if guest.rc is None and not guest.killed:
            guest.failed = True
            self.report.result(False, f"{guest.name}: the guest ended, after it said: {guest.last}"
                               + (f"; QEMU: {complaint.splitlines()[-1]}" if complaint else ""))
        self.judge_log(guest)
        self.settle_barriers()

    def judge_log(self, guest):
        log = guest.log()
        bad = bad_lines(log)
        if bad:
            self.report.result(False, f"{guest.name}: the kernel says: {bad[0]}")
        if bad or guest.rc or guest.failed:
            for line in log.splitlines()[-LOG_LINES:]:
                self.report.note(f"{guest.name} {line.rstrip()}")

    def hear(self, guest, line):
        word, _, rest = line.partition(" ")
        guest.last = line or guest.last
        if word == "ok":
            self.report.result(True, f"{guest.name}: {rest}")
        elif line.startswith("not ok "):
            self.report.result(False, f"{guest.name}: {line[7:]}")
        elif word == "figure":
            self.figures.add(rest)
        elif word == "rc":
            guest.rc = int(rest)
            guest.answer("done")
        elif word == "ask":
            self.asked(guest, rest.split())
        elif line:
            self.report.note(f"{guest.name} {line.removeprefix('# ')}")

    def asked(self, guest, words):
        verb, rest = words[0], words[1:]
        if verb == "barrier":
            self.barriers.setdefault(rest[0], []).append(guest)
            self.settle_barriers()
            return
        if verb == "put":
            self.values[rest[0]] = " ".join(rest[1:])
            guest.answer("done")
            for other in self.seekers.pop(rest[0], []):
                other.answer(self.values[rest[0]])
            return
        if verb == "get":
            if rest[0] in self.values:
                guest.answer(self.values[rest[0]])
            else:
                self.seekers.setdefault(rest[0], []).append(guest)
            return
        if verb == "overwrite":
            guest.answer(str(self.links[rest[0]].overwrite(dict(self.suite.guests[guest.name])[rest[0]])))
            return
        if verb == "since":
            guest.answer(str(round(1000 * (time.monotonic() - self.marked))))
            return
        self.marked = time.monotonic()
        actions = {"kill": self.kill, "start": self.boot, "cut": lambda name: self.links[name].cut(),
                   "restore": lambda name: self.links[name].restore()}
        if verb not in actions:
            self.report.result(False, f"{guest.name}: asked for {verb}, which there is not")
        else:
            actions[verb](rest[0])
        guest.answer("done")

    def kill(self, name):
        self.guests[name].kill()

    def settle_barriers(self):
        """Answers barriers that all guests have reached, except those that have ended or reported their last result."""
        need = {guest.name for guest in self.running() if guest.rc is None and not guest.killed}
        for name, waiting in list(self.barriers.items()):
            waiting[:] = [guest for guest in waiting if guest.name in need]
            if need <= {guest.name for guest in waiting}:
                del self.barriers[name]
                for guest in waiting:
                    guest.answer("done")

    def seconds_left(self, start):
        return start + self.suite.timeout * self.kernel.patience - time.monotonic()

    def loop(self):
        start = time.monotonic()
        while self.running():
            left = self.seconds_left(start)
            if left <= 0:
                for guest in self.running():
                    self.report.result(False, f"{guest.name}: no end after "
                                       f"{self.suite.timeout * self.kernel.patience} s; it said last: {guest.last}")
                    guest.killed = guest.failed = True
                    self.drop(guest)
                return
            for key, _ in self.selector.select(left):
                if key.data in self.running():  # a request of another guest may just have ended it
                    self.attend(key.data)

    def attend(self, guest):
        lines = guest.lines()
        if lines is None:
            self.drop(guest)
            return
        for line in lines:
            self.hear(guest, line)

    def run(self):
        start = time.monotonic()
        before = self.report.count
        try:
            for name in self.suite.guests:
                if name not in self.suite.late:
                    self.boot(name)
            self.loop()
            if self.report.count == before:
                self.report.result(False, "the guests checked nothing")
            for guest in self.guests.values():
                if guest.rc:
                    self.report.note(f"{guest.name} counted {guest.rc} failures")
            for line in self.figures.table():
                self.report.note(line)
            self.report.note(f"{self.suite.name}: {self.accel}, {self.kernel.release}, "
                             f"{time.monotonic() - start:.1f} s")
        finally:
            self.close()
        return self.figures

    def close(self):
        for guest in self.guests.values():
            guest.close()
        self.selector.close()
        for link in self.links.values():
            link.close()
        if self.network is not None:
            self.network.close()
        os.close(self.initrd)
