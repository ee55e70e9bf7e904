#!/usr/bin/env python3
# test: program=plain timeout=600
# SPDX-License-Identifier: Apache-2.0
"""Three nodes and two collectors with everything that goes wrong between them; nothing is lost unheard and nothing counts twice.
FLEET_SECONDS (55) is the time with faults, FLEET_SEED repeats their order."""
import collections
import contextlib
import os
import random
import re
import shutil
import signal
import time

from lib import devices, testing
from lib.agent import Agent, spool
from lib.collector import Collector, keygen
from lib.fleet import Clock, Key, Spooled, Stored, add_up, query
from lib.load import Load, ioload_args
from lib.network import Network
from lib.pprof import OPS
from lib.testing import check, check_equal, scratch, wait_for

SECONDS = int(os.environ.get("FLEET_SECONDS", "55"))
SEED = int(os.environ.get("FLEET_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
NODES, COLLECTORS = ("one", "two", "three"), ("left", "right")


class Fleet:
    """The processes, their disks and their links; every fault has an end."""

    def __init__(self, stack, folder):
        self.stack, self.folder, self.random = stack, folder, random.Random(SEED)
        self.network = stack.enter_context(Network(*NODES, *COLLECTORS))
        self.agents, self.collectors, self.disks, self.spooled, self.loads, self.clocks = {}, {}, {}, {}, {}, {}
        for name in NODES + COLLECTORS:
            self.clocks[name] = Clock(self._path(name, "clock"))
        for name in COLLECTORS:
            self._collector(name)
        keys = {name: keygen(self._path(name, name + ".key")) for name in NODES}
        for c in self.collectors.values():
            with open(c.allowed, "w") as f:
                f.writelines("%s %s\n" % (key, node) for node, key in keys.items())
        for number, name in enumerate(NODES):
            self._agent(number, name)

    def _path(self, name, *rest):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, *rest)

    def _collector(self, name):
        self.disks[name] = self.stack.enter_context(devices.small_fs(self._path(name), 48))[0]
        c = Collector(self._path(name), curve=True, wrapper=self.network.wrapper(name), store=self.disks[name] + "/store",
                      address="tcp://%s:6062" % self.network.address(name), env=self.clocks[name].environment())
        c.pid = lambda: c.process.pid  # the wrapper becomes the collector
        self.collectors[name] = c
        self.stack.callback(c.__exit__, None, None, None)

    def _agent(self, number, name):
        self.disks[name] = self.stack.enter_context(devices.small_fs(self._path(name), 8))[0]
        order = COLLECTORS if number % 2 else COLLECTORS[::-1]
        more = "[filter]\ncomm = fleet-%s\n[ship]\nkey = %s\n" % (name, self._path(name, name + ".key"))
        more += "".join("endpoint = %s %s\n" % (self.collectors[c].address, self.collectors[c].public) for c in order)
        a = Agent(self._path(name), more=more, spool_folder=self.disks[name] + "/spool", prefix=self.network.wrapper(name), node=None)
        self.spooled[name] = Spooled(self._path(name, "kept"))
        a.env.update(self.spooled[name].environment(), **self.clocks[name].environment())
        self.agents[name] = a

    def start(self, disk):
        for c in self.collectors.values():
            c.start()
        for a in self.agents.values():
            self.stack.enter_context(a)
        for number, name in enumerate(NODES):
            args = ioload_args(disk, "write_wal:aio-write:count=%d,rate=%d,depth=4" % ((SECONDS + 600) * 40, 31 + number),
                               "read_index:pread:count=%d,rate=%d" % ((SECONDS + 600) * 40, 23 + number),
                               extra=("--parallel", "--comm", "fleet-" + name))
            self.loads[name] = self.stack.enter_context(Load(args))
            self.loads[name].start()

    # ---- faults: each returns what ends it, or None when it ended by itself

    def kill(self, name):
        process = self.agents.get(name) or self.collectors[name]
        process.kill()
        return lambda: self._restart(name, process)

    def _restart(self, name, process):
        try:
            process.start()
        except RuntimeError as e:
            if "No space" not in str(e) and "full" not in str(e):
                raise
            self.empty(name)  # it cannot begin on a full disk
            process.start()

    def hold(self, name):
        process = self.agents.get(name) or self.collectors[name]
        process.signal(signal.SIGSTOP)
        return lambda: process.signal(signal.SIGCONT)

    def cut(self, name):
        self.network.cut(name)
        return lambda: self.network.restore(name)

    def slow(self, name):
        self.network.slow(name)
        return lambda: self.network.restore(name)

    def fill(self, name):
        with open(os.path.join(self.disks[name], "filler"), "wb", buffering=0) as f:
            with contextlib.suppress(OSError):
                while True:
                    f.write(bytes(4096))
        return lambda: self.empty(name)

    def step(self, name):
        """The wall clock jumps, and later back."""
        self.clocks[name].step(self.random.choice((-1, 1)) * self.random.choice((0.5, 15, STEP)))
        return lambda: self.clocks[name].step(0)

    def strand(self, name):
        """No collector and then no room: the oldest have to go."""
        self.network.cut(name)
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: sum(n.endswith(".batch") for n in os.listdir(self.agents[name].spool)) > 3, "some batches", 8)
        self.fill(name)
        return lambda: (self.empty(name), self.network.restore(name))

    def empty(self, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.disks[name], "filler"))


