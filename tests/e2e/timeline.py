#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=240
"""`timeline`: threads of programs with known behaviour spend their time where the kernel's own counters say, I/O slices are those of an
exhaustive profile, and the trace is valid by Perfetto's own definitions."""
import filecmp
import os
import signal
import subprocess
import sys
import time

from lib import blkprof, testing, trace
from lib.load import Load, ioload_args
from lib.blkprof import Recording
from lib.pprof import TIME, OPS, READ_BYTES, WRITE_BYTES
from lib.testing import check, check_between, check_equal, scratch
from lib.timeline import Threads, Tracing, check_by_package, check_trace, named, schedstat, switches
from lib.trace import BLOCKED, DEAD, DISK, PREEMPTED, RUNNABLE, RUNNING, SLEEPING

SLACK_NS = 1000000  # of a thread: what is at the edges
# A trace has a thread waiting for a CPU from the moment at which somebody begins to wake it; the kernel counts from its run queue,
# which an idle CPU of a virtual machine gets to tens of microseconds later. Each run begins some microseconds before it is told of.
WAKING_NS = 40000
RUN_NS = 5000


def check_totals(tracing, after, tids, what):
    """On a CPU and waiting for one, of threads that began in the trace and have done their work. What a host took from its guest the
    kernel does not count."""
    t = tracing.trace
    for tid in tids:
        for i, (states, counted, each, name) in enumerate((((RUNNING,), RUNNING, RUN_NS, "on a CPU"),
                                                           ((RUNNABLE, PREEMPTED), RUNNABLE, WAKING_NS, "waiting for a CPU"))):
            want, got = after[tid][i], t.total(tid, *states)
            slack = SLACK_NS + tracing.stolen + each * sum(s.tid == tid and s.state == counted for s in t.states)
            check(abs(got - want) <= 0.01 * want + slack, "%s: thread %d was %.3f ms %s, the kernel says %.3f ms" % (
                what, tid, got / 1e6, name, want / 1e6))


def record_threads(folder, *args, options=()):
    """(tracing, schedstat at the end, switches at the end) of one run of threadload."""
    with Threads(*args) as load:
        with Tracing(folder, "-p", load.pid, *options) as tracing:
            load.go()
            time.sleep(0.05)
            after, counts = schedstat(load.pid), switches(load.pid)
            time.sleep(0.05)
    return tracing, after, counts


def record_known(folder, what, prefix, n, times):
    """(tracing, its threads called PREFIX, switches at the end) of a whole trace whose times are the kernel's."""
    tracing, after, counts = record_threads(folder, what, n, times)
    check_trace(tracing.trace, what)
    tids = named(tracing.trace, prefix)
    check_equal(len(tids), n, "threads of " + what)
    check_totals(tracing, after, tids, what)
    return tracing, tids, counts


def hogs_share_one_cpu():
    with scratch() as folder:
        tracing, tids, _ = record_known(folder, "hogs", "hog-", 4, 150)
        t = tracing.trace
        for tid in tids:
            check_between(t.total(tid, RUNNING) / 1e6, 145, 400, "CPU of a hog, ms")
        check(sum(t.total(tid, PREEMPTED) for tid in tids) > 100e6, "hogs on one CPU are preempted")
        check_by_package(tracing.out, t)


def convoy_waits_for_its_lock():
    with scratch() as folder:
        tracing, tids, _ = record_known(folder, "convoy", "convoy-", 4, 200)
        t = tracing.trace
        waits = [s for s in t.track_slices("wait") if t.tid(s) in tids and s.name == "futex"]
        check(len(waits) > 100, "only %d waits for the lock" % len(waits))
        wakers = {s.waker for s in t.states if s.tid in tids and s.state == RUNNABLE}
        check(len(wakers & set(tids)) == 4, "the lock's holders wake the others; woken by %s" % wakers)


