#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=600
"""With --rate 0 a profile equals what a program did, in operations and bytes per function, for every way to do I/O."""
import os

from lib import devices, testing
from lib.blkprof import record_load
from lib.load import by_function, ioload_args
from lib.pprof import OPS, READ_BYTES, WRITE_BYTES
from lib.testing import check, check_equal

FILE_SIZE = 64 << 20

SYNC = [
    "read_index:pread:count=1009", "write_wal:pwrite:count=503,size=16K",
    "read_segment:pread-inline:count=509,order=random",
    "write_page:pwrite-inline:count=307,order=random", "read_header:pread-threaded:count=401",
    "write_checkpoint:pwrite-threaded:count=211,size=64K", "read_block:pread:count=2003,threads=4,order=random",
    "scan_index:aio-read:count=1013,depth=16", "load_swap:aio-write:count=521,depth=8,size=8K,order=random",
]
NOWAIT = ["load_lookup:preadv2-nowait:count=307,size=32K,order=random"]  # zram does not take RWF_NOWAIT
CACHED = [
    "scan_table:read:count=1024,size=64K", "load_scan:read:count=499,order=random", "map_read:mmap:count=499,order=random",
    "fsync_log:write-fsync:count=53", "fdatasync_log:write-fdatasync:count=59,size=8K,order=random",
]
SPACE = ["trim_space:discard:count=13,size=64K", "zero_range:zeroout:count=17,size=64K",
         "load_data:zero-range:count=19,size=64K"]
URING = ["read_index:uring-read:count=1009,depth=16", "write_page:uring-write:count=503,depth=4",
         "read_segment:uring-async-read:count=307,depth=8", "write_wal:uring-async-write:count=211,depth=8",
         "scan_table:uring-sqpoll-read:count=401,depth=8", "write_checkpoint:uring-sqpoll-write:count=199,depth=4"]
# Where a device does not take requests that must not wait, the polling thread hands them to a worker.
# What comes too fast for a busy machine is lost, is counted, and the others stand for it: then nothing is exact by function.
LOSSES = {"ring_full", "stack_ring_full", "insert_failed", "read_error", "evicted", "stack_missing", "recursion", "map_busy"}
TRIES = 5
ISSUER_FRAMES = {"worker": ["[io_uring worker]"], "sqpoll": ["[io_uring sqpoll]", "[io_uring worker]"]}


def check_bytes(samples, entry, what):
    expect = entry["expect"]
    name = WRITE_BYTES if expect["op"] == "write" else READ_BYTES
    got, want = samples.total(name), expect["bytes"]
    if expect["bytes_exact"]:
        check_equal(got, want, what + " bytes")
    else:
        check(got >= want, "%s bytes: %d, expected at least %d" % (what, got, want))


def check_ops(samples, entry, what):
    expect = entry["expect"]
    got, want = samples.select(op=expect["op"]).total(OPS), expect["ops"]
    if expect["ops_exact"]:
        check_equal(got, want, what + " operations")
        # A file system may have to read what it knows of the file's blocks.
        own = 4 if entry.get("in_file") and expect["op"] == "write" else 0
        strangers = {op: n for op, n in samples.by(OPS, "op").items() if n > (own if op == "read" else 0) and op not in (expect["op"], "flush")}
        check_equal(strangers, {}, what + " operations of another kind")
    elif entry["method"] in ("write-fsync", "write-fdatasync"):
        check(got >= want, "%s operations: %d, expected at least %d" % (what, got, want))
    else:
        check(got > 0, "%s operations: none" % what)
    check_equal(samples.select(op="flush").total(OPS), expect["flushes"], what + " flushes")


def check_entry(profile, function, entry):
    what = "%s (%s)" % (function, entry["method"])
    samples = profile.select(frame=function)
    check_ops(samples, entry, what)
    check_bytes(samples, entry, what)
    check_equal(set(samples.by(OPS, "device")), {entry["device"]}, what + " devices")
    start = "start_thread" if entry["threads"] > 1 else "main"
    if entry["method"] != "preadv2-nowait":  # libc's preadv2 keeps something else in the frame pointer
        check(all(start in s.frames for s in samples), "%s has a stack without %s" % (what, start))


