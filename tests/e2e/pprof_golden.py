#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`go tool pprof` of every Go on this machine reads the golden profile of the builder and shows its exact totals."""
import os
import subprocess
import sys
import tempfile

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "pprof", "builder.pb")
GOS = ["/usr/local/go/bin/go", "/usr/lib/go-1.19/bin/go", "/usr/lib/go/bin/go"]

# Arguments, and lines (spaces collapsed) that must be in the output.
CHECKS = [
    (["-top"], ["Type: io_time", "File: [node db1]", "7ms 73.68% 73.68% 7ms 73.68% commit??<wal>\"&",
                "2.50ms 26.32% 100% 2.50ms 26.32% ReadPage (inline)", "0 0% 100% 9.50ms 100% app"]),
    (["-top", "-sample_index=io_ops"], ["Showing nodes accounting for 7, 100% of 7 total"]),
    (["-top", "-sample_index=read_bytes"], ["Showing nodes accounting for 24kB, 100% of 24kB total"]),
    (["-top", "-sample_index=write_bytes"], ["Showing nodes accounting for 8kB, 100% of 8kB total"]),
    (["-top", "-sample_index=cpu"], ["Showing nodes accounting for 3ms, 100% of 3ms total"]),
    (["-top", "-mean"], ["833.33us 61.40% 190.35% 833.33us 61.40% ReadPage (inline)"]),
    (["-top", "-tagfocus=latency=5ms:"], ["7ms 73.68% 73.68% 7ms 73.68% commit??<wal>\"&"]),
    (["-top", "-tagfocus=pid=4711"],
     ["2.50ms 26.32% 26.32% 2.50ms 26.32% ReadPage (inline)"]),
    (["-tags"], ["latency: Total 9.5", "7ms (73.68%): 5ms", "device: Total 9.5"]),
    (["-raw"], ["PeriodType: io count", "Period: 1",
                "io_ops/count io_time/nanoseconds[dflt] read_bytes/bytes write_bytes/bytes cpu/nanoseconds",
                "bytes:[8192 bytes] latency:[0 nanoseconds] pid:[4711]",
                "1: 0x0/0x0/0x0 [node db1] [FN]",
                "2: 0x400000/0x500000/0x1000 /usr/bin/app aabbccdd [FN][FL][LN][IN]"]),
    (["-comments"], ["backend=tracepoint"]),
]


def squeeze(text):
    return "\n".join(" ".join(line.split()) for line in text.splitlines()).replace("7.0ms", "7ms")


def main():
    tried = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        cache = os.environ.get("GOCACHE") or os.path.expanduser("~/.cache/go-build")
        env = dict(os.environ, PPROF_TMPDIR=scratch, HOME=scratch, GOTOOLCHAIN="local", GOCACHE=cache)
        for go in filter(os.path.exists, GOS):
            tried += 1
            for args, wanted in CHECKS:
                run = subprocess.run([go, "tool", "pprof", *args, GOLDEN], env=env, capture_output=True, text=True,
                                     timeout=60)
                text = squeeze(run.stdout)
                for line in [w for w in wanted if w not in text]:
                    failed += 1
                    print(f"{go} {' '.join(args)}: no '{line}' in\n{text}\n{run.stderr}")
    if not tried:
        print("no Go on this machine")
        return 77
    print(f"{tried} versions of go tool pprof, {len(CHECKS)} views each, {failed} differences")
    return 1 if failed else 0


sys.exit(main())
