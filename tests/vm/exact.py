#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=2400
"""In guests with other kernels a profile with --rate 0 equals what the load did, operations and bytes per function, with every
backend. This is the part of tools/vm/matrix that fits the time of tools/test: every kernel, backend and kind of device, not each with
each. A backend that a kernel refuses fails the test, unless it is known to."""
import sys

from matrix import devices, guest, run, table
from matrix.devices import Boot

PART = (
    Boot("newest", "", 2, "", ("virtio", "split", "null_softirq", "dm_linear", "md_raid1", "throttle_v2"), together=True),
    Boot("newest", "preempt=full", 1, "preempt=full", ("virtio", "null_timer")),
    Boot("6.12", "preempt=full", 1, "preempt=full", ("virtio", "null_bio", "loop")),
    Boot("6.1", "last forms", 1, "", ("virtio", "null_timer", "dm_crypt", "throttle_v1"), last_forms=True),
    Boot("5.10", "", 2, "", ("virtio", "partition", "split", "null_bio", "zram", "dm_linear", "dm_crypt", "md_raid1"), together=True),
)


def main():
    if guest.missing_programs():
        print("missing %s" % ", ".join(guest.missing_programs()))
        sys.exit(77)
    chosen = [b for b in PART if not sys.argv[1:] or b.kernel in sys.argv[1:]]
    left = set(devices.ALL) - {n for b in chosen for n in b.devices}
    print("a part of tools/vm/matrix: %s; without %s" % (
        "; ".join("%s with %s" % (b.name, " ".join(b.devices)) for b in chosen), " ".join(sorted(left)) or "nothing"))
    results, _ = run.run(chosen)
    if not results:
        print("no kernel's archive can be reached")
        sys.exit(77)
    print("\n" + table.counts(results) + "\n\n" + table.times(results))
    sys.exit(1 if any(r.wrong for r in results) else 0)


main()
