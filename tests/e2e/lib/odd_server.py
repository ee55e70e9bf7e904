#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""odd_server.py FOLDER: one process that serves HTTP in every odd manner there is, each on a port of its own (a JSON line tells
them). A request is answered with the status and as many bytes as its path says: /anything/STATUS/BYTES."""
import json
import os
import queue
import resource
import selectors
import socket
import ssl
import sys
import threading
import time

FOLDER = sys.argv[1]


class Request:
    def __init__(self, head, body):
        self.method, self.path = head.split(b" ", 2)[:2]
        self.path, self.head, self.body = self.path.decode("latin1"), head, body
        parts = self.path.split("?")[0].split("/")
        self.status, self.bytes = (int(parts[-2]), int(parts[-1])) if len(parts) > 3 else (200, 5)

    def answer(self):
        if self.status in (204, 304):
            return b"HTTP/1.1 %d X\r\nX-Tid: %d\r\n\r\n" % (self.status, threading.get_native_id()), b""
        head = b"HTTP/1.1 %d X\r\nX-Tid: %d\r\nContent-Length: %d\r\n\r\n" % (self.status, threading.get_native_id(), self.bytes)
        return head, b"b" * self.bytes


def head_length(data, name):
    for line in data.split(b"\r\n")[1:]:
        if line.lower().startswith(name + b":"):
            return int(line.split(b":")[1])
    return 0


class Stream:
    """Requests off a connection; `read` gives more bytes, b"" at its end."""

    def __init__(self, connection, read=None):
        self.socket, self.data = connection, b""
        self.read = read or (lambda: connection.recv(8192))

    def more(self):
        part = self.read()
        self.data += part
        return bool(part)

    def whole(self):
        """The first request in what was read, if it is whole."""
        head, end, rest = self.data.partition(b"\r\n\r\n")
        if not end:
            return None
        if b"chunked" in head:
            chunks, last, rest = rest.partition(b"0\r\n\r\n")
            if not last:
                return None
            self.data = rest
            return Request(head, chunks)
        length = head_length(head, b"content-length")
        if len(rest) < length:
            return None
        self.data = rest[length:]
        return Request(head, rest[:length])

    def request(self):
        while True:
            r = self.whole()
            if r or not self.more():
                return r

    def requests(self):
        while r := self.request():
            yield r


def send(connection, request):
    connection.sendall(b"".join(request.answer()))


def each_in_a_thread(listener, serve):
    def run(connection):
        with connection:
            try:
                serve(connection)
            except OSError:
                pass
    while True:
        connection = listener.accept()[0]
        threading.Thread(target=run, args=(connection,), daemon=True).start()
        del connection


def threads(listener):
    def serve(connection):
        for r in Stream(connection).requests():
            send(connection, r)
    each_in_a_thread(listener, serve)


def peeks(listener):
    """Looks at what there is before each read, and in the midst of an answer at whether the client is still there."""
    def serve(connection):
        def read():
            connection.recv(4096, socket.MSG_PEEK)
            connection.recvmsg(100, 0, socket.MSG_PEEK)
            return connection.recv(8192)
        for r in Stream(connection, read).requests():
            head, body = r.answer()
            connection.sendall(head)
            try:
                connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                pass
            connection.sendall(body)
    each_in_a_thread(listener, serve)


def coalesces(listener):
    """All answers to what one read brought in one write."""
    def serve(connection):
        s = Stream(connection, lambda: connection.recv(65536))
        while s.more():
            out = b""
            while r := s.whole():
                out += b"".join(r.answer())
            if out:
                connection.sendall(out)
    each_in_a_thread(listener, serve)


def large_reads(listener):
    def serve(connection):
        for r in Stream(connection, lambda: connection.recv(65536)).requests():
            send(connection, r)
    each_in_a_thread(listener, serve)


def pool(listener, hand_off=False):
    """A thread waits for connections, four serve; with hand_off it reads the request itself, and goes on with the next."""
    ready, ask, done = selectors.DefaultSelector(), queue.Queue(), queue.Queue()
    wake, waker = os.pipe()
    streams = {}

    def work():
        while True:
            stream, r = ask.get()
            try:
                r = r or stream.request()
                if r and "slow" in r.path:
                    time.sleep(0.03)
                if r:
                    send(stream.socket, r)
            except OSError:
                r = None
            done.put((stream, r))
            os.write(waker, b"x")

    def again(stream, alive):
        if alive:
            ready.register(stream.socket, selectors.EVENT_READ, stream)
        else:
            stream.socket.close()

    def take(stream):
        r = stream.request() if hand_off else None
        if hand_off and not r:
            stream.socket.close()
        else:
            ask.put((stream, r))

    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    ready.register(listener, selectors.EVENT_READ, "listener")
    ready.register(wake, selectors.EVENT_READ, "wake")
    while True:
        for key, _ in ready.select():
            if key.data == "listener":
                again(Stream(listener.accept()[0]), True)
            elif key.data == "wake":
                os.read(wake, 1)
                again(*done.get())
            else:
                ready.unregister(key.fileobj)
                take(key.data)


def executor(listener):
    pool(listener, hand_off=True)


def carriers(listener):
    """What virtual threads look like: A reads two requests, answers the second, B the first."""
    while True:
        a, b = (Stream(listener.accept()[0]) for _ in range(2))
        first, second = a.request(), b.request()
        t = threading.Thread(target=send, args=(a.socket, first))
        t.start()
        t.join()
        send(b.socket, second)
        a.request(), b.request()
        a.socket.close(), b.socket.close()


def forks(listener):
    """A process for each connection, which ends with it; its parent's own end of the connection is closed in the midst."""
    while True:
        connection = listener.accept()[0]
        if not os.fork():
            for r in Stream(connection).requests():
                time.sleep(0.06 if "slow" in r.path else 0)
                send(connection, r)
            os._exit(0)
        threading.Timer(0.03, connection.close).start()


