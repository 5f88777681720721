# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests: vi_port in each of them, then vi_port in one and an agent in the other.

# shellcheck disable=SC1091
. /port.sh
device=/dev/viaduct0
export VIADUCT_FABRIC=vm VIADUCT_AGENT=none
case $VM_GUEST in
A) VIADUCT_HOST=0 ;;
*) VIADUCT_HOST=1 ;;
esac
export VIADUCT_HOST

in_a() {
	[ "$VM_GUEST" = A ]
}

registers() {
	says "list has the adapter" 0 "^$device: link down .* doorbells 0xffff scratchpads 8 windows 2 " list
	if in_a; then
		says "doorbells ring" 0 "^rang: 0x5$" $device ring 0x5
	else
		says "they are heard" 0 "^rung: 0x[145]$" $device listen 0x5
	fi
	both doorbells
	if in_a; then
		behind $device link watch
		check "the link is up" wait_for 60 is_now up
		both held
	else
		says "a scratchpad of the peer is written" 0 "^peer spad2: 0x00001234$" $device spad --peer 2 0x1234
		both held
	fi
	if in_a; then
		stopped
		says "the peer reads it" 0 "^spad2: 0x00001234$" $device spad 2
	fi
	both scratchpads
}

transfer() {
	if in_a; then
		says "check receives" 0 "^received: 100001 bytes, all as they were stored$" $device check --bytes 100001
		check "check stores" grep -qE "^stored: 1048576 bytes in .* MB/s; the peer received all as" /tmp/says
		note "$(grep stored: /tmp/says)"
	else
		says "serve receives" 0 "^received: 1048576 bytes, all as they were stored$" $device serve --bytes 1M
		check "serve stores" grep -qE "^stored: 100001 bytes in .* MB/s; the peer received all as" /tmp/says
	fi
	both transfer
}

# Both see changes of the link, also those that a vi_port makes at its end.
changes() {
	behind $device link watch
	check "the link comes up" wait_for 60 is_now up
	both up
	in_a && ask cut l >/dev/null
	check "a cut is seen" wait_for 60 is_now down
	both down
	in_a && ask restore l >/dev/null
	check "that it is restored, too" wait_for 60 is_now up
	both restored
	if in_a; then
		stopped
		both ended
	else
		both ended
		check "the end of the other vi_port is seen" wait_for 60 is_now down
		stopped
	fi
}

start_agent() {
	viaductd --fabric vm --host-id "$VIADUCT_HOST" --hosts 2 --port cdev 2>>/tmp/agent.log &
	agent=$!
}

link_is() {
	vi_fabric status | grep -q "cdev  *link $1 "
}

# A link whose other end vi_port holds does not join agents; the agent waits for another agent, whatever vi_port does.
opposite_an_agent() {
	if in_a; then
		both agent
		behind $device link watch
		check "vi_port sees the link to an agent come up" wait_for 60 is_now up
		both seen
		both asked
		stopped
		says "scratchpads of the agent are read" 0 "^peer spad7: 0x[0-9a-f]{8}$" $device spad --peer
		says "its doorbells are rung" 0 "^rang: 0xffff$" $device ring 0xffff
		says "an agent does not serve" 1 "no vi_port serve has answered in 5 s" $device check --timeout 5
		both tried
		start_agent
	else
		start_agent
		check "the agent runs" wait_for 30 link_is down
		both agent
		both seen
		check "the agent has no link to vi_port" link_is down
		says "it keeps vi_port out" 1 "an agent or another vi_port has it" $device link
		says "list says so" 1 "^$device: not accessible: an agent or a tool has it$" list
		both asked
		both tried
		check "the agent still runs" kill -0 "$agent"
	fi
	check "the link comes up with an agent at the other end" wait_for 60 link_is up
	both linked
	if in_a; then
		check "messages between the agents' programs" vi_lat --connect host1 --timeout 30 --quiet --verify --sizes 64,4k \
			--iters 50
	else
		check "their server" vi_lat --server --timeout 30 --quiet
	fi
	both messages
	kill "$agent"
	wait "$agent" 2>/dev/null
}

load ntb
load ntb_hw_ivshmem
load viaduct
registers
transfer
changes
opposite_an_agent
both end
unload viaduct ntb_hw_ivshmem ntb
