# SPDX-License-Identifier: Apache-2.0
"""What the measurements share: loads that run on while programs come and go, quiet moments, paired statistics."""
import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tests/e2e"))
from lib import blkprof, devices, testing  # noqa: E402,F401

TICK = os.sysconf("SC_CLK_TCK")


# ---- the machine ----

def machine():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    with open("/etc/os-release") as f:
        system = re.search(r'PRETTY_NAME="(.*)"', f.read())
    return "%d x %s, %d MiB, %s, Linux %s" % (
        os.cpu_count(), model.group(1) if model else "CPU", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        system.group(1) if system else "?", os.uname().release)


def _system_busy():
    """CPU seconds that anybody used: user, nice, system, irq, softirq, steal; guests are in user."""
    with open("/proc/stat") as f:
        n = [int(x) for x in f.readline().split()[1:9]]
    return (n[0] + n[1] + n[2] + n[5] + n[6] + n[7]) / TICK


def _children():
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open("/proc/%s/stat" % name) as f:
                parents.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
    return parents


def family(pid):
    parents, found = _children(), []
    todo = [pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += parents.get(pid, [])
    return found


def cpu_seconds(pid):
    """CPU time of a process, threads that still live, to the nanosecond."""
    ns = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            ns += int(f.read().split()[0])
    return ns / 1e9


def _busy_of(pids):
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError), open("/proc/%d/stat" % pid) as f:
            ticks += sum(int(x) for x in f.read().rsplit(")", 1)[1].split()[11:15])
    return ticks / TICK


class Strangers:
    """How much of one CPU everybody used who is neither a descendant of ours nor the kernel, between start and share()."""

    def __init__(self, also=()):
        self.pids = set(family(os.getpid())) | set(family(2)) | set(also)
        self.at, self.busy, self.ours = time.monotonic(), _system_busy(), _busy_of(self.pids)

    def share(self):
        used = (_system_busy() - self.busy) - (_busy_of(self.pids) - self.ours)
        return max(0.0, used / max(1e-3, time.monotonic() - self.at))


@contextlib.contextmanager
def precedence():
    """Lets this process and its children run before everybody else's on a machine that is not idle, both sides of every
    measurement alike: a CPU group of the largest weight, or else only niceness."""
    group = "/sys/fs/cgroup/cpu/blkprof-bench-%d" % os.getpid()
    with open("/proc/self/cgroup") as f:
        home = [line.strip().split(":", 2)[2] for line in f if ":cpu:" in line or ":cpu," in line or ",cpu:" in line]
    try:
        os.mkdir(group)
    except OSError:
        os.nice(-19)
        yield
        return
    try:
        devices.write(group + "/cpu.shares", 262144)
        devices.write(group + "/cgroup.procs", os.getpid())
        yield
    finally:
        devices.write("/sys/fs/cgroup/cpu%s/cgroup.procs" % (home[0] if home else "/"), os.getpid())
        for _ in range(50):
            with contextlib.suppress(OSError):
                os.rmdir(group)
                break
            time.sleep(0.1)


