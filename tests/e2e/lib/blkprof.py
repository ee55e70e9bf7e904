# SPDX-License-Identifier: Apache-2.0
"""Runs the program under test."""
import fcntl
import json
import os
import pty
import select
import subprocess
import termios
import time

from .devices import build
from .pprof import Profile


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


class Recording:
    """`record` of the node in the background. It is on from the start of the with block: a marker command tells."""

    def __init__(self, folder, *options):
        self.out = os.path.join(folder, "recording-%d.pb.gz" % time.monotonic_ns())
        self.err = self.out + ".stderr"
        args = [path(), "record", "-o", self.out, *options, "-a", "--", "sh", "-c", "echo on; cat >/dev/null"]
        with open(self.err, "w") as err:
            self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True)

    def __enter__(self):
        if self.process.stdout.readline() != "on\n":
            self.__exit__()
            raise RuntimeError("record does not start: %s" % self.stderr())
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
        """Ends it and reads the profile."""
        self.process.stdin.close()
        status = self.process.wait(timeout=timeout)
        if status:
            raise RuntimeError("record ended with %d: %s" % (status, self.stderr()))
        return Profile.read(self.out)


class Terminal:
    """`record` on a terminal of its own, which shows its progress and where Ctrl-C can be typed."""

    def __init__(self, folder, *options):
        self.out = os.path.join(folder, "terminal-%d.pb.gz" % time.monotonic_ns())
        self.screen = b""
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([path(), "record", "-o", self.out, *options], stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def read(self, timeout):
        """More of what it shows; False at its end."""
        if not select.select([self.master], [], [], timeout)[0]:
            raise TimeoutError("record shows nothing more: %r" % self.screen)
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the last process of the terminal ended
            data = b""
        self.screen += data
        return bool(data)

    def text(self):
        return self.screen.decode(errors="replace").replace("\r\n", "\n")

    def wait_for_progress(self):
        while b" reads (" not in self.screen:
            if not self.read(120):
                raise RuntimeError("record does not start: %s" % self.text())

    def type(self, keys):
        os.write(self.master, keys)

    def wait(self, timeout=120):
        """Its exit status, when it ended by itself."""
        while self.read(timeout):
            pass
        return self.process.wait(timeout=timeout)
