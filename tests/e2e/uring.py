#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=300
"""I/O that io_uring's workers do stands below the function that submitted it, with their mark; a polling thread's says what it is."""
import os

from lib import devices, testing
from lib.blkprof import record_load
from lib.load import by_function, ioload_args
from lib.pprof import OPS
from lib.testing import check, check_equal

WORKER, SQPOLL = "[io_uring worker]", "[io_uring sqpoll]"
ASYNC = ["read_segment:uring-async-read:count=307,depth=8", "write_wal:uring-async-write:count=211,depth=8"]
THREADS = "read_block:uring-async-read:count=500,depth=4,threads=2"


def need_io_uring():
    if os.path.exists("/proc/sys/kernel/io_uring_disabled"):
        with open("/proc/sys/kernel/io_uring_disabled") as f:
            if f.read().strip() != "0":
                testing.skip("io_uring is disabled (kernel.io_uring_disabled)")


def record(folder, *options, loads):
    with devices.file_of(os.path.join(folder, "data"), 16 << 20) as path:
        devices.need_disk(path)
        profile, truth, _ = record_load(folder, list(options), ioload_args(path, *loads))
        return profile, by_function(truth)


def check_marked(samples, function, what):
    """Root, main or a thread's start, …, the function, the mark, and the kernel's frames where there are any."""
    for s in samples:
        frames = s.frames[::-1]
        at = frames.index(function) if function in frames else -1
        check(at > 0 and WORKER in frames[at + 1:], "%s: %r" % (what, frames))
        check(set(frames[:at]) & {"main", "start_thread"}, "%s: no start in %r" % (what, frames))
        check_equal(frames.count(WORKER), 1, what + ": marks")


def workers():
    with testing.scratch() as folder:
        for load in (*ASYNC, THREADS):
            profile, entries = record(folder, "--rate", "0", loads=[load])
            (function, entry), = entries.items()
            samples = profile.select(root="ioload").select(frame=WORKER)
            check_equal(samples.total(OPS), entry["expect"]["ops"], function + " operations with the mark")
            check_marked(samples, function, function)
            check(not any("submitter_unknown" in c for c in profile.comments), "losses: %r" % profile.comments)


def kernel_stacks():
    """The worker's kernel frames follow its mark."""
    with testing.scratch() as folder:
        profile, entries = record(folder, "--rate", "0", "--kernel-stacks", loads=ASYNC[:1])
        (function, entry), = entries.items()
        samples = profile.select(root="ioload").select(frame=WORKER)
        check_equal(samples.total(OPS), entry["expect"]["ops"], "operations with the mark")
        check_marked(samples, function, "with kernel stacks")
        for s in samples:
            check("io_wq_worker" in s.frames[:s.frames.index(WORKER)], "no kernel frames of the worker: %r" % s.frames)


def sampled():
    """Stacks are taken for a share of the requests: the rest is counted and has the mark alone."""
    with testing.scratch() as folder:
        profile, _ = record(folder, "--rate", "20", loads=["read_segment:uring-async-read:count=4000,depth=8"])
        samples = profile.select(root="ioload").select(frame=WORKER)
        known = samples.select(frame="read_segment").total(OPS)
        check(known > 0, "no stack of the submitter: %s" % samples.show(5))
        lost = any("submitter_unknown" in c for c in profile.comments)
        check_equal(known < samples.total(OPS), lost, "unknown submitters are counted: %r" % profile.comments)


def sqpoll():
    """The ring is memory that both share: nobody's stack is behind what the polling thread submits."""
    with testing.scratch() as folder:
        profile, entries = record(folder, "--rate", "0", loads=["scan_table:uring-sqpoll-read:count=401,depth=8"])
        (_, entry), = entries.items()
        samples = profile.select(root="ioload").where(lambda s: {SQPOLL, WORKER} & set(s.frames))
        check_equal(samples.total(OPS), entry["expect"]["ops"], "operations of the polling thread")
        check_equal(len(samples.select(frame="scan_table")), 0, "samples with a submitter's stack")
        check(not any("submitter_unknown" in c for c in profile.comments), "losses: %r" % profile.comments)


need_io_uring()
testing.main(workers, kernel_stacks, sampled, sqpoll)
