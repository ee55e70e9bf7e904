#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's side of timeline.py: one trace of three loads, from before they do anything until they sleep, and what the kernel
# counted of their threads. With "raw" once more, by the programs for kernels that refuse typed ones.
wait_for() {
	n=0
	until grep -q "$1" "$2" 2>/dev/null; do
		n=$((n + 1))
		[ $n -lt 900 ] && kill -0 $tracer 2>/dev/null || { echo "$name: no '$1'" >>/out/failed; return 1; }
		sleep 0.1
	done
}

keep_counts() {
	for task in /proc/"$1"/task/*; do
		echo "${task##*/} $(cat "$task/schedstat") $(grep ctxt_switches "$task/status" | tr -dc '0-9\n' | tr '\n' ' ')"
	done >>"/out/$name.schedstat"
}

trace() {
	name=$1
	mkfifo /tmp/a /tmp/b /tmp/c
	/payload/threadload convoy 3 60 </tmp/a >/tmp/convoy &
	convoy=$!
	exec 3>/tmp/a
	/payload/threadload pipeline 4 200 </tmp/b >/tmp/pipeline &
	pipeline=$!
	exec 4>/tmp/b
	/payload/ioload --wait --linger -t "$DISK" scan_index:aio-read:count=211,depth=32 write_wal:pwrite:count=401,size=16K </tmp/c >/tmp/io &
	io=$!
	exec 5>/tmp/c
	blkprof timeline --no-requests -p $convoy,$pipeline,$io -o "/out/$name.pftrace" -n 0 2>"/out/$name.txt" &
	tracer=$!
	wait_for recording "/out/$name.txt" && {
		echo >&3
		wait_for 'done' /tmp/convoy
		echo >&4
		wait_for 'done' /tmp/pipeline
		echo >&5
		wait_for entries /tmp/io
		sleep 0.3
		keep_counts $convoy
		keep_counts $pipeline
	}
	kill -INT $tracer
	wait $tracer || echo "$name: exit status $?" >>/out/failed
	exec 3>&- 4>&- 5>&-
	kill $convoy $pipeline $io 2>/dev/null
	wait $convoy $pipeline $io 2>/dev/null
	rm -f /tmp/a /tmp/b /tmp/c /tmp/convoy /tmp/pipeline /tmp/io
	[ ! -e /out/failed ] || { cat "/out/$name.txt" && exit 1; }
}

trace typed
[ "$1" != raw ] || BLKPROF_LAST_FORMS=1 trace raw
