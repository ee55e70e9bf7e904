#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The labels of a known load: who, where, what, how large, how slow; fewer on request; or as frames."""
import contextlib

from lib import devices, testing
from lib.blkprof import Recording, record_load
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS, TIME
from lib.testing import check, check_equal

MS = 10 ** 6
TYPES = ["io_ops", "io_time", "read_bytes", "write_bytes", "cpu"]
UNITS = dict(zip(TYPES, ["count", "nanoseconds", "bytes", "bytes", "nanoseconds"]))
PLAN = ["read_index:pread:count=97,size=64K", "write_wal:pwrite:count=53,size=12K,threads=3,name=worker-",
        "trim_space:discard:count=11,size=32K", "zero_range:zeroout:count=7,size=16K",
        "fdatasync_log:write-fdatasync:count=5"]


def class_of(ns):
    """Lower bound of the 1-2-5 class."""
    bound = 0
    for exponent in range(3, 16):
        for step in (1, 2, 5):
            if step * 10 ** exponent <= ns:
                bound = step * 10 ** exponent
    return bound


@contextlib.contextmanager
def recorded(*options, plan=PLAN, delay_ms=2):
    with testing.scratch() as folder, devices.slow_disk(folder, delay_ms) as disk:
        with Recording(folder, "--rate", "0", "--device", disk.node, *options) as recording, \
                Load(ioload_args(disk.node, *plan)) as load:
            load.start()
            truth = by_function(load.truth())
            yield recording.stop(), truth, disk, load.pid


def frame_of_profile():
    with recorded() as (profile, truth, disk, pid):
        check_equal(profile.types, TYPES, "sample types")
        check_equal(profile.units, UNITS, "units")
        check_equal(profile.default_type, "io_time", "default sample type")
        check_equal((profile.period_type, profile.period), (("io", "count"), 1), "period")
        check(profile.duration_ns > 0 and profile.time_ns > 1e18, "times %d %d" % (profile.time_ns, profile.duration_ns))
        first = profile.mappings[1]
        check(first["file"].startswith("[node ") and first["start"] == first["limit"] == 0, "first mapping %r" % first)
        check(all(name for name in profile.functions_by_id.values()), "a function without a name")


def all_of_them():
    with recorded() as (profile, truth, disk, pid):
        for function, entry in truth.items():
            samples = profile.select(frame=function)
            check_equal(set(samples.by(OPS, "device")), {disk.name}, function + " device")
            check_equal(set(samples.by(OPS, "pid")), {pid}, function + " pid")
            check(entry["expect"]["op"] in samples.by(OPS, "op"), function + " op")
            check_equal({s.frames[-1] for s in samples}, {"ioload"}, function + " root")
        writes = profile.select(frame="write_wal")
        check_equal(set(writes.by(OPS, "comm")), {"worker-"}, "names of a pool's threads")
        check_equal(profile.select(frame="read_index").by(OPS, "bytes"), {65536: 97}, "size class of 64 KiB")
        check_equal(writes.by(OPS, "bytes"), {8192: 53}, "size class of 12 KiB")
        check_equal(profile.select(frame="trim_space").by(OPS, "bytes"), {32768: 11}, "size class of a discard")
        check_equal(profile.select(frame="trim_space").total("write_bytes"), 0, "bytes of a discard")
        check_equal(profile.select(frame="zero_range").total("write_bytes"), 0, "bytes of write zeroes")
        check_equal(profile.select(frame="fdatasync_log").by(OPS, "op"), {"write": 5, "flush": 5}, "operations of fdatasync")
        for s in profile.select(root="ioload"):
            check(s.labels.get("service"), "a sample has no service: %r" % s.labels)
            units = [s.units[key] for key in ("bytes", "latency", "pid")]
            check_equal(units, ["bytes", "nanoseconds", ""], "units of labels")


def latency():
    with recorded() as (profile, truth, disk, pid):
        samples = profile.select(frame="read_index")
        slow = samples.where(lambda s: s.labels["latency"] >= 2 * MS).total(OPS)
        check_equal(slow, 97, "requests of at least the disk's 2 ms")
        for s in samples:
            mean = s[TIME] / s[OPS]
            check_equal(class_of(mean), s.labels["latency"], "class of a mean of %d ns" % mean)
        measured = {int(k): v for k, v in truth["read_index"]["latency"].items()}
        check(max(samples.by(OPS, "latency")) <= max(measured), "slower than the program measured")


def always_in_order():
    with recorded() as (profile, truth, disk, pid):
        orders = {tuple(k for k in s.labels) for s in profile}
        keys = [k for order in sorted(orders, key=len, reverse=True)[:1] for k in order]
        for order in orders:
            check_equal([k for k in keys if k in order], list(order), "order of the labels")


def few():
    with recorded("--labels", "few") as (profile, truth, disk, pid):
        labels = {k for s in profile for k in s.labels}
        check_equal(labels, {"device", "op", "service", "latency"}, "labels")
        check_equal(profile.select(frame="read_index").total(OPS), 97, "operations")


def none():
    with recorded("--labels", "none") as (profile, truth, disk, pid):
        check_equal({k for s in profile for k in s.labels}, set(), "labels")
        check_equal(profile.select(frame="read_index").total(OPS), 97, "operations")


def as_frames():
    with recorded("--root", "device,op") as (profile, truth, disk, pid):
        for s in profile.select(frame="read_index"):
            check_equal(s.frames[-3:], ["read", disk.name, "ioload"], "outermost frames")


def cpu():
    """CPU samples are in the same profile and have no labels of I/O."""
    with testing.scratch() as folder, devices.zram("64M") as node:
        profile, truth, said = record_load(folder, ["--cpu", "199", "--rate", "0"],
                                           ioload_args(node, "read_index:pread:count=200003,size=64K"))
        samples = profile.where(lambda s: s["cpu"])
        ran = by_function(truth)["read_index"]["cpu_ns"]
        got = samples.select(frame="read_index").total("cpu")
        check(0.7 * ran <= got <= 1.2 * ran, "CPU time of read_index: %d of %d ns" % (got, ran))
        for s in samples:
            check(not {"device", "op", "bytes", "latency"} & set(s.labels), "a CPU sample has labels of I/O: %r" % s.labels)
            check_equal((s[OPS], s[TIME]), (0, 0), "I/O of a CPU sample")
        check_equal(profile.select(frame="read_index").total(OPS), 200003, "operations beside CPU samples")


testing.main(frame_of_profile, all_of_them, latency, always_in_order, few, none, as_frames, cpu)
