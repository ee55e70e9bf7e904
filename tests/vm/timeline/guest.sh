#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's side of timeline.py: traces each load by itself, from before it does anything until it sleeps, and keeps what the
# kernel counted of its threads.
wait_for() {
	n=0
	until grep -q "$1" "$2" 2>/dev/null; do
		n=$((n + 1))
		[ $n -lt 300 ] && kill -0 $tracer 2>/dev/null || { echo "$name: no '$1'" >>/out/failed; return 1; }
		sleep 0.1
	done
}

trace() {
	name=$1
	shift
	mkfifo /tmp/in
	"$@" </tmp/in >/tmp/done &
	load=$!
	exec 3>/tmp/in
	blkprof timeline --no-requests -p $load -o "/out/$name.pftrace" -n 0 2>"/out/$name.txt" &
	tracer=$!
	wait_for recording "/out/$name.txt" && {
		echo >&3
		wait_for "$until" /tmp/done
		sleep 0.3
		for task in /proc/$load/task/*; do
			echo "${task##*/} $(cat "$task/schedstat") $(grep ctxt_switches "$task/status" | tr -dc '0-9\n' | tr '\n' ' ')"
		done >"/out/$name.schedstat"
	}
	kill -INT $tracer
	wait $tracer || echo "$name: exit status $?" >>/out/failed
	exec 3>&-
	kill $load 2>/dev/null
	wait $load 2>/dev/null
	rm -f /tmp/in /tmp/done
	[ ! -e /out/failed ] || { cat "/out/$name.txt" && exit 1; }
}

until='done'
trace convoy /payload/threadload convoy 3 60
trace pipeline /payload/threadload pipeline 4 200
export BLKPROF_LAST_FORMS=1
trace pipeline-raw /payload/threadload pipeline 4 200
unset BLKPROF_LAST_FORMS
until=entries
trace io /payload/ioload --wait --linger -t "$DISK" scan_index:aio-read:count=211,depth=32 write_wal:pwrite:count=53,size=16K