@contextlib.contextmanager
def memory_group(megabytes):
    """A memory cgroup of that size, page cache included; yields the path of its cgroup.procs."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = "%s/blkprof-bench-%d" % (root, os.getpid())
        with contextlib.suppress(OSError):
            os.mkdir(group)
            devices.write("%s/%s" % (group, limit), megabytes << 20)
            break
        with contextlib.suppress(OSError):
            os.rmdir(group)
    else:
        testing.skip("no memory cgroup can be made here")
    try:
        yield group + "/cgroup.procs"
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(group)
                break
            time.sleep(0.1)


# ---- numbers ----

def median_interval(values):
    """(median, low, high): at least 95% by order statistics, whatever the distribution; needs 6 values."""
    ordered = sorted(values)
    n, total, k = len(ordered), 0.0, 0
    term = 0.5 ** n
    while k < n // 2 and total + term <= 0.025:
        total += term
        term = term * (n - k) / (k + 1)
        k += 1
    k = max(1, k)
    return statistics.median(ordered), ordered[k - 1], ordered[n - k]


def bootstrap(rows, statistic, rounds=4000, seed=1):
    """(value, low, high) of a statistic over rows, 95% by resampling whole rows."""
    rng = random.Random(seed)
    values = sorted(statistic([rng.choice(rows) for _ in rows]) for _ in range(rounds))
    return statistic(rows), values[int(rounds * 0.025)], values[int(rounds * 0.975) - 1]


def paired(measure, names, rounds, limit=0.2, most=3, seed=1, show=None):
    """Rows {name: measure(name)} with the names in a new order each round. A measurement during which others used more
    than `limit` of a CPU is done again, at most `most` times in all, whatever it said."""
    rng, rows = random.Random(seed), []
    noisy = 0
    for number in range(rounds):
        order, row = list(names), {}
        rng.shuffle(order)
        for name in order:
            for _ in range(most):
                strangers = Strangers()
                row[name] = measure(name)
                if strangers.share() <= limit:
                    break
            else:
                noisy += 1
        rows.append(row)
        if show:
            print("%3d  %s" % (number + 1, show(row)), flush=True)
    if noisy:
        print("%d of %d measurements kept although others used more than %.0f%% of a CPU" % (
            noisy, rounds * len(names), 100 * limit))
    return rows


# ---- programs ----

class Probes:
    """bench-probes holding a set of programs."""

    def __init__(self, name):
        path = os.path.join(devices.build(), "bench", "bench-probes")
        if not os.access(path, os.X_OK):
            testing.skip("bench-probes was not built")
        self.process = subprocess.Popen([path, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def __enter__(self):
        if self.process.stdout.readline() != "ready\n":
            self.process.wait()
            raise RuntimeError("bench-probes does not start")
        return self

    def counts(self):
        """Of the set "count": rows with tgid, major, minor, op, empty, ops, bytes."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        if found["lost"]:
            raise RuntimeError("the exact counters lost %d operations" % found["lost"])
        return found["counts"]

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@contextlib.contextmanager
def recording(folder, *options):
    """blkprof record of the node while the block runs; yields the Recording. Its file is in `folder`."""
    with blkprof.Recording(folder, *options) as r:
        yield r


def run_times(pid):
    """{program id: (runs, ns, misses)} of the BPF programs whose descriptors the process holds."""
    found = {}
    for name in os.listdir("/proc/%d/fdinfo" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/fdinfo/%s" % (pid, name)) as f:
            info = dict(line.split(":", 1) for line in f.read().splitlines() if ":" in line)
            if "run_cnt" in info:
                found[int(info["prog_id"])] = tuple(int(info[k]) for k in ("run_cnt", "run_time_ns", "recursion_misses"))
    return found


# ---- loads ----

@contextlib.contextmanager
def filled_zram(size_mb=256):
    """A zram device filled with data that compresses to about a half."""
    with devices.zram("%dM" % size_mb) as node:
        fio("--name=fill", "--filename=" + node, "--rw=write", "--bs=64k", "--direct=1", "--buffer_compress_percentage=50",
            "--refill_buffers", "--size=%dM" % size_mb)
        yield node


def fio(*args):
    if subprocess.run(["which", "fio"], stdout=subprocess.DEVNULL).returncode:
        testing.skip("fio is not installed")
    subprocess.run(["fio", "--output=/dev/null", *args], check=True, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def random_reads(node, jobs=2):
    """fio reading 4 KiB at random for as long as the block runs."""
    process = subprocess.Popen(
        ["fio", "--output=/dev/null", "--name=load", "--filename=" + node, "--rw=randread", "--bs=4k", "--direct=1",
         "--ioengine=libaio", "--iodepth=32", "--numjobs=%d" % jobs, "--thread", "--time_based", "--runtime=36000",
         "--norandommap", "--gtod_reduce=1"], stdin=subprocess.DEVNULL)
    try:
        disk = os.path.basename(node)
        start = reads(disk)
        testing.wait_for(lambda: process.poll() is not None or reads(disk) > start + 10000, "fio to begin", 30)
        if process.poll() is not None:
            raise RuntimeError("fio ended with %d" % process.returncode)
        time.sleep(1)
        yield process
    finally:
        process.terminate()
        process.wait()


def reads(disk):
    """Reads that the kernel completed on a disk."""
    with open("/sys/block/%s/stat" % disk) as f:
        return int(f.read().split()[0])


def sectors_read(disk):
    with open("/sys/block/%s/stat" % disk) as f:
        return int(f.read().split()[2])
