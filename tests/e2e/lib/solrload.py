# SPDX-License-Identifier: Apache-2.0
"""A client of Solr that knows what it sent, what it got and how long that took, request by request, over connections that
are kept; and an index that is on disk only."""
import ctypes
import json
import os
import random
import re
import socket
import struct
import threading
import time
import urllib.parse

WORDS = ["w%04d" % n for n in range(3000)]


def text(rng, count):
    return " ".join(WORDS[int(rng.paretovariate(0.7)) % len(WORDS)] for _ in range(count))


def document(number, rng):
    return {"id": "d%d" % number, "title_s": text(rng, 4), "body_t": text(rng, 60) + " %x" % rng.getrandbits(9000), "shop_s": "shop%d" % (number % 20),
            "price_i": rng.randrange(10000), "weight_f": rng.random(), "tag_s": WORDS[number % 500]}


def fill(server, core, count, seed=1, batch=500):
    """Documents in several segments, committed."""
    rng = random.Random(seed)
    for first in range(0, count, batch):
        body = json.dumps([document(n, rng) for n in range(first, min(count, first + batch))]).encode()
        answer = server.request("POST", core + "/update", body)
        if answer.status != 200:
            raise RuntimeError("update: %d %s" % (answer.status, answer.body[:300]))
    server.commit(core)


class _Range(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def evict(pid, folder):
    """Pages of the folder's files out of memory, also those that the process has mapped."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    with open("/proc/%d/maps" % pid) as maps:
        for line in maps:
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+\s+(.*)", line)
            if found and found[3].startswith(folder):
                start, end = int(found[1], 16), int(found[2], 16)
                piece = _Range(start, end - start)
                libc.syscall(440, pidfd, ctypes.byref(piece), 1, 21, 0)  # process_madvise(MADV_PAGEOUT)
    os.close(pidfd)
    for path, _, files in os.walk(folder):
        for name in files:
            try:
                fd = os.open(os.path.join(path, name), os.O_RDONLY)
            except FileNotFoundError:
                continue  # merged away
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


class Request:
    """What was sent, what came back."""

    def __init__(self, trace, kind, method, path, body=b""):
        self.trace, self.kind, self.method, self.path, self.body = trace, kind, method, path, body
        self.sent = self.received = self.content = self.status = self.port = 0
        self.start = self.end = 0.0

    def bytes(self):
        head = "%s %s HTTP/1.1\r\nHost: solr\r\nX-Trace-Id: %s\r\n" % (self.method, self.path, self.trace)
        if self.body:
            head += "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(self.body)
        return head.encode() + b"\r\n" + self.body


class Connection:
    """One that is kept; answers are read whole, their bytes counted."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.local = self.socket.getsockname()[1]
        self.buffer = b""

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer += data

    def _until(self, mark):
        while mark not in self.buffer:
            self._more()
        at = self.buffer.index(mark) + len(mark)
        taken, self.buffer = self.buffer[:at], self.buffer[at:]
        return taken

    def _exactly(self, count):
        while len(self.buffer) < count:
            self._more()
        self.buffer = self.buffer[count:]
        return count

    def _body(self, head):
        """Its bytes, and those without the framing of chunks."""
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if length:
            return (self._exactly(int(length[1])),) * 2
        total, content, size = 0, 0, 1
        while size:
            line = self._until(b"\r\n")
            size = int(line.strip(), 16)
            total += len(line) + self._exactly(size + 2)
            content += size
        return total, content

    def run(self, request):
        data = request.bytes()
        request.port, request.sent = self.local, len(data)
        request.start = time.time()
        self.socket.sendall(data)
        head = self._until(b"\r\n\r\n")
        request.status = int(head.split(b" ", 2)[1])
        body, request.content = self._body(head)
        request.received = len(head) + body
        request.end = time.time()

    def close(self):
        # At once, without a wait of the kernel for the other side.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def light(core, trace, rng, size):
    return Request(trace, "light", "GET", "/solr/%s/select?q=id:d%d&fl=id" % (core, rng.randrange(size)))


def search(core, trace, rng, size):
    query = urllib.parse.urlencode({"q": "body_t:%s AND body_t:%s" % (rng.choice(WORDS[:300]), rng.choice(WORDS[:300])),
                                    "fq": "price_i:[%d TO *]" % rng.randrange(5000), "sort": "price_i desc", "rows": "20"})
    return Request(trace, "search", "GET", "/solr/%s/select?%s" % (core, query))


def facet(core, trace, rng, size):
    query = urllib.parse.urlencode({"q": "body_t:" + rng.choice(WORDS[:50]), "rows": "0", "facet": "true", "facet.field": "shop_s",
                                    "stats": "true", "stats.field": "weight_f"})
    return Request(trace, "facet", "GET", "/solr/%s/select?%s" % (core, query))


def large(core, trace, rng, size, rows=150):
    return Request(trace, "large", "GET", "/solr/%s/select?q=*:*&rows=%d&start=%d" % (core, rows, rng.randrange(size // 2)))


def update(core, trace, rng, size):
    documents = [document(rng.randrange(size, 2 * size), rng) for _ in range(10)]
    return Request(trace, "update", "POST", "/solr/%s/update?commitWithin=2000" % core, json.dumps(documents).encode())


def missing(core, trace, rng, size):
    return Request(trace, "missing", "GET", "/solr/%s/nosuch?q=%s" % (core, rng.choice(WORDS)))


def run(port, plans):
    """One connection and thread for each plan (a list of requests); the errors."""
    errors = []

    def work(plan):
        try:
            connection = Connection(port)
            for request in plan:
                connection.run(request)
            connection.close()
        except Exception as e:  # every one is told
            errors.append("%s: %r" % (plan[0].trace, e))
    threads = [threading.Thread(target=work, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def plans(core, connections, each, size, mix, seed=7):
    """mix: kinds by weight. A request's trace id names its connection and its place on it."""
    rng = random.Random(seed)
    kinds, weights = list(mix), list(mix.values())
    return [[rng.choices(kinds, weights)[0](core, "t%d-%d" % (c, n), rng, size) for n in range(each)] for c in range(connections)]