def stuck(listener):
    """One thread for all: what asks for /stuck is never answered."""
    kept = []
    while True:
        connection = listener.accept()[0]
        s = Stream(connection)
        r = s.request()
        while r and "stuck" not in r.path:
            send(connection, r)
            r = s.request()
        if r:
            kept.append(s)
        else:
            connection.close()


def drops(listener):
    """Hangs up without an answer."""
    each_in_a_thread(listener, lambda connection: Stream(connection).request())


def idle(listener):
    """Answers one request and closes by itself a while after."""
    def serve(connection):
        send(connection, Stream(connection).request())
        time.sleep(0.1)
    each_in_a_thread(listener, serve)


def slowly(listener):
    """Head, and the body in three parts, 40 ms between each."""
    def serve(connection):
        for r in Stream(connection).requests():
            head, body = r.answer()
            for part in (head, body[:1], body[1:2], body[2:]):
                connection.sendall(part)
                time.sleep(0.04)
    each_in_a_thread(listener, serve)


def calls(listener):
    """Reads and writes with the call that ?read= of the connection's first request and ?write= name."""
    def readv(connection):
        parts = [bytearray(100) for _ in range(64)]
        n = os.readv(connection.fileno(), parts)
        return b"".join(parts)[:n]

    def recvmsg(connection):
        return connection.recvmsg(500000)[0]

    def splice(connection):
        r, w = os.pipe()
        n = os.splice(connection.fileno(), w, 65536)
        data = os.read(r, n) if n else b""
        os.close(r), os.close(w)
        return data

    def write(fd, data):
        while data:
            data = data[os.write(fd, data):]

    def writev(fd, data):
        size = max(1, len(data) // 100 + 1)
        parts = [data[i:i + size] for i in range(0, len(data), size)]
        while parts:
            n = os.writev(fd, parts)
            while parts and n >= len(parts[0]):
                n -= len(parts.pop(0))
            if parts:
                parts[0] = parts[0][n:]

    def file_of(data):
        f = open(os.path.join(FOLDER, "sent-%d" % threading.get_native_id()), "w+b")
        f.write(data)
        f.flush()
        return f

    def sendfile(fd, data):
        with file_of(data) as f:
            at = 0
            while at < len(data):
                at += os.sendfile(fd, f.fileno(), at, len(data) - at)

    def splice_out(fd, data):
        r, w = os.pipe()
        with file_of(data) as f:
            at = 0
            while at < len(data):
                n = os.splice(f.fileno(), w, min(65536, len(data) - at), offset_src=at)
                at += n
                while n:
                    n -= os.splice(r, fd, n)
        os.close(r), os.close(w)

    readers = {"readv": readv, "recvmsg": recvmsg, "splice": splice, "recv": lambda c: c.recv(500000)}
    writers = {"write": write, "writev": writev, "sendfile": sendfile, "splice": splice_out}

    def serve(connection):
        s = Stream(connection)
        for r in s.requests():
            options = dict(o.split("=") for o in r.path.partition("?")[2].split("&") if o)
            if "read" in options:
                reader = readers[options["read"]]
                s.read = lambda: reader(connection)
            head, body = r.answer()
            how = options.get("write", "send")
            if how == "sendmsg":
                parts = [head] + [body[i:i + 1000] for i in range(0, len(body), 1000)]
                for i in range(0, len(parts), 500):
                    left = b"".join(parts[i:i + 500])
                    n = connection.sendmsg(parts[i:i + 500])
                    connection.sendall(left[n:])
            elif how == "send":
                connection.sendall(head + body)
            elif how in ("sendfile", "splice"):
                connection.sendall(head)
                writers[how](connection.fileno(), body)
            else:
                writers[how](connection.fileno(), head + body)
    each_in_a_thread(listener, serve)


def tls(listener):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "cert.pem"), os.path.join(FOLDER, "key.pem"))

    def serve(connection):
        with context.wrap_socket(connection, server_side=True) as secret:
            for r in Stream(secret).requests():
                send(secret, r)
    each_in_a_thread(listener, serve)


class Pairs:
    """Requests that nobody answers, on connections of this process with itself."""

    def __init__(self):
        self.ends = []

    def fill(self, n):
        for _ in range(n):
            here, there = socket.socketpair()
            there.send(b"GET /fill HTTP/1.1\r\n\r\n")
            here.recv(100)
            there.close()
            self.ends.append(here)

    def drain(self):
        for end in self.ends:
            end.close()
        self.ends = []


def fills(listener):
    pairs = Pairs()

    def serve(connection):
        for r in Stream(connection).requests():
            if r.path.startswith("/full/"):
                pairs.fill(int(r.path.rsplit("/", 1)[1]))
                r.bytes = 5
            elif r.path.startswith("/drain/"):
                pairs.drain()
            send(connection, r)
    each_in_a_thread(listener, serve)


MANNERS = (threads, peeks, coalesces, large_reads, pool, executor, carriers, forks, stuck, drops, idle, slowly, calls, tls, fills)


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ports = {}
    for manner in MANNERS:
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        ports[manner.__name__] = listener.getsockname()[1]
        threading.Thread(target=manner, args=(listener,), daemon=True).start()
    print(json.dumps(ports), flush=True)
    threading.Event().wait()


main()
