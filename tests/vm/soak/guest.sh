#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's side of the soak: guest.sh BACKEND SECONDS records the node while processes, cgroups, modules and devices come and go.
# Leaves in /out: soak.pb.gz and record.txt, rounds.KIND, watch (KiB of memory and descriptors of the recorder, a line a second),
# before.OBJECT and after.OBJECT with the ids of BPF objects, percpu (KiB before and after recordings that do nothing).
self=/payload/guest.sh
objects="prog map link"

say() {
	echo "soak: $*" >&2
}

# until_gone COMMAND…: waits until it fails.
until_gone() {
	for _ in $(seq 100); do
		"$@" 2>/dev/null || return 0
		sleep 0.1
	done
	say "still there after 10 s: $*"
}

# until_there COMMAND…
until_there() {
	for _ in $(seq 100); do
		"$@" 2>/dev/null && return 0
		sleep 0.1
	done
	say "not there after 10 s: $*"
	return 1
}

# some_disk PREFIX: a disk of that kind, as $disk.
some_disk() {
	for disk in "$1"*; do
		[ ! -b "$disk" ] || return 0
	done
	return 1
}

# Reads and writes a device until it is gone, or for a second.
use() {
	timeout 2 ioload --target "$1" --limit 8M "load_lookup:pread:count=20000,threads=2,order=random,rate=300" >/dev/null 2>&1 &
	timeout 2 dd if=/dev/zero of="$1" bs=16k count=200 oflag=direct >/dev/null 2>&1 &
	sleep 0.3
}

# --- kinds: one round each ----------------------------------------------------------------------------------------------

processes() {
	churn -r 100 -s 4 processes "$1" >/dev/null
}

threads() {
	churn -r 20 -s 4 threads "$1" >/dev/null
}

cgroups() {
	made=0
	while [ $made -lt 10 ]; do
		cgroup=/sys/fs/cgroup/soak$made
		mkdir $cgroup || return 1
		(echo 0 >$cgroup/cgroup.procs && exec dd if="$1" of=/dev/null bs=4k count=5 iflag=direct) 2>/dev/null
		until_gone grep -q . $cgroup/cgroup.procs
		rmdir $cgroup || return 1
		made=$((made + 1))
	done
}

# Modules that come, are used, and go.
modules() {
	modprobe null_blk nr_devices=2 queue_mode=2 irqmode=2 completion_nsec=500000 && until_there test -b /dev/nullb1 || return 1
	use /dev/nullb1
	wait
	rmmod null_blk || return 1
	modprobe zram && echo 8M >/sys/block/zram0/disksize || return 1
	use /dev/zram0
	wait
	echo 1 >/sys/block/zram0/reset
	rmmod zram
}

# Taken away under I/O.
scsi_removal() {
	until_there some_disk /dev/sd || return 1
	use "$disk"
	echo 1 >/sys/block/"${disk##*/}"/device/delete
	wait
	until_gone test -b "$disk"
	for host in /sys/class/scsi_host/*; do
		echo "- - -" >"$host/scan"
	done
}

nvme_removal() {
	until_there some_disk /dev/nvme || return 1
	use "$disk"
	echo 1 >/sys/block/"${disk##*/}"/device/device/remove
	wait
	until_gone test -b "$disk"
	echo 1 >/sys/bus/pci/rescan
}

mapper_removal() {
	dmsetup create --noudevsync soak --table "0 65536 linear $1 0" && dmsetup mknodes || return 1
	use /dev/mapper/soak
	dmsetup suspend --noudevsync --noflush soak
	dmsetup load soak --table "0 65536 error"
	dmsetup resume --noudevsync soak
	wait
	dmsetup remove --noudevsync --retry soak && dmsetup mknodes
}

loop_removal() {
	losetup /dev/loop0 "$1" || return 1
	use /dev/loop0
	losetup -d /dev/loop0
	wait
	until_gone losetup /dev/loop0
}

# Attached and detached while all this goes on.
recordings() {
	blkprof record --backend "$backend" -d 500ms -o /tmp/recordings.pb.gz >/tmp/recordings.txt 2>&1 || { cat /tmp/recordings.txt >&2 && return 1; }
	sleep 2
}

# kind NAME ARGUMENTS…: rounds of it until the time is over.
kind() {
	rounds=0
	while [ ! -e /tmp/over ]; do
		"$@" || { say "a round of $1 failed" && sleep 1 && continue; }
		rounds=$((rounds + 1))
		echo $rounds >/out/"rounds.$1"
	done
}

churn_all() {
	# shellcheck disable=SC2086 # a list of words
	set -- $DISKS
	modprobe loop
	modprobe dm_mod
	kind processes "$1" &
	kind threads "$1" &
	kind cgroups "$1" &
	kind modules &
	kind scsi_removal &
	kind nvme_removal &
	kind mapper_removal "$2" &
	kind loop_removal "$3" &
	kind recordings &
	sleep "$seconds"
	touch /tmp/over
	wait
}

# --- the recording ------------------------------------------------------------------------------------------------------

ids() {
	for object in $objects; do
		bpftool "$object" show | sed -n 's/^\([0-9]*\): .*/\1/p' | sort >/out/"$1.$object"
	done
}

nothing_new() {
	ids after
	for object in $objects; do
		cmp -s /out/before."$object" /out/after."$object" || return 1
	done
}

watch_recorder() {
	until_there test -s /tmp/recorder
	pid=$(cat /tmp/recorder)
	while [ -e /proc/"$pid"/status ]; do
		echo "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' /proc/"$pid"/status) $(find /proc/"$pid"/fd -type l 2>/dev/null | wc -l)" >>/out/watch
		sleep 1
	done
}

percpu() {
	sed -n 's/^Percpu:[^0-9]*\([0-9]*\).*/\1/p' /proc/meminfo
}

# Recordings of nothing hold nothing when they are over.
idle_recordings() {
	before=$(percpu)
	for _ in 1 2 3; do
		blkprof record --backend "$backend" -d 100ms -o /tmp/idle.pb.gz >/dev/null 2>&1
	done
	until_there nothing_new
	echo "$before $(percpu)" >/out/percpu
}

backend=$1 seconds=$2
if [ "$3" = churn ]; then
	# The recorder is the parent of its command.
	echo $PPID >/tmp/recorder
	churn_all
	exit 0
fi
ids before
watch_recorder &
blkprof record --backend "$backend" --cpu 19 --kernel-stacks -a -o /out/soak.pb.gz -- sh $self "$backend" "$seconds" churn >/out/record.txt 2>/out/churn.txt ||
	{ cat /out/churn.txt >&2 && say "record failed" && exit 1; }
until_there nothing_new
cat /sys/kernel/debug/kprobes/list /sys/kernel/tracing/enabled_functions >/out/attached 2>/dev/null
idle_recordings
exit 0
