#!/usr/bin/env python3
# test: program=plain timeout=400
# SPDX-License-Identifier: Apache-2.0
"""What others send to a collector: refused with a counter, never a crash, and nobody else is delayed."""
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import struct
import time

from lib.collector import Collector, Load, load
from lib.testing import check, check_equal, main, scratch, skip, wait_for

GREETING = b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL" + bytes(16) + b"\0" + bytes(31)


def hello(port, timeout=10):
    """A raw connection that has shaken hands as a DEALER without CURVE."""
    s = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    s.sendall(GREETING)
    got = b""
    while len(got) < 64:
        got += s.recv(64 - len(got)) or b"\0" * 64
    ready = b"\5READY\x0bSocket-Type\0\0\0\6DEALER"
    s.sendall(b"\4" + bytes([len(ready)]) + ready)
    return s


def ended(s, timeout=30):
    """The other side closed the connection."""
    s.settimeout(timeout)
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except socket.timeout:
        return False


def good(c, text, **options):
    """Batches of nodes that do nothing wrong are all stored."""
    result = load(c, nodes=3, batches=4, interval_ms=20, seconds=30, services=2, samples=10, **options)
    check_equal((result["sent"], result["stored"]), (12, 12), text)


def bad_messages():
    with scratch() as folder, Collector(folder) as c:
        want = {"garbage": None, "version": "version", "broken": "refused", "truncated": "refused", "bomb": "refused", "parts": None}
        for number, (bad, answer) in enumerate(want.items()):
            load_ = Load(c, nodes=2, batches=3, interval_ms=20, seconds=2, services=2, samples=10, bad=bad, prefix=bad).go()
            good(c, "stored beside '%s' messages" % bad, prefix="good-%d" % number)
            result = load_.result()
            check_equal(result["stored"], 0, "stored of '%s' messages" % bad)
            if answer:
                check(result["sent"] > 0 and result[answer] == result["sent"], "'%s' is answered %s: %s" % (bad, answer, result))
        status, took = c.stop()
        check_equal(status, 0, "exit status")
        n = c.counters()
        for cause in "malformed", "broken", "bomb", "version":
            check(n['refused_total{cause="%s"}' % cause] > 0, "refused for '%s': %s" % (cause, n))
        check(n['cut_total{cause="malformed"}'] > 0, "who sends garbage loses the connection")
        check_equal(n['batches_total{result="stored"}'], 12 * len(want), "batches stored")


def oversized_and_raw():
    with scratch() as folder, Collector(folder) as c:
        load(c, nodes=1, batches=1, interval_ms=20, seconds=1, services=1, samples=5, bad="oversized", prefix="large")
        noise = socket.create_connection(("127.0.0.1", c.port))
        noise.sendall(os.urandom(4096))
        check(ended(noise), "a connection of noise is closed")
        huge = hello(c.port)
        huge.sendall(b"\2" + struct.pack(">Q", 1 << 62) + b"x" * 1000)  # the length of a frame that never comes
        check(ended(huge), "a frame of 4 EiB is refused at its length")
        half = hello(c.port)
        half.sendall(b"\2" + struct.pack(">Q", 1 << 20) + b"x" * 1000)
        half.close()
        good(c, "stored after raw connections")
        check(c.rss() < 1 << 30, "memory: %d" % c.rss())
        c.stop()


def endless_message():
    """Parts of a message that never ends: libzmq keeps them all."""
    with scratch() as folder, Collector(folder) as c:
        s, sent = hello(c.port), 0
        part = b"\3" + struct.pack(">Q", 1 << 20) + bytes(1 << 20)
        try:
            while sent < 2 << 30:
                s.sendall(part)
                sent += len(part)
        except OSError:
            pass
        check(sent < 1 << 30, "cut after %d bytes" % sent)
        good(c, "stored afterwards")
        c.stop()
        check_equal(c.counters()['cut_total{cause="endless_message"}'], 1, "connections cut")


def many_connections():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with scratch() as folder, Collector(folder, files=1024) as c:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        connections = []
        for _ in range(3000):
            try:
                connections.append(socket.create_connection(("127.0.0.1", c.port), timeout=5))
            except OSError:
                break
        good(c, "stored beside %d idle connections" % len(connections))
        check(len(connections) > 1000, "there were %d connections" % len(connections))
        for s in connections:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        good(c, "stored afterwards", prefix="later")
        c.stop()
        check(c.counters()['cut_total{cause="too_many"}'] > 0, "some were cut")