def record_whole(folder, target, *entries):
    """(profile, truth) of a recording that lost nothing."""
    for _ in range(TRIES):
        profile, truth, said = record_load(folder, ["--rate", "0"], ioload_args(target, *entries))
        lost = {c: n for c, n in profile.lost().items() if c in LOSSES}
        if not lost:
            return profile, truth
        print("   lost %s: once more" % lost)
    raise RuntimeError("%d recordings lost something, the last one %s" % (TRIES, lost))


def check_plan(folder, target, entries):
    profile, truth = record_whole(folder, target, *entries)
    for function, entry in by_function(truth).items():
        check_entry(profile, function, dict(entry, in_file=os.path.isfile(target)))
    return profile


def check_issued_elsewhere(profile, entry, what):
    """These belong to the process and say who issued them for it."""
    allowed = ISSUER_FRAMES[entry["issuer"]][:2 if entry["workers"] else 1]
    samples = profile.select(root="ioload").where(lambda s: set(s.frames) & set(allowed))
    check_ops(samples, entry, what)
    check_bytes(samples, entry, what)


def check_uring_inline(profile, function, entry, what):
    """Whatever the kernel could not issue at once went to a worker; what it issued has its function."""
    worker = profile.select(frame="[io_uring worker]")
    inline = profile.select(frame=function).where(lambda s: "[io_uring worker]" not in s.frames)
    ops = {"inline": inline.total(OPS), "worker": worker.total(OPS)}
    check_equal(sum(ops.values()), entry["expect"]["ops"], "%s operations %s" % (what, ops))
    if entry["workers"] == 0:
        check_equal(ops["worker"], 0, what + " operations of workers that there were not")


def check_uring(folder, target):
    for line in URING:
        profile, truth = record_whole(folder, target, line)
        (function, entry), = by_function(truth).items()
        what = "%s (%s)" % (function, entry["method"])
        if entry["issuer"] == "function":
            check_uring_inline(profile, function, entry, what)
        else:
            check_issued_elsewhere(profile, entry, what)


def disk_file():
    with testing.scratch() as folder, devices.file_of(folder + "/data", FILE_SIZE) as path:
        devices.need_disk(path)
        check_plan(folder, path, SYNC + NOWAIT)
        check_plan(folder, path, CACHED)


def disk_file_uring():
    with testing.scratch() as folder, devices.file_of(folder + "/data", FILE_SIZE) as path:
        devices.need_disk(path)
        check_uring(folder, path)


def zram():
    with testing.scratch() as folder, devices.zram("128M") as node:
        check_plan(folder, node, SYNC)
        check_plan(folder, node, [e for e in CACHED if "fsync_log" in e or "random" in e])
        check_plan(folder, node, SPACE)


def zram_uring():
    with testing.scratch() as folder, devices.zram("128M") as node:
        check_uring(folder, node)


def loop():
    """The loop device is counted; its own file I/O is its kernel thread's and not the program's."""
    with testing.scratch() as folder, devices.file_of(folder + "/data", FILE_SIZE) as path:
        with devices.loop(path) as node:
            check_plan(folder, node, SYNC + NOWAIT)
            check_plan(folder, node, [e for e in CACHED if "fsync_log" in e or "random" in e])
            check_plan(folder, node, SPACE)


def loop_uring():
    with testing.scratch() as folder, devices.file_of(folder + "/data", FILE_SIZE) as path, devices.loop(path) as node:
        check_uring(folder, node)


def file_system_on_loop():
    with testing.scratch() as folder, devices.small_fs(folder, 128) as (point, node):
        with devices.file_of(point + "/data", 32 << 20) as path:
            check_plan(folder, path, SYNC[:3])


testing.main(disk_file, disk_file_uring, zram, zram_uring, loop, loop_uring, file_system_on_loop)
