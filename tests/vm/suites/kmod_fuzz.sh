# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: calls of all kinds, for $FUZZ_SECONDS seconds in all.

# shellcheck disable=SC1091
. /program.sh

answer() {
	fail "the program asks for $1"
}

: "${FUZZ_SECONDS:=$((10 * VM_PATIENCE))}"
load ntb
for profile in plain idt; do
	load viaduct
	load ntb_hw_ivshmem profile=$profile
	start_program /fuzz $((FUZZ_SECONDS / 2)) "$(cut -d' ' -f1 /proc/uptime | tr -d .)"
	hear_program $((FUZZ_SECONDS + 60))
	unload viaduct ntb_hw_ivshmem
done
unload ntb
