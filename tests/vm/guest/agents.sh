# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For suites of two guests with an agent in each, where programs have memory in windows.

export VIADUCT_FABRIC=vm VIADUCT_AGENT=none
if [ "$VM_GUEST" = A ]; then
	VIADUCT_HOST=0
else
	VIADUCT_HOST=1
fi
export VIADUCT_HOST

# run_agent: its log is /tmp/agent.log.
run_agent() {
	VIADUCT_LOG=info viaductd --fabric vm --host-id "$VIADUCT_HOST" --hosts 2 --port cdev 2>/tmp/agent.log &
	agent=$!
}

start_agent() {
	run_agent
	check "the link between the agents comes up" wait_for 60 link_is_up
	idle=$(used)
}

stop_agent() {
	kill "$agent"
	wait "$agent" 2>/dev/null
}

link_is_up() {
	vi_fabric status | grep -q "cdev  *link up "
}

# used: prints the bytes of the adapter's windows that the agent has allotted.
used() {
	vi_fabric status | sed -n 's/.*cdev .* window \([0-9]*\) .*/\1/p'
}

# is_idle: no program has memory in the windows.
is_idle() {
	[ "$(used)" = "$idle" ]
}

is_used() {
	! is_idle
}

# pinned: prints the KiB of memory that the agent has pinned.
pinned() {
	sed -n 's/^VmPin:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$agent/status"
}

pinned_is() {
	[ "$(pinned)" = "$1" ]
}

pinned_at_least() {
	[ "$(pinned)" -ge "$1" ]
}

# stores TEXT [WORD]...: the program in B has memory of the kind that the word names, and the one in A stores there.
stores() {
	_stores=$1
	shift
	both "$_stores"
	if [ "$VM_GUEST" = A ]; then
		check "$_stores" vm_direct client host1
	else
		check "$_stores, the server" vm_direct server "$@"
	fi
	sed 's/^/  /' /tmp/check.out | while read -r line; do note "$line"; done
}
