# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: ports are removed, and processes end, while ports are in use.

# shellcheck disable=SC1091
. /program.sh

answer() {
	case $1 in
	unbind) echo 0000:00:11.0 >/sys/bus/ntb/drivers/viaduct/unbind ;;
	"back unbind") echo 0000:00:11.0 >/sys/bus/ntb/drivers/viaduct/bind ;;
	remove) echo 1 >/sys/bus/pci/devices/0000:00:11.0/remove ;;
	"back "remove*) echo 1 >/sys/bus/pci/rescan ;;
	remove-all)
		echo 1 >/sys/bus/pci/devices/0000:00:10.0/remove
		echo 1 >/sys/bus/pci/devices/0000:00:11.0/remove
		;;
	driver-all) check "the driver of the adapters is taken out" rmmod ntb_hw_ivshmem ;;
	"back driver-all") load ntb_hw_ivshmem profile="$profile" ;;
	cut) ask cut l >/dev/null ;;
	restore) ask restore l >/dev/null ;;
	esac
}

load ntb
for profile in plain idt; do
	load viaduct
	load ntb_hw_ivshmem profile=$profile
	start_program /unplug unbind remove remove-all driver-all flaps kills
	hear_program 90
	unload viaduct ntb_hw_ivshmem
done
unload ntb
check "memory was not kept back" sh -c "! dmesg | grep 'memory that it may store into is kept'"
