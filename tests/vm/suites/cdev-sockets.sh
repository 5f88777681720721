# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Two guests on an Ethernet, an agent in each: Debian's redis in A serves clients in B, both under vi_run.  Their TCP
# connections go over the Ethernet, and their bytes over the adapters; a link is cut, a client and an agent are killed.

# shellcheck disable=SC1091
. /agents.sh
# shellcheck disable=SC3045 # busybox has it
ulimit -n 4096
SERVER=10.9.0.1
MAP="10.9.0.1 host0; 10.9.0.2 host1"

link_is_down() {
	! link_is_up
}

# under_vi_run NAME PROGRAM...: runs a program on this host; what its connections were carried by is in /tmp/NAME.json.
under_vi_run() {
	_name=$1
	shift
	rm -f "/tmp/$_name.json"
	vi_run --map "$MAP" --stats="/tmp/$_name.json" "$@"
}

# counted NAME WORD: prints that count of a program under vi_run, the sum over its processes.
counted() {
	sed 's/[,{]/\n/g' </tmp/"$1".json | sed -n "s/^ *\"$2\": //p" | head -n 1
}

# carried NAME BYTES: checks that at least so many bytes of each direction went over VIs.
carried() {
	note "$1: $(tr -d '\n' </tmp/"$1".json | cut -c1-400)"
	for _direction in sent received; do
		check "$1: $(counted "$1" "vi_bytes_$_direction") bytes $_direction over VIs, at least $2" \
			test "$(counted "$1" "vi_bytes_$_direction")" -ge "$2"
	done
}

# ask_redis WORD...: one command by a client without vi_run, thus over TCP; prints the answer.
ask_redis() {
	redis-cli -h "$SERVER" "$@"
}

serves() {
	[ "$(ask_redis ping)" = PONG ]
}

clients_are() {
	[ "$(ask_redis info clients | tr -d '\r' | sed -n 's/^connected_clients://p')" = "$1" ]
}

# begin_client NAME: a client under vi_run that executes the lines which are written to descriptor 4.
begin_client() {
	rm -f /tmp/lines
	mkfifo /tmp/lines
	under_vi_run "$1" --promote eager redis-cli -h "$SERVER" </tmp/lines >"/tmp/$1.out" 2>"/tmp/$1.err" &
	client=$!
	exec 4>/tmp/lines
}

# answers_are FILE COUNT: it has so many lines.
answers_are() {
	[ "$(wc -l <"$1")" -ge "$2" ]
}

# count_to NAME NUMBER TEXT: the client increments a key until it has this many answers, each by one more than the one before.
count_to() {
	_from=$(wc -l <"/tmp/$1.out")
	_i=$_from
	while [ "$_i" -lt "$2" ]; do
		echo "incr $1" >&4
		_i=$((_i + 1))
	done
	check "$3" wait_for 60 answers_are "/tmp/$1.out" "$2"
	same "$3: each answer is one more than the one before" "$(seq 1 "$2")" "$(cat "/tmp/$1.out")"
	same "$3: no error" "" "$(grep '^Error' "/tmp/$1.err")"
}

end_client() {
	exec 4>&-
	wait "$client"
}

# benchmark TEXT WHEN OPTION...: requests by the program that comes with redis, on connections that are promoted then.
benchmark() {
	_what=$1
	_promote=$2
	shift 2
	check "$_what" under_vi_run bench --promote "$_promote" redis-benchmark -h "$SERVER" -q --csv "$@"
	grep '^"' /tmp/check.out | while read -r _line; do note "$_what: $_line"; done
	same "$_what: no error" "" "$(grep -i error /tmp/check.out)"
}

