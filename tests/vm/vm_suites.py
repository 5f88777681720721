# SPDX-License-Identifier: BSD-2-Clause
"""The suites, by name."""
from pathlib import Path

from vm_run import Suite
from vm_vfio_ntb import VfioLink

SCRIPTS = Path(__file__).resolve().parent / "suites"
PROGRAMS = SCRIPTS.parent / "programs"
TOOL = ("ntb", "ntb_hw_ivshmem", "ntb_tool")


def suite(name, guests, modules, script=None, **more):
    return Suite(name, guests, SCRIPTS / f"{script or name}.sh", modules, **more)


def programs(*names):
    return tuple(PROGRAMS / f"{name}.c" for name in names)


LOOP = {"A": [("l", 0), ("l", 1)]}
PAIR = {"A": [("l", 0)], "B": [("l", 1)]}

# The links of Viaduct, of bare windows, of ntb_netdev and of ntb_perf.
FOUR = {name: [(link, port) for link in "lmno"] for port, name in enumerate("AB")}
RXE = ("crc32_generic", "udp_tunnel", "ip6_udp_tunnel", "ib_core", "ib_uverbs", "rdma_rxe")


def ring(count):
    """Guests A, B, C ...: the first adapter leads to the next one, the second to the one before."""
    names = [chr(ord("A") + i) for i in range(count)]
    links = [one.lower() + names[(i + 1) % count].lower() for i, one in enumerate(names)]
    return {one: [(links[i], 0), (links[i - 1], 1)] for i, one in enumerate(names)}


CLIENTS = TOOL + ("ntb_pingpong", "ntb_perf", "ntb_transport", "ntb_netdev")
CDEV = ("ntb", "ntb_hw_ivshmem", "viaduct")
AGENTS = ("provider/agent/viaductd", "tools/vi_fabric", "tools/vi_info", "perf/vi_lat", "perf/vi_bw", "examples/vi_cp")
VIPL_PARTS = 6  # of the conformance suite, which takes long
RING = AGENTS + ("tests/vm/flow",)
SHMEM = {
    "built": AGENTS[:2] + ("shmem/tools/oshrun", "tests/shmem/random_traffic", "examples/shmem/heat", "examples/shmem/isort") + tuple(
        f"tests/shmem/rules_{name}" for name in ("start", "access", "sync", "collectives", "locks", "teams")) + tuple(
        f"perf/shmem/osb_{name}" for name in ("put", "get", "rate", "amo", "barrier", "reduce", "collect")),
    # The C library loads it when a thread is cancelled.
    "files": (("/lib/x86_64-linux-gnu/libgcc_s.so.1", "lib/x86_64-linux-gnu/libgcc_s.so.1"),),
    "network": True, "stock": ("e1000",), "window_bytes": 16 << 20, "timeout": 900}
# The tests of the conformance suite that use links most.
VIPL_QUICK = "Ordering.*:Queue.*:Error.*:Flush.*:Notify.*"
NETDEV = ("ntb", "ntb_hw_ivshmem", "ntb_transport", "ntb_netdev")

EPF = {"link": VfioLink, "kernel_args": "VM_DRIVER=ntb_hw_epf"}