class Chaos:
    """Faults one after the other and several at once, at most one of them for a host."""

    WHAT = [(f, n) for f in ("kill", "cut", "slow", "fill", "step") for n in NODES + COLLECTORS] + [("hold", n) for n in COLLECTORS] + \
        [("strand", n) for n in NODES]

    def __init__(self, fleet, random_):
        self.fleet, self.random, self.running, self.count = fleet, random_, {}, collections.Counter()
        self.todo = []

    def next(self):
        if not self.todo:
            self.todo = list(self.WHAT)
            self.random.shuffle(self.todo)
        return self.todo.pop()

    def step(self):
        for name in [n for n, (end, _) in self.running.items() if end <= time.monotonic()]:
            self.running.pop(name)[1]()
        fault, name = self.next()
        if name in self.running:
            self.todo.insert(0, (fault, name))
            return
        self.count["%s of %s" % (fault, "agents" if name in NODES else "collectors")] += 1
        shortest, longest = {"fill": (0.3, 9), "cut": (0.3, 9), "strand": (4, 8)}.get(fault, (0.3, 5))
        undo = getattr(self.fleet, fault)(name)
        self.running[name] = (time.monotonic() + self.random.uniform(shortest, longest), undo)

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()
            time.sleep(self.random.uniform(0.2, 1.5))
        for _, undo in self.running.values():
            undo()
        self.running = {}


def drain(fleet):
    """All is well again: what is in the spools goes. Restarted agents do not wait for their pause to end."""
    for a in fleet.agents.values():
        a.stop()
        a.start()
    for name, a in fleet.agents.items():
        start = time.time_ns()
        wait_for(lambda: all(b.end > start for b in calm_spool(a.spool)), "the spool of %s to be sent" % name, 180)
    for load in fleet.loads.values():
        load.__exit__()
    for a in fleet.agents.values():
        a.stop()


def calm_spool(folder):
    """The batches of a spool that changes meanwhile."""
    while True:
        try:
            return spool(folder)
        except FileNotFoundError:
            pass


def account(name, spooled, stores, rest):
    """What one agent spooled is stored or known to be lost or still there; returns numbers for the report."""
    here = set().union(*(s.windows for s in stores))
    lost = set().union(*(s.lost for s in stores))
    keys = set(spooled.windows)
    missing = [k for k in keys if k not in here and k not in lost and k not in rest and (k.instance, k.sequence) not in spooled.unsure]
    check_equal(missing, [], "windows of %s that are nowhere" % name)
    mine = {k for k in here if k.node == name}
    check_equal(sorted(mine - keys), [], "windows in a store that %s never spooled" % name)
    for s in stores:
        got, _ = query([s], name, os.path.join(spooled.folder, "..", "query.pb.gz"), *span())
        check_equal(got, add_up(spooled.windows[k] for k in s.windows if k.node == name), "sums of %s in %s" % (name, s.folder))
    got, comments = query(stores, name, os.path.join(spooled.folder, "..", "query.pb.gz"), *span())
    check_equal(got, add_up(spooled.windows[k] for k in mine), "sums of %s over both stores" % name)
    told = sum(int(n) for c in comments for n in re.findall(r"^gap batches=(\d+)", c))
    check_equal(told, len({k for k in lost - here if k.node == name}), "batches of %s that query says are lost" % name)
    check(got[OPS] > 100, "%s did %d operations" % (name, got[OPS]))
    gaps = [(b.instance, n) for b in spooled.gaps for n in range(b.gap_first, b.sequence + 1)]
    told = {(k.instance, k.sequence) for k in here | lost | rest}
    check_equal([g for g in gaps if g not in told], [], "batches of %s that were dropped and nobody knows" % name)
    return {"windows": len(keys), "stored": len(mine), "in both": len(set.intersection(*(s.windows for s in stores)) & mine),
            "dropped after they were spooled": len((keys - mine) & lost), "known to be lost": len([k for k in lost if k.node == name]),
            "starts": len({k.instance for k in keys}), "left in the spool": len(rest - here), "operations": got[OPS]}


