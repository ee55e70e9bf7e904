# SPDX-License-Identifier: Apache-2.0
"""What the measurements of following requests share: the three states, a small server that is followed, and how figures are told."""
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import threading
import time

import benchlib
from benchlib import blkprof, testing

STATES = ("nothing", "empty", "following")
HOOKS = 6  # at least so many programs are attached
REQUEST, ANSWER = b"GET /x?y=1 HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def cpu(pid):
    """CPU time of a process so far, threads that have ended too, in seconds."""
    return time.clock_gettime(~pid << 3 | 2)


# ---- the three states ----

def _attached(pid):
    n = 0
    for name in os.listdir("/proc/%d/fdinfo" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/fdinfo/%s" % (pid, name)) as f:
            n += "link_type" in f.read()
    return n


@contextlib.contextmanager
def following(pid, options=()):
    """blkprof requests of that process; yields its own pid."""
    process = subprocess.Popen([blkprof.path(), "requests", "-p", str(pid), *options], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.append(process.stderr.read()))
    reader.start()
    try:
        testing.wait_for(lambda: process.poll() is not None or _attached(process.pid) >= HOOKS, "blkprof requests", 90)
        if process.poll() is None:
            yield process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        reader.join()
        process.stderr.close()
    if process.returncode:
        raise RuntimeError("blkprof requests ended with %d: %s" % (process.returncode, said[0]))


@contextlib.contextmanager
def state(name, pid, options=(), settle=1.0):
    """Yields the pid of blkprof when that is what is measured, else None."""
    with contextlib.ExitStack() as stack:
        follower = None
        if name == "following":
            follower = stack.enter_context(following(pid, options))
        elif name == "empty":
            stack.enter_context(benchlib.Probes("empty-requests"))
        time.sleep(settle)
        yield follower


# ---- a server that is followed ----

def serve():
    """A process that answers requests of one connection after the other, as little as that can be: (pid, port)."""
    listener = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if pid:
        port = listener.getsockname()[1]
        listener.close()
        return pid, port
    while True:
        connection = listener.accept()[0]
        with contextlib.suppress(ConnectionError):
            while connection.recv(1000):
                connection.sendall(ANSWER)
        connection.close()


def _ask(port, rate):
    with socket.create_connection(("127.0.0.1", port)) as s:
        due = time.monotonic()
        while True:
            s.sendall(REQUEST)
            s.recv(1000)
            due += 1 / rate
            time.sleep(max(0.0, due - time.monotonic()))


@contextlib.contextmanager
def served(rate=0):
    """The server, asked `rate` times a second by another process; yields (pid, port)."""
    pid, port = serve()
    pids = [pid]
    try:
        if rate:
            asking = os.fork()
            if not asking:
                try:
                    _ask(port, rate)
                finally:
                    os._exit(1)
            pids.append(asking)
        yield pid, port
    finally:
        for one in reversed(pids):
            os.kill(one, signal.SIGKILL)
            os.waitpid(one, 0)


# ---- figures ----

def add_rows(path, rows):
    """Rows of earlier pieces, kept in a file, with these."""
    if not path:
        return rows
    with contextlib.suppress(FileNotFoundError), open(path) as f:
        rows = [json.loads(line) for line in f] + rows
    with open(path, "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows)
    return rows


def _interval(values):
    """Of few values the smallest and the largest."""
    return benchlib.median_interval(values) if len(values) >= 6 else (statistics.median(values), min(values), max(values))


def tell(rows, figure, unit, most, scale=1.0):
    """Each state's median, and the median of the rounds' ratios with its interval. most: percent that are asked for, None = nothing."""
    for name in STATES:
        print("   %-10s %12.2f %s (95%%: %.2f to %.2f)" % ((name,) + _with_unit(_interval([r[name][figure] * scale for r in rows]), unit)))
    for name, base in (("empty", "nothing"), ("following", "nothing"), ("following", "empty")):
        change = _interval([100 * (r[name][figure] / r[base][figure] - 1) for r in rows])
        asked = ", asked for: %+d%% at most" % most if most and (name, base) == ("following", "nothing") else ""
        print("   %-9s against %-7s %+7.2f%% (95%%: %+.2f to %+.2f)%s" % ((name, base) + change + (asked,)))


def _with_unit(interval, unit):
    return (interval[0], unit) + interval[1:]
