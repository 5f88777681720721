# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, on adapters whose doorbells and scratchpads overtake stores: with the module's read across the link before
# them nothing is seen too early, and without it, it is.  PART: a program that looks (program), or vi_port, which judges
# the port (judge).

# shellcheck disable=SC1091
. /port.sh
device=/dev/viaduct0
: "${SELFTEST_SECONDS:=5}"

# reads NUMBER PARAMETER...: loads the module; NUMBER: does it read?  It does by its list of drivers.
reads() {
	wanted=$1
	shift
	dmesg -c >/dev/null
	load viaduct "$@"
	same "the kernel's log says whether rings wait for a read ($*)" "$wanted" \
		"$(dmesg | grep -c 'rung after a read across the link: ntb_hw_epf')"
}

# judge STATUS: vi_port judges the port, in A; its report is in /tmp/report and /tmp/report.json.
judge() {
	both "judge $1"
	if [ "$VM_GUEST" = A ]; then
		vi_port $device selftest --seconds "$SELFTEST_SECONDS" --json /tmp/report.json --timeout "$PORT_SECONDS" \
			>/tmp/report 2>&1
		same "the verdict of vi_port selftest" "$1" $?
		grep -A5 '^broken' /tmp/report | while read -r line; do note "$line"; done
		note "$(tail -n 1 /tmp/report)"
	else
		check "vi_port selftest helps" vi_port $device selftest --serve --timeout "$PORT_SECONDS"
	fi
	both "judged $1"
}

# reported STATE CLAUSE: the report in A has this.
reported() {
	[ "$VM_GUEST" = B ] || check "it finds $2 $1" grep -qE "^$1 +$2 " /tmp/report
}

# reported_reads TRUTH
reported_reads() {
	[ "$VM_GUEST" = B ] || check "it says whether rings wait for a read: $1" grep -q "\"reads_back\": *$1" /tmp/report.json
}

load ntb
load ntb_hw_epf
reads 0 read_back=0
if [ "$PART" = program ]; then
	converse /early "$VM_GUEST" 0
else
	judge 1
	# Each end also flushes while it waits, which lands stores, so few are found on a busy machine.
	reported broken "(ring|pad)-order"
	reported kept flush
	reported_reads false
fi
unload viaduct

reads 1
if [ "$PART" = program ]; then
	converse /early "$VM_GUEST" 1
else
	judge 0
	reported kept ring-order
	reported kept pad-order
	reported_reads true
fi
unload viaduct ntb_hw_epf ntb
