#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=sanitized timeout=300
"""A collector indexes records into a real Solr: into a bare one, while it is killed, while the collector is killed, and with
documents among them that are not for Solr. What users ask first gets the right numbers."""
import contextlib
import json
import os
import time

from lib import requests, solr, testing
from lib.blkprof import run
from lib.collector import Collector, free_port
from lib.testing import check, check_between, check_equal, scratch, wait_for

NODES, COUNT, SLOW = ("index-a", "index-b"), 5000, 1000


def poisoned(node):
    """(name, document) that Solr would store wrong, stop at, or refuse."""
    base = requests.make(node, 1, 1)[0]

    def broken(name, **changes):
        record = dict(base, id="%s:%s" % (node, name), **changes)
        return {key: value for key, value in record.items() if value is not None}
    return {
        "wraps": broken("wraps", read_ops_i=3000000000),
        "fraction": broken("fraction", tid_i=1.5),
        "nan": json.dumps(broken("nan", read_duration_ms_f="NAN")).replace('"NAN"', "NaN").encode(),
        "infinite": json.dumps(broken("infinite", read_duration_ms_f="INF")).replace('"INF"', "1e999").encode(),
        "date": broken("date", event_timestamp_dt="2026-11-30 00:00:00"),
        "host": broken("host", hostname_s="another"),
        "type": broken("type", strange="x"),
        "long": broken("long", query_s="x" * 33000),
        "array": broken("array", comm_s=["a", "b"]),
        "without": broken("without", pid_i=None),
        "cut": json.dumps(broken("cut")).encode()[:-40],
        # Only Solr knows that this text has to be a number.
        "quota": broken("quota", quota_s="plenty"),
        "quota2": broken("quota2", quota_s="more"),
    }


def answers(server, records):
    """The two queries that users run first."""
    slow = [r for r in records if r["total_io_duration_ms_f"] >= SLOW]
    check(len(slow) > 50, "slow ones among the records: %d" % len(slow))
    found = server.select("blkprof", q="total_io_duration_ms_f:[%d TO *]" % SLOW, rows=10000, fl="id")["response"]
    check_equal(sorted(d["id"] for d in found["docs"]), sorted(r["id"] for r in slow), "those of a second and more")
    stats = server.select("blkprof", q="*:*", rows=0, stats="true", stats_field="total_io_duration_ms_f", stats_facet="hostname_s")
    by_host = stats["stats"]["stats_fields"]["total_io_duration_ms_f"]["facets"]["hostname_s"]
    check_equal(sorted(by_host), sorted(NODES), "hosts in the statistics")
    for node in NODES:
        values = [r["total_io_duration_ms_f"] for r in records if r["hostname_s"] == node]
        got = by_host[node]
        check_equal(got["count"], len(values), node + ": count")
        for name, want in (("sum", sum(values)), ("max", max(values)), ("mean", sum(values) / len(values))):
            check_between(got[name], want * (1 - 1e-5), want * (1 + 1e-5), "%s: %s" % (node, name))
    bytes_read = server.select("blkprof", q="*:*", rows=0, stats="true", stats_field="read_bytes_l")["stats"]["stats_fields"]["read_bytes_l"]
    check_equal(int(bytes_read["sum"]), sum(r["read_bytes_l"] for r in records), "bytes read")
    one = server.select("blkprof", q='id:"%s"' % records[7]["id"])["response"]["docs"][0]
    check_equal({key: one[key] for key in records[7]}, records[7], "a document as it was sent")


def initialised(collector, server):
    done = run("collector", "--init-solr", "-c", collector.config)
    check_equal(done.returncode, 0, "exit status of --init-solr: " + done.stderr)
    check_equal(done.stdout.count("created the fields"), 7, "fields created: " + done.stdout)
    done = run("collector", "--init-solr", "-c", collector.config)
    check_equal((done.returncode, done.stdout.count("created")), (0, 0), "a second --init-solr: " + done.stdout + done.stderr)
    fields = json.loads(server.request("GET", "blkprof/schema/dynamicfields").body)["dynamicFields"]
    check_equal({f["name"]: f["type"] for f in fields}, {
        "*_s": "string", "*_ss": "string", "*_i": "pint", "*_l": "plong", "*_f": "pfloat", "*_b": "boolean", "*_dt": "pdate"}, "fields")
    # What only Solr can know: a text that it refuses.
    more = {"add-field": {"name": "quota", "type": "pint"}, "add-copy-field": {"source": "quota_s", "dest": "quota"}}
    check_equal(server.request("POST", "blkprof/schema", json.dumps(more)).status, 200, "a rule of this Solr only")


