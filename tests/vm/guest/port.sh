# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For suites that run vi_port.

# The time that vi_port waits; its default does not depend on the kernel.
PORT_SECONDS=$((60 * VM_PATIENCE))

# behind WORD...: starts vi_port in the background, with its output in /tmp/behind.
behind() {
	rm -f /tmp/behind
	vi_port "$@" --timeout "$PORT_SECONDS" >/tmp/behind 2>&1 &
	behind_pid=$!
}

# ended TEXT STATUS LINE...: checks that vi_port in the background has ended with this status, and printed these lines.
ended() {
	wait "$behind_pid"
	same "$1: the other side ends with $2" "$2" $?
	_ended=$1
	shift 2
	for _line; do
		check "$_ended: it prints «$_line»" grep -qE "$_line" /tmp/behind
	done
}

stopped() {
	kill "$behind_pid"
	wait "$behind_pid"
}

# says TEXT STATUS LINE WORD...: runs vi_port; checks its exit status, and that one of its lines matches.
says() {
	_text=$1 _status=$2 _line=$3
	shift 3
	case $* in
	list | *--timeout*) ;;
	*) set -- "$@" --timeout "$PORT_SECONDS" ;;
	esac
	vi_port "$@" >/tmp/says 2>&1
	same "$_text: the exit status" "$_status" $?
	check "$_text: «$_line»" grep -qE "$_line" /tmp/says
	grep -qE "$_line" /tmp/says || note "$(head -n 4 /tmp/says)"
}

# is_now STATE: is this the state of the link that the other side has printed last?
is_now() {
	tail -n 1 /tmp/behind | grep -q "^link: $1"
}
