# SPDX-License-Identifier: BSD-2-Clause
"""The cases that are simulated, and the summary of their results."""
from concurrent.futures import ThreadPoolExecutor

from .simulator import end_all

TOPOLOGIES = ("ring", "torus", "mesh", "chain")
HOSTS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
QUICK_HOSTS = (2, 8, 64, 1024)
LONGEST = ("torus", "mesh", "ring", "chain")  # paths get longer
TOGETHER = ("bisection", "neighbour", "random", "alltoall")
MEBI = 1 << 20

# Largest costs that are simulated in full; beyond, streams and samples of them.
FULL = {"budget": 400000, "fluid": 20000000, "ways": 2000000}
QUICK = {"budget": 15000, "fluid": 500000, "ways": 5000}


def sides(hosts):
    """The most square rectangle of so many hosts: its longer and its shorter side."""
    short = next(s for s in range(int(hosts ** 0.5), 0, -1) if hosts % s == 0)
    return hosts // short, short


def spec_of(topology, hosts):
    if topology in ("torus", "mesh"):
        width, height = sides(hosts)
        return f"{topology}:{width}x{height}"
    return topology


def plan(topologies, hosts, size, limits):
    """(topology, hosts, pattern, options) of every case, those that take long first.

    The rate of a stream alone depends on its hops only: one topology has them all.
    """
    made = [(max(topologies, key=LONGEST.index), max(hosts), "stream",
             {"bytes": MEBI, "messages": 2 if limits is QUICK else 8})]
    for count in sorted(hosts, reverse=True):
        for topology in topologies:
            made.append((topology, count, "latency", {"bytes": 64}))
            for pattern in TOGETHER:
                made.append((topology, count, pattern, {"bytes": size, **limits}))
    return made


def run_all(simulator, made, jobs, tell):
    """Results in the order of topologies, hosts and patterns, in any order of their ends."""
    def one(case):
        topology, hosts, pattern, options = case
        tell(case)
        result = simulator.case(spec_of(topology, hosts), hosts, pattern, **options)
        return {"topology": topology, "hosts": hosts, "pattern": pattern, **result}

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(one, case) for case in made]
        try:
            results = [f.result() for f in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            end_all()
            raise
    order = {name: i for i, name in enumerate(TOPOLOGIES)}
    patterns = {name: i for i, name in enumerate(("latency", "stream", *TOGETHER))}
    return sorted(results, key=lambda r: (order.get(r["topology"], len(order)), r["hosts"],
                                          patterns[r["pattern"]]))


def of_pattern(results, *patterns):
    return [r for r in results if r["pattern"] in patterns]


def every_hop(points, most):
    """Times of 1 to `most` hops, from those of some: on a straight line between two of them."""
    times = [0.0, points[0][1]]
    for (near, start), (far, end) in zip(points, points[1:]):
        step = (end - start) / (far - near)
        times += [start + step * i for i in range(1, far - near + 1)]
    return times[1:most + 1]


def latency_row(result):
    """One message alone: of neighbours, over all pairs, of the pair that is furthest apart."""
    net = result["net"]
    pairs = net["pairs_by_hops"]
    times = every_hop([(f["hops"], f["time_us"]) for f in result["by_hops"]], len(pairs))
    return {"topology": result["topology"], "hosts": result["hosts"], "links": net["links"],
            "diameter_hops": net["diameter_hops"], "mean_hops": net["mean_hops"],
            "neighbour_us": times[0],
            "mean_us": sum(t * p for t, p in zip(times, pairs)) / sum(pairs),
            "worst_us": times[-1],
            "beyond_reach": net["pairs_beyond_longest_way"] / sum(pairs)}


def bisection_row(result):
    """The bandwidth of all pairs across the cut, and that of the cut links."""
    net = result["net"]
    return {"topology": result["topology"], "hosts": result["hosts"],
            "links": net["bisection_links"], "cut_bytes_per_second":
            net["bisection_bytes_per_second"], "moved_bytes_per_second":
            result["aggregate_bytes_per_second"], "model": model_of(result)}


def model_of(result):
    """fragments, fluid, or fluid with how many flows one of the sample stands for."""
    times = result["flows"] / result["simulated_flows"]
    if times == 1:
        return result["model"]
    return f"fluid 1:{times:.1f}" if times < 10 else f"fluid 1:{times:.0f}"


def load_row(result):
    loads = result["loads"]
    return {"topology": result["topology"], "hosts": result["hosts"],
            "pattern": result["pattern"], "model": model_of(result), "flows": result["flows"],
            "most_over_mean": loads["most_over_mean"],
            "most_bytes": loads["most_bytes"],
            "loads_exact": loads["flows_followed"] == result["flows"],
            "busiest_needs_us": loads["busiest_needs_us"], "finish_us": result["finish_us"],
            "slowest_flow_bytes_per_second": result["slowest_flow_bytes_per_second"],
            "mean_flow_bytes_per_second": result["mean_flow_bytes_per_second"],
            "aggregate_bytes_per_second": result["aggregate_bytes_per_second"]}


def rows_of(results):
    return {"latency": [latency_row(r) for r in of_pattern(results, "latency")],
            "stream": [{"topology": r["topology"], "hosts": r["hosts"], "hops": f["hops"],
                        "bytes_per_second": f["bytes_per_second"]}
                       for r in of_pattern(results, "stream") for f in r["by_hops"]],
            "bisection": [bisection_row(r) for r in of_pattern(results, "bisection")],
            "congestion": [load_row(r) for r in of_pattern(results, *TOGETHER[1:])]}
