# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: an adapter without scratchpads, whose windows the sender sets.

# shellcheck disable=SC1091
. /program.sh
tool=/sys/kernel/debug/ntb_tool/0000:00:11.0

# Gives port 1 to ntb_tool.
other_client() {
	echo 0000:00:11.0 >/sys/bus/ntb/drivers/viaduct/unbind
	insmod /modules/ntb_tool.ko
	check "the other port has another client" test -d $tool
	echo Y >$tool/link
}

answer() {
	case $1 in
	flood)
		other_client
		check "whose link is up" sh -c "echo Y >$tool/peer0/link_event"
		seed=$(cut -d' ' -f1 /proc/uptime | tr -d .)
		check "it sends messages that lie, by the seed $seed, and too many" /forge $tool "$seed"
		note "$(tail -n 1 /tmp/check.out)"
		check "windows that it leads nowhere are not used" wait_for 30 sh -c \
			"dmesg | grep 'the link stays down: no window leads to the peer'"
		;;
	rebind)
		rmmod ntb_tool
		echo 0000:00:11.0 >/sys/bus/ntb/drivers/viaduct/bind
		;;
	*) answer_link "$1" ;;
	esac
}

load ntb
load viaduct
load ntb_hw_ivshmem profile=idt
addresses 0xffff
start_program /kmod
hear_program 60
echo 0000:00:11.0 >/sys/bus/ntb/drivers/viaduct/bind
start_program /spads
hear_program 100
kept="dmesg | grep 'memory that it may store into is kept'"
check "memory was not kept back" sh -c "! $kept"

# A peer that was told of memory, and does not report that it has given it up.
other_client
/reload /tmp/generations &
holder=$!
check "a peer is told where memory is" /forge $tool 0
check "the port is removed" sh -c "echo 0000:00:10.0 >/sys/bus/ntb/drivers/viaduct/unbind"
check "memory is kept that such a peer may store into" sh -c "$kept"
kill -9 $holder
rmmod ntb_tool
unload viaduct
unload_kept ntb_hw_ivshmem 0000:00:10.0 2
unload ntb
