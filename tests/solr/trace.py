#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=400
"""A real Solr is followed while 64 connections send it updates, searches, facets and small requests over a cold index. Each
request is held against what the client sent and got, Solr's own log, Jetty's, and what /proc knows of the process; then the same by
an agent, a collector and an analysis Solr that comes up when all is over. TRACE_REQUESTS (10048) is how many; 20 more come one by one."""
import collections
import contextlib
import glob
import json
import os
import random
import re
import signal
import subprocess
import time
import urllib.request

from lib import blkprof, solr, solrload, testing
from lib.agent import Agent
from lib.collector import Collector, free_port
from lib.solrload import facet, large, light, missing, search, update
from lib.solrtruth import same_as_jetty, same_as_schedstat, schedstat
from lib.testing import check, check_between, check_equal, scratch, wait_for

REQUESTS = int(os.environ.get("TRACE_REQUESTS", "10048"))
CONNECTIONS, DOCUMENTS, SHIPPED, ALONE = 64, 8000, 1600, 20
MIX = {light: 77, search: 8, update: 8, facet: 4, large: 2, missing: 1}


class Process:
    """What /proc has counted of a process by now."""

    def __init__(self, pid):
        with open("/proc/%d/io" % pid) as f:
            self.io = {name: int(value) for name, value in (line.split(":") for line in f)}
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        # With threads that have ended: a JVM's compilers come and go.
        self.cpu = (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
        self.threads = schedstat(pid)
        # Of the whole machine: a guest's threads seem to run while another guest does.
        with open("/proc/stat") as f:
            self.stolen = int(f.readline().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


class Follow:
    """blkprof requests --json of a process, within a with block."""

    def __init__(self, folder, pid):
        self.path, self.pid, self.said = os.path.join(folder, "records"), pid, ""

    def __enter__(self):
        self.errors = open(self.path + ".errors", "w+")
        with open(self.path, "w") as out:
            self.process = subprocess.Popen([blkprof.path(), "requests", "-p", str(self.pid), "--json", "--threads", "--full", "100000"],
                                            stdout=out, stderr=self.errors)
        time.sleep(2)
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGINT)
        self.status = self.process.wait(60)
        self.errors.seek(0)
        self.said = self.errors.read()
        self.errors.close()

    def records(self):
        with open(self.path) as f:
            return [json.loads(line) for line in f]


def solr_log(server):
    """trace id -> (number of the thread, QTime)."""
    found = {}
    with open(os.path.join(server.logs, "solr.log")) as f:
        for line in f:
            thread = re.search(r"\(qtp\d+-(\d+)-(t\d+-\d+)\)", line)
            took = re.search(r"QTime=(\d+)|\} \d+ (\d+)$", line)
            if thread and took:
                found[thread[2]] = int(thread[1]), int(took[1] or took[2])
    return found


def answered(sent):
    for request in sent:
        want = 404 if request.kind == "missing" else 200
        if request.status != want:
            check(False, "%s %s was answered with %d" % (request.kind, request.trace, request.status))
            return


def one_record_each(sent, records, summed=0):
    """By trace id; whatever else was seen is told. `summed` of them are in sums of their handlers."""
    by_trace = collections.defaultdict(list)
    for record in records:
        if record["kind_s"] == "request":
            by_trace[record.get("trace_id_s", "")].append(record)
    ids = {request.trace for request in sent}
    check_equal(len([t for t in ids if t not in by_trace]), summed, "requests without a record of their own")
    check_equal([t for t in ids if t in by_trace and len(by_trace[t]) > 1], [], "requests with several records")
    check_equal([t for t in by_trace if t not in ids], [], "records of no request")
    check_equal(len({r["id"] for r in records}), len(records), "ids")
    return {trace: found[0] for trace, found in by_trace.items() if trace in ids}


def same_as_the_client(sent, found):
    wrong = collections.defaultdict(list)
    sockets = collections.defaultdict(set)
    for request in sent:
        record = found.get(request.trace)
        if not record:
            continue
        want = {"method_s": request.method, "path_s": request.path.split("?")[0], "status_i": request.status, "proto_s": "http/1.1",
                "req_bytes_l": request.sent, "resp_bytes_l": request.received, "core_s": "traced"}
        for name, value in want.items():
            got = record.get(name)
            if (got.lower() if name == "proto_s" and got else got) != value:
                wrong[name].append((request.trace, got, value))
        if record["duration_ms_f"] > (request.end - request.start) * 1000 + 1:
            wrong["longer than the client waited"].append((request.trace, record["duration_ms_f"], (request.end - request.start) * 1000))
        sockets[request.port].add(record["conn_s"])
    for name, cases in wrong.items():
        check(False, "%s differs in %d of %d: %s" % (name, len(cases), len(sent), cases[:3]))
    check_equal({len(s) for s in sockets.values()}, {1}, "sockets of a connection")
    check_equal(len(set().union(*sockets.values())), len(sockets), "sockets")


def same_as_solr(server, sent, found):
    """The thread that Solr names served it, and Solr's own time lies within."""
    log, threads, short = solr_log(server), collections.defaultdict(set), []
    known = [request.trace for request in sent if request.trace in log and request.trace in found]
    check(len(known) >= 0.97 * len(sent), "requests in Solr's log: %d of %d" % (len(known), len(sent)))
    for trace in known:
        number, took = log[trace]
        threads[found[trace]["tid_i"]].add(number)
        if found[trace]["duration_ms_f"] < took - 1.5:
            short.append((trace, found[trace]["duration_ms_f"], took))
    check_equal(short[:5], [], "shorter than what Solr says")
    mixed = {tid: numbers for tid, numbers in threads.items() if len(numbers) > 1}
    # Numbers of the log are Java's; a thread that ended may have left its id to another.
    check(len(mixed) <= 1, "threads with several of Solr's names: %s" % mixed)
    check_equal(len(set().union(*threads.values())) >= len(threads), True, "a name for each thread")


def parts_add_up(found):
    """On CPU, in the run queue and blocked are the time of the thread."""
    off = []
    for record in found.values():
        parts = sum(record.get(name, 0.0) for name in ("oncpu_ms_f", "runq_ms_f", "blocked_ms_f"))
        if abs(parts - record["duration_ms_f"]) > max(0.5, 0.02 * record["duration_ms_f"]):
            off.append((record["trace_id_s"], parts, record["duration_ms_f"]))
    check(len(off) <= len(found) // 200, "parts that are not the whole: %d of %d: %s" % (len(off), len(found), off[:5]))
    total = sum(r["total_io_duration_ms_f"] for r in found.values())
    parts = sum(r["read_duration_ms_f"] + r["write_duration_ms_f"] for r in found.values())
    check_between(total, parts * 0.999 - 1, parts * 1.001 + 1, "I/O in all")


def same_as_proc(outside, before, after, end, records):
    """Requests and threads outside of them are all that the process did; it was followed a little longer than from `before`
    to `after`, within from `outside` to `end`."""
    def total(name):
        return sum(r.get(name, 0) for r in records)
    read = after.io["read_bytes"] - before.io["read_bytes"]
    check(read > 4 << 20, "the index was cold: %d bytes were read" % read)
    check_between(total("disk_read_bytes_l"), 0.98 * read, 1.02 * read, "bytes from disks, by /proc/PID/io")
    least, most, stolen = after.cpu - before.cpu, end.cpu - outside.cpu, end.stolen - outside.stolen
    print("   disk %d of %d bytes, CPU %.0f of %.0f to %.0f ms, stolen from this machine %.0f ms" % (
        total("disk_read_bytes_l"), read, total("oncpu_ms_f"), least, most, stolen), flush=True)
    check_between(total("oncpu_ms_f"), 0.98 * least, 1.02 * most + stolen, "time on CPUs, by /proc/PID/stat")


def cold_reads_show(sent, found):
    kinds = {request.trace: request.kind for request in sent}
    cold = [r for r in found.values() if r.get("fault_disk_bytes_l", 0)]
    check(cold, "requests that read from the disk in page faults")
    less = [r for r in cold if r["read_bytes_l"] < r["fault_disk_bytes_l"]]
    check_equal(less[:2], [], "bytes of faults that are not among those read")
    # Readahead of a fault that needs none of it yet is waited for by nobody.
    waited = [r for r in cold if r["read_duration_ms_f"] > 0]
    check(len(waited) >= 0.8 * len(cold), "requests that read in page faults and waited for it: %d of %d" % (len(waited), len(cold)))
    writing = [r for t, r in found.items() if kinds[t] == "update"]
    check(all(r["write_bytes_l"] > 0 for r in writing), "updates that wrote nothing")


def live(server, folder):
    index = os.path.join(server.home, "traced", "data", "index")
    plans = solrload.plans("traced", CONNECTIONS, REQUESTS // CONNECTIONS, DOCUMENTS, MIX)
    alone = [large("traced", "t%d-%d" % (CONNECTIONS, n), random.Random(n), DOCUMENTS, 1500) for n in range(ALONE)]
    sent = [request for plan in plans for request in plan] + alone
    outside = Process(server.process.pid)
    with Follow(folder, server.process.pid) as follow:
        solrload.evict(server.process.pid, index)
        before, start = Process(server.process.pid), time.monotonic()
        check_equal(solrload.run(server.port, plans) + solrload.run(server.port, [alone]), [], "what the client met")
        print("   %d requests in %.1f s" % (len(sent), time.monotonic() - start), flush=True)
        time.sleep(1)
        after = Process(server.process.pid)
    end = Process(server.process.pid)
    check_equal(follow.status, 0, "exit status of requests")
    # On a busy machine a switch may be missed now and then: that is counted and said.
    other = [line for line in follow.said.splitlines() if "switches_missed" not in line]
    check_equal(other, [], "what requests said, losses among it")
    records = follow.records()
    answered(sent)
    found = one_record_each(sent, records)
    same_as_the_client(sent, found)
    same_as_solr(server, sent, found)
    same_as_jetty(server, sent, found, records, alone)
    parts_add_up(found)
    same_as_proc(outside, before, after, end, records)
    same_as_schedstat(outside.threads, before.threads, after.threads, end.threads, records, end.stolen - outside.stolen)
    cold_reads_show(sent, found)


def stored(collector):
    url = "http://127.0.0.1:%d/api/v1/requests?count=1&limit=10000" % collector.http_port
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def shipped(stack, server, folder):
    """Agent, spool, collector, and an index that is not there yet: no request is missing in the end."""
    port = free_port()
    collector = stack.enter_context(Collector(folder, http=[], more="[solr]\nurl = http://127.0.0.1:%d/solr/blkprof\n"
                                              "commit_within = 200ms\n" % port))
    plans = solrload.plans("traced", 16, SHIPPED // 16, DOCUMENTS, MIX, seed=11)
    with Agent(folder, node="solr-node", more="[ship]\nendpoint = %s\n[requests]\ncmdline = %s\n" % (collector.address, server.home)) as agent:
        time.sleep(3)
        check_equal(solrload.run(server.port, plans), [], "what the client met")

        with contextlib.suppress(TimeoutError):
            wait_for(lambda: stored(collector)["sum"]["requests"] >= SHIPPED, "all records in the store", 20)
        answer = stored(collector)
        check_equal(answer["sum"]["requests"], SHIPPED, "requests in the store")
        agent.stop()
    records = answer["requests"]
    sent = [request for plan in plans for request in plan]
    # A busy second is told by its slowest, a sample, and sums.
    found = one_record_each(sent, records, SHIPPED - len(records))
    check(len(records) >= 500, "requests told one by one: %d" % len(records))
    same_as_the_client(sent, found)
    server.end()
    analysis = solr.Solr(os.path.join(folder, "analysis"), heap="128m", options=["-XX:TieredStopAtLevel=1"], port=port)
    stack.enter_context(analysis)
    done = blkprof.run("collector", "--init-solr", "-c", collector.config)
    check_equal(done.returncode, 0, "exit status of --init-solr: " + done.stderr)
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: analysis.count("blkprof", "kind_s:request") >= len(records), "all records in Solr", 60)
    in_solr_too(analysis, records)


def in_solr_too(analysis, records):
    """The slowest by I/O as Solr tells them, and the sums."""
    slowest = sorted(records, key=lambda r: (-r["total_io_duration_ms_f"], r["id"]))
    # Between two: Solr has 32 bits of them.
    least = (slowest[9]["total_io_duration_ms_f"] + slowest[10]["total_io_duration_ms_f"]) / 2
    answer = analysis.select("blkprof", q="total_io_duration_ms_f:[%.6f TO *] AND kind_s:request" % least, rows=1000, fl="id")
    want = {r["id"] for r in records if r["total_io_duration_ms_f"] >= least}
    check_equal({d["id"] for d in answer["response"]["docs"]}, want, "those with most I/O in Solr")
    stats = analysis.select("blkprof", q="kind_s:request", rows=0, stats="true", stats_field="total_io_duration_ms_f", stats_facet="hostname_s")
    found = stats["stats"]["stats_fields"]["total_io_duration_ms_f"]["facets"]["hostname_s"]["solr-node"]
    total = sum(r["total_io_duration_ms_f"] for r in records)
    check_equal(found["count"], len(records), "requests in Solr")
    check_between(found["sum"], total * 0.9999 - 0.1, total * 1.0001 + 0.1, "their I/O in Solr")


def trace():
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        server = stack.enter_context(solr.Solr(folder, heap="320m"))
        start = time.monotonic()
        solrload.fill(server, "traced", DOCUMENTS)
        warm = solrload.plans("traced", 8, 40, DOCUMENTS, MIX, seed=3)
        for plan in warm:
            for request in plan:
                request.trace = "warm-" + request.trace
        check_equal(solrload.run(server.port, warm), [], "what the client met")
        size = sum(os.path.getsize(f) for f in glob.glob(os.path.join(server.home, "traced/data/index/*")))
        print("   an index of %d MiB after %.1f s" % (size >> 20, time.monotonic() - start), flush=True)
        live(server, folder)
        shipped(stack, server, folder)


testing.main(trace)
