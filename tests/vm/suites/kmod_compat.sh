# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: programs of 32 bits on the kernel of 64 bits.

# shellcheck disable=SC1091
. /program.sh

answer() {
	answer_link "$1"
}

load ntb
load viaduct
load ntb_hw_ivshmem
addresses 0xffff
start_program /rights-32
hear_program 60
start_program /kmod-32
hear_program 60
unload viaduct ntb_hw_ivshmem
load viaduct
load ntb_hw_ivshmem
start_program /fuzz-32 5 "$(cut -d' ' -f1 /proc/uptime | tr -d .)"
hear_program 65
unload viaduct ntb_hw_ivshmem ntb
