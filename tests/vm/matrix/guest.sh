#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's side of the matrix: guest.sh BACKENDS DEVICE… makes the devices, then records the loads of /payload/plan on all of
# them with one backend after the other, then that of /payload/together with two at once. /out/BACKEND.works says that it did;
# BACKEND.pb.gz and ONE+OTHER.BACKEND.pb.gz are the recordings, BACKEND.DEVICE.json and ONE+OTHER.DEVICE.json what the loads did,
# BACKEND.txt and ONE+OTHER.txt what was said, ONE+OTHER.programs.json how long our BPF programs ran. Plans have lines of DEVICE ENTRY…
self=/payload/guest.sh
nodes=/tmp/nodes
groups=/tmp/groups

say() {
	echo "matrix: $*" >&2
}

# --- devices: each function leaves NODE, GROUP where its load runs in a cgroup ------------------------------------------

# The next disk of those that the guest has, as $taken.
take() {
	taken=${DISKS%% *}
	DISKS=${DISKS#* }
	[ -b "$taken" ]
}

number_of() {
	cat "/sys/class/block/${1##*/}/dev"
}

make_virtio() {
	take && NODE=$taken
}

make_nvme() {
	modprobe nvme && NODE=/dev/nvme0n1 && [ -b "$NODE" ]
}

make_partition() {
	take && addpart "$taken" 1 2048 262144 && NODE=${taken}1
}

# Requests of 64 KiB at most.
make_split() {
	take && echo 64 >"/sys/block/${taken##*/}/queue/max_sectors_kb" && NODE=$taken
}

# null_blk QUEUE_MODE IRQMODE NANOSECONDS
make_null() {
	modprobe null_blk nr_devices=0 || return 1
	item=/sys/kernel/config/nullb/$name
	mkdir "$item" || return 1
	echo "$1" >"$item/queue_mode"
	echo "$2" >"$item/irqmode"
	echo "$3" >"$item/completion_nsec"
	echo 256 >"$item/size"
	echo 1 >"$item/power" || return 1
	NODE=/dev/nullb$(cat "$item/index")
	[ -b "$NODE" ] || NODE=/dev/$name
}

make_null_bio() {
	make_null 0 0 0
}

make_null_softirq() {
	make_null 2 1 0
}

make_null_timer() {
	make_null 2 2 1000000
}

make_null_10ms() {
	make_null 2 2 10000000
}

make_zram() {
	modprobe zram && echo 64M >/sys/block/zram0/disksize && NODE=/dev/zram0
}

# mapper NAME TARGET: 128 MiB of device mapper.
make_mapper() {
	modprobe dm_mod
	dmsetup create --noudevsync "$1" --table "0 262144 $2" && dmsetup mknodes && NODE=/dev/mapper/$1
}

make_dm_linear() {
	take && make_mapper plain "linear $taken 0"
}

make_dm_crypt() {
	key=$(for _ in $(seq 16); do printf 0123abcd; done)
	take && make_mapper secret "crypt aes-xts-plain64 $key 0 $taken 0"
}

# make_array NAME LEVEL DISK…
make_array() {
	modprobe md_mod
	array=/dev/$1 level=$2
	shift 2
	# Without mdadm's udev rules; a new array that is assumed clean does not resync.
	yes | mdadm --create "$array" --run --assume-clean --metadata=1.2 --bitmap=none --level="$level" --raid-devices=$# "$@" >/tmp/mdadm.txt 2>&1 ||
		{ cat /tmp/mdadm.txt >&2 && return 1; }
	NODE=$array
}

make_md_raid1() {
	take && first=$taken && take && make_array md1 1 "$first" "$taken"
}

make_md_raid5() {
	take && first=$taken && take && second=$taken && take && make_array md5 5 "$first" "$second" "$taken"
}

make_loop() {
	modprobe loop
	take && losetup /dev/loop0 "$taken" && NODE=/dev/loop0
}

# A hundred requests a second of each kind.
make_throttle_v2() {
	take || return 1
	echo +io >/sys/fs/cgroup/cgroup.subtree_control || return 1
	mkdir /sys/fs/cgroup/slow || return 1
	echo "$(number_of "$taken") riops=100 wiops=100" >/sys/fs/cgroup/slow/io.max || return 1
	NODE=$taken GROUP=/sys/fs/cgroup/slow
}

make_throttle_v1() {
	take && mkdir /sys/fs/cgroup/blkio/slow || return 1
	for limit in read write; do
		echo "$(number_of "$taken") 100" >/sys/fs/cgroup/blkio/slow/blkio.throttle.${limit}_iops_device || return 1
	done
	NODE=$taken GROUP=/sys/fs/cgroup/blkio/slow
}

make_all() {
	mkdir -p $nodes $groups
	for name; do
		NODE='' GROUP=''
		if "make_$name" && [ -b "$NODE" ]; then
			# Some look for partitions when they are opened first.
			: <"$NODE"
			echo "$NODE" >$nodes/"$name"
			[ -z "$GROUP" ] || echo "$GROUP" >$groups/"$name"
		else
			say "$name cannot be made here"
		fi
	done
}

# --- loads --------------------------------------------------------------------------------------------------------------

# The load of one device, by a process that is in the device's cgroup.
load() {
	node=$(cat $nodes/"$1")
	[ ! -e $groups/"$1" ] || echo 0 >"$(cat $groups/"$1")/cgroup.procs"
	shift
	exec ioload --target "$node" --limit 128M "$@"
}

# loads WHO PLAN [measured]: the latter leaves in WHO.programs.json how long our BPF programs ran.
loads() {
	while read -r name entries; do
		[ -e $nodes/"$name" ] || continue
		# shellcheck disable=SC2086 # a list of words
		(load "$name" $entries) >/out/"$1.$name.json" || say "the load on $name failed"
	done <"$2"
	[ -z "$3" ] || bpftool -j prog show >/out/"$1.programs.json"
}

# --- recordings ---------------------------------------------------------------------------------------------------------

record() {
	if blkprof record --backend "$1" --rate 0 -a -o /out/"$1.pb.gz" -- sh $self loads "$1" /payload/plan >/out/"$1.txt" 2>&1; then
		touch /out/"$1.works"
	fi
}

# record_pair FIRST SECOND: both record one load at once.
record_pair() {
	[ -e /out/"$1.works" ] && [ -e /out/"$2.works" ] || return
	both=$1+$2
	blkprof record --backend "$1" --rate 0 -a -o /out/"$both.$1.pb.gz" -- \
		blkprof record --backend "$2" --rate 0 -a -o /out/"$both.$2.pb.gz" -- \
		sh $self loads "$both" /payload/together measured >/out/"$both.txt" 2>&1 || say "$both: record failed"
}

if [ "$1" = loads ]; then
	loads "$2" "$3" "$4"
	exit
fi
backends=$1
shift
make_all "$@"
for backend in $backends; do
	record "$backend"
done
[ -s /payload/together ] || exit 0
echo 1 >/proc/sys/kernel/bpf_stats_enabled
for pair in "fentry tracepoint" "fentry kprobe" "kprobe tracepoint"; do
	# shellcheck disable=SC2086 # two words
	record_pair $pair
done
exit 0
