#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=300
"""A collector that has received windows of three nodes, asked with query: times, lists, filters, edges, and what is not there."""
import os
import re
import shutil
import subprocess
import time

from lib import collector, testing
from lib.blkprof import run
from lib.pprof import Profile
from lib.testing import check, check_equal


def query(store, *options):
    return run("query", "--store", store, *options)


def totals(path):
    profile = Profile.read(path)
    return [sum(s.values[t] for s in profile.samples) for t in profile.types[:4]]


def asked(store, folder, *options):
    """Totals of the answer, and what was said about it."""
    out = os.path.join(folder, "%d.pb.gz" % time.monotonic_ns())
    done = query(store, "-o", out, *options)
    check_equal(done.returncode, 0, "exit status of query %s: %s" % (" ".join(options), done.stderr))
    return totals(out), done.stderr, out


def windows(store):
    """(node, start, end) in seconds, of each window that --list windows names."""
    done = query(store, "--list", "windows")
    check_equal(done.returncode, 0, "exit status of --list: " + done.stderr)
    return [(line.split()[0], seconds(line.split()[1]), seconds(line.split()[2])) for line in done.stdout.splitlines()[1:]]


def seconds(text):
    done = subprocess.run(["date", "-u", "-d", text, "+%s"], stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


def lists(store, from_to):
    nodes = [line.split()[0] for line in query(store, "--list", "nodes").stdout.splitlines()[1:]]
    check_equal(nodes, ["node-1", "node-2", "node-3"], "nodes")
    services = [line.split()[0] for line in query(store, "--list", "services", *from_to).stdout.splitlines()[1:]]
    check_equal(sorted(services), ["shop/service-%d/main" % i for i in range(3)], "services")


def filters(store, folder, from_to, everything):
    """Parts by node, service, device and label add up to the whole."""
    parts = {
        "--node": ["node-1", "node-2", "node-3"], "--service": ["shop/service-%d/main" % i for i in range(3)],
        "--device": ["nvme0n1", "dm-0"], "--label": ["op=read", "op=write"],
    }
    for option, values in parts.items():
        found = [asked(store, folder, *from_to, option, value)[0] for value in values]
        check_equal([sum(column) for column in zip(*found)], everything, "parts by %s" % option)
        check(all(0 < part[0] < everything[0] for part in found), "each part by %s is one" % option)


def edges(store, folder, first, last, everything):
    """A cut within a window shares it out: both sides add up, and it is said."""
    cut = first + 3
    left, said, _ = asked(store, folder, "--from", str(first), "--to", str(cut))
    right, _, _ = asked(store, folder, "--from", str(cut), "--to", str(last))
    check_equal([a + b for a, b in zip(left, right)], everything, "both sides of an edge")
    check("shared out by time" in said, "the edge is said: " + said)
    check(left[1] > 0, "the left side has something")


def readers(path):
    done = run("top", path)
    check(done.returncode == 0 and "module_" in done.stdout, "blkprof top opens it: " + done.stderr)
    go = shutil.which("go")
    if not go:
        print("   no go here: not opened with go tool pprof")
        return
    done = subprocess.run([go, "tool", "pprof", "-top", "-sample_index=io_time", path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=dict(os.environ, PPROF_TMPDIR=os.path.dirname(path)))
    check(done.returncode == 0 and "module_" in done.stdout, "go tool pprof opens it: " + done.stdout[:300])


def not_there(store, folder, first, last):
    done = query(store, "-o", folder + "/none", "--from", str(last + 100), "--to", str(last + 200))
    check_equal(done.returncode, 1, "exit status without data")
    named = re.findall(r"\d{4}-\d\d-\d\dT[\d:.]+Z", done.stderr)
    check(any(abs(seconds(when) - last) <= 1 for when in named), "the nearest window is named: " + done.stderr)
    check(not os.path.exists(folder + "/none"), "nothing was written")
    os.mkdir(folder + "/empty")
    for directory in folder + "/empty", folder + "/missing", "/etc/hostname":
        done = query(directory, "-o", folder + "/none", "--from", "-1h")
        check(done.returncode == 1 and directory in done.stderr, "no store at %s: %d %s" % (directory, done.returncode, done.stderr))
    check_equal(os.listdir(folder + "/empty"), [], "a directory that is no store stays as it is")
    for options in (["--from", "yesterday-ish"], ["--from", "-1m", "--to", "-2m"], []):
        done = query(store, *options)
        check_equal(done.returncode, 2, "exit status of %s" % options)


def queries():
    with testing.scratch() as folder, collector.Collector(folder) as c:
        got = collector.load(c, nodes=3, services=3, samples=40, batches=1, seconds=20, prefix="node")
        check_equal(got["stored"], 3, "batches stored")
        listed = windows(c.store)
        check_equal(len(listed), 3, "windows")
        first, last = min(w[1] for w in listed), max(w[2] for w in listed)
        from_to = ["--from", str(first), "--to", str(last)]
        everything, _, path = asked(c.store, folder, *from_to)
        stamp = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t)) for t in (first, last)]
        check_equal(asked(c.store, folder, "--from", stamp[0], "--to", stamp[1])[0], everything, "times as dates")
        check_equal(asked(c.store, folder, "--from", "-2h")[0], everything, "a time from now on back")
        lists(c.store, from_to)
        filters(c.store, folder, from_to, everything)
        edges(c.store, folder, first, last, everything)
        readers(path)
        not_there(c.store, folder, first, last)


testing.main(queries)
