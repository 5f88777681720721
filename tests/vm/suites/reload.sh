# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests: the driver is unloaded and loaded again while the peer's runs, at different moments.

load ntb
tool=/sys/kernel/debug/ntb_tool/0000:00:10.0
rounds=20
round=0
while [ $round -lt $rounds ]; do
	round=$((round + 1))
	load ntb_hw_ivshmem
	load ntb_tool
	echo Y >$tool/link
	echo "s 0xff" >$tool/peer_db
	if ! rmmod ntb_tool || ! rmmod ntb_hw_ivshmem; then
		fail "round $round"
		finish
	fi
done
ok "$rounds rounds"
load ntb_hw_ivshmem
load ntb_tool
echo Y >$tool/link
check "the link comes up after that" sh -c "echo Y >$tool/peer0/link_event"
ask barrier up >/dev/null
unload ntb_tool ntb_hw_ivshmem ntb
