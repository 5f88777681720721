# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, an agent in each, and an IOMMU before each adapter: a program of one stores into memory that a program of
# the other has adopted, without slots.

# shellcheck disable=SC1091
. /agents.sh

load ntb
load ntb_hw_epf
load viaduct
start_agent
stores "RDMA writes are stores into memory that the other machine's program has adopted" adopt
same "nothing is refused" "" "$(grep "cannot be shared" /tmp/agent.log)"
check "it is given back to the program" wait_for 60 pinned_is 0
stores "RDMA writes are stores into memory of the window" new
traffic "writes into adopted memory" vi_bw --op write --adopt --window 1 --sizes 16k --iters 20 --warmup 0 --verify
check "it is given back to the program" wait_for 60 pinned_is 0

# Does what the server asks for.
answer() {
	[ "$1" != unpinned ] || wait_for 60 pinned_is 0
	pinned
}

both "shared"
if [ "$VM_GUEST" = A ]; then
	vm_shared client host1 >/tmp/first 2>&1 &
	first=$!
	check "one of two programs that write into the same memory" vm_shared client host1
	note "$(cat /tmp/check.out)"
	check "the other one" wait "$first"
	note "$(cat /tmp/first)"
else
	converse vm_shared server
fi
check "it is given back to the program" wait_for 60 pinned_is 0
check "the window is as empty as before" wait_for 60 is_idle

# killed NAME [cut]: a program ends in this way while the other stores into its memory, a large part of what can be adopted.
# With a cut link no neighbour reports that it has given the memory up.
killed() {
	both "$1"
	if [ "$VM_GUEST" = A ]; then
		vi_bw --connect host1 --op write --adopt --window 1 --sizes 64k --buffers 12 --duration 100 --timeout 60 --quiet \
			>/tmp/out 2>&1
		same "a writer learns that the owner of the memory was killed" 1 $?
	else
		vi_bw --server --timeout 60 --quiet >/tmp/out 2>&1 &
		owner=$!
		check "a program has adopted memory" wait_for 60 pinned_at_least $((2 * 12 * 64)) # as much to send from
		[ -z "$2" ] || ask cut l >/dev/null
		kill -9 "$owner"
		wait "$owner" 2>/dev/null
	fi
	check "what the dead had is given back" wait_for 60 pinned_is 0
	if [ -n "$2" ]; then
		both "$1: given back"
		[ "$VM_GUEST" = A ] || ask restore l >/dev/null
		check "the link comes up again" wait_for 60 link_is_up
	fi
	check "the window is as empty as before" wait_for 60 is_idle
}

for round in 1 2 3; do # more in all than there is, so it must be given back each time
	killed "kill $round"
done
killed "kill with a cut link" cut

# More than half of a window.
traffic "writes into adopted memory that is too large" vi_bw --op write --adopt --window 1 --sizes 64k --buffers 64 --iters 4 \
	--warmup 0
[ "$VM_GUEST" = A ] || check "go through slots, and the agent says why" grep "cannot be shared.*raise window_bytes" /tmp/agent.log
stores "then smaller memory is stored into" adopt
stop_agent
both end
unload viaduct ntb_hw_epf ntb
