#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A known load on a disk of 1 ms: the time of each function is at least 90% of what the program itself measured, and
never more."""
from lib import devices, testing
from lib.blkprof import record_load
from lib.load import by_function, ioload_args
from lib.pprof import OPS, TIME
from lib.testing import check, check_equal

ENTRIES = ["read_index:pread:count=499", "write_wal:pwrite:count=211,size=16K",
           "read_segment:pread-inline:count=211,order=random", "read_block:aio-read:count=1009,depth=16",
           "write_page:aio-write:count=499,depth=8",
           "scan_index:uring-read:count=503,depth=8", "fdatasync_log:write-fdatasync:count=53",
           "read_header:pread-threaded:count=401,threads=4", "map_read:mmap:count=97,order=random"]


def check_time(profile, truth):
    for function, entry in by_function(truth).items():
        samples = profile.select(frame=function)
        got, measured = samples.total(TIME), entry["time_ns"]
        print("   %-14s %-16s %5.1f%% of %8.1f ms" % (function, entry["method"], 100 * got / measured, measured / 1e6))
        if not check(entry["expect"]["time_bound"], "%s: its time does not bound its requests'" % function):
            continue
        check_equal(samples.select(op=entry["expect"]["op"]).total(OPS), entry["expect"]["ops"], function + " operations")
        check(0.9 * measured <= got <= measured, "%s: %d ns, measured %d (%.3f)" % (function, got, measured, got / measured))


def at_once(args):
    """Real-time priority: what other programs take of the processors is no time of the disk."""
    return ["chrt", "-f", "10", *args]


def check_disk(delay_ms, direct_io, options):
    with testing.scratch() as folder, devices.slow_disk(folder, delay_ms, direct_io=direct_io) as disk:
        profile, truth, said = record_load(folder, options, at_once(ioload_args(disk.node, *ENTRIES)))
        check_time(profile, truth)


def one_millisecond():
    check_disk(1, True, ["--rate", "0"])


def one_millisecond_serial():
    """The loop driver does one request after the other: most of the time is spent in its queue."""
    check_disk(1, False, ["--rate", "0"])


def five_milliseconds():
    check_disk(5, True, ["--rate", "0"])


def sampled():
    """Totals stay exact when stacks are sampled; the time is an estimate."""
    with testing.scratch() as folder, devices.slow_disk(folder, 1) as disk:
        profile, truth, said = record_load(folder, [], at_once(ioload_args(disk.node, *ENTRIES)))
        entries = by_function(truth)
        ours = profile.select(root="ioload", device=disk.name)
        reads = sum(e["expect"]["ops"] for e in entries.values() if e["expect"]["op"] == "read")
        writes = sum(e["expect"]["ops"] for e in entries.values() if e["expect"]["op"] == "write")
        check_equal(ours.select(op="read").total(OPS), reads, "reads")
        check_equal(ours.select(op="write").total(OPS), writes, "writes")
        measured = sum(e["time_ns"] for e in entries.values())
        ratio = ours.total(TIME) / measured
        check(0.85 <= ratio <= 1.05, "time: %.3f of what the program measured" % ratio)


testing.main(one_millisecond, one_millisecond_serial, five_milliseconds, sampled)
