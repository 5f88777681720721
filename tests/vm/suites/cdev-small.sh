# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, an agent in each, whose adapter is one of an endpoint with small windows: many connections share them, and
# with less memory the link stays down.

# shellcheck disable=SC1091
. /agents.sh

refused() {
	grep -q 'its link stays down: its windows have 128 KiB in all, 256 KiB are needed' /tmp/agent.log
}

load ntb
load ntb_hw_ivshmem profile=epf
load viaduct
start_agent
traffic "polled messages" vi_lat --sizes 1,64,4k,64k --iters 200 --verify
traffic "messages that wake a sleeper" vi_lat --wait block --sizes 64 --iters 100
traffic "messages over $CONNECTIONS connections" vi_lat --vis "$CONNECTIONS" --sizes 64,4k --iters 200 --verify
traffic "streams over $CONNECTIONS connections" vi_bw --vis "$CONNECTIONS" --sizes 4k,64k --iters 60 --verify
traffic "RDMA writes" vi_lat --op write --sizes 64,64k --iters 100 --verify
traffic "RDMA reads" vi_lat --op read --sizes 64,64k --iters 100 --verify
check "all of the window comes back" wait_for 60 is_idle
both "all is done"
stop_agent
check "the device is free when the agent has ended" wait_for 10 sh -c ": <>/dev/viaduct0"
both "agents have ended"
unload viaduct
both "no module"
load viaduct window_bytes="$LITTLE"
run_agent
check "windows that are too small are refused, with a line that says so" wait_for 60 refused
grep 'stays down' /tmp/agent.log | while read -r line; do note "$line"; done
both "refused"
stop_agent
check "the device is free again" wait_for 10 sh -c ": <>/dev/viaduct0"
both end
unload viaduct ntb_hw_ivshmem ntb