SUITES = {one.name: one for one in (
    suite("link", LOOP, TOOL),
    suite("ntb_hw", LOOP, TOOL + ("ntb_pingpong", "ntb_perf"), programs=("bash", "cmp"),
          files=(("tools/testing/selftests/ntb/ntb_test.sh", "ntb_test.sh"),)),
    suite("profiles", LOOP, TOOL + ("ntb_pingpong",), windows=4, window_bytes=1 << 20, doorbells=32),
    suite("dma", LOOP, ("ntb", "ntb_hw_ivshmem", "ntb_perf", "sw_dma")),
    suite("kmod", LOOP, ("ntb", "ntb_hw_ivshmem", "viaduct"), compiled=programs("kmod", "rights")),
    suite("kmod_msg", LOOP, TOOL + ("viaduct",), compiled=programs("kmod", "spads", "forge", "reload")),
    suite("kmod_limits", LOOP, ("ntb", "ntb_hw_ivshmem", "viaduct"), compiled=programs("limits")),
    suite("kmod_unplug", LOOP, ("ntb", "ntb_hw_ivshmem", "viaduct"), compiled=programs("unplug"),
          timeout=400),
    suite("kmod_copy", LOOP, ("ntb", "ntb_hw_ivshmem", "viaduct", "sw_dma"), compiled=programs("copy")),
    suite("kmod_fuzz", LOOP, ("ntb", "ntb_hw_ivshmem", "viaduct"), compiled=programs("fuzz")),
    suite("kmod_fuzz_long", LOOP, ("ntb", "ntb_hw_ivshmem", "viaduct"), script="kmod_fuzz", compiled=programs("fuzz"),
          kernel_args="FUZZ_SECONDS=600", timeout=900),
    suite("kmod_compat", LOOP, ("ntb", "ntb_hw_ivshmem", "viaduct"), compiled32=programs("kmod", "rights", "fuzz")),
    suite("cdev", LOOP, CDEV, doorbells=32, built=("tests/port/port_tests",), timeout=450),
    suite("vi_port", LOOP, CDEV, built=("tools/vi_port",)),
    suite("cdev-agents", LOOP, CDEV, built=AGENTS + ("tests/vipl/vipl_conformance", "tests/vm/vm_keeper"), window_bytes=16 << 20,
          kernel_args=f"CONFORMANCE={VIPL_QUICK} KEEP=40"),
    *(suite(f"cdev-vipl{part}", LOOP, CDEV, script="cdev-agents", timeout=850, window_bytes=16 << 20,
            built=AGENTS + ("tests/vipl/vipl_conformance",),
            kernel_args=f"CONFORMANCE=-Slow*:Limits* SHARD={part}/{VIPL_PARTS}") for part in range(VIPL_PARTS)),
    suite("cdev-relays", {"A": [(f"l{link}", port) for link in range(4) for port in (0, 1)]}, CDEV, script="cdev-agents",
          built=AGENTS + ("tests/vipl/vipl_conformance",), window_bytes=16 << 20,
          kernel_args=f"HOSTS=4 CONFORMANCE={VIPL_QUICK}", timeout=900),
    suite("cdev-pair", PAIR, CDEV, built=AGENTS),
    suite("cdev-window", PAIR, CDEV, built=AGENTS + ("tests/vm/vm_direct",), timeout=400),
    suite("cdev-small", PAIR, CDEV, windows=1, window_bytes=1 << 20, doorbells=8, built=AGENTS,
          kernel_args=f"CONNECTIONS=16 LITTLE={128 << 10}"),
    suite("cdev-small4", PAIR, CDEV, script="cdev-small", windows=4, window_bytes=1 << 16, doorbells=4, built=AGENTS,
          kernel_args=f"CONNECTIONS=8 LITTLE={32 << 10}"),
    suite("vi_port_pair", PAIR, CDEV, built=AGENTS + ("tools/vi_port",)),
    suite("vi_port_selftest", PAIR, CDEV, built=("tools/vi_port",), doorbells=32, timeout=400),
    suite("pair", PAIR, CLIENTS),
    suite("death", PAIR, TOOL),
    suite("reload", PAIR, TOOL),
    suite("kmod_reload", PAIR, ("ntb", "ntb_hw_ivshmem", "viaduct"), compiled=programs("reload"), timeout=500),
    suite("kmod_reload_idt", PAIR, ("ntb", "ntb_hw_ivshmem", "viaduct"), script="kmod_reload",
          compiled=programs("reload"), kernel_args="PROFILE=idt", timeout=500),
    suite("kmod_pair", PAIR, ("ntb", "ntb_hw_ivshmem", "viaduct"), compiled=(PROGRAMS / "kmod_pair.c",)),
    suite("figures", FOUR, CDEV + ("ntb_transport", "ntb_netdev", "ntb_perf"), stock=RXE, built=AGENTS + ("tools/vi_stat",),
          compiled=programs("raw_window", "tcp"), programs=("rdma", "ibv_rc_pingpong"), plugins=("rxe",),
          timeout=400),
    suite("ring3", ring(3), NETDEV, script="ring"),
    suite("ring5", ring(5), NETDEV, script="ring", timeout=240),
    suite("cdev-ring3", ring(3), CDEV, script="cdev-ring", built=RING, timeout=900, kernel_args="PART=programs"),
    suite("cdev-ring5", ring(5), CDEV, script="cdev-ring", built=RING, timeout=900, kernel_args="PART=programs"),
    suite("cdev-faults3", ring(3), CDEV, script="cdev-ring", built=RING, timeout=900, kernel_args="PART=faults"),
    suite("cdev-faults5", ring(5), CDEV, script="cdev-ring", built=RING, timeout=900, kernel_args="PART=faults"),
    suite("cdev-shmem", ring(3), CDEV, kernel_args="PART=programs", **SHMEM),
    suite("cdev-shmem2", PAIR, CDEV, script="cdev-shmem", kernel_args="PART=programs", **SHMEM),
    suite("cdev-shmem-examples", ring(3), CDEV, script="cdev-shmem", kernel_args="PART=examples", **SHMEM),
    suite("cdev-shmem-examples2", PAIR, CDEV, script="cdev-shmem", kernel_args="PART=examples", **SHMEM),
    suite("cdev-shmem-faults", ring(3), CDEV, script="cdev-shmem", kernel_args="PART=faults", **SHMEM),
    # Of Debian's two names of the program the package redis-tools has the one, and redis-server the other, with a service.
    suite("cdev-sockets", PAIR, CDEV, built=AGENTS[:2] + ("sock/run/vi_run", ("sock/hook/libvisock.so", "hook/libvisock.so")),
          programs=("redis-cli", "redis-benchmark", ("redis-check-rdb", "bin/redis-server")), network=True, stock=("e1000",),
          window_bytes=16 << 20, timeout=900),
    suite("epf", PAIR, ("ntb", "ntb_hw_epf") + CLIENTS[2:], script="pair", **EPF),
    suite("epf_kmod", PAIR, ("ntb", "ntb_hw_epf", "viaduct"), script="kmod_pair",
          compiled=(PROGRAMS / "kmod_pair.c",), **EPF),
    # Doorbells overtake stores; a guest has to look at a store before the time is over for which it is held back.
    suite("epf_early", PAIR, ("ntb", "ntb_hw_epf", "viaduct"), compiled=programs("early"), early=0.2, link=VfioLink,
          kernel_args="PART=program"),
    suite("epf_early_judge", PAIR, ("ntb", "ntb_hw_epf", "viaduct"), script="epf_early", built=("tools/vi_port",), early=0.2,
          link=VfioLink, kernel_args="PART=judge", timeout=900),
    suite("epf_early_agents", PAIR, ("ntb", "ntb_hw_epf", "viaduct"), built=AGENTS, early=0.05, link=VfioLink,
          window_bytes=4 << 20, timeout=900),
    suite("iommu", PAIR, ("ntb", "ntb_hw_epf", "viaduct"), built=("tools/vi_port",), iommu=True, timeout=400, **EPF),
    suite("iommu_epf", PAIR, ("ntb", "ntb_hw_epf") + CLIENTS[2:], script="pair", iommu=True, **EPF),
    suite("iommu_kmod", PAIR, ("ntb", "ntb_hw_epf", "viaduct"), script="kmod_pair",
          compiled=(PROGRAMS / "kmod_pair.c",), iommu=True, **EPF),
    suite("iommu_adopt", PAIR, ("ntb", "ntb_hw_epf", "viaduct"), compiled=programs("adopt"), iommu=True, **EPF),
    suite("iommu_window", PAIR, ("ntb", "ntb_hw_epf", "viaduct"), built=AGENTS + ("tests/vm/vm_direct", "tests/vm/vm_shared"),
          iommu=True, window_bytes=4 << 20, timeout=600, **EPF),
)}
