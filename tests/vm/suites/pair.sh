# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests: each client of the kernel's NTB core runs between them.  VM_DRIVER is the driver of their adapter.

driver=${VM_DRIVER:-ntb_hw_ivshmem}
dev=0000:00:10.0
tool=/sys/kernel/debug/ntb_tool/$dev
load ntb
load "$driver"
case $driver in
ntb_hw_epf)
	# If several bits are written it rings the lowest, and each access to a window takes some 0.1 ms.
	rings="0x1 0x4 0x10"
	order=20
	bytes=1048576
	;;
*)
	rings=0x15
	order=26
	bytes=8388608
	;;
esac

tool_link() {
	check "the link is enabled" sh -c "echo Y >$tool/link"
	check "it comes up" sh -c "echo Y >$tool/peer0/link_event"
}

tool_registers() {
	if [ "$VM_GUEST" = A ]; then
		echo 0x1234567 >$tool/peer0/spad3
		both spad
		for bits in $rings; do
			echo "s $bits" >$tool/peer_db
		done
	else
		both spad
		same "a scratchpad has what the peer wrote" 0x1234567 "$(cat $tool/spad3)"
		check "the bits of the doorbell that were rung" sh -c "echo 0x15 >$tool/db_event"
		echo "c 0x5" >$tool/db
		same "the others stay after some are cleared" 0x10 "$(cat $tool/db)"
	fi
	both registers
}

# One after the other, because ntb_tool has one pair of buffers for each direction.
tool_windows() {
	for w in 0 1; do
		if [ "$VM_GUEST" = B ]; then
			check "memory is put behind window $w" sh -c "echo 65536 >$tool/peer0/mw_trans$w"
			ask put "addr$w" "$(sed -n 's/^DMA Address *\t*\(0x[0-9a-f]*\).*/\1/p' $tool/peer0/mw_trans$w)" >/dev/null
			sum=$(ask get "sum$w")
			same "window $w has what the peer stored" "$sum" \
				"$(head -c 65536 $tool/peer0/mw$w | sha256sum | cut -d' ' -f1)"
			both "window$w"
			check "window $w is taken away" sh -c "echo 0 >$tool/peer0/mw_trans$w"
		else
			addr=$(ask get "addr$w")
			check "window $w is opened" sh -c "echo $addr:65536 >$tool/peer0/peer_mw_trans$w"
			head -c 65536 /dev/urandom >/tmp/data
			check "window $w is written" dd if=/tmp/data of=$tool/peer0/peer_mw$w bs=65536 count=1
			# Stores are posted, and a barrier through the runner could overtake them;
			# the answer to a read does not.
			cat $tool/peer0/spad0 >/dev/null
			ask put "sum$w" "$(sha256sum </tmp/data | cut -d' ' -f1)" >/dev/null
			both "window$w"
			check "window $w is closed" sh -c "echo 0:0 >$tool/peer0/peer_mw_trans$w"
		fi
	done
}

pingpong() {
	load ntb_pingpong delay_ms=0
	count=/sys/kernel/debug/ntb_pingpong/$dev/count
	check "ntb_pingpong counts to 2,000" wait_for 40 sh -c "[ \$(cat $count) -gt 2000 ]"
	both pingpong
	unload ntb_pingpong
}

perf() {
	load ntb_perf total_order=$order max_mw_size=4194304
	run=/sys/kernel/debug/ntb_perf/$dev/run
	if [ "$VM_GUEST" = A ]; then
		check "ntb_perf runs" sh -c "echo 0 >$run"
		check "and was given a result" grep -q MBytes $run
		note "ntb_perf: $(grep MBytes $run)"
	fi
	both perf
	unload ntb_perf
}

net() {
	load ntb_transport
	load ntb_netdev
	ifconfig eth0 "$1" netmask 255.255.255.0 up
	check "ping over ntb_netdev" wait_for 40 ping -c 1 -W 1 "$2"
	if [ "$VM_GUEST" = A ]; then
		head -c $bytes /dev/urandom >/tmp/data
		ask put sum "$(sha256sum </tmp/data | cut -d' ' -f1)" >/dev/null
		ask get listens >/dev/null
		wait_for 40 sh -c "nc $2 5000 </tmp/data" || fail "nc could not connect"
	else
		nc -l -p 5000 -e sh -c "cat >/tmp/data" &
		ask put listens yes >/dev/null
		wait $!
		same "its length" $bytes "$(wc -c </tmp/data)"
		same "what was sent over TCP" "$(ask get sum)" "$(sha256sum </tmp/data | cut -d' ' -f1)"
	fi
	both net
	ifconfig eth0 down
	unload ntb_netdev
	# ntb_transport does not free the memory of a queue that no client has taken.
	echo $dev >/sys/bus/ntb/drivers/ntb_transport/unbind
	known_leak ntb_transport
	unload ntb_transport
}

load ntb_tool
tool_link
tool_registers
tool_windows
both tool
unload ntb_tool
pingpong
perf
if [ "$VM_GUEST" = A ]; then
	net 10.0.0.1 10.0.0.2
else
	net 10.0.0.2 10.0.0.1
fi
unload "$driver" ntb
