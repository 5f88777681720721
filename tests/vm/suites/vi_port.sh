# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: each command of vi_port, as between two hosts.

A=/dev/viaduct0 B=/dev/viaduct1

# shellcheck disable=SC1091
. /port.sh

# holder: enables the link at the other side.
holder() {
	behind $B link watch
}

# all PROFILE
all() {
	load ntb_hw_ivshmem profile="$1"
	load viaduct
	for device in $A $B; do
		says "$1: list has $device" 0 \
			"^$device: link down generation [0-9]+ doorbells 0x[0-9a-f]*f scratchpads [0-9]+ windows [1-9].* window0 in [0-9]+ out [0-9]+ " list
	done

	says "$1: no peer" 1 "the link did not come up in 1 s" $A ring 1 --timeout 1
	says "$1: a scratchpad is written" 0 "^spad3: 0x0000cafe$" $A spad 3 0xcafe
	says "$1: it is read" 0 "^spad3: 0x0000cafe$" $A spad 3
	says "$1: no such scratchpad" 2 "scratchpad 64 was named, $A has 0 to" $A spad 64

	holder
	says "$1: a scratchpad of the peer is written" 0 "^peer spad2: 0x00001234$" $A spad --peer 2 0x1234
	stopped
	# Where scratchpads are made of messages, the link may go down before they arrive.
	[ "$1" = idt ] || says "$1: the peer reads it" 0 "^spad2: 0x00001234$" $B spad 2

	holder
	says "$1: more than the windows hold" 1 "choose fewer --bytes" $A serve --bytes 1G
	says "$1: one process has a device" 1 "an agent or another vi_port has it" $B link
	says "$1: list says so" 0 "^$B: not accessible: an agent or a tool has it$" list
	stopped

	behind $B listen 5
	says "$1: doorbells ring" 0 "^rang: 0x5$" $A ring 0x5
	ended "$1: listen" 0 "^rung: 0x[145]$"
	behind $B listen
	says "$1: one that is not waited for" 0 "^rang: 0x2$" $A ring 2
	check "$1: listen without bits" wait_for 30 grep -q "^rung: 0x2$" /tmp/behind
	stopped
	holder
	says "$1: none rings" 1 "in 1 s none rang 0x8" $A listen 8 --timeout 1
	stopped

	behind $B serve --bytes 256k
	says "$1: check" 0 "^received: 100001 bytes, all as they were stored$" $A check --bytes 100001
	check "$1: check stores" grep -qE "^stored: 262144 bytes in .* MB/s; the peer received all as" /tmp/says
	note "$(grep stored: /tmp/says)"
	ended "$1: serve" 0 "^received: 262144 bytes, all as they were stored$" "^stored: 100001 bytes in"
	behind $B serve
	says "$1: both serve" 1 "the peer runs serve, too" $A serve
	ended "$1: both serve" 1 "the peer runs serve, too"

	behind $B link up
	vi_port $A link up --timeout "$PORT_SECONDS" >/tmp/other 2>&1 &
	other_pid=$!
	check "$1: the link is up" wait_for 30 is_now up
	kill $other_pid
	wait $other_pid
	ended "$1: link up" 0 "^link: up generation" "^link: down$"
	says "$1: its state" 0 "^link: down, not enabled at this end" $A link
	says "$1: it is taken down" 0 "^link: down$" $A link down

	holder
	vi_port $A link watch --timeout "$PORT_SECONDS" >/tmp/other 2>&1 &
	other_pid=$!
	check "$1: the link comes up" wait_for 30 is_now up
	ask cut l >/dev/null
	check "$1: a cut is seen" wait_for 30 is_now down
	ask restore l >/dev/null
	check "$1: that it is restored, too" wait_for 60 is_now up
	kill $other_pid
	wait $other_pid
	stopped
	unload viaduct ntb_hw_ivshmem
	says "$1: no adapter" 1 "/dev/viaductN was sought, there is none" list
}

# data WHAT: checks that data passes through windows both ways.
data() {
	behind $B serve --bytes 256k
	says "$1: check" 0 "^received: 100001 bytes, all as they were stored$" $A check --bytes 100001
	ended "$1: serve" 0 "^received: 262144 bytes, all as they were stored$"
}

# Memory that is not aligned to its size, and a size that is no power of two: the adapter takes neither.
misaligned() {
	load ntb_hw_ivshmem profile=switchtec misalign=4096
	load viaduct window_bytes=3145728
	data misaligned
	says "misaligned: a power of two" 0 "^$B: .* window0 in 2097152 out 4194304 " list
	check "misaligned: the adapter refused memory" sh -c "dmesg | grep 'window 0 cannot be put before 0x[0-9a-f]*1000, 0x0*200000 bytes'"
	unload viaduct ntb_hw_ivshmem
}

# The memory of windows has to be allocated for a device other than the adapter.
other_device() {
	load ntb_hw_ivshmem other_dma=1
	if [ -e /sys/module/ntb_hw_ivshmem/parameters/other_dma ]; then
		load viaduct
		data "another device"
		unload viaduct
	else
		note "this kernel's NTB core tells no device for DMA"
	fi
	unload ntb_hw_ivshmem
}

load ntb
all amd
all idt
misaligned
other_device
unload ntb
