#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=180
"""`timeline` of PostgreSQL's processes under pgbench: commits wait for the log's flush, one process's for all that wait with it, and the
others are woken by the one that flushed."""
import subprocess
import time

from lib import programs, testing
from lib.testing import check, check_equal, scratch, wait_for
from lib.timeline import Tracing, check_trace
from lib.trace import BLOCKED, DISK, RUNNABLE, RUNNING

CLIENTS = 6


def commits_wait_for_the_log():
    with scratch() as folder, programs.postgresql(folder, ["fsync=on"]) as sql:
        bench = [programs.postgres_binaries() + "/pgbench", *sql.client[2:-1]]
        subprocess.run(bench + ["-i", "-q", "-s", "1", "postgres"], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        load = subprocess.Popen(bench + ["-n", "-N", "-c", str(CLIENTS), "-T", "60", "postgres"], cwd=folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            backends = lambda: sql("select pid from pg_stat_activity where application_name = 'pgbench'").split()
            wait_for(lambda: len(backends()) == CLIENTS, "pgbench's connections", 20)
            pids = list(map(int, backends()))
            with Tracing(folder, "-p", ",".join(map(str, pids)), "--no-requests") as tracing:
                time.sleep(2)
        finally:
            load.terminate()
            load.wait()
    t = tracing.trace
    check_trace(t, "pgbench")
    check_equal({pid for pid, _ in t.threads.values()}, set(pids), "processes")
    flushes = [s for s in t.track_slices("wait") if s.name in ("fdatasync", "fsync")]
    check(len(flushes) > 20, "only %d times a commit waits for the disk" % len(flushes))
    check(all(t.total(pid, RUNNING) > 0 for pid in pids), "a process never ran")
    check(sum(t.total(pid, DISK, BLOCKED) for pid in pids) > 0, "nobody waits for the disk")
    wakers = {s.waker for s in t.states if s.state == RUNNABLE}
    check(len(wakers & set(pids)) > 1, "no process wakes another; woken by %s" % wakers)
    submitted = {s.args["tid"] for s in t.track_slices("io")}
    check(submitted and submitted <= set(pids), "I/O of %s, processes are %s" % (submitted, pids))


testing.main(commits_wait_for_the_log)
