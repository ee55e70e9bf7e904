# SPDX-License-Identifier: Apache-2.0
"""Runs `blkprof agent` and reads its spool."""
import os
import re
import signal
import socket
import struct
import subprocess
import time
import zlib

from . import blkprof
from .pprof import Profile, message, one
from .testing import wait_for

HEADER, WIRE_HEADER = 192, 20
WINDOW, GAP = 1, 2


class Batch:
    """One file of the spool: profiles by service, labels by name."""

    def __init__(self, data):
        if data[:8] != b"BLKSPOOL" or zlib.crc32(data[:HEADER - 4]) != struct.unpack_from("<I", data, HEADER - 4)[0]:
            raise ValueError("the header is damaged")
        self.instance = data[16:32].hex()
        self.sequence, self.start, self.end, self.gap_first, self.gap_bytes, size = struct.unpack_from("<6Q", data, 32)
        payload = data[HEADER:]
        if len(payload) != size or zlib.crc32(payload) != struct.unpack_from("<I", data, HEADER - 8)[0]:
            raise ValueError("the batch is damaged")
        top = message(payload[WIRE_HEADER:])
        self.kind, self.node = one(top, 1), one(top, 2, b"").decode()
        self.labels = {one(m, 1, b"").decode(): one(m, 2, b"").decode() for m in map(message, top[7] if 7 in top else [])}
        self.profiles = {one(m, 1, b"").decode(): Profile(one(m, 2)) for m in map(message, top[8] if 8 in top else [])}
        self.requests = top[11] if 11 in top else []


def spool(folder):
    """The batches of a spool, in the order in which they were written."""
    result = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".batch"):
            with open(os.path.join(folder, name), "rb") as f:
                result.append(Batch(f.read()))
    return result


class Agent:
    def __init__(self, folder, window="1s", agent=(), more="", spool_folder=None, max_size="64MiB", prefix=(), notify=False,
                 node="test-node"):
        self.folder, self.spool = folder, spool_folder or os.path.join(folder, "spool")
        self.config, self.log_path = os.path.join(folder, "agent.conf"), os.path.join(folder, "agent.log")
        self.window, self.max_size, self.prefix = window, max_size, list(prefix)
        self.env, self.socket, self.node = dict(os.environ), None, node
        if notify:
            path = os.path.join(folder, "notify")
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.socket.bind(path)
            self.socket.settimeout(30)
            self.env.update(NOTIFY_SOCKET=path, WATCHDOG_USEC="1000000")
        self.configure(agent, more)
        self.process = None

    def configure(self, agent=(), more=""):
        """Every request's stack is taken unless `agent` has a rate: what a process did is then exact."""
        if not any(line.startswith("rate") for line in agent):
            agent = (*agent, "rate = 0")
        if not any(line.startswith("listen") for line in agent):
            agent = (*agent, "listen =")
        with open(self.config, "w") as f:
            f.write("[agent]\n%swindow = %s\n%s\n[spool]\ndirectory = %s\nmax_size = %s\n%s" % (
                "node = %s\n" % self.node if self.node else "", self.window, "\n".join(agent), self.spool, self.max_size, more))

    def start(self):
        log = open(self.log_path, "ab")
        mark = os.path.getsize(self.log_path)
        self.process = subprocess.Popen(self.prefix + [blkprof.path(), "agent", "-c", self.config], stdin=subprocess.DEVNULL,
                                        stderr=log, env=self.env)
        log.close()
        try:
            wait_for(lambda: "backend " in self.log(mark) or self.process.poll() is not None, "the agent", 120)
        except TimeoutError as e:
            raise RuntimeError("%s; it said: %s; it is at %s" % (e, self.log(mark), self.stack())) from None
        if self.process.poll() is not None:
            raise RuntimeError("the agent ended: " + self.log(mark))
        return self

    def log(self, start=0):
        with open(self.log_path, "rb") as f:
            f.seek(start)
            return f.read().decode(errors="replace")

    def stack(self):
        """Where the kernel has its threads."""
        folder = "/proc/%d/task" % self.process.pid
        result = []
        for task in os.listdir(folder):
            with open("%s/%s/comm" % (folder, task)) as comm, open("%s/%s/stack" % (folder, task)) as stack:
                result.append("%s: %s" % (comm.read().strip(), " ".join(line.split()[-1] for line in stack.read().splitlines())))
        return result

    def signal(self, number):
        self.process.send_signal(number)

    def hears(self, text, timeout=30):
        wait_for(lambda: text in self.log(), "'%s' in the log" % text, timeout)

    def address(self):
        """HOST:PORT of its HTTP server, as it said last."""
        return re.findall(r"serving HTTPS? at (\S+)", self.log())[-1]

    def stop(self):
        """Seconds that it took; an error when it did not end with 0."""
        begin = time.monotonic()
        self.signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        if status:
            raise RuntimeError("the agent ended with %d: %s" % (status, self.log()[-1000:]))
        return time.monotonic() - begin

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def batches(self):
        return spool(self.spool)

    def wait_windows(self, n, timeout=60):
        wait_for(lambda: sum(name.endswith(".batch") for name in os.listdir(self.spool)) >= n, "%d batches" % n, timeout)

    def metrics(self):
        """{name with labels: number}, by SIGUSR1."""
        before = len(self.log())
        self.signal(signal.SIGUSR1)
        wait_for(lambda: 'blkprof_agent_lost_total{cause="rows_full"}' in self.log()[before:], "the metrics", 30)
        lines = [line.split(": ", 1)[-1] for line in self.log()[before:].splitlines()]
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("blkprof_")}

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.socket:
            self.socket.close()
