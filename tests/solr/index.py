#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=sanitized timeout=300
"""A collector indexes records into a real Solr: into a bare one, while it is killed, while the collector is killed, with
documents among them that are not for Solr, over TLS, and once more into one that has lost them. What users ask first gets the
right numbers."""
import contextlib
import json
import os
import time

from lib import requests, solr, testing, tls
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
        again(server, collector, records)
        # Nothing is sent twice once it is done.
        collector.stop()
        check_equal(collector.counters()["solr_waiting_requests"], 0, "requests that wait")
        collector.start()
        time.sleep(2)
        collector.stop()
        check_equal(collector.counters()["solr_updates_total"], 0, "updates after another start")


def delete(server, query):
    answer = server.request("POST", "blkprof/update?commit=true", json.dumps({"delete": {"query": query}}))
    check_equal(answer.status, 200, "documents deleted")


def reindex(collector, time):
    done = run("collector", "--reindex", time, "-c", collector.config)
    check_equal(done.returncode, 0, "exit status of --reindex %s: %s" % (time, done.stderr))
    return int(done.stdout.split(": ", 1)[1].split()[0])


def all_there(server, records, what):
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: server.count("blkprof") >= len(records), what, 60)
    found = server.select("blkprof", q="*:*", rows=2 * len(records), fl="id")["response"]["docs"]
    check_equal(len(found), len(records), what + ": documents")
    check_equal({d["id"] for d in found}, {r["id"] for r in records}, what + ": their ids")


def again(server, collector, records):
    """Documents that Solr has lost come back from the store: its last seconds, while the collector runs, and all of them, by one
    that starts."""
    last = sorted(records, key=lambda r: r["event_timestamp_dt"])[len(records) - 1500]["event_timestamp_dt"]
    late = sum(r["event_timestamp_dt"] >= last for r in records)
    delete(server, 'event_timestamp_dt:["%s" TO *]' % last)
    check_equal(server.count("blkprof"), len(records) - late, "documents left")
    told = reindex(collector, last)
    check(told >= late, "requests to be indexed again, of %d lost: %d" % (late, told))
    all_there(server, records, "after --reindex TIME")
    check("from an earlier place on" in collector.log(), "the collector says so")
    collector.stop()
    delete(server, "*:*")
    check(reindex(collector, "all") >= len(records), "all requests of the store")
    done = run("collector", "--reindex", "yesterday", "-c", collector.config)
    check(done.returncode == 1 and "--reindex" in done.stderr, "a time that is none: " + done.stderr)
    collector.start()
    all_there(server, records, "after --reindex all")


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
        over_tls(stack, folder, server, user)


def over_tls(stack, folder, server, user):
    """A Solr behind TLS: only an authority that signed its certificate is trusted, and nothing is lost until it is named."""
    right, wrong = tls.authority(folder, "right"), tls.authority(folder, "wrong")
    front = stack.enter_context(tls.Front(server.port, tls.certificate(folder, "solr", "right")))
    url = "[solr]\nurl = https://127.0.0.1:%d/solr/blkprof\ncommit_within = 200ms\n%s" % (front.port, user)
    node = os.path.join(folder, "tls")
    os.mkdir(node)

    def collector(more):
        return Collector(node, more=url + more)

    def init(more):
        return run("collector", "--init-solr", "-c", collector(more).config)
    empty, none = os.path.join(folder, "empty"), os.path.join(folder, "none")
    open(empty, "w").close()
    for more, said in (("", "not trusted by the system's authorities"), ("ca = %s\n" % wrong, "not trusted by ca = " + wrong),
                       ("ca = %s\n" % empty, "holds no certificate"), ("ca = %s\n" % none, "No such file")):
        done = init(more)
        check(done.returncode == 1 and done.stderr.count("\n") == 1 and said in done.stderr, "--init-solr with '%s': %s" % (more, done.stderr))
    for broken in (empty, none):
        done = run("collector", "-c", collector("ca = %s\n" % broken).config)
        check(done.returncode == 1 and "ca = " in done.stderr, "a start with ca = %s: %s" % (broken, done.stderr))
    made = requests.make("tls", 400, 8)
    with collector("ca = %s\n" % wrong) as refusing:
        check_equal(requests.send(refusing, "tls", made)["stored"], 4, "batches while Solr is not trusted")
        wait_for(lambda: "not trusted by ca = " in refusing.log(), "the collector to say so", 30)
        check_equal(server.count("blkprof"), 0, "documents in a Solr that is not trusted")
        refusing.stop()
        check_equal(refusing.counters()["solr_waiting_requests"], 400, "requests that wait")
    done = init("ca = %s\n" % right)
    check_equal(done.returncode, 0, "--init-solr over TLS: " + done.stderr)
    with collector("ca = %s\n" % right):
        all_there(server, made, "over TLS")


testing.main(index, wrong_collections)
