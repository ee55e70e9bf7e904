# SPDX-License-Identifier: Apache-2.0
"""What a profiler of a busy host meets: processes, threads, libraries, file systems, devices and cgroups that come and go
while there is I/O. Each kind is a loop in a thread of its own that tears down what it set up."""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
import traceback

from . import devices
from .load import ioload_args

IMAGE_SIZE = 16 << 20


class Stress:
    """Runs kinds (functions of the stress and a folder of their own) beside each other: start in a with block, stop at its end.
    rounds: how often each kind did all of its work; errors: what went wrong with the stress itself."""

    def __init__(self, folder, disk_file, zram, kinds):
        self.disk_file, self.zram = disk_file, zram
        self.rounds, self.errors = {k.__name__: 0 for k in kinds}, []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._loop, args=(k, os.path.join(folder, k.__name__))) for k in kinds]

    def _loop(self, kind, folder):
        os.makedirs(folder, exist_ok=True)
        while not self._stop.is_set():
            try:
                self.rounds[kind.__name__] += kind(self, folder)
            except Exception:
                self.errors.append("%s: %s" % (kind.__name__, traceback.format_exc(limit=3)))
                self._stop.wait(1)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def pause(self, seconds):
        self._stop.wait(seconds)


@contextlib.contextmanager
def background(*args, **kw):
    """A process that is killed at the end, if it is still there."""
    process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _churn(kind, target, rate, *more):
    said = json.loads(devices.sh(devices.program("churn"), "-r", str(rate), "-s", "3", *more, kind, target,
                                 timeout=300))
    return said["rounds"] - said["failed"]


def processes(stress, folder):
    return _churn("processes", stress.zram, 1500)


def threads(stress, folder):
    return 8 * _churn("threads", stress.zram, 100)


def libraries(stress, folder):
    path = os.path.join(folder, "data")
    if not os.path.exists(path):
        with open(path, "wb") as f:
            f.write(os.urandom(1 << 20))
    return _churn("libraries", path, 50, "-m", devices.program("churn_module.so"))


def file_systems(stress, folder):
    """Made, mounted, written, unmounted."""
    with devices.small_fs(folder, 16) as (point, node):
        for i in range(8):
            with open("%s/%d" % (point, i), "wb") as f:
                f.write(os.urandom(100000))
                os.fsync(f.fileno())
    stress.pause(0.2)
    return 1


def _backing(node):
    try:
        return devices.read("/sys/block/%s/loop/backing_file" % os.path.basename(node))
    except OSError:
        return None


@contextlib.contextmanager
def _fragile_loop(image):
    """A loop device that the block may detach; another test's that got its number since is left alone."""
    with open(image, "wb") as f:
        f.truncate(IMAGE_SIZE)
    with devices.lock("loop"):
        node = devices.sh("losetup", "-f", "--show", image)
    try:
        yield node
    finally:
        if (_backing(node) or "").startswith(image):
            devices.sh("losetup", "-d", node)
        os.unlink(image)


def detached_loops(stress, folder):
    """Detached under I/O: the device goes with the last who has it open."""
    image = os.path.join(folder, "image")
    with _fragile_loop(image) as node:
        with background("dd", "if=" + node, "of=/dev/null", "bs=4k", "iflag=direct"), \
                background("dd", "if=/dev/zero", "of=" + node, "bs=64k", "oflag=direct"):
            stress.pause(0.1)
            devices.sh("losetup", "-d", node)
            stress.pause(0.1)
        # Not before it is gone may its image be removed and made again.
        for _ in range(100):
            if not (_backing(node) or "").startswith(image):
                break
            time.sleep(0.02)
    stress.pause(0.2)
    return 1


def truncated_loops(stress, folder):
    """The backing file is cut under I/O: requests fail."""
    image = os.path.join(folder, "image")
    with _fragile_loop(image) as node:
        with background("dd", "if=" + node, "of=/dev/null", "bs=4k", "iflag=direct"), \
                background("dd", "if=" + node, "of=/dev/null", "bs=256k"):
            stress.pause(0.05)
            os.truncate(image, 4096)
            stress.pause(0.1)
            os.truncate(image, IMAGE_SIZE)
    stress.pause(0.2)
    return 1


def compressed_memory(stress, folder):
    """Device traffic of many requests, and devices that come and go."""
    with devices.zram("32M") as node:
        plan = ["write_page:pwrite:count=2000,size=16K", "read_block:pread:count=20000,threads=2,order=random",
                "scan_index:aio-read:count=10000,depth=16", "trim_space:discard:count=100,size=64K"]
        devices.sh(*ioload_args(node, *plan), timeout=300)
    stress.pause(0.5)
    return 1


def _cgroup_roots():
    roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
    return [r for r in roots if os.access(r + "/cgroup.procs", os.W_OK)]


def _remove_cgroup(path):
    for _ in range(100):
        try:
            return os.rmdir(path)
        except FileNotFoundError:
            return None
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("%s cannot be removed" % path)


def cgroups(stress, folder):
    """A program in cgroups that are removed as soon as it is killed."""
    paths = ["%s/blkprof-soak-%d-%d" % (r, os.getpid(), stress.rounds["cgroups"]) for r in _cgroup_roots()]
    try:
        for path in paths:
            os.mkdir(path)

        def enter():
            for path in paths:
                devices.write(path + "/cgroup.procs", os.getpid())
        with background(*ioload_args(stress.zram, "read_header:pread:count=1000000,rate=500"), preexec_fn=enter):
            stress.pause(0.3)
    finally:
        for path in paths:
            _remove_cgroup(path)
    return 1


def killed(stress, folder):
    """Programs killed with requests in flight."""
    plans = ["scan_index:aio-read:count=1000000,depth=32", "load_swap:pread:count=1000000,threads=8,rate=1000",
             "read_index:uring-read:count=1000000,depth=16,rate=2000"]
    for target in (stress.zram, stress.disk_file):
        for plan in plans:
            with background(*ioload_args(target, plan)) as process:
                stress.pause(0.1)
                process.send_signal(signal.SIGKILL)
                process.wait()
            stress.pause(0.1)
    return 1


ALL = [processes, threads, libraries, file_systems, detached_loops, truncated_loops, compressed_memory, cgroups, killed]
