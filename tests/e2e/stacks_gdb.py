#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=600
"""Frames equal to gdb's: gdb stops packaged programs at each of the system calls that read while they are recorded, and every
stack of the profile is, address by address, one that gdb showed."""
import contextlib
import os
import re
import shutil
import subprocess
import sys

from lib import blkprof, programs, testing
from lib.testing import check

STOPS = 900  # half of them are returns
SAMPLES = 200
GDB = r'''
set pagination off
set confirm off
set debuginfod enabled off
set backtrace past-main on
set backtrace past-entry on
set backtrace limit 130
catch syscall pread64
catch syscall read
python
import os, time
print("READY", flush=True)
seen = set()
for stop in range(%d):
    gdb.execute("continue", to_string=True)
    try:
        frame = gdb.newest_frame()
    except gdb.error:
        break
    stack = []
    while frame is not None:
        if frame.type() != gdb.INLINE_FRAME:
            stack.append("%%x" %% frame.pc())
        frame = frame.older()
    if tuple(stack) not in seen:
        seen.add(tuple(stack))
        print("STACK " + " ".join(stack), flush=True)
print("DONE", flush=True)
while not os.path.exists("%s"):
    time.sleep(0.05)
end
detach
'''


def mappings(pid):
    """[(start, limit, path, offset)] of executable memory."""
    found = []
    with open("/proc/%d/maps" % pid) as f:
        for line in f:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) \S+ \S+\s*(.*)", line)
            if m:
                found.append((int(m[1], 16), int(m[2], 16), m[4], int(m[3], 16)))
    return found


def place(maps, address):
    for start, limit, path, offset in maps:
        if start <= address < limit:
            return path, address - start + offset
    return None, address


class Gdb:
    """gdb attached to a process; it goes on from stop to stop, and holds the process still at the last until the block ends."""

    def __init__(self, pid, folder):
        self.over = os.path.join(folder, "over")
        script = os.path.join(folder, "gdb")
        with open(script, "w") as f:
            f.write(GDB % (STOPS, self.over))
        self.process = subprocess.Popen(["gdb", "-nx", "-batch", "-p", str(pid), "-x", script], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def lines(self, until):
        found = []
        for line in self.process.stdout:
            found.append(line.rstrip())
            if line.startswith(until):
                return found
        raise RuntimeError("gdb ended: %s" % "\n".join(found[-30:]))

    def __enter__(self):
        self.lines("READY")
        return self

    def stacks(self, maps):
        """As places, callers by the last byte of their call."""
        found = set()
        for line in self.lines("DONE"):
            if line.startswith("STACK "):
                found.add(tuple(place(maps, int(a, 16) - (i > 0)) for i, a in enumerate(line.split()[1:])))
        return found

    def __exit__(self, *exc):
        with open(self.over, "w"):
            pass
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.communicate(timeout=20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def compare(pid, folder, begin):
    """Records the process while gdb stops it and `begin` makes it read."""
    if not shutil.which("gdb"):
        testing.skip("gdb is not installed (package gdb)")
    programs.drop_caches()
    with blkprof.Recording(folder, "--pid", str(pid), "--rate", "0", "--op", "read") as recording, Gdb(pid, folder) as gdb:
        begin()
        stacks = gdb.stacks(mappings(pid))
        profile = recording.stop()
    leaves = {s[0] for s in stacks}
    samples = profile.where(lambda s: s.places and s.places[0] in leaves and not s.frames[-2].startswith("[unwind tables"))
    equal = samples.where(lambda s: s.places in stacks)
    print("   %d operations, %d of them with one of gdb's %d stacks" % (samples.total("io_ops"), equal.total("io_ops"), len(stacks)))
    check(samples.total("io_ops") >= SAMPLES, "only %d operations: %s" % (samples.total("io_ops"), profile.show(5)))
    if not check(equal.total("io_ops") == samples.total("io_ops"), "stacks that gdb does not have"):
        for s in samples.where(lambda s: s.places not in stacks).samples[:3]:
            print("   blkprof: %s" % " ".join("%s+%x" % (os.path.basename(p), o) for p, o in s.places))
            nearest = max(stacks, key=lambda g: sum(a == b for a, b in zip(g, s.places)))
            print("   gdb:     %s" % " ".join("%s+%x" % (os.path.basename(p or "?"), o) for p, o in nearest))


@contextlib.contextmanager
def waiting(args):
    """A program that begins when it is told so on its standard input."""
    process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def begin(text="go\n"):
        process.stdin.write(text)
        process.stdin.flush()

    try:
        yield process.pid, begin
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


def python3():
    with testing.scratch() as folder:
        args = [sys.executable, "-c", "import sys; sys.stdin.readline()\n" + programs.PYTHON, programs.data_file(folder, 16 << 20)]
        with waiting(args) as (pid, begin):
            testing.wait_for(lambda: "libc.so" in str(mappings(pid)), "python3")
            compare(pid, folder, begin)


def sqlite3():
    with testing.scratch() as folder:
        args = programs.sqlite(folder)[1]
        with waiting(args[:2]) as (pid, begin):
            begin("select 1;\n")
            compare(pid, folder, lambda: begin(args[2] + "\n"))


@contextlib.contextmanager
def session(args, ask_pid):
    """A client of a server: (pid of the server's side, a function that sends it a text)."""
    process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(text):
        process.stdin.write(text + ";\n")
        process.stdin.flush()

    try:
        send(ask_pid)
        yield int(process.stdout.readline()), send
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def postgresql():
    with testing.scratch() as folder, programs.postgresql(folder) as sql:
        with session(sql.client, "select pg_backend_pid()") as (pid, send):
            compare(pid, folder, lambda: send(programs.POSTGRES_LOAD))


def mariadb():
    """All its threads are stopped, and one reads."""
    with testing.scratch() as folder, programs.mariadb(folder) as sql:
        with session(sql.client, "select 1") as (_, send):
            compare(sql.pid, folder, lambda: send(programs.MARIADB_LOAD))


testing.main(python3, sqlite3, postgresql, mariadb)
