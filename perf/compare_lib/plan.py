# SPDX-License-Identifier: BSD-2-Clause
"""The plan of a round: (name, what it needs or None, step) of every measurement.

A need is a peer, an option of a tool that older builds lack, as "vi_lat --adopt", or FULL.
"""
from . import peers, tools
from .peers import LIBFABRICS, MPIS, NEWER_UCX, NEWER_UCX_CMA, UCX

LATENCY_SIZES = [4, 8, 64, 1024, 4096]
CURVE_SIZES = [4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576]
LARGE = [65536, 1048576]
QUICK_SIZES = [4, 64, 1024, 4096, *LARGE]
MIB = LARGE[1]
FULL = "full"
OPTIONAL = (*peers.OPTIONAL, FULL)
SPIN = "--spin"


def why_missing(bench, need):
    """None, or why what a measurement needs is not there."""
    if need == FULL:
        return "registration is left to runs without --quick: touching 1 GiB takes seconds" \
            if bench.quick else None
    tool, _, option = need.partition(" ")
    if option:
        return None if bench.has_option(tool, option) else f"{tool} of this build has no {option}"
    return peers.present(bench, need)


def each(kind, sizes):
    return [(kind, size) for size in sizes]


# ---- the rows; what is compared is measured one after the other, so that it has the same placement most of the time ----

def variants_plan():
    """What is compared with latencies of ours, which come next."""
    lat = tools.latency_step
    return [
        ("post", None, tools.post_time_step),
        ("256 VIs in turn", None, lat("ours.turn256.{}", [4], SPIN, "--cq", "--vis", "256",
                                      warmup=5120)),
        ("256 VIs", None, lat("ours.busy256.{}", [4], SPIN, "--cq", "--vis", "256", "--busy", "1",
                              warmup=100000)),
        ("CQ", None, lat("ours.cq.{}", [4], SPIN, "--cq")),
        ("RDMA write to adopted memory", "vi_lat --adopt",
         lat("ours.adopted.{}", [8], SPIN, "--op", "write", "--adopt", "--buffers", "16")),
        ("RDMA write", None, lat("ours.write.{}", [8], SPIN, "--op", "write", "--window-memory",
                                 "--buffers", "16")),
        ("RDMA read", None, lat("ours.read.{}", [8], SPIN, "--op", "read")),
        ("self", None, lat("self.lat.{}", LATENCY_SIZES, SPIN, hosts="host0,host0")),
        ("unreliable", None, lat("ours.unreliable.{}", [4], SPIN, "--level", "unreliable")),
    ]


def messages_plan(sizes):
    """Messages of ours and of all others, and what is held against one of the others."""
    lat, stream, ucx = tools.latency_step, tools.stream_step, peers.ucx_step
    lats, rates = [*each("lat", LATENCY_SIZES), ("putlat", 8)], each("rate", (4, 64))
    return [
        ("raw latency", None, tools.raw_step("slot,pingpong,fifo", [4, 64, 1024, 4096])),
        ("latency", None, lat("ours.lat.{}", LATENCY_SIZES, SPIN)),
        ("UCX latency", "ucx", ucx(UCX, *lats, *each("lat", LARGE))),
        ("newer UCX latency", "newer_ucx", ucx(NEWER_UCX, *lats, *each("lat", LARGE))),
        ("latency, large", None, lat("ours.lat.{}", LARGE, SPIN, batch=5)),
        ("rate, calls for many", "vi_rate --batch",
         stream("ours.many.{}", "vi_rate", [4], "--batch", "32", "--window", "256", seconds=0.01,
                times=5)),
        ("rate", None, stream("ours.rate.{}", "vi_rate", [4, 64], seconds=0.01, times=5)),
        ("UCX rate", "ucx", ucx(UCX, *rates, times=5)),
        ("newer UCX rate", "newer_ucx", ucx(NEWER_UCX, *rates, times=5)),
        *[(name, name, peers.libfabric_step(fabric, sizes)) for name, fabric in LIBFABRICS.items()],
        *[(name, name, peers.mpi_step(mpi, sizes)) for name, mpi in reversed(MPIS.items())],  # Open MPI last
        ("newer UCX, one copy", "newer_ucx_cma", ucx(NEWER_UCX_CMA, *each("lat", LARGE[:1]))),
        ("latency into window memory", None,
         lat("ours.latwin.{}", LARGE[:1], SPIN, "--window-memory", batch=20)),
        ("raw put", None, tools.raw_step("put", LARGE[:1])),
    ]