def pipeline_hands_on():
    with scratch() as folder:
        tracing, tids, counts = record_known(folder, "pipeline", "stage-", 5, 2000)
        t = tracing.trace
        for tid in tids:
            left = [s for s in t.states if s.tid == tid and s.state in (SLEEPING, PREEMPTED, BLOCKED, DISK)]
            check_equal(len(left), sum(counts[tid]), "switches of stage %d" % tid)


def server_accepts_and_works():
    """A new connection for each request wakes the acceptor each time; kept ones do so once."""
    with scratch() as folder:
        woken = {}
        for mode, n, times in (("connect", 4, 100), ("keepalive", 4, 100)):
            with Threads(mode, n, times) as load:
                with Tracing(folder, "-p", load.pid) as tracing:
                    load.go()
            t = tracing.trace
            check_trace(t, mode)
            acceptor, workers = named(t, "acceptor")[0], named(t, "worker-")
            runs = lambda tid: [s.end - s.start for s in t.states if s.tid == tid and s.state == RUNNING]
            woken[mode] = sum(s.name == "accept" for s in t.track_slices("wait") if t.tid(s) == acceptor)
            check_equal(len(workers), 4, "workers")
            requests = [s for s in t.track_slices("request") if s.name == "GET /page" and s.args.get("status") == 200]
            check_equal(len(requests), n * times, "requests")
            check_equal({t.tracks[t.tracks[s.track]["parent"]]["tid"] for s in requests} - set(workers), set(), "who else served")
            check(all(s.end - s.start >= 200e3 for s in requests), "a request is shorter than its CPU time")
            served = sum(t.total(tid, RUNNING) for tid in workers)
            check(served > n * times * 200e3, "the workers were only %.1f ms on a CPU" % (served / 1e6))
            if mode == "connect":
                check(t.total(acceptor, RUNNING) / len(runs(acceptor)) < 100e3, "the acceptor runs for long at a time")
        check(woken["keepalive"] <= 8, "%d connections woke the acceptor %d times" % (4, woken["keepalive"]))
        check(woken["connect"] >= 40, "400 connections woke the acceptor %d times" % woken["connect"])


def io_equals_the_exhaustive_profile():
    """A load with 32 requests in flight and a synchronous one, seen by timeline and by record --rate 0 at once."""
    with scratch() as folder:
        args = ioload_args(os.path.join(folder, "file"), "scan_index:aio-read:count=1013,depth=32,order=random",
                           "write_wal:pwrite:count=211,size=16K", create="64M")
        with Load(args, linger=True) as load:
            with Tracing(folder, "-p", load.pid) as tracing, Recording(folder, "--rate", "0", "--pid", str(load.pid)) as recording:
                load.start()
                load.truth()
                time.sleep(0.1)
                profile = recording.stop()
            load.end()
        t = tracing.trace
        check_trace(t, "io")
        slices = t.track_slices("io")
        for op in ("read", "write"):
            ours, theirs = [s for s in slices if s.args["op"] == op], profile.select(op=op)
            check_equal(len(ours), theirs.total(OPS), "%s operations" % op)
            check_equal(sum(s.args["bytes"] for s in ours), theirs.total(READ_BYTES if op == "read" else WRITE_BYTES), "%s bytes" % op)
            # Of some a kernel may show nobody the end.
            time_, theirs = sum(s.end - s.start for s in ours if s.args.get("end") != "not seen"), theirs.total(TIME)
            # Each of the two hooks runs between the other's and the kernel's work.
            check(abs(time_ - theirs) <= 0.02 * theirs + 10000 * len(ours), "%s time: %d ns, the profile has %d" % (op, time_, theirs))
        check_equal(len(t.flows), len(slices), "arrows")
        check_equal({s.args["latency_ns"] == s.end - s.start for s in slices}, {True}, "latencies that are their slice's length")
        depth = max(value for _, _, value in t.counters)
        check_between(depth, 4, 32, "requests in flight")  # a fast disk answers before the last of 32 is submitted
        check_equal(len({s.track for s in slices}), depth, "lanes")
        queued = [s for s in slices if "queue_ns" in s.args]
        check(len(queued) > 0.9 * len(slices), "only %d of %d requests were seen to reach the driver" % (len(queued), len(slices)))
        blocked = [s for s in t.states if s.state == DISK]
        check(len(blocked) > 100, "only %d times a thread waits for I/O" % len(blocked))
        check_by_package(tracing.out, t)


