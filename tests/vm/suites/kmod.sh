# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: viaduct.ko and its interface.

# shellcheck disable=SC1091
. /program.sh

# run_program BITS: the doorbell bits that the ports have.
run_program() {
	check "a device for each port" test -c /dev/viaduct0 -a -c /dev/viaduct1
	same "for root only" "crw------- crw-------" "$(stat -c %A /dev/viaduct0 /dev/viaduct1 | xargs)"
	start_program /rights
	hear_program 60
	addresses "$1"
	start_program /kmod
	hear_program 60
}

answer() {
	answer_link "$1"
}

load ntb
load viaduct
load ntb_hw_ivshmem
run_program 0xffff
unload viaduct ntb_hw_ivshmem
check "no device is left" sh -c "! ls /dev/viaduct*"

# Masks have no effect, there are no vectors, and if several bits are written only the lowest is rung.
load ntb_hw_ivshmem profile=epf
load viaduct
run_program 0xff
unload viaduct ntb_hw_ivshmem

# Chips whose memory has to be aligned to the window, or that lack a bit; vi_port and kmod_msg test amd and idt.
for rules in plx:0xffff intel:0x7fff switchtec:0xffff; do
	note "${rules%:*}"
	load ntb_hw_ivshmem profile="${rules%:*}"
	load viaduct
	run_program "${rules#*:}"
	unload viaduct ntb_hw_ivshmem
done

# refused PROFILE REASON: checks that both ports of an adapter with unusable windows are refused,
# each with a line in the log.
refused() {
	load ntb_hw_ivshmem profile="$1"
	load viaduct
	check "$1: no device" sh -c "! ls /dev/viaduct*"
	same "$1: the log says why" 2 "$(dmesg | grep -c "viaduct does not use this adapter: its memory windows $2")"
	unload viaduct ntb_hw_ivshmem
}

refused noroom "have no room: error -6"
refused unaligned "cannot be mapped: error -22"
unload ntb
