# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For suites that run a program on the ports of viaduct.ko: its lines are results, and "do WORD" asks for something.

# start_program COMMAND...: starts it in the background, with its output in a file and its input from descriptor 4.
start_program() {
	rm -f /tmp/answers
	mkfifo /tmp/answers
	"$@" </tmp/answers >/tmp/program.out 2>&1 &
	program=$!
	exec 4>/tmp/answers
}

# hear_program SECONDS: reads its lines as they come, each within that time.  After each "do" the
# program waits for a line; the suite's function answer does what was asked for.
hear_program() {
	seen=0
	while wait_for "$1" sh -c "[ \$(wc -l </tmp/program.out) -gt $seen ] || ! kill -0 $program"; do
		seen=$((seen + 1))
		line=$(sed -n "${seen}p" /tmp/program.out)
		case $line in
		"ok "*) ok "${line#ok }" ;;
		"not ok "*) fail "${line#not ok }" ;;
		"note "*) note "${line#note }" ;;
		"do "*)
			answer "${line#do }"
			echo answer >&4
			;;
		*) break ;;
		esac
	done
	exec 4>&-
	same "the program has come to its end" "end 0" "$(tail -n 1 /tmp/program.out)"
	wait "$program"
}

# addresses BITS: prints what the program kmod needs to know of the ports, which have these doorbell bits.
addresses() {
	# The address that port 0 stores to, and that of port 1's memory: windows of 4 MiB, one of
	# registers before the slots.
	base=$(sed -n '3s/ .*//p' /sys/bus/pci/devices/0000:00:10.0/resource)
	OUTBOUND=$(printf 'mem 0x%016x-0x%016x' $((base + 0xc00000)) $((base + 0x1000000)))
	base=$(sed -n '3s/ .*//p' /sys/bus/pci/devices/0000:00:11.0/resource)
	INBOUND=$(printf 'mem 0x%016x-0x%016x' $((base + 0xc00000)) $((base + 0x1400000)))
	DB_BITS=$1
	export OUTBOUND INBOUND DB_BITS
}

# answer_link WORD: does what the program kmod asks for.
answer_link() {
	case $1 in
	cut) ask cut l >/dev/null ;;
	restore) ask restore l >/dev/null ;;
	unbind)
		check "the module is held by what is mapped" sh -c "! rmmod viaduct"
		echo 0000:00:11.0 >/sys/bus/ntb/drivers/viaduct/unbind
		;;
	esac
}
