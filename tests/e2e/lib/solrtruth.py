# SPDX-License-Identifier: Apache-2.0
"""What others counted of the requests and threads of a Solr, beside its client: Jetty's request log, and the kernel's schedstat of
each thread."""
import calendar
import collections
import glob
import os
import re
import time

from .testing import check, check_between, wait_for

THREAD_MS = 10  # of one thread: a run of it that was under way at an edge
NONE = 0.0, 0.0
LINE = re.compile(r'\[(\S+)\] (\d+) "(.*)" (\d+) (\d+) (\d+) (\d+) (\S+)$')


def milliseconds(moment):
    """2026-11-30T01:05:36.424Z since the epoch."""
    seconds, fraction = moment.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) * 1000 + int(fraction[:3])


class Logged:
    """A line of Jetty's request log: it has bodies without their heads and without the framing of chunks, and milliseconds."""

    def __init__(self, found):
        self.start, self.port, self.line, self.status = milliseconds(found[1]), int(found[2]), found[3], int(found[4])
        self.out, self.into, self.took = int(found[5]), int(found[6]), int(found[7])


def jetty_log(server):
    """trace id -> what Jetty says."""
    result = {}
    for path in glob.glob(os.path.join(server.logs, "*.request.log")):
        with open(path) as f:
            for found in map(LINE.match, f):
                if found and found[8] != "-":
                    result[found[8]] = Logged(found)
    return result


def in_resolution(request, record, jetty):
    """{what differs: (ours, Jetty's)}. Jetty reads its clock when it has read the head, on the thread that did, and again behind
    the last write, perhaps long behind: other threads run meanwhile. So its stretch begins within ours and ends with it or
    later, within the milliseconds that it counts in."""
    start = milliseconds(record["event_timestamp_dt"])
    end = start + record["duration_ms_f"]
    framing = request.received - request.content
    pairs = {"status": (record["status_i"], jetty.status), "port": (request.port, jetty.port),
             "request line": ("%s %s HTTP/1.1" % (request.method, request.path), jetty.line),
             "bytes in": (record["req_bytes_l"] - (request.sent - len(request.body)), jetty.into),
             "bytes out": (record["resp_bytes_l"] - framing, jetty.out)}
    differs = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if not start - 1 <= jetty.start <= end + 1:
        differs["start"] = start, end, jetty.start
    if jetty.start + jetty.took < end - 2:
        differs["end"] = end, jetty.start + jetty.took
    return differs


def same_as_jetty(server, sent, found, records, alone):
    """Each request, by its trace id; and the time of all, which of those that were alone on the machine is the same."""
    log, wrong = {}, collections.defaultdict(list)

    def all_logged():
        log.update(jetty_log(server))
        return all(request.trace in log for request in sent)
    wait_for(all_logged, "Jetty's log of all requests", 20)
    for request in sent:
        for name, pair in in_resolution(request, found[request.trace], log[request.trace]).items():
            wrong[name].append((request.trace, *pair))
    for name, cases in wrong.items():
        check(False, "%s differs from Jetty's in %d of %d: %s" % (name, len(cases), len(sent), cases[:3]))

    def times(requests):
        return sum(found[r.trace]["duration_ms_f"] for r in requests), sum(log[r.trace].took for r in requests)
    (ours, jettys), (ours_alone, jettys_alone) = times(sent), times(alone)
    serving = {r["tid_i"] for r in found.values()}
    behind = sum(r.get("oncpu_ms_f", 0) + r.get("runq_ms_f", 0) for r in records if r["kind_s"] == "thread" and r["tid_i"] in serving)
    print("   Jetty's log: %d requests of %.0f ms, ours %.0f ms and %.0f ms of their threads outside; alone %.0f ms, ours %.0f ms" % (
        len(sent), jettys, ours, behind, jettys_alone, ours_alone), flush=True)
    check_between(jettys, 0.98 * ours, 1.02 * (ours + behind), "time of all requests, by Jetty's log")
    check_between(ours_alone, 0.98 * jettys_alone, 1.02 * jettys_alone, "time of requests that were alone, by Jetty's log")


def schedstat(pid):
    """{thread: (ms on a CPU, ms in the run queue)}."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, tid)) as f:
                cpu, queue, _ = map(int, f.read().split())
            found[int(tid)] = cpu / 1e6, queue / 1e6
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return found


def same_as_schedstat(outside, before, after, end, records, stolen):
    """Requests and what lies between them are all that the threads that served did, each of them and in sum. They were followed
    a little longer than from `before` to `after`, and not longer than from `outside` to `end`; a thread that came meanwhile
    begins with nothing."""
    ours = collections.defaultdict(lambda: [0.0, 0.0])
    for r in records:
        ours[r["tid_i"]][0] += r.get("oncpu_ms_f", 0.0)
        ours[r["tid_i"]][1] += r.get("runq_ms_f", 0.0)
    serving = {r["tid_i"] for r in records if r["kind_s"] == "request"} & set(after) & set(end)
    check(len(serving) >= 10, "threads that served and are there: %d" % len(serving))
    for i, name in enumerate(("on a CPU", "in the run queue")):
        least = {tid: after[tid][i] - before.get(tid, NONE)[i] for tid in serving}
        most = {tid: end[tid][i] - outside.get(tid, NONE)[i] for tid in serving}
        total = sum(ours[tid][i] for tid in serving)
        print("   %d threads that served: %.0f ms %s, by schedstat %.0f to %.0f ms" % (
            len(serving), total, name, sum(least.values()), sum(most.values())), flush=True)
        check_between(total, 0.98 * sum(least.values()), 1.02 * sum(most.values()) + stolen, "time %s, by schedstat" % name)
        far = [(tid, ours[tid][i], least[tid], most[tid]) for tid in serving
               if not 0.98 * least[tid] - THREAD_MS <= ours[tid][i] <= 1.02 * most[tid] + THREAD_MS + stolen]
        # How long a thread waited for its first run is known to the kernel only.
        check(len(far) <= len(serving) // 20, "threads whose time %s is not schedstat's: %d of %d: %s" % (name, len(far), len(serving), far[:3]))
