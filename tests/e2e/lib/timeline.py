# SPDX-License-Identifier: Apache-2.0
"""Runs `timeline` beside a load of threads and reads its trace; checks traces with the `perfetto` package too."""
import json
import os
import signal
import subprocess
import sys

from . import blkprof, trace
from .devices import build, program
from .testing import check, check_equal

PACKAGE = "perfetto==0.59.1"


class Threads:
    """tools/load/threadload: waits until go(), which returns when its threads have done their work and sleep."""

    def __init__(self, *args):
        self.process = subprocess.Popen([program("threadload"), *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def start(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def go(self):
        self.start()
        if self.process.stdout.readline() != "done\n":
            raise RuntimeError("the load failed")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Tracing:
    """`timeline OPTIONS` from the start of the with block to its end; then .trace, .said and .raw."""

    def __init__(self, folder, *options, signal_end=True):
        self.out, self.raw = os.path.join(folder, "trace.pftrace"), os.path.join(folder, "stream.raw")
        self.args = [blkprof.path(), "timeline", "-o", self.out, "--raw", self.raw, "-n", "0", *map(str, options)]
        self.peak = 0

    def __enter__(self):
        self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if line.startswith("without requests"):
            line = self.process.stderr.readline()
        if not line.startswith("recording"):
            self.process.wait()
            raise RuntimeError("timeline does not start: %s" % (line + self.process.stderr.read()))
        self.stolen = -stolen()
        return self

    def __exit__(self, kind, *exc):
        self.stolen += stolen()
        try:
            with open("/proc/%d/status" % self.process.pid) as f:
                self.peak = int(dict(line.split(":", 1) for line in f)["VmHWM"].split()[0]) << 10
            self.process.send_signal(signal.SIGINT)
            self.said = self.process.communicate(timeout=60)[1]
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        if kind is None:
            if self.process.returncode:
                raise RuntimeError("timeline ended with %d: %s" % (self.process.returncode, self.said))
            self.trace = trace.read(self.out)


def stolen():
    """Nanoseconds that this machine's host took from it, ever."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) * 1000000000 // os.sysconf("SC_CLK_TCK")


def schedstat(pid):
    """{tid: (on CPU, waiting for one)} in nanoseconds."""
    result = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as f:
            result[int(tid)] = tuple(map(int, f.read().split()))[:2]
    return result


def switches(pid):
    """{tid: (voluntary, involuntary)}"""
    result = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid)) as f:
            status = dict(line.split(":", 1) for line in f)
        result[int(tid)] = (int(status["voluntary_ctxt_switches"]), int(status["nonvoluntary_ctxt_switches"]))
    return result


def named(t, stem):
    return [tid for tid, (_, name) in t.threads.items() if name.startswith(stem)]


def interpreter():
    """A Python with the package, in the build folder; None and the reason when it cannot be had."""
    venv = os.path.join(build(), "venv-perfetto")
    python = os.path.join(venv, "bin/python")
    if not os.path.exists(os.path.join(venv, "ready")):
        try:
            subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", PACKAGE], check=True, timeout=120,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except (subprocess.SubprocessError, OSError) as e:
            return None, "%s cannot be installed: %s" % (PACKAGE, getattr(e, "stdout", None) or e)
        open(os.path.join(venv, "ready"), "w").close()
    return python, ""


def check_by_package(path, own):
    """The same file, read by Perfetto's own definitions, is the same to the last slice."""
    python, reason = interpreter()
    if not python:
        print("   not read by Perfetto's definitions: %s" % reason)
        return
    result = subprocess.run([python, trace.__file__, path], stdout=subprocess.PIPE, check=True, timeout=120)
    theirs, ours = json.loads(result.stdout), json.loads(json.dumps(own.summary()))
    for name in ours:
        check(theirs[name] == ours[name], "%s: read by Perfetto's definitions it is another" % name)


def check_trace(t, what):
    check_equal(t.wrong, [], "%s: what is wrong with the trace" % what)
    by_tid = {}
    for s in t.states:
        by_tid.setdefault(s.tid, []).append(s)
    for tid, states in by_tid.items():
        check(all(a.end == b.start for a, b in zip(states, states[1:])), "%s: thread %d has gaps or overlaps" % (what, tid))
    slices = {}
    for s in t.slices:
        slices.setdefault(s.track, []).append(s)
    for track, found in slices.items():
        found.sort(key=lambda s: (s.start, s.end))
        if t.tracks[track]["tid"] is None:
            check(all(a.end <= b.start for a, b in zip(found, found[1:])), "%s: slices on lane %d overlap" % (what, track))
