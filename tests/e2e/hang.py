#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A disk that stops answering: the time is in the profile, whether the requests end within the recording or not."""
import time

from lib import devices, testing
from lib.blkprof import Recording
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS, TIME
from lib.testing import check, check_between, check_equal, wait_for

SECOND = 10 ** 9


def waiting(disk, n):
    wait_for(lambda: disk.state()["waiting"] >= n, "%d requests at the disk that hangs" % n)


def ends_within():
    """A hang of 3 s in the middle: all requests completed, their time is what the program measured."""
    with testing.scratch() as folder, devices.slow_disk(folder) as disk, Recording(folder, "--rate", "0") as recording:
        with Load(ioload_args(disk.node, "read_index:pread:count=199,rate=100")) as load:
            load.start()
            time.sleep(0.5)
            disk.hang(3)
            truth = by_function(load.truth())["read_index"]
        samples = recording.stop().select(frame="read_index", pid=load.pid)
        check(truth["max_ns"] > 2.5 * SECOND, "the disk did not hang")
        check_equal(samples.total(OPS), 199, "operations")
        check_between(samples.total(TIME), 0.9 * truth["time_ns"], truth["time_ns"], "time")
        check_equal(samples.select(latency=2 * SECOND).total(OPS), 1, "operations of 2 to 5 s")


def still_in_flight():
    """What is in flight when a recording ends has its time so far, under a leaf that says so."""
    with testing.scratch() as folder, devices.slow_disk(folder) as disk, Recording(folder, "--rate", "0") as recording:
        with Load(ioload_args(disk.node, "read_block:aio-read:count=7,depth=7", "read_index:pread:count=3")) as load:
            disk.hang(30)
            load.start()
            waiting(disk, 7)
            time.sleep(3)
            profile = recording.stop()
            disk.hang(0)
            by_function(load.truth())
        samples = profile.select(frame="read_block", pid=load.pid)
        check_equal(samples.total(OPS), 7, "operations")
        check_equal(samples.select(flat="[in flight]").total(OPS), 7, "operations in flight")
        check_between(samples.total(TIME), 7 * 2.9 * SECOND, 7 * 4.5 * SECOND, "time so far")
        check_equal(samples.select(latency=2 * SECOND).total(OPS), 7, "operations of 2 to 5 s so far")
        check_equal(len(profile.select(frame="read_index", pid=load.pid)), 0, "samples of what had not begun")


def sampled_is_not_dropped():
    """The default rate takes every request of a quiet disk, hanging or not."""
    with testing.scratch() as folder, devices.slow_disk(folder) as disk, Recording(folder) as recording:
        with Load(ioload_args(disk.node, "read_index:pread:count=29,rate=20")) as load:
            disk.hang(2)
            load.start()
            truth = by_function(load.truth())["read_index"]
        samples = recording.stop().select(frame="read_index", pid=load.pid)
        check_equal(samples.total(OPS), 29, "operations")
        check_between(samples.total(TIME), 0.9 * truth["time_ns"], truth["time_ns"], "time")


testing.main(ends_within, still_in_flight, sampled_is_not_dropped)
