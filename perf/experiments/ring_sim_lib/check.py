# SPDX-License-Identifier: BSD-2-Clause
"""Compares the simulation with the emulated fabric of this machine.

Neighbours are measured for a profile, which predicts other sizes and the time that relays add.
Cases that the fabric refuses are not compared, with the reason.
"""
import json
import os
import tempfile
from pathlib import Path

from compare_lib import tools

from . import tables
from .simulator import Failed, Simulator

PROGRAMS = ("perf/vi_lat", "perf/vi_bw", "perf/raw/vi_raw", "tools/vi_fabric",
            "provider/agent/viaductd")
LATENCIES = (8, 64, 1024, 4096, 32768)
STREAMS = (65536, 1 << 20)
LINE = 64
KNOWN = {("latency", 8, 1), ("latency", 4096, 1)}  # what the profile was made from


# ---- measuring ----

def bench_of(build, scratch):
    """As perf/compare measures, whatever VIADUCT_ variables say."""
    allowed = sorted(os.sched_getaffinity(0))
    env = {k: v for k, v in os.environ.items() if not k.startswith("VIADUCT_")}
    env["VIADUCT_FABRIC"] = f"ring_sim-{os.getpid()}"
    env["PATH"] = f"{build / 'provider/agent'}:{env.get('PATH', '')}"
    env["LC_ALL"] = "C"
    return tools.Bench(build, (allowed[0], allowed[-1]), Path(scratch), env=env)


def measured(bench, program, hosts, sizes, *options):
    argv = [bench.tool(f"perf/{program}"), "--quiet", "--format", "json", "--hosts", hosts,
            "--sizes", ",".join(map(str, sizes)), "--percentiles", "50", *options]
    return json.loads(bench.run(argv))


