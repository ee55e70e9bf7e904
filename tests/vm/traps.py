#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=1500
"""traps.py [KERNEL…]: what the block layer does that gave some tool wrong numbers once, made to happen in guests and counted by every
backend. The table in docs/kernels.md says which trap is whose. One kernel unless TRAPS=all is set."""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from lib.pprof import OPS, TIME, WRITE_BYTES, Profile  # noqa: E402

KERNELS = ["5.10", "6.1", "6.12", "newest"]
DEFAULT = ["6.1"]
BACKENDS = ["fentry", "kprobe", "tracepoint"]
RECORD = "blkprof record --backend $b --rate 0 -o /out/$b-%s.pb.gz"
EXT4 = "modprobe ext4; /payload/mke2fs -q -t ext4 -E lazy_itable_init=0,lazy_journal_init=0 -F /dev/vda && mkdir -p /mnt && " \
       "mount -t ext4 /dev/vda /mnt && sync && sleep 6"

# Each runs once for each backend, $b; it leaves /out/$b-NAME.pb.gz and what the load did.
TRAPS = {
    # A queue of two requests refuses RWF_NOWAIT: the bio ends with BLK_STS_AGAIN and is submitted once more.
    "again": ("modprobe null_blk queue_mode=2 irqmode=2 completion_nsec=3000000 hw_queue_depth=2 submit_queues=1 gb=1",
              "{record} -- ioload -t /dev/nullb0 -m 32M read_index:preadv2-nowait:count=101,threads=4 >{out}.json", "rmmod null_blk"),
    # A disk with a volatile write cache: each fsync is one flush.
    "flush": ("true", "{record} -- ioload -t /dev/vda -m 32M fsync_log:write-fsync:count=53 >{out}.json", "true"),
    # One without: the flush ends before it is queued.
    "flush_through": ("modprobe null_blk queue_mode=2 gb=1",
                      "{record} -- ioload -t /dev/nullb0 -m 32M fsync_log:write-fsync:count=53 >{out}.json", "rmmod null_blk"),
    # The commit of a journal is a flush sequence: block_rq_complete fires twice for it. Two backends record one load.
    "flush_sequence": (EXT4, "{record} -a -- blkprof record --backend $other --rate 0 -a -o /out/$b-other.pb.gz -- "
                       "ioload -t /mnt/log -c 4M fsync_log:write-fsync:count=41 >{out}.json", "umount /mnt"),
    # A request of which only the part before a bad sector completes, then the rest, with an error.
    "partial": ("modprobe sd_mod; modprobe scsi_debug dev_size_mb=32 opts=2 && sleep 2 && disk=/dev/$(ls /sys/block | grep ^sd)", "{record} -- sh -c 'for i in $(seq 0 40); do dd if='$disk' of=/dev/null bs=128k skip=$i "
                "count=1 iflag=direct 2>/dev/null; done; true'", "rmmod scsi_debug"),
    # A discard larger than the device takes: one bio, and a chain of its parts.
    "chain": ("echo 1048576 >/sys/block/vda/queue/discard_max_bytes",
              "{record} -- ioload -t /dev/vda -m 32M trim_space:discard:count=7,size=4M >{out}.json", "true"),
    # The same above a bio-based device, where up to 5.13 the children of the chain have no block_bio_complete.
    "chain_dm": ("modprobe dm_mod && dmsetup create --noudevsync top --table '0 262144 linear /dev/vda 0' && dmsetup mknodes",
                 "{record} -- ioload -t /dev/mapper/top -m 32M trim_space:discard:count=7,size=4M >{out}.json",
                 "dmsetup remove --noudevsync top"),
    # One address used again and again, by bios that end before submit_bio returns.
    "reuse": ("modprobe null_blk queue_mode=0 gb=1",
              "{record} -- ioload -t /dev/nullb0 -m 32M read_index:pread:count=2003,threads=3 >{out}.json", "rmmod null_blk"),
    # A device that is taken away under I/O.
    "vanish": ("grep -q configfs /proc/mounts || mount -t configfs configfs /sys/kernel/config; modprobe null_blk nr_devices=0 && mkdir /sys/kernel/config/nullb/gone && cd /sys/kernel/config/nullb/gone && "
               "echo 2 >irqmode && echo 5000000 >completion_nsec && echo 64 >size && echo 1 >power && cd /root && "
               "gone=/dev/$(ls /sys/block | grep -E 'gone|nullb')",
               "{record} -a -d 4 -- sh -c '(sleep 1; echo 0 >/sys/kernel/config/nullb/gone/power) & ioload -t '$gone' -m 32M "
               "scan_index:aio-read:count=100003,depth=16 2>/dev/null; sleep 1; true'",
               "rmdir /sys/kernel/config/nullb/gone; rmmod null_blk"),
    # Completions in interrupts that hit our own programs: a kprobe is skipped. fentry records the same load.
    "skipped": ("modprobe null_blk queue_mode=2 irqmode=2 completion_nsec=1000000 gb=1",
                "blkprof record --backend fentry --rate 0 -o /out/$b-truth.pb.gz -a -- {record} -- ioload -t /dev/nullb0 -m 32M "
                "scan_index:aio-read:count=8009,depth=16,threads=2 >{out}.json", "rmmod null_blk"),
}


