#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's side of requests.py: follows the server while the client plays its plan.
fail() {
	echo "$1" >>/out/failed
	cat /tmp/*.err >>/out/failed
	exit 1
}

ask() {
	printf 'T\nC\nS GET %s HTTP/1.1\\r\\n\\r\\n\n%s\n' "$1" "$2" >/tmp/ask
	/payload/client "$port" /tmp/ask 2>/tmp/ask.err
}

/payload/server "$DISK" /out/truth >/tmp/port 2>/tmp/server.err &
server=$!
n=0
until [ -s /tmp/port ]; do
	n=$((n + 1))
	[ $n -lt 100 ] || fail "the server does not start"
	sleep 0.1
done
port=$(cat /tmp/port)
blkprof requests -p $server --json >/out/records 2>/out/said.err &
tracer=$!
n=0
until [ -s /out/records ]; do
	n=$((n + 1))
	[ $n -lt 300 ] && kill -0 $tracer || { cat /out/said.err >/tmp/said.err; fail "no record comes"; }
	ask /first "P 1"
	sleep 0.1
done
/payload/client "$port" /payload/plan 2>/tmp/client.err || fail "the client's plan"
kill -INT $tracer
wait $tracer || fail "blkprof: exit status $?"
ask /quit "P 500"
wait $server || fail "the server: exit status $?"
