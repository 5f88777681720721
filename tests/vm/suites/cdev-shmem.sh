# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, or more in a ring, on an Ethernet: oshrun in A starts PEs of OpenSHMEM jobs in all of them, by a remote shell
# that is one TCP connection for each guest; data goes through the adapters.  PART: programs with rules and random traffic
# (programs), examples and benchmarks (examples), or a PE and a guest are killed, a link is cut (faults).

me=$(($(printf %d "'$VM_GUEST") - 65))
export VIADUCT_FABRIC=vm VIADUCT_AGENT=none VIADUCT_HOST=$me SHMEM_SYMMETRIC_SIZE=128M
# shellcheck disable=SC3045 # busybox has it
ulimit -n 65536 # a connection takes descriptors of the agent
[ "$VM_GUEST" = B ] || ask put boot first >/dev/null
case $VM_COUNT in
2) LINKS=1 HOSTS=localhost:1,m1:1 MANY=localhost:2,m1:2 ADAPTERS= ;;
*) LINKS=2 HOSTS=localhost:1,m1:1,m2:1 MANY=localhost:2,m1:2,m2:1 ADAPTERS=--adapters=right=/dev/viaduct0,left=/dev/viaduct1 ;;
esac
JOB_SECONDS=150

all() {
	ask barrier "$1" >/dev/null
}

links_are() {
	[ "$(vi_fabric status | grep -c 'cdev  *link up ')" = "$1" ]
}

links() {
	check "$2" wait_for 120 links_are "$1"
}

none_left() {
	! pidof oshrun random_traffic sleep >/dev/null
}

nothing_left() {
	check "no process of a job is left after $1" wait_for 30 none_left
}

# Connects connections from A to an oshrun --serve, as a remote shell would do.
serve() {
	printf '#!/bin/sh\nexec 2>>/tmp/serve.log\nexec oshrun --serve\n' >/tmp/serve
	chmod 755 /tmp/serve
	nc -ll -p 514 -e /tmp/serve &
	server=$!
}

# shellcheck disable=SC2016 # for that shell
remote_shell() {
	printf '#!/bin/sh\nexec nc 10.9.0.$((${1#m} + 1)) 514\n' >/tmp/rsh
	chmod 755 /tmp/rsh
}

# job TEXT PROGRAM WORD...: runs a job, which must succeed; A has its output in /tmp/job.out.
job() {
	_what=$1
	shift
	all "$_what"
	if [ "$VM_GUEST" = A ]; then
		check "$_what" oshrun --rsh /tmp/rsh --host "$HOSTS" --timeout $JOB_SECONDS "$@"
		cp /tmp/check.out /tmp/job.out
	fi
	all "$_what, done"
	nothing_left "$_what"
}

# example PROGRAM LINE: an example, which compares its result, and says so by a line that matches.
example() {
	job "the example $1" "$1"
	[ "$VM_GUEST" != A ] || check "$1 says that its result is right: $(tail -n 1 /tmp/job.out)" grep -qE "^$1: $2" /tmp/job.out
}

# benchmark COUNT PROGRAM WORD...: a benchmark, with the least measuring that it accepts; it tells so many figures.
benchmark() {
	_figures=$1
	shift
	job "the benchmark $*" "$@" --json --batches 3 --batch-us 2
	[ "$VM_GUEST" = A ] || return
	same "$1 tells its figures, for all PEs, each above 0" "$_figures" \
		"$(grep "\"pes\": $PES," /tmp/job.out | grep -c '"value": [0-9.]*[1-9]')"
	grep '^{' /tmp/job.out | tr -d '{}"' | while read -r _line; do note "$_line"; done
}

examples() {
	PES=$VM_COUNT
	example heat "$PES PEs computed .* each of the 64 rows is what PE 0 alone computed"
	example isort "$((20000 * PES)) keys on $PES PEs"
	benchmark 8 osb_put --sizes 8,64K
	benchmark 6 osb_get --sizes 8,64K
	benchmark 3 osb_rate --sizes 8
	benchmark 14 osb_amo
	benchmark 2 osb_barrier
	benchmark 2 osb_reduce --sizes 8,64K
	benchmark 8 osb_collect --sizes 8,64K
}

