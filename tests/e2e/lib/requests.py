# SPDX-License-Identifier: Apache-2.0
"""Records of requests, made up: what each field must add up to is known here."""
import json
import random
import subprocess
import time

from .devices import program

HANDLERS = ("/select", "/update", "/query", "/get")


def moment(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%03dZ" % (int(seconds * 1000) % 1000)


def make(node, count, seed, start=None):
    """Dicts as records of one node; the n-th began n milliseconds after `start`."""
    rng = random.Random(seed)
    start = int(start or time.time() - 60)
    records = []
    for n in range(count):
        read = round(rng.expovariate(1 / 40.0), 3)
        write = round(rng.expovariate(1 / 10.0), 3) if n % 5 == 0 else 0.0
        if n % 97 == 0:
            read += 1000
        tid = 1000 + n % 16
        records.append({
            "id": "%s:77:%x:%x:%d" % (node, 5000 + n % 16, (start * 1000 + n) * 1000000, n), "kind_s": "request", "hostname_s": node,
            "pid_i": 77, "tid_i": tid, "event_timestamp_dt": moment(start + n / 1000.0), "status_i": 200 if n % 50 else 500,
            "method_s": "GET", "path_s": "/solr/shop" + HANDLERS[n % 4], "handler_s": HANDLERS[n % 4], "core_s": "shop",
            "params_ss": ["q=*:*", "rows=%d" % (n % 30)], "attribution_s": "exact",
            "total_io_duration_ms_f": round(read + write, 3), "read_duration_ms_f": read, "write_duration_ms_f": write,
            "duration_ms_f": round(read + write + rng.random() * 5, 3), "oncpu_ms_f": round(rng.random() * 3, 3),
            "read_bytes_l": rng.randrange(0, 1 << 34), "write_bytes_l": rng.randrange(0, 1 << 20) if write else 0,
            "read_ops_i": rng.randrange(0, 500), "write_ops_i": 1 if write else 0})
    return records


def send(collector, node, documents, batch=100):
    """Documents (dicts, or bytes as they are) as batches of a node; what the collector answered."""
    lines = b"".join((d if isinstance(d, bytes) else json.dumps(d).encode()) + b"\n" for d in documents)
    done = subprocess.run([program("requestload"), "--address", collector.address, "--node", node, "--batch", str(batch)], input=lines,
                          stdout=subprocess.PIPE, timeout=200, check=True)
    return json.loads(done.stdout)
