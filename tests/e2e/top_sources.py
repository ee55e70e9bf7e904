#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where `top` and `export` read from and write to: files, standard input, addresses with a token, servers that refuse;
outputs that appear whole or not at all."""
import base64
import gzip
import http.server
import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
BLKPROF = os.environ.get("BLKPROF") or os.path.join(os.environ.get("BUILD", "build"), "blkprof")
GOLDEN = os.path.join(HERE, "..", "golden", "pprof", "builder.pb")
TOKEN = "s3cret/token"
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAIL", text)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with open(GOLDEN, "rb") as f:
            profile = f.read()
        if self.path == "/moved":
            self.answer(302, b"", Location="/plain")
        elif self.path.startswith("/busy"):
            self.answer(503, b"profiler busy: try \x1b[2Jlater\nsecond line", Content_Type="text/plain; charset=utf-8", X_Go_Pprof="1")
        elif self.path == "/page":
            self.answer(200, b"<html>login</html>", Content_Type="text/html")
        elif self.path == "/large":
            self.answer(200, os.urandom(1 << 20))
        elif self.path == "/secret":
            want = "Basic " + base64.b64encode(("ops:" + TOKEN).encode()).decode()
            if self.headers.get("Authorization") != want:
                self.answer(401, b"token required", Content_Type="text/plain")
            else:
                self.answer(200, gzip.compress(profile))
        else:
            self.answer(200, profile)


def run(*args, data=None, **kw):
    r = subprocess.run([BLKPROF, *args], input=data, capture_output=True, timeout=60, **kw)
    r.out, r.err = r.stdout.decode(), r.stderr.decode()
    return r


def refused(r, text, status=1):
    check(r.returncode == status and text in r.err and not r.out and r.err.count("\n") == 1, "'%s': %d %r %r" %
          (text, r.returncode, r.err, r.out[:100]))


def addresses(base):
    want = run("top", GOLDEN).out
    check("7.00 ms" in want, "the golden profile: %s" % want)
    for path in ("/plain", "/moved"):
        check(run("top", base + path).out == want, path)
    secret = base.replace("//", "//ops:" + TOKEN.replace("/", "%2F") + "@") + "/secret"
    check(run("top", secret).out == want, "a token in the address")
    wrong = run("top", base.replace("//", "//ops:wr0ng@") + "/secret")
    refused(wrong, "the server refuses (401): token required")
    check("wr0ng" not in wrong.err, "the token is in the message: %s" % wrong.err)
    refused(run("top", base + "/busy?seconds=1"), "the server answers 503: profiler busy: try ?[2Jlater")
    refused(run("top", base + "/page"), "a page (HTML or XML)")
    refused(run("top", "--max-size", "100K", base + "/large"), "raise the limit with --max-size")
    refused(run("top", "http://127.0.0.1:1/x"), "http://127.0.0.1:1/x: ")


def files(scratch):
    with open(GOLDEN, "rb") as f:
        profile = f.read()
    want = run("top", GOLDEN).out
    check(run("top", "-", data=profile).out == want, "standard input")
    check(run("top", "-", data=gzip.compress(profile)).out == want, "standard input, gzipped")
    with open(GOLDEN, "rb") as f:
        r = subprocess.run([BLKPROF, "top", "-"], stdin=f, capture_output=True, text=True)
    check(r.stdout == want, "standard input that is a file")
    check("19.00 ms" in run("top", GOLDEN, GOLDEN).out, "two files are added up")
    refused(run("top", GOLDEN, "/etc/hostname"), "/etc/hostname: byte 0")
    refused(run("top", "/nonexistent"), "/nonexistent: cannot open")
    refused(run("top", "/tmp"), "/tmp: it is a folder")
    refused(run("top", "-t", "nothing", GOLDEN), "it has: io_ops, io_time")
    refused(run("export", GOLDEN), "--format is missing", 2)
    refused(run("export", "-f", "pprof", "--root", "op", GOLDEN), "a pprof keeps its labels", 2)
    out = os.path.join(scratch, "out.svg")
    check(run("export", "-f", "svg", "-o", out, GOLDEN).returncode == 0 and os.path.getsize(out) > 1000, "export -o")
    before = open(out).read()
    refused(run("export", "-f", "svg", "-o", out, "/etc/hostname"), "byte 0")
    check(open(out).read() == before, "a failed export leaves the file as it was")
    refused(run("export", "-f", "svg", "-o", os.path.join(scratch, "no", "out.svg"), GOLDEN), "its folder does not exist")
    refused(run("export", "-f", "collapsed", "-o", "/dev/full", GOLDEN), "/dev/full: cannot be written: No space left")
    check(os.listdir(scratch) == ["out.svg"], "nothing else stays: %s" % os.listdir(scratch))
    full = open("/dev/full", "w")
    r = subprocess.run([BLKPROF, "top", GOLDEN], stdout=full, stderr=subprocess.PIPE, text=True)
    check(r.returncode == 1 and "standard output" in r.stderr, "a full standard output: %s" % r.stderr)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        os.environ.pop(name, None)
    addresses("http://127.0.0.1:%d" % server.server_port)
    with tempfile.TemporaryDirectory() as scratch:
        files(scratch)
    print("%d failures" % len(failures))
    return 1 if failures else 0


sys.exit(main())
