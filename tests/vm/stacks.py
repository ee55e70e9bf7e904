#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=900
"""In guests: the stacks of packaged programs reach main or a thread's start, the first moments included, and what io_uring's workers
do stands under the function that submitted it. `stacks.py KERNEL…`; VM_STACKS=all is every kernel, two are the default."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from matrix import ROOT, guest
from matrix.run import KERNELS
from lib import programs
from lib.pprof import OPS, Profile

SHORT = ("5.10", "newest")
READS = 6000
WHOLE = 0.98
PYTHON = "/usr/bin/python3"
HERE = os.path.join(ROOT, "tests/vm/stacks")
PROGRAMS = {"python3": "_PyEval_EvalFrameDefault", "dd": None, "reader": "scan_table"}
WORKER, SQPOLL = "[io_uring worker]", "[io_uring sqpoll]"


def python_home(folder):
    """As much of the library as the interpreter needs to start."""
    library = "/usr/lib/" + os.path.basename(os.path.realpath(PYTHON))
    home = os.path.join(folder, "home", "lib", os.path.basename(library))
    os.makedirs(home)
    shutil.copytree(library + "/encodings", home + "/encodings", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("os", "codecs", "io", "abc", "stat", "posixpath", "genericpath", "_collections_abc"):
        shutil.copy("%s/%s.py" % (library, name), home)
    return os.path.join(folder, "home")


def compile_reader(folder):
    out = os.path.join(folder, "reader")
    subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-o", out, HERE + "/reader.c"], check=True)
    return out


def boot(kernel, folder, out):
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    python = os.path.join(folder, "python3")
    shutil.copy(os.path.realpath(PYTHON), python)
    files = (HERE + "/guest.sh", HERE + "/reader.py", compile_reader(folder), python, python_home(folder), shutil.which("dd"),
             build + "/load/ioload")
    command = [os.path.join(ROOT, "tools/vm/run"), kernel, "--timeout", "400", "--out", out, "--disk", "virtio"]
    for file in files:
        command += ["--with", file]
    return guest.vm([*command, "--", "sh", "/payload/guest.sh", str(READS)])


def said(out, name):
    with open("%s/%s.txt" % (out, name), errors="replace") as f:
        return f.read()


def whole_programs(kernel, out):
    """(shares by program, what is wrong)"""
    shares, wrong = {}, []
    for name, function in PROGRAMS.items():
        samples = Profile.read("%s/%s.pb.gz" % (out, name)).select(root=name)
        total = samples.total(OPS)
        shares[name] = programs.share_whole(samples)
        if total < READS:
            wrong.append("%s %s: only %d operations of %d" % (kernel, name, total, READS))
        if shares[name] < WHOLE:
            wrong.append("%s %s: %.2f%% are whole, of\n%s" % (
                kernel, name, 100 * shares[name], samples.where(lambda s: not programs.is_whole(s)).show(5)))
        if function and samples.select(frame=function).total(OPS) < total / 2:
            wrong.append("%s %s: no %s in most stacks\n%s" % (kernel, name, function, samples.show(5)))
    return shares, wrong


def is_under(sample, function):
    frames = sample.frames[::-1]
    return function in frames and "main" in frames[:frames.index(function)] and WORKER in frames[frames.index(function) + 1:]


def short_of(got, want, profile):
    """Operations that are missing beyond the programs' runs that this kernel skipped, which preempts them."""
    skipped = sum(int(m[1]) for c in profile.comments for m in [re.match(r"lost .*cause=recursion count=(\d+)", c)] if m)
    return max(want - got - skipped, got - want)


def uring_workers(kernel, out):
    shares, wrong = {}, []
    for name, function in (("uring-async-read", "read_segment"), ("uring-async-write", "write_wal")):
        whole = Profile.read("%s/%s.pb.gz" % (out, name))
        samples = whole.select(root="ioload")
        marked = samples.select(frame=WORKER)
        shares[name] = marked.where(lambda s: is_under(s, function)).total(OPS) / (samples.total(OPS) or 1)
        if shares[name] < 1 or short_of(samples.total(OPS), 500, whole) > 0:
            wrong.append("%s %s: %.2f%% of %d operations are under %s\n%s" % (
                kernel, name, 100 * shares[name], samples.total(OPS), function, samples.show(5)))
    whole = Profile.read(out + "/uring-sqpoll-read.pb.gz")
    samples = whole.select(root="ioload")
    polled = samples.where(lambda s: {SQPOLL, WORKER} & set(s.frames)).total(OPS)
    if short_of(polled, 500, whole) > 0:
        wrong.append("%s uring-sqpoll-read: %d operations of 500 are the polling thread's\n%s" % (kernel, polled, samples.show(5)))
    return shares, wrong


def measure(kernel):
    """(shares, what is wrong), or None when the kernel cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        status, output = boot(kernel, folder, out)
        if status == 77:
            print("%s: skipped, %s" % (kernel, output.splitlines()[-1]))
            return None
        if status or os.path.exists(out + "/failed"):
            texts = [said(out, f[:-4]) for f in sorted(os.listdir(out)) if f.endswith(".txt")] if os.path.isdir(out) else []
            return {}, ["%s: exit status %d\n%s\n%s" % (kernel, status, output[-2000:], "\n".join(texts)[-3000:])]
        shares, wrong = whole_programs(kernel, out)
        more, also = uring_workers(kernel, out)
        return {**shares, **more}, wrong + also


def main():
    chosen = sys.argv[1:] or (KERNELS if os.environ.get("VM_STACKS") == "all" else SHORT)
    results = {k: r for k in chosen for r in [measure(k)] if r}
    if not results:
        print("no kernel's archive can be reached")
        sys.exit(77)
    columns = [*PROGRAMS, "uring-async-read", "uring-async-write"]
    print("| kernel | %s |\n| --- |%s" % (" | ".join(columns), " ---: |" * len(columns)))
    for kernel, (shares, _) in results.items():
        print("| %s | %s |" % (kernel, " | ".join("%.2f%%" % (100 * shares[c]) if c in shares else "-" for c in columns)))
    wrong = [line for _, lines in results.values() for line in lines]
    if wrong:
        print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
