# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests: B is killed, A sees that the link is down; B boots again, A sees that the link is up.

load ntb
load ntb_hw_ivshmem
load ntb_tool
tool=/sys/kernel/debug/ntb_tool/0000:00:10.0
echo Y >$tool/link
check "the link comes up" sh -c "echo Y >$tool/peer0/link_event"
if [ "$VM_GUEST" = A ]; then
	echo 0x77 >$tool/peer0/spad1
	ask kill B >/dev/null
	check "the link goes down" sh -c "echo N >$tool/peer0/link_event"
	note "down after $(ask since) ms"
	same "a scratchpad of a dead peer reads as ones" 0xffffffff "$(cat $tool/peer0/spad1)"
	ask start B >/dev/null
	check "the link comes up again" sh -c "echo Y >$tool/peer0/link_event"
	same "a machine that was switched off has lost its scratchpads" 0x0 "$(cat $tool/peer0/spad1)"
	ask cut l >/dev/null
	check "a cut takes it down" sh -c "echo N >$tool/peer0/link_event"
	echo 0x78 >$tool/peer0/spad1
	ask restore l >/dev/null
	check "and it comes up when that is undone" sh -c "echo Y >$tool/peer0/link_event"
	same "what was written meanwhile is lost" 0x0 "$(cat $tool/peer0/spad1)"
fi
ask barrier end >/dev/null
unload ntb_tool ntb_hw_ivshmem ntb
