# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For suites, inside a guest.  Descriptor 3 leads to the runner: a line is a result or a question.

failures=0
dma_errors=0 # reports of the checker of DMA that are expected
: "${VM_PATIENCE:=1}" # this kernel takes so many times as long as a stock kernel; the suites' programs read it, too

note() {
	echo "# $*" >&3
}

ok() {
	echo "ok $*" >&3
}

fail() {
	failures=$((failures + 1))
	echo "not ok $*" >&3
}

# check TEXT COMMAND...: the command succeeds; otherwise its last lines are shown.
check() {
	_text=$1
	shift
	if "$@" >/tmp/check.out 2>&1; then
		ok "$_text"
	else
		fail "$_text: $*"
		tail -n 8 /tmp/check.out | sed 's/^/#   /' >&3
	fi
}

# same TEXT WANTED FOUND
same() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		fail "$1: «$3», not «$2»"
	fi
}

# ask WORD...: asks the runner to do something, and prints its answer.  The words:
#   barrier NAME     answers when every running guest has asked for it
#   put KEY VALUE    stores a value for other guests; get KEY answers with it, once it is there
#   kill GUEST       ends a guest as a power failure would
#   start GUEST      boots a guest that was killed
#   cut LINK         no access crosses the link; restore LINK undoes that
#   overwrite LINK   this guest's adapter of a link over vfio-user writes all memory that it can reach; answers how many bytes
#   since            milliseconds since the runner last did something that a guest asked for
ask() {
	echo "ask $*" >&3
	read -r _answer <&3
	echo "$_answer"
}

# both TEXT: waits until the other guests have come as far.
both() {
	ask barrier "$1" >/dev/null
}

# traffic TEXT PROGRAM OPTION...: guest A runs PROGRAM with its server in B; the agent in A is that
# of host0, the one in B that of host1.
traffic() {
	_what=$1
	_program=$2
	shift 2
	both "$_what"
	if [ "$VM_GUEST" = A ]; then
		check "$_what" "$_program" --connect host1 --timeout 60 --quiet "$@"
		sed -n '/^[0-9]/p' /tmp/check.out | while read -r line; do note "$_what: $line"; done
	else
		check "$_what, the server" "$_program" --server --timeout 60 --quiet
	fi
}

# load MODULE [PARAMETER]...
load() {
	_module=$1
	shift
	if ! insmod "/modules/$_module.ko" "$@" 2>/tmp/load.out; then
		fail "insmod $_module $*: $(cat /tmp/load.out)"
		finish
	fi
}

unload() {
	for _module; do
		check "rmmod $_module" rmmod "$_module"
	done
}

# wait_for SECONDS COMMAND...: waits until the command succeeds.  The time is for a stock kernel.
wait_for() {
	_end=$(($(cut -d. -f1 /proc/uptime) + $1 * VM_PATIENCE))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt $_end ] || return 1
		usleep 20000
	done
}

# answer WORD...: does what a program asks for; a suite may define its own.
answer() {
	if [ "$1" = unbind ]; then
		echo 0000:00:10.0 >/sys/bus/ntb/drivers/viaduct/unbind
		echo "done"
	else
		# shellcheck disable=SC2086 # words
		ask $1
	fi
}

# converse PROGRAM [WORD]...: runs a program whose lines are results, notes, or requests («do WORD...») that await the
# answer of answer().
converse() {
	rm -f /tmp/say /tmp/hear
	mkfifo /tmp/say /tmp/hear
	"$@" </tmp/hear >/tmp/say 2>&1 &
	_program=$!
	exec 4>/tmp/hear 5</tmp/say
	# shellcheck disable=SC3045 # read of busybox has a time limit
	while read -r -t $((240 * VM_PATIENCE)) _line <&5; do
		case $_line in
		"not ok "*) fail "${_line#not ok }" ;;
		"end "*) break ;;
		"do "*) answer "${_line#do }" >&4 ;;
		*) echo "$_line" >&3 ;;
		esac
	done
	exec 4>&- 5<&-
	wait $_program
	same "the program comes to its end" "end 0 0" "$_line $?"
}

# find_leaks FILE: writes the reports of the checker for lost memory.  An object must be 5 s old,
# and without a reference in two scans.
find_leaks() {
	sleep 6
	for _scan in 1 2; do
		echo scan >/sys/kernel/debug/kmemleak
	done
	cat /sys/kernel/debug/kmemleak >"$1"
}

# known_leak MODULE: the kernel's own module, which is still loaded, is known to lose memory; this
# is not reported again.
known_leak() {
	[ -e /sys/kernel/debug/kmemleak ] || return 0
	find_leaks /tmp/leaks
	_found=$(grep -c ^unreferenced /tmp/leaks)
	same "all memory that is lost is that of $1" "$_found" \
		"$(awk "/^unreferenced/ { n = 0 } /\\[$1\\]\$/ && !n++ { all++ } END { print all + 0 }" /tmp/leaks)"
	note "$1 has lost $_found objects"
	echo clear >/sys/kernel/debug/kmemleak
}

# unload_kept MODULE DEVICE COUNT: unloads the driver of an adapter that keeps COUNT pieces of
# memory on purpose.  The checker of DMA counts that as one error, whatever their number; its report
# does not count as a fault.
unload_kept() {
	_dma=/sys/kernel/debug/dma-api
	if [ -e $_dma ]; then
		same "memory of $2 is kept, and no other" "$3" "$(grep -cw "$2" $_dma/dump)"
		echo none >$_dma/driver_filter
		dma_errors=$((dma_errors + 1))
	fi
	unload "$1"
	if [ -e $_dma ]; then
		echo >$_dma/driver_filter
	fi
}

# Checks, on a kernel with checkers, that none has switched itself off, and that no memory was lost.
check_kernel() {
	_debug=/sys/kernel/debug
	[ -e $_debug/kmemleak ] || return 0
	same "the checker of locks still works" 1 "$(sed -n 's/^ debug_locks: *//p' /proc/lockdep_stats)"
	same "so does that of DMA" "N $dma_errors" "$(cat $_debug/dma-api/disabled $_debug/dma-api/error_count | xargs)"
	find_leaks /tmp/leaks
	same "no memory is lost" "" "$(cat /tmp/leaks)"
}

finish() {
	check_kernel
	echo "rc $failures" >&3
	# The runner ends the machine when it has read this.
	read -r _answer <&3
	poweroff -f
}