def stacks_lead_to_main():
    with scratch() as folder:
        args = ioload_args(os.path.join(folder, "file"), "read_index:pread:count=211,order=random", create="16M")
        with Load(args, linger=True) as load:
            with Tracing(folder, "-p", load.pid, "--stacks") as tracing:
                load.start()
                load.truth()
            load.end()
        t = tracing.trace
        check_trace(t, "stacks")
        slices = [s for s in t.track_slices("io") if s.args["op"] == "read"]
        good = [s for s in slices if "main" in s.stack and "read_index" in s.stack]
        check(len(good) >= 0.9 * len(slices) and good, "%d of %d requests have a stack" % (len(good), len(slices)))
        waits = [s for s in t.track_slices("wait") if s.name == "pread64"]
        good = [s for s in waits if "read_index" in s.stack and any("io_schedule" in f for f in s.stack)]
        check(len(good) >= 0.9 * len(waits) and good, "%d of %d waits have a stack of both sides: %s" % (
            len(good), len(waits), waits[0].stack if waits else ""))
        check_by_package(tracing.out, t)


THREADS = """
import threading, time, sys
sys.stdin.readline()
for i in range(60):
    ts = [threading.Thread(target=lambda: sum(range(20000))) for _ in range(3)]
    [t.start() for t in ts]; [t.join() for t in ts]
print("done", flush=True)
sys.stdin.readline()
"""


