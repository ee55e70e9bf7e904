#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recording that is ended early writes what there is; one that is killed leaves nothing."""
import os
import signal

from lib import devices, testing
from lib.blkprof import Recording
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS
from lib.testing import check, check_equal


def check_ended_by(number, *options):
    with testing.scratch() as folder, devices.zram("64M") as node:
        with Recording(folder, "--rate", "0", *options, marker=False) as recording:
            with Load(ioload_args(node, "read_index:pread:count=1009")) as load:
                load.start()
                by_function(load.truth())
            recording.process.send_signal(number)
            profile = recording.wait()
        check_equal(profile.select(frame="read_index").total(OPS), 1009, "operations")
        check(0 < profile.duration_ns < 60e9, "duration: %d ns" % profile.duration_ns)
        check("read_index" in recording.stderr(), "the report does not name the function:\n" + recording.stderr())


def ctrl_c():
    check_ended_by(signal.SIGINT)


def ctrl_c_before_the_time():
    check_ended_by(signal.SIGINT, "-d", "300")


def terminated():
    check_ended_by(signal.SIGTERM)


def killed():
    with testing.scratch() as folder:
        with Recording(folder, marker=False) as recording:
            recording.process.kill()
            recording.process.wait()
            check(not os.path.exists(recording.out), "a file was left")
        left = [f for f in os.listdir(folder) if not f.endswith(".stderr")]
        check_equal(left, [], "files left")


def time_is_up():
    with testing.scratch() as folder, Recording(folder, "-d", "1.5", marker=False) as recording:
        profile = recording.wait()
        check(1.4e9 <= profile.duration_ns <= 5e9, "duration: %d ns" % profile.duration_ns)


testing.main(ctrl_c, ctrl_c_before_the_time, terminated, killed, time_is_up)
