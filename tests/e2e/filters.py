#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each filter keeps exactly what it names, when two loads run at once."""
import contextlib
import os
import subprocess
import time

from lib import devices, testing
from lib.blkprof import Recording
from lib.load import Load, by_function, ioload_args
from lib.pprof import CPU, OPS
from lib.testing import check, check_equal, skip

READS, WRITES = "read_index:pread:count=1009", "write_wal:pwrite:count=503,size=16K"


def check_only(profile, wanted, what):
    """wanted: {function: operations}; nothing else is in the profile."""
    for function, ops in wanted.items():
        check_equal(profile.select(frame=function).total(OPS), ops, "%s: operations of %s" % (what, function))
    check_equal(profile.total(OPS), sum(wanted.values()), "%s: all operations" % what)


@contextlib.contextmanager
def two_loads(first, second):
    """Two loads that wait: the first with the plan READS, the other with WRITES, each on its target."""
    with Load(ioload_args(first, READS, extra=["-n", "reader%d" % os.getpid()])) as reads:
        with Load(ioload_args(second, WRITES, extra=["-n", "writer%d" % os.getpid()])) as writes:
            yield reads, writes


def record_both(folder, options, reads, writes):
    with Recording(folder, "--rate", "0", *options) as recording:
        reads.start()
        writes.start()
        by_function(reads.truth()), by_function(writes.truth())
        return recording.stop()


def pid():
    with testing.scratch() as folder, devices.zram("64M") as node, two_loads(node, node) as (reads, writes):
        check_only(record_both(folder, ["--pid", str(reads.pid)], reads, writes), {"read_index": 1009}, "--pid")
    with testing.scratch() as folder, devices.zram("64M") as node, two_loads(node, node) as (reads, writes):
        both = "%d,%d" % (reads.pid, writes.pid)
        check_only(record_both(folder, ["--pid", both], reads, writes), {"read_index": 1009, "write_wal": 503}, "two pids")


def comm():
    with testing.scratch() as folder, devices.zram("64M") as node, two_loads(node, node) as (reads, writes):
        check_only(record_both(folder, ["--comm", "writer%d" % os.getpid()], reads, writes), {"write_wal": 503}, "--comm")


def op():
    with testing.scratch() as folder, devices.zram("64M") as node, two_loads(node, node) as (reads, writes):
        options = ["--op", "write", "--device", os.path.basename(node)]
        check_only(record_both(folder, options, reads, writes), {"write_wal": 503}, "--op")


def device():
    with testing.scratch() as folder, devices.zram("64M") as one, devices.zram("64M") as other, \
            two_loads(one, other) as (reads, writes):
        check_only(record_both(folder, ["--device", os.path.basename(one)], reads, writes), {"read_index": 1009}, "--device")
    with testing.scratch() as folder, devices.zram("64M") as one, devices.zram("64M") as other, \
            two_loads(one, other) as (reads, writes):
        check_only(record_both(folder, ["--device", other], reads, writes), {"write_wal": 503}, "--device /dev/…")


def mount_point():
    with testing.scratch() as folder, devices.small_fs(folder, 64) as (point, loop), devices.zram("64M") as node, \
            devices.file_of(point + "/data", 16 << 20) as path, two_loads(path, node) as (reads, writes):
        profile = record_both(folder, ["--device", point, "--op", "read"], reads, writes)
        check_equal(profile.select(frame="read_index").total(OPS), 1009, "--device MOUNT: reads of the file")
        check_equal(len(profile.select(frame="write_wal")), 0, "samples of another device")


@contextlib.contextmanager
def partitioned(folder):
    """A loop device with a partition of its second half: (disk, partition)."""
    with devices.file_of(folder + "/disk.img", 32 << 20) as image, devices.loop(image) as node:
        try:
            devices.sh("addpart", node, "1", "32768", "32768")
        except Exception:
            skip("this loop device takes no partitions")
        testing.wait_for(lambda: os.path.exists(node + "p1"), node + "p1")
        try:
            yield node, node + "p1"
        finally:
            devices.sh("delpart", node, "1")


