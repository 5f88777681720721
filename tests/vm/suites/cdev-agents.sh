# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: an agent at each, as on two hosts, and programs of both.  With HOSTS=4 it has both
# ports of four links, which join four agents in a ring: programs of two hosts that are not neighbours use relays.

export VIADUCT_AGENT=/tmp/agent VI_FABRIC=/bin/vi_fabric VIPL_TEST_HOSTS="${HOSTS:-2}" HOME=/tmp

# Link i joins port 2 i, the right one of host i, and port 2 i + 1, the left one of the next host.
cat >/tmp/agent <<'END'
#!/bin/sh
host=0
before=
for word; do
	[ "$before" != --host-id ] || host=$word
	before=$word
done
links=$((VIPL_TEST_HOSTS == 2 ? 1 : VIPL_TEST_HOSTS))
VIADUCT_ADAPTERS=right=/dev/viaduct$((host * 2 % (links * 2))),left=/dev/viaduct$(((host + links - 1) % links * 2 + 1))
export VIADUCT_ADAPTERS
exec viaductd "$@"
END
chmod 755 /tmp/agent

# tell_test KIND: prints each minute which test runs, so that one that does not end can be named.
tell_test() {
	while usleep 60000000; do
		note "$1: after $(cut -d. -f1 /proc/uptime) s $(grep "^\[ RUN" /tmp/conformance.out | tail -n 1)"
	done
}

# conformance KIND FILTER; SHARD is part/parts, or nothing
conformance() {
	if [ -n "$SHARD" ]; then
		export GTEST_SHARD_INDEX="${SHARD%/*}" GTEST_TOTAL_SHARDS="${SHARD#*/}"
	fi
	tell_test "$1" &
	teller=$!
	VIADUCT_PORT=$1 vipl_conformance --gtest_filter="$2" >/tmp/conformance.out 2>&1
	code=$?
	kill $teller
	sed -n 's/^\[  FAILED  \] \(.*\) (.*ms)$/\1/p' /tmp/conformance.out | while read -r name; do
		fail "$1: $name"
	done
	grep -e "^conformance:" -e "PASSED" -e "tests from .* ran" /tmp/conformance.out | while read -r line; do
		note "$1: $line"
	done
	[ "$code" = 0 ] || grep -v "^\[ RUN\|^\[       OK" /tmp/conformance.out | tail -n 60 | while read -r line; do
		note "$line"
	done
	same "$1: the conformance suite of VIPL passes" 0 "$code"
}

parameter() {
	echo "$2" >"/sys/module/viaduct/parameters/$1"
}

link_is_up() {
	VIADUCT_FABRIC=vm VIADUCT_HOST=0 vi_fabric status | grep -q "cdev  *link up "
}

# Processes of both hosts keep every descriptor that they were given, more than the module gives at
# a time; others must still get all that they need.
keepers() {
	parameter max_user_clients 30
	parameter max_slices 40
	for host in 0 1; do
		/tmp/agent --fabric vm --host-id $host --hosts 2 --port cdev 2>>/tmp/agent.log &
		agents="$agents $!"
	done
	check "two agents have a link" wait_for 60 link_is_up
	export VIADUCT_FABRIC=vm VIADUCT_AGENT=none
	VIADUCT_HOST=1 vm_keeper server "$KEEP" >/tmp/keeper.out 2>&1 &
	keeper=$!
	export VIADUCT_HOST=0
	check "a process keeps what it was given, and gets more" vm_keeper client "$KEEP"
	sed 's/^/  /' /tmp/check.out | while read -r line; do note "$line"; done
	wait $keeper
	same "and so does its peer" 0 $?
	while read -r line; do note "$line"; done </tmp/keeper.out
	for one in $agents; do
		kill "$one"
		wait "$one" 2>/dev/null
	done
	parameter max_user_clients 4096
	parameter max_slices 1024
}

load ntb
load ntb_hw_ivshmem
load viaduct
[ -z "$KEEP" ] || (keepers)
conformance cdev "${CONFORMANCE:--Slow*}"
unload viaduct ntb_hw_ivshmem ntb
