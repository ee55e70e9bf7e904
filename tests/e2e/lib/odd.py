# SPDX-License-Identifier: Apache-2.0
"""Servers that serve HTTP in odd manners (odd_server.py, Apache, Node), their clients, and what blkprof told of them."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys

from . import testing
from .testing import check, wait_for

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "odd_server.py")
APACHE = """
ServerRoot %(folder)s
ServerName localhost
PidFile %(folder)s/pid
ErrorLog %(folder)s/errors
Listen 127.0.0.1:%(port)d
LoadModule mpm_event_module %(modules)s/mod_mpm_event.so
LoadModule authz_core_module %(modules)s/mod_authz_core.so
LoadModule http2_module %(modules)s/mod_http2.so
LoadModule dir_module %(modules)s/mod_dir.so
Protocols h2c http/1.1
DocumentRoot %(folder)s/pages
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
MinSpareThreads 1
MaxSpareThreads 8
"""
MODULES = "/usr/lib/apache2/modules"
NODE = """
const http = require("http");
http.createServer((q, a) => {
  const [status, size] = q.url.split("/").slice(-2).map(Number);
  q.resume();
  setTimeout(() => { a.writeHead(status, {"Content-Length": size}); for (let left = size; left > 0; left -= 50000) a.write("n".repeat(Math.min(left, 50000)));
    a.end(); }, q.url.includes("slow") ? 50 : 0);
}).listen(0, "127.0.0.1", function () { console.log(this.address().port); });
"""


class OddServer:
    def __init__(self, folder):
        self.process = subprocess.Popen([sys.executable, SERVER, folder], stdout=subprocess.PIPE, text=True)
        self.ports = json.loads(self.process.stdout.readline())
        self.pid = self.process.pid

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def connect(self, manner):
        return Client(self.ports[manner])

    def raw(self, *parts):
        with self.connect("threads") as c:
            for part in parts:
                c.socket.sendall(part)
            c.answers(1)


class Client:
    """One connection; answers(n) are the statuses and bodies of the next n answers."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def send(self, *targets, method="GET", more="", body=b""):
        self.socket.sendall(b"".join(("%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (method, t, more)).encode() + body for t in targets))

    def more(self):
        part = self.socket.recv(1 << 20)
        if not part:
            raise EOFError("the connection ended")
        self.data += part

    def answer(self):
        while b"\r\n\r\n" not in self.data:
            self.more()
        head, _, rest = self.data.partition(b"\r\n\r\n")
        lines = dict(line.lower().split(b": ") for line in head.split(b"\r\n")[1:])
        length = int(lines.get(b"content-length", 0))
        parts, have = [rest], len(rest)
        while have < length:
            parts.append(self.socket.recv(1 << 20))
            have += len(parts[-1])
            if not parts[-1]:
                raise EOFError("the answer broke off")
        rest = b"".join(parts)
        self.data = rest[length:]
        return int(head.split(b" ")[1]), int(lines.get(b"x-tid", 0)), len(head) + 4 + length

    def answers(self, n):
        return [self.answer() for _ in range(n)]

    def ask(self, *targets, **more):
        self.send(*targets, **more)
        return self.answers(len(targets))

    def wait_for_end(self):
        with contextlib.suppress(OSError):
            while self.socket.recv(65536):
                pass


class Told:
    def __init__(self, records, said):
        self.records, self.said = records, said

    def of(self, prefix):
        return [r for r in self.records if r.get("path_s", "").startswith("/%s/" % prefix) and r["kind_s"] == "request"]

    def by_path(self, prefix):
        found = {}
        for r in self.of(prefix):
            check(r["path_s"] not in found, "%s is told twice" % r["path_s"])
            found[r["path_s"]] = r
        return found

    def count(self, name):
        for line in self.said.splitlines():
            if line.split(" ")[1:2] == [name + ":"]:
                return int(line.split(" ")[0])
        return 0


class Apache:
    def __init__(self, folder):
        if not shutil.which("apache2") or not shutil.which("curl"):
            testing.skip("no apache2 and curl here")
        self.folder = os.path.join(folder, "apache")
        os.makedirs(os.path.join(self.folder, "pages"))
        os.chmod(folder, 0o755)
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        with open(os.path.join(self.folder, "conf"), "w") as f:
            f.write(APACHE % {"folder": self.folder, "port": self.port, "modules": MODULES})
        for i in range(8):
            with open(os.path.join(self.folder, "pages", "page%d" % i), "wb") as f:
                f.write(b"p" * (100 + i))
        self.process = subprocess.Popen(["apache2", "-f", os.path.join(self.folder, "conf"), "-DFOREGROUND"], stderr=subprocess.DEVNULL)
        wait_for(self.answers, "Apache", 20)

    def answers(self):
        with contextlib.suppress(OSError):
            with Client(self.port) as c:
                return c.ask("/page0")
        return None

    def close(self):
        self.process.terminate()
        self.process.wait()


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def http2_streams(port, targets):
    """Asks for all at once, by prior knowledge; how many streams ended."""
    out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
    for i, target in enumerate(targets):  # GET, http, :path and :authority as they are
        head = b"\x82\x86\x04" + bytes([len(target)]) + target.encode() + b"\x01\x01x"
        out += frame(1, 5, 2 * i + 1, head)
    ended = set()
    with Client(port) as c:
        c.socket.sendall(out)
        while len(ended) < len(targets):
            while len(c.data) < 9 or len(c.data) < 9 + int.from_bytes(c.data[:3], "big"):
                c.more()
            size, flags, stream = int.from_bytes(c.data[:3], "big"), c.data[4], int.from_bytes(c.data[5:9], "big")
            if c.data[3] in (0, 1) and flags & 1:
                ended.add(stream)
            c.data = c.data[9 + size:]
    return len(ended)


def certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", os.path.join(folder, "key.pem"), "-out", os.path.join(folder, "cert.pem")],
                   stderr=subprocess.DEVNULL, check=True)


@contextlib.contextmanager
def odd_server():
    with testing.scratch() as folder:
        certificate(folder)
        server = OddServer(folder)
        try:
            yield folder, server
        finally:
            server.close()
