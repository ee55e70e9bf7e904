#!/usr/bin/env python3
# test: timeout=300
# SPDX-License-Identifier: Apache-2.0
"""The daemon of a node with real I/O: windows, services, labels, exclude, signals, its spool after kill -9 and on a full
disk, and that it runs with the privileges of its unit."""
import os
import re
import signal
import subprocess
import time

from lib import blkprof, devices, testing
from lib.agent import GAP, WINDOW, Agent
from lib.collector import Collector, keygen
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS, READ_BYTES, WRITE_BYTES
from lib.testing import check, check_between, check_equal, wait_for

SECOND = 10 ** 9
WRITER = "dd-%d" % os.getpid()  # other programs of this machine write too
UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "blkprof-agent.service")


def write_direct(path, blocks=8, size=65536, prefix=()):
    link = os.path.join(os.path.dirname(path), WRITER)
    if not os.path.exists(link):
        os.symlink("/bin/dd", link)
    subprocess.run([*prefix, link, "if=/dev/zero", "of=" + path, "bs=%d" % size, "count=%d" % blocks, "oflag=direct"],
                   stderr=subprocess.DEVNULL, check=True)


def of_process(batches, name, kind=OPS, service=None):
    """Total of the samples whose root frame is the process, in all batches (and one service)."""
    return sum(p.select(root=name).total(kind) for b in batches for s, p in b.profiles.items() if service in (None, s))


