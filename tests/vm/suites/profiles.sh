# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: the driver keeps the rules of each chip.

dbg=/sys/kernel/debug/ntb_tool
pp=/sys/kernel/debug/ntb_pingpong
a=$dbg/0000:00:10.0
b=$dbg/0000:00:11.0

count() {
	set -- "$@"
	[ -e "$1" ] || set --
	echo $#
}

# window PROFILE: checks that b sees memory behind the first window of a.
window() {
	if [ "$1" = idt ]; then
		check "$1: memory for a window" sh -c "echo 65536 >$a/peer0/mw_trans0"
		addr=$(sed -n 's/^DMA Address *\t*\(0x[0-9a-f]*\).*/\1/p' $a/peer0/mw_trans0)
		check "$1: another address is refused" sh -c "! echo $((addr + 4096)):65536 >$b/peer0/peer_mw_trans0"
	else
		check "$1: memory behind a window" sh -c "echo 65536 >$a/peer0/mw_trans0"
		addr=0x1000
	fi
	check "$1: the peer opens it" sh -c "echo $addr:65536 >$b/peer0/peer_mw_trans0"
	head -c 4096 /dev/urandom >/tmp/data
	dd if=/tmp/data of=$b/peer0/peer_mw0 bs=4096 count=1 2>/dev/null
	same "$1: the data" "$(sha256sum </tmp/data)" "$(head -c 4096 $a/peer0/mw0 | sha256sum)"
	check "$1: the peer closes it" sh -c "echo 0:0 >$b/peer0/peer_mw_trans0"
	check "$1: the memory is given back" sh -c "echo 0 >$a/peer0/mw_trans0"
}

# profile NAME WINDOWS DOORBELLS SPADS MSGS PORTS RUNG MASK
profile() {
	load ntb_hw_ivshmem profile="$1"
	load ntb_tool
	echo Y >$a/link
	echo Y >$b/link
	check "$1: the link" sh -c "echo Y >$a/peer0/link_event"
	same "$1: windows" "$2" "$(count $a/peer0/mw_trans*)"
	same "$1: doorbells" "$3" "$(cat $a/db_valid_mask)"
	same "$1: scratchpads" "$4" "$(count $a/spad*)"
	same "$1: messages" "$5" "$(count $a/msg[0-9]*)"
	same "$1: ports" "$6" "$(cat $a/port)$(cat $b/port)"
	echo "s 0x3" >$a/peer_db
	same "$1: two bits that were rung together" "$7" "$(cat $b/db)"
	echo "s 0x2" >$b/db_mask
	same "$1: a mask" "$8" "$(cat $b/db_mask)"
	if [ "$5" != 0 ]; then
		echo 0x55 >$a/peer0/msg1
		same "$1: a message" "0x00000055<-0" "$(cat $b/msg1)"
	fi
	window "$1"
	unload ntb_tool
	load ntb_pingpong delay_ms=0
	for dev in 0000:00:10.0 0000:00:11.0; do
		check "$1: ntb_pingpong counts to 300" wait_for 40 sh -c "[ \$(cat $pp/$dev/count) -gt 300 ]"
	done
	unload ntb_pingpong ntb_hw_ivshmem
}

load ntb
check "a profile that there is not is refused" sh -c "! insmod /modules/ntb_hw_ivshmem.ko profile=none"
profile plain 4 0xffffffff 8 0 00 0x3 0x2
profile plx 4 0xffff 8 0 00 0x3 0x2
profile amd 2 0xffff 8 0 01 0x3 0x2
profile intel 2 0x7fff 16 0 01 0x3 0x2
profile idt 4 0xffffffff 0 4 01 0x3 0x2
profile switchtec 2 0xffffffff 64 0 00 0x3 0x2
profile epf 4 0xff 64 0 00 0x1 0x0
unload ntb
