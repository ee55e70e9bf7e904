# SPDX-License-Identifier: Apache-2.0
"""Runs a collector with a configuration of its own, and loads of batches against it."""
import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import time

from . import blkprof
from .devices import program
from .testing import wait_for


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def keygen(path):
    """A new key in a file: its public half."""
    result = blkprof.run("keygen", "-o", path)
    if result.returncode:
        raise RuntimeError(result.stderr)
    return result.stdout.strip()


class Collector:
    """A collector in `folder`; with curve it has a key, and the file `allowed` says who may send. It serves HTTP when `http`
    is a list of more lines of its configuration."""

    def __init__(self, folder, curve=False, wrapper=(), store=None, env=None, files=None, address=None, http=None, more=""):
        self.folder, self.wrapper, self.env, self.files = folder, list(wrapper), env, files
        self.port = free_port()
        self.address = address or "tcp://127.0.0.1:%d" % self.port
        self.store = store or os.path.join(folder, "store")
        self.allowed, self.log_path = os.path.join(folder, "allowed"), os.path.join(folder, "collector.log")
        self.config = os.path.join(folder, "collector.conf")
        self.public = None
        self.http_port = free_port() if http is not None else None
        while self.http_port == self.port:
            self.http_port = free_port()
        lines = ["[collector]", "bind = %s" % self.address]
        lines += ["listen ="] if http is None else ["listen = 127.0.0.1:%d" % self.http_port, *http]
        if curve:
            self.public = keygen(os.path.join(folder, "collector.key"))
            open(self.allowed, "a").close()
            lines += ["key = %s/collector.key" % folder, "allowed_keys = %s" % self.allowed]
        lines += ["[store]", "directory = %s" % self.store, more]
        with open(self.config, "w") as f:
            f.write("\n".join(lines) + "\n")
        self.process = None

    def start(self):
        with open(self.log_path, "a") as log:
            mark = log.tell()
            self.process = subprocess.Popen([*self.wrapper, blkprof.path(), "collector", "-c", self.config], stdin=subprocess.DEVNULL,
                                            stderr=log, env=dict(os.environ, **(self.env or {})),
                                            preexec_fn=self._limit if self.files else None)
        wait_for(lambda: "listening at" in self.log()[mark:] or self.process.poll() is not None, "the collector", 60)
        if self.process.poll() is not None:
            raise RuntimeError("the collector does not start: %s" % self.log()[mark:])
        return self

    def _limit(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files))

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        if self.process.poll() is None:
            with contextlib.suppress(Exception):
                self.stop()
        if self.process.poll() is None:
            self.kill()

    def pid(self):
        """Of the collector itself, also under a wrapper."""
        if not self.wrapper:
            return self.process.pid
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as f:
            return int(f.read().split()[0])

    def signal(self, number):
        os.kill(self.pid(), number)

    def stop(self, timeout=60):
        """Its exit status, and how long it took."""
        before = time.monotonic()
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=timeout), time.monotonic() - before

    def kill(self):
        with contextlib.suppress(ProcessLookupError, IndexError, FileNotFoundError):
            self.signal(signal.SIGKILL)
        self.process.wait(timeout=60)

    def log(self):
        with open(self.log_path) as f:
            return f.read()

    def counters(self):
        """What it printed at its last end: {'refused_total{cause="broken"}': 3}"""
        return {name: int(value) for name, value in re.findall(r"^blkprof_collector_(\S+) (\d+)$", self.log(), re.M)}

    def rss(self):
        with open("/proc/%d/status" % self.pid()) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) << 10


class Load:
    """batchload against a collector, in the background."""

    def __init__(self, collector, keys=None, **options):
        args = [program("batchload"), "--address", collector.address]
        for name, value in options.items():
            args += ["--" + name.replace("_", "-"), str(value)]
        if keys:
            args += ["--server-key", collector.public, "--keys", keys]
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if keys and self.process.stdout.readline() != "ready\n":
            raise RuntimeError("batchload does not start")
        self.keys = keys

    def go(self):
        if self.keys:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        return self

    def result(self, timeout=120):
        out, _ = self.process.communicate(timeout=timeout)
        if self.process.returncode:
            raise RuntimeError("batchload ended with %d" % self.process.returncode)
        return json.loads(out.splitlines()[-1])


def load(collector, **options):
    return Load(collector, **options).go().result()
