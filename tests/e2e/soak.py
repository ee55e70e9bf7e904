#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=1200
"""record beside all that comes and goes on a busy host, for SOAK_SECONDS (60): it stays small, loses nothing in silence,
leaves nothing behind. soak_plain.py does the same with the build that is not sanitized."""
import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

from lib import blkprof, churn, devices, testing, watch
from lib.blkprof import Recording
from lib.pprof import CPU, OPS, READ_BYTES, TIME, WRITE_BYTES
from lib.testing import check, check_between, check_equal, wait_for
from lib.watch import MIB, Watch

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
OPTIONS = ["--cpu", "99", "--kernel-stacks"]

# What a recording may hold: itself and the symbols that it has read; processes, rows and stacks, of which a storm makes new
# ones up to limits of their own (recorder.c).
BASE, STORM, STORM_A_SECOND = 64 * MIB + 128 * MIB, 64 * MIB + 48 * MIB + 16 * MIB, MIB * 3 // 2
DESCRIPTORS = 1024 // 4 + 64 + 64  # files of programs, a quarter of what is allowed; those that wait for unwind tables; our own
SANITIZER = 3  # times as much, its quarantine aside
QUARANTINE = 64 * MIB

# Losses that this load makes by its nature: what is over before it is looked at, cut frames, processes beyond the budget.
EXPECTED = {"stack_truncated", "stack_unreadable", "processes_evicted", "files_missing", "rows_full", "process_events", "pids_folded",
            "unseen", "mismatch", "evicted", "recursion", "request_too_long", "tables_pending", "submitter_unknown", "perf_map_lines",
            "broken_no_mapping", "broken_no_table", "broken_no_rule", "broken_unreadable", "broken_bad_return",
            "broken_not_growing", "broken_lost_register"}
# Those that are of samples: together at most this part of all.
LOST_MOST = 0.02
STARVED = 0.5, 0.1  # where others took the CPU for such a part of the time, the ring overflows: this part
OF_SAMPLES = {"ring_full", "stack_ring_full", "insert_failed", "unseen", "mismatch", "read_error", "evicted",
              "stack_missing", "recursion", "map_busy"}


def sanitized():
    with open(blkprof.path(), "rb") as f:
        return b"__asan_init" in f.read()


