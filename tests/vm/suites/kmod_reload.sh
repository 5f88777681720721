# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests: in A the module is reloaded 100 times while a program there and one in B use the link.

rounds=100
load ntb
load ntb_hw_ivshmem profile="${PROFILE:-plain}"

# In A: the program uses the link; when the program of B does so too it is killed, or its port is removed first.
round() {
	: >/tmp/use
	insmod /modules/viaduct.ko && test -c /dev/viaduct0 || return 1
	/reload /tmp/use &
	user=$!
	wait_for 60 test -s /tmp/use || return 1
	[ "$(ask get "seen$1")" = yes ] || return 1
	[ $(($1 % 2)) = 0 ] || echo 0000:00:10.0 >/sys/bus/ntb/drivers/viaduct/unbind
	rmmod viaduct 2>/dev/null && return 1
	kill -9 $user
	wait $user
	rmmod viaduct
}

if [ "$VM_GUEST" = A ]; then
	ask get ready >/dev/null
	round=0
	while [ $round -lt $rounds ]; do
		round=$((round + 1))
		if ! round $round; then
			fail "round $round"
			break
		fi
	done
	same "rounds" $rounds $round
else
	load viaduct
	/reload /tmp/use &
	user=$!
	ask put ready yes >/dev/null
	round=0
	while [ $round -lt $rounds ]; do
		round=$((round + 1))
		if ! wait_for 120 sh -c "[ \$(wc -l </tmp/use) -ge $round ]"; then
			ask put seen$round no >/dev/null
			break
		fi
		ask put seen$round yes >/dev/null
	done
	check "the program of the other guest has seen them all" test "$(wc -l </tmp/use)" -ge $rounds
	check "and still runs" kill -9 $user
	wait $user
	unload viaduct
fi
check "memory was not kept back" sh -c "! dmesg | grep 'memory that it may store into is kept'"
unload ntb_hw_ivshmem ntb
