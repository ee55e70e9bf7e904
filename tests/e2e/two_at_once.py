#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings that run at once do not disturb each other."""
from lib import devices, testing
from lib.blkprof import Recording
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS, READ_BYTES, WRITE_BYTES
from lib.testing import check_equal

PLAN = ["read_index:pread:count=1009", "write_wal:pwrite:count=503,size=16K"]


def check_profile(profile, load, truth, what):
    for function, entry in truth.items():
        samples = profile.select(frame=function, pid=load.pid)
        check_equal(samples.total(OPS), entry["calls"], "%s: %s operations" % (what, function))
        moved = samples.total(READ_BYTES) + samples.total(WRITE_BYTES)
        check_equal(moved, entry["bytes"], "%s: %s bytes" % (what, function))


def both_see_all():
    with testing.scratch() as folder, devices.zram("64M") as node:
        with Recording(folder, "--rate", "0") as one, Recording(folder, "--rate", "0", "--kernel-stacks") as other:
            with Load(ioload_args(node, *PLAN)) as load:
                load.start()
                truth = by_function(load.truth())
            check_profile(one.stop(), load, truth, "first")
            check_profile(other.stop(), load, truth, "second")


def each_with_its_filter():
    with testing.scratch() as folder, devices.zram("64M") as node, Load(ioload_args(node, PLAN[0])) as reads, \
            Load(ioload_args(node, PLAN[1])) as writes:
        with Recording(folder, "--rate", "0", "--pid", str(reads.pid)) as one, \
                Recording(folder, "--rate", "0", "--pid", str(writes.pid)) as other:
            reads.start()
            writes.start()
            read_truth, write_truth = by_function(reads.truth()), by_function(writes.truth())
            first, second = one.stop(), other.stop()
        check_profile(first, reads, read_truth, "first")
        check_profile(second, writes, write_truth, "second")
        check_equal(first.total(OPS), 1009, "all of the first")
        check_equal(second.total(OPS), 503, "all of the second")


def one_ends_before():
    """The end of a recording takes nothing from another."""
    with testing.scratch() as folder, devices.zram("64M") as node, Recording(folder, "--rate", "0") as long:
        pids = []
        for _ in range(3):
            with Recording(folder, "--rate", "0") as short, Load(ioload_args(node, PLAN[0])) as load:
                load.start()
                truth = by_function(load.truth())
                check_profile(short.stop(), load, truth, "short")
                pids.append(load.pid)
        profile = long.stop()
        for pid in pids:
            check_equal(profile.select(frame="read_index", pid=pid).total(OPS), 1009, "operations in the long one")


testing.main(both_see_all, each_with_its_filter, one_ends_before)