@contextlib.contextmanager
def small_quarantine():
    """The sanitizer keeps freed memory: a little, or it is all that one sees."""
    before = os.environ.get("ASAN_OPTIONS")
    os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [before, "quarantine_size_mb=%d" % (QUARANTINE // MIB)]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["ASAN_OPTIONS"]
        else:
            os.environ["ASAN_OPTIONS"] = before


@contextlib.contextmanager
def few_descriptors():
    """As many as a shell allows: the cache of files comes to its limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def targets():
    with testing.scratch() as folder, devices.file_of(folder + "/data", 32 << 20) as disk_file, devices.zram("64M") as node:
        devices.sh("dd", "if=/dev/urandom", "of=" + node, "bs=1M", "count=64", "oflag=direct")
        yield folder, disk_file, node


def check_stress(stress):
    for error in stress.errors:
        check(False, "the stress: " + error)
    for kind, rounds in sorted(stress.rounds.items()):
        check(rounds > 0, "the stress did no %s" % kind)
    print("   rounds: %s" % ", ".join("%s %d" % r for r in sorted(stress.rounds.items())))


def most_memory():
    most = int(BASE + min(STORM, SECONDS * STORM_A_SECOND))
    return most * SANITIZER + QUARANTINE if sanitized() else most


def check_watched(watched):
    print(watched.show())
    settled = watched.settled()
    check(len(settled) >= 5, "only %d samples of the process" % len(settled))
    check(max(s.rss for s in watched.samples) <= most_memory(),
          "RSS %d MiB is above the budget" % (max(s.rss for s in watched.samples) // MIB))
    check_between(max(s.fds for s in watched.samples), 1, DESCRIPTORS, "descriptors")
    first = settled[0].maps
    for sample in settled:
        if not check_equal(sample.maps, first, "kernel memory of each map after %.0f s" % sample.time):
            break


def totals_of_comments(profile):
    totals = {}
    for comment in profile.comments:
        m = re.match(r"total node=\S+ device=(.*) op=(\w+) ops=(\d+) bytes=(\d+) window=\d+$", comment)
        if m:
            totals[urllib.parse.unquote(m[1]), m[2]] = (int(m[3]), int(m[4]))
    return totals


def check_totals(profile):
    """Each device's and operation's samples add up to its exact counters."""
    totals = totals_of_comments(profile)
    check(totals, "no totals in the profile's comments")
    ops = profile.where(lambda s: "op" in s.labels).by(OPS, lambda s: (s.labels["device"], s.labels["op"]))
    check_equal({k: v for k, v in ops.items() if v}, {k: v[0] for k, v in totals.items() if v[0]}, "operations")
    for name, op in (READ_BYTES, "read"), (WRITE_BYTES, "write"):
        moved = profile.by(name, lambda s: (s.labels.get("device"), s.labels.get("op")))
        check_equal({k: v for k, v in moved.items() if v}, {k: v[1] for k, v in totals.items() if k[1] == op and v[1]}, name)
    check(profile.total(TIME) > 0, "no time")
    check(profile.total(CPU) > 0, "no CPU samples")


def check_go(path):
    """Go's own reader takes it."""
    tool = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not tool:
        print("   no Go here: the profile was read by this test only")
        return
    with tempfile.TemporaryDirectory() as home:
        shown = subprocess.run([tool, "tool", "pprof", "-symbolize=none", "-sample_index=io_ops", "-top", "-nodecount=5", path],
                               text=True, timeout=600, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=dict(os.environ, PPROF_TMPDIR=home, HOME=home))
    check_equal(shown.returncode, 0, "go tool pprof: " + shown.stderr[-300:])


def printed_losses(report):
    """{cause: count} of the report; a line without an explanation is none."""
    part = report.split("\nlost:", 1)[1] if "\nlost:" in report else ""
    return {m[2]: int(m[1].replace(",", "")) for m in re.finditer(r"^\s*([\d,]+)  (\w+): \S.+$", part, re.M)}


def samples_taken(profile):
    return next(int(m[1]) for m in (re.match(r"sampled node=\S+ stacks=(\d+) window=", c) for c in profile.comments) if m)


def check_losses(profile, report, starved):
    lost, taken = profile.lost(), samples_taken(profile)
    print("   %d stacks taken, lost: %s; ready without a CPU for %.0f%% of the time" % (taken, lost or "nothing", 100 * starved))
    most = STARVED[1] if starved > STARVED[0] else LOST_MOST
    check(taken > 0, "no stack was taken")
    check_equal(printed_losses(report), lost, "losses of the report and of the profile's comments")
    for cause in sorted(lost):
        check(cause in EXPECTED | OF_SAMPLES, "a loss of a cause that this test does not know: %s" % cause)
    of_samples = {c: n for c, n in lost.items() if c in OF_SAMPLES}
    check(sum(of_samples.values()) <= most * taken, "%s of %d samples were lost" % (of_samples, taken))
    stacks = sum(s[OPS] + s[CPU] > 0 for s in profile.select(frame="[stack lost]"))
    check((stacks > 0) <= ("stack_missing" in lost), "stacks lost that are not counted")


def check_seen(profile):
    """The storm is in the profile under its names, from libraries that are gone too."""
    storm = profile.select(root="churn")
    check(storm.total(OPS) > 0, "nothing of the storm")
    read = profile.select(frame="churn_read")
    check(read.total(OPS) >= 0.5 * storm.total(OPS),
          "%d of the storm's %d operations have their function" % (read.total(OPS), storm.total(OPS)))
    check(profile.select(frame="module_call").total(OPS) > 0, "nothing below a function of a library that was deleted")
    print("   storm: %d operations, %d with their function, %d from a deleted library" % (
        storm.total(OPS), read.total(OPS), profile.select(frame="module_call").total(OPS)))


def nothing_left(objects):
    """The kernel objects of a process that has ended, while others' come and go."""
    def left():
        return {kind: set(ids) & living_now for kind, ids in objects.items()
                for living_now in [watch.living_ids(kind)] if set(ids) & living_now}
    try:
        wait_for(lambda: not left(), "the kernel to free the recording's objects", timeout=20)
    except TimeoutError:
        check(False, "left in the kernel: %s" % left())


def check_objects(objects, pid):
    check(len(objects["prog"]) >= 2, "programs seen: %s" % objects["prog"])
    check(len(objects["map"]) >= 5, "maps seen: %s" % objects["map"])
    check(len(objects["link"]) >= 2, "links seen: %s" % objects["link"])
    check(watch.perf_events(pid) >= 2, "perf events seen: %d" % watch.perf_events(pid))
    return objects


def soak():
    complaints = watch.kernel_log()
    with few_descriptors(), small_quarantine(), targets() as (folder, disk_file, node):
        with Recording(folder, *OPTIONS) as recording:
            pid = recording.process.pid
            objects = check_objects(watch.kernel_objects(pid), pid)
            with Watch(pid) as watched, churn.Stress(folder, disk_file, node, churn.ALL) as stress:
                time.sleep(SECONDS)
            begin = time.monotonic()
            profile = recording.stop(timeout=300)
            print("   written and read in %.1f s: %d samples, %d KiB" % (time.monotonic() - begin, len(profile),
                                                               os.path.getsize(recording.out) // 1024))
            check(not os.path.exists("/proc/%d" % pid), "the recorder is still there")
            nothing_left(objects)
        check_stress(stress)
        check_watched(watched)
        check_totals(profile)
        check_losses(profile, recording.stderr(), watched.starved())
        check_seen(profile)
        check_go(recording.out)
    check_equal(watch.kernel_log()[len(complaints):], [], "complaints of the kernel")


def killed_in_the_middle():
    """kill -9 leaves nothing attached and no file."""
    with targets() as (folder, disk_file, node):
        for _ in range(3):
            with Recording(folder, *OPTIONS) as recording, \
                    churn.Stress(folder, disk_file, node, [churn.processes, churn.killed, churn.compressed_memory]):
                pid = recording.process.pid
                time.sleep(2)
                objects = check_objects(watch.kernel_objects(pid), pid)
                os.kill(pid, signal.SIGKILL)
                recording.process.wait()
                nothing_left(objects)
                check(not os.path.exists(recording.out), "a profile was left")
        left = [f for f in os.listdir(folder) if "recording" in f and not f.endswith(".stderr")]
        check_equal(left, [], "files left")


testing.main(soak, killed_in_the_middle)
