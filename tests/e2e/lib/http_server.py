#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""http_server.py PORT DEVICE FOLDER: a threaded HTTP/1.1 server that does what a request asks for (?readv=2&fault=3&fsync=1&…)
and keeps what it measured itself; /truth answers with it, one JSON object a request."""
import http.server
import json
import mmap
import os
import sys
import threading
import time
import urllib.parse

PAGE = 4096


class Disk:
    """Reads and writes that reach the device: one block I/O of 4 KiB each."""

    def __init__(self, device, folder):
        self.folder = folder
        self.direct = os.open(device, os.O_RDWR | os.O_DIRECT)
        self.buffered = os.open(device, os.O_RDWR)
        self.cached = os.open(os.path.join(folder, "cached"), os.O_RDWR | os.O_CREAT)
        os.write(self.cached, b"c" * PAGE)
        self.pages = os.lseek(self.buffered, 0, os.SEEK_END) // PAGE
        self.map = mmap.mmap(self.buffered, self.pages * PAGE, prot=mmap.PROT_READ)
        self.map.madvise(mmap.MADV_RANDOM)  # no readahead: a fault reads one page
        self.lock, self.next = threading.Lock(), 0
        self.held = threading.Lock()

    def page(self):
        """Each page once: none is in the cache."""
        with self.lock:
            self.next += 1
            return self.next % self.pages * PAGE

    def readv(self, buffer):
        os.preadv(self.direct, [buffer], self.page())

    def writev(self, buffer):
        os.pwritev(self.direct, [buffer], self.page())

    def pread(self, buffer):
        os.pread(self.cached, PAGE, 0)

    def fault(self, buffer):
        return self.map[self.page()]

    def fsync(self, buffer):
        os.fsync(self.direct)

    def journal(self, buffer):
        """A new name: its fsync has to commit the journal."""
        with self.lock:
            self.next += 1
            name = os.path.join(self.folder, "new-%d" % self.next)
        fd = os.open(name, os.O_RDWR | os.O_CREAT)
        os.write(fd, b"j" * PAGE)
        os.fsync(fd)
        os.close(fd)

    def sleep(self, buffer):
        time.sleep(0.001)

    def wait(self, buffer):
        """For a lock that somebody holds for 5 ms."""
        self.held.acquire()
        threading.Timer(0.005, self.held.release).start()
        self.held.acquire()
        self.held.release()

    def burn(self, buffer):
        end = time.thread_time_ns() + 1000000
        while time.thread_time_ns() < end:
            pass


WORK = ("readv", "writev", "pread", "fault", "fsync", "journal", "sleep", "wait", "burn")
LOCAL = threading.local()
TRUTH, TRUTH_LOCK = [], threading.Lock()


def buffer():
    if not hasattr(LOCAL, "buffer"):
        LOCAL.buffer = mmap.mmap(-1, PAGE)
    return LOCAL.buffer


def schedstat():
    with open("/proc/thread-self/schedstat") as f:
        return [int(n) for n in f.read().split()[:2]]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disk = None

    def log_message(self, *args):
        pass

    def work(self, query):
        truth = {"trace": self.headers.get("X-Trace-Id"), "tid": threading.get_native_id(), "path": self.path}
        begin, (cpu, queue) = time.monotonic_ns(), schedstat()
        for name in WORK:
            count = int(query.get(name, ["0"])[0])
            start = time.monotonic_ns()
            for _ in range(count):
                getattr(self.disk, name)(buffer())
            truth[name], truth[name + "_ns"] = count, time.monotonic_ns() - start if count else 0
        after = schedstat()
        truth.update(oncpu_ns=after[0] - cpu, runq_ns=after[1] - queue, ns=time.monotonic_ns() - begin)
        with TRUTH_LOCK:
            TRUTH.append(truth)

    def later(self, reads):
        """What a server does on a thread of its own that serves no request."""
        for _ in range(reads):
            self.disk.readv(buffer())
            time.sleep(0.02)

    def answer(self, body, chunked=False, status=200):
        self.send_response(status)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for at in range(0, len(body), 1000):
                part = body[at:at + 1000]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        if url.path == "/truth":
            with TRUTH_LOCK:
                self.answer(json.dumps(TRUTH).encode())
            return
        if url.path == "/hang up":
            self.connection.close()
            return
        self.work(query)
        if "later" in query:
            threading.Thread(target=self.later, args=(int(query["later"][0]),)).start()
        self.answer(b"x" * int(query.get("bytes", ["100"])[0]), "chunked" in query, int(query.get("status", ["200"])[0]))

    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            size = int(self.rfile.readline(), 16)
            while size:
                self.rfile.read(size + 2)
                size = int(self.rfile.readline(), 16)
            self.rfile.readline()
        else:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients of this test break off


def main():
    Handler.disk = Disk(sys.argv[2], sys.argv[3])
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
