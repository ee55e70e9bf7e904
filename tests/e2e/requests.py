#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=120
"""Requests of a real HTTP server that does known I/O, against what the server and its clients measured themselves."""
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from lib import agent, blkprof, devices, testing
from lib.testing import check, check_between, check_equal, wait_for

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "http_server.py")


class Server:
    def __init__(self, folder, device):
        self.process = subprocess.Popen([sys.executable, SERVER, "0", device, folder], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.pid = self.process.pid

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def truth(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/truth")
        result = {t["trace"]: t for t in json.loads(connection.getresponse().read()) if t["trace"]}
        connection.close()
        return result

    def raw(self, *parts, pause=0.0, answer=True):
        """What the server answers to these bytes, sent one after the other."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
            result = b""
            with contextlib.suppress(OSError):  # it may have had enough
                for part in parts:
                    s.sendall(part)
                    time.sleep(pause)
                if not answer:
                    return b""
                s.shutdown(socket.SHUT_WR)
                while part := s.recv(65536):
                    result += part
            return result


@contextlib.contextmanager
def slow_server(delay_ms=2.0):
    with testing.scratch() as folder, devices.slow_disk(folder, delay_ms, size="64M") as disk:
        server = Server(folder, disk.node)
        try:
            yield folder, disk, server
        finally:
            server.close()


class Following:
    """`blkprof requests --json` in the background; records() ends it."""

    def __init__(self, folder, server, *options):
        self.out = os.path.join(folder, "records-%d" % time.monotonic_ns())
        self.err = self.out + ".stderr"
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = subprocess.Popen([blkprof.path(), "requests", "-p", str(server.pid), "--json", *options], stdout=out, stderr=err)
        self.wait_until_seen(server)

    def wait_until_seen(self, server):
        def seen():
            server.raw(b"GET /first HTTP/1.1\r\nConnection: close\r\n\r\n")
            return os.path.getsize(self.out) or self.process.poll() is not None
        wait_for(seen, "the first record", 60)

    def records(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=30)
        with open(self.out) as f, open(self.err) as err:
            records, said = [json.loads(line) for line in f], err.read()
        check_equal(status, 0, "exit status (it said %r)" % said)
        return [r for r in records if r.get("path_s") != "/first" and r.get("handler_s") != "/first"], said


def client(server, name, targets, times):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for i, (method, target, body) in enumerate(targets):
        trace = "%s-%d" % (name, i)
        start = time.monotonic_ns()
        connection.request(method, target, body, {"X-Trace-Id": trace})
        connection.getresponse().read()
        times[trace] = time.monotonic_ns() - start
    connection.close()


def mix(seed, n):
    """Requests of all kinds, the same each time."""
    kinds = [("GET", "/solr/books/select?q=secret&rows=%d&readv=3", None), ("GET", "/solr/books/select?q=secret&fault=%d&fault=2", None),
             ("POST", "/solr/books/update?commit=true&writev=2&fsync=1&n=%d", b"d" * 9000), ("GET", "/plain?sleep=2&pread=5&n=%d", None),
             ("GET", "/solr/admin/cores?wait=1&burn=2&n=%d", None), ("GET", "/big?chunked=1&bytes=40000&readv=1&n=%d", None)]
    for i in range(n):
        method, target, body = kinds[(seed + i) % len(kinds)]
        yield method, target % (i + 1) if "fault=%d" not in target else target % 1, body


def run_clients(server, n_clients, n):
    times = {}
    threads = [threading.Thread(target=client, args=(server, "c%d" % k, list(mix(k, n)), times)) for k in range(n_clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return times


COUNTS = {"readv": "sys_readv_ops_i", "writev": "sys_writev_ops_i", "fsync": "fsync_ops_i", "fault": "fault_disk_ops_i"}


def check_record(r, t, client_ns):
    what = t["trace"]
    check_equal((r["status_i"], r["attribution_s"], r["tid_i"]), (200, "exact", t["tid"]), what)
    for name, field in COUNTS.items():
        check_equal(r.get(field, 0), t[name], "%s %s" % (what, field))
    check(r.get("sys_pread_ops_i", 0) >= t["pread"], "%s: preads" % what)
    check_equal(r["read_bytes_l"] // 4096, t["readv"] + t["fault"] + t["pread"], what + " read bytes")
    check_between(r["duration_ms_f"] * 1e6, t["ns"], client_ns, what + " duration")
    total = sum(r.get(field, 0) for field in ("oncpu_ms_f", "runq_ms_f", "blocked_ms_f"))
    check_between(total, r["duration_ms_f"] - 0.001, r["duration_ms_f"] + 0.001, "on CPU, queued and blocked of %r" % r)
    check(r["read_duration_ms_f"] * 1e6 <= t["readv_ns"] + t["pread_ns"] + t["fault_ns"], what + ": more read time than there was")
    check("secret" not in json.dumps(r), what + ": a parameter's value is kept")


def check_sums(records, truth):
    """What single requests do not show: that nothing is missing on the whole."""
    def ours(field):
        return sum(r.get(field, 0) for r in records) * 1e6

    def theirs(*fields):
        return sum(t[f] for t in truth for f in fields)
    # What the server measured includes getting Python's interpreter back.
    check_between(ours("sys_readv_ms_f"), 0.7 * theirs("readv_ns"), theirs("readv_ns"), "read time")
    check_between(ours("fsync_ms_f"), 0.6 * theirs("fsync_ns"), theirs("fsync_ns"), "sync time")
    check_between(ours("fault_io_ms_f"), 0.6 * theirs("fault_ns"), theirs("fault_ns"), "fault time")
    check_between(ours("sleep_wait_ms_f"), 0.2 * theirs("sleep_ns"), theirs("sleep_ns"), "sleep")
    # Where a thread waits for Python's interpreter is a lock, too.
    check(ours("lock_wait_ms_f") >= 0.7 * theirs("wait_ns"), "lock time: %g of %g" % (ours("lock_wait_ms_f"), theirs("wait_ns")))
    check(ours("oncpu_ms_f") >= theirs("oncpu_ns"), "CPU time: %g of %g" % (ours("oncpu_ms_f"), theirs("oncpu_ns")))
    check(ours("runq_ms_f") >= 0.95 * theirs("runq_ns"), "queue time: %g of %g" % (ours("runq_ms_f"), theirs("runq_ns")))


def ground_truth():
    with slow_server() as (folder, disk, server):
        following = Following(folder, server)
        times = run_clients(server, 12, 30)
        truth = server.truth()
        records, said = following.records()
    by_trace = {}
    for r in records:
        if r["kind_s"] == "request" and r.get("trace_id_s"):
            by_trace.setdefault(r["trace_id_s"], []).append(r)
    check_equal(said, "", "what it said")
    check_equal(sorted(by_trace), sorted(times), "requests seen")
    check(all(len(rs) == 1 for rs in by_trace.values()), "a request is told twice")
    for trace, rs in by_trace.items():
        check_record(rs[0], truth[trace], times[trace])
    check_sums([rs[0] for rs in by_trace.values()], list(truth.values()))
    slow = [rs[0] for rs in by_trace.values() if "readv" in rs[0]["path_s"] + rs[0].get("query_s", "")]
    check_equal({r.get("disk_device_s") for r in slow}, {disk.name}, "device of the longest I/O")
    check_equal({r.get("core_s") for r in slow if r["path_s"].startswith("/solr/books")}, {"books"}, "core")


def wire_forms():
    """Heads in pieces, pipelines, bodies of every kind, interim answers, connections that break off."""
    with slow_server(0.5) as (folder, disk, server):
        following = Following(folder, server)
        server.raw(*[bytes([b]) for b in b"GET /bytes HTTP/1.1\r\nConnection: close\r\n\r\n"], pause=0.002)
        server.raw(b"".join(b"GET /pipe%d?readv=1 HTTP/1.1\r\n\r\n" % i for i in range(3)))
        server.raw(b"POST /chunks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", pause=0.02)
        server.raw(b"POST /slow HTTP/1.1\r\nContent-Length: 10\r\n\r\n01234", b"56789", pause=0.2)
        server.raw(b"POST /expects HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", b"hello", pause=0.1)
        server.raw(b"GET /missing?status=404 HTTP/1.1\r\n\r\n")
        server.raw(b"POST /broken HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf", answer=False)
        server.raw(b"GET /hdr HTTP/1.1\r\nX: " + b"a" * 30000 + b"\r\n\r\n")
        time.sleep(0.3)
        records, said = following.records()
    seen = {}
    for r in records:
        seen.setdefault(r.get("path_s"), []).append(r)
    for path in ("/bytes", "/pipe0", "/pipe1", "/pipe2", "/chunks", "/slow", "/expects", "/missing", "/hdr"):
        if check_equal(len(seen.get(path, [])), 1, path):
            r = seen[path][0]
            check_equal(r.get("status_i"), 404 if path == "/missing" else 200, path + " status")
            check_equal(r["attribution_s"], "exact", path)
    for i in range(3):
        check_equal(seen["/pipe%d" % i][0].get("sys_readv_ops_i"), 1, "reads of /pipe%d" % i)
    check(seen["/slow"][0]["client_wait_ms_f"] >= 150, "wait for the slow client: %r" % seen["/slow"][0].get("client_wait_ms_f"))
    check(seen["/slow"][0]["total_io_duration_ms_f"] < 100, "a client's slowness is no I/O")
    check(seen["/bytes"][0]["client_wait_ms_f"] >= 40, "wait for a client of single bytes")
    # The server takes the half for the whole.
    check_equal(seen["/broken"][0].get("req_bytes_l"), len(b"POST /broken HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf"), "bytes of half a body")


def hostile():
    """What is no HTTP harms nobody, and is counted."""
    with slow_server(0.5) as (folder, disk, server):
        following = Following(folder, server)
        server.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500))
        server.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100))
        server.raw(os.urandom(3000))
        server.raw(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n")
        server.raw(b"GET /x HTTP/1.1\r\n" + b"H: v\r\n" * 20000 + b"\r\n")
        server.raw(b"G" * 5000)
        server.raw(b"GET \xff\x00\" HTTP/1.1\r\n\r\n")
        lorises = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for s in lorises:
            s.sendall(b"GET /loris HTTP/1.1\r\nX: ")
        server.raw(b"GET /good?readv=2 HTTP/1.1\r\nX-Trace-Id: good\r\n\r\n")
        time.sleep(0.2)
        for s in lorises:
            s.close()
        records, said = following.records()
    good = [r for r in records if r.get("trace_id_s") == "good"]
    check_equal([(r["status_i"], r.get("sys_readv_ops_i"), r["attribution_s"]) for r in good], [(200, 2, "exact")], "the good request")
    result = blkprof.run("requests", "--pid", "4194303")
    check_equal((result.returncode, result.stderr.count("\n")), (1, 1), "of a process that is not there: %s" % result.stderr)
    check("1 tls_connections" in said and "1 h2_connections" in said, "counted: %r" % said)
    check(all(r.get("incomplete_b") for r in records if r.get("path_s", "").startswith("/loris")), "half a request is whole")


def storm():
    """More than are told one by one: every request is counted once, and its times are in one place."""
    with slow_server(0.2) as (folder, disk, server):
        following = Following(folder, server, "--full", "4")
        run_clients(server, 4, 60)
        truth = server.truth()
        records, said = following.records()
    full = [r for r in records if r["kind_s"] == "request" and r.get("path_s") != "/truth"]
    sums = [r for r in records if r["kind_s"] == "handler" and r.get("handler_s") != "/truth"]
    check(sums, "there are sums")
    check_equal(len(full) + sum(r["requests_l"] for r in sums), 240, "requests")
    both = full + sums
    check_equal(sum(r.get("sys_readv_ops_i", 0) for r in both), sum(t["readv"] for t in truth.values()), "reads")
    check_equal(sum(r.get("fsync_ops_i", 0) for r in both), sum(t["fsync"] for t in truth.values()), "syncs")


def in_the_agent():
    """Batches in the spool, by a pattern of the command line, found again after a restart; windows go on beside them."""
    with slow_server(0.5) as (folder, disk, server):
        more = "[requests]\ncmdline = lib/http_server.py\n"
        with agent.Agent(folder, more=more) as daemon:
            daemon.hears("requests of the processes")
            run_clients(server, 2, 5)
            server.raw(b"GET /plain?later=25 HTTP/1.1\r\nConnection: close\r\n\r\n")
            second = Server(folder, disk.node)
            try:
                wait_for(lambda: daemon.metrics().get("blkprof_agent_request_targets") == 2, "the second server", 20)
                run_clients(second, 2, 5)
            finally:
                second.close()
            wait_for(lambda: daemon.metrics().get("blkprof_agent_request_targets") == 1, "its end", 20)
            daemon.wait_windows(2)
            daemon.stop()
        batches = daemon.batches()
    records = [json.loads(doc) for b in batches for doc in b.requests]
    seen = [(r["pid_i"], r["trace_id_s"]) for r in records if r.get("trace_id_s")]
    check_equal(len(seen), 20, "requests of both servers")
    check_equal(len(set(seen)), 20, "each once")
    check_equal({pid for pid, _ in seen}, {server.pid, second.pid}, "processes")
    check_equal({r["hostname_s"] for r in records}, {"test-node"}, "host")
    later = [r for r in records if r["kind_s"] == "thread" and r.get("sys_readv_ops_i")]
    check_equal(sum(r["sys_readv_ops_i"] for r in later), 25, "reads of a thread outside of requests")
    check_equal(len({r["id"] for r in records}), len(records), "ids")
    check(any(b.profiles for b in batches), "profiles beside them")


JAVA = """
import com.sun.net.httpserver.*; import java.net.*; import java.util.concurrent.*; import java.util.concurrent.atomic.*;
public class Named { public static void main(String[] a) throws Exception {
  AtomicInteger n = new AtomicInteger();
  HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
  s.setExecutor(Executors.newFixedThreadPool(4, r -> new Thread(r, "a-worker-with-a-long-name-" + n.incrementAndGet())));
  s.createContext("/", x -> { byte[] b = "hi".getBytes(); x.sendResponseHeaders(200, b.length); x.getResponseBody().write(b); x.close(); });
  s.start(); System.out.println(s.getAddress().getPort()); } }
"""


class JavaServer(Server):
    def __init__(self, folder):
        with open(os.path.join(folder, "Named.java"), "w") as f:
            f.write(JAVA)
        self.process = subprocess.Popen(["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", os.path.join(folder, "Named.java")],
                                        stdout=subprocess.PIPE, text=True)
        self.port, self.pid = int(self.process.stdout.readline()), self.process.pid


def ask_all(server, name, times):
    clients = [threading.Thread(target=client, args=(server, "%s%d" % (name, k), [("GET", "/x", None)] * 25, times)) for k in range(4)]
    for t in clients:
        t.start()
    for t in clients:
        t.join()


def all_named(server, following, times):
    name = "named%d-" % len(times)
    ask_all(server, name, times)
    time.sleep(1.5)
    with open(following.out) as f:
        records = [json.loads(line) for line in f if line.endswith("\n")]
    records = [r for r in records if r.get("trace_id_s", "").startswith(name)]
    return len(records) == 100 and all(r.get("thread_s") for r in records)


def java():
    """A pool of threads: connections wander between them; their Java names are told."""
    if not shutil.which("java") or not shutil.which("jcmd"):
        testing.skip("no JDK here")
    with testing.scratch() as folder:
        server = JavaServer(folder)
        try:
            subprocess.run(["jcmd", str(server.pid), "VM.version"], stdout=subprocess.DEVNULL, timeout=60, check=True)
            following = Following(folder, server, "--java-names")
            times = {}
            ask_all(server, "new", times)
            wait_for(lambda: all_named(server, following, times), "the names of its threads", 30)
            records, said = following.records()
        finally:
            server.close()
    seen = {r["trace_id_s"]: r for r in records if r.get("trace_id_s")}
    check_equal(sorted(seen), sorted(times), "requests")
    check_equal({(r["status_i"], r["attribution_s"]) for r in seen.values()}, {(200, "exact")}, "statuses")
    names = {r["thread_s"] for r in seen.values() if r.get("thread_s")}
    check(all(n.startswith("a-worker-with-a-long-name-") for n in names), "names: %r" % names)


if __name__ == "__main__":
    testing.main(ground_truth, wire_forms, hostile, storm, in_the_agent, java)
