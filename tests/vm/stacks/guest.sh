#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's side of stacks.py: records each program by itself with the backend that the kernel gives first.
export PYTHONHOME=/payload/home

record() {
	name=$1
	shift
	echo 3 >/proc/sys/vm/drop_caches
	blkprof record -o "/out/$name.pb.gz" --rate 0 -- "$@" >"/out/$name.txt" 2>&1 || echo "$name: exit status $?" >>/out/failed
}

record python3 /payload/python3 -S /payload/reader.py "$DISK" "$1"
record dd /payload/dd if="$DISK" of=/dev/null bs=16k count="$1" iflag=direct status=none
record reader /payload/reader "$DISK" "$1"
for load in read_segment:uring-async-read write_wal:uring-async-write scan_table:uring-sqpoll-read; do
	record "${load#*:}" /payload/ioload -t "$DISK" "$load:count=500,depth=8"
done
