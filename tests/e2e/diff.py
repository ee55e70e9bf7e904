#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=600
"""Pairs of real recordings whose difference is known: the sentence, the first row, the profile that go tool pprof shows.
DIFF_PAIRS says how many recordings of an equal load are compared (4; twenty in a thorough run)."""
import json
import os
import shutil
import subprocess

from lib import devices, testing
from lib.blkprof import run
from lib.load import ioload_args
from lib.testing import check, check_equal


def normal(times=1):
    return ["read_index:pread:count=%d,rate=%d,order=random,threads=4" % (240 * times, 20 * times),
            "write_wal:pwrite:count=%d,rate=%d,size=16K,threads=2" % (60 * times, 10 * times),
            "scan_table:pread:count=%d,rate=%d,size=64K,threads=2" % (30 * times, 5 * times)]


NORMAL = normal()


def record(folder, name, disk, entries):
    """A recording of the entries, all at once; its path."""
    out = os.path.join(folder, name + ".pb.gz")
    done = run("record", "-o", out, "--device", disk.name, "--", "chrt", "-f", "10",
               *ioload_args(disk.node, *entries, extra=["-p"]))
    check_equal(done.returncode, 0, "exit status of record: " + done.stderr)
    return out


def diff(base, incident, *options):
    done = run("diff", "--json", "-n", "0", *options, base, incident)
    check_equal(done.returncode, 0, "exit status of diff: " + done.stderr)
    return json.loads(done.stdout)


def judged(base, incident, kind, device=None):
    found = diff(base, incident)
    print("   %s: %s" % (found["kind"], found["summary"]))
    check_equal(found["kind"], kind, "kind of change")
    if device:
        check_equal(found["devices"][0]["name"], device, "first device")
    return found


def differences():
    with testing.scratch() as folder, devices.slow_disk(folder, 1) as disk:
        base = record(folder, "base", disk, NORMAL)
        ten = record(folder, "ten", disk, normal(10))
        found = judged(base, ten, "more")
        check(8 < found["total"]["incident_ops"] / found["total"]["base_ops"] < 12, "ten times the operations")
        other = record(folder, "other", disk, ["load_scan:pread:count=240,rate=20,size=32K,threads=4"] + NORMAL[1:2])
        found = judged(base, other, "other")
        check_equal([r["new"] for r in found["functions"] if r["name"] == "load_scan"], [True], "load_scan is new")
        large = record(folder, "large", disk, ["scan_table:pread:count=60,rate=10,size=64K,threads=2"])
        small = record(folder, "small", disk, ["scan_table:pread:count=960,rate=160,size=4K,threads=2"])
        judged(large, small, "split", disk.name + " read")
        shown_by_pprof(folder, base, ten)


def slower_disk():
    with testing.scratch() as folder, devices.slow_disk(folder, 1) as disk:
        disk.delay(200)
        slow = record(folder, "slow", disk, ["read_index:pread:count=80,order=random,threads=2"])
        disk.delay(1)
        fast = record(folder, "fast", disk, ["read_index:pread:count=2000,order=random,threads=2"])
        found = judged(fast, slow, "slower", disk.name + " read")
        check(found["slower_work"] > 0.5 and found["more_work"] < -0.5, "the split: %s" % [found["more_work"], found["slower_work"]])
        judged(slow, fast, "faster", disk.name + " read")


def thread_pool():
    """The disk does one request after the other: more threads wait longer and get no more. On a machine with other work the disk
    itself may become slower meanwhile, and then that is what is said."""
    with testing.scratch() as folder, devices.slow_disk(folder, 1, direct_io=False) as disk:
        for _ in range(4):
            two = record(folder, "two", disk, ["read_index:pread:count=1000,order=random,threads=2"])
            twelve = record(folder, "twelve", disk, ["read_index:pread:count=1000,order=random,threads=12"])
            found = diff(two, twelve)
            served = found["total"]["incident_ops"] / found["total"]["base_ops"]
            print("   %s: %s" % (found["kind"], found["summary"]))
            if served >= 0.85:
                check(found["kind"] in ("queued", "more"), "kind of change: %s" % found["kind"])
                return
        testing.skip("the disk served only %.2gx the operations: other work has this machine" % served)


def slower_at_its_rate():
    """Requests come at the same rate, well below what the disk could serve."""
    with testing.scratch() as folder, devices.slow_disk(folder, 1) as disk:
        load = ["read_index:pread:count=200,rate=40,order=random,threads=4"]
        fast = record(folder, "fast", disk, load)
        disk.delay(20)
        judged(fast, record(folder, "slow", disk, load), "slower", disk.name + " read")


def equal():
    pairs = int(os.environ.get("DIFF_PAIRS", "4"))
    with testing.scratch() as folder, devices.slow_disk(folder, 1) as disk:
        kinds = []
        before = record(folder, "equal0", disk, NORMAL)
        for i in range(pairs):
            after = record(folder, "equal%d" % (i + 1), disk, NORMAL)
            found = diff(before, after)
            print("   %s: %s" % (found["kind"], found["summary"]))
            kinds.append(found["kind"])
            before = after
        check(kinds.count("noise") >= pairs - 1 - pairs // 20 if pairs < 20 else kinds.count("noise") >= pairs * 19 // 20,
              "equal loads: %s" % kinds)
        same = diff(before, before)
        check_equal([same["kind"], same["total"]["change"]], ["noise", 0], "a recording and itself")


def shown_by_pprof(folder, base, incident):
    out = os.path.join(folder, "diff.pb.gz")
    diff(base, incident, "-o", out)
    if not shutil.which("go"):
        print("   no go: not shown by go tool pprof")
        return
    cache = os.environ.get("GOCACHE") or os.path.expanduser("~/.cache/go-build")
    env = dict(os.environ, HOME=folder, PPROF_TMPDIR=folder, GOTOOLCHAIN="local", GOCACHE=cache)
    top = subprocess.run(["go", "tool", "pprof", "-sample_index=io_ops", "-top", out], env=env, text=True, capture_output=True, timeout=120)
    total = [line for line in top.stdout.splitlines() if "total" in line and "%" in line]
    want = subprocess.run(["go", "tool", "pprof", "-sample_index=io_ops", "-top", "-diff_base", base, incident], env=env, text=True,
                          capture_output=True, timeout=120)
    check_equal(top.returncode, 0, "go tool pprof: " + top.stderr)
    check(total and "io_ops" in top.stdout, "go tool pprof shows the difference")
    names = [line.split()[5] for line in want.stdout.splitlines() if line.strip()[:1].isdigit() or line.strip().startswith("-")]
    for name in ("read_index", "write_wal", "scan_table"):
        check(name in top.stdout and name in " ".join(names), "%s is shown" % name)
    for wrong in (["export", "-f", "svg", out], ["export", "-f", "pprof", out]):
        check_equal(run(*wrong).returncode, 1, "a difference is refused by export")


def refused():
    with testing.scratch() as folder:
        broken = os.path.join(folder, "broken")
        with open(broken, "w") as f:
            f.write("nothing")
        for args in ([broken, broken], ["/nonexistent", broken]):
            done = run("diff", *args)
            check_equal(done.returncode, 1, "exit status")
            check(args[0] in done.stderr and done.stderr.count("\n") == 1, "one line that names the file: " + done.stderr)
        check_equal(run("diff", broken).returncode, 2, "one file")


testing.main(differences, slower_disk, thread_pool, slower_at_its_rate, equal, refused)
