#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=sanitized timeout=120
"""Servers that come and go while they are followed, killed with requests open; with what only pretends to be a JVM in their memory."""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

from lib import blkprof, testing
from lib.testing import check, check_equal, wait_for

SERVER = """
import mmap, os, signal, socket, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
memory = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(9); print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    if b"/open" in c.recv(4096):
        os.kill(os.getpid(), signal.SIGKILL)
    c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok"); c.close()
"""
PROBES = ((b"hotspot", b"gc__end"), (b"hotspot", b"gc__begin"), (b"hs_private", b"safepoint__end"), (b"hs_private", b"safepoint__begin"))
CODE = 0x1000


def note(provider, name, at):
    text = struct.pack("<QQQ", at, 0, 0) + provider + b"\0" + name + b"\0\0"
    return struct.pack("<III", 8, len(text), 3) + b"stapsdt\0" + text + b"\0" * (-len(text) % 4)


def library(places, code=b"\x90" * 4096, length=None):
    """An ELF file with one page of code and notes of a JVM's probes at these places, whose section says that it is so long."""
    notes = b"".join(note(provider, name, at) for at in places for provider, name in PROBES)
    names = b"\0.note.stapsdt\0.shstrtab\0"
    at_notes = CODE + len(code)
    at_names = at_notes + len(notes)
    at_sections = (at_names + len(names) + 7) & ~7

    def section(name, kind, offset, size):
        return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, 0, 0, 4, 0)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, at_sections, 0, 64, 56, 1, 64, 3, 2)
    head += struct.pack("<IIQQQQQQ", 1, 5, CODE, CODE, CODE, len(code), len(code), 4096)
    text = (head.ljust(CODE, b"\0") + code + notes + names).ljust(at_sections, b"\0")
    return text + bytes(64) + section(1, 7, at_notes, length or len(notes)) + section(15, 3, at_names, len(names))


LIBRARIES = {
    "wild": library((0, CODE - 1, CODE + 4096, 1 << 63, 2 ** 64 - 1, CODE)),
    "many": library([CODE + i % 4096 for i in range(25000)]),
    "overlapping": library([CODE + 16] * 20),
    "breakpoints": library((CODE,), b"\xcc" * 4096),
    "long": library((CODE,), length=1 << 63),
    "cut": library((CODE,))[:CODE + 4200],
    "no_elf": b"\x7fELF".ljust(4096, b"\xff"),
}


def start(folder, name):
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    path = os.path.join(folder, name, "libjvm.so")
    with open(path, "wb") as f:
        f.write(LIBRARIES[name])
    server = subprocess.Popen([sys.executable, os.path.join(folder, "server.py"), path], stdout=subprocess.PIPE, text=True)
    server.port = int(server.stdout.readline())
    return server


def ask(server, path):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
        s.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
        try:
            return s.recv(4096)
        except ConnectionResetError:
            return b""


def records(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


def nobody_reads():
    """Ctrl-C ends it also when it waits for somebody who reads what it writes."""
    with testing.scratch() as folder:
        with open(os.path.join(folder, "server.py"), "w") as f:
            f.write(SERVER)
        server = start(folder, "no_elf")
        full = os.pipe()
        following = subprocess.Popen([blkprof.path(), "requests", "-p", str(server.pid), "--json"], stdout=full[1], stderr=subprocess.PIPE, text=True)
        os.close(full[1])

        def waits():
            for _ in range(100):
                ask(server, b"/" + b"x" * 900)
            with open("/proc/%d/wchan" % following.pid) as f:
                return "pipe" in f.read()
        try:
            wait_for(waits, "it waits for a reader", 60)
            following.send_signal(signal.SIGINT)
            said = following.communicate(timeout=30)[1]
            check("cannot write to standard output" in said and "Sanitizer" not in said, "it said %r" % said)
        finally:
            following.kill()
            server.kill()
            server.wait()
            server.stdout.close()
            os.close(full[0])


def killed():
    with testing.scratch() as folder:
        out = os.path.join(folder, "records")
        with open(os.path.join(folder, "server.py"), "w") as f:
            f.write(SERVER)
        with open(out, "w") as stdout, open(out + ".stderr", "w") as stderr:
            following = subprocess.Popen([blkprof.path(), "requests", "--cmdline", folder + "/server.py", "--json", "--java-names"],
                                         stdout=stdout, stderr=stderr)
        servers = []
        try:
            servers = [start(folder, name) for name in LIBRARIES]

            def followed():
                for s in servers:
                    check(ask(s, b"/x").endswith(b"ok"), "an answer")
                return {r["pid_i"] for r in records(out)} >= {s.pid for s in servers}
            wait_for(followed, "records of each", 60)
            for server, name in zip(servers, LIBRARIES):
                os.unlink(os.path.join(folder, name, "libjvm.so"))
                check(ask(server, b"/x").endswith(b"ok"), "%s: an answer when its library is gone" % name)
                check_equal(ask(server, b"/open"), b"", "%s: what it says when it is killed" % name)
                check_equal(server.wait(20), -signal.SIGKILL, "%s: its end" % name)
            wait_for(lambda: sum(r.get("path_s") == "/open" for r in records(out)) == len(servers), "records of requests that have no answer", 60)
            before = time.monotonic()
            while time.monotonic() < before + 1 and following.poll() is None:
                time.sleep(0.1)
        finally:
            following.send_signal(signal.SIGINT)
            status = following.wait(60)
            for server in servers:
                server.kill()
                server.wait()
                server.stdout.close()
        with open(out + ".stderr") as f:
            said = f.read()
        check_equal(status, 0, "exit status; it said %r" % said)
        for record in records(out):
            check("thread_s" not in record, "a name: %r" % record.get("thread_s"))
        check("signals:" not in said, "it said %r" % said)


def main():
    testing.need_root()
    testing.main(killed, nobody_reads)


if __name__ == "__main__":
    main()
