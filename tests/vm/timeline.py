#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=600
"""In guests with every kernel of the matrix: a timeline is whole, its threads' times and switches are the kernel's own, and its I/O is
what the load did; with typed tracepoints and, on one kernel, with raw ones. `timeline.py KERNEL…`."""
import os
import sys
import tempfile

from matrix import ROOT, guest
from matrix.run import KERNELS
from lib import trace
from lib.trace import BLOCKED, DISK, PREEMPTED, RUNNABLE, RUNNING, SLEEPING, STOPPED

HERE = os.path.join(ROOT, "tests/vm/timeline")
RAW = "6.1"
LOADS = {"convoy-": 3, "stage-": 4}
READS, WRITES, DEPTH = 211, 401, 32


def boot(kernel, out):
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    command = [os.path.join(ROOT, "tools/vm/run"), kernel, "--timeout", "200", "--out", out, "--disk", "virtio"]
    for file in (HERE + "/guest.sh", build + "/load/threadload", build + "/load/ioload"):
        command += ["--with", file]
    return guest.vm([*command, "--", "sh", "/payload/guest.sh", *(["raw"] if kernel == RAW else [])])


def kernels_counts(path):
    """{tid: (on CPU, waiting for one, switches)}"""
    result = {}
    with open(path) as f:
        for line in f:
            tid, run, delay, _, *switches = map(int, line.split())
            result[tid] = (run, delay, sum(switches))
    return result


def judge_threads(t, counts, stem, n):
    tids = [tid for tid, (_, comm) in t.threads.items() if comm.startswith(stem)]
    if len(tids) != n:
        yield "%d threads %s*, not %d" % (len(tids), stem, n)
    for tid in tids:
        run, delay, switches = counts[tid]
        left = sum(s.tid == tid and s.state in (SLEEPING, DISK, BLOCKED, STOPPED, PREEMPTED) for s in t.states)
        if left != switches:
            yield "thread %d left its CPU %d times, the kernel says %d" % (tid, left, switches)
        # Where threads do little but switch, an emulated CPU spends its time between the kernel's look at its clock and ours.
        if stem != "convoy-":
            continue
        for got, want, slack, what in ((t.total(tid, RUNNING), run, 0, "on a CPU"),
                                       (t.total(tid, RUNNABLE, PREEMPTED), delay, 100000, "waiting for a CPU")):
            if abs(got - want) > 0.05 * want + 15e6 + slack * switches:  # its busy host takes milliseconds from it, too
                yield "thread %d was %.2f ms %s, the kernel says %.2f ms" % (tid, got / 1e6, what, want / 1e6)


def judge_io(t):
    slices = t.track_slices("io")
    for op, want in (("read", READS), ("write", WRITES)):
        got = sum(s.args["op"] == op for s in slices)
        if got != want:
            yield "%d slices of %ss, not %d" % (got, op, want)
    deepest = max(value for _, _, value in t.counters)
    if not 4 <= deepest <= DEPTH or len({s.track for s in slices}) != deepest:
        yield "%d requests in flight, on %d lanes" % (deepest, len({s.track for s in slices}))
    queued = sum("device_ns" in s.args for s in slices)
    if queued < 0.9 * len(slices):
        yield "only %d of %d requests were seen to reach the driver" % (queued, len(slices))
    if not any(s.state == DISK for s in t.states):
        yield "no thread ever waits for I/O"


def judge_trace(name, out):
    t = trace.read("%s/%s.pftrace" % (out, name))
    counts = kernels_counts("%s/%s.schedstat" % (out, name))
    yield from t.wrong
    for stem, n in LOADS.items():
        yield from judge_threads(t, counts, stem, n)
    yield from judge_io(t)
    yield from (line for line in said(out, name).splitlines() if line.startswith(("lost:", "unknown:")))


def said(out, name):
    path = "%s/%s.txt" % (out, name)
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as f:
        return f.read()


def judge(kernel):
    """What is wrong, or None when the kernel cannot be had."""
    names = ("typed", "raw") if kernel == RAW else ("typed",)
    with tempfile.TemporaryDirectory() as out:
        status, output = boot(kernel, out)
        if status == 77:
            print("%s: skipped, %s" % (kernel, output.splitlines()[-1]))
            return None
        if status or os.path.exists(out + "/failed"):
            return ["%s: exit status %d\n%s\n%s" % (kernel, status, output[-2000:], "\n".join(said(out, n) for n in names))]
        wrong = ["%s %s: %s" % (kernel, name, text) for name in names for text in judge_trace(name, out)]
        print("%s: %s" % (kernel, "wrong" if wrong else "ok"), flush=True)
        return wrong


def main():
    results = [r for k in (sys.argv[1:] or KERNELS) for r in [judge(k)] if r is not None]
    if not results:
        print("no kernel's archive can be reached")
        sys.exit(77)
    print("\n".join(line for r in results for line in r))
    sys.exit(1 if any(results) else 0)


main()
