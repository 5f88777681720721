# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, an agent in each: programs of one reach those of the other, also after something was killed or cut.

export VIADUCT_FABRIC=vm VIADUCT_AGENT=none
if [ "$VM_GUEST" = A ]; then
	VIADUCT_HOST=0
	ask put boot first >/dev/null
else
	VIADUCT_HOST=1
fi
export VIADUCT_HOST

start_agent() {
	viaductd --fabric vm --host-id "$VIADUCT_HOST" --hosts 2 --port cdev 2>>/tmp/agent.log &
	agent=$!
}

link_is() {
	vi_fabric status | grep -q "cdev  *link $1 "
}

link_becomes() {
	if wait_for 30 link_is "$1"; then
		ok "$2"
	else
		fail "$2"
		tail -n 8 /tmp/agent.log | while read -r line; do note "agent: $line"; done
		vi_fabric status 2>&1 | while read -r line; do note "$line"; done
	fi
}

copy() {
	mkdir -p /tmp/served
	both copy
	if [ "$VM_GUEST" = A ]; then
		head -c 8388608 /dev/urandom >/tmp/data
		ask put sum "$(sha256sum </tmp/data | cut -d' ' -f1)" >/dev/null
		check "vi_cp copies 8 MiB" vi_cp --wait 30 /tmp/data host1:data
	else
		check "vi_cp serves" vi_cp --serve /tmp/served --once
		same "the copy is the file" "$(ask get sum)" "$(sha256sum </tmp/served/data | cut -d' ' -f1)"
	fi
}

# Starts programs that run until the next step ends them; it must not take long.
begin_stream() {
	both "begin $1"
	if [ "$VM_GUEST" = A ]; then
		vi_bw --connect host1 --sizes 64k --duration 100 --timeout 30 --quiet >/tmp/stream.out 2>&1 &
	else
		vi_bw --server --timeout 30 --quiet >/tmp/stream.out 2>&1 &
	fi
	stream=$!
	# A connection has a slice in addition to that of the agents.
	check "the stream before '$1' is connected" wait_for 30 sh -c "vi_fabric status | grep cdev | grep -vq 'window 36864 '"
	both "streams $1"
}

# ended TEXT: checks that the stream ends here, with a failure.
ended() {
	if wait_for 30 sh -c "! kill -0 $stream"; then
		ok "$1"
	else
		fail "$1: it still runs"
		kill -9 "$stream"
	fi
	wait "$stream" 2>/dev/null && fail "$1: it says that all is well"
	both "ended $1"
}

client_killed() {
	begin_stream client
	[ "$VM_GUEST" = A ] && kill -9 "$stream"
	ended "a client that is killed ends the stream"
	traffic "messages after a client was killed" vi_lat --sizes 64 --iters 50
}

agent_killed() {
	begin_stream agent
	if [ "$VM_GUEST" = B ]; then
		kill -9 "$agent"
		wait "$agent" 2>/dev/null
	fi
	ended "an agent that is killed ends the stream"
	[ "$VM_GUEST" = B ] && start_agent
	link_becomes up "the link is up again with a new agent"
	traffic "messages after an agent was killed" vi_lat --sizes 64 --iters 50
}

link_cut() {
	begin_stream cut
	[ "$VM_GUEST" = A ] && ask cut l >/dev/null
	link_becomes down "a cut takes the link down"
	ended "a cut ends the stream"
	[ "$VM_GUEST" = A ] && ask restore l >/dev/null
	link_becomes up "the link is up again after the cut"
	traffic "messages after a cut" vi_lat --sizes 64 --iters 50
}

load ntb
load ntb_hw_ivshmem
load viaduct
start_agent
link_becomes up "the link between the agents comes up"
if [ "$VM_GUEST" = A ] || [ "$(ask get boot)" = first ]; then
	traffic "polled messages" vi_lat --sizes 1,64,4k,64k --iters 300 --verify
	traffic "messages that wake a sleeper" vi_lat --wait block --sizes 64 --iters 200
	traffic "RDMA writes" vi_lat --op write --sizes 64,64k --iters 100 --verify
	traffic "RDMA reads" vi_lat --op read --sizes 64,64k --iters 100 --verify
	traffic "reliable reception" vi_lat --level reception --sizes 64 --iters 100 --verify
	traffic "bandwidth" vi_bw --sizes 4k,1M --iters 60
	copy
	client_killed
	agent_killed
	link_cut
	begin_stream guest
fi
if [ "$VM_GUEST" = A ]; then
	ask put boot second >/dev/null
	ask kill B >/dev/null
	link_becomes down "a guest that is killed takes the link down"
	ended "and ends the stream"
	ask start B >/dev/null
	link_becomes up "the link is up again with the guest that boots again"
elif [ "$(ask get boot)" = first ]; then
	usleep 100000000 # until this machine is killed
fi
traffic "messages after a guest was killed" vi_lat --sizes 64 --iters 50
kill "$agent"
wait "$agent" 2>/dev/null
check "the device is free when the agent has ended" wait_for 10 sh -c ": <>/dev/viaduct0"
both end
unload viaduct ntb_hw_ivshmem ntb