class Measurement:
    """Medians, of several runs the best: other load on the machine only makes them worse."""

    def __init__(self, bench, rounds, seconds):
        self.bench, self.rounds, self.seconds = bench, rounds, str(seconds)

    def best(self, program, hosts, sizes, value, choose, options):
        found = {}
        for _ in range(self.rounds):
            document = measured(self.bench, program, hosts, sizes, "--duration", self.seconds,
                                *options)
            for row in document["results"]:
                now = value(document["test"], row)
                found[row["size_bytes"]] = choose(now, found.get(row["size_bytes"], now))
        return found

    def latencies(self, hosts, options):
        return self.best("vi_lat", hosts, LATENCIES, lambda _, row: row["p50_us"], min, options)

    def streams(self, hosts, options):
        def rate(test, row):
            return row["size_bytes"] * (test["window_messages"] // 2) * 1e6 / row["round_p50_us"]
        return self.best("vi_bw", hosts, STREAMS, rate, max, options)

    def raw(self, test):
        return min(tools.raw(self.bench, test, "--batches", "15", "--batch-ms", "0.2")[0]["value"]
                   for _ in range(self.rounds))

    def manner(self, hops):
        """Two programs and the relays between them poll: all the time only if each has a core."""
        if len(os.sched_getaffinity(0)) > hops:
            return ("--spin", "--pin", self.bench.pins) if hops == 1 else ("--spin",)
        return ()


# ---- the profile ----

def share_out(latency, post, line):
    """Nanoseconds of a neighbour's 8 B: sender, path of a line, receiver."""
    path = min(line, latency / 2)
    send = min(post, (latency - path) / 2)
    return send, path, latency - path - send


def calibrate(measurement, first):
    latency, longer = first["latency", 8] * 1e3, first["latency", 4096] * 1e3
    post = measurement.latencies("host0,host1", ("--post-time", *measurement.manner(1)))[8] * 1e3
    send, path, receive = share_out(latency, post, measurement.raw("line"))
    if longer <= latency:
        raise Failed("4096 B took no longer than 8 B: too much else runs here to calibrate")
    rate = 2 * 4096 * 1e9 / (longer - latency)  # copied in, then copied out
    line = LINE / rate * 1e9
    cores = len(os.sched_getaffinity(0))
    asleep = measurement.raw("asleep")
    copies = f"vi_lat, 4096 B: {longer:.0f} ns, two copies more than 8 B"

    def entry(value, source):
        return {"value": round(value, 3), "source": source}
    return {
        "license": "SPDX-License-Identifier: BSD-2-Clause",
        "description": "The emulated fabric, measured between neighbours.",
        "link_bytes_per_second": entry(rate, copies),
        "link_latency_ns": entry(max(path - line, 0), "vi_raw --tests line, less storing a line"),
        "register_write_ns": entry(0, "a doorbell is part of interrupt_ns"),
        "register_read_ns": entry(0, "registers are memory"),
        "interrupt_ns": entry(asleep, "vi_raw --tests asleep"),
        "dma_setup_ns": entry(0, "there is no engine: threads copy"),
        "copy_bytes_per_second": entry(rate, copies),
        "send_fragment_ns": entry(send, f"vi_lat --post-time, 8 B: {post:.0f} ns, at most a half "
                                        "of what the line leaves"),
        "relay_fragment_ns": entry(send + receive, "taken as what a receiver and a sender do"),
        "receive_fragment_ns": entry(receive, f"vi_lat, 8 B: {latency:.0f} ns, less the others"),
        "core_switch_ns": entry(measurement.raw("shared-core"), "vi_raw --tests shared-core, "
                                "sched_yield to and fro on one processor: half of it"),
        "shared_cores": entry(cores, "processors of this machine, for all hosts"),
    }


# ---- predicted and measured ----

def predict(simulator, hosts):
    """By kind, size and hops: microseconds, or bytes per second."""
    found = {}
    for size in LATENCIES:
        for flow in simulator.case("ring", hosts, "latency", bytes=size)["by_hops"]:
            found["latency", size, flow["hops"]] = flow["time_us"]
    for size in STREAMS:
        count = max(1, (16 << 20) // size)
        case = simulator.case("ring", hosts, "stream", bytes=size, messages=count)
        for flow in case["by_hops"]:
            found["stream", size, flow["hops"]] = flow["bytes_per_second"]
    return found


def measure_pair(measurement, hops, options, with_streams):
    """Between host 0 and the one so many hops to its right."""
    pair = f"host0,host{hops}"
    found = {("latency", s): v for s, v in measurement.latencies(pair, options).items()}
    if with_streams:
        found.update({("stream", s): v for s, v in measurement.streams(pair, options).items()})
    return found


def measure_relays(measurement, predicted, first):
    """By hops: what was measured there and between neighbours in the same manner; or why not."""
    found, reasons, neighbours = {1: (first, first)}, {}, {measurement.manner(1): first}
    for hops in range(2, max(h for _, _, h in predicted) + 1):
        options, streams = measurement.manner(hops), ("stream", STREAMS[0], hops) in predicted
        try:
            mine = measure_pair(measurement, hops, options, streams)
            if options not in neighbours:
                neighbours[options] = measure_pair(measurement, 1, options, True)
            found[hops] = (mine, neighbours[options])
        except tools.Failed as error:
            reasons[hops] = str(error)
    return found, reasons


def rows_of(predicted, found):
    """Ratios to the neighbours at the same size: how well hops are foretold, not the machine."""
    rows = []
    for (kind, size, hops), value in sorted(predicted.items()):
        mine, neighbour = found.get(hops, ({}, {}))
        if (kind, size) not in mine:
            continue
        got = mine[kind, size]
        rows.append({"kind": kind, "bytes": size, "hops": hops, "predicted": value,
                     "measured": got, "calibrated": (kind, size, hops) in KNOWN,
                     "measured_over_predicted": got / value,
                     "predicted_over_neighbour": value / predicted[kind, size, 1],
                     "measured_over_neighbour": got / neighbour[kind, size]})
    return rows


def show(rows, reasons, hosts):
    def scaled(row, value):
        return value if row["kind"] == "latency" else value / 1e9
    tables.show(f"Simulated and measured on the emulated fabric, a ring of {hosts} "
                "(latency: us, stream: GB/s)",
                ("kind", "bytes", "hops", "predicted", "measured", "over predicted",
                 "over 1 hop, predicted", "measured", "made from it"),
                [(r["kind"], r["bytes"], r["hops"], scaled(r, r["predicted"]),
                  scaled(r, r["measured"]), r["measured_over_predicted"],
                  r["predicted_over_neighbour"], r["measured_over_neighbour"],
                  "yes" if r["calibrated"] else "no") for r in rows])
    for hops, reason in sorted(reasons.items()):
        print(f"not compared: {hops} hops: {reason}")
    if any(r["hops"] >= len(os.sched_getaffinity(0)) for r in rows):
        print("fewer processors than polling threads: the measured wait for each other, which the "
              "simulated do\nonly while they work")
    if all(r["hops"] == 1 for r in rows):
        print("only neighbours could be compared: nothing is said here about relays")


def compare(build, hosts, quick):
    with tempfile.TemporaryDirectory(prefix="ring_sim-") as scratch:
        bench = bench_of(build, scratch)
        measurement = Measurement(bench, 3 if quick else 7, 0.05 if quick else 0.2)
        try:
            with tools.fabric(bench, hosts):
                first = measure_pair(measurement, 1, measurement.manner(1), True)
                profile = calibrate(measurement, first)
                file = Path(scratch) / "emu.json"
                file.write_text(json.dumps(profile), encoding="utf-8")
                predicted = predict(Simulator(build, file), hosts)
                found, reasons = measure_relays(measurement, predicted, first)
        except tools.Failed as error:
            raise Failed(str(error)) from error
    rows = rows_of(predicted, found)
    show(rows, reasons, hosts)
    return {"hosts": hosts, "profile": profile, "rows": rows,
            "not_compared": {str(h): r for h, r in reasons.items()},
            "relays_compared": any(r["hops"] > 1 for r in rows)}
