# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Guests in a ring, two adapters each, an agent in each guest: programs reach neighbours and, by relays, the others; flows
# of messages go on, or end with reports that agree, when a link is cut, or a program, an agent or a guest is killed.

me=$(($(printf %d "'$VM_GUEST") - 65))
export VIADUCT_FABRIC=vm VIADUCT_AGENT=none VIADUCT_HOST=$me
[ "$VM_GUEST" = B ] || ask put boot first >/dev/null
SECONDS_MAX=120

# Flows of messages, as SENDER-RECEIVER: from each guest to the next one, and in larger rings to the one after that.
FLOWS=
_i=0
while [ $_i -lt "$VM_COUNT" ]; do
	FLOWS="$FLOWS $_i-$(((_i + 1) % VM_COUNT))"
	_i=$((_i + 1))
done
[ "$VM_COUNT" -gt 3 ] && FLOWS="$FLOWS 0-2"

all() {
	ask barrier "$1" >/dev/null
}

# key WORD...: prints the key of a value that the runner keeps.
key() {
	echo "$*" | tr ' ' _
}

start_agent() {
	viaductd --fabric vm --host-id "$me" --hosts "$VM_COUNT" --port cdev \
		--adapters right=/dev/viaduct0,left=/dev/viaduct1 2>>/tmp/agent.log &
	agent=$!
}

links_are() {
	[ "$(vi_fabric status | grep -c 'cdev  *link up ')" = "$1" ]
}

# links NUMBER TEXT: waits until so many of the two links are up.
links() {
	if wait_for $SECONDS_MAX links_are "$1"; then
		ok "$2"
	else
		fail "$2"
		tail -n 8 /tmp/agent.log | while read -r line; do note "agent: $line"; done
		vi_fabric status 2>&1 | while read -r line; do note "$line"; done
	fi
}

# traffic TEXT FROM TO PROGRAM OPTION...: the host FROM runs PROGRAM with its server on the host TO.
traffic() {
	_what=$1 _from=$2 _to=$3 _program=$4
	shift 4
	all "$_what"
	if [ "$me" = "$_from" ]; then
		check "$_what" "$_program" --connect "host$_to" --timeout $SECONDS_MAX --quiet "$@"
		sed -n '/^[0-9]/p' /tmp/check.out | while read -r line; do note "$_what: $line"; done
	elif [ "$me" = "$_to" ]; then
		check "$_what, the server" "$_program" --server --timeout $SECONDS_MAX --quiet
	fi
	all "$_what, done"
}

# copy TEXT FROM TO BYTES: copies by vi_cp; both ends compute the SHA-256.
copy() {
	all "$1"
	if [ "$me" = "$2" ]; then
		head -c "$4" /dev/urandom >/tmp/data
		ask put "$(key sum "$1")" "$(sha256sum </tmp/data | cut -d' ' -f1)" >/dev/null
		check "$1" vi_cp --wait $SECONDS_MAX /tmp/data "host$3:data"
	elif [ "$me" = "$3" ]; then
		mkdir -p /tmp/served
		rm -f /tmp/served/data
		check "$1, the server" vi_cp --serve /tmp/served --once
		same "$1: the copy is the file" "$(ask get "$(key sum "$1")")" "$(sha256sum </tmp/served/data | cut -d' ' -f1)"
	fi
	all "$1, done"
}

# programs TEXT FROM TO: runs each kind of transfer; every byte is checked.
programs() {
	traffic "$1: polled messages" "$2" "$3" vi_lat --sizes 1,64,4k,64k --iters 50 --verify
	traffic "$1: messages that wake a sleeper" "$2" "$3" vi_lat --wait block --sizes 64 --iters 50
	traffic "$1: RDMA writes" "$2" "$3" vi_lat --op write --sizes 64,64k --iters 30 --verify
	traffic "$1: RDMA reads" "$2" "$3" vi_lat --op read --sizes 64,64k --iters 30 --verify
	traffic "$1: reliable reception" "$2" "$3" vi_lat --level reception --sizes 64 --iters 50 --verify
	traffic "$1: bandwidth" "$2" "$3" vi_bw --sizes 4k,1M --iters 30
	copy "$1: vi_cp copies 4 MiB" "$2" "$3" 4194304
}

