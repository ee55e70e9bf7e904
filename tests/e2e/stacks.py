#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deep stacks are cut at the limit, marked and counted; shallower ones are whole. Two recordings compare with -diff_base."""
import glob
import os
import subprocess

from lib import devices, testing
from lib.blkprof import record_command
from lib.pprof import OPS
from lib.testing import check, check_equal

COUNT = 31


def program():
    return os.path.join(devices.build(), "tests", "bpf", "deep_stack")


def read_deep(folder, depth, *options):
    with devices.file_of(os.path.join(folder, "data"), 1 << 20) as path:
        return record_command(folder, ["--rate", "0", "--op", "read", *options], [program(), path, str(depth), str(COUNT)])[0]


def whole():
    with testing.scratch() as folder:
        profile = read_deep(folder, 90)
        deep = profile.select(frame="dive")
        check_equal(deep.total(OPS), COUNT, "operations")
        check_equal(len(deep.select(frame="[truncated]")), 0, "truncated samples")
        check_equal(deep.select(frame="main").total(OPS), COUNT, "operations whose stack reaches main")
        check(not any("stack_truncated" in c for c in profile.comments), "stacks are counted as truncated")


def truncated():
    with testing.scratch() as folder:
        profile = read_deep(folder, 200)
        deep = profile.select(frame="dive")
        check_equal(deep.total(OPS), COUNT, "operations")
        check_equal(deep.select(frame="[truncated]").total(OPS), COUNT, "operations whose stack is marked")
        check_equal(deep.select(frame="deep_stack").total(OPS), COUNT, "operations below the process")
        check(any("cause=stack_truncated count=%d" % COUNT in c for c in profile.comments), "no count of truncated stacks: %r" % profile.comments)


def diff_base():
    """go tool pprof accepts one recording as the other's base; equal functions cancel."""
    with testing.scratch() as folder:
        files = []
        for name in ("base", "incident"):
            os.mkdir(os.path.join(folder, name))
            read_deep(os.path.join(folder, name), 10)
            files += glob.glob(os.path.join(folder, name, "*.pb.gz"))
        for go in ("go", "/usr/lib/go-1.19/bin/go"):
            if subprocess.run(["which", go], stdout=subprocess.DEVNULL).returncode:
                continue
            out = subprocess.run([go, "tool", "pprof", "-top", "-cum", "-sample_index=io_ops", "-diff_base", files[0], files[1]],
                                 capture_output=True, text=True, timeout=120)
            check_equal(out.returncode, 0, "status of %s tool pprof: %s" % (go, out.stderr))
            rows = [line.split() for line in out.stdout.splitlines() if line.endswith(" dive")]
            check(not rows or rows[0][3] == "0", "the function did not cancel: %r" % rows)
            check("of %d total" % COUNT in out.stdout, out.stdout)


testing.main(whole, truncated, diff_base)
