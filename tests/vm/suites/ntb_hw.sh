# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# One guest, both ports of a link: the NTB self-test of the kernel's own sources.

cat >/sbin/modprobe <<'EOF'
#!/bin/sh
# The self-test calls modprobe to load modules and to remove them.
if [ "$1" = -r ]; then
	exec rmmod "$2"
fi
module=$1
shift
exec insmod "/modules/$module.ko" "$@"
EOF
chmod +x /sbin/modprobe

load ntb
load ntb_hw_ivshmem
# 64 MiB for ntb_perf, which allocates its buffers as large as a window and no larger than 4 MiB.
if bash /ntb_test.sh -p 26 -w 4194304 0000:00:10.0 0000:00:11.0 >/tmp/test.out 2>&1; then
	ok "ntb_test.sh of the kernel"
else
	fail "ntb_test.sh of the kernel"
fi
sed 's/^/#   /' /tmp/test.out >&3
for part in port link db spad mw0 mw1 "ping pong" perf; do
	check "it has tested: $part" grep -Eq "Running (local )?$part test" /tmp/test.out
done
unload ntb_hw_ivshmem ntb
