#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=2400
"""In guests with other kernels a profile with --rate 0 equals what the load did, operations and bytes per function, with every
backend, on plain, splitting, bio-based, stacked and timer-driven devices. A backend that a kernel refuses fails the test, unless it
is known to."""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from lib.load import by_function  # noqa: E402
from lib.pprof import OPS, READ_BYTES, WRITE_BYTES, Profile  # noqa: E402

KERNELS = ["5.10", "6.1", "6.12", "newest"]
BACKENDS = ["fentry", "kprobe", "tracepoint"]
REFUSED = set()
SMALL = "read_index:pread:count=211 write_wal:pwrite:count=101,size=16K read_block:pread:count=307,threads=4,order=random " \
        "scan_index:aio-read:count=211,depth=8"
# Larger than any device takes at once: one operation each, however many parts the kernel makes of it.
LARGE = "scan_table:pread:count=7,size=4M write_checkpoint:pwrite:count=5,size=8M"

# name: (what makes it, its node, what unmakes it, the load)
DEVICES = {
    "virtio": ("", "/dev/vda", "", SMALL + " " + LARGE),
    "null_bio": ("modprobe null_blk queue_mode=0 gb=1", "/dev/nullb0", "rmmod null_blk", SMALL + " " + LARGE),
    "null_softirq": ("modprobe null_blk queue_mode=2 irqmode=1 gb=1", "/dev/nullb0", "rmmod null_blk", SMALL),
    "null_timer": ("modprobe null_blk queue_mode=2 irqmode=2 completion_nsec=1000000 gb=1", "/dev/nullb0", "rmmod null_blk", SMALL),
    "zram": ("modprobe zram; echo 64M >/sys/block/zram0/disksize", "/dev/zram0", "rmmod zram", SMALL),
    "dm": ("modprobe dm_mod; dmsetup create --noudevsync top --table '0 262144 linear /dev/vda 0'; dmsetup mknodes", "/dev/mapper/top",
           "dmsetup remove --noudevsync top", SMALL + " " + LARGE),
}


def script():
    """Runs in the guest: for each backend that attaches one recording of one load on each device, files named by both."""
    lines = ["failed=0", "for backend in %s; do" % " ".join(BACKENDS),
             "blkprof record --backend $backend -d 100ms -o /tmp/probe.pb.gz >/out/$backend.txt 2>&1 || continue",
             "touch /out/$backend.works"]
    for name, (make, node, unmake, load) in DEVICES.items():
        out = "/out/$backend-%s" % name
        lines += [make, "blkprof record --backend $backend --rate 0 -o %s.pb.gz -- ioload --target %s --limit 32M %s >%s.json 2>%s.txt "
                  "|| { echo \"$backend %s: record failed\"; tail -n 5 %s.txt; failed=1; }" % (out, node, load, out, out, name, out),
                  unmake]
    return "\n".join(line for line in lines + ["done", "exit $failed"] if line)


def skipped(profile):
    """Runs of the probes that the kernel skipped, as the profile says it: on a kernel that preempts BPF programs another task's
    submission on that CPU is one."""
    counts = [int(c.split("count=")[1].split()[0]) for c in profile.comments if c.startswith("lost ") and "cause=recursion " in c]
    return sum(counts)


def differences(profile, truth):
    missing = 0
    for function, entry in by_function(truth).items():
        expect = entry["expect"]
        samples = profile.select(frame=function, op=expect["op"])
        moved = WRITE_BYTES if expect["op"] == "write" else READ_BYTES
        ops, size = samples.total(OPS), samples.total(moved)
        short = max(0, expect["ops"] - ops)
        missing += short
        if ops > expect["ops"] and expect["ops_exact"]:
            yield "%s: %d operations, expected %d" % (function, ops, expect["ops"])
        if size != expect["bytes"] - short * entry["size"]:
            yield "%s: %d bytes in %d operations, expected %d" % (function, size, ops, expect["bytes"])
        devices = set(samples.by(OPS, "device"))
        if devices != {entry["device"]}:
            yield "%s: on %s, expected %s" % (function, sorted(devices, key=str), entry["device"])
    if missing > skipped(profile):
        yield "%d operations are missing, and %d skipped runs are said" % (missing, skipped(profile))


def elsewhere(profile, truth):
    """What the profile has under none of the load's functions."""
    known = set(by_function(truth))
    return profile.where(lambda s: not known & set(s.frames)).show(8)


def boot(kernel, out):
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    command = [os.path.join(ROOT, "tools/vm/run"), kernel, "--disk", "virtio", "--timeout", "900", "--out", out, "--with", "/usr/sbin/dmsetup",
               "--with", os.path.join(build, "load/ioload"), "--", "sh", "-c", script()]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def text(path):
    with open(path) as f:
        return f.read()


def check_recording(path):
    """What is wrong with one recording, and how many skipped runs it tells of."""
    try:
        profile, truth = Profile.read(path + ".pb.gz"), json.loads(text(path + ".json"))
    except (OSError, ValueError) as e:
        return ["no profile: %s" % e], 0
    wrong = list(differences(profile, truth))
    return wrong + ([elsewhere(profile, truth)] if wrong else []), skipped(profile)


def check_backend(kernel, backend, out):
    path = os.path.join(out, backend)
    if not os.path.exists(path + ".works"):
        known = (kernel, backend) in REFUSED
        reason = text(path + ".txt").strip() if os.path.exists(path + ".txt") else "not tried"
        print("%s %s %s: refused: %s" % ("    " if known else "FAIL", kernel, backend, reason))
        return 0 if known else 1
    problems = 0
    for name in DEVICES:
        wrong, lost = check_recording(path + "-" + name)
        print("%s %s %s %s%s" % ("FAIL" if wrong else "PASS", kernel, backend, name,
                                 " (%d runs skipped, and said)" % lost if lost else ""))
        for line in wrong:
            print("    " + line)
        problems += len(wrong)
    return problems


def check(kernel, out):
    """Problems of one kernel; None when its archive cannot be reached."""
    result = boot(kernel, out)
    if result.returncode == 77:
        print("%s: skipped, %s" % (kernel, result.stdout.strip().splitlines()[-1]))
        return None
    problems = 0
    if result.returncode:
        print("%s: exit status %d\n%s" % (kernel, result.returncode, result.stdout[-3000:]))
        problems += 1
    return problems + sum(check_backend(kernel, backend, out) for backend in BACKENDS)


def main():
    results = []
    for kernel in sys.argv[1:] or KERNELS:
        with tempfile.TemporaryDirectory() as out:
            results.append(check(kernel, out))
            sys.stdout.flush()
    if all(r is None for r in results):
        print("no kernel's archive can be reached")
        sys.exit(77)
    sys.exit(1 if any(results) else 0)


main()
