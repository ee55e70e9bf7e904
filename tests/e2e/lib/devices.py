# SPDX-License-Identifier: Apache-2.0
"""Block devices for a test, always torn down: zram, loop, a slow disk, a small file system, as context managers."""
import contextlib
import fcntl
import json
import os
import subprocess
import time

from .testing import skip, wait_for

ZRAM_CONTROL = "/sys/class/zram-control"


def build():
    return os.environ.get("BUILD") or os.path.join(os.path.dirname(__file__), "../../../build")


def program(name):
    """Path of a load generator; the test is skipped where it was not built."""
    path = os.path.join(build(), "load", name)
    if not os.access(path, os.X_OK):
        skip("%s was not built" % name)
    return path


def sh(*args, timeout=60, **kw):
    return subprocess.run(args, check=True, timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **kw).stdout.strip()


def write(path, text):
    with open(path, "w") as f:
        f.write(str(text))


def read(path):
    with open(path) as f:
        return f.read().strip()


@contextlib.contextmanager
def lock(name):
    """One test at a time for what there is only one of."""
    folder = "/run/lock" if os.path.isdir("/run/lock") else "/tmp"
    with open(os.path.join(folder, "blkprof-e2e-%s.lock" % name), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def disk_of(path):
    """Name of the whole disk under a file or of a device node; None where there is none."""
    st = os.stat(path)
    number = st.st_rdev if os.path.exists(path) and (st.st_mode & 0o170000) == 0o060000 else st.st_dev
    node = "/sys/dev/block/%d:%d" % (os.major(number), os.minor(number))
    if not os.path.exists(node):
        return None
    real = os.path.realpath(node)
    return os.path.basename(os.path.dirname(real) if os.path.exists(real + "/partition") else real)


def queue(disk, name):
    return read("/sys/block/%s/queue/%s" % (disk, name))


def need_disk(path):
    disk = disk_of(path)
    if not disk:
        skip("%s is not on a block device" % path)
    return disk


def _zram_reset(name):
    for _ in range(50):
        try:
            write("/sys/block/%s/reset" % name, 1)
            return
        except OSError:
            time.sleep(0.1)


@contextlib.contextmanager
def zram(size="1G"):
    """A zram device of its own: /dev/zramN."""
    if not os.path.isdir(ZRAM_CONTROL):
        skip("this kernel has no zram")
    with lock("zram"):
        name = "zram%s" % read(ZRAM_CONTROL + "/hot_add")
    try:
        write("/sys/block/%s/disksize" % name, size)
        wait_for(lambda: os.path.exists("/dev/" + name), "/dev/" + name)
        yield "/dev/" + name
    finally:
        _zram_reset(name)
        with lock("zram"):
            write(ZRAM_CONTROL + "/hot_remove", name[4:])


@contextlib.contextmanager
def loop(path, direct_io=False):
    """A loop device over a file: /dev/loopN."""
    if not os.path.exists("/dev/loop-control"):
        skip("this kernel has no loop devices")
    with lock("loop"):
        node = sh("losetup", "-f", "--show", "--direct-io=%s" % ("on" if direct_io else "off"), path)
    try:
        yield node
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            sh("losetup", "-d", node)


@contextlib.contextmanager
def file_of(path, size):
    """A file that is written, so that its blocks are there."""
    with open(path, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, size)
        for _ in range(size >> 20):
            f.write(os.urandom(1 << 20))
        os.fsync(f.fileno())
    try:
        yield path
    finally:
        os.unlink(path)


class SlowDisk:
    """A loop device over slowfs. hang() stops its answers, delay() sets the time of each."""

    def __init__(self, node, control):
        self.node, self.control = node, control
        self.name = os.path.basename(node)

    def hang(self, seconds):
        write(self.control, "hang %gs\n" % seconds)

    def delay(self, milliseconds):
        write(self.control, "delay %gms\n" % milliseconds)

    def state(self):
        return json.loads(read(self.control))


@contextlib.contextmanager
def slow_files(folder, delay_ms=1.0, size="256M"):
    """slowfs mounted: the path of its mount point."""
    if not os.path.exists("/dev/fuse"):
        skip("this kernel has no FUSE")
    point = os.path.join(folder, "slow")
    os.makedirs(point, exist_ok=True)
    server = subprocess.Popen([program("slowfs"), "--size", size, "--delay", "%gms" % delay_ms, point],
                              stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.nice(-10))
    try:
        if server.stdout.readline() != "ready\n":
            raise RuntimeError("slowfs does not start")
        yield point
    finally:
        with contextlib.suppress(OSError):
            write(point + "/control", "hang 0\n")
        for _ in range(50):
            if subprocess.run(["umount", point], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.1)
        else:
            server.terminate()
        server.wait(timeout=30)
        server.stdout.close()


@contextlib.contextmanager
def slow_disk(folder, delay_ms=1.0, size="256M", direct_io=True):
    with slow_files(folder, delay_ms, size) as point:
        with loop(point + "/disk", direct_io) as node:
            disk = SlowDisk(node, point + "/control")
            try:
                yield disk
            finally:
                disk.hang(0)


@contextlib.contextmanager
def small_fs(folder, size_mb=16, options=()):
    """A small ext4 on a loop device, mounted: (mount point, device)."""
    image, point = os.path.join(folder, "small.img"), os.path.join(folder, "small")
    os.makedirs(point, exist_ok=True)
    with open(image, "wb") as f:
        f.truncate(size_mb << 20)
    sh("mkfs.ext4", "-q", "-F", "-m", "0", *options, image)
    with loop(image) as node:
        sh("mount", node, point)
        try:
            yield point, node
        finally:
            for _ in range(50):
                if subprocess.run(["umount", point], stderr=subprocess.DEVNULL).returncode == 0:
                    break
                time.sleep(0.1)
    os.unlink(image)
