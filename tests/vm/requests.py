#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=600
"""In guests with every kernel of the matrix: the records of a server's requests are one for each, with the calls, bytes, block I/O, page
faults, waits, statuses and threads that the server had. `requests.py KERNEL…`."""
import collections
import json
import os
import subprocess
import sys
import tempfile

from matrix import ROOT, guest
from matrix.run import KERNELS

HERE = os.path.join(ROOT, "tests/vm/requests")
PAGE = 4096
WORKS = ("read", "pread", "readv", "fault", "write", "pwrite", "fsync", "sleep", "lock")
READS, CALLS = ("read", "pread", "readv"), ("read", "pread", "readv", "write", "pwrite")
TICK_MS = 3  # of the server's sleeps


class Request:
    """One of the plan. `pieces`: how many bytes of the head go before each pause."""

    def __init__(self, trace, body=0, status=200, size=100, chunks=0, mapped=0, **work):
        self.trace, self.work, self.status, self.body, self.paused = trace, work, status, body, 0
        self.faults = work.get("fault", 0) + mapped
        words = [*work.items(), ("status", status), ("bytes", size), ("chunks", chunks), ("mapped", mapped)]
        self.path = "/%s" % trace
        self.head = "%s %s?%s HTTP/1.1\r\nX-Trace-Id: %s\r\n%s\r\n" % (
            "POST" if body else "GET", self.path, "&".join("%s=%d" % w for w in words), trace, "Content-Length: %d\r\n" % body if body else "")
        self.answer = answer_size(status, PAGE if mapped else size, chunks)

    def sent(self):
        return len(self.head) + self.body

    def count(self, *names):
        return sum(self.work.get(n, 0) for n in names)


