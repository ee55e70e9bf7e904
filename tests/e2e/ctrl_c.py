#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recording that is ended early writes what there is; one that is killed leaves nothing. On a real terminal."""
import os
import signal

from lib import devices, testing
from lib.blkprof import Terminal
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS, Profile
from lib.testing import check, check_equal


def check_ended_by(end, *options):
    with testing.scratch() as folder, devices.zram("64M") as node, \
            Load(ioload_args(node, "read_index:pread:count=1009")) as load:
        with Terminal(folder, "--rate", "0", "--device", node, *options) as terminal:
            terminal.wait_for_progress()
            load.start()
            by_function(load.truth())
            end(terminal)
            check_equal(terminal.wait(), 0, "status")
        profile = Profile.read(terminal.out)
        check_equal(profile.select(frame="read_index", pid=load.pid).total(OPS), 1009, "operations")
        check(0 < profile.duration_ns < 300e9, "duration: %d ns" % profile.duration_ns)
        check("read_index" in terminal.text(), "the report does not name the function:\n" + terminal.text())


def ctrl_c():
    check_ended_by(lambda t: t.type(b"\x03"))


def ctrl_c_before_the_time():
    check_ended_by(lambda t: t.type(b"\x03"), "-d", "600")


def terminated():
    check_ended_by(lambda t: t.process.send_signal(signal.SIGTERM))


def killed():
    with testing.scratch() as folder, Terminal(folder) as terminal:
        terminal.wait_for_progress()
        terminal.process.kill()
        terminal.process.wait()
        check_equal(os.listdir(folder), [], "files left")


def at_once():
    """Before the recording began nothing is written, and that is said."""
    with testing.scratch() as folder, Terminal(folder) as terminal:
        terminal.type(b"\x03")
        status = terminal.wait()
        files = os.listdir(folder)
        check(status == 0 and len(files) == 1 or status and not files, "status %d with files %s" % (status, files))
        check(terminal.text().strip(), "it says nothing")


def time_is_up():
    with testing.scratch() as folder, Terminal(folder, "-d", "1.5") as terminal:
        check_equal(terminal.wait(), 0, "status")
        profile = Profile.read(terminal.out)
        check(1.4e9 <= profile.duration_ns <= 5e9, "duration: %d ns" % profile.duration_ns)


testing.main(ctrl_c, ctrl_c_before_the_time, terminated, killed, at_once, time_is_up)