STEP = 1800  # seconds, the largest of a clock
BEGIN = int(time.time()) - 10 - STEP


def span():
    return BEGIN, int(time.time()) + 10 + STEP


def check_acknowledged(name, spooled, collectors, stores):
    """What an agent heard to be stored by a collector is in that one: a window once (Stored has seen to that), a gap as one. A gap
    has the number of the last window that it stands for; a store that has the window does not take it for lost."""
    by_address = {c.address: s for c, s in zip(collectors, stores)}
    gaps = {(b.instance, b.sequence) for b in spooled.gaps}
    missing, windows = [], collections.Counter()
    for address, instance, sequence, _ in spooled.acknowledged:
        key, store = Key(name, instance, sequence), by_address[address]
        if key in spooled.windows:
            windows[address] += 1
        if key not in store.windows and ((instance, sequence) not in gaps or key not in store.lost):
            missing.append((address, key))
    check_equal(missing, [], "what %s heard to be stored and is not there" % name)
    check(sum(windows.values()) > 10, "%s heard of %s windows" % (name, dict(windows)))
    return sum(windows.values())


def soak():
    print("   seed %d: repeat with FLEET_SEED=%d" % (SEED, SEED))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        disk = stack.enter_context(devices.zram())
        fleet = Fleet(stack, folder)
        fleet.start(disk)
        if not fleet.network.delays:
            print("   this kernel has no netem: links are narrow (tbf) instead of late and lossy")
        chaos = Chaos(fleet, random.Random(SEED))
        chaos.run(SECONDS)
        print("   faults: " + ", ".join("%d %s" % (n, what) for what, n in sorted(chaos.count.items())))
        drain(fleet)
        for c in fleet.collectors.values():
            check_equal(c.stop()[0], 0, "status of a collector")
        collectors = list(fleet.collectors.values())
        stores = [Stored(c.store) for c in collectors]
        for name in NODES:
            rest = {k for b in spool(fleet.agents[name].spool) for k in keys_of(b)}
            print("   %s: %s" % (name, account(name, fleet.spooled[name].read(), stores, rest)))
            heard = check_acknowledged(name, fleet.spooled[name], collectors, stores)
            print("   %s heard of %d windows by a collector that they are stored: each is there" % (name, heard))
        for log in [c.log() for c in fleet.collectors.values()] + [a.log() for a in fleet.agents.values()]:
            check(not re.search("refused batch|is refused and lost|ThreadSanitizer|AddressSanitizer", log), log[-2000:])


def keys_of(batch):
    return [Key(batch.node, batch.instance, n) for n in range(batch.gap_first or batch.sequence, batch.sequence + 1)]


def local_agent(folder, name, collector, spool_folder=None):
    """An agent named twin that ships over loopback; all of it has a copy in the Spooled beside it."""
    home = os.path.join(folder, name)
    os.makedirs(home)
    a = Agent(home, more="[ship]\nendpoint = %s\n" % collector.address, node="twin", spool_folder=spool_folder)
    kept = Spooled(os.path.join(home, "kept"))
    a.env.update(kept.environment())
    return a, kept


def wait_stored(kept, more, timeout=60):
    """So many more windows are spooled."""
    have = len(os.listdir(kept.folder))
    wait_for(lambda: len(os.listdir(kept.folder)) >= have + more, "%d more windows" % more, timeout)


def wait_sent(agent):
    start = time.time_ns()
    wait_for(lambda: all(b.end > start for b in calm_spool(agent.spool)), "the spool to be sent", 60)