def script():
    lines = ["failed=0", "for b in %s; do" % " ".join(BACKENDS), "other=fentry; [ $b != fentry ] || other=tracepoint"]
    for name, (make, run, unmake) in TRAPS.items():
        out = "/out/$b-" + name
        run = run.replace("{record}", RECORD % name).replace("{out}", out)
        lines += ["{ %s\n} >%s.make 2>&1 || { echo \"$b %s: cannot be made\"; cat %s.make; failed=1; }" % (make, out, name, out),
                  "%s 2>%s.txt || { echo \"$b %s: record failed\"; tail -n 3 %s.txt; failed=1; }" % (run, out, name, out), unmake]
    return "\n".join(lines + ["done", "exit $failed"])


class Seen:
    """What one backend recorded of one trap, and what the load did."""

    def __init__(self, out, backend, name):
        path = os.path.join(out, "%s-%s" % (backend, name))
        self.out, self.backend = out, backend
        self.profile = Profile.read(path + ".pb.gz")
        self.entries = []
        if os.path.exists(path + ".json"):
            with open(path + ".json") as f:
                self.entries = json.load(f)["entries"]

    def other(self, name):
        return Profile.read(os.path.join(self.out, "%s-%s.pb.gz" % (self.backend, name)))

    def ops(self, **where):
        return self.profile.select(**where).total(OPS)

    def lost(self, cause):
        return sum(int(re.search(r"count=(\d+)", c).group(1)) for c in self.profile.comments
                   if c.startswith("lost ") and "cause=%s " % cause in c)

    def missed(self):
        return [float(re.search(r"missed=([0-9.]+)", c).group(1)) for c in self.profile.comments if c.startswith("corrected ")]


def equal(what, seen, expected, said=0):
    """Nothing, or what is wrong: `said` operations may be missing."""
    return [] if expected - said <= seen <= expected else ["%s: %d, expected %d" % (what, seen, expected)]


def check_again(s):
    retries = s.entries[0]["retries"]
    wrong = equal("reads", s.ops(frame="read_index", op="read"), 101, s.lost("recursion"))
    return wrong if retries else wrong + ["no read was refused: the trap was not met"]


def check_flush(s):
    said = s.lost("recursion")
    return equal("writes", s.ops(frame="fsync_log", op="write"), 53, said) + equal("flushes", s.ops(frame="fsync_log", op="flush"), 53, said)


def check_flush_through(s):
    """One of the known differences: the tracepoint lies behind where such a flush ends."""
    said = s.lost("recursion")
    flushes = 0 if s.backend == "tracepoint" else 53
    return equal("writes", s.ops(frame="fsync_log", op="write"), 53, said) + equal("flushes", s.ops(frame="fsync_log", op="flush"), flushes, said)


def near(what, a, b, share):
    return [] if abs(a - b) <= share * max(a, b) else ["%s: %.0f and %.0f" % (what, a, b)]


def check_flush_sequence(s):
    """Who records first also sees what the file system wrote before: the records that end a commit are compared by their mean time."""
    means = []
    for profile in (s.profile, s.other("other")):
        commits = profile.where(lambda x: any("commit_record" in f for f in x.frames))
        if not commits.total(OPS):
            return ["no commit of a journal: the trap was not met"]
        means.append(commits.total(TIME) / commits.total(OPS))
    return near("mean time of a commit", means[0], means[1], 0.25)


