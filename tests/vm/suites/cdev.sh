# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: the conformance tests of ports, with ports over viaduct.ko.

# conformance PROFILE FILTER
conformance() {
	load ntb_hw_ivshmem profile="$1"
	load viaduct
	VIADUCT_TEST_ADAPTERS=/dev/viaduct0,/dev/viaduct1 port_tests --gtest_filter="$2" --gtest_brief=1 \
		>/tmp/port.out 2>&1
	code=$?
	sed -n 's/^\[  FAILED  \] \(.*\) (.*ms)$/\1/p' /tmp/port.out | while read -r name; do
		fail "$1: $name"
	done
	tail -n 1 /tmp/port.out | while read -r line; do
		note "$1: $line"
	done
	[ "$code" = 0 ] || grep -B 2 -A 8 Failure /tmp/port.out | head -n 60 | while read -r line; do
		note "$line"
	done
	same "$1: the port conformance suite passes" 0 "$code"
	unload viaduct ntb_hw_ivshmem
}

load ntb
conformance switchtec '*cdev*'
unload ntb