def look_alikes():
    """An empty spool, one from a copy, two agents of one name at once: each window is stored once, copies are duplicates."""
    with scratch() as folder:
        collector = Collector(folder)
        first, kept = local_agent(folder, "first", collector)
        with first:
            wait_stored(kept, 5)
            first.stop()
            shutil.copytree(first.spool, folder + "/copy")
            copied = len(spool(folder + "/copy"))
            collector.start()
            first.start()
            wait_stored(kept, 3)
            wait_sent(first)
            first.stop()
            shutil.rmtree(first.spool)
            first.start()
            wait_stored(kept, 3)
            wait_sent(first)
            first.stop()
            shutil.rmtree(first.spool)
            shutil.copytree(folder + "/copy", first.spool)
            first.start()
            wait_stored(kept, 3)
            wait_sent(first)
            second, also = local_agent(folder, "second", collector)
            with second:
                wait_stored(also, 4)
                wait_sent(first)
                wait_sent(second)
                second.stop()
                first.stop()
        collector.stop()
        store, rest = Stored(collector.store), {k for a in (first, second) for b in spool(a.spool) for k in keys_of(b)}
        spooled = {**kept.read().windows, **also.read().windows}
        check_equal(len(spooled), len(kept.windows) + len(also.windows), "windows of two agents with one name")
        check_equal(sorted(set(spooled) - store.windows - rest), [], "windows that are nowhere")
        check_equal(sorted(store.windows - set(spooled)), [], "windows that nobody spooled")
        check_equal(len({k.instance for k in store.windows}), 5, "starts in the store")
        check_equal(store.lost, set(), "lost")
        n = collector.counters()
        check_equal(n['batches_total{result="stored"}'], len(store.windows), "batches stored")
        check(n['batches_total{result="duplicate"}'] >= copied, "the %d of the copy are duplicates: %s" % (copied, n))
        print("   %d windows of %d starts, %d copies sent again" % (len(store.windows), 5, copied))


def wal_events(lines):
    """write, sync and answer, in the order in which they were done, of a collector under strace."""
    pending = set()
    for line in lines:
        thread, _, call = line.split(None, 2)
        if re.match(r'send\w*\(\d+\S*, "\\0\\26BLKP', call):
            yield "answer"
        elif call.startswith("pwrite64(") and "-wal" in call:
            yield "write"
        elif re.match(r"f(data)?sync\(\d+<[^>]*-wal", call) and "<unfinished" in call:
            pending.add(thread)
        elif re.match(r"f(data)?sync\(\d+<[^>]*-wal", call) and call.endswith("= 0"):
            yield "sync"
        elif re.match(r"<\.\.\. f(data)?sync resumed>.*= 0", call) and thread in pending:
            pending.remove(thread)
            yield "sync"


def synced_then_answered():
    """Each answer to an agent has its own write and sync of the store's log between it and the answer before."""
    if not shutil.which("strace"):
        testing.skip("strace is not installed")
    with scratch() as folder:
        trace = folder + "/trace"
        wrapper = ["strace", "-f", "-y", "-ttt", "-s", "16", "-o", trace, "-e", "trace=fdatasync,fsync,pwrite64,sendto"]
        with Collector(folder, wrapper=wrapper) as collector:
            with open(trace) as f:
                f.seek(0, 2)
                mark = f.tell()
            agent, kept = local_agent(folder, "agent", collector)
            with agent:
                wait_stored(kept, 12)
                wait_sent(agent)
                agent.stop()
            collector.stop()
        with open(trace) as f:
            f.seek(mark)
            events = list(wal_events(f.read().splitlines()))
        answers, together, since = 0, 0, []
        for event in events:
            if event != "answer":
                since.append(event)
                continue
            answers += 1
            if not since:  # of the same transaction as the one before
                together += 1
                continue
            check("sync" in since[since.index("write"):] if "write" in since else False,
                  "answer %d has %s before it" % (answers, since))
            since = []
        check(answers >= 12, "%d answers" % answers)
        check(together <= 3, "%d of %d answers have no sync of their own" % (together, answers))
        print("   %d answers, %d of them with another one's sync, %d syncs" % (answers, together, events.count("sync")))


testing.main(soak, look_alikes, synced_then_answered)
