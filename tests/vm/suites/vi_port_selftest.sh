# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests: vi_port judges the port of one of them, with the rules of several chips; the other guest helps.

# shellcheck disable=SC1091
. /port.sh
device=/dev/viaduct0

# judged PROFILE: each promise that can be tried is kept.
judged() {
	load ntb_hw_ivshmem profile="$1"
	load viaduct
	both "$1"
	if [ "$VM_GUEST" = A ]; then
		vi_port $device selftest --seconds "$SELFTEST_SECONDS" --json /tmp/report.json --timeout "$PORT_SECONDS" \
			>/tmp/report 2>&1
		same "$1: the verdict" 0 $?
		check "$1: all that can be tried is kept" grep -qE '^16 kept, 0 broken, 3 not testable' /tmp/report
		grep -A4 '^broken' /tmp/report | while read -r line; do note "$line"; done
		check "$1: the report names its schema" grep -q '"schema": *"viaduct.selftest"' /tmp/report.json
		check "$1: it names the driver" grep -q '"driver": *"ntb_hw_ivshmem"' /tmp/report.json
		check "$1: it says that rings need no read" grep -q '"reads_back": *false' /tmp/report.json
		check "$1: and the chip" grep -q '"chip": *"0x1af4:0x1110"' /tmp/report.json
	else
		vi_port $device selftest --serve --timeout "$PORT_SECONDS" >/tmp/served 2>&1
		same "$1: the other end" 0 $?
		grep -v '^served' /tmp/served | while read -r line; do note "$line"; done
	fi
	both "$1 done"
	unload viaduct ntb_hw_ivshmem
}

: "${SELFTEST_SECONDS:=10}"
load ntb
for profile in intel switchtec amd; do
	judged $profile
done
unload ntb
