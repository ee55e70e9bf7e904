#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=900
"""In guests: record beside processes, threads, cgroups, modules and devices that come and go, and beside recordings that do. It stays
small, its profile is whole, it leaves nothing in the kernel, and the kernel's log is clean. `soak.py KERNEL[:BACKEND]…`; VM_SOAK_SECONDS
(40) is the time of each; with it, all kernels and backends are the default, without it two."""
import os
import re
import sys
import tempfile

from matrix import ROOT, guest, verdict
from matrix.run import KERNELS
from lib.pprof import OPS, TIME, Profile

SECONDS = float(os.environ.get("VM_SOAK_SECONDS", "40"))
SHORT = ("5.10:kprobe", "newest:auto")
KINDS = ("processes", "threads", "cgroups", "modules", "scsi_removal", "nvme_removal", "mapper_removal", "loop_removal", "recordings")
# What a recording may hold: itself and the stacks of a short storm; what it may grow by once it has seen everything.
MEMORY_KIB = 192 << 10
GROWTH_KIB = 24 << 10
PERCPU_KIB = 1024
DESCRIPTORS = 320


def boot(kernel, backend, out):
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    command = [os.path.join(ROOT, "tools/vm/run"), kernel, "--timeout", str(int(SECONDS * 2) + 300), "--out", out]
    for disk in ("virtio", "virtio", "virtio", "scsi", "nvme"):
        command += ["--disk", disk]
    for file in (os.path.join(ROOT, "tests/vm/soak/guest.sh"), build + "/load/churn", build + "/load/ioload", *guest.PROGRAMS):
        command += ["--with", file]
    command += ["--", "sh", "/payload/guest.sh", backend, "%g" % SECONDS]
    return guest.vm(command)


def words(path):
    return [int(w) for w in verdict.text(path).split()]


def watched(out):
    """Memory and descriptors of the recorder, a second at a time."""
    numbers = words(out + "/watch")
    memory, descriptors = numbers[0::2], numbers[1::2]
    if len(memory) < SECONDS / 4:
        yield "only %d looks at the recorder" % len(memory)
        return
    settled = memory[len(memory) // 3:]
    print("    memory %d MiB at most, %+d MiB in the last two thirds; %d descriptors" % (
        max(memory) >> 10, (settled[-1] - settled[0]) >> 10, max(descriptors)))
    if max(memory) > MEMORY_KIB + SECONDS * 256:
        yield "%d KiB of memory" % max(memory)
    if settled[-1] - settled[0] > GROWTH_KIB + SECONDS * 256:
        yield "it grew from %d KiB to %d KiB" % (settled[0], settled[-1])
    if max(descriptors) > DESCRIPTORS:
        yield "%d descriptors" % max(descriptors)


def left_behind(out):
    for kind in ("prog", "map", "link"):
        more = set(words("%s/after.%s" % (out, kind))) - set(words("%s/before.%s" % (out, kind)))
        if more:
            yield "left in the kernel: %s %s" % (kind, sorted(more))
    attached = verdict.text(out + "/attached").strip()
    if attached:
        yield "still attached: %s" % attached[:300]
    percpu = words(out + "/percpu")
    if len(percpu) != 2 or percpu[1] - percpu[0] > PERCPU_KIB:
        yield "per-CPU memory of the kernel after three idle recordings: %s KiB" % percpu


def churned(out):
    rounds = {k: (words("%s/rounds.%s" % (out, k)) or [0])[0] for k in KINDS}
    print("    rounds: %s" % ", ".join("%s %d" % r for r in rounds.items()))
    return ["no round of %s" % k for k, n in rounds.items() if not n]


def profile_problems(out):
    profile = Profile.read(out + "/soak.pb.gz")
    lost = [re.search(r"cause=(\S+) count=(\d+)", c) for c in profile.comments if c.startswith("lost ")]
    print("    %d operations in %d samples; lost: %s" % (
        profile.total(OPS), len(profile), ", ".join("%s %s" % m.groups() for m in lost if m) or "nothing"))
    totals = sum(int(c.split(" ops=")[1].split()[0]) for c in profile.comments if c.startswith("total "))
    if profile.total(OPS) != totals:
        yield "%d operations in the samples, %d in the totals" % (profile.total(OPS), totals)
    if not profile.total(TIME):
        yield "no time"
    for frame in ("churn_read", "load_lookup"):
        if not profile.select(frame=frame).total(OPS):
            yield "nothing of %s" % frame


def soak(kernel, backend):
    """What is wrong; None when the kernel's archive cannot be reached."""
    with tempfile.TemporaryDirectory(prefix="blkprof-soak-") as out:
        status, output = boot(kernel, backend, out)
        if status == 77:
            print("SKIP %s: %s" % (kernel, output.splitlines()[-1]))
            return None
        wrong = ["exit status %d: %s" % (status, output[-2000:])] if status else []
        said = verdict.text(out + "/churn.txt").strip()
        print("\n    ".join(["%s %s:" % (kernel, backend)] + [line for line in said.splitlines() if line.startswith("soak: ")][-10:]))
        if not os.path.exists(out + "/soak.pb.gz"):
            return wrong + ["no profile: " + verdict.text(out + "/record.txt")[-500:]]
        for part in (churned, watched, profile_problems, left_behind):
            wrong += part(out)
    return wrong


def main():
    if guest.missing_programs():
        print("missing %s" % ", ".join(guest.missing_programs()))
        sys.exit(77)
    everything = ["%s:%s" % (k, b) for k in KERNELS for b in verdict.BACKENDS]
    results = []
    for name in sys.argv[1:] or (everything if "VM_SOAK_SECONDS" in os.environ else SHORT):
        kernel, _, backend = name.partition(":")
        wrong = soak(kernel, backend or "auto")
        results.append(wrong)
        if wrong is not None:
            print("\n    ".join(["%s %s" % ("FAIL" if wrong else "PASS", name)] + wrong), flush=True)
    if all(r is None for r in results):
        print("no kernel's archive can be reached")
        sys.exit(77)
    sys.exit(1 if any(results) else 0)


main()