def partition():
    """A disk's name includes its partitions; a partition's name is only itself; samples name the disk."""
    for name, wanted in (("disk", {"read_index": 1009, "write_wal": 503}), ("partition", {"read_index": 1009})):
        with testing.scratch() as folder, partitioned(folder) as (disk, part):
            with Load(ioload_args(part, READS)) as reads, Load(ioload_args(disk, WRITES, limit="8M")) as writes:
                profile = record_both(folder, ["--device", disk if name == "disk" else part], reads, writes)
                check_only(profile, wanted, name)
                check_equal(set(profile.by(OPS, "device")), {os.path.basename(disk)}, "device")


@contextlib.contextmanager
def cgroup(mount, name):
    if not os.path.isdir(mount):
        skip("%s is not mounted" % mount)
    parent, child = os.path.join(mount, name), os.path.join(mount, name, "inner")
    try:
        os.makedirs(child, exist_ok=True)
    except OSError as error:
        skip("cannot make a cgroup below %s: %s" % (mount, error))
    try:
        yield parent, child
    finally:
        for folder in (child, parent):
            with contextlib.suppress(OSError, TimeoutError):
                testing.wait_for(lambda: not devices.read(folder + "/cgroup.procs"), "the cgroup to empty", 5)
                os.rmdir(folder)


def check_cgroup(mount):
    """The load is in a child of the cgroup that is named; the other is in neither."""
    name = "blkprof-e2e-%d" % os.getpid()
    with cgroup(mount, name) as (parent, child):
        for option in (parent, "/" + name):
            with testing.scratch() as folder, devices.zram("64M") as node, two_loads(node, node) as (reads, writes):
                devices.write(child + "/cgroup.procs", reads.pid)
                profile = record_both(folder, ["--cgroup", option], reads, writes)
                check_only(profile, {"read_index": 1009}, "--cgroup " + option)


def cgroup_v2():
    mounts = [line.split()[1] for line in open("/proc/self/mounts") if line.split()[2] == "cgroup2"]
    check_cgroup(mounts[0]) if mounts else skip("no cgroup v2 is mounted")


def cgroup_v1():
    mounts = [line.split()[1] for line in open("/proc/self/mounts")
              if line.split()[2] == "cgroup" and "memory" in line.split()[3].split(",")]
    check_cgroup(mounts[0]) if mounts else skip("the v1 memory controller is not mounted")


def two_kinds():
    """Filters of different kinds must all match."""
    with testing.scratch() as folder, devices.zram("64M") as node, two_loads(node, node) as (reads, writes):
        profile = record_both(folder, ["--pid", "%d,%d" % (reads.pid, writes.pid), "--op", "read"], reads, writes)
        check_only(profile, {"read_index": 1009}, "--pid and --op")


def asynchronous():
    """A request that completes long after its submission, in somebody else's context, is still its submitter's."""
    with testing.scratch() as folder, devices.slow_disk(folder) as disk:
        plan = "read_block:aio-read:count=1009,depth=32"
        other_plan = "scan_index:aio-read:count=997,depth=32"
        with Load(ioload_args(disk.node, plan)) as mine, Load(ioload_args(disk.node, other_plan)) as other:
            profile = record_both(folder, ["--pid", str(mine.pid)], mine, other)
            check_only(profile, {"read_block": 1009}, "--pid of an asynchronous load")


def cpu_samples_too():
    """--cpu with --cgroup samples the processes of that group only."""
    mounts = [line.split()[1] for line in open("/proc/self/mounts") if line.split()[2] == "cgroup2"]
    if not mounts:
        skip("no cgroup v2 is mounted")
    busy = ["timeout", "20", "sh", "-c", "while :; do :; done"]
    with testing.scratch() as folder, cgroup(mounts[0], "blkprof-e2e-%d" % os.getpid()) as (parent, child):
        processes = [subprocess.Popen(busy)]
        try:
            with Recording(folder, "--cgroup", parent, "--cpu", "99") as recording:
                processes.append(subprocess.Popen(busy, preexec_fn=lambda: devices.write(child + "/cgroup.procs", os.getpid())))
                time.sleep(2)
                profile = recording.stop()
        finally:
            for process in processes:
                process.terminate()
                process.wait()
        check(profile.total(CPU) > 0.2e9, "no CPU time of the group: %d ns" % profile.total(CPU))
        check(all(s.labels["pid"] != processes[0].pid for s in profile if s[CPU]), "CPU samples of a process outside the group")


testing.main(pid, comm, op, device, mount_point, partition, cgroup_v2, cgroup_v1, two_kinds, asynchronous, cpu_samples_too)