def streams_plan():
    """Streams of long messages, and copies by one process; MPI and libfabric have measured them in messages_plan()."""
    stream, window = tools.stream_step, "--window-memory"
    rdma, ucx = (window, "--buffers", "8"), [*each("bw", LARGE), ("put", MIB)]
    return [
        ("bandwidth", None, stream("ours.bw.{}", "vi_bw", LARGE)),
        ("raw streams", None, tools.raw_step("chunk", LARGE, 11, 1)),
        ("newer UCX bandwidth", "newer_ucx", peers.ucx_step(NEWER_UCX, *ucx, times=5)),
        ("UCX bandwidth", "ucx", peers.ucx_step(UCX, *ucx, times=5)),
        ("write with immediate", None,
         stream("ours.putimm.{}", "vi_bw", [MIB], "--op", "write-imm", *rdma)),
        ("put", None, stream("ours.put.{}", "vi_bw", [MIB], "--op", "write", *rdma)),
        ("raw memcpy", None, tools.raw_step("memcpy", [MIB])),
        ("stream into window memory", None, stream("ours.bwwin.{}", "vi_bw", [MIB], window)),
    ]


def one_core_step(mode, how):
    def step(bench):
        poll = mode == "poll"
        run = tools.latency_step(f"ours.one.{mode}", [4], "--wait", "poll" if poll else "block",
                                 env={} if poll else {"VIADUCT_WAIT": mode},
                                 pinned=str(bench.pin[0]), **how)
        return run(bench)
    return step


def waiting_plan():
    lat = tools.latency_step
    one = {"hosts": "host0,host1", "batch": 20, "seconds": 0.05}
    return [
        ("blocking", None, lat("ours.block.{}", [4], "--wait", "block",
                               env={"VIADUCT_WAIT": "block"}, **one)),
        ("raw futex", None, tools.raw_step("asleep", None, 15, 2)),
        *[(f"one core, {mode}", None, one_core_step(mode, one))
          for mode in ("yield", "block", "adaptive", "poll")],
        ("raw shared core", None, tools.raw_step("shared-core")),
        ("unpinned wait", None, lat("ours.unpinned.wait", [4], "--wait", "block", pinned="",
                                    **one)),
        ("unpinned poll", None, lat("ours.unpinned.poll", [4], pinned="", **one)),
        ("registration", FULL, tools.register_step),
    ]


def core_plan(sizes):
    """Messages of all libraries have these sizes."""
    return waiting_plan() + variants_plan() + messages_plan(sizes) + streams_plan()


# ---- all ----

def quick_plan():
    return core_plan(QUICK_SIZES) + [("sockets", None, tools.raw_step("unix,tcp", [4], 15, 0.5))]


def full_plan():
    """The rows, and the sizes of the curves that they lack."""
    lat, sizes = tools.latency_step, [s for s in CURVE_SIZES if s not in (*LATENCY_SIZES, *LARGE)]
    large, small = [s for s in sizes if s > tools.SMALL], [s for s in sizes if s <= tools.SMALL]
    streams = [s for s in CURVE_SIZES if s not in LARGE]
    return core_plan(CURVE_SIZES) + [
        ("latency by size", None, lat("ours.lat.{}", small, SPIN)),
        ("latency by size, large", None, lat("ours.lat.{}", large, SPIN, batch=5)),
        ("UCX latency by size", "ucx", peers.ucx_step(UCX, *each("lat", sizes))),
        ("newer UCX latency by size", "newer_ucx", peers.ucx_step(NEWER_UCX, *each("lat", sizes))),
        ("self by size", None, lat("self.lat.{}", small, SPIN)),
        ("self, large", None, lat("self.lat.{}", [*large, *LARGE], SPIN, batch=5)),
        ("raw latency by size", None, tools.raw_step("pingpong", [*sizes, *LARGE])),
        ("bandwidth by size", None, tools.stream_step("ours.bw.{}", "vi_bw", streams)),
        ("UCX bandwidth by size", "ucx", peers.ucx_step(UCX, *each("bw", streams), times=3)),
        ("newer UCX bandwidth by size", "newer_ucx",
         peers.ucx_step(NEWER_UCX, *each("bw", streams), times=3)),
        ("raw bandwidth by size", None, tools.raw_step("chunk", streams, 7, 0.5)),
        ("sockets", None, tools.raw_step("unix,tcp", CURVE_SIZES, 15, 0.5)),
    ]