# end_of FLOW: prints the part of this guest in it: send, receive or nothing.
end_of() {
	case $1 in
	"$me"-*) echo send ;;
	*-"$me") echo receive ;;
	esac
}

# for_flows FUNCTION [WORD]...: calls FUNCTION FLOW END WORD... for each flow that begins or ends here
for_flows() {
	_call=$1
	shift
	for _flow in $FLOWS; do
		_end=$(end_of "$_flow")
		[ -z "$_end" ] || "$_call" "$_flow" "$_end" "$@"
	done
}

flow_begins() {
	if [ "$2" = receive ]; then
		flow receive "f$1" "/tmp/at.$1" >"/tmp/says.$1" 2>>/tmp/flow.log &
	else
		flow send "host${1#*-}" "f$1" "/tmp/at.$1" >"/tmp/says.$1" 2>>/tmp/flow.log &
	fi
	echo $! >"/tmp/pid.$1"
}

above() {
	[ "$(cat "$1")" -gt "$2" ]
}

# flow_advances FLOW END TEXT WITHOUT: checks that a flow that does not touch the host WITHOUT advances.
flow_advances() {
	case -$1- in *-"$4"-*) return ;; esac
	_n=$(cat "/tmp/at.$1")
	if wait_for $SECONDS_MAX above "/tmp/at.$1" $((_n + 100)); then
		ok "$3: the flow $1 moves on ($2)"
	else
		fail "$3: the flow $1 stands at $(cat "/tmp/at.$1"), $2: $(cat "/tmp/says.$1")"
	fi
}

ended() {
	! kill -0 "$1"
}

# settle FLOW END TEXT: checks that the reports of both ends agree.  Sets $result to whole or broken.
settle() {
	_pid=$(cat "/tmp/pid.$1")
	if ! wait_for $SECONDS_MAX ended "$_pid"; then
		fail "$3: the flow $1 does not end ($2)"
		kill -9 "$_pid"
	fi
	wait "$_pid" 2>/dev/null
	_says=$(cat "/tmp/says.$1")
	ask put "$(key "$3" "$1" "$2")" "$_says" >/dev/null
	case "$_says" in
	*" $result") ok "$3: the flow $1 is $result ($2): $_says" ;;
	*) fail "$3: the flow $1 is not $result ($2): $_says" ;;
	esac
	[ "$2" = receive ] || return
	# shellcheck disable=SC2046,SC2086 # words
	set -- "$1" "$3" $(ask get "$(key "$3" "$1" send)") $_says
	# FLOW TEXT sent N of M RESULT received R RESULT
	if [ "$4" -le "$9" ] && [ "$9" -le "$6" ] 2>/dev/null; then
		ok "$2: the flow $1: what was confirmed has arrived, and only what was sent"
	else
		fail "$2: the flow $1: $*"
	fi
}

begin_flows() {
	all "begin $1"
	for_flows flow_begins
	for_flows flow_advances "before $1" none
	all "flows $1"
}

flow_stops() {
	case -$1- in *-"$3"-*) return ;; esac
	[ "$2" = receive ] || kill "$(cat "/tmp/pid.$1")"
}

flow_is_whole() {
	case -$1- in *-"$4"-*) return ;; esac
	result=whole
	settle "$1" "$2" "$3"
}

# end_flows TEXT WITHOUT: ends flows; those that do not touch the host WITHOUT must be whole.
end_flows() {
	all "end $1"
	for_flows flow_stops "$2"
	for_flows flow_is_whole "$1" "$2"
	all "ended $1"
}

# flow_breaks FLOW END TEXT HOST: checks that a flow that touches this host breaks.
flow_breaks() {
	case -$1- in
	*-"$4"-*) ;;
	*) return ;;
	esac
	result=broken
	settle "$1" "$2" "$3"
}

link_cut() {
	begin_flows cut
	if [ "$VM_GUEST" = A ]; then
		ask cut ab >/dev/null
	fi
	[ "$me" -gt 1 ] || links 1 "a cut takes one link down"
	all cut
	for_flows flow_advances "with a link cut" none
	all "cut, moved on"
	if [ "$VM_GUEST" = A ]; then
		ask restore ab >/dev/null
	fi
	links 2 "both links are up after the cut"
	all restored
	for_flows flow_advances "with the link restored" none
	end_flows "a cut" none
}

