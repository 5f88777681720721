# SPDX-License-Identifier: BSD-2-Clause
"""What perf/affinity_experiments runs: loads, waits, roles, placements."""
import os
from dataclasses import dataclass

from . import affinity_run as run
from . import sock_run
from .sock_run import Method
from .tools import Failed

WAITS = ("block", "adaptive", "spin")
FREE = "not placed"
TCP = "TCP"
ROLES = {"transfer": run.TRANSFER, "service": run.SERVICE}
STREAM_PIECE = 64 << 10
SORT_REDUCERS = 2
PATIENCE = {"sort": 300.0}  # seconds; of other loads PATIENCE_USUAL
PATIENCE_USUAL = 30.0


@dataclass(frozen=True)
class Case:
    """One run: a load, and how the server's threads wait and are placed."""
    load: str           # stream, memcached, nginx, sort
    connections: int
    wait: str           # of VIADUCT_WAIT, or TCP
    role: str           # whose threads are placed; of TCP none
    place: str          # a relation, or FREE

    def method(self, service):
        if self.wait == TCP:
            return Method(TCP)
        env = {"VIADUCT_WAIT": self.wait}
        return Method("VIs", "auto", env=env, more=("--service", service) if service and self.role == "service" else ())


def cases(loads, waits, roles, places):
    """Those of a round, TCP first; a thread that is not placed has no role, so it is run once."""
    found = []
    for load, counts in loads.items():
        for count in counts:
            found.append(Case(load, count, TCP, "", FREE))
            for wait in waits:
                found.append(Case(load, count, wait, "", FREE))
                found += [Case(load, count, wait, role, place) for role in roles for place in places]
    return found


class Runner:
    """Runs a case on the program's processor and the load's."""

    def __init__(self, bench, where, service, seconds, records):
        self.bench, self.where, self.service, self.seconds, self.records = bench, where, service, seconds, records
        self.app, self.load_cpu = bench.pin

    def cpus(self, case):
        """By names of threads: their processor; None is any."""
        if case.place == FREE:
            return {run.TRANSFER + run.SERVICE: None}
        placed = {ROLES[case.role]: self.where[case.place]}
        rest = {names: None for role, names in ROLES.items() if role != case.role}
        return {**placed, **rest}

    def client(self, case, method, argv):
        return method.command(self.bench, 1, self.load_cpu, argv)

    def stream(self, case, method, counting):
        tool = self.bench.tool("perf/sock/sock_bench")
        server = method.command(self.bench, 0, None, [tool, "--serve", method.address])
        with sock_run.started(self.bench, server, method.env) as process:
            port = sock_run.first_line(process)
            argv = [tool, "--connect", f"{method.address}:{port}", "--test", "stream", "--sizes", STREAM_PIECE,
                    "--batch-us", "2000", "--batches", int(self.seconds * 400)]
            return self.measure(case, method, process.pid, argv, counting)

    def memcached(self, case, method, counting):
        server = Server(self.bench, method)
        argv = [run.need("memcached"), "-t", "1", "-l", method.address, "-p", server.port, "-U", 0,
                *(["-u", "root"] if os.geteuid() == 0 else [])]
        load = [self.bench.tool("perf/sock/sock_bench"), "--connect", f"{method.address}:{server.port}", "--test",
                "memcached", "--sizes", 100, "--connections", case.connections, "--batch-us", 10000,
                "--batches", max(5, int(self.seconds * 80))]
        return self.served(case, server, argv, load, counting)

    def nginx(self, case, method, counting):
        server = Server(self.bench, method)
        load = [run.need("wrk"), "-t", 1, "-c", case.connections, "-d", 1,
                f"http://{method.address}:{server.port}/page"]
        return self.served(case, server, run.nginx_command(server), load, counting)

    def sort(self, case, method, counting):
        """Reducers are the server, mappers the load: each is a process, and connected to all of the others."""
        tool = self.bench.tool("perf/sock/sock_sort")
        server = method.command(self.bench, 0, None, [tool, "--serve", method.address, "--reducers", SORT_REDUCERS])
        with sock_run.started(self.bench, server, method.env) as process:
            places = [f"{method.address}:{port}" for port in sock_run.ports(process, SORT_REDUCERS)]
            argv = [tool, "--connect", ",".join(places), "--mappers", case.connections // SORT_REDUCERS,
                    "--records", self.records]
            return self.measure(case, method, process.pid, argv, counting)

    def served(self, case, server, argv, load, counting):
        method = server.method
        with sock_run.started(self.bench, method.command(self.bench, 0, None, argv), method.env) as process:
            sock_run.await_listener(process, server.place)
            return self.measure(case, method, process.pid, load, counting)

    def measure(self, case, method, root, argv, counting):
        argv, cpus = self.client(case, method, argv), self.cpus(case)
        patience = PATIENCE.get(case.load, PATIENCE_USUAL)
        if counting:
            return {"calls": run.count_calls(self.bench, root, argv, method.env, self.app, cpus, case.load, patience)}
        out, used = run.load(self.bench, argv, method.env, root, self.app, cpus, patience)
        rate, count = run.asked(case.load, out)
        return {"rate": rate, "waits": used.waits / count, "forced": used.forced / count,
                "cpu_us": used.cpu_s * 1e6 / count}

    def run(self, case, counting=False):
        method = case.method(self.service)
        try:
            return getattr(self, case.load)(case, method, counting)
        except OSError as error:
            raise Failed(str(error)) from error


Server = run.Server