def keys():
    with scratch() as folder, Collector(folder, curve=True) as c:
        first = Load(c, keys=folder + "/a", nodes=2, batches=1000, interval_ms=100, seconds=60, services=1, samples=5, prefix="a")
        other = Load(c, keys=folder + "/b", nodes=1, batches=3, interval_ms=50, seconds=2, services=1, samples=5, prefix="b")
        wrong = Load(c, keys=folder + "/w", nodes=1, batches=3, interval_ms=50, seconds=10, services=1, samples=5, prefix="w", bad="node")
        with open(folder + "/a") as f:
            one, two = f.read().splitlines()
        with open(folder + "/w") as f:
            third = f.read().strip()
        with open(c.allowed, "w") as f:
            f.write("# nodes\n%s\n%s # of the second rack\n%s\n" % (one, two, third))
        c.signal(signal.SIGHUP)
        wait_for(lambda: "allowed keys read again: 3" in c.log(), "the reload")
        first.go()
        answer = wrong.go().result()
        check_equal((answer["sent"], answer["unauthorized"]), (3, 3), "another node's name")
        answer = other.go().result()
        check_equal((answer["stored"], answer["unauthorized"]), (0, 0), "a key that is not in the list does not even connect")
        check("refused a connection from" in c.log(), "the refusal is logged")
        with open(folder + "/b") as f:
            check(f.read().split()[0] in c.log(), "with the key")
        time.sleep(1)
        with open(c.allowed, "w") as f:
            f.write("%s\n" % one)
        wait_for(lambda: "allowed keys read again: 1" in c.log(), "the change to be seen", 20)
        time.sleep(1)
        first.process.send_signal(signal.SIGTERM)
        answer = first.result()
        check(answer["unauthorized"] > 0, "a revoked key is refused on its open connection: %s" % answer)
        check(answer["stored"] > answer["unauthorized"], "the other one goes on: %s" % answer)
        with open(c.allowed, "w") as f:
            f.write("nonsense\n")
        c.signal(signal.SIGHUP)
        wait_for(lambda: "allowed keys stay as they were" in c.log(), "the broken list")
        plain = hello_fails(c.port)
        check(plain, "a connection without CURVE is refused")
        c.stop()
        n = c.counters()
        check(n['refused_total{cause="unknown_key"}'] > 0 and n["handshakes_refused_total"] > 0, "counted: %s" % n)
        check_equal(n['refused_total{cause="wrong_node"}'], 3, "messages for another node")


def hello_fails(port):
    try:
        return ended(hello(port))
    except OSError:
        return True


def again_and_killed():
    """What was acknowledged is there after kill -9, once, whatever is sent again."""
    with scratch() as folder:
        c = Collector(folder)
        acknowledged = 0
        for round_ in range(4):
            c.start()
            work = Load(c, nodes=5, batches=100000, interval_ms=5, seconds=60, services=2, samples=10, prefix="r%d" % round_).go()
            time.sleep(1.5)
            c.kill()
            time.sleep(0.5)
            work.process.send_signal(signal.SIGTERM)
            acknowledged += work.result()["stored"]
        with c:
            good(c, "stored after four kills", prefix="last")
        spans = rows(c.store)
        check(acknowledged > 0 and spans >= acknowledged + 12, "%d windows in the store, %d acknowledged" % (spans, acknowledged + 12))


def rows(store):
    """Windows in a store that nobody uses."""
    name = next(n for n in os.listdir(store) if n.endswith((".db", ".sqlite", ".sqlite3")))
    with sqlite3.connect("file:%s/%s?mode=ro" % (store, name), uri=True) as db:
        return db.execute("SELECT count(*) FROM spans WHERE level = 0").fetchone()[0]


def synced_before_acknowledged():
    if not shutil.which("strace"):
        skip("no strace here")
    with scratch() as folder:
        trace = folder + "/trace"
        env = {"ASAN_OPTIONS": "detect_leaks=0"}  # which ptrace does not go with
        with Collector(folder, wrapper=["strace", "-f", "-ttt", "-o", trace, "-e", "trace=fdatasync,fsync,sendto,write,writev"],
                       env=env) as c:
            with open(trace) as f:
                f.seek(0, 2)
                mark = f.tell()
            good(c, "stored")
            c.stop()
        with open(trace) as f:
            f.seek(mark)
            lines = f.read().splitlines()
        syncs = [float(l.split()[1]) for l in lines if re.search(r"(fdatasync|fsync)\b.*= 0", l)]
        # An answer: 20 bytes of header behind libzmq's two, and two of status.
        answers = [float(l.split()[1]) for l in lines if re.search(r'send\w*\(\d+, "\\0\\26BLKP', l)]
        check(syncs and len(answers) > 0, "%d syncs, %d answers seen" % (len(syncs), len(answers)))
        check(all(any(s < a for s in syncs) for a in answers), "each answer has a sync before it")


def stops_at_once():
    with scratch() as folder, Collector(folder) as c:
        work = Load(c, nodes=20, batches=100000, interval_ms=10, seconds=60, services=5, samples=50).go()
        time.sleep(1)
        status, took = c.stop()
        work.process.send_signal(signal.SIGTERM)
        work.result()
        check_equal(status, 0, "exit status under load")
        print("   stopped in %.2f s" % took)


main(bad_messages, oversized_and_raw, endless_message, many_connections, keys, again_and_killed, synced_before_acknowledged,
     stops_at_once)
