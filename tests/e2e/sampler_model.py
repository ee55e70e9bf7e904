#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sampler's arithmetic as it is compiled for the kernel, beside the model, on the same streams of bios.

Both must estimate the time, the bytes and the total time of each of the model's six loads, and both take about as many
samples. No root, no I/O."""
import collections
import os
import pathlib
import random
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "models"))
import sampler  # noqa: E402

KINDS = ("burst", "readahead", "poisson", "on-off", "then-quiet", "two-devices")
SEEDS = 2
SECONDS = 10.0


def replay(program, bios, seed):
    """Estimates by the compiled sampler: (time by stack, bytes by stack, samples)."""
    strata = {}
    lines = "".join("%d %d\n" % (1000 + at / sampler.TICK, strata.setdefault((dev, op), len(strata)))
                    for at, dev, op, *_ in bios)
    out = subprocess.run([program, str(seed), str(sampler.TARGET)], input=lines, capture_output=True, text=True, check=True)
    exact = collections.defaultdict(lambda: [0, 0])
    for _, dev, op, _, size, _ in bios:
        exact[dev, op][0] += 1
        exact[dev, op][1] += size
    taken = [(bios[int(n)], float(w)) for n, w in (line.split() for line in out.stdout.splitlines())]
    got = collections.defaultdict(lambda: [0.0, 0.0])
    for (_, dev, op, _, size, _), weight in taken:
        got[dev, op][0] += weight
        got[dev, op][1] += weight * size
    time, size_of = collections.Counter(), collections.Counter()
    for (_, dev, op, stack, size, latency), weight in taken:
        time[stack] += latency * weight * exact[dev, op][0] / got[dev, op][0]
        size_of[stack] += size * weight * exact[dev, op][1] / got[dev, op][1]
    return time, size_of, len(taken)


def distance(estimate, truth):
    e, t = sum(estimate.values()), sum(truth.values())
    return 50 * sum(abs(estimate[k] / e - truth[k] / t) for k in truth)


def main():
    program = os.path.join(os.environ["BUILD"], "tests", "bpf", "sampler_replay")
    bad = 0
    print("%-12s %21s %21s %21s %17s" % ("load", "time off", "bytes off", "total time", "samples/s"))
    print("%-12s %10s %10s %10s %10s %10s %10s %8s %8s" % (("",) + ("model", "ours") * 4))
    for kind in KINDS:
        rows = collections.defaultdict(list)
        for seed in range(SEEDS):
            bios = sampler.stream(kind, random.Random(seed), SECONDS)
            true_time, true_size = collections.Counter(), collections.Counter()
            for _, _, _, stack, size, latency in bios:
                true_time[stack] += latency
                true_size[stack] += size
            time, size, when = sampler.geometric(bios, random.Random(seed + 1000))
            rows["model"].append((time, size, len(when)))
            rows["ours"].append(replay(program, bios, seed + 1))
            for side in rows:
                t, s, n = rows[side].pop()
                rows[side].append((distance(t, true_time), distance(s, true_size),
                                   sum(t.values()) / sum(true_time.values()) - 1, n / SECONDS))
        worst = {side: [max(abs(x[i]) for x in r) for i in range(4)] for side, r in rows.items()}
        m, o = worst["model"], worst["ours"]
        print("%-12s %9.2f%% %9.2f%% %9.2f%% %9.2f%% %9.2f%% %9.2f%% %8.0f %8.0f" % (
            kind, m[0], o[0], m[1], o[1], 100 * m[2], 100 * o[2], m[3], o[3]))
        if o[0] > 2 or o[1] > 2 or o[2] > 0.02 or not 0.7 * m[3] < o[3] < 1.4 * m[3]:
            print("FAIL", kind)
            bad += 1
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
