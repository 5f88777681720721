# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests: a port of viaduct.ko each.  VM_DRIVER is the driver of their adapter.

driver=${VM_DRIVER:-ntb_hw_ivshmem}
device=/sys/bus/pci/devices/0000:00:10.0
load ntb
load viaduct
load "$driver"

# bar NUMBER: prints its address.
bar() {
	sed -n "$(($1 + 1))s/ .*//p" $device/resource
}

case $driver in
ntb_hw_epf)
	start=$(bar 4)
	bytes=$((1 << 20))
	bits=0x3fffffff
	;;
*)
	# The slots of one port follow those of the other, and both lie in memory of the adapter.
	bytes=$((4 << 20))
	start=$(($(bar 2) + bytes))
	[ "$VM_GUEST" = B ] || start=$((start + 2 * bytes))
	bits=0xffff
	;;
esac
OUTBOUND=$(printf 'mem 0x%016x-0x%016x' "$start" $((start + bytes)))
export OUTBOUND

if [ "$VM_GUEST" = A ]; then
	ask put life 1 >/dev/null
	role=A
else
	role=B
	[ "$(ask get life)" = 1 ] || role=again
fi
converse /kmod_pair $role $bits $bytes
unload viaduct "$driver" ntb