def answer_size(status, size, chunks):
    if not chunks:
        return len("HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, size)) + size
    chunk = len("%x\r\n" % size) + size + 2
    return len("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n") + chunks * chunk + len("0\r\n\r\n")


def text(head):
    return "S " + head.replace("\r", "\\r").replace("\n", "\\n")


def ask(request):
    """Lines of a plan."""
    return [text(request.head), *(["B %d" % request.body] if request.body else []), "A %d" % request.answer]


MIX = [{"pread": 5}, {"read": 2, "readv": 3, "sleep": 1}, {"fault": 4}, {"body": 9000, "pread": 1}, {"lock": 2}, {"sleep": 2, "fault": 1},
       {"chunks": 3, "size": 2000, "read": 1}, {"mapped": 1, "pread": 1}, {"status": 503, "size": 0}, {"body": 60000, "lock": 1, "fault": 2}]
WRITES = [{"write": 3, "fsync": 1}, {"pwrite": 2}, {"body": 3000, "write": 1, "fsync": 1, "pwrite": 1}, {"pread": 2, "write": 8, "fsync": 1}]


def mixed(name, kinds, n):
    """(requests, lines): one after the other, on connections that are kept for some."""
    requests = [Request("%s-%d" % (name, i), **kinds[(i + len(name)) % len(kinds)]) for i in range(n)]
    lines = ["T"]
    for i, r in enumerate(requests):
        lines += (["C"] if i % 7 == 0 else []) + ask(r)
    return requests, lines


def in_pieces(name, cuts, **what):
    """A head that comes in pieces."""
    r = Request(name, **what)
    lines, at = ["T", "C"], 0
    for cut in cuts:
        lines += [text(r.head[at:cut]), "P 30"]
        at = cut
    r.paused = 30 * len(cuts)
    return [r], lines + [text(r.head[at:]), "A %d" % r.answer]


def slow_body(name, **what):
    r = Request(name, body=10000, **what)
    r.paused = 60
    return [r], ["T", "C", text(r.head), "B 1000", "P 60", "B 9000", "A %d" % r.answer]


def pipelined(name, n, cut=0, **what):
    """Heads in one write; of the last one, `cut` bytes come later."""
    requests = [Request("%s-%d" % (name, i), **what) for i in range(n)]
    requests[-1].paused = 30 if cut else 0
    heads = "".join(r.head for r in requests)
    at = len(heads) - cut
    lines = ["T", "C", text(heads[:at]), *(["P 30", text(heads[at:])] if cut else []), "A %d" % sum(r.answer for r in requests)]
    return requests, lines


def plan():
    """(requests, lines)"""
    parts = [mixed("a", MIX, 30), mixed("bb", MIX, 30), mixed("ccc", MIX, 30), mixed("w", WRITES, 16),
             in_pieces("bytes", range(1, 6), pread=1), in_pieces("late", (3, -2), fault=1), slow_body("slow", pread=2),
             pipelined("pipe", 5, pread=2, fault=1), pipelined("cut", 3, cut=20, read=1)]
    return {r.trace: r for requests, _ in parts for r in requests}, [line for _, lines in parts for line in lines]


def compiled(folder, name):
    out = os.path.join(folder, name)
    subprocess.run(["cc", "-O2", "-pthread", "-o", out, "%s/%s.c" % (HERE, name)], check=True)
    return out


def boot(kernel, folder, out, lines):
    with open(folder + "/plan", "w") as f:
        f.write("\n".join(lines) + "\n")
    command = [os.path.join(ROOT, "tools/vm/run"), kernel, "--timeout", "150", "--out", out, "--disk", "virtio"]
    for file in (HERE + "/guest.sh", folder + "/plan", compiled(folder, "server"), compiled(folder, "client")):
        command += ["--with", file]
    return guest.vm([*command, "--", "sh", "/payload/guest.sh"])


def read_truth(path):
    """{trace: (thread, futex calls, {work: ns})}"""
    result = {}
    with open(path) as f:
        for trace, tid, futexes, *ns in map(str.split, f):
            result[trace] = (int(tid), int(futexes), dict(zip(WORKS, map(int, ns))))
    return result


def expected(r, truth):
    """Fields of its record that must be so."""
    reads, writes = r.count(*READS) + r.faults, r.count("write", "pwrite")
    fields = {"tid_i": truth[0], "status_i": r.status, "attribution_s": "exact", "path_s": r.path, "method_s": "POST" if r.body else "GET",
              "req_bytes_l": r.sent(), "resp_bytes_l": r.answer, "futex_ops_i": truth[1], "fsync_ops_i": r.count("fsync"),
              "fault_disk_ops_i": r.faults, "fault_disk_bytes_l": r.faults * PAGE, "major_faults_i": r.faults,
              "disk_read_ops_i": reads, "disk_read_bytes_l": reads * PAGE, "disk_write_bytes_l": writes * PAGE,
              "read_ops_i": reads, "read_bytes_l": reads * PAGE, "write_ops_i": writes + r.count("fsync"), "write_bytes_l": writes * PAGE,
              "incomplete_b": None, "missing_ss": None}
    for call in CALLS:
        fields["sys_%s_ops_i" % call] = r.count(call)
        fields["sys_%s_bytes_l" % call] = r.count(call) * PAGE
    for field, asked in (("sleep_wait_ms_f", r.count("sleep")), ("lock_wait_ms_f", r.count("lock")), ("client_wait_ms_f", r.body or r.paused),
                         ("disk_wait_ms_f", reads + writes), ("pipe_wait_ms_f", 0), ("poll_wait_ms_f", 0), ("net_wait_ms_f", 0)):
        if not asked:
            fields[field] = 0
    return fields


def judge_record(r, record, truth):
    """What is wrong with it."""
    for field, want in expected(r, truth).items():
        got = record.get(field, None if want is None or isinstance(want, str) else 0)
        if got != want:
            yield "%s is %r, not %r" % (field, got, want)
    flushed = r.count("fsync")
    ops = record.get("disk_write_ops_i", 0) - r.count("pwrite")
    if not 2 * flushed <= ops <= (r.count("write") + 1) * flushed:
        yield "%d block writes of %d writes and %d syncs" % (ops, r.count("write"), flushed)
    if record.get("fault_io_ops_i", 0) > r.faults:
        yield "%d faults waited, of %d" % (record["fault_io_ops_i"], r.faults)
    parts = sum(record.get(f, 0) for f in ("oncpu_ms_f", "runq_ms_f", "blocked_ms_f"))
    if abs(parts - record["duration_ms_f"]) > 0.002:
        yield "on CPU, queued and blocked are %.3f ms of %.3f" % (parts, record["duration_ms_f"])
    if record.get("disk_wait_ms_f", 0) > record["total_io_duration_ms_f"] + 0.002:
        yield "waited for the disk longer than its I/O took"


def judge_times(requests, records, truth):
    """Sums over all, against what the server measured around its work."""
    def theirs(*works):
        return sum(t[2][w] for trace, t in truth.items() if trace in requests for w in works) / 1e6

    def ours(field, traces=requests):
        return sum(records[t][0].get(field, 0) for t in traces)

    plain = [t for t, r in requests.items() if r.faults == r.count("fault")]
    for what, got, least, most in (
            ("reads", ours("read_duration_ms_f", plain), 0.5 * theirs(*READS, "fault"), theirs(*READS, "fault")),
            ("writes", ours("write_duration_ms_f"), 0.5 * theirs("write", "pwrite", "fsync"), theirs("write", "pwrite", "fsync")),
            ("sleep", ours("sleep_wait_ms_f"), 0.5 * theirs("sleep"), theirs("sleep")),
            ("lock", ours("lock_wait_ms_f"), 0.3 * theirs("lock"), theirs("lock")),
            ("client", ours("client_wait_ms_f"), 0.5 * sum(r.paused for r in requests.values()), ours("duration_ms_f")),
            ("faults", ours("fault_io_ms_f", plain), 0, theirs("fault"))):
        if not least <= got <= most:
            yield "%s: %.2f ms in all, not between %.2f and %.2f" % (what, got, least, most)


def counted_losses(said):
    """{name: number}"""
    words = (line.split(None, 2) for line in said.splitlines())
    return {w[1].rstrip(":"): int(w[0]) for w in words if len(w) == 3 and w[0].isdigit()}


def read_records(path):
    """({trace: records}, requests with no trace of the plan)"""
    records, others = collections.defaultdict(list), []
    with open(path) as f:
        for record in map(json.loads, f):
            if record["kind_s"] != "request" or record.get("path_s") == "/first":
                continue
            if "trace_id_s" in record:
                records[record["trace_id_s"]].append(record)
            else:
                others.append(record)
    return records, others


def judge_guest(requests, out):
    """What is wrong. Where a kernel preempts programs it skips others meanwhile, and counts them: no more requests than
    that may have something wrong, and none may be made up."""
    with open(out + "/said.err", errors="replace") as f:
        said = f.read()
    losses, (records, others), truth = counted_losses(said), read_records(out + "/records"), read_truth(out + "/truth")
    skipped = losses.pop("programs_skipped", 0)
    wrong = {t: list(judge_record(r, records[t][0], truth[t])) if records[t] else ["not seen"] for t, r in requests.items()}
    bad = [t for t in requests if wrong[t]]
    if len(bad) > skipped or any(n > skipped for n in losses.values()):
        yield from ("%s: %s" % (t, text) for t in bad for text in wrong[t])
        yield "said: " + said
    yield from ("%s: seen %d times" % (t, len(r)) for t, r in records.items() if t not in requests or len(r) > 1)
    yield from ("nobody asked for %r" % r for r in others if not r.get("incomplete_b"))
    yield from judge_times({t: r for t, r in requests.items() if not wrong[t]}, records, truth)
    if skipped:
        print("%d programs were skipped, and %d of %d requests are not whole" % (skipped, len(bad), len(requests)))


def judge(kernel, requests, lines):
    """What is wrong, or None when the kernel cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        status, output = boot(kernel, folder, out, lines)
        if status == 77:
            print("%s: skipped, %s" % (kernel, output.splitlines()[-1]))
            return None
        if os.environ.get("KEEP"):
            subprocess.run(["cp", "-r", out, os.environ["KEEP"] + "-" + kernel], check=True)
        if status or os.path.exists(out + "/failed"):
            failed = ""
            if os.path.exists(out + "/failed"):
                with open(out + "/failed", errors="replace") as f:
                    failed = f.read()
            return ["%s: exit status %d\n%s\n%s" % (kernel, status, output[-2000:], failed)]
        wrong = ["%s: %s" % (kernel, text) for text in judge_guest(requests, out)]
        print("%s: %s" % (kernel, "wrong" if wrong else "%d requests ok" % len(requests)), flush=True)
        return wrong


def main():
    requests, lines = plan()
    results = [r for k in (sys.argv[1:] or KERNELS) for r in [judge(k, requests, lines)] if r is not None]
    if not results:
        print("no kernel's archive can be reached")
        sys.exit(77)
    print("\n".join(line for r in results for line in r[:60]))
    sys.exit(1 if any(results) else 0)


main()
