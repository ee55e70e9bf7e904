# SPDX-License-Identifier: Apache-2.0
"""Compares what a guest recorded with what its loads did."""
import dataclasses
import json
import os

from lib.load import by_function
from lib.pprof import OPS, READ_BYTES, TIME, WRITE_BYTES, Profile

from .devices import ALL, TOGETHER, Boot

BACKENDS = ("fentry", "kprobe", "tracepoint")
# As guest.sh takes them.
PAIRS = (("fentry", "tracepoint"), ("fentry", "kprobe"), ("kprobe", "tracepoint"))
# Backends whose submission hook is behind a cgroup's limit: what it held back comes from a kernel thread.
BEHIND_THROTTLE = ("tracepoint",)
# Whose time is an estimate even without sampling: a completion that the kernel did not let it see is made up for.
ESTIMATES = ("kprobe",)
AGREE = 0.01


@dataclasses.dataclass
class Result:
    """One backend on one device. planned and seen are operations; wrong is empty when it is as it must be. said: missing operations
    that the profile itself tells of. moved: operations that are under a kernel thread instead of their function."""
    boot: Boot
    backend: str
    device: str
    planned: int = 0
    seen: int = 0
    said: int = 0
    moved: int = 0
    means: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)

    def line(self):
        notes = ["%d planned, %d seen" % (self.planned, self.seen)] if self.planned else ["as known"] if not self.wrong else []
        notes += ["%d missing and said" % self.said] if self.said else []
        notes += ["%d under a kernel thread" % self.moved] if self.moved else []
        notes += ["mean times %s" % " and ".join("%.3f ms" % (m / 1e6) for m in self.means)] if self.means else []
        return "\n    ".join(["%s %s %s %s: %s" % ("FAIL" if self.wrong else "PASS", self.boot.name, self.backend, self.device,
                                                   ", ".join(notes))] + self.wrong)


