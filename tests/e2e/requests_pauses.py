#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=150
"""What a JVM stood still during its requests, against the JVM's own log of collections and safepoints."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import time

from lib import blkprof, testing
from lib.testing import check, check_between, check_equal, wait_for

SERVER = """
import com.sun.net.httpserver.*; import java.net.*; import java.util.*; import java.util.concurrent.*;
public class Stops {
  static volatile Object kept;
  static void answer(HttpExchange x) throws java.io.IOException {
    x.sendResponseHeaders(200, 2); x.getResponseBody().write("ok".getBytes()); x.close(); }
  public static void main(String[] a) throws Exception {
    HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    s.setExecutor(Executors.newFixedThreadPool(4));
    s.createContext("/quiet", x -> answer(x));
    s.createContext("/sleeps", x -> { try { Thread.sleep(300); } catch (InterruptedException e) { } answer(x); });
    s.createContext("/churns", x -> {
      long end = System.nanoTime() + 1000000000L; List<byte[][]> live = new ArrayList<>();
      for (int i = 0; System.nanoTime() < end; i++) {
        byte[][] b = new byte[1000][]; for (int k = 0; k < 1000; k++) b[k] = new byte[40];
        if (live.size() < 100) live.add(b); else live.set(i % 100, b);
        if (i % 2000 == 1999) System.gc(); }
      kept = live; answer(x); });
    s.start(); System.out.println(s.getAddress().getPort()); } }
"""


class Jvm:
    """A server whose log of pauses is read as the truth; within a with block."""

    def __init__(self, folder, *options, before=()):
        self.log = os.path.join(folder, "pauses-%d" % time.monotonic_ns())
        self.source = os.path.join(folder, "Stops.java")
        with open(self.source, "w") as f:
            f.write(SERVER)
        self.command = [*before, "java", "-Xmx160m", *options, "-Xlog:safepoint,gc:file=" + self.log, self.source]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, *paths):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        for path in paths:
            connection.request("GET", path)
            check_equal(connection.getresponse().read(), b"ok", "answer")
        connection.close()

    def pauses(self):
        """(ms in collections, ms in safepoints, how many of those) so far."""
        with open(self.log) as f:
            text = f.read()
        stopped = [int(ns) for ns in re.findall(r"Safepoint .*Total: *(\d+) ns", text)]
        return sum(float(ms) for ms in re.findall(r"Pause.* ([0-9.]+)ms", text)), sum(stopped) / 1e6, len(stopped)


class Following:
    """blkprof requests --json; within a with block."""

    def __init__(self, folder, *target):
        self.out = os.path.join(folder, "records-%d" % time.monotonic_ns())
        self.target = target

    def __enter__(self):
        self.file = open(self.out, "w+")
        self.errors = open(self.out + ".errors", "w+")
        self.process = subprocess.Popen([blkprof.path(), "requests", *self.target, "--json"], stdout=self.file, stderr=self.errors)
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGINT)
        self.status = self.process.wait(30)
        self.errors.seek(0)
        self.said = self.errors.read()
        self.file.seek(0)
        self.records = [r for r in map(json.loads, self.file) if r["kind_s"] == "request"]
        self.file.close()
        self.errors.close()

    def sees(self, jvm):
        """Whether its requests are told, and as those of a JVM."""
        jvm.ask("/quiet")
        with open(self.out) as f:
            lines = f.readlines()
        return any("safepoint_ms_f" in line or "/quiet" in line for line in lines if line.endswith("\n"))

    def of(self, path):
        return [r for r in self.records if r["path_s"] == path]


def agrees(jvm, following):
    """A request that makes garbage all the time has all pauses of its time; one that sleeps beside it those of its part."""
    before = jvm.pauses()
    jvm.ask("/churns")
    time.sleep(0.3)  # the log is written by the one that stopped them, behind it
    after = jvm.pauses()
    jvm.ask("/sleeps")
    return [b - a for a, b in zip(before, after)]


def held_against_the_log(*options):
    with testing.scratch() as folder, Jvm(folder, *options) as jvm:
        with Following(folder, "-p", str(jvm.process.pid)) as following:
            wait_for(lambda: following.sees(jvm), "the first record", 60)
            collections, safepoints, n = agrees(jvm, following)
    check_equal(following.status, 0, "exit status (it said %r)" % following.said)
    (churns,), (sleeps,) = following.of("/churns"), following.of("/sleeps")
    check(n > 10 and collections > 50, "the load makes pauses: %d, %.1f ms" % (n, collections))
    # Ours begin where the JVM tells of them, a little before its own clock does.
    check_between(churns["gc_ms_f"], 0.97 * collections, 1.05 * collections + 0.1 * n, "collections, against the log")
    check_between(churns["safepoint_ms_f"], 0.97 * safepoints, 1.03 * safepoints + 0.1 * n, "safepoints, against the log")
    check(churns["safepoint_ms_f"] <= churns["duration_ms_f"], "a pause is no longer than its request")
    check(sleeps.get("gc_ms_f", 0) <= 1, "a request without collections has some: %r" % sleeps.get("gc_ms_f"))
    for record in following.records:
        check("missing_ss" not in record, "missing: %r" % record.get("missing_ss"))


def serial():
    held_against_the_log("-XX:+UseSerialGC")


def parallel():
    held_against_the_log("-XX:+UseParallelGC")


def g1():
    held_against_the_log("-XX:+UseG1GC")


def begun_later():
    """It waits for the process; the JVM loads its library after it was found."""
    with testing.scratch() as folder, contextlib.ExitStack() as stack:
        following = stack.enter_context(Following(folder, "--cmdline", os.path.join(folder, "Stops.java")))
        time.sleep(1)
        jvm = stack.enter_context(Jvm(folder, "-XX:+UseSerialGC"))
        wait_for(lambda: following.sees(jvm), "the first record", 60)
        time.sleep(2.5)  # it looks again every two seconds
        collections = agrees(jvm, following)[0]
        stack.close()
    (churns,) = following.of("/churns")
    check_between(churns["gc_ms_f"], 0.95 * collections, 1.1 * collections + 20, "collections, against the log")


def without_probes():
    """A JVM that was built without them: its pauses are said to be missing, and all else is there."""
    java = os.path.realpath(shutil.which("java"))
    library = os.path.join(os.path.dirname(os.path.dirname(java)), "lib", "server", "libjvm.so")
    with testing.scratch() as folder:
        bare = os.path.join(folder, "libjvm.so")
        subprocess.run(["objcopy", "--remove-section", ".note.stapsdt", library, bare], check=True, timeout=60)
        before = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', bare, library)
        with Jvm(folder, "-XX:+UseSerialGC", before=before) as jvm, Following(folder, "-p", str(jvm.process.pid)) as following:
            wait_for(lambda: following.sees(jvm), "the first record", 60)
            jvm.ask("/churns")
            time.sleep(0.5)
    (churns,) = following.of("/churns")
    check_equal(churns.get("missing_ss"), ["gc_ms_f", "safepoint_ms_f"], "what is missing")
    check("gc_ms_f" not in churns and "incomplete_b" not in churns, "what is there: %r" % churns)
    check_equal(churns["attribution_s"], "exact", "attribution")
    check("without probes" in following.said, "it says so: %r" % following.said)


def main():
    testing.need_root()
    if not shutil.which("java"):
        testing.skip("no java here")
    testing.main(serial, parallel, g1, begun_later, without_probes)


if __name__ == "__main__":
    main()
