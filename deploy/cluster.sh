#!/bin/sh
# Three nodes on this machine, each a process of its own, made into a cluster
# and stopped together by Ctrl-C. The data stay in data/cluster/; what the nodes
# say is in data/cluster/nodeN.log. N=5 runs five; PORT=20000 puts them on 20000,
# 20010, … and their cluster ports 2 above. ADD=4 runs a fourth node beside three that
# run already, and adds it to them.
set -eu
cd "$(dirname "$0")/.."
first=${ADD:-1}
n=${ADD:-${N:-3}}
admin=${ADMIN:-admin:password}
dir=${DIR:-data/cluster}
mkdir -p "$dir"

pids=
setup=
stop() {
	trap - INT TERM EXIT
	[ -z "$pids" ] || kill $pids $setup 2>/dev/null || true
	wait
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# All below the ports from 32768 up, which the system gives to any connection.
port_of() { # NODE
	if [ -n "${PORT:-}" ]; then
		echo $((PORT + ($1 - 1) * 10))
		return
	fi
	set -- "$1" 15984 25984 30984 20984 10984
	eval "echo \${$(($1 + 1))}"
}

[ "$n" -ge 1 ] && [ "$n" -le 5 ] || { echo "cluster.sh: 1 to 5 nodes" >&2; exit 1; }
urls=
[ "$first" = 1 ] || urls=" http://127.0.0.1:$(port_of 1)" # through which it is added
for i in $(seq "$first" "$n"); do
	port=$(port_of "$i")
	NODENAME="node$i@127.0.0.1" \
		DIVAN_COUCHDB__SINGLE_NODE=false \
		DIVAN_CLUSTER__BIND_ADDRESS=127.0.0.1 DIVAN_CLUSTER__PORT=$((port + 2)) DIVAN_CLUSTER__ADVERTISE=127.0.0.1:$((port + 2)) \
		./bin/divan serve --data "$dir/node$i" --listen "127.0.0.1:$port" --admin "$admin" >"$dir/node$i.log" 2>&1 &
	pids="$pids $!"
	urls="$urls http://127.0.0.1:$port"
done
# shellcheck disable=SC2086 # a list of words
./bin/divan setup --admin "$admin" $urls &
setup=$!
while kill -0 "$setup" 2>/dev/null; do
	i=$((first - 1))
	for pid in $pids; do
		i=$((i + 1))
		kill -0 "$pid" 2>/dev/null || {
			echo "node$i has ended, its log says why: $dir/node$i.log" >&2
			tail -n 3 "$dir/node$i.log" >&2
			exit 1
		}
	done
	sleep 0.2
done
wait "$setup" || { echo "the nodes say why in $dir/node*.log" >&2; exit 1; }
setup=
echo
for i in $(seq "$first" "$n"); do
	echo "node$i  http://$admin@127.0.0.1:$(port_of "$i")  its log is $dir/node$i.log"
done
if [ "$first" = 1 ]; then
	echo "Ctrl-C stops them all."
else
	echo "Ctrl-C stops it. It gets its part of what there is by"
	echo "    curl -X POST http://$admin@127.0.0.1:$(port_of 1)/_cluster/rebalance"
fi
wait
