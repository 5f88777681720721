# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: ntb_tool sees the link come up and go down, and masked doorbells.

load ntb
load ntb_hw_ivshmem
load ntb_tool
tool=/sys/kernel/debug/ntb_tool
set -- /sys/bus/ntb/devices/*
same "two devices" 2 $#
a=$tool/0000:00:10.0
b=$tool/0000:00:11.0
# Port 0 has two slots of 4 MiB; they follow the place of one window.
base=$(sed -n '3s/ .*//p' /sys/bus/pci/devices/0000:00:10.0/resource)
slots=$(printf 'mem 0x%016x-0x%016x' $((base + 0x400000)) $((base + 0xc00000)))
check "memory of windows is cached" grep -q "$slots. write-back" /sys/kernel/debug/x86/pat_memtype_list
check "the link of 0 can be enabled" sh -c "echo Y >$a/link"
check "the link of 1 can be enabled" sh -c "echo Y >$b/link"
check "0 sees it up" sh -c "echo Y >$a/peer0/link_event"
same "so does 1" Y "$(cat $b/peer0/link)"

# Bits that are rung while masked wake nobody; when they are unmasked their event follows.
echo "s 0x3" >$b/db_mask
sh -c "echo 0x3 >$b/db_event" &
waiter=$!
check "a thread waits for two bits of a doorbell" wait_for 20 grep -q tool_db_event "/proc/$waiter/stack"
echo "s 0x1" >$a/peer_db
echo "s 0x2" >$a/peer_db
same "they are rung" 0x3 "$(cat $b/db)"
check "while they are masked it waits" grep -q tool_db_event "/proc/$waiter/stack"
echo "c 0x3" >$b/db_mask
check "when they are unmasked it does not" wait_for 20 sh -c "! grep -q tool_db_event /proc/$waiter/stack"
kill "$waiter" 2>/dev/null
echo "c 0x3" >$b/db

ask cut l >/dev/null
check "0 sees the cut" sh -c "echo N >$a/peer0/link_event"
check "1 sees the cut" sh -c "echo N >$b/peer0/link_event"
ask restore l >/dev/null
check "0 sees it restored" sh -c "echo Y >$a/peer0/link_event"
check "1 sees it restored" sh -c "echo Y >$b/peer0/link_event"
unload ntb_tool ntb_hw_ivshmem ntb
