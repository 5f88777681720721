# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, an agent in each, on adapters whose doorbells overtake stores: programs that sleep are woken for each
# message, with the module's read across the link before it rings, and without it, when only the reads of those who
# are about to sleep land the stores.

# shellcheck disable=SC1091
. /agents.sh

# sleepers HOW: programs that sleep for each message exchange messages.
sleepers() {
	traffic "$1: messages that wake a sleeper" vi_lat --wait block --sizes 64,4k --iters 100 --verify
	traffic "$1: one-way messages to a sleeper" vi_bw --wait block --sizes 64,16k --iters 50 --verify
	traffic "$1: RDMA writes with immediate data that wake a sleeper" vi_lat --wait block --op write-imm --sizes 64,4k --iters 50 --verify
	traffic "$1: RDMA reads of sleepers" vi_lat --wait block --op read --sizes 64,4k --iters 50 --verify
	traffic "$1: sleepers at reliable reception" vi_lat --wait block --level reception --sizes 64 --iters 50 --verify
}

# cut_link HOW: the link is cut while nothing is under way, and what sleeps on it goes on afterwards.
cut_link() {
	both "cut $1"
	[ "$VM_GUEST" = B ] || ask cut l >/dev/null
	check "$1: a cut takes the link down" wait_for 60 sh -c "! vi_fabric status | grep -q 'cdev  *link up '"
	both "was cut $1"
	[ "$VM_GUEST" = B ] || ask restore l >/dev/null
	check "$1: the link comes up again" wait_for 60 link_is_up
	traffic "$1: messages that wake a sleeper after a cut" vi_lat --wait block --sizes 64 --iters 50 --verify
}

load ntb
load ntb_hw_epf
for how in "with reads" "without reads"; do
	if [ "$how" = "with reads" ]; then
		load viaduct
	else
		load viaduct read_back=0
	fi
	start_agent
	sleepers "$how"
	cut_link "$how"
	stop_agent
	both "end $how"
	unload viaduct
done
unload ntb_hw_epf ntb