# begin TEXT: starts a job that runs for long; A has its output in /tmp/job.out.
begin() {
	all "begin $1"
	if [ "$VM_GUEST" = A ]; then
		rm -f /tmp/more
		mkfifo /tmp/more
		oshrun --rsh /tmp/rsh --host "$HOSTS" --silence 30 --timeout 600 random_traffic 1 </tmp/more >/tmp/job.out 2>&1 &
		job=$!
		exec 4>/tmp/more
		check "traffic has begun before $1" wait_for 120 grep -q '^round ' /tmp/job.out
	fi
	all "began $1"
}

more_lines() {
	_lines=$(wc -l </tmp/job.out)
	check "traffic goes on $1" wait_for 120 sh -c "[ \$(wc -l </tmp/job.out) -gt $((_lines + 1)) ]"
}

# broken TEXT PATTERN STATUS: checks that the job ends by itself, with this status and a line that matches.
broken() {
	check "$1 ends the job" wait_for 60 sh -c "! kill -0 $job"
	exec 4>&-
	wait "$job"
	same "$1: the exit status" "$3" $?
	check "$1: oshrun says why: $(grep '^oshrun: ' /tmp/job.out)" grep -q "^oshrun: $2" /tmp/job.out
}

link_cut() {
	begin "a cut"
	if [ "$VM_GUEST" = A ]; then
		ask cut ab >/dev/null
		more_lines "with a link cut"
		ask restore ab >/dev/null
		links $LINKS "both links are up after the cut"
		more_lines "with the link restored"
		exec 4>&-
		wait "$job"
		same "the job ends well after the cut" 0 $?
	fi
	all "cut, done"
	nothing_left "a cut"
}

pe_killed() {
	begin "the end of a PE"
	[ "$VM_GUEST" != B ] || kill -9 "$(pidof random_traffic)"
	[ "$VM_GUEST" != A ] || broken "a PE that is killed" "PE 1 on m1 was killed by signal 9" 137
	all "PE killed"
	nothing_left "a PE was killed"
}

launcher_killed() {
	begin "the end of oshrun there"
	[ "$VM_GUEST" != B ] || kill -9 "$(pidof oshrun)"
	[ "$VM_GUEST" != A ] || broken "oshrun that is killed there" "oshrun on m1, or the connection to it, has ended" 1
	all "oshrun killed"
	nothing_left "oshrun was killed there"
	begin "the end of oshrun here"
	if [ "$VM_GUEST" = A ]; then
		kill -9 "$job"
		exec 4>&-
		wait "$job"
	fi
	all "oshrun of A killed"
	nothing_left "oshrun was killed in A"
}

guest_killed() {
	begin "the end of a guest"
	if [ "$VM_GUEST" = A ]; then
		ask put boot second >/dev/null
		ask kill B >/dev/null
		check "a guest that is killed ends the job" wait_for 120 sh -c "! kill -0 $job"
		exec 4>&-
		wait "$job" && fail "the job says that all is well"
		note "$(grep '^oshrun: ' /tmp/job.out)"
	elif [ "$VM_GUEST" = B ]; then
		usleep 1000000000 # until this machine is killed
	fi
	all "guest killed"
	nothing_left "a guest was killed"
	[ "$VM_GUEST" != A ] || ask start B >/dev/null
}

load e1000
ifconfig lo 127.0.0.1 up
ifconfig eth0 "10.9.0.$((me + 1))" netmask 255.255.255.0 up
load ntb
load ntb_hw_ivshmem
load viaduct
viaductd --fabric vm --host-id "$me" --hosts "$VM_COUNT" --port cdev \
	$ADAPTERS 2>>/tmp/agent.log &
agent=$!
links $LINKS "all links come up"
serve
remote_shell
if [ "$PART" = programs ]; then
	all serving
	for _rules in start access sync collectives locks teams; do
		job "rules_$_rules" "rules_$_rules"
	done
	HOSTS=$MANY
	job "random traffic, more PEs than guests" random_traffic 1 10
elif [ "$PART" = examples ]; then
	all serving
	examples
elif [ "$(ask get boot)" = first ]; then
	all serving
	link_cut
	pe_killed
	launcher_killed
	guest_killed
fi
if [ "$PART" = faults ]; then
	links $LINKS "both links are up when a guest has booted again"
	all serving
	job "a job when a guest has booted again" random_traffic 2 10
fi
kill "$server" "$agent"
wait "$server" "$agent" 2>/dev/null
all end
unload viaduct ntb_hw_ivshmem ntb