def check_partial(s):
    return equal("reads", s.ops(op="read"), 41, s.lost("recursion"))


def check_chain(s):
    discards = s.profile.select(frame="trim_space", op="discard")
    wrong = [] if discards.total(WRITE_BYTES) == 0 else ["a discard counts as written bytes"]
    wrong += [] if discards.total(TIME) > 0 else ["discards took no time"]
    return wrong + equal("discards", discards.total(OPS), 7, s.lost("recursion"))


def check_chain_dm(s):
    discards = s.profile.select(frame="trim_space", op="discard")
    wrong = [] if discards.total(TIME) > 0 else ["discards took no time"]
    wrong += equal("discards", discards.total(OPS), 7, s.lost("recursion"))
    stuck = s.profile.where(lambda x: "[in flight]" in x.frames).total(OPS)
    return wrong + (["%d discards never ended" % stuck] if stuck else [])


def check_reuse(s):
    return equal("reads", s.ops(frame="read_index", op="read"), 2003, s.lost("recursion")) + \
        (["%d completions of somebody else's bio" % s.lost("mismatch")] if s.lost("mismatch") else [])


def check_vanish(s):
    wrong = [] if s.ops(op="read") > 16 else ["no reads of the device that vanished"]
    stuck = s.profile.where(lambda x: "[in flight]" in x.frames and "ioload" in x.frames).total(OPS)
    return wrong + (["%d reads are in flight on a device that is gone" % stuck] if stuck else [])


def check_skipped(s):
    said = s.lost("recursion")
    ours = s.profile.select(frame="scan_index", op="read")
    truth = s.other("truth").select(frame="scan_index", op="read")
    wrong = equal("reads", ours.total(OPS), 8009, said if s.backend != "kprobe" else 0)
    # An emulated machine is slow, and each records the other's programs too; without the correction kprobe is 8% short.
    wrong += near("time beside fentry", ours.total(TIME), truth.total(TIME), 0.06)
    if s.lost("unseen") and not s.missed():
        wrong.append("%d completions unseen, and no comment says that time is corrected" % s.lost("unseen"))
    print("     %s: %.2f%% of the completions missed, %d runs skipped by the kernel's count, time %.2f%% of fentry's" % (
        s.backend, 100 * sum(s.missed()), said, 100.0 * ours.total(TIME) / max(1, truth.total(TIME))))
    return wrong


def check_trap(out, backend, name):
    try:
        return globals()["check_" + name](Seen(out, backend, name))
    except (OSError, ValueError, IndexError, KeyError) as e:
        return ["no profile: %s" % e]


def boot(kernel, out):
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    with_files = [w for f in ("/usr/sbin/dmsetup", "/usr/sbin/mke2fs", os.path.join(build, "load/ioload")) for w in ("--with", f)]
    return subprocess.run([os.path.join(ROOT, "tools/vm/run"), kernel, "--disk", "virtio", "--timeout", "700", "--out", out] + with_files +
                          ["--", "sh", "-c", script()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check(kernel, out):
    """Problems of one kernel; None when its archive cannot be reached."""
    result = boot(kernel, out)
    if result.returncode == 77:
        print("%s: skipped, %s" % (kernel, result.stdout.strip().splitlines()[-1]))
        return None
    problems = 0
    if result.returncode:
        print("%s: exit status %d\n%s" % (kernel, result.returncode, result.stdout[-3000:]))
        problems += 1
    for backend in BACKENDS:
        for name in TRAPS:
            wrong = check_trap(out, backend, name)
            print("\n    ".join(["%s %s %s %s" % ("FAIL" if wrong else "PASS", kernel, backend, name)] + wrong))
            problems += len(wrong)
    return problems


def main():
    results = []
    for kernel in sys.argv[1:] or (KERNELS if os.environ.get("TRAPS") == "all" else DEFAULT):
        with tempfile.TemporaryDirectory() as out:
            results.append(check(kernel, os.environ.get("TRAPS_OUT", out)))
            sys.stdout.flush()
    if all(r is None for r in results):
        print("no kernel's archive can be reached")
        sys.exit(77)
    sys.exit(1 if any(results) else 0)


main()