# In a ring of three all are neighbours; a cut makes two of them need a relay.
past_a_guest() {
	if [ "$VM_COUNT" -gt 3 ]; then
		programs "past a guest" 0 2
		return
	fi
	all "to be cut"
	if [ "$VM_GUEST" = A ]; then
		ask cut ab >/dev/null
	fi
	[ "$me" -gt 1 ] || links 1 "a cut takes one link down"
	all cut
	programs "past a guest" 0 1
	if [ "$VM_GUEST" = A ]; then
		ask restore ab >/dev/null
	fi
	links 2 "both links are up again"
}

client_killed() {
	begin_flows client
	[ "$VM_GUEST" != A ] || kill -9 "$(cat /tmp/pid.0-1)"
	if [ "$VM_GUEST" = B ]; then
		if wait_for $SECONDS_MAX ended "$(cat /tmp/pid.0-1)"; then
			ok "a sender that is killed ends its flow: $(cat /tmp/says.0-1)"
		else
			fail "a sender that is killed does not end its flow"
		fi
		same "and the receiver says so" "broken" "$(sed 's/.* //' /tmp/says.0-1)"
	fi
	_flows=$FLOWS
	FLOWS=$(echo "$FLOWS" | sed 's/ 0-1//')
	for_flows flow_advances "with a client killed" none
	end_flows "a client killed" none
	FLOWS=$_flows
}

agent_killed() {
	begin_flows agent
	if [ "$VM_GUEST" = B ]; then
		kill -9 "$agent"
		wait "$agent" 2>/dev/null
	fi
	all "agent killed"
	for_flows flow_breaks "an agent killed" 1
	for_flows flow_advances "with an agent killed" 1
	[ "$VM_GUEST" != B ] || start_agent
	links 2 "both links are up with a new agent"
	end_flows "an agent killed, the others" 1
}

guest_killed() {
	begin_flows guest
	if [ "$VM_GUEST" = A ]; then
		ask put boot second >/dev/null
		ask kill B >/dev/null
	elif [ "$VM_GUEST" = B ]; then
		usleep 1000000000 # until this machine is killed
	fi
	all "guest killed"
	for_flows guest_flow_breaks
	for_flows flow_advances "with a guest killed" 1
	end_flows "a guest killed, the others" 1
	[ "$VM_GUEST" != A ] || ask start B >/dev/null
}

# The other end was killed, so it reports nothing.
guest_flow_breaks() {
	case -$1- in
	*-1-*) ;;
	*) return ;;
	esac
	if wait_for $SECONDS_MAX ended "$(cat "/tmp/pid.$1")"; then
		ok "a guest that is killed ends the flow $1: $(cat "/tmp/says.$1")"
	else
		fail "a guest that is killed does not end the flow $1"
	fi
	same "and this end says so" "broken" "$(sed 's/.* //' "/tmp/says.$1")"
}

load ntb
load ntb_hw_ivshmem
load viaduct
start_agent
links 2 "both links come up"
if [ "$PART" = programs ]; then
	programs "to the next guest" 0 1
	programs "to the guest before" 0 $((VM_COUNT - 1))
	past_a_guest
elif [ "$(ask get boot)" = first ]; then
	link_cut
	client_killed
	agent_killed
	guest_killed
fi
if [ "$PART" = faults ]; then
	links 2 "both links are up when a guest has booted again"
	traffic "messages to that guest" 0 1 vi_lat --sizes 64,4k --iters 50 --verify
	traffic "messages from that guest" 1 2 vi_lat --sizes 64,4k --iters 50 --verify
	copy "vi_cp to that guest" 2 1 1048576
fi
begin_flows end
end_flows "the whole ring" none
kill "$agent"
wait "$agent" 2>/dev/null
check "the devices are free when the agent has ended" wait_for 10 sh -c ": <>/dev/viaduct0 && : <>/dev/viaduct1"
all end
unload viaduct ntb_hw_ivshmem ntb