def crash(server, collector, good):
    """Solr and then the collector are killed in the middle."""
    wait_for(lambda: server.count("blkprof") > 1000, "the first documents", 60)
    server.kill()
    check(server.process.returncode == -9, "Solr was killed")
    wait_for(lambda: "are not indexed" in collector.log(), "the collector to say so", 40)
    collector.kill()
    collector.start()
    time.sleep(1)
    server.start()
    seen = server.count("blkprof")
    check(seen < good, "it was not over before the crash (%d)" % seen)


def set_aside(folder, poison):
    with open(os.path.join(folder, "refused.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    told = {}
    for line in lines:
        for name in poison:
            if '"%s:%s"' % (NODES[0], name) in line["document"]:
                told[name] = line["why"]
    check_equal(sorted(told), sorted(poison), "documents put aside")
    check("read_ops_i = 3000000000" in told.get("wraps", ""), "why: %s" % told.get("wraps"))
    check("plenty" in told.get("quota", ""), "why, in Solr's words: %s" % told.get("quota"))
    return len(lines)


def index():
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        server = stack.enter_context(solr.Solr(folder, options=["-XX:TieredStopAtLevel=1"]))
        more = "[solr]\nurl = http://127.0.0.1:%d/solr/blkprof\nurl = %s\nbatch = 200\ncommit_within = 500ms\n" % (
            free_port(), server.url("blkprof"))
        collector = stack.enter_context(Collector(folder, more=more))
        records = [r for n, node in enumerate(NODES) for r in requests.make(node, COUNT, n)]
        poison = poisoned(NODES[0])
        mixed = records[:COUNT]
        for n, document in enumerate(poison.values()):
            mixed.insert(n * 371, document)
        check_equal(requests.send(collector, NODES[0], mixed[:100])["stored"], 1, "batches before Solr has the fields")
        wait_for(lambda: "has no field" in collector.log(), "the collector to say what is missing", 60)
        check_equal(server.count("blkprof"), 0, "documents without fields")
        initialised(collector, server)
        for node, documents in ((NODES[0], mixed[100:]), (NODES[1], records[COUNT:])):
            told = requests.send(collector, node, documents)
            check_equal(told["stored"], told["sent"], "batches of %s: %s" % (node, told))
        crash(server, collector, len(records))
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: server.count("blkprof") >= len(records), "all documents", 90)
        time.sleep(1)
        check_equal(server.count("blkprof"), len(records), "documents in Solr")
        answers(server, records)
        lines = set_aside(collector.store, poison)
        check_between(lines, len(poison), len(poison) * 2, "lines of refused documents")
        # Nothing is sent twice once it is done.
        collector.stop()
        check_equal(collector.counters()["solr_waiting_requests"], 0, "requests that wait")
        collector.start()
        time.sleep(2)
        collector.stop()
        check_equal(collector.counters()["solr_updates_total"], 0, "updates after another start")


def wrong_collections():
    """What --init-solr and the collector say where they cannot go on."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        server = stack.enter_context(solr.Solr(folder, options=["-XX:TieredStopAtLevel=1"]).protect())
        config, password = os.path.join(folder, "collector.conf"), os.path.join(folder, "password")
        user = "user = solr\npassword_file = %s\n" % password

        def init(url, extra=user, secret=server.password):
            with open(config, "w") as f:
                f.write("[solr]\nurl = %s\n%s" % (url, extra))
            with open(password, "w") as f:
                f.write(secret + "\n")
            done = run("collector", "--init-solr", "-c", config)
            check_equal((done.returncode, done.stderr.count("\n")), (1, 1), "--init-solr with %s: %s" % (url, done.stderr))
            return done.stderr
        for said in (init(server.url("blkprof"), extra=""), init(server.url("blkprof"), secret="wrong")):
            check("refuses user and password (401)" in said and "wrong" not in said, said)
        said = init(server.url("nosuch"))
        check("no such collection" in said, said)
        said = init("http://127.0.0.1:%d/solr/blkprof" % free_port())
        check("Couldn't connect" in said or "Could not connect" in said, said)
        said = init("http://me:secret@127.0.0.1/solr/blkprof")
        check("without user and password" in said, said)
        answer = server.request("POST", "blkprof/schema", json.dumps({"add-field": {"name": "read_ops_i", "type": "string"}}))
        check_equal(answer.status, 200, "a field of another type")
        said = init(server.url("blkprof"))
        check("read_ops_i has the type string" in said, said)
        answer = server.request("POST", "blkprof/schema", json.dumps({"delete-field": {"name": "read_ops_i"}}))
        check_equal(answer.status, 200, "the field is gone")
        done = run("collector", "--init-solr", "-c", config)
        check_equal((done.returncode, done.stdout.count("created the fields")), (0, 7), "--init-solr at last: " + done.stdout + done.stderr)


testing.main(index, wrong_collections)
