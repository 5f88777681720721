# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests, four links: Viaduct on one, bare windows and doorbells on the second, the kernel's own clients on the
# others.  A round measures each of them once.

export VIADUCT_FABRIC=vm VIADUCT_AGENT=none
rounds=${FIGURE_ROUNDS:-5}
slot_net=0000:00:12.0
slot_perf=0000:00:13.0
case $VM_GUEST in
A) VIADUCT_HOST=0 me=10.0.0.1 ;;
*) VIADUCT_HOST=1 me=10.0.0.2 ;;
esac
export VIADUCT_HOST

answer() {
	# shellcheck disable=SC2086 # words
	ask $1
}

# figure NAME VALUE UNIT
figure() {
	echo "figure $*" >&3
}

bring_up() {
	load ntb
	load ntb_hw_ivshmem
	load viaduct
	echo $slot_net >/sys/bus/ntb/drivers/viaduct/unbind
	load ntb_transport
	load ntb_netdev
	echo $slot_perf >/sys/bus/ntb/drivers/viaduct/unbind
	load ntb_perf total_order=26 chunk_order=20 max_mw_size=4194304
	viaductd --fabric vm --host-id "$VIADUCT_HOST" --hosts 2 --port cdev 2>>/tmp/agent.log &
	agent=$!
	ifconfig lo 127.0.0.1
	ifconfig eth0 $me netmask 255.255.255.0 up
	check "the link between the agents comes up" wait_for 30 sh -c "vi_fabric status | grep -q 'cdev  *link up '"
	if [ "$VM_GUEST" = A ]; then
		check "ping over ntb_netdev" wait_for 40 ping -c 1 -W 1 10.0.0.2
	fi
	for module in crc32_generic udp_tunnel ip6_udp_tunnel ib_core ib_uverbs rdma_rxe; do
		load "$module"
	done
	check "soft-RoCE is put on ntb_netdev" rdma link add rxe0 type rxe netdev eth0
	both up
}

# pair NAME COLUMN TOOL OPTION...: A runs the tool with the server in B; the figure is that column of its table.
pair() {
	_name=$1 _column=$2 _tool=$3
	shift 3
	both "$_name"
	if [ "$VM_GUEST" = B ]; then
		"$_tool" --server --timeout 30 --quiet >/tmp/pair.out 2>&1 || fail "$_name, the server: $(tail -n 1 /tmp/pair.out)"
		return
	fi
	if ! "$_tool" --connect host1 --timeout 30 --quiet --format csv "$@" >/tmp/pair.out 2>&1; then
		fail "$_name: $(tail -n 1 /tmp/pair.out)"
		return
	fi
	value=$(awk -F, -v want="$_column" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == want) c = i } NR == 2 { print $c }' \
		/tmp/pair.out)
	case $_column in
	*_us) figure "$_name" "$value" us ;;
	*) figure "$_name" "$value" MB/s ;;
	esac
}

# verbs NAME OPTION...: messages of verbs both ways; the figure is half a round trip, or the rate of both directions.
verbs() {
	_name=$1
	shift
	both "$_name"
	if [ "$VM_GUEST" = B ]; then
		timeout 60 ibv_rc_pingpong -d rxe0 -g 1 -m 4096 "$@" >/tmp/verbs.out 2>&1 ||
			fail "$_name, the server: $(tail -n 1 /tmp/verbs.out)"
		return
	fi
	if ! wait_for 30 to_file /tmp/verbs.out timeout 60 ibv_rc_pingpong -d rxe0 -g 1 -m 4096 "$@" 10.0.0.2; then
		fail "$_name: $(tail -n 1 /tmp/verbs.out)"
		return
	fi
	case $_name in
	*_1M) figure "$_name" "$(awk '/Mbit\/sec/ { print $(NF - 1) / 8 }' /tmp/verbs.out)" MB/s ;;
	*) figure "$_name" "$(awk '/usec\/iter/ { print $(NF - 1) / 2 }' /tmp/verbs.out)" us ;;
	esac
}

to_file() {
	_file=$1
	shift
	"$@" >"$_file" 2>&1
}

tcp() {
	if [ "$VM_GUEST" = B ]; then
		/tcp serve 5000 >/tmp/tcp.out &
		wait_for 10 grep -q listens /tmp/tcp.out
		both tcp
		wait $! || fail "the server of TCP"
	else
		both tcp
		/tcp measure 10.0.0.2 5000 >&3 || fail "the client of TCP"
	fi
}

perf() {
	both perf
	[ "$VM_GUEST" = A ] || return
	run=/sys/kernel/debug/ntb_perf/$slot_perf/run
	echo 0 >$run || fail "ntb_perf"
	figure ntb_perf_1M "$(sed -n 's/.* \([0-9]*\) MBytes\/s.*/\1/p' $run)" MB/s
}

round() {
	both "round $1"
	converse /raw_window "$VM_GUEST" /dev/viaduct1 "$1"
	pair viaduct_4B_poll p50_us vi_lat --sizes 4 --batch 32 --iters 6400
	pair viaduct_4B_block p50_us vi_lat --sizes 4 --wait block --iters 300
	pair viaduct_send_1M bandwidth_mb_per_s vi_bw --sizes 1M --iters 128
	pair viaduct_write_1M bandwidth_mb_per_s vi_bw --sizes 1M --iters 128 --op write --window-memory
	perf
	tcp
	verbs rxe_4B_poll -s 4 -n 300
	verbs rxe_4B_block -s 4 -n 300 -e
	verbs rxe_1M -s 1048576 -n 12
}

# moved_much COUNTER: has vi_bw moved 16 MiB, by this counter?
moved_much() {
	[ "$(vi_stat --json | sed 's/.*"'"$1"'": *\([0-9]*\).*/\1/')" -gt 16777216 ]
}

# Checks whether RDMA writes into window memory are direct stores: the receiver counts bytes that
# came through slots, and not direct stores.
path_of_writes() {
	both "path"
	if [ "$VM_GUEST" = A ]; then
		vi_bw --connect host1 --timeout 30 --quiet --sizes 1M --duration 100 --op write --window-memory >/dev/null 2>&1 &
		stream=$!
		check "a stream of writes" wait_for 60 moved_much bytes_sent
		both streams
		figure path_of_writes is "$(ask get path)"
		kill "$stream"
		wait "$stream" 2>/dev/null
	else
		vi_bw --server --timeout 30 --quiet >/dev/null 2>&1 &
		stream=$!
		both streams
		if moved_much bytes_received; then
			ask put path slots >/dev/null
		else
			ask put path direct >/dev/null
		fi
		wait "$stream" 2>/dev/null
	fi
}

bring_up
path_of_writes
r=0
while [ $r -lt "$rounds" ]; do
	r=$((r + 1))
	round $r
done
if [ "$VM_GUEST" = A ]; then
	figure ratio latency_poll viaduct_4B_poll raw_window_4B_poll
	figure ratio write_to_plain_copy viaduct_write_1M raw_copy_1M 0.9
	figure ratio send_to_plain_copy viaduct_send_1M raw_copy_1M 0.9
	figure ratio send_to_two_copies viaduct_send_1M raw_two_copies_1M 0.9
fi
kill "$agent"
wait "$agent" 2>/dev/null
both end
