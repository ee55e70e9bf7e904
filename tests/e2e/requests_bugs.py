#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=120
"""What other tracers of requests got wrong, each provoked by a real server: one bug, one case. Most share one follower: a case
runs up to its first yield before there is one, up to the second while it follows, and is then given what it told."""
import contextlib
import functools
import os
import re
import resource
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time

import requests
from lib import blkprof, testing
from lib.odd import NODE, SERVER, Apache, Client, OddServer, Told, http2_streams, odd_server
from lib.testing import check, check_between, check_equal, wait_for


def in_threads(n, work):
    threads = [threading.Thread(target=work, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def own_answer(r):
    """The path of a request says what its answer is."""
    status, size = (int(part) for part in r["path_s"].split("/")[-2:])
    size = 0 if status in (204, 304) else size
    return r.get("status_i") == status and ("resp_bytes_l" not in r or size < r["resp_bytes_l"] < size + 200)


def check_exact(told, prefix, paths):
    found = told.by_path(prefix)
    check_equal(sorted(found), sorted(paths), "requests of " + prefix)
    for path, r in found.items():
        check(own_answer(r), "%s has another's answer: %r" % (path, r))
        check_equal((r["attribution_s"], r.get("incomplete_b", False), "resp_bytes_l" in r), ("exact", False, True), path)
    return found


def thread_pools(server):
    """Bug 2: connections wander between the threads of a pool."""
    yield
    told_tids, lock = {}, threading.Lock()

    def client(k):
        with server.connect("pool") as c:
            for i in range(40):
                path = "/pool/%d-%d/%d/%d" % (k, i, 200 + (k * 40 + i) % 300, 10 + i)
                tid = c.ask(path)[0][1]
                with lock:
                    told_tids[path] = tid
    in_threads(6, client)
    told = yield
    found = check_exact(told, "pool", told_tids)
    check(len(set(told_tids.values())) > 1, "the pool has one thread")
    check_equal([p for p, r in found.items() if r["tid_i"] != told_tids[p]], [], "requests of another thread than served them")


def executors(server):
    """Bugs 3 and 12: another thread answers, on connections that stay open, while the reader goes on: nobody's times are stitched to another
    request."""
    yield
    paths = []

    def client(k):
        with server.connect("executor") as c:
            for i in range(25):
                path = "/executor/%s%d-%d/%d/%d" % ("slow" if i % 5 == 0 else "", k, i, 200 + (k * 25 + i) % 300, 20 + i)
                paths.append(path)
                c.ask(path)
    in_threads(6, client)
    told = yield
    found = told.by_path("executor")
    check_equal(sorted(found), sorted(paths), "requests")
    for path, r in found.items():
        check(own_answer(r), "%s has another's answer: %r" % (path, r))
        check(r["attribution_s"] in ("handler_thread", "shared_thread") and r["incomplete_b"], "%s: %s" % (path, r["attribution_s"]))
        check_equal([f for f in ("oncpu_ms_f", "lock_wait_ms_f", "disk_wait_ms_f") if f in r], [], path + ": times that are not its own")
        check("slow" not in path or r["duration_ms_f"] >= 30, path + " took %g" % r["duration_ms_f"])


def virtual_threads(server):
    """Bug 4: a request changes its thread, which has begun another one meanwhile."""
    yield
    with server.connect("carriers") as a, server.connect("carriers") as b:
        a.send("/virtual/a/201/10")
        time.sleep(0.05)
        b.send("/virtual/b/202/20")
        a.answers(1), b.answers(1)
    told = yield
    found = told.by_path("virtual")
    check_equal(sorted(found), ["/virtual/a/201/10", "/virtual/b/202/20"], "requests")
    for path, r in found.items():
        check(own_answer(r), "%s has another's answer: %r" % (path, r))
        check(r["attribution_s"] != "exact" and "oncpu_ms_f" not in r, "%s has the times of a thread: %r" % (path, r))


def whole_answers(server):
    """Bug 6, of HTTP/1.1: a request is over with the end of its answer, not with its head."""
    yield
    with server.connect("slowly") as c:
        c.ask("/slowly/a/200/50", "/slowly/b/201/60")
    told = yield
    for path, r in check_exact(told, "slowly", ["/slowly/a/200/50", "/slowly/b/201/60"]).items():
        check(r["duration_ms_f"] >= 119, "%s took %g" % (path, r["duration_ms_f"]))
        check(r["ttfb_ms_f"] <= r["duration_ms_f"] - 119, "%s: first byte after %g of %g" % (path, r["ttfb_ms_f"], r["duration_ms_f"]))


def older_connections(server):
    """Bug 7: connections from before the follower, one in the midst of a request."""
    with server.connect("threads") as c, server.connect("slowly") as half:
        c.ask("/older/unseen/200/5")
        half.socket.sendall(b"GET /older/half/200/5 HTTP/1.1\r\nX: ")
        time.sleep(0.1)
        yield
        half.socket.sendall(b"y\r\n\r\n")
        half.answers(1)
        half.ask("/older/after/203/7")
        c.ask("/older/one/201/6", "/older/two/202/7")
    told = yield
    check_exact(told, "older", ["/older/after/203/7", "/older/one/201/6", "/older/two/202/7"])
    check(told.count("answers_unmatched") >= 1, "the answer of which the request was not seen is counted: %s" % told.said)


def missed_answers(server):
    """Bug 8: the connection ends without an answer that was seen: no status is made up."""
    yield
    with server.connect("drops") as c:
        c.send("/dropped/200/5")
        c.wait_for_end()
    told = yield
    seen = [(r["path_s"], r.get("status_i"), r.get("incomplete_b"), r["missing_ss"][0]) for r in told.of("dropped")]
    check_equal(seen, [("/dropped/200/5", None, True, "answer")], "the request that was not answered")


def idle_connections(server):
    """Bug 9: a connection that the server closes when it is idle is no request, and no part of one in flight."""
    yield
    with server.connect("slowly") as flying, server.connect("idle") as c:
        c.ask("/idle/200/5")
        flying.send("/flying/204/8")
        c.wait_for_end()
        flying.answers(1)
    told = yield
    check_exact(told, "idle", ["/idle/200/5"])
    check_exact(told, "flying", ["/flying/204/8"])


def stuck_threads(server):
    """Bug 12: what a thread has left behind is not added to what it does next."""
    yield
    with server.connect("stuck") as never:
        never.send("/stuck/200/5")
        time.sleep(0.1)
        with server.connect("stuck") as c:
            for i in range(5):
                c.ask("/behind/%d/20%d/9" % (i, i))
    told = yield
    left = told.of("stuck")
    check_equal([(r.get("status_i"), r["incomplete_b"]) for r in left], [(None, True)], "the one without an answer")
    found = told.by_path("behind")
    check_equal(len(found), 5, "requests behind it")
    for path, r in found.items():
        check(own_answer(r), path)
        check(r["duration_ms_f"] <= left[0]["duration_ms_f"] - 99, "%s took %g" % (path, r["duration_ms_f"]))
    check(all(found["/behind/%d/20%d/9" % (i, i)]["attribution_s"] == "exact" for i in range(1, 5)), "they are exact again")


READS, WRITES = ("recv", "readv", "recvmsg", "splice"), ("send", "write", "writev", "sendmsg", "sendfile", "splice")


def every_call(server):
    """Bugs 11, 14 and 16: each call that reads or writes counts once, whatever its vectors are, and with megabytes."""
    yield
    sizes = {}
    for read in READS:
        with server.connect("calls") as c:
            for write in WRITES:
                path = "/calls/%s-%s/200/%d" % (read, write, 1000 + len(sizes))
                more = "Content-Length: 9000\r\n"
                got = c.ask(path + "?read=%s&write=%s" % (read, write), method="POST", more=more, body=b"d" * 9000)
                sizes[path] = got[0][2]
            path = "/calls/%s-large/200/1500000" % read
            got = c.ask(path + "?write=%s" % WRITES[READS.index(read)], method="POST", more="Content-Length: 700000\r\n", body=b"d" * 700000)
            sizes[path] = got[0][2]
    told = yield
    found = check_exact_or_cut(told, "calls", sizes)
    for path, r in found.items():
        check_equal(r["resp_bytes_l"], sizes[path], path + " bytes of the answer")
        body = 700000 if "large" in path else 9000
        check_between(r["req_bytes_l"], body + 50, body + 200, path + " bytes of the request")


def check_exact_or_cut(told, prefix, paths):
    """Of a head in small vectors only the first line is kept; of one that goes through a pipe nothing."""
    found = told.by_path(prefix)
    expected = [p for p in paths if "/splice-" not in p]
    check(set(expected) <= set(found), "requests that are not told: %r" % sorted(set(expected) - set(found)))
    for path, r in found.items():
        check_equal(r.get("status_i"), 200, path)
        check("/readv-" in path or not r.get("incomplete_b"), "%s: %r" % (path, r))
    return {p: r for p, r in found.items() if p in expected}


def peeks(server):
    """A look at what there is is no read."""
    yield
    paths = ["/peeks/%d/20%d/%d" % (i, i, 9 + i) for i in range(6)]
    with server.connect("peeks") as c:
        for path in paths[:3]:
            c.ask(path)
        c.ask(*paths[3:])
    told = yield
    for path, r in check_exact(told, "peeks", paths).items():
        check_between(r["req_bytes_l"], 30, 60, path + " bytes")


def coalesced_answers(server):
    """Answers to a pipeline in one write: each request has its own, or none."""
    yield
    few, many = ["/few/%d/%d/0" % (i, 201 + i) for i in range(3)], ["/many/%d/%d/90" % (i, 201 + i) for i in range(50)]
    with server.connect("coalesces") as c:
        c.ask(*few)
    with server.connect("coalesces") as c:
        c.ask(*many)
        c.ask("/many/later/299/5")
    told = yield
    found = told.by_path("few")
    check_equal(sorted(found), few, "requests")
    check(all(own_answer(r) for r in found.values()), "their answers: %r" % found)
    check(all("oncpu_ms_f" not in r for r in found.values()), "one write's times are nobody's alone")
    found = told.by_path("many")
    check_equal(sorted(found), sorted(many + ["/many/later/299/5"]), "requests")
    wrong = [r for r in found.values() if "status_i" in r and not own_answer(r)]
    check_equal(wrong, [], "requests with another's answer")
    check(all(r["incomplete_b"] for r in found.values()), "they are said to be incomplete")
    check("status_i" in found[many[0]], "the first one has its answer")


def ten_thousand_at_once(server):
    """Requests pipelined by thousands: those that are told have their own answer, the others are counted."""
    yield
    for manner in ("threads", "large_reads"):
        paths = ["/%s/%d/%d/4" % (manner, i, 200 + i % 400) for i in range(5000)]
        with server.connect(manner) as c:
            sender = threading.Thread(target=c.send, args=paths)
            sender.start()
            statuses = [a[0] for a in c.answers(5000)]
            sender.join()
            check_equal(statuses, [200 + i % 400 for i in range(5000)], "what the server answered")
    told = yield
    whole = 0
    for manner in ("threads", "large_reads"):
        found = told.by_path(manner)
        check(len(found) >= 64, "%d of them are told" % len(found))
        check_equal([r for r in found.values() if "status_i" in r and not own_answer(r)], [], "requests with another's answer")
        with_answer = sum(1 for r in found.values() if "status_i" in r)
        check(with_answer >= 32, "%d of them have their answer" % with_answer)
        whole += with_answer
    check(whole + told.count("answers_unmatched") >= 10000, "each answer is told or counted: %d, and %s" % (whole, told.said))


def bodies_in_chunks(server):
    """A request behind a body in chunks, in the same packet."""
    yield
    data = b"GET /chunks/no/200/5 HTTP/1.1\r\nX: y\r\n\r\n"
    body = b"%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(data), data)
    with server.connect("threads") as c:
        c.ask("/chunks/a/201/5", "/chunks/b/202/6", "/chunks/c/203/7", method="POST", more="Transfer-Encoding: chunked\r\n", body=body)
        c.ask("/chunks/d/204/8")
    told = yield
    check_exact(told, "chunks", ["/chunks/%s/20%d/%d" % ("abcd"[i], i + 1, i + 5) for i in range(4)])


def encrypted(server):
    """TLS is counted, and nothing is made of it."""
    yield
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for i in range(3):
        with server.connect("tls") as c, context.wrap_socket(c.socket) as secret:
            secret.sendall(b"GET /secret/200/5 HTTP/1.1\r\n\r\n" * 2)
            check(secret.recv(100).startswith(b"HTTP/1.1 200"), "the answer")
    told = yield
    check_equal(told.of("secret"), [], "records")
    check_equal(told.count("tls_connections"), 3, "TLS connections of %s" % told.said)


def http2(server):
    """Bug 5: streams at once, by prior knowledge and by Upgrade, of a real HTTP/2 server: counted, and said not to be told apart."""
    url = "http://127.0.0.1:%d/page%%d" % server.apache.port
    yield
    check_equal(http2_streams(server.apache.port, ["/page%d?h2" % i for i in range(8)]), 8, "streams at once")
    got = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", "--http2", url % 1 + "?upgraded"],
                         stdout=subprocess.PIPE, text=True, timeout=30, check=True)
    check_equal(got.stdout, "2 200", "Upgrade")
    told = yield
    ours = [r for r in told.records if r.get("query_s", "").startswith(("h2", "upgraded"))]
    check_equal([r["status_i"] for r in ours], [101], "requests told: %r" % ours)
    check_equal(told.count("h2_connections"), 2, "HTTP/2 connections of %s" % told.said)


def event_loops():
    """One thread for all, which reads on while it answers, of a real such server: each has its own answer or none, and nobody the times of all."""
    if not shutil.which("node"):
        testing.skip("no node here")
    process = subprocess.Popen(["node", "-e", NODE], stdout=subprocess.PIPE, text=True)
    paths, lock = [], threading.Lock()
    try:
        port = int(process.stdout.readline())

        def client(k):
            with Client(port) as c:
                for i in range(4):
                    some = ["/loop/%s%d-%d-%d/%d/%d" % ("slow" if j == 0 else "", k, i, j, 221 + k + j, (3, 200000)[j % 2]) for j in range(3 if i % 2 else 1)]
                    with lock:
                        paths.extend(some)
                    c.ask(*some)

        class Node:
            pid = process.pid

            @staticmethod
            def raw(*parts):
                with Client(port) as c:
                    c.ask("/first/200/5")
        with testing.scratch() as folder:
            following = requests.Following(folder, Node, "--full", "100000")
            in_threads(2, client)
            time.sleep(0.1)
            told = Told(*following.records())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    found = told.by_path("loop")
    check_equal(sorted(found), sorted(paths), "requests")
    check_equal([r for r in found.values() if "status_i" in r and not own_answer(r)], [], "requests with another's answer")
    check_equal([p for p, r in found.items() if "status_i" not in r and not r["incomplete_b"]], [], "whole ones without an answer")


def links(pid):
    """How many programs it has attached."""
    count = 0
    with contextlib.suppress(OSError):  # one that is closed meanwhile
        for fd in os.listdir("/proc/%d/fdinfo" % pid):
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
                count += "link_type" in f.read()
    return count


def http2_in_the_table():
    """Bug 5: what a user of the table and of the agent's metrics sees of it."""
    with testing.scratch() as folder:
        apache = Apache(folder)
        try:
            process = subprocess.Popen([blkprof.path(), "requests", "--comm", "apache2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            wait_for(lambda: links(process.pid) >= 8, "its programs", 60)
            for _ in range(20):  # it looks for its processes meanwhile
                http2_streams(apache.port, ["/page1"] * 3)
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, said = process.communicate(timeout=30)
        finally:
            apache.close()
    found = re.search("^not among them: ([0-9]+) HTTP/2 connections", out, re.M)
    check(found and 1 <= int(found.group(1)) <= 20, "the table: %r, %r" % (out, said))


def apache_pipelines(server):
    """Apache writes the answers to a pipeline at once where it can."""
    yield
    with Client(server.apache.port) as c:
        got = [a[0] for a in c.ask("/page1?p", "/missing?p", "/page2?p", "/missing?p", "/page3?p")]
        check_equal(got, [200, 404, 200, 404, 200], "what Apache answered")
    with Client(server.apache.port) as c:
        c.ask("/page4?single")
        c.ask("/page5?single")
    told = yield
    ours = [r for r in told.records if r.get("query_s", "").startswith("p")]
    check_equal(len(ours), 5, "requests told: %r" % ours)
    for r in ours:
        check(r.get("status_i", 0) in (0, 404 if r["path_s"] == "/missing" else 200), "another's answer: %r" % r)
        check("status_i" in r or r["incomplete_b"], "no answer, and said to be whole")
    single = [(r["status_i"], r["attribution_s"]) for r in told.records if r.get("query_s", "").startswith("single")]
    check_equal(single, [(200, "exact")] * 2, "requests one by one")


SHARED = (thread_pools, executors, virtual_threads, whole_answers, older_connections, missed_answers, idle_connections, stuck_threads,
          every_call, peeks, coalesced_answers, ten_thousand_at_once, bodies_in_chunks, encrypted, http2, apache_pipelines)


def advance(cases, failed, value=None):
    for name, case in cases.items():
        try:
            if name not in failed:
                case.send(value)
        except Exception as e:
            failed[name] = e


@functools.lru_cache(maxsize=None)
def provoked(names):
    """The cases of these names up to what was told, and of those that failed, how."""
    with odd_server() as (folder, server), contextlib.ExitStack() as ends:
        options = ["--full", "100000"]
        if {"http2", "apache_pipelines"} & set(names):
            server.apache = Apache(folder)
            ends.callback(server.apache.close)
            options += ["--comm", "apache2"]
        cases, failed = {c.__name__: c(server) for c in SHARED if c.__name__ in names}, {}
        advance(cases, failed)
        following = requests.Following(folder, server, *options)
        advance(cases, failed)
        time.sleep(0.2)
        return cases, failed, Told(*following.records())


def shared(case):
    @functools.wraps(case)
    def run():
        chosen = [n for n in sys.argv[1:] if n in names] or names
        cases, failed, told = provoked(tuple(chosen))
        if case.__name__ in failed:
            raise failed[case.__name__]
        with contextlib.suppress(StopIteration):
            cases[case.__name__].send(told)
    names = [c.__name__ for c in SHARED]
    return run


def switches(pid):
    with open("/proc/%d/status" % pid) as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches"))


def many_threads():
    """Bugs 1 and 13: none is missing under load, and the follower is not woken for each."""
    with odd_server() as (folder, server):
        following = requests.Following(folder, server, "--full", "100000")
        before = switches(following.process.pid)

        def client(k):
            with server.connect("threads") as c:
                for i in range(100):
                    c.ask("/load/%d-%d/200/50" % (k, i))
        in_threads(40, client)
        woken = switches(following.process.pid) - before
        told = Told(*following.records())
    check_exact(told, "load", ["/load/%d-%d/200/50" % (k, i) for k in range(40) for i in range(100)])
    check(woken < 2000, "woken %d times for 4000 requests" % woken)


CONNECTIONS, OPEN = 65536, 8192  # what the tables hold


def fill(servers, target):
    """All do the same at once."""
    def one(k):
        with servers[k].connect("fills") as c:
            c.ask(target)
    in_threads(len(servers), one)


def full_tables():
    """Bug 15: tables that fill are counted, stop nothing, and are empty again when the connections are closed."""
    each = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200, 70000)
    n = CONNECTIONS // each + 1
    if n > 8:
        testing.skip("a process may open %d files only" % each)
    with odd_server() as (folder, server), contextlib.ExitStack() as ends:
        servers = [server] + [OddServer(folder) for _ in range(n - 1)]
        for s in servers[1:]:
            ends.callback(s.close)
        following = requests.Following(folder, server, "--full", "100000", *[a for s in servers[1:] for a in ("-p", str(s.pid))])
        with server.connect("threads") as c:
            fill(servers, "/full/200/%d" % (CONNECTIONS // n + 500))
            c.ask("/during/201/5")
            fill(servers, "/drain/200/5")
            time.sleep(0.5)
            c.ask("/after/202/5")
        with server.connect("threads") as c:
            c.ask("/anew/203/5")
        told = Told(*following.records())
    check_exact(told, "after", ["/after/202/5"])
    check_exact(told, "anew", ["/anew/203/5"])
    lost = told.count("ring_full") + told.count("connections_full")
    check(told.count("requests_evicted") + lost >= CONNECTIONS - OPEN, "what found no room is counted: %s" % told.said)
    check(any(told.count(name) for name in ("connections_full", "connections_evicted")), "the table of connections was full: %s" % told.said)


def short_lived():
    """Bug 14: processes that serve one connection and end, and servers that come later: each is followed, and leaves nothing behind."""
    with odd_server() as (folder, server):
        following = requests.Following(folder, server, "--cmdline", SERVER)

        def client(k):
            for i in range(10):
                with server.connect("forks") as c:
                    c.ask("/forked/%d-%d/20%d/7" % (k, i, k), "/forked/slow-%d-%d/21%d/8" % (k, i, k))
        in_threads(4, client)
        other = OddServer(folder)
        try:
            def seen():
                with other.connect("threads") as c:
                    c.ask("/later/200/5")
                with open(following.out) as f:
                    return "/later/" in f.read()
            wait_for(seen, "the requests of a server that came later", 20)
        finally:
            other.close()
        with server.connect("threads") as c:
            c.ask("/last/200/5")
        told = Told(*following.records())
    paths = ["/forked/%s%d-%d/2%d%d/%d" % (slow, k, i, bool(slow), k, 7 + bool(slow)) for slow in ("", "slow-") for k in range(4) for i in range(10)]
    found = check_exact(told, "forked", paths)
    check_equal(len({r["pid_i"] for r in found.values()}), 40, "processes")
    check_exact(told, "last", ["/last/200/5"])
    check_equal(len({r["pid_i"] for r in told.of("later") + told.of("last")}), 2, "servers")


if __name__ == "__main__":
    testing.main(*[shared(c) for c in SHARED], event_loops, http2_in_the_table, many_threads,
                 full_tables, short_lived)
