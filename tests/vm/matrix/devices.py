# SPDX-License-Identifier: Apache-2.0
"""The devices of the matrix, the loads on them, and the boots that have them."""
import dataclasses

SMALL = ("read_index:pread:count=211", "write_wal:pwrite:count=101,size=16K", "read_block:pread:count=307,threads=4,order=random",
         "scan_index:aio-read:count=211,depth=8")
# Larger than any device takes at once: one operation each, however many parts the kernel makes of it.
LARGE = ("scan_table:pread:count=7,size=4M", "write_checkpoint:pwrite:count=5,size=8M")
HUGE = ("scan_table:pread:count=5,size=16M", "write_checkpoint:pwrite:count=3,size=16M", "read_segment:pread:count=31,size=1M")
SLOW = ("read_index:pread:count=101", "write_wal:pwrite:count=53,size=16K", "scan_index:aio-read:count=97,depth=8")


@dataclasses.dataclass(frozen=True)
class Device:
    """name: as guest.sh's make_NAME has it; disks: how many of the guest's it takes; cgroup: the version that it needs."""
    name: str
    load: tuple
    title: str
    disks: int = 0
    cgroup: int = 0
    throttled: bool = False


ALL = {d.name: d for d in (
    Device("virtio", SMALL + LARGE, "virtio_blk", 1),
    Device("partition", SMALL, "partition of a virtio disk", 1),
    Device("split", SMALL + HUGE, "max_sectors_kb = 64, requests up to 16 MiB", 1),
    Device("nvme", SMALL + LARGE, "NVMe"),
    Device("null_bio", SMALL + LARGE, "null_blk, bio based"),
    Device("null_softirq", SMALL, "null_blk, completion in softirq"),
    Device("null_timer", SMALL, "null_blk, completion by timer"),
    Device("zram", SMALL, "zram"),
    Device("dm_linear", SMALL + LARGE, "dm-linear", 1),
    Device("dm_crypt", SMALL + LARGE[:1], "dm-crypt", 1),
    Device("md_raid1", SMALL + LARGE, "md raid1", 2),
    Device("md_raid5", SMALL + LARGE[:1], "md raid5", 3),
    Device("loop", SMALL + LARGE[:1], "loop over a disk", 1),
    Device("throttle_v2", SLOW, "throttled by io.max", 1, cgroup=2, throttled=True),
    Device("throttle_v1", SLOW, "throttled by blkio.throttle", 1, cgroup=1, throttled=True),
)}

# What two backends record at once: how long the device takes is the same for both.
TOGETHER = "null_10ms"
TOGETHER_LOAD = ("read_index:pread:count=151", "read_block:pread:count=307,threads=4,order=random", "scan_index:aio-read:count=211,depth=8",
                 "write_wal:pwrite:count=101,size=16K")


@dataclasses.dataclass(frozen=True)
class Boot:
    """One guest. variant: what distinguishes it from the plain boot of its kernel; together: two backends record at once as well;
    last_forms: kprobes without kprobe.multi and raw tracepoints without types, as older kernels have them."""
    kernel: str
    variant: str
    cgroup: int
    append: str
    devices: tuple
    together: bool = False
    last_forms: bool = False

    @property
    def name(self):
        return " ".join(filter(None, (self.kernel, self.variant)))


# Which kernels are booted a second time as fully preemptible, the others for what backends fall back to.
PREEMPT = ("6.12", "newest")
SECOND_DEVICES = ("virtio", "split", "null_bio", "null_softirq", "null_timer", "dm_linear", "throttle_v1")


def boots(kernel, names):
    """The boots that a kernel needs for these devices."""
    plain = tuple(n for n in names if ALL[n].cgroup != 1)
    second = tuple(n for n in SECOND_DEVICES if n in names)
    result = [Boot(kernel, "", 2, "", plain, together=True)] if plain else []
    if second and kernel in PREEMPT:
        result.append(Boot(kernel, "preempt=full", 1, "preempt=full", second, together=True))
    elif second:
        result.append(Boot(kernel, "last forms", 1, "", second, last_forms=True))
    return result
