# SPDX-License-Identifier: Apache-2.0
"""Watches a running process from outside: memory, descriptors, CPU time, and the kernel objects that it holds."""
import glob
import json
import os
import re
import subprocess
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20
COMPLAINT = re.compile(r"BUG:|WARNING:|Oops|general protection|blocked for more than|soft lockup|rcu.*stall|KASAN|refcount_t")


def _fields(path):
    with open(path) as f:
        return dict(line.rstrip("\n").split(":", 1) for line in f if ":" in line)


def kernel_objects(pid):
    """{kind: {id: bytes of memory}} of the BPF objects that a process has open."""
    objects = {"prog": {}, "map": {}, "link": {}}
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            info = _fields(path)
        except OSError:
            continue
        for kind in objects:
            if kind + "_id" in info and (kind != "prog" or "link_id" not in info) and (kind != "map" or "map_type" in info):
                objects[kind][int(info[kind + "_id"])] = int(info.get("memlock", "0"))
    return objects


def living_ids(kind):
    shown = subprocess.run(["bpftool", "-j", kind, "show"], check=True, stdout=subprocess.PIPE, timeout=60).stdout
    return {entry["id"] for entry in json.loads(shown or b"[]")}


def perf_events(pid):
    """How many perf events a process has open."""
    count = 0
    for fd in glob.glob("/proc/%d/fd/*" % pid):
        try:
            count += os.readlink(fd) == "anon_inode:[perf_event]"
        except OSError:
            pass
    return count


def kernel_log():
    """Lines of the kernel's log that complain, without their time."""
    log = subprocess.run(["dmesg", "--raw"], check=True, stdout=subprocess.PIPE, timeout=60).stdout.decode(errors="replace")
    return [line for line in log.splitlines() if COMPLAINT.search(line)]


class Sample:
    def __init__(self, pid, start):
        self.time = time.monotonic() - start
        status = _fields("/proc/%d/status" % pid)
        self.rss = int(status["VmRSS"].split()[0]) << 10
        self.data = int(status["VmData"].split()[0]) << 10
        with open("/proc/%d/stat" % pid) as f:
            stat = f.read().rsplit(")", 1)[1].split()
        self.cpu = (int(stat[11]) + int(stat[12])) / TICK
        self.user = int(stat[11]) / TICK
        try:
            with open("/proc/%d/schedstat" % pid) as f:
                self.waited = int(f.read().split()[1]) / 1e9
        except OSError:
            self.waited = 0.0
        self.fds = len(os.listdir("/proc/%d/fd" % pid))
        self.maps = kernel_objects(pid)["map"]

    def __str__(self):
        return "%7.1f s  RSS %6.1f MiB  %3d descriptors  kernel memory of maps %5.1f MiB  CPU %6.2f s (user %.2f s)" % (
            self.time, self.rss / MIB, self.fds, sum(self.maps.values()) / MIB, self.cpu, self.user)


class Watch:
    """Samples of a process every `interval` seconds within a with block."""

    def __init__(self, pid, interval=1.0):
        self.pid, self.interval, self.samples = pid, interval, []
        self._start, self._stop = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.is_set():
            try:
                self.samples.append(Sample(self.pid, self._start))
            except (OSError, KeyError, IndexError):
                return
            self._stop.wait(self.interval)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        self._thread.join()

    def starved(self):
        """The part of the time that its main thread was ready to run and did not."""
        first, last = self.samples[0], self.samples[-1]
        return (last.waited - first.waited) / max(last.time - first.time, 0.001)

    def settled(self, share=1 / 3):
        """Samples behind the first part."""
        return self.samples[int(len(self.samples) * share):]

    def show(self, lines=12):
        step = max(1, len(self.samples) // lines)
        chosen = self.samples[::step]
        return "\n".join("   %s" % s for s in chosen + ([self.samples[-1]] if chosen[-1] is not self.samples[-1] else []))
