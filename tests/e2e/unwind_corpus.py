#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=sanitized timeout=300
"""Programs whose stack is known, compiled in every way that matters: walked by unwind tables, each stack is the true one."""
import concurrent.futures
import os
import re
import shutil
import subprocess

from lib import devices, testing
from lib.testing import check, check_between, check_equal

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unwind")
RESULT = re.compile(r"(\d+) stops, (\d+) frames, (\d+) steps, (\d+) of them without a rule, (\d+) differ")
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
FORMS = (  # of the optimizing compiler
    "-static", "-static-pie", "-no-pie -fno-pie", "-fcf-protection=full -Wl,-z,ibtplt", "-fcf-protection=none", "-flto",
    "-mno-red-zone", "-fstack-protector-all", "-fstack-clash-protection", "-mstackrealign", "-maccumulate-outgoing-args",
    "-Wl,--no-eh-frame-hdr", "-Wl,-z,now", "-ffunction-sections -Wl,--gc-sections",
    "-g -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions",  # .debug_frame alone
    "-g -gz -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions",
    "-g -gdwarf64 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions",
)


def walker():
    return os.path.join(devices.build(), "tests", "unwind", "corpus_walk")


def compile_corpus(folder, compiler, options, source="corpus.c"):
    """The program, or None with the reason."""
    out = os.path.join(folder, re.sub(r"\W+", "_", "%s %s %s" % (compiler, options, source)))
    objects = []
    for name in (source, "corpus_stop.c"):
        language = "c++" if name.endswith(".cc") else "c"
        objects.append(out + "." + name + ".o")
        compiled = subprocess.run([compiler, "-pthread", *options.split(), "-x", language, "-c", os.path.join(SOURCES, name), "-o", objects[-1]],
                                  capture_output=True, text=True, timeout=60)
        if compiled.returncode:
            return None, compiled.stderr
    linked = subprocess.run([compiler, "-pthread", *options.split(), *objects, "-o", out], capture_output=True, text=True, timeout=60)
    return (out, "") if not linked.returncode else (None, linked.stderr)


def walk(folder, compiler, options, source="corpus.c", mode=None):
    """What is wrong with this build, or None; its counts."""
    program, why = compile_corpus(folder, compiler, options, source)
    if not program:
        return "%s %s does not compile: %s" % (compiler, options, why[:500]), None
    out = subprocess.run([walker(), program] + ([mode] if mode else []), capture_output=True, text=True, timeout=100)
    found = RESULT.search(out.stdout)
    if out.returncode or not found:
        return "%s %s %s: %s%s" % (compiler, options, source, out.stdout[-3000:], out.stderr[-1000:]), None
    return None, [int(n) for n in found.groups()]


def walk_all(builds):
    with testing.scratch() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda build: walk(folder, *build), builds))
    for wrong, _ in results:
        check(not wrong, wrong)
    counts = [n for _, n in results if n]
    print("%d builds, %d stops, %d frames" % (len(builds), sum(n[0] for n in counts), sum(n[1] for n in counts)))
    return counts


def compilers(*names):
    return [name for name in names if shutil.which(name)]


def levels():
    """Optimization, with and without frame pointers, by gcc and clang."""
    counts = walk_all([(c, "%s %s" % (level, pointers)) for c in compilers("gcc", "clang-16") for level in LEVELS
                       for pointers in ("-fomit-frame-pointer", "-fno-omit-frame-pointer")])
    check_equal(set(n[0] for n in counts), {14}, "stops of each build")


def forms():
    counts = walk_all([("gcc", "-O2 " + form) for form in FORMS] + [("clang-16", "-O2 " + form) for form in FORMS[:3] if shutil.which("clang-16")])
    check_equal(set(n[0] for n in counts), {14}, "stops of each build")


def musl():
    if not shutil.which("musl-gcc"):
        testing.skip("no musl-gcc (package musl-tools)")
    walk_all([("musl-gcc", options, "corpus.c", "musl") for options in ("-O2", "-O0", "-O2 -static")])


def exceptions():
    builds = compilers("g++", "clang++-16")
    if not builds:
        testing.skip("no C++ compiler (package g++)")
    counts = walk_all([(c, "%s %s" % (level, form), "corpus_exceptions.cc") for c in builds for level in ("-O0", "-O2", "-O3")
                       for form in ("", "-static")])
    check_equal(set(n[0] for n in counts), {3}, "stops of each build")


def every_instruction():
    """Between two stops, at each instruction of the program, of libc and of PLT stubs: a stack kept by following calls and returns."""
    counts = walk_all([("gcc", "-O2 " + form, "corpus.c", "steps") for form in ("-Wl,-z,now", "-O0 -Wl,-z,now", "-Wl,-z,lazy", "-static")])
    for n, form in zip(counts, ("now", "now, -O0", "lazy", "static")):
        check_between(n[2], 2000, 50000, "instructions followed (%s)" % form)
        # There is no rule below _dl_runtime_resolve, whose CFA is in rbx, and in the PLT of a static program, a jump an entry.
        check(n[3] <= n[2] * {"lazy": 0.25, "static": 0.01}.get(form, 0), "%d of %d instructions have no rule (%s)" % (n[3], n[2], form))


if not shutil.which("gcc"):
    testing.skip("no gcc")
testing.main(levels, forms, musl, exceptions, every_instruction)
