#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=120
"""`timeline` of a Puma server: its requests on the threads of its pool; its reactor and its acceptor busy with new connections and idle
with kept ones; who has the interpreter's lock runs, the others of the pool wait for it."""
import http.client
import os
import shutil
import socket
import subprocess
import threading

from lib import testing
from lib.testing import check, check_equal, scratch, skip, wait_for
from lib.timeline import Tracing, check_trace, named
from lib.trace import RUNNABLE, RUNNING

CLIENTS, REQUESTS, POOL = 4, 30, 4
APP = """
run lambda { |env|
  till = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.002
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < till
  [200, {"Content-Type" => "text/plain"}, ["ok"]]
}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Puma:
    def __init__(self, folder):
        if not shutil.which("puma"):
            skip("no puma here")
        self.port = free_port()
        with open(os.path.join(folder, "config.ru"), "w") as f:
            f.write(APP)
        command = ["puma", "-b", "tcp://127.0.0.1:%d" % self.port, "-t", "%d:%d" % (POOL, POOL), "-e", "production", "config.ru"]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers(self):
        try:
            self.request(None)
            return True
        except OSError:
            return False

    def request(self, connection):
        new = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        new.request("GET", "/page")
        new.getresponse().read()
        if not connection:
            new.close()

    def client(self, keep):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20) if keep else None
        for _ in range(REQUESTS):
            self.request(connection)

    def load(self, keep):
        clients = [threading.Thread(target=self.client, args=(keep,)) for _ in range(CLIENTS)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()

    def __enter__(self):
        wait_for(self.answers, "puma", 30)
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        self.process.wait()


def at_once(t, tids):
    """(time in which one or more of the threads run, time in which two or more do)"""
    edges = sorted((at, step) for s in t.states if s.tid in tids and s.state == RUNNING for at, step in ((s.start, 1), (s.end, -1)))
    one = two = running = last = 0
    for at, step in edges:
        one += (at - last) * (running >= 1)
        two += (at - last) * (running >= 2)
        running, last = running + step, at
    return one, two


def look(folder, puma, keep):
    """(trace, wake-ups of reactor and acceptor)"""
    with Tracing(folder, "-p", puma.process.pid) as tracing:
        puma.load(keep)
    t = tracing.trace
    check_trace(t, "keep" if keep else "new")
    pool = named(t, "puma srv tp")
    requests = [s for s in t.track_slices("request") if s.name == "GET /page"]
    check(len(requests) >= 0.95 * CLIENTS * REQUESTS, "%d requests of %d" % (len(requests), CLIENTS * REQUESTS))
    check_equal({t.tracks[t.tracks[s.track]["parent"]]["tid"] for s in requests} - set(pool), set(), "who else served")
    one, two = at_once(t, pool)
    check(two < 0.2 * one, "two threads of the pool run at once for %.1f of %.1f ms: there is one lock" % (two / 1e6, one / 1e6))
    locks = sum(s.name == "futex" for s in t.track_slices("wait") if t.tid(s) in pool)
    wakers = {s.waker for s in t.states if s.tid in pool and s.state == RUNNABLE}
    check(locks > REQUESTS and wakers & set(pool), "%d waits for the lock, handed on by %s" % (locks, wakers))
    others = [tid for tid, (_, name) in t.threads.items() if name in ("puma reactor", "puma srv")]
    return sum(s.tid in others and s.state == RUNNABLE for s in t.states)


def reactor_and_pool():
    with scratch() as folder, Puma(folder) as puma:
        kept, new = look(folder, puma, True), look(folder, puma, False)
        print("   reactor and acceptor are woken %d times for kept connections, %d for new ones" % (kept, new))
        check(new > CLIENTS * REQUESTS / 2 and new > 3 * kept, "kept connections wake reactor and acceptor %d times, new ones %d" % (kept, new))


testing.main(reactor_and_pool)
