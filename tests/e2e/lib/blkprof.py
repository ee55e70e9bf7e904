# SPDX-License-Identifier: Apache-2.0
"""Runs the program under test."""
import glob
import json
import os
import signal
import subprocess
import time

from .devices import build
from .pprof import Profile
from .testing import wait_for


def path():
    return os.environ.get("BLKPROF") or os.path.join(build(), "blkprof")


def run(*args, timeout=120, **kw):
    """Result with returncode, stdout and stderr as text."""
    if "input" not in kw:
        kw.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([path(), *args], timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)


def record_command(folder, options, command, timeout=120):
    """`record OPTIONS -- COMMAND`: (profile, result)."""
    out = os.path.join(folder, "command-%d.pb.gz" % time.monotonic_ns())
    result = run("record", "-o", out, *options, "--", *command, timeout=timeout)
    if result.returncode:
        raise RuntimeError("record ended with %d: %s" % (result.returncode, result.stderr))
    return Profile.read(out), result


def record_load(folder, options, command, timeout=120):
    """The same for a load generator: (profile, its truth, what record said)."""
    profile, result = record_command(folder, options, command, timeout)
    return profile, json.loads(result.stdout), result.stderr


def bpf_links(pid):
    """How many attached BPF programs or perf events the process holds."""
    links = 0
    for info in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            with open(info) as f:
                links += "link_type:" in f.read()
        except OSError:
            pass
    return links


class Recording:
    """`record` of the node in the background. It is on from the start of the with block: a marker command tells."""

    def __init__(self, folder, *options, marker=True):
        self.out = os.path.join(folder, "recording-%d.pb.gz" % time.monotonic_ns())
        self.err = self.out + ".stderr"
        args = [path(), "record", "-o", self.out, *options]
        if marker:
            args += ["-a", "--", "sh", "-c", "echo on; cat >/dev/null"]
        with open(self.err, "w") as err:
            self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True)
        self.marker = marker

    def __enter__(self):
        try:
            if self.marker:
                if self.process.stdout.readline() != "on\n":
                    raise RuntimeError("record does not start: %s" % self.stderr())
            else:
                wait_for(lambda: bpf_links(self.process.pid) or self.process.poll() is not None, "record to attach", 60)
                if self.process.poll() is not None:
                    raise RuntimeError("record does not start: %s" % self.stderr())
                time.sleep(0.3)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if not stream.closed:
                stream.close()

    def stderr(self):
        with open(self.err) as f:
            return f.read()

    def stop(self, timeout=120):
        """Ends it (Ctrl-C, or the marker's end) and reads the profile."""
        if self.marker:
            self.process.stdin.close()
        else:
            self.process.send_signal(signal.SIGINT)
        return self.wait(timeout)

    def wait(self, timeout=120):
        status = self.process.wait(timeout=timeout)
        if status:
            raise RuntimeError("record ended with %d: %s" % (status, self.stderr()))
        return Profile.read(self.out)
