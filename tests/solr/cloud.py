#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=300
"""A SolrCloud of two nodes and two shards, both followed: each part of a query is a record with its trace id, on the node that
served it and with the thread that Solr's log names. Then records are indexed into it while one of its nodes goes."""
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from lib import blkprof, requests, solr, solrload, testing
from lib.collector import Collector
from lib.solrload import facet, light, search, update
from lib.testing import check, check_between, check_equal, scratch, wait_for

DOCUMENTS, CONNECTIONS, EACH = 2000, 12, 50
MIX = {light: 30, search: 12, facet: 6, update: 2}


def log_lines(node):
    """(trace id, core, path, number of the thread, ms) of each line of the log that tells of a request."""
    found = []
    with open(os.path.join(node.logs, "solr.log")) as f:
        for line in f:
            head = re.search(r"\(qtp\d+-(\d+)-(t\d+-\d+)\) \[[^]]*x:(\S+)", line)
            path, took = re.search(r"path=(\S+)", line), re.search(r"QTime=(\d+)|\} \d+ (\d+)$", line)
            if head and path and took:
                found.append((head[2], head[3].rstrip("]"), path[1], int(head[1]), int(took[1] or took[2])))
    return found


def follow(folder, nodes):
    out = open(os.path.join(folder, "records"), "w")
    errors = open(os.path.join(folder, "records.errors"), "w")
    return subprocess.Popen([blkprof.path(), "requests", "-p", ",".join(str(n.process.pid) for n in nodes), "--json", "--full", "100000"],
                            stdout=out, stderr=errors)


def records_of(folder):
    with open(os.path.join(folder, "records")) as f:
        return [json.loads(line) for line in f]


def each_part_has_its_record(nodes, sent, records):
    """Per node: as many records of a trace id, core and path as Solr's log has lines, and none without."""
    for number, node in enumerate(nodes):
        told = collections.Counter((t, core, path) for t, core, path, _, _ in log_lines(node))
        mine = [r for r in records if r["pid_i"] == node.process.pid and r.get("trace_id_s", "").startswith("t")]
        seen = collections.Counter((r["trace_id_s"], r["core_s"], r["handler_s"]) for r in mine)
        short = {key: (seen_count(seen, key), n) for key, n in told.items() if seen_count(seen, key) != n}
        print("   node %d: %d lines in the log, %d records" % (number + 1, sum(told.values()), len(mine)), flush=True)
        check(len(mine) > CONNECTIONS, "records of node %d" % (number + 1))
        check_equal(list(short.items())[:4], [], "node %d: parts told by the log and not by records (%d)" % (number + 1, len(short)))


def seen_count(seen, key):
    """A collection's name stands in the address where its core does not."""
    trace, core, path = key
    return seen[key] + (seen[(trace, "shop", path)] if core != "shop" else 0)


def parts_lie_within(sent, records):
    """A query's parts on shards are not longer than the query."""
    whole, parts = {}, collections.defaultdict(list)
    for record in records:
        trace = record.get("trace_id_s", "")
        if record["core_s"] == "shop":
            whole[trace] = record
        else:
            parts[trace].append(record)
    ids = {r.trace for r in sent}
    check_equal(len(ids - set(whole)), 0, "requests without a record")
    late = [(t, p["duration_ms_f"], whole[t]["duration_ms_f"]) for t in ids & set(whole) for p in parts[t]
            if p["duration_ms_f"] > whole[t]["duration_ms_f"] + 2 and whole[t]["path_s"].endswith("select")]
    # The last bytes of a part may be read before its write has returned.
    check(len(late) <= len(sent) // 50, "parts longer than their query: %d: %s" % (len(late), late[:3]))
    searched = [r.trace for r in sent if r.kind in ("search", "facet") and r.trace in whole]
    check(all(len(parts[t]) >= 2 for t in searched), "parts of a query over two shards")
    waiting = sum(whole[t].get("lock_wait_ms_f", 0) for t in searched)
    check(waiting > 0, "queries that wait for their shards")


def followed(folder, cloud):
    nodes = cloud.nodes
    plans = solrload.plans("shop", CONNECTIONS, EACH, DOCUMENTS, MIX)
    sent = [request for plan in plans for request in plan]
    process = follow(folder, nodes)
    time.sleep(2)
    check_equal(solrload.run(nodes[0].port, plans), [], "what the client met")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    check_equal(process.wait(60), 0, "exit status of requests")
    check_equal([r for r in sent if r.status != 200], [], "answers other than 200")
    records = [r for r in records_of(folder) if r["kind_s"] == "request" and r.get("core_s")]
    each_part_has_its_record(nodes, sent, records)
    parts_lie_within(sent, records)


def indexed(folder, cloud):
    """Two addresses; the node of the first is gone in the middle of it and its shard with it, and comes back."""
    cloud.create("blkprof", shards=1)
    first, second = cloud.nodes[::-1]
    more = "[solr]\nurl = %s\nurl = %s\ncommit_within = 300ms\nbatch = 100\n" % (first.url("blkprof"), second.url("blkprof"))
    with Collector(folder, more=more) as collector:
        done = blkprof.run("collector", "--init-solr", "-c", collector.config)
        check_equal(done.returncode, 0, "exit status of --init-solr: " + done.stderr)
        made = requests.make("cloud-node", 1200, 5)
        first.kill()
        told = requests.send(collector, "cloud-node", made)
        check_equal(told["stored"], 12, "batches")
        time.sleep(2)
        first.start()
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: counted(second) >= len(made), "all documents", 90)
        check_equal(second.count("blkprof"), len(made), "documents in the SolrCloud")
        stats = second.select("blkprof", q="*:*", rows=0, stats="true", stats_field="total_io_duration_ms_f")
        total = sum(r["total_io_duration_ms_f"] for r in made)
        check_between(stats["stats"]["stats_fields"]["total_io_duration_ms_f"]["sum"], total * 0.9999, total * 1.0001, "their I/O")


def counted(node):
    """A node that has come back knows its collections a little later."""
    try:
        return node.count("blkprof")
    except RuntimeError:
        return 0


def cloud_of_two():
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        start = time.monotonic()
        cloud = stack.enter_context(solr.Cloud(folder))
        cloud.create("shop")
        solrload.fill(cloud.nodes[0], "shop", DOCUMENTS)
        print("   two nodes and %d documents after %.1f s" % (DOCUMENTS, time.monotonic() - start), flush=True)
        followed(folder, cloud)
        indexed(folder, cloud)


testing.main(cloud_of_two)
