# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL of the measurement's own, and pgbench that runs on it. Needs the package postgresql."""
import contextlib
import glob
import re
import statistics
import subprocess
import threading

from benchlib import testing

PORT = "54329"
SETTINGS = ("shared_buffers=64MB", "max_wal_size=4GB", "checkpoint_timeout=1h", "autovacuum=off", "listen_addresses=", "jit=off",
            "effective_io_concurrency=0", "max_connections=50")


def binaries():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
    return found[-1] if found else testing.skip("PostgreSQL is not installed (package postgresql)")


def as_postgres(*args):
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *args]


@contextlib.contextmanager
def server(folder, procs="/dev/null"):
    """Yields its process; procs: the cgroup.procs of the group that it runs in."""
    data = folder + "/data"
    subprocess.run(as_postgres(binaries() + "/initdb", "-D", data, "-A", "trust", "--no-sync"), check=True, cwd=folder,
                   stdout=subprocess.DEVNULL)
    args = as_postgres(binaries() + "/postgres", "-D", data, "-k", folder, "-p", PORT)
    for setting in SETTINGS:
        args += ["-c", setting]
    with open(folder + "/log", "w") as log:
        process = subprocess.Popen(["sh", "-c", 'echo $$ >"$0" && exec "$@"', procs] + args, cwd=folder, stdout=log, stderr=log)
    try:
        ready = [binaries() + "/pg_isready", "-q", "-h", folder, "-p", PORT]
        testing.wait_for(lambda: process.poll() is not None or subprocess.run(ready).returncode == 0, "PostgreSQL", 60)
        if process.poll() is not None:
            with open(folder + "/log") as log:
                raise RuntimeError("PostgreSQL ended: %s" % log.read())
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.send_signal(3)
            process.wait()


def pgbench(folder, *args):
    return as_postgres(binaries() + "/pgbench", "-h", folder, "-p", PORT, *args, "postgres")


class Running:
    """pgbench in the background; its transactions of every second, and what `clock` says then."""

    def __init__(self, folder, script, clients, clock=None, on=None):
        """on: the CPU that it keeps to."""
        command = pgbench(folder, "-n", "-b", script, "-c", str(clients), "-j", "2", "-T", "86400", "-P", "1")
        self.process = subprocess.Popen((["taskset", "-c", str(on)] if on is not None else []) + command, cwd=folder,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.seconds, self.clocks, self.clock = [], [], clock or (lambda: 0)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            found = re.search(r"progress: [0-9.]+ s, ([0-9.]+) tps", line)
            if found:
                self.clocks.append(self.clock())
                self.seconds.append(float(found.group(1)))

    def _take(self, seconds, settle):
        start = len(self.seconds) + settle
        testing.wait_for(lambda: self.process.poll() is not None or len(self.seconds) >= start + seconds, "pgbench",
                         settle + seconds + 30)
        if self.process.poll() is not None:
            raise RuntimeError("pgbench ended with %d" % self.process.returncode)
        return start

    def mean(self, seconds, settle=2):
        """Transactions a second over the next `seconds`, the first ones left out."""
        start = self._take(seconds, settle)
        return statistics.fmean(self.seconds[start:start + seconds])

    def mean_and_clock(self, seconds, settle=2):
        """The same, and by how much the clock went on with each transaction."""
        start = self._take(seconds, settle + 1)
        took = self.clocks[start + seconds - 1] - self.clocks[start - 1]
        done = self.seconds[start:start + seconds]
        return statistics.fmean(done), took / max(1, sum(done))

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()