# One value of 8 MiB there and back: what is sent before the promotion fits into the kernel's buffers.
large_value() {
	head -c 8388608 /dev/urandom >/tmp/data
	check "a value of 8 MiB is set" sh -c "vi_run --map '$MAP' --promote eager --stats=/tmp/set.json redis-cli -h $SERVER -x set large </tmp/data"
	check "and read" sh -c "vi_run --map '$MAP' --promote eager --stats=/tmp/get.json redis-cli -h $SERVER get large >/tmp/back"
	same "it is the same" "$(sha256sum </tmp/data)" "$(head -c 8388608 /tmp/back | sha256sum)"
	check "8 MiB went over a VI: $(counted set vi_bytes_sent)" test "$(counted set vi_bytes_sent)" -ge 1000000
	check "and back: $(counted get vi_bytes_received)" test "$(counted get vi_bytes_received)" -ge 1000000
}

# link_goes TEXT: both agents have lost the link, and programs had time to hear it from them, which redis does not tell: what one
# stores before that is lost, and its connection reset.
link_goes() {
	check "$1" wait_for 60 link_is_down
	both "$1"
	sleep $((3 * VM_PATIENCE))
}

link_comes() {
	check "$1" wait_for 60 link_is_up
	both "$1"
}

cut_link() {
	begin_client cut
	count_to cut 50 "a client counts to 50"
	both "the link may go"
	ask cut l >/dev/null
	link_goes "a cut takes the link down"
	count_to cut 100 "with the link cut it goes on over TCP"
	benchmark "requests while there is no link" auto -t set,get -n 200 -c 4
	both "the link may come"
	ask restore l >/dev/null
	link_comes "the link comes up again"
	count_to cut 150 "after the cut it goes on"
	end_client
	same "its connection was carried by a VI, and given back" "1 1" "$(counted cut promoted) $(counted cut demoted)"
	benchmark "requests after the cut" auto -t set,get -n 500 -c 4 -d 1000
	carried bench 100000
}

kill_client() {
	begin_client killed
	count_to killed 20 "another client counts to 20"
	check "the server has two clients" wait_for 30 clients_are 2
	kill -9 "$(pidof redis-cli)"
	end_client
	check "a client that is killed is a client less" wait_for 30 clients_are 1
}

kill_agent() {
	begin_client agent
	count_to agent 20 "a third client counts to 20"
	# shellcheck disable=SC2154 # of agents.sh
	kill -9 "$agent"
	wait "$agent" 2>/dev/null
	check "the client is told that the agent is gone" wait_for 30 grep -q "agent .* is gone" /tmp/agent.err
	both "B is without an agent"
	both "so is the link of A"
	sleep $((3 * VM_PATIENCE))
	count_to agent 40 "without an agent it goes on over TCP"
	end_client
	start_agent
	both "B has an agent again"
	both "so has the link of A"
	benchmark "requests with a new agent" auto -t set,get -n 500 -c 4 -d 1000
	carried bench 100000
}

load e1000
ifconfig lo 127.0.0.1 up
ifconfig eth0 "10.9.0.$((VIADUCT_HOST + 1))" netmask 255.255.255.0 up
load ntb
load ntb_hw_ivshmem
load viaduct
start_agent
if [ "$VM_GUEST" = A ]; then
	under_vi_run server --host host0 redis-server --bind "$SERVER" --protected-mode no --save '' --loglevel warning \
		>/tmp/server.out 2>&1 &
	server=$!
	check "redis serves" wait_for 60 serves
	both serving
	both "the link may go"
	link_goes "a cut takes the link down"
	both "the link may come"
	link_comes "the link comes up again"
	both "B is without an agent"
	check "the link goes with the agent of B" wait_for 60 link_is_down
	both "so is the link of A"
	both "B has an agent again"
	check "the link comes up with its new one" wait_for 60 link_is_up
	both "so has the link of A"
	both "all was asked"
	kill "$(pidof redis-server)"
	wait "$server"
	same "redis ends well" 0 $?
	carried server 1000000
else
	both serving
	benchmark "requests" auto -t ping,set,get,incr,lpush,lpop,sadd,hset,spop,mset -n 500 -c 4 -d 1000
	carried bench 500000
	benchmark "many requests at once" eager -t set,get -n 2000 -c 8 -P 16
	carried bench 10000
	large_value
	cut_link
	kill_client
	kill_agent
	both "all was asked"
fi
stop_agent
both end
unload viaduct ntb_hw_ivshmem ntb
