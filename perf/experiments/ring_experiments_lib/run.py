# SPDX-License-Identifier: BSD-2-Clause
"""Running one measurement: of the bare ports, or of VIPL and OpenSHMEM programs on a fabric with the model."""
import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from compare_lib.tools import Failed, OutOfTime

from . import plan

PATIENCE = 300.0
PORT = "perf/experiments/ring/ring_port"
VIPL = "perf/experiments/ring/ring_vipl"
SHMEM = "perf/experiments/shmem/ring_shmem"
OSHRUN = "shmem/tools/oshrun"
PROGRAMS = (PORT, VIPL, SHMEM, OSHRUN, "tools/vi_fabric", "provider/agent/viaductd")
HEAP = "64M"  # of a PE: 8 puts of 1 MiB from each of five hosts, and as many sources


class NoSuch(Failed):
    """A measurement that failed, with the reason."""


def profiles_of_ring(adapters):
    """As vi_fabric has it: an adapter for both ends of each link."""
    return ",".join(f"{host}-{(host + 1) % len(adapters)}={name}" for host, name in enumerate(adapters))


@dataclass
class Bench:
    build: Path
    profile: str
    slower: float = 1.0  # times the dilation of the plan
    deadline: float = float("inf")
    post_ns: int = 0
    put_ns: int = 0  # of OpenSHMEM
    fabric: tuple = None  # what is up: hosts, kind, threads, profiles of links
    env: dict = field(default_factory=dict)
    echoes: dict = field(default_factory=dict)  # raw turnarounds, which threads do not change
    loads: dict = field(default_factory=dict)   # E3 and E4 come from the same run

    def __post_init__(self):
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
        self.env["VIADUCT_FABRIC"] = f"ring-{os.getpid()}"

    def run(self, program, *argv, env=None):
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime("no time left")
        try:
            done = subprocess.run([str(self.build / program), *map(str, argv)], text=True,
                                  capture_output=True, check=False, stdin=subprocess.DEVNULL,
                                  env={**self.env, **(env or {})}, timeout=min(left, PATIENCE))
        except subprocess.TimeoutExpired as error:
            raise (OutOfTime if left < PATIENCE else Failed)(
                f"{program} {' '.join(map(str, argv))} took too long") from error
        if done.returncode:
            raise Failed((done.stderr.strip().splitlines() or [f"{program} failed"])[-1])
        return done.stdout

    # ---- fabrics ----

    def bring_up(self, hosts, kind="emu", threads=1, profiles=""):
        """
        The agents poll: as the model is slower than an adapter, they would otherwise sleep where
        on an adapter they would still poll.
        """
        if self.fabric == (hosts, kind, threads, profiles):
            return
        self.take_down()
        self.run("tools/vi_fabric", "up", "--hosts", hosts, "--port", kind, "--window", "1T",
                 "--profiles", profiles,
                 env={"VIADUCT_RELAY_THREADS": str(threads), "VIADUCT_RELAY_WAIT": "poll"})
        self.fabric = (hosts, kind, threads, profiles)

    def take_down(self):
        if self.fabric is not None:
            self.fabric = None
            subprocess.run([str(self.build / "tools/vi_fabric"), "down"], env=self.env, check=False,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=PATIENCE)

    def dilation(self, point):
        return max(1, round(plan.dilation(point) * self.slower))

    # ---- measurements ----

    def forget(self, rounds):
        """Forgets results, before a measurement that is to be made again."""
        self.echoes = {key: value for key, value in self.echoes.items() if key[0] == "E3"}
        if rounds > 1:
            self.loads.clear()
            self.echoes.clear()

    def learn_cost(self):
        """The processor time of a post and of a put, on the emulated fabric without the model."""
        self.bring_up(2)
        cost = json.loads(self.run(VIPL, "--experiment", "cost", "--hosts", 2, "--dilation", 1))
        self.post_ns = max(1, round(cost["value"]))
        self.put_ns = max(1, round(self.job(2, "--experiment", "cost", "--dilation", 1)["value"]))

    def port(self, point, baseline, experiment=None):
        mixed = point.experiment == "mixed"
        argv = ["--experiment", experiment or ("E1" if point.experiment in ("steps", "mixed") else point.experiment), "--hosts",
                min(point.hosts, 8), "--first", point.first,
                "--threads", point.threads, "--links", point.links, "--bytes", max(point.bytes, 64),
                "--count", plan.count(point.experiment, "baseline" if baseline else "raw",
                                      point.bytes, point.hosts),
                "--profile", ",".join(plan.ADAPTERS) if mixed else self.profile,
                "--dilation", self.dilation(point)]
        return json.loads(self.run(PORT, *argv, *(["--baseline"] if baseline else [])))

    def vipl(self, point):
        slower = self.dilation(point)
        mixed = point.experiment == "mixed"
        self.bring_up(point.hosts, f"emu+model:{self.profile}:{slower}", point.threads,
                      profiles_of_ring(plan.ADAPTERS) if mixed else "")
        argv = ["--experiment", "E1" if mixed else point.experiment, "--hosts", point.hosts,
                "--first", point.first,
                "--threads", point.threads, "--links", point.links, "--hops", point.hops,
                "--bytes", point.bytes, "--dilation", slower, "--post-ns", self.post_ns,
                "--count", plan.count(point.experiment, "ours", point.bytes, point.hosts)]
        return json.loads(self.run(VIPL, *argv))

    def job(self, hosts, *argv, env=None):
        """ring_shmem with a PE on each host of the fabric that is up."""
        return json.loads(self.run(OSHRUN, "--fabric", self.env["VIADUCT_FABRIC"], "--hosts", hosts,
                                   "-np", hosts, self.build / SHMEM, *argv,
                                   env={"SHMEM_SYMMETRIC_SIZE": HEAP, **(env or {})}))

    def shmem_job(self, point, *options):
        slower = self.dilation(point)
        self.bring_up(point.hosts, f"emu+model:{self.profile}:{slower}", point.threads)
        cost, env = self.put_ns, None
        if point.experiment == "barrier":
            cost *= plan.messages(point.algorithm, point.hosts)
            env = {"SHMEM_VIADUCT_BARRIER": point.algorithm}
        return self.job(point.hosts, "--experiment", point.experiment, "--threads", point.threads,
                        "--links", point.links, "--bytes", max(point.bytes, 64), "--dilation", slower,
                        "--post-ns", cost, "--count",
                        plan.count(point.experiment, "shmem", point.bytes, point.hosts), *options, env=env)

    def raw(self, point):
        if point.experiment not in ("E3", "hop"):
            return self.port(point, False)["value"]
        key = (point.experiment, point.hosts, point.bytes)
        if key not in self.echoes:
            self.echoes[key] = self.port(point, False, "E3")["value"]
        # E3 is a round trip of 64 bytes and of a word: the path of the 64 bytes.
        return self.echoes[key] if point.experiment == "E3" else self.echoes[key] / 2

    def load(self, side, point):
        """E3 and E4 of one side: latency and rate under the same load."""
        key = (side, point.hosts, point.threads, point.bytes)
        if key not in self.loads:
            twin = plan.Point("E3", point.hosts, point.threads, point.bytes)
            self.loads[key] = {"ours": self.vipl, "shmem": self.shmem_job}[side](twin) \
                if side != "baseline" else self.port(twin, True)
        return self.loads[key]["value" if point.experiment == "E3" else "rate"]

    def baseline(self, point):
        if point.experiment == "hop":
            raise NoSuch("the published protocol was measured with all hosts sending")
        if point.experiment in ("E3", "E4"):
            return self.load("baseline", point)
        if point.experiment == "barrier":
            key = (point.experiment, point.hosts)  # one algorithm, compared with each of ours
            if key not in self.echoes:
                self.echoes[key] = self.port(point, True)["value"]
            return self.echoes[key]
        got = self.port(point, True)
        point.split = got.get("split", {})
        if point.experiment == "steps":  # the interrupt is part of the next wait
            return sum(ns for name, ns in point.split.items() if name != "interrupt_ns") / 1e3
        return got["value"]

    def ours(self, point):
        if point.experiment in ("E3", "E4"):
            return self.load("ours", point)
        return self.vipl(point)["value"]

    def shmem(self, point):
        if point.experiment in ("E3", "E4"):
            return self.load("shmem", point)
        got = self.shmem_job(point)
        point.steps = got.get("steps", {})
        return got["value"]

    def blocking(self, point):
        return self.shmem_job(point, "--blocking")["value"]
