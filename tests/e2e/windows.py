#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows without a gap, as the agent will take them: what hangs is in every window with its part, the parts add up,
operations and bytes belong to the window of submission, and the windows' sums are the whole load."""
import os
import subprocess
import sys
import time

from lib import devices, testing
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS, READ_BYTES, TIME, Profile
from lib.testing import check, check_between, check_equal, wait_for

SECOND = 10 ** 9
HANG = int(os.environ.get("HANG_SECONDS", "8"))


class Windows:
    """record_windows over `n` windows of `length` seconds: profiles by window, the last one the rest until they are asked for."""

    def __init__(self, folder, length, n, rate=0):
        self.prefix, self.n = os.path.join(folder, "window"), n
        self.process = subprocess.Popen([os.path.join(devices.build(), "tests", "bpf", "record_windows"), self.prefix,
                                         str(length), str(n), str(rate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check_equal(self.process.stdout.readline(), "ready\n", "record_windows")

    def profiles(self):
        self.process.stdin.close()
        check_equal(self.process.wait(timeout=120), 0, "status of record_windows")
        return [Profile.read("%s.%d.pb.gz" % (self.prefix, i)) for i in range(self.n + 1)]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def hang_is_in_every_window():
    with testing.scratch() as folder, devices.slow_disk(folder) as disk, Windows(folder, 2, (HANG + 6) // 2) as windows:
        with Load(ioload_args(disk.node, "read_block:aio-read:count=7,depth=7")) as load:
            time.sleep(0.5)
            disk.hang(HANG)
            load.start()
            truth = by_function(load.truth())["read_block"]
        profiles = windows.profiles()
        # Of this disk: on a full machine the program's own pages are read from another meanwhile.
        parts = [p.select(op="read", pid=load.pid, device=disk.name) for p in profiles]
        times = [p.total(TIME) for p in parts]
        print("   time by window: %s s; the program measured %.2f s" % (
            " ".join("%.2f" % (t / SECOND) for t in times), truth["time_ns"] / SECOND))
        check(truth["max_ns"] > (HANG - 1) * SECOND, "the disk did not hang")
        check_equal(sum(p.total(OPS) for p in parts), 7, "operations")
        check_equal(sum(p.total(READ_BYTES) for p in parts), truth["bytes"], "bytes")
        ops = [p.total(OPS) for p in parts]
        first, last = ops.index(max(ops)), max(i for i, t in enumerate(times) if t)
        check_equal(ops[first], 7, "operations of the window of submission")
        check_between(sum(times), 0.97 * truth["time_ns"], truth["time_ns"], "sum of the parts")
        check(last - first >= HANG // 2 - 1, "only windows %d to %d have a part" % (first, last))
        for i in range(first + 1, last):
            length = profiles[i].duration_ns
            check_between(times[i], 0.98 * 7 * length, 1.02 * 7 * length, "time of window %d" % i)


def sums_are_the_load():
    """Requests all the time across ten cuts: nothing is lost and nothing counted twice."""
    with testing.scratch() as folder, devices.slow_disk(folder, delay_ms=5.0) as disk, Windows(folder, 0.4, 12) as windows:
        with Load(ioload_args(disk.node, "read_index:pread:count=503,rate=150", "write_wal:aio-write:count=199,depth=8",
                              extra=("--parallel",))) as load:
            load.start()
            truth = by_function(load.truth())
        profiles = windows.profiles()
        # By operation: the names of a process that was just met come late on a busy machine.
        for name, op in (("read_index", "read"), ("write_wal", "write")):
            parts = [p.select(op=op, pid=load.pid, device=disk.name) for p in profiles]
            check_equal(sum(p.total(OPS) for p in parts), truth[name]["calls"], name + " operations")
            check_between(sum(p.total(TIME) for p in parts), 0.6 * truth[name]["time_ns"], truth[name]["time_ns"], name + " time")
            check(sum(p.total(OPS) > 0 for p in parts) > 1 or name == "write_wal", name + " is in one window only")


testing.main(hang_is_in_every_window, sums_are_the_load)
