#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles of Go's own runtime, read by `blkprof` and by `go tool pprof`: the same samples (-raw), the same totals,
values and order (-top), the same merge."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BLKPROF = os.environ.get("BLKPROF") or os.path.join(os.environ.get("BUILD", "build"), "blkprof")
GO = next((g for g in ("/usr/local/go/bin/go", shutil.which("go") or "", "/usr/lib/go-1.19/bin/go") if os.path.exists(g)), None)
KINDS = ["cpu", "heap", "mutex", "block", "goroutine"]
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAIL", text)


def run(*args):
    result = subprocess.run(args, capture_output=True, text=True, timeout=120)
    if result.returncode:
        raise RuntimeError("%s: %s" % (" ".join(args), result.stderr))
    return result.stdout


def pprof(*args):
    return run(GO, "tool", "pprof", *args)


def raw(path):
    """What -raw shows, with ids replaced by what they stand for: {(stack, labels): values}, header."""
    text = pprof("-raw", path)
    header, rest = text.split("Samples:\n", 1)
    samples, rest = rest.split("Locations\n", 1)
    locations, mappings = rest.split("Mappings\n", 1)
    maps = {}
    for line in mappings.splitlines():
        m = re.match(r"(\d+): (.*)", line)
        if m:
            maps[m[1]] = m[2].strip()
    places, current = {}, None
    for line in locations.splitlines():
        m = re.match(r"\s+(\d+): (0x[0-9a-f]+) (?:M=(\d+) )?(.*)", line)
        if m:
            current = m[1]
            places[current] = (m[2], maps.get(m[3]), m[4].strip())
        else:
            places[current] += (line.strip(),)
    lines = samples.splitlines()
    types, found, key = lines[0], collections.Counter(), None
    values = {}
    for line in lines[1:]:
        m = re.match(r"\s*([-\d ]+): ([\d ]*)$", line)
        if m:
            key = [tuple(places[i] for i in m[2].split()), ()]
            value = tuple(int(v) for v in m[1].split())
            entry = len(values)
            values[entry] = (key, value)
        else:
            key[1] += tuple(sorted(line.split("] ")))
    sums = collections.defaultdict(lambda: None)
    for key, value in values.values():
        key = (key[0], key[1])
        sums[key] = value if sums[key] is None else tuple(a + b for a, b in zip(sums[key], value))
    return {k: v for k, v in sums.items() if any(v)}, types, [h for h in header.splitlines() if h]


NUMBER = re.compile(r"\s*(\S+) +(\S+)% +(\S+)% +(\S+) +(\S+)%  ?(.*)")


def exact_top(path, index):
    """flat, cum and name of every function, in pprof's order, in the smallest unit."""
    out = []
    unit = {"nanoseconds": "ns", "bytes": "B"}.get(index[1], "")
    args = ["-top", "-nodefraction=0", "-edgefraction=0", "-sample_index=" + index[0]] + (["-unit=" + unit] if unit else [])
    for line in pprof(*args, path).split("flat%", 1)[1].splitlines()[1:]:
        m = re.match(r"\s*(-?[\d.]+)\S* +\S+ +\S+ +(-?[\d.]+)\S* +\S+  (.*)", line)
        out.append((float(m[1]), float(m[2]), re.sub(r" \((partial-)?inline\)$", "", m[3])))
    return out


def own_top(path, index):
    """The same from `export -f collapsed`, whose values are exact, in the order of `top`."""
    flat, cum = collections.Counter(), collections.Counter()
    for line in run(BLKPROF, "export", "-f", "collapsed", "-t", index[0], path).splitlines():
        stack, value = line.rsplit(" ", 1)
        names = stack.split(";")
        flat[names[-1]] += int(value)
        for name in set(names):
            cum[name] += int(value)
    order = []
    text = run(BLKPROF, "top", "--by", "function", "-n", "0", "-t", index[0], path)
    for line in text.split("function\n", 1)[1].splitlines():
        # Values have units with a space in front; percentages tell the columns.
        name = re.split(r"%\s+", line, maxsplit=3)[3]
        name = re.sub(r"^(-|[\d.,]+( (ns|us|ms|s|B|[KMGT]iB))?)  ", "", name) if "mean  function" in text else name
        order.append(re.sub(r" \((partial-)?inline\)$", "", name))
    return [(float(flat[n]), float(cum[n]), n) for n in order]


