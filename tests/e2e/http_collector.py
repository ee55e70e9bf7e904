#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=300
"""What a collector answers over HTTP, to curl, go tool pprof, promtool and blkprof: the same as its store, with tokens, TLS and
limits, while batches go on coming in."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

from lib import collector, devices, testing
from lib.agent import Agent
from lib.blkprof import run
from lib.load import ioload_args
from lib.pprof import Profile
from lib.testing import check, check_equal, wait_for

SERVICES = ["shop/service-%d/main" % i for i in range(3)]
TOKEN = "0123456789abcdef0123456789abcdef"


class Answer:
    def __init__(self, done):
        head, _, self.body = done.stdout.rpartition(b"\r\n\r\n") if done.returncode == 0 else (b"", b"", b"")
        lines = head.decode().split("\r\n\r\n")[-1].split("\r\n")
        self.failed = done.stderr.decode()
        self.status = int(lines[0].split()[1]) if lines[0] else 0
        self.headers = dict(line.lower().split(": ", 1) for line in lines[1:])

    def json(self):
        return json.loads(self.body)

    def text(self):
        return self.body.decode()

    def profile(self, folder):
        path = os.path.join(folder, "%d.pb.gz" % time.monotonic_ns())
        with open(path, "wb") as f:
            f.write(self.body)
        return Profile.read(path)


def curl(c, path, *options, scheme="http"):
    """The body may hold blank lines, so headers come apart."""
    with testing.scratch() as folder:
        done = subprocess.run(["curl", "-sS", "-m", "60", "-D", folder + "/head", "-o", folder + "/body", *options,
                               "%s://127.0.0.1:%d%s" % (scheme, c.http_port, path)], capture_output=True, timeout=90)
        head = open(folder + "/head", "rb").read().strip() if os.path.exists(folder + "/head") else b""
        body = open(folder + "/body", "rb").read() if os.path.exists(folder + "/body") else b""
        done.stdout = head + b"\r\n\r\n"
        answer = Answer(done)
        answer.body = body
        return answer


def got(c, path, *options, status=200, **kw):
    answer = curl(c, path, *options, **kw)
    check_equal(answer.status, status, "status of %s (%s)" % (path, (answer.failed or answer.text()[:200]) if answer.status != status else ""))
    return answer


def totals(profile):
    return [sum(s.values[t] for s in profile.samples) for t in profile.types[:4]]


def of_store(c, folder, *options):
    path = os.path.join(folder, "%d.pb.gz" % time.monotonic_ns())
    done = run("query", "--store", c.store, "-o", path, *options)
    check_equal(done.returncode, 0, "exit status of query: " + done.stderr)
    return totals(Profile.read(path))


def of_collectors(folder, *options):
    path = os.path.join(folder, "%d.pb.gz" % time.monotonic_ns())
    done = run("query", "-o", path, *options)
    check_equal(done.returncode, 0, "exit status of query: " + done.stderr)
    return totals(Profile.read(path)), done.stderr


def duration(folder, *options):
    path = os.path.join(folder, "%d.pb.gz" % time.monotonic_ns())
    run("query", "-o", path, *options)
    return Profile.read(path).duration_ns


def url(c):
    return "http://127.0.0.1:%d" % c.http_port


def go_pprof(folder, address, *options, env=None):
    cache = os.environ.get("GOCACHE") or os.path.expanduser("~/.cache/go-build")
    return subprocess.run(["go", "tool", "pprof", "-top", *options, address], capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, HOME=folder, PPROF_TMPDIR=folder, GOTOOLCHAIN="local", GOCACHE=cache, **(env or {})))


# --- the same as the store ------------------------------------------------------------------------------------------

def profiles(c, folder, everything):
    answer = got(c, "/debug/pprof/io?from=-1h")
    check_equal(totals(answer.profile(folder)), everything, "the merged window")
    check("windows of 3 nodes" in answer.headers["x-blkprof-note"], "coverage in a header")
    for name, values in (("node", ["node-1", "node-2", "node-3"]), ("service", SERVICES), ("device", ["nvme0n1", "dm-0"]),
                         ("label", ["op%3Dread", "op=write"])):
        parts = [totals(got(c, "/debug/pprof/io?from=-1h&%s=%s" % (name, v)).profile(folder)) for v in values]
        check_equal([sum(column) for column in zip(*parts)], everything, "parts by %s" % name)
    check_equal(totals(got(c, "/debug/pprof/io?seconds=3600").profile(folder)), everything, "seconds, as pprof -seconds sends them")
    old = got(c, "/debug/pprof/io?from=-1h&to=%s" % time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - 300)))
    new = got(c, "/debug/pprof/io?from=-5m")
    check_equal([a + b for a, b in zip(totals(old.profile(folder)), totals(new.profile(folder)))], everything, "two windows")


def lists(c, everything):
    check_equal([n["node"] for n in got(c, "/api/v1/nodes").json()["nodes"]], ["node-1", "node-2", "node-3"], "nodes")
    check_equal([s["service"] for s in got(c, "/api/v1/services?from=-1h").json()["services"]], SERVICES, "services")
    check_equal(sum(w["windows"] for w in got(c, "/api/v1/windows").json()["windows"]), 12, "windows")
    covered = got(c, "/api/v1/coverage?node=node-2").json()["coverage"]
    check(len(covered) == 2 and sum(w["windows"] for w in covered) == 4, "times covered: %s" % covered)
    for by, names in (("device", ["dm-0", "nvme0n1"]), ("service", SERVICES), ("node", ["node-1", "node-2", "node-3"]), ("", [""])):
        found = got(c, "/api/v1/series?from=-1h&step=1m&type=read_bytes&by=" + by).json()
        check_equal([s["name"] for s in found["series"]], names, "series by '%s'" % by)
        check_equal(sum(sum(s["values"]) for s in found["series"]), everything[2], "read bytes by '%s'" % by)
        check_equal(sum(sum(s["ops"]) for s in found["series"]), everything[0], "operations by '%s'" % by)
        check_equal({len(s["values"]) for s in found["series"]}, {60}, "steps")
    check_equal(got(c, "/api/v1/series?from=-1h").json()["step"], 30, "a step that nobody asked for")
    top = got(c, "/api/v1/top?from=-1h&rows=3").json()
    check_equal([top["type"], top["total"], top["ops"]], ["io_time", everything[1], everything[0]], "the total of the top")
    check(len(top["functions"]) == 3 and top["stacks"][0]["frames"][0] in SERVICES, "rows of the top")
    by = got(c, "/api/v1/top?from=-1h&by=op&type=io_ops").json()["labels"]
    check_equal(sum(row["value"] for row in by), everything[0], "operations by op")


def differences(c):
    found = got(c, "/api/v1/diff?from=-1h&base_node=node-1&node=node-2&rows=2").json()
    done = run("diff", "--json", "-n", "2", "--store", c.store, "--base-node", "node-1", "--node", "node-2", "-1h..now")
    check_equal(done.returncode, 0, "diff of a store: " + done.stderr)
    same = run("diff", "--json", "-n", "2", "--collector", url(c), "--base-node", "node-1", "--node", "node-2", "-1h..now")
    for name in "kind", "summary", "total", "devices", "functions":
        check_equal(found[name], json.loads(done.stdout)[name], "%s of the difference" % name)
        check_equal(found[name], json.loads(same.stdout)[name], "%s of the difference, by way of blkprof" % name)
    windows = run("diff", "--json", "--collector", url(c), "-1h..-5m", "-5m..now")
    check_equal(windows.returncode, 0, "diff of two windows: " + windows.stderr)
    check_equal([json.loads(windows.stdout)[s]["windows"] for s in ("base", "incident")], [6, 6], "windows of both sides")
    text = run("diff", "--collector", url(c) + "/", "-1h..-5m", "-5m..now")
    check(text.returncode == 0 and text.stdout.startswith(json.loads(windows.stdout)["summary"]), "as text: " + text.stderr)
    for wrong in (["--collector", url(c), "-5m..now"], ["--collector", url(c), "a", "b"], ["-5m..now", "-5m..now", "--node", "x"],
                  ["--collector", url(c), "--store", c.store, "-5m..now", "-1h..-5m"]):
        check_equal(run("diff", *wrong).returncode, 2, "exit status of diff %s" % wrong)


def errors(c):
    for path, status, word in (("/debug/pprof/io?from=yesterday", 400, "from"), ("/debug/pprof/io?nod=x", 400, "node"),
                               ("/debug/pprof/io?from=-9h&to=-8h", 404, "nothing in this window"), ("/debug/pprof", 404, "path"),
                               ("/debug/pprof/io?from=-1m&to=-2m", 400, "before"), ("/debug/pprof/io?type=x&from=-1h", 400, "io_time"),
                               ("/debug/pprof/io?label=op", 400, "NAME=VALUE"), ("/debug/pprof/diff?from=-1h", 400, "base_from"),
                               ("/api/v1/series?from=-1d&step=1s", 400, "steps"), ("/api/v1/top?from=-1h&rows=x", 400, "rows"),
                               ("/api/v1/diff?base_from=-9h&from=-1h", 404, "base: "), ("/api/v1/nodes?from=-1h%00x", 400, "NUL"),
                               ("/api/v1/nodes?from=%1b%5b2J%0d%0ax", 400, "?[2J??x")):
        answer = got(c, path, status=status)
        check(word in answer.text() and answer.text().count("\n") == 1, "one line of %s: %s" % (path, answer.text()))
        check_equal(answer.headers.get("x-go-pprof"), "1", "shown by pprof: " + path)
        check(answer.headers["content-type"].startswith("text/plain"), "a text: " + path)
    got(c, "/debug/pprof/io?from=-1h", "-X", "POST", status=405)


def pprof(c, folder):
    if not shutil.which("go"):
        print("   no go here: go tool pprof is not tried")
        return
    done = go_pprof(folder, url(c) + "/debug/pprof/io?from=-1h")
    check(done.returncode == 0 and "module_0_function_0" in done.stdout and "Type: io_time" in done.stdout, "pprof: " + done.stderr)
    done = go_pprof(folder, url(c) + "/debug/pprof/io?from=-1h&type=read_bytes&node=node-2")
    check("Type: read_bytes" in done.stdout and "[node node-2]" in done.stdout, "type= and node=: " + done.stderr)
    done = go_pprof(folder, url(c) + "/debug/pprof/diff?from=-1h&base_node=node-1&node=node-2&type=io_ops")
    check(done.returncode == 0 and re.search(r"^ +-\d", done.stdout, re.M), "a difference has what is less: " + done.stdout + done.stderr)
    done = go_pprof(folder, url(c) + "/debug/pprof/io?from=-9h&to=-8h")
    check("nothing in this window" in done.stderr, "pprof shows why: " + done.stderr)


def metric(text, name):
    return sum(float(v) for v in re.findall(r"^%s(?:\{[^}]*\})? (\S+)$" % name, text, re.M))


def metrics(c, everything):
    def all_read():
        return metric(got(c, "/metrics").text(), "blkprof_collector_io_operations_total") >= everything[0]
    wait_for(all_read, "what was received, in the metrics", 30)
    text = got(c, "/metrics").text()
    check_equal(metric(text, "blkprof_collector_io_operations_total"), everything[0], "operations")
    check_equal(metric(text, "blkprof_collector_io_bytes_total"), everything[2] + everything[3], "bytes")
    check_equal(round(metric(text, "blkprof_collector_io_seconds_total") * 1e9), everything[1], "time")
    check_equal(metric(text, "blkprof_collector_batches_total"), 12, "batches")
    check(metric(text, "blkprof_collector_store_bytes") + metric(text, "blkprof_collector_store_log_bytes") > 10000, "the store's size")
    check('{service="shop/service-0/main",device="dm-0",op="write"}' in text, "labels")
    if not shutil.which("promtool"):
        print("   no promtool here: the metrics are not checked by it")
        return
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and not done.stdout + done.stderr, "promtool check metrics: " + done.stdout + done.stderr)


def as_the_store():
    with testing.scratch() as folder, collector.Collector(folder, http=[]) as c:
        got(c, "/debug/pprof/io", status=404)  # nothing yet
        for age in 600, 0:
            check_equal(collector.load(c, nodes=3, services=3, samples=40, batches=2, seconds=20, prefix="node", age=age)["stored"], 6,
                        "batches stored")
        everything = of_store(c, folder, "--from", "-1h")
        profiles(c, folder, everything)
        lists(c, everything)
        differences(c)
        errors(c)
        pprof(c, folder)
        metrics(c, everything)
        check_equal(of_collectors(folder, "--collector", url(c), "--from", "-1h")[0], everything, "blkprof query")
        for what in "nodes", "services", "windows":
            check_equal(run("query", "--collector", url(c), "--list", what).stdout, run("query", "--store", c.store, "--list", what).stdout,
                        "--list " + what)
        done = run("query", "--collector", url(c), "--from", "-9h", "--to", "-8h", "-o", folder + "/none")
        check(done.returncode == 1 and "nothing in this window" in done.stderr and done.stderr.count("\n") == 1, "none: " + done.stderr)
        check_equal(c.stop()[0], 0, "exit status")


# --- several collectors ---------------------------------------------------------------------------------------------

def two_collectors():
    """Both have some windows, and each has some that the other has not."""
    with testing.scratch() as folder, contextlib.ExitStack() as stack:
        left, right = (collector.Collector(folder + "/" + name, http=[]) for name in ("left", "right") if not os.mkdir(folder + "/" + name))
        stack.enter_context(left)
        collector.load(left, nodes=3, services=3, samples=20, batches=1, seconds=10, prefix="node", age=600)
        collector.load(left, nodes=1, services=3, samples=20, batches=1, seconds=10, prefix="node", age=400)
        left.stop()
        shutil.copytree(left.store, right.store)
        stack.enter_context(right)
        left.start()
        collector.load(left, nodes=3, services=3, samples=20, batches=1, seconds=10, prefix="node", age=300)
        collector.load(right, nodes=2, services=3, samples=20, batches=1, seconds=10, prefix="node", age=200)
        stores = ["--store", left.store, "--store", right.store]
        both = ["--collector", url(left), "--collector", url(right)]
        path = folder + "/all.pb.gz"
        check_equal(run("query", *stores, "--from", "-1h", "-o", path).returncode, 0, "query of both stores")
        everything = totals(Profile.read(path))
        lasted = Profile.read(path).duration_ns
        found, said = of_collectors(folder, *both, "--from", "-1h")
        check_equal(found, everything, "both collectors")
        check_equal(duration(folder, *both, "--from", "-1h"), lasted, "how long they lasted")
        nodes = json.loads(run("diff", "--json", *both, "--base-node", "node-1", "--node", "node-1", "-1h..now").stdout)
        check_equal([nodes["base"]["node_seconds"], nodes["base"]["windows"]], [40, 4], "node-seconds and windows of a node")
        check("left" not in said and said.count(url(left)) == 1 and url(right) in said, "each says what it gave: " + said)
        check_equal(of_collectors(folder, *both[2:], *both[:2], "--from", "-1h")[0], everything, "the other way round")
        check(of_collectors(folder, *both[:2], "--from", "-1h")[0] != everything, "one alone has less")
        for what in "nodes", "windows":
            check_equal(run("query", *both, "--list", what).stdout, run("query", *stores, "--list", what).stdout, "--list " + what)
        names = [line.split()[0] for line in run("query", *both, "--list", "services").stdout.splitlines()[1:]]
        check_equal(names, SERVICES, "services of both")
        right.stop()
        done = run("query", *both, "--from", "-1h", "-o", path)
        check(done.returncode == 1 and url(right) in done.stderr, "one that is gone is named: " + done.stderr)


# --- who may ask ----------------------------------------------------------------------------------------------------

def tokens():
    with testing.scratch() as folder:
        path = folder + "/token"
        with open(path, "w") as f:
            f.write(TOKEN + "\n")
        os.chmod(path, 0o600)
        with collector.Collector(folder, http=["token_file = " + path]) as c:
            collector.load(c, nodes=1, services=1, samples=5, batches=1, seconds=10)
            io = "/debug/pprof/io?from=-1h"
            for wrong in ([], ["-H", "Authorization: Bearer x" + TOKEN], ["-u", "user:" + TOKEN[:-1]], ["-u", TOKEN + ":"]):
                for asked in io, "/metrics", "/api/v1/nodes", "/nothing":
                    got(c, asked, *wrong, status=401)
            for right in (["-H", "Authorization: Bearer " + TOKEN], ["-u", "anybody:" + TOKEN]):
                got(c, io, *right)
            got(c, "/healthz")
            with_token = "http://me:%s@127.0.0.1:%d" % (TOKEN, c.http_port)
            everything = of_store(c, folder, "--from", "-1h")
            check_equal(of_collectors(folder, "--collector", with_token, "--from", "-1h")[0], everything, "a token in the address")
            check_equal(of_collectors(folder, "--collector", url(c), "--token-file", path, "--from", "-1h")[0], everything, "a token in a file")
            done = run("query", "--collector", url(c), "--from", "-1h", "-o", folder + "/none")
            check(done.returncode == 1 and "token" in done.stderr, "without: " + done.stderr)
            done = run("query", "--collector", with_token.replace(TOKEN, "secret-secret-secret"), "--from", "-1h", "-o", folder + "/none")
            check(done.returncode == 1 and "secret-" not in done.stderr, "a wrong one is not shown: " + done.stderr)
            if shutil.which("go"):
                done = go_pprof(folder, with_token + io)
                check(done.returncode == 0 and "module_0" in done.stdout, "pprof with a token: " + done.stderr)
            check(TOKEN not in c.log(), "the token is not logged")
        for lines, word in ((["token_file = /nonexistent"], "token_file"), (["tls_cert = /etc/hostname"], "tls_cert"),
                            (["tls_cert = /etc/hostname", "tls_key = /etc/hostname"], "PEM")):
            bad = collector.Collector(folder, http=lines)
            try:
                bad.start()
                check(False, "it starts with %s" % lines)
                bad.kill()
            except RuntimeError as e:
                check(word in str(e), "%s: %s" % (lines, e))
        bad = collector.Collector(folder, http=[])
        with open(bad.config) as f:
            text = f.read()
        with open(bad.config, "w") as f:
            f.write(text.replace("listen = 127.0.0.1", "listen = 0.0.0.0"))
        with contextlib.suppress(RuntimeError):
            bad.start()
            bad.kill()
        check("token_file" in bad.log(), "open to others without a token: " + bad.log()[-300:])


def certificate(folder, name, ca=None):
    """A key and a certificate for 127.0.0.1, by itself or by `ca`."""
    key, cert = "%s/%s.key" % (folder, name), "%s/%s.crt" % (folder, name)
    by = ["-CA", "%s/%s.crt" % (folder, ca), "-CAkey", "%s/%s.key" % (folder, ca)] if ca else []
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert, *by], check=True,
                   capture_output=True, timeout=60)
    return cert, key


def certificates():
    if not shutil.which("openssl"):
        testing.skip("no openssl to make certificates with")
    with testing.scratch() as folder:
        certificate(folder, "ca")
        cert, key = certificate(folder, "server", "ca")
        mine, stranger = certificate(folder, "me", "ca"), certificate(folder, "stranger")
        ca = folder + "/ca.crt"
        with open(folder + "/token", "w") as f:
            f.write(TOKEN + "\n")
        os.chmod(folder + "/token", 0o600)
        with collector.Collector(folder, http=["tls_cert = " + cert, "tls_key = " + key, "tls_client_ca = " + ca,
                                               "token_file = " + folder + "/token"]) as c:
            collector.load(c, nodes=1, services=1, samples=5, batches=1, seconds=10)
            io = "/debug/pprof/io?from=-1h"
            got(c, io, "--cacert", ca, "--cert", mine[0], "--key", mine[1], scheme="https")
            check_equal(curl(c, io, scheme="https").status, 0, "a client that does not know the authority")
            got(c, "/healthz", "--cacert", ca, scheme="https")
            got(c, io, "--cacert", ca, scheme="https", status=401)
            check(curl(c, io, "--cacert", ca, "--cert", stranger[0], "--key", stranger[1], scheme="https").status in (0, 401),
                  "a stranger's certificate")
            check(curl(c, io).status != 200, "without TLS")
            https = "https://127.0.0.1:%d" % c.http_port
            tls = ["--tls-ca", ca, "--tls-cert", mine[0], "--tls-key", mine[1]]
            check_equal(of_collectors(folder, "--collector", https, *tls, "--from", "-1h")[0], of_store(c, folder, "--from", "-1h"), "query")
            check_equal(run("query", "--collector", https, "--from", "-1h", "-o", folder + "/none").returncode, 1, "an unknown authority")
            if shutil.which("go"):  # it knows no certificates of its own
                done = go_pprof(folder, "https://me:%s@127.0.0.1:%d%s" % (TOKEN, c.http_port, io), env={"SSL_CERT_FILE": ca})
                check(done.returncode == 0 and "module_0" in done.stdout, "pprof with TLS and a token: " + done.stderr)


# --- limits ---------------------------------------------------------------------------------------------------------

def limits():
    with testing.scratch() as folder, collector.Collector(folder, http=["query_memory = 1MiB", "query_time = 100ms", "queries = 1"]) as c:
        collector.load(c, nodes=20, services=10, samples=100, batches=4, seconds=20)
        long_one = "/api/v1/series?from=-1h&step=2s&by=service"
        answer = got(c, "/debug/pprof/io?from=-1h", status=413)
        check("memory" in answer.text() or "too large" in answer.text(), "a query of everything: " + answer.text())
        answer = got(c, long_one, status=504)
        check("query_time" in answer.text(), "a long one: " + answer.text())
        got(c, "/debug/pprof/io?from=-1h&node=node-1&service=shop/service-1/main&device=dm-0&label=op=write&label=pid=1", status=200)
        results = []
        threads = [threading.Thread(target=lambda: results.append(curl(c, long_one))) for _ in range(60)]
        for t in threads:
            t.start()
        got(c, "/healthz")
        got(c, "/metrics")
        for t in threads:
            t.join()
        statuses = sorted({a.status for a in results})
        check(set(statuses) <= {503, 504} and 503 in statuses, "sixty at once: %s" % statuses)
        check(all(a.headers.get("retry-after") for a in results if a.status == 503), "busy says when to come again")
        check(metric(got(c, "/metrics").text(), "blkprof_collector_http_refused_busy_total") > 0, "and is counted")


class Slow(threading.Thread):
    """A client that reads a byte now and then."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.read, self.stop = 0, False

    def run(self):
        self.socket.sendall(b"GET /debug/pprof/io?from=-1h HTTP/1.1\r\nHost: x\r\n\r\n")
        with contextlib.suppress(OSError):
            while not self.stop:
                self.read += len(self.socket.recv(16))
                time.sleep(0.05)


