#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cannot work says so in one line with what to do, and leaves neither a file nor a probe."""
import os
import subprocess

from lib import blkprof, devices, testing
from lib.testing import check, check_equal, skip


def refused(status, words, *args, prefix=(), where=None, **kw):
    """record ARGS ends with `status` and one line that contains each of `words`."""
    what = "record %s" % " ".join(args)
    before = os.listdir(where) if where else []
    result = subprocess.run([*prefix, blkprof.path(), "record", *args], timeout=120, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)
    lines = result.stderr.splitlines()
    print("   %s\n      -> %s %s" % (what, result.returncode, result.stderr.strip()))
    check_equal(result.returncode, status, "status of " + what)
    check(len(lines) == 1, "%s: %d lines: %r" % (what, len(lines), result.stderr))
    for word in words:
        check(word in result.stderr, "%s: the message does not say '%s'" % (what, word))
    check_equal(result.stdout, "", "output of " + what)
    if where:
        check_equal(sorted(os.listdir(where)), sorted(before), "files after " + what)


def wrong_usage():
    for words, args in ((["--no-such-option"], ["--no-such-option"]), (["--op", "erase", "read"], ["--op", "erase"]),
                        (["--backend", "magic", "tracepoint"], ["--backend", "magic"]),
                        (["--rate", "many"], ["--rate", "many"]), (["--duration", "soon"], ["-d", "soon"]),
                        (["--duration"], ["-d", "0"]), (["--pid"], ["--pid", "x"]),
                        (["--labels", "some", "few"], ["--labels", "some"]), (["--root", "colour"], ["--root", "colour"]),
                        (["--cpu"], ["--cpu", "0"]), (["-"], ["-o", "-", "--", "true"])):
        refused(2, words, *args)


def unknown_things():
    with testing.scratch() as folder:
        out = folder + "/x.pb.gz"
        disk = devices.disk_of(folder) or "zram0"
        refused(1, ["no-such-device", disk], "-d", "1", "-o", out, "--device", "no-such-device", where=folder)
        refused(1, ["4194303"], "-d", "1", "-o", out, "--pid", "4194303", where=folder)
        refused(1, ["/no/such/cgroup"], "-d", "1", "-o", out, "--cgroup", "/no/such/cgroup", where=folder)


def unwritable():
    """Before the recording, not after it."""
    with testing.scratch() as folder:
        refused(1, ["/no/such/folder"], "-d", "30", "-o", "/no/such/folder/x.pb.gz")
        refused(1, [folder], "-d", "30", "-o", folder, where=folder)
        devices.write(folder + "/file", "")
        refused(1, [folder + "/file"], "-d", "30", "-o", folder + "/file/x.pb.gz", where=folder)
        refused(1, ["/proc"], "-d", "30", "-o", "/proc/x.pb.gz")


def read_only_file_system():
    with testing.scratch() as folder, devices.small_fs(folder) as (point, node):
        devices.sh("mount", "-o", "remount,ro", point)
        refused(1, [point, "ead-only"], "-d", "30", "-o", point + "/x.pb.gz", where=point)


def fill(point):
    """Not a byte is left."""
    with open(point + "/filler", "wb", buffering=0) as f:
        for size in (1 << 16, 1024, 1):
            try:
                while True:
                    f.write(b"x" * size)
            except OSError:
                pass


def full_disk():
    with testing.scratch() as folder, devices.small_fs(folder, 8) as (point, node):
        fill(point)
        refused(1, [point, "full"], "-d", "0.2", "-o", point + "/x.pb.gz", where=point)


def old_file_stays():
    """A profile that cannot be written leaves the one that was there."""
    with testing.scratch() as folder, devices.small_fs(folder, 8) as (point, node):
        devices.write(point + "/x.pb.gz", "the old one")
        fill(point)
        refused(1, [point, "full"], "-d", "0.2", "-o", point + "/x.pb.gz", where=point)
        check_equal(devices.read(point + "/x.pb.gz"), "the old one", "the old file")


def no_privilege():
    with testing.scratch() as folder:
        os.chmod(folder, 0o777)
        program = os.path.join(folder, "blkprof")
        devices.sh("cp", blkprof.path(), program)
        os.chmod(program, 0o755)
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
        result = subprocess.run([*prefix, program, "record", "-d", "1", "-o", folder + "/x.pb.gz"], timeout=120,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        print("   -> %s %s" % (result.returncode, result.stderr.strip()))
        check_equal(result.returncode, 1, "status")
        check_equal(len(result.stderr.splitlines()), 1, "lines: %r" % result.stderr)
        check("root" in result.stderr and "CAP_" in result.stderr, "the message names neither root nor the capability")
        check_equal(os.listdir(folder), ["blkprof"], "files")


def one_capability_is_missing():
    """Root without CAP_BPF (and CAP_SYS_ADMIN, which stands for it)."""
    drop = "-bpf,-sys_admin"
    prefix = ["setpriv", "--bounding-set=" + drop, "--inh-caps=" + drop]
    with testing.scratch() as folder:
        refused(1, ["CAP_BPF"], "-d", "1", "-o", folder + "/x.pb.gz", prefix=prefix, where=folder)


def no_btf():
    """The kernel's type information is hidden in a mount namespace of our own."""
    if subprocess.run(["unshare", "-m", "true"]).returncode or not os.path.isdir("/sys/kernel/btf"):
        skip("cannot hide the kernel's BTF here")
    with testing.scratch() as folder:
        hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]
        refused(1, ["BTF"], "-d", "1", "-o", folder + "/x.pb.gz", prefix=hide, where=folder)


def backend_that_is_refused():
    """A backend that this kernel does not take is an error when it was asked for by name."""
    with testing.scratch() as folder:
        doctor = blkprof.run("doctor")
        check_equal(doctor.returncode, 0, "doctor: " + doctor.stdout)
        for backend in ("fentry", "kprobe"):
            result = blkprof.run("record", "-d", "0.2", "-o", folder + "/x.pb.gz", "--backend", backend)
            if result.returncode == 0:
                continue
            check_equal(result.returncode, 1, "status with --backend " + backend)
            check(len(result.stderr.splitlines()) == 1 and backend in result.stderr, "the message: %r" % result.stderr)
            check_equal(os.listdir(folder), [], "files")


testing.main(wrong_usage, unknown_things, unwritable, read_only_file_system, full_disk, old_file_stays, no_privilege,
             one_capability_is_missing, no_btf, backend_that_is_refused)