def types_of(path):
    line = raw(path)[1]
    return [tuple(t.replace("[dflt]", "").split("/")) for t in line.split()]


def compare_raw(path, scratch):
    ours = os.path.join(scratch, "ours.pb.gz")
    run(BLKPROF, "export", "-f", "pprof", "-o", ours, path)
    want, got = raw(path), raw(ours)
    check(want[0] == got[0], "%s: samples differ: %d and %d" % (path, len(want[0]), len(got[0])))
    check(want[1] == got[1], "%s: types differ: %s and %s" % (path, want[1], got[1]))
    check(want[2] == got[2], "%s: headers differ: %s and %s" % (path, want[2], got[2]))
    return len(want[0])


def compare_top(path):
    for index in types_of(path):
        want = exact_top(path, index)
        if not want:
            continue
        got = own_top(path, index)
        check(want == got, "%s %s: top differs: %s" % (path, index[0], [x for x in zip(want, got) if x[0] != x[1]][:3] or
                                                       (len(want), len(got))))


def compare_merge(paths, scratch):
    theirs, ours = os.path.join(scratch, "theirs.pb.gz"), os.path.join(scratch, "ours.pb.gz")
    run(GO, "tool", "pprof", "-proto", "-output", theirs, *paths)
    run(BLKPROF, "export", "-f", "pprof", "-o", ours, *paths)
    want, got = raw(theirs), raw(ours)
    check(want[0] == got[0], "merge of %s: samples differ: %d and %d" % (paths, len(want[0]), len(got[0])))
    check(want[1] == got[1], "merge of %s: types differ: %s and %s" % (paths, want[1], got[1]))
    for index in types_of(ours):
        check(exact_top(theirs, index) == exact_top(ours, index), "merge of %s: -top of %s differs" % (paths, index[0]))


def recording(scratch, half):
    """A real one: I/O of programs that the system has, CPU samples beside it."""
    out = os.path.join(scratch, "record%d.pb.gz" % half)
    data = os.path.join("/var/tmp", "blkprof-differential-%d" % os.getpid())
    script = "dd if=/dev/urandom of=%s bs=64k count=%d oflag=direct; dd if=%s of=/dev/null bs=4k iflag=direct; sync %s; ls -lR /usr/lib >/dev/null || true" % (
        data, 37 * half, data, data)
    try:
        subprocess.run([BLKPROF, "record", "--rate", "0", "--cpu", "499", "-k", "-o", out, "--", "sh", "-c", script], check=True,
                       timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finally:
        if os.path.exists(data):
            os.unlink(data)
    return out


def main():
    if not GO:
        print("no Go on this machine")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.update(GOTOOLCHAIN="local", GOFLAGS="-mod=mod", GO111MODULE="on", GOCACHE=os.environ.get("GOCACHE") or os.path.expanduser("~/.cache/go-build"),
                          PPROF_TMPDIR=scratch, HOME=scratch)
        program = os.path.join(scratch, "goprofiles")
        subprocess.run([GO, "build", "-o", program, "."], cwd=os.path.join(HERE, "goprofiles"), check=True, timeout=300)
        profiles = os.path.join(scratch, "profiles")
        os.mkdir(profiles)
        subprocess.run([program, profiles], check=True, timeout=120)
        for kind in KINDS:
            paths = [os.path.join(profiles, "%s%d.pb.gz" % (kind, half)) for half in (1, 2)]
            n = [compare_raw(p, scratch) for p in paths]
            for p in paths:
                compare_top(p)
            compare_merge(paths, scratch)
            print("%-12s %d and %d samples" % (kind, *n))
        if os.geteuid() == 0:
            paths = [recording(scratch, half) for half in (1, 2)]
            n = [compare_raw(p, scratch) for p in paths]
            for p in paths:
                compare_top(p)
            compare_merge(paths, scratch)
            print("%-12s %d and %d samples" % ("record", *n))
        golden = os.path.join(HERE, "..", "golden", "pprof", "builder.pb")
        compare_raw(golden, scratch)
        compare_top(golden)
    print("%d differences" % len(failures))
    return 1 if failures else 0


sys.exit(main())