def crowd():
    """Three hundred connections, slow readers and queries of everything, while batches come in: all are stored."""
    with testing.scratch() as folder, collector.Collector(folder, http=[], files=4096) as c, contextlib.ExitStack() as stack:
        collector.load(c, nodes=20, services=5, samples=100, batches=4, seconds=20, prefix="old", age=300)
        alone = collector.load(c, nodes=20, services=3, samples=20, batches=20, interval_ms=200, seconds=6, prefix="alone")
        slow = [Slow(c.http_port) for _ in range(5)]
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", c.http_port))) for _ in range(295)]
        for i, s in enumerate(idle):
            with contextlib.suppress(OSError):
                s.sendall(b"GET /debug/pprof/io HTTP/1.1\r\nHost:"[:i])
        for s in slow:
            s.start()
        load = collector.Load(c, nodes=20, services=3, samples=20, batches=20, interval_ms=200, seconds=6, prefix="crowded").go()
        for s in idle[:100]:
            s.close()
        sizes = []
        while load.process.poll() is None:
            sizes.append(len(got(c, "/debug/pprof/io?from=-1h").body))
        crowded = load.result()
        print("   acknowledged after %.0f ms (median), %.0f ms (99%%) alone; %.0f and %.0f ms beside %d queries of everything" % (
            alone["ms_median"], alone["ms_p99"], crowded["ms_median"], crowded["ms_p99"], len(sizes)))
        for who in alone, crowded:
            check_equal([who["stored"], who["unanswered"], who["busy"]], [400, 0, 0], "batches stored")
        check(len(sizes) >= 2 and min(sizes) > 10000, "queries went on: %s" % sizes[:5])
        check(c.rss() < 600 << 20, "memory: %d MiB" % (c.rss() >> 20))
        for s in slow:
            s.stop = True
        check(all(s.read > 16 for s in slow), "slow readers are answered")
        check_equal(c.stop()[0], 0, "exit status")


