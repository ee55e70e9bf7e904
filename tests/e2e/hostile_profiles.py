#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=900
"""Hostile profiles (lib/hostile.py): each gets an error line or a right answer from `top` and from every format of
`export`, within 10 seconds of CPU and 256 MB, and never a signal. docs/hostile-input.md is the list; `--write` writes it."""
import os
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lib import hostile  # noqa: E402

BLKPROF = os.environ.get("BLKPROF") or os.path.join(os.environ.get("BUILD", "build"), "blkprof")
DOC = os.path.join(HERE, "..", "..", "docs", "hostile-input.md")
SECONDS, MEGABYTES = 10, 256
COMMANDS = [("top", ["top"]), ("collapsed", ["export", "-f", "collapsed"]), ("speedscope", ["export", "-f", "speedscope"]),
            ("svg", ["export", "-f", "svg"]), ("pprof", ["export", "-f", "pprof"])]
failures = []


def fail(text):
    failures.append(text)
    print("FAIL", text, flush=True)


def sanitized():
    with open(BLKPROF, "rb") as f:
        return b"__asan_init" in f.read()


def run(args, path, scratch):
    """(status, first line of stderr, stdout's size, CPU seconds, MB)"""
    out, err = os.path.join(scratch, "out"), os.path.join(scratch, "err")
    with open(out, "wb") as o, open(err, "wb") as e:
        p = subprocess.Popen([BLKPROF, *args, path], stdin=subprocess.DEVNULL, stdout=o, stderr=e)
        deadline = time.monotonic() + 300
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                p.kill()
                _, status, usage = os.wait4(p.pid, 0)
                break
            time.sleep(0.001)
        p.returncode = 0
    with open(err, errors="replace") as f:
        line = f.read()
    return status, line, os.path.getsize(out), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def judge(name, what, expected, command, result, path, factor):
    status, line, size, seconds, memory = result
    where = "%s (%s) with %s" % (name, what, command)
    if os.WIFSIGNALED(status):
        fail("%s: signal %d: %s" % (where, os.WTERMSIG(status), line[-2000:]))
        return
    code = os.WEXITSTATUS(status)
    if code not in (0, 1):
        fail("%s: exit status %d: %s" % (where, code, line[-2000:]))
    if seconds > SECONDS * factor:
        fail("%s: %.1f s of CPU" % (where, seconds))
    if memory > MEGABYTES and factor == 1:
        fail("%s: %.0f MB" % (where, memory))
    if code == 1 and (line.count("\n") != 1 or size or path in line.replace(path, "", 1)):
        fail("%s: not one line, or something printed half: %r, %d bytes" % (where, line, size))
    if code == 0 and (line or not size and command != "collapsed"):
        fail("%s: %d bytes and %r" % (where, size, line))
    if command != "top":
        return
    if expected is None and code:
        fail("%s: refused: %s" % (where, line))
    if expected and (code == 0 or expected not in line):
        fail("%s: no '%s' in '%s'" % (where, expected, line.strip()))


def outcome(result, path):
    code = os.WEXITSTATUS(result[0])
    return "shown" if code == 0 else result[1].strip().replace("blkprof top: ", "").replace(path + ": ", "")


def generate(make, folder):
    """Writes the inputs in a process of its own: a child starts with the memory of its parent in its account."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            data = make()
            for i, piece in enumerate(data if isinstance(data, list) else [data]):
                with open(os.path.join(folder, "%05d" % i), "wb") as f:
                    f.write(piece)
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("the generator failed")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def one_kind(kind, scratch, factor):
    name, what, make, expected = kind
    outcomes, worst, most = {}, 0, 0
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        paths = generate(make, folder)
        for i, path in enumerate(paths):
            # Of the hundreds of variants, `top` sees each and the exports every seventh.
            for command, args in COMMANDS if len(paths) == 1 or i % 7 == 0 else COMMANDS[:1]:
                result = run(args, path, scratch)
                judge(name, what, expected, command, result, path, factor)
                worst, most = max(worst, result[3]), max(most, result[4])
                if command == "top":
                    outcomes.setdefault(outcome(result, path), 0)
                    outcomes[outcome(result, path)] += 1
    print("%-18s %6d, %5.2f s, %4.0f MB" % (name, len(paths), worst, most), flush=True)
    shown = outcomes.pop("shown", 0)
    if len(paths) > 1:
        return "%d of %d shown, the others an error that names the byte" % (shown, len(paths))
    return "shown" if shown else next(iter(outcomes))


def document(rows):
    out = ["# Hostile profiles", "",
           "What `blkprof top` and `blkprof export` do with profiles that are broken, foreign or made to hurt. Each is run by",
           "`tests/e2e/hostile_profiles.py`, which also writes this list (`--write`), with `top` and every format of `export`:",
           "within 10 seconds of CPU and 256 MB of memory, with one line and nothing half printed where it fails, never a signal.",
           "A byte is that of the decompressed message. `export` refuses the differences, which `top` shows.", "",
           "| kind | what it is | what `top` does |", "| --- | --- | --- |"]
    for name, what, result in rows:
        out.append("| %s | %s | %s |" % (name, what, result.replace("|", "\\|").replace("<", "&lt;")))
    return "\n".join(out) + "\n"


def main():
    factor = 8 if sanitized() else 1
    picked = [a for a in sys.argv[1:] if not a.startswith("-")]
    rows = []
    # A core file of 300 MB a signal would not tell more than the signal does.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as scratch:
        for kind in hostile.KINDS:
            if not picked or kind[0] in picked:
                rows.append((kind[0], kind[1], one_kind(kind, scratch, factor)))
    print("%d kinds, %d failures" % (len(rows), len(failures)))
    if picked:
        return 1 if failures else 0
    text = document(rows)
    if "--write" in sys.argv:
        with open(DOC, "w") as f:
            f.write(text)
    with open(DOC) as f:
        if f.read() != text:
            fail("docs/hostile-input.md is not what was seen: run with --write and look at the difference")
    return 1 if failures else 0


sys.exit(main())