def text(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def skipped(profile):
    """Runs of the probes that the kernel skipped, as the profile says it: on a kernel that preempts BPF programs another task's
    submission on that CPU is one."""
    return sum(int(c.split("count=")[1].split()[0]) for c in profile.comments
               if c.startswith("lost ") and "cause=recursion " in c)


def moved_bytes(samples, op):
    return samples.total(WRITE_BYTES if op == "write" else READ_BYTES)


def compare(result, samples, truth, allowed):
    """Operations and bytes of each function of the load, within the samples of its device. allowed: runs that may be missing."""
    for function, entry in by_function(truth).items():
        expect = entry["expect"]
        mine = samples.select(frame=function, op=expect["op"])
        ops, size = mine.total(OPS), moved_bytes(mine, expect["op"])
        missing = expect["ops"] - ops
        result.planned += expect["ops"]
        result.seen += ops
        if missing < 0 or missing > allowed - result.said:
            result.wrong.append("%s: %d operations, expected %d" % (function, ops, expect["ops"]))
        elif size != expect["bytes"] - missing * entry["size"]:
            result.wrong.append("%s: %d bytes in %d operations, expected %d" % (function, size, ops, expect["bytes"]))
        else:
            result.said += missing


def compare_throttled(result, samples, truth):
    """Where the hook is behind the limit: what a function lacks, and nothing else, is under a kernel thread of the same device."""
    held = samples.select(frame="[throttled]")
    functions = by_function(truth)
    result.planned = sum(e["expect"]["ops"] for e in functions.values())
    result.moved = held.total(OPS)
    result.seen = result.moved
    for op in {e["expect"]["op"] for e in functions.values()}:
        entries = {f: e for f, e in functions.items() if e["expect"]["op"] == op}
        direct = samples.where(lambda s: s.labels.get("op") == op and set(s.frames) & set(entries))
        result.seen += direct.total(OPS)
        both = moved_bytes(direct, op) + moved_bytes(held.select(op=op), op)
        if both != sum(e["expect"]["bytes"] for e in entries.values()):
            result.wrong.append("%s: %d bytes by functions and held back" % (op, both))
        for function, entry in entries.items():
            if samples.select(frame=function, op=op).total(OPS) > entry["expect"]["ops"]:
                result.wrong.append("%s: too many operations" % function)
    if result.seen != result.planned:
        result.wrong.append("%d operations by functions and held back, expected %d" % (result.seen, result.planned))
    if not result.moved:
        result.wrong.append("nothing was held back: the limit did not work")


def waited(result, samples, truth):
    """A hook before the limit sees the wait: nearly all of the time that the calls took."""
    for function, entry in by_function(truth).items():
        share = samples.select(frame=function).total(TIME) / entry["time_ns"]
        if not 0.5 < share <= (1.1 if result.backend in ESTIMATES else 1.01):
            result.wrong.append("%s: %.0f%% of the time that its calls took" % (function, 100 * share))


def strangers(samples, truth):
    """What a device has under none of the load's functions and not from the cgroup's limit."""
    known = set(by_function(truth)) | {"[throttled]"}
    return samples.where(lambda s: s[OPS] and not known & set(s.frames))


def judge(boot, backend, name, profile, out, prefix=None):
    result = Result(boot, backend, name)
    try:
        truth = json.loads(text(os.path.join(out, "%s.%s.json" % (prefix or backend, name))))
    except ValueError:
        result.wrong.append("no load ran on it")
        return result
    samples = profile.select(device=truth["entries"][0]["device"])
    throttled = name in ALL and ALL[name].throttled
    if throttled and backend in BEHIND_THROTTLE:
        compare_throttled(result, samples, truth)
    else:
        compare(result, samples, truth, skipped(profile))
        if throttled and not result.wrong:
            waited(result, samples, truth)
    others = strangers(samples, truth)
    if len(others):
        result.wrong.append("nobody planned these:\n" + others.show(5))
    return result


def second_level(result, profile, known):
    """What is on devices that no load used may only be of kernel threads, below a loop device."""
    below = profile.where(lambda s: s[OPS] and s.labels.get("device") not in known)
    for s in below:
        if not set(s.frames) & {"[second level: loop device's file]", "[writeback]"}:
            result.wrong.append("counted below a stacked device:\n" + below.show(5))
            return


def judge_backend(boot, backend, refused, out):
    """Results of one backend on all devices of a boot; one without a device when it was refused."""
    path = os.path.join(out, backend)
    if not os.path.exists(path + ".works"):
        reason = (text(path + ".txt").strip() or "not tried").splitlines()[-1]
        result = Result(boot, backend, "refused")
        print("    %s refuses %s: %s" % (boot.name, backend, reason))
        result.wrong = [] if refused else ["refused"]
        return [result]
    try:
        profile = Profile.read(path + ".pb.gz")
    except (OSError, ValueError) as e:
        return [Result(boot, backend, n, wrong=["no profile: %s" % e, text(path + ".txt")[-500:]]) for n in boot.devices]
    results = [judge(boot, backend, n, profile, out) for n in boot.devices]
    second_level(results[0], profile, devices_of(out, backend))
    return results


def devices_of(out, prefix):
    names = set()
    for file in os.listdir(out):
        if file.startswith(prefix + ".") and file.endswith(".json") and text(os.path.join(out, file)):
            names |= {e["device"] for e in json.loads(text(os.path.join(out, file)))["entries"]}
    return names


def agree(boot, pair, out):
    """Two backends that recorded one load at once: the same operations, and times within 1% of each other."""
    both = "+".join(pair)
    result = Result(boot, both, TOGETHER)
    try:
        profiles = [Profile.read(os.path.join(out, "%s.%s.pb.gz" % (both, b))) for b in pair]
        each = [judge(boot, b, TOGETHER, p, out, both) for b, p in zip(pair, profiles)]
        result.planned, result.seen = each[0].planned, min(r.seen for r in each)
        result.wrong = [line for r in each for line in r.wrong]
        if not result.wrong:
            compare_times(result, pair, profiles, os.path.join(out, both))
    except (OSError, ValueError, KeyError) as e:
        result.wrong.append("no two profiles: %r; %s" % (e, text(os.path.join(out, both + ".txt"))[-500:]))
    return result


def compare_times(result, pair, profiles, path):
    truth = json.loads(text("%s.%s.json" % (path, TOGETHER)))
    result.means = [mean_time(p, truth) for p in profiles]
    between = time_between(pair, path + ".programs.json")
    # A machine that stands still within a program makes that part longer than it is for most bios: it counts for at most that.
    apart = result.means[0] - result.means[1]
    if not min(0, between) - AGREE * result.means[0] <= apart <= max(0, between) + AGREE * result.means[0]:
        result.wrong.append("the times differ by %.2f%%, of which %.0f us may be our own programs" % (
            100 * apart / result.means[0], between / 1e3))


def time_between(pair, path):
    """How much longer a bio is in the hands of the first than of the second, for the sake of the other's programs: their time, as the
    kernel measured it. The tracepoint's hooks lie within those of the functions; of two on one function a kprobe runs first. In an
    emulated machine that is 1% of 10 ms."""
    means = {(p["type"], p["name"]): p["run_time_ns"] / p["run_cnt"] for p in json.loads(text(path)) if p.get("run_cnt")}
    if pair[1] == "kprobe":
        return means["kprobe", "on_bio_endio"] - means["kprobe", "on_submit_bio"]
    within = next(m for (kind, name), m in means.items() if name == "on_rq_complete")
    return means["kprobe" if pair[0] == "kprobe" else "tracing", "on_submit_bio"] + within


def mean_time(profile, truth):
    device, functions = truth["entries"][0]["device"], set(by_function(truth))
    samples = profile.select(device=device).where(lambda s: functions & set(s.frames))
    return samples.total(TIME) / samples.total(OPS)


def pairs(boot, backends, out):
    """The pairs of backends that must have recorded at once: of those that attached."""
    working = [b for b in backends if os.path.exists(os.path.join(out, b + ".works"))]
    return [p for p in PAIRS if boot.together and set(p) <= set(working)]