# --- an incident, from a disk to a sentence ---------------------------------------------------------------------------

def incident():
    with testing.scratch() as folder, devices.slow_disk(folder, 1) as disk, collector.Collector(folder, http=[]) as c, \
            Agent(folder, more="[ship]\nendpoint = %s\n[filter]\ndevice = %s\n" % (c.address, disk.name)) as a:
        marks = []
        for delay in 1, 30:
            disk.delay(delay)
            marks.append([time.time(), 0])
            done = subprocess.run(["chrt", "-f", "10", *ioload_args(disk.node, "read_index:pread:count=100,rate=25,order=random,threads=4")],
                                  capture_output=True, text=True, timeout=60)
            check_equal(done.returncode, 0, "the load: " + done.stderr)
            marks[-1][1] = time.time()
            time.sleep(1.2)
        a.stop()
        windows = ["%.3f..%.3f" % tuple(m) for m in marks]
        wait_for(lambda: run("diff", "--collector", url(c), *windows).returncode == 0, "both windows at the collector", 20)
        found = json.loads(run("diff", "--json", "--collector", url(c), *windows).stdout)
        print("   %s: %s" % (found["kind"], found["summary"]))
        check_equal([found["kind"], found["devices"][0]["name"]], ["slower", disk.name + " read"], "what happened")
        check("read_index" in [f["name"] for f in found["functions"][:10]], "whose reads")
        out = folder + "/change.pb.gz"
        check_equal(run("diff", "--collector", url(c), "-o", out, *windows).returncode, 0, "diff -o")
        if shutil.which("go"):
            shown = go_pprof(folder, out, "-sample_index=io_time")
            check("read_index" in shown.stdout, "pprof shows it: " + shown.stderr)
            shown = go_pprof(folder, url(c) + "/debug/pprof/diff?base_from=%.3f&base_to=%.3f&from=%.3f&to=%.3f" % (*marks[0], *marks[1]))
            check("read_index" in shown.stdout, "and by its address: " + shown.stderr)


testing.main(as_the_store, two_collectors, tokens, certificates, limits, crowd, incident)