def threads_that_come_and_go():
    with scratch() as folder:
        process = subprocess.Popen([sys.executable, "-c", THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            with Tracing(folder, "-p", process.pid) as tracing:
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
        finally:
            process.kill()
            process.communicate()
        t = tracing.trace
        check_trace(t, "threads")
        dead = [tid for tid in t.totals() if DEAD in t.totals()[tid]]
        check_equal(len(dead), 180, "threads that ended")
        check("lost:" not in tracing.said and "unknown:" not in tracing.said, "said: " + tracing.said)


def many_switches():
    """As many as this machine makes: each is in the trace or said to be lost, and memory does not grow with them."""
    with scratch() as folder:
        tracing, after, counts = record_threads(folder, "pingpong", os.cpu_count(), 150000, options=("--max-size", "2M"))
        t = tracing.trace
        check_trace(t, "many")
        want = sum(sum(counts[tid]) for tid in named(t, "p"))
        got = sum(int(n) for line in tracing.said.splitlines() if line.strip().startswith(("ping-", "pong-"))
                  for n in line[line.index("/"):].replace(" us", "us").replace(" ms", "ms").replace(" ns", "ns").replace(
                      " s ", "s ").split()[6:8])
        print("   %d switches, %.1f MiB at most" % (want, tracing.peak / (1 << 20)))
        check(got == want or "lost:" in tracing.said, "%d switches of %d are counted, and none is said to be lost" % (got, want))
        check("left out of the trace" in tracing.said, "it is not said that the trace is full: " + tracing.said)
        check(os.path.getsize(tracing.out) <= 2 << 20, "the trace is larger than it may be")
        check(tracing.peak < 400 << 20, "it took %d MiB" % (tracing.peak >> 20))


def what_is_lost_is_said():
    """Nobody empties the ring for a while: how much is missing is said, the trace is whole, what is not known is not made up."""
    with scratch() as folder, Threads("pingpong", os.cpu_count(), 10000000) as load:
        with Tracing(folder, "-p", load.pid, "--no-requests", "--max-size", "1M") as tracing:
            load.start()
            tracing.process.send_signal(signal.SIGSTOP)
            time.sleep(4)
            tracing.process.send_signal(signal.SIGCONT)
            time.sleep(0.5)
        if "lost:" not in tracing.said:
            testing.skip("this machine is too slow to fill the ring")
        t = tracing.trace
        check_trace(t, "lost")
        check("unknown: what" in tracing.said, "said: " + tracing.said)


def a_recorded_stream_gives_the_same_trace():
    with scratch() as folder:
        tracing, _, _ = record_threads(folder, "convoy", 3, 50)
        again = os.path.join(folder, "again.pftrace")
        result = blkprof.run("timeline", "--from-file", tracing.raw, "-o", again)
        check_equal(result.returncode, 0, "status: " + result.stderr)
        check(filecmp.cmp(tracing.out, again, shallow=False), "the trace of the recorded stream is another")
        with open(tracing.raw, "r+b") as f:
            f.truncate(os.path.getsize(tracing.raw) - 3)
        result = blkprof.run("timeline", "--from-file", tracing.raw, "-o", os.path.join(folder, "none"))
        check_equal(result.returncode, 1, "status of a stream that is cut off")
        check("cut off" in result.stderr and len(result.stderr.splitlines()) == 1, "said: " + result.stderr)
        check(not os.path.exists(os.path.join(folder, "none")), "a trace of a broken stream was left")


def the_whole_node():
    with scratch() as folder:
        with Threads("convoy", 3, 300) as load:
            with Tracing(folder, "--all") as tracing:
                load.go()
        t = tracing.trace
        check_trace(t, "node")
        check_equal(len(named(t, "convoy-")), 3, "threads of the load")
        check(any(t.total(tid, RUNNING) for tid, (pid, _) in t.threads.items() if pid != load.pid), "nobody else ran")
        check_by_package(tracing.out, t)


def threads_of_a_cgroup():
    mounts = [line.split()[1] for line in open("/proc/self/mounts") if line.split()[2] == "cgroup2"]
    folder = mounts and os.path.join(mounts[0], "blkprof-timeline-%d" % os.getpid())
    try:
        os.mkdir(folder or "/nonexistent/x")
    except OSError as e:
        testing.skip("no cgroup can be made: %s" % e)
    try:
        with scratch() as out, Threads("convoy", 3, 50) as inside, Threads("convoy", 2, 50) as outside:
            with open(folder + "/cgroup.procs", "w") as f:
                f.write(str(inside.pid))
            with Tracing(out, "--cgroup", folder) as tracing:
                outside.start()
                inside.go()
            t = tracing.trace
            check_trace(t, "cgroup")
            check_equal({pid for pid, _ in t.threads.values()}, {inside.pid}, "processes")
            check_equal(len(named(t, "convoy-")), 3, "threads")
    finally:
        testing.wait_for(lambda: not open(folder + "/cgroup.procs").read(), "the cgroup to empty")
        os.rmdir(folder)


def wrong_usage():
    for args in ((), ("-p", "1", "-a"), ("--from-file", "/nonexistent", "-p", "1"), ("-p", "x"), ("-p", "99999999"),
                 ("-p", "1", "-o", "one", "--raw", "one")):
        result = blkprof.run("timeline", *args)
        check_equal(result.returncode, 2, "status of timeline %s" % " ".join(args))
        check_equal(len(result.stderr.splitlines()), 1, "lines of " + result.stderr)
    result = blkprof.run("timeline", "--from-file", "/nonexistent")
    check_equal(result.returncode, 1, "status without a file")


testing.main(wrong_usage, hogs_share_one_cpu, convoy_waits_for_its_lock, pipeline_hands_on, server_accepts_and_works,
             io_equals_the_exhaustive_profile, stacks_lead_to_main, threads_that_come_and_go, many_switches, what_is_lost_is_said,
             a_recorded_stream_gives_the_same_trace, the_whole_node, threads_of_a_cgroup)
