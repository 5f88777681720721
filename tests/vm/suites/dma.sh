# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: ntb_perf with the DMA engine in software.

load sw_dma
load ntb
load ntb_hw_ivshmem
run=/sys/kernel/debug/ntb_perf/0000:00:10.0/run
load ntb_perf total_order=26 max_mw_size=4194304 use_dma=1
check "ntb_perf with DMA" sh -c "echo 0 >$run"
check "and was given a result" grep -q MBytes $run
note "ntb_perf with DMA: $(grep MBytes $run)"
same "the engine has copied it, in pieces of 512 KiB" 128 "$(cat /sys/module/sw_dma/parameters/copied)"
echo 1 >/sys/module/sw_dma/parameters/fail
echo 0 >$run
same "a copy that fails is not counted" 255 "$(cat /sys/module/sw_dma/parameters/copied)"
unload ntb_perf ntb_hw_ivshmem ntb sw_dma
