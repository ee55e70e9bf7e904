#!/usr/bin/env python3
# test: program=plain
# SPDX-License-Identifier: Apache-2.0
"""What answers in place of a collector: an error of one line, no file, no command to the terminal, no end of memory."""
import json
import os
import resource
import socket
import subprocess
import threading

from lib import blkprof, testing
from lib.testing import check, check_equal

ESCAPE = "\x1b[2J\x1b]0;title\x07\x9b1m\r\n"
RECORD = {"id": "a", "duration_ms_f": 1e308, "total_io_duration_ms_f": -1e308, "status_i": -5, "event_timestamp_dt": "2026-11-30T12:00:00Z",
          **{name: "/" + ESCAPE for name in ("hostname_s", "method_s", "path_s", "query_s", "core_s", "handler_s")}}
SUMS = [{"value": ESCAPE, "requests": n, "duration_ms_f": "x"} for n in (-3, 2 ** 63 - 1, 1)]


class Server:
    """Sends `body` to whoever connects, for ever if it is endless."""

    def __init__(self, body, status="200 OK", headers="", endless=False):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        length = "" if endless else "Content-Length: %d\r\n" % len(body)
        self.head, self.body, self.endless = ("HTTP/1.1 %s\r\n%s%s\r\n" % (status, length, headers)).encode(), body, endless
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            connection = self.socket.accept()[0]
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        with connection:
            try:
                connection.recv(65536)
                connection.sendall(self.head + self.body)
                while self.endless:
                    connection.sendall(self.body)
                while connection.recv(65536):
                    pass
            except OSError:
                pass


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


def ask(*args):
    result = subprocess.run([blkprof.path(), *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, preexec_fn=limited)
    for c in (result.stdout + result.stderr).decode():
        check(c == "\n" or ord(c) >= 0x20 and not 0x7f <= ord(c) < 0xa0, "%s prints %r" % (args, c))
    return result


def no_profiles():
    with testing.scratch() as folder:
        out = os.path.join(folder, "out.pb.gz")
        for what in (Server(b""), Server(b"\xff\0garbage" * 100), Server(b"{}"), Server(b"no\n", status="302 Found", headers="Location: /\r\n"),
                     Server(b"\x1b[2Jno\n", status="500 No", headers="Content-Type: text/plain\r\n"),
                     Server(b"\n", headers="X-Blkprof-Note: \x1b[2J\xc2\x9b\r\n")):
            for args in (["query", "--from", "-1h", "-o", out], ["query", "--from", "-1h", "-o", out, "--collector", what.url],
                         ["query", "--from", "-1h", "--list", "nodes"], ["requests"], ["requests", "--json"]):
                result = ask(*args, "--collector", what.url)
                check_equal((result.returncode, result.stderr.count(b"\n")), (1, 1), "%s: %s" % (args, result.stderr))
                check(not os.path.exists(out), "a file of what is no profile")


def names_of_others():
    server = Server(json.dumps({"requests": [RECORD, RECORD], "facets": {"handler_s": SUMS}}).encode())
    result = ask("requests", "--collector", server.url)
    check_equal((result.returncode, result.stderr), (0, b""), "requests with names that are commands")
    check(max(map(len, result.stdout.splitlines())) < 1000, "lines: %s" % result.stdout)
    server = Server(json.dumps({"nodes": [{"node": ESCAPE, "from": "2026-11-30T12:00:00Z", "to": "2026-11-30T11:00:00Z", "windows": 1}]}).encode())
    check_equal(ask("query", "--list", "nodes", "--collector", server.url).returncode, 0, "a node whose name is a command")


def too_much():
    for server in (Server(b"[0," * 20000, endless=True), Server(b'{"requests":[%s0]}' % (b"0," * 20000000))):
        for args in (["requests"], ["query", "--from", "-1h", "--list", "nodes"]):
            result = ask(*args, "--collector", server.url)
            check_equal((result.returncode, result.stderr.count(b"\n")), (1, 1), "%s: %s" % (args, result.stderr))


testing.main(no_profiles, names_of_others, too_much)