def windows_add_up():
    """30 windows of a second: aligned, without a gap, and their sums are exactly what the load did."""
    with testing.scratch() as folder, devices.zram() as disk, Agent(folder) as agent:
        args = ioload_args(disk, "write_wal:aio-write:count=3001,rate=101,depth=4", "read_index:pread:count=2503,rate=83",
                           extra=("--parallel",))
        with Load(args) as load:
            load.start()
            truth = by_function(load.truth())
        agent.wait_windows(30)
        took = agent.stop()
        batches = agent.batches()
        print("   %d windows; the agent ended %.2f s after SIGTERM" % (len(batches), took))
        for name, op, kind in (("write_wal", "write", WRITE_BYTES), ("read_index", "read", READ_BYTES)):
            parts = [p.select(device=os.path.basename(disk), op=op) for b in batches for p in b.profiles.values()]
            check_equal(sum(p.total(OPS) for p in parts), truth[name]["calls"], name + " operations")
            check_equal(sum(p.total(kind) for p in parts), truth[name]["bytes"], name + " bytes")
            # The first moments of a program, until its unwind tables are there, may lack the function.
            named = sum(p.select(frame=name).total(OPS) for p in parts)
            check(named > 0.97 * truth[name]["calls"], "%s has a name in %d of %d" % (name, named, truth[name]["calls"]))
        check_equal([b.sequence for b in batches], list(range(1, len(batches) + 1)), "sequence numbers")
        check_equal(len({b.instance for b in batches}), 1, "instances")
        for a, b in zip(batches, batches[1:]):
            check_equal(b.start - a.end, 0, "gap between two windows")
        late = sorted(b.end % SECOND for b in batches[:-1])
        check(late[len(late) // 2] < 0.3 * SECOND, "half of the windows end later than 0.3 s: %r" % late)


def _unit_cgroup():
    """A cgroup that looks like a unit's, in the hierarchy that names services here."""
    for base in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
        if os.path.exists(base + "/cgroup.procs"):
            path = base + "/blkprof-e2e-%d.service" % os.getpid()
            os.mkdir(path)
            return path
    testing.skip("no cgroup file system")


def services_labels_exclude():
    with testing.scratch() as folder:
        group = _unit_cgroup()
        try:
            inside = ["sh", "-c", "echo $$ > %s/cgroup.procs; exec \"$@\"" % group, "sh"]
            more = "[labels]\nzone = eu-west\nrack.row = 7\n"
            with Agent(folder, agent=("exclude = keptout",), more=more) as agent:
                write_direct(folder + "/a", 8)
                write_direct(folder + "/b", 16, prefix=inside)
                os.symlink("/bin/dd", folder + "/keptout")
                subprocess.run([folder + "/keptout", "if=/dev/zero", "of=" + folder + "/c", "bs=64k", "count=32", "oflag=direct"],
                               stderr=subprocess.DEVNULL, check=True)
                wait_for(lambda: agent.metrics()["blkprof_agent_filtered_operations_total"] >= 32,
                         "excluded operations to be counted", 20)
                # The cgroup is kept out from now on; the window before ends with its own probes.
                agent.configure(("exclude = keptout", "exclude = " + group), more)
                agent.signal(signal.SIGHUP)
                agent.hears("was read again")
                write_direct(folder + "/d", 64, prefix=inside)
                agent.stop()
            batches = agent.batches()
            unit = os.path.basename(group)
            check_equal(of_process(batches, WRITER, WRITE_BYTES, WRITER), 8 * 65536, "bytes of service dd")
            check_equal(of_process(batches, WRITER, WRITE_BYTES, unit), 16 * 65536, "bytes of service " + unit)
            check_equal(of_process(batches, "keptout"), 0, "operations of what is excluded by name")
            for b in batches:
                check_equal((b.node, b.labels), ("test-node", {"zone": "eu-west", "rack.row": "7"}), "node and labels")
                for service, p in b.profiles.items():
                    check_equal(p.mappings[min(p.mappings)]["file"], "[service %s]" % service, "name of the profile")
        finally:
            wait_for(lambda: _removed(group), "the cgroup to be empty")


def _removed(group):
    try:
        os.rmdir(group)
    except OSError:
        return not os.path.exists(group)
    return True


def reload():
    """An invalid file changes nothing and says why; a valid one is taken over without losing what was counted."""
    with testing.scratch() as folder, Agent(folder, window="30s", notify=True) as agent:
        check_equal(agent.socket.recv(4096), b"READY=1", "notification")
        write_direct(folder + "/a", 4)
        agent.configure(("widnow = 1s",))
        agent.signal(signal.SIGHUP)
        agent.hears("agent.conf:4: unknown key 'widnow' in [agent]; did you mean 'window'?")
        agent.hears("the old one stays in force")
        agent.configure((), "[labels]\nzone = two\n")
        agent.signal(signal.SIGHUP)
        agent.hears("was read again")
        write_direct(folder + "/b", 4)
        agent.stop()
        heard = []
        while b"STOPPING=1" not in heard:
            heard.append(agent.socket.recv(4096))
        check(any(h.startswith(b"RELOADING=1") for h in heard), "no notification of the reload: %r" % heard)
        check(b"WATCHDOG=1" in heard, "no sign of life: %r" % heard)
        batches = agent.batches()
        check_equal(of_process(batches, WRITER, WRITE_BYTES), 8 * 65536, "bytes before and after")
        check_equal(batches[-1].labels, {"zone": "two"}, "labels of the last window")


def new_key():
    """A key that is another one in the same file is taken over by a reload, and what waited for it is sent."""
    def stored():
        return blkprof.run("query", "--list", "windows", "--store", collector.store).stdout.count("\ntest-node ")

    def allow(public):
        with open(collector.allowed, "w") as f:
            f.write("%s test-node\n" % public)

    with testing.scratch() as folder, Collector(folder, curve=True) as collector:
        key = folder + "/node.key"
        allow(keygen(key))
        ship = "[ship]\nendpoint = %s %s\nkey = %s\n" % (collector.address, collector.public, key)
        with Agent(folder, more=ship) as agent:
            wait_for(lambda: stored() > 0, "the first window", 30)
            os.remove(key)
            allow(keygen(key))
            agent.hears("allowed_keys")
            before = stored()
            agent.signal(signal.SIGHUP)
            wait_for(lambda: stored() > before + 1, "windows with the new key", 40)


def killed():
    """kill -9: what was spooled is there and whole; the next start is another instance that counts from 1."""
    with testing.scratch() as folder, Agent(folder) as agent:
        for i in range(3):
            write_direct(folder + "/a", 4)
            agent.wait_windows(2 * i + 2)
            agent.kill()
            agent.start()
        agent.wait_windows(8)
        metrics = agent.metrics()
        agent.stop()
        batches = agent.batches()
        check_equal(len({b.instance for b in batches}), 4, "instances")
        check(metrics["blkprof_agent_spool_recovered_total"] >= 6, "batches of earlier starts: %r" % metrics)
        check_equal(metrics['blkprof_agent_spool_dropped_total{cause="damaged"}'], 0, "damaged files")
        for instance in {b.instance for b in batches}:
            numbers = [b.sequence for b in batches if b.instance == instance]
            check_equal(numbers, list(range(1, len(numbers) + 1)), "sequence of one instance")
        check(all(b.kind == WINDOW for b in batches), "a gap where nothing was dropped")


def full_disk():
    """The spool's disk is full: the agent goes on, and what was dropped is a gap; with room again it is as before."""
    with testing.scratch() as folder, devices.small_fs(folder, 8) as (point, _):
        filler = os.path.join(point, "filler")
        with Agent(folder, spool_folder=os.path.join(point, "spool"), max_size="4MiB") as agent:
            agent.wait_windows(2)
            with open(filler, "wb") as f:
                try:
                    while True:
                        f.write(bytes(4096))
                        f.flush()
                except OSError:
                    pass
            wait_for(lambda: agent.metrics()["blkprof_agent_spool_write_errors_total"] > 0, "a write to fail", 60)
            wait_for(lambda: agent.metrics()['blkprof_agent_spool_dropped_total{cause="spool_full"}'] > 1, "drops", 60)
            check_equal(agent.process.poll(), None, "status of the agent")
            os.unlink(filler)
            have = max(b.sequence for b in agent.batches())
            wait_for(lambda: any(b.kind == WINDOW and b.sequence > have + 1 for b in agent.batches()), "new windows", 60)
            agent.stop()
            batches = agent.batches()
        covered = set()
        for b in batches:
            covered |= set(range(b.gap_first if b.kind == GAP else b.sequence, b.sequence + 1))
        check(any(b.kind == GAP for b in batches), "no gap")
        check_equal(sorted(covered), list(range(1, max(covered) + 1)), "numbers of windows and gaps together")


# Maps the files of its arguments as programs are mapped, then writes past the page cache.
MAPS_MUCH = """
import mmap, os, sys, time
code = [mmap.mmap(os.open(name, os.O_RDONLY), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC) for name in sys.argv[2:]]
fd, page = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600), mmap.mmap(-1, 65536)
for i in range(40):
    os.pwrite(fd, page, i << 16)
    time.sleep(0.05)
"""


def little_memory():
    """Programs whose unwind tables have no room in the budget: the agent goes on, and ends when it is told to."""
    folder = "/usr/lib/x86_64-linux-gnu"
    files = {os.path.realpath(os.path.join(folder, name)) for name in os.listdir(folder) if ".so" in name}
    large = sorted(filter(os.path.isfile, files), key=os.path.getsize)[-40:]
    with testing.scratch() as scratch, Agent(scratch, agent=("memory = 16MiB",)) as agent:
        before = len(agent.batches())
        for _ in range(2):
            subprocess.run(["python3", "-c", MAPS_MUCH, os.path.join(scratch, "data"), *large], check=True, timeout=120)
        agent.wait_windows(before + 2)
        took = agent.stop()
        check(took < 20, "it ended after %.1f s" % took)


def unit_privileges():
    """Under the capabilities of the unit, and no others, it starts and names what it sees."""
    if subprocess.run(["which", "setpriv"], stdout=subprocess.DEVNULL).returncode:
        testing.skip("setpriv (util-linux) is not installed")
    with open(UNIT) as f:
        names = re.search(r"^CapabilityBoundingSet=(.*)$", f.read(), re.M).group(1).split()
    caps = ",".join("+" + n[4:].lower() for n in names)
    prefix = ["setpriv", "--no-new-privs", "--bounding-set", "-all," + caps, "--inh-caps", "-all"]
    with testing.scratch() as folder, Agent(folder, prefix=prefix) as agent:
        with open("/proc/%d/status" % agent.process.pid) as f:
            effective = int(re.search(r"^CapEff:\s*(\S+)", f.read(), re.M).group(1), 16)
        check_between(bin(effective).count("1"), 1, len(names), "capabilities in force")
        subprocess.run(["chmod", "0711", folder], check=True)
        os.mkdir(folder + "/nobody")
        os.chown(folder + "/nobody", 65534, 65534)
        write_direct(folder + "/nobody/a", 8, prefix=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
        agent.stop()
        samples = [s for b in agent.batches() for p in b.profiles.values() for s in p.select(root=WRITER)]
        check_equal(sum(s[WRITE_BYTES] for s in samples), 8 * 65536, "bytes of another user's process")
        check(any("write" in f for s in samples for f in s.frames), "no names: %r" % [s.frames for s in samples][:2])


def refuses():
    """What cannot work is one line with what to do, and the status says so."""
    with testing.scratch() as folder:
        path = folder + "/agent.conf"
        for text, message in (("[agent]\nwindow = 1\n[ship]\nendpoint = tcp://10.0.0.1:6062\n", "insecure = yes"),
                              ("[agent]\nbackend = magic\n", "there are auto, fentry, kprobe and tracepoint"),
                              ("[spool]\ndirectory = /nonexistent/spool\n", "cannot make the spool /nonexistent/spool")):
            with open(path, "w") as f:
                f.write(text if "[spool]" in text else text + "[spool]\ndirectory = %s/spool\n" % folder)
            result = devices.subprocess.run([os.environ.get("BLKPROF") or devices.build() + "/blkprof", "agent", "-c", path],
                                            stderr=subprocess.PIPE, text=True, timeout=60)
            check_equal(result.returncode, 1, "status")
            check(message in result.stderr, "%r is not in %r" % (message, result.stderr))


testing.main(windows_add_up, services_labels_exclude, reload, new_key, killed, full_disk, little_memory, unit_privileges, refuses)
