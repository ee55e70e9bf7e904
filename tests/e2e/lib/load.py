# SPDX-License-Identifier: Apache-2.0
"""Runs the load generators; what they say they did."""
import json
import subprocess

from .devices import program


def ioload_args(target, *entries, create=None, limit=None, extra=()):
    args = [program("ioload"), "-t", target]
    if create:
        args += ["-c", create]
    if limit:
        args += ["-m", limit]
    return args + list(extra) + list(entries)


class Load:
    """A load that is prepared and waits: start() begins it, truth() ends it and says what it did."""

    def __init__(self, args, linger=False):
        self.process = subprocess.Popen(args + ["--wait"] + (["--linger"] if linger else []), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.lingers = linger
        if self.process.stdout.readline() != "ready\n":
            self.process.wait()
            raise RuntimeError("the load does not start: %s" % " ".join(args))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()

    def start(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def truth(self):
        """Waits for the end of the load; a lingering one stays alive."""
        text = ""
        while not text.endswith("]}\n"):
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the load failed")
            text += line
        if not self.lingers and self.process.wait(timeout=60) != 0:
            raise RuntimeError("the load failed")
        return json.loads(text)

    def end(self):
        self.process.stdin.close()
        if self.process.wait(timeout=60) != 0:
            raise RuntimeError("the load failed")


def by_function(truth):
    """{function: entry}, for plans that use each function once."""
    result = {e["function"]: e for e in truth["entries"]}
    assert len(result) == len(truth["entries"]), "a function stands twice in the plan"
    return result
