# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, each with an IOMMU before its adapter: memory of a program behind a window.

adapter=/sys/bus/pci/devices/0000:00:10.0

load ntb
load ntb_hw_epf
if ! grep -q ^DMA $adapter/iommu_group/type; then
	fail "no IOMMU translates what the adapter asks for, so it would overwrite this guest"
	finish
fi
load viaduct
converse /adopt "$VM_GUEST" $((1 << 20))
unload viaduct ntb_hw_epf ntb
