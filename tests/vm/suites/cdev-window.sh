# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, an agent in each: a program in one stores into window memory of a program in the other, without slots.

# shellcheck disable=SC1091
. /agents.sh

load ntb
load ntb_hw_ivshmem
load viaduct
start_agent
stores "RDMA writes of 1 MiB are stores into the other machine's memory"
check "all of the window comes back" wait_for 60 is_idle
traffic "writes into window memory" vi_bw --op write --window-memory --window 1 --sizes 1M --iters 40 --verify
traffic "writes into other memory" vi_bw --op write --window 1 --sizes 1M --iters 40 --verify
traffic "messages into window memory" vi_lat --window-memory --sizes 4k,64k --iters 50 --verify
traffic "answers into window memory" vi_lat --op read --window-memory --sizes 4k,64k --iters 50 --verify
check "it has come back after these" wait_for 60 is_idle

# Memory that a program adopts cannot be put behind the adapter's window, and the log says why.
why="window memory of .* cannot be shared, .*no IOMMU translates for the adapter"
check "nothing was adopted until now" sh -c "! grep \"$why\" /tmp/agent.log"
traffic "writes into adopted memory" vi_bw --op write --adopt --window 1 --sizes 64k --iters 10 --verify
[ "$VM_GUEST" = A ] || check "the agent says why they go through slots" grep "$why" /tmp/agent.log
check "they take nothing of the window" is_idle

# A program that is killed while the other stores into its memory.
both kill
if [ "$VM_GUEST" = A ]; then
	vi_bw --connect host1 --op write --window-memory --sizes 256k --duration 100 --timeout 60 --quiet >/tmp/out 2>&1
	same "a writer learns that the owner of the memory was killed" 1 $?
else
	vi_bw --server --timeout 60 --quiet >/tmp/out 2>&1 &
	owner=$!
	check "a program has window memory" wait_for 60 is_used
	kill -9 "$owner"
	wait "$owner" 2>/dev/null
fi
check "what the dead had comes back" wait_for 60 is_idle
stores "stores after a program was killed"
stop_agent
both end
unload viaduct ntb_hw_ivshmem ntb
