#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=sanitized timeout=120
"""Records of requests in a collector without any Solr: asked for over HTTP, in its store, and on the command line."""
import json
import time
import urllib.error
import urllib.parse
import urllib.request

from lib import requests, testing
from lib.blkprof import run
from lib.collector import Collector
from lib.testing import check, check_between, check_equal, scratch

NODES, COUNT = ("stored-a", "stored-b"), 1500


def get(collector, **arguments):
    pairs = [(name, value) for name, values in arguments.items() for value in (values if isinstance(values, list) else [values])]
    url = "http://127.0.0.1:%d/api/v1/requests?%s" % (collector.http_port, urllib.parse.urlencode(pairs))
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def slowest(collector, records):
    want = sorted(records, key=lambda r: -r["duration_ms_f"])[:25]
    answer = get(collector, limit=25)
    check_equal([r["id"] for r in answer["requests"]], [r["id"] for r in want], "the slowest")
    check_equal(answer["requests"][0], want[0], "the slowest, whole")
    want = sorted(records, key=lambda r: -r["total_io_duration_ms_f"])[:5]
    answer = get(collector, limit=5, sort="total_io_duration_ms_f")
    check_equal([r["id"] for r in answer["requests"]], [r["id"] for r in want], "those with most I/O")
    answer = get(collector, limit=0, count=1)
    check_equal((answer["whole"], answer["sum"]["requests"]), (True, len(records)), "all of them")


def conditions(collector, records):
    slow = [r for r in records if r["total_io_duration_ms_f"] >= 1000 and r["status_i"] == 200]
    answer = get(collector, limit=10000, where=["total_io_duration_ms_f>=1000", "status_i=200"])
    check_equal(sorted(r["id"] for r in answer["requests"]), sorted(r["id"] for r in slow), "those of a second and more")
    ten = [r for r in records if "rows=10" in r["params_ss"]]
    check_equal(get(collector, limit=0, count=1, where="params_ss=rows=10")["sum"]["requests"], len(ten), "of one parameter")
    one = [r for r in records if r["hostname_s"] == NODES[1]]
    check_equal(get(collector, limit=0, count=1, node=NODES[1])["sum"]["requests"], len(one), "of one node")


def facets(collector, records):
    answer = get(collector, limit=0, facet=["handler_s", "hostname_s"])
    for field, values in answer["facets"].items():
        check_equal(sum(v["requests"] for v in values), len(records), "requests by " + field)
        for value in values:
            mine = [r for r in records if r[field] == value["value"]]
            check_equal(value["requests"], len(mine), "%s %s: requests" % (field, value["value"]))
            io = sum(r["total_io_duration_ms_f"] for r in mine)
            check_between(value["total_io_duration_ms_f"], io * 0.999999, io * 1.000001, "%s %s: I/O" % (field, value["value"]))


def refused(collector):
    for query, word in (("where=status_i", "condition"), ("limit=99999999", "limit"), ("wher=a=1", "wher"), ("from=-1m&to=-2m", "before")):
        try:
            urllib.request.urlopen("http://127.0.0.1:%d/api/v1/requests?%s" % (collector.http_port, query), timeout=60)
            check(False, "%s is answered" % query)
        except urllib.error.HTTPError as e:
            check(e.code == 400 and word in e.read().decode(), "what is said of %s" % query)


def printed(collector, records):
    """The command gives the same from the store and from the collector."""
    url = "http://127.0.0.1:%d" % collector.http_port
    for source in (["--store", collector.store], ["--collector", url]):
        done = run("requests", *source, "--slowest", "7", "--json", "--where", "total_io_duration_ms_f>=1000")
        check_equal(done.returncode, 0, "exit status of requests %s: %s" % (source, done.stderr))
        found = [json.loads(line) for line in done.stdout.splitlines()]
        want = sorted((r for r in records if r["total_io_duration_ms_f"] >= 1000), key=lambda r: -r["duration_ms_f"])[:7]
        check_equal(found, want, "records of requests %s" % source)
        done = run("requests", *source, "--slowest", "3")
        lines = done.stdout.splitlines()
        check(len(lines) > 5 and "GET /solr/shop" in lines[1] and any(node in lines[1] for node in NODES), "the table: %s" % done.stdout)
        for handler in requests.HANDLERS:
            count = sum(r["handler_s"] == handler for r in records)
            line = [words for words in map(str.split, lines) if words and words[-1] == handler and words[0] == str(count)]
            check_equal(len(line), 1, "the line of %s in %s" % (handler, done.stdout))
    done = run("requests", "--store", collector.store, "--from", "-9h", "--to", "-8h")
    check_equal((done.returncode, done.stdout), (0, ""), "of another time")
    check("no request of that time" in done.stderr, "what is said of another time: %s" % done.stderr)


def usage():
    for options in (["--store", "/nowhere", "--pid", "1"], ["--from", "-1m"], ["--store", "/nowhere", "--where", "x"], [],
                    ["--collector", "http://"], ["--collector", "http:///x"], ["--collector", "http://u:p@"],
                    ["--store", "/nowhere", "--from", "99999999999999999999"]):
        done = run("requests", *options)
        check_equal((done.returncode, done.stderr.count("\n")), (2, 1), "requests %s: %s" % (options, done.stderr))
    done = run("requests", "--collector", "http://127.0.0.1:1")
    check("onnect" in done.stderr and "standard output" not in done.stderr, "a collector that is not there: %s" % done.stderr)
    done = run("requests", "--store", "/nowhere")
    check_equal(done.returncode, 1, "a store that is not there: %s" % done.stderr)


def stored():
    with scratch() as folder, Collector(folder, http=[]) as collector:
        records = []
        for seed, node in enumerate(NODES):
            made = requests.make(node, COUNT, seed, start=time.time() - 120)
            told = requests.send(collector, node, made)
            check_equal((told["stored"], told["sent"]), (15, 15), "batches of " + node)
            records += made
        slowest(collector, records)
        conditions(collector, records)
        facets(collector, records)
        refused(collector)
        printed(collector, records)


testing.main(stored, usage)
