# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, each with an IOMMU before its adapter: the memory that a misbehaving adapter can reach.  ntb_hw_epf itself
# gives it no memory, so all of it is that of viaduct.ko.

adapter=/sys/bus/pci/devices/0000:00:10.0
window_bytes=$((2 * 1048576)) # of both windows

# reaches TEXT BYTES: lets the adapter store into all memory that the IOMMU allows; checks how many bytes that is.
reaches() {
	both "before: $1"
	same "$1" "$2" "$(ask overwrite l)"
	same "$1: the memory of programs is as before" "$sum" "$(sha256sum </tmp/data)"
	both "after: $1"
}

# Transfers data through both windows, and so through the IOMMU of each guest.
transfer() {
	if [ "$VM_GUEST" = A ]; then
		check "what vi_port stores arrives at the peer" vi_port /dev/viaduct0 check --bytes 256k
	else
		check "vi_port receives it" vi_port /dev/viaduct0 serve --bytes 256k
	fi
	both "$1"
}

head -c 16777216 /dev/urandom >/tmp/data
sum=$(sha256sum </tmp/data)
load ntb
load ntb_hw_epf
if ! grep -q ^DMA $adapter/iommu_group/type; then
	fail "no IOMMU translates what the adapter asks for, so it would overwrite this guest"
	finish
fi
reaches "the adapter reaches no memory before the module has it" 0
load viaduct
transfer first
reaches "it reaches the memory behind its windows, and no other" $window_bytes
transfer again
echo 0000:00:10.0 >/sys/bus/ntb/drivers/viaduct/unbind
reaches "it reaches none that the module has freed" 0
unload viaduct ntb_hw_epf ntb
