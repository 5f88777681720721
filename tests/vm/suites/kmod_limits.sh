# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: the limits of viaduct.ko, with masks of doorbells that work and with masks that have no
# effect.

# shellcheck disable=SC1091
. /program.sh

answer() {
	fail "the program asks for $1"
}

load ntb
for profile in plain epf; do
	load viaduct
	load ntb_hw_ivshmem profile=$profile
	start_program /limits
	hear_program 60
	unload viaduct ntb_hw_ivshmem
done
unload ntb
