# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: copies into slices by a DMA engine and by the processor.

# shellcheck disable=SC1091
. /program.sh

answer() {
	case $1 in
	cut) ask cut l >/dev/null ;;
	restore) ask restore l >/dev/null ;;
	unbind) echo 0000:00:10.0 >/sys/bus/ntb/drivers/viaduct/unbind ;;
	esac
}

load sw_dma
load ntb
load viaduct engine_ms=60000 # an engine counts as late only when a test wants it, and not on a slow machine
load ntb_hw_ivshmem
start_program /copy
hear_program 90
unload viaduct ntb_hw_ivshmem ntb sw_dma
# Includes the counts of each processor.
cat /proc/sys/vm/stat_refresh
check "memory was pinned" grep -q '^nr_foll_pin_acquired [1-9]' /proc/vmstat
same "and none of it is still" "$(sed -n 's/^nr_foll_pin_acquired //p' /proc/vmstat)" \
	"$(sed -n 's/^nr_foll_pin_released //p' /proc/vmstat)"
