# SPDX-License-Identifier: BSD-2-Clause
"""The tables that perf/ring_sim prints."""


def number(value):
    """Four digits, more before the point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def rate(value):
    return number(value / 1e9)


def megabytes(value):
    return number(value / 1e6)


def show(title, heads, rows):
    """Text to the left, figures to the right."""
    cells = [[c if isinstance(c, str) else number(c) if isinstance(c, float) else str(c)
              for c in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(heads), *cells]) for i in range(len(heads))]
    left = [any(isinstance(r[i], str) and not r[i][:1].isdigit() for r in rows) or not rows
            for i in range(len(heads))]
    print(f"\n{title}")
    for row in [list(heads), *cells]:
        print("  ".join(c.ljust(w) if l else c.rjust(w)
                        for c, w, l in zip(row, widths, left)).rstrip())


def latency(rows):
    show("One message of 64 B alone, one way, microseconds",
         ("topology", "hosts", "links", "diameter", "mean hops", "neighbour", "mean pair",
          "worst pair", "beyond reach"),
         [(r["topology"], r["hosts"], r["links"], r["diameter_hops"], r["mean_hops"],
           r["neighbour_us"], r["mean_us"], r["worst_us"],
           f"{100 * r['beyond_reach']:.0f} %") for r in rows])
    if any(r["beyond_reach"] for r in rows):
        print("beyond reach: pairs further apart than the longest path that provider/route gives;\n"
              "they are simulated over a shortest path of the same kind")


def stream(rows):
    show("One stream of 1 MiB messages alone, by hops",
         ("hops", "GB/s"), [(r["hops"], rate(r["bytes_per_second"])) for r in rows])


def bisection(rows):
    show("Both halves send to each other, GB/s of both directions",
         ("topology", "hosts", "links cut", "they carry", "moved", "share", "model"),
         [(r["topology"], r["hosts"], r["links"], rate(r["cut_bytes_per_second"]),
           rate(r["moved_bytes_per_second"]),
           f"{100 * r['moved_bytes_per_second'] / r['cut_bytes_per_second']:.0f} %", r["model"])
          for r in rows])


def congestion(rows):
    show("Congestion: load of the links, and what becomes of the flows",
         ("pattern", "topology", "hosts", "flows", "busiest/mean", "busiest needs us",
          "all done us", "slowest MB/s", "mean MB/s", "all GB/s", "model"),
         [(r["pattern"], r["topology"], r["hosts"], r["flows"],
           ("" if r["loads_exact"] else "~") + number(r["most_over_mean"]),
           r["busiest_needs_us"], r["finish_us"], megabytes(r["slowest_flow_bytes_per_second"]),
           megabytes(r["mean_flow_bytes_per_second"]), rate(r["aggregate_bytes_per_second"]),
           r["model"]) for r in sorted(rows, key=lambda r: r["pattern"])])
    print("model: fragments hop by hop; fluid, streams that share links; fluid 1:N, a sample of\n"
          "them in which each stands for N, so that the end is late rather than early; streams "
          "know\nnothing of threads that wait for a busy link, so theirs is early where threads "
          "store\n~: loads of a sample of the flows")


def all_tables(rows):
    latency(rows["latency"])
    stream(rows["stream"])
    bisection(rows["bisection"])
    congestion(rows["congestion"])
