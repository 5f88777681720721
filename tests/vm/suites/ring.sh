# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Guests in a ring, two adapters each: ntb_netdev to both neighbours, then a link is cut and restored.

load ntb
load ntb_hw_ivshmem
load ntb_transport
load ntb_netdev

# net_of SLOT: prints the interface whose adapter is in this slot.
net_of() {
	for _net in /sys/class/net/eth*; do
		case $(readlink -f "$_net/device") in
		*/0000:00:$1.0/* | */0000:00:$1.0) basename "$_net" ;;
		esac
	done
}

# Link i joins guest i, whose address on it ends in 1, and the next guest, whose address on it ends in 2.
me=$(printf %d "'$VM_GUEST")
me=$((me - 65))
before=$(((me + VM_COUNT - 1) % VM_COUNT))
ifconfig "$(net_of 10)" 10.0.$me.1 netmask 255.255.255.0 up
ifconfig "$(net_of 11)" 10.0.$before.2 netmask 255.255.255.0 up
check "ping to the next guest" wait_for 60 ping -c 1 -W 1 10.0.$me.2
check "ping to the guest before" wait_for 60 ping -c 1 -W 1 10.0.$before.1
ask barrier pings >/dev/null
if [ "$VM_GUEST" = A ]; then
	ask cut ab >/dev/null
	check "no ping over a link that is cut" sh -c "! ping -c 1 -W 1 10.0.0.2"
	check "the other link still works" ping -c 1 -W 10 10.0.$before.1
	ask restore ab >/dev/null
	check "ping when the link is restored" wait_for 60 ping -c 1 -W 1 10.0.0.2
fi
ask barrier end >/dev/null
unload ntb_netdev ntb_transport ntb_hw_ivshmem ntb
