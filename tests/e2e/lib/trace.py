# SPDX-License-Identifier: Apache-2.0
"""A Perfetto trace as a viewer understands it: slices, flows, what each thread does. What is not as it should be is in `wrong`.
Run as a program it reads with the protobuf definitions of the `perfetto` package and prints what it found as JSON."""
import collections
import json
import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.protofile import Schema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
RUNNING, RUNNABLE, PREEMPTED, SLEEPING, DISK, BLOCKED, STOPPED, DEAD = (
    "running", "runnable", "preempted", "sleeping", "disk", "blocked", "stopped", "dead")
STATES = {0: RUNNABLE, 1: SLEEPING, 2: BLOCKED, 4: STOPPED, 8: STOPPED, 0x10: DEAD, 0x20: DEAD, 0x100: PREEMPTED}
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4

Slice = collections.namedtuple("Slice", "track name category start end args flows ends stack")
State = collections.namedtuple("State", "tid state start end cpu waker")


def own_reader(path):
    with open(path, "rb") as f:
        return Schema(os.path.join(ROOT, "proto/perfetto.proto")).read("Trace", f.read())


def perfetto_reader(path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    trace = perfetto_trace_pb2.Trace()
    with open(path, "rb") as f:
        trace.ParseFromString(f.read())
    return trace


class Interned:
    def __init__(self):
        self.categories, self.names, self.annotations, self.functions, self.frames, self.stacks = ({} for _ in range(6))

    def add(self, data):
        for table, entries, value in ((self.categories, data.event_categories, "name"), (self.names, data.event_names, "name"),
                                      (self.annotations, data.debug_annotation_names, "name"),
                                      (self.functions, data.function_names, "str"), (self.frames, data.frames, "function_name_id"),
                                      (self.stacks, data.callstacks, "frame_ids")):
            for e in entries:
                table[e.iid] = getattr(e, value)

    def stack(self, iid):
        return [self.functions[self.frames[f]].decode() for f in self.stacks[iid]] if iid else []


class Trace:
    def __init__(self, trace):
        self.wrong, self.slices, self.instants, self.counters = [], [], [], []
        self.tracks, self.processes, self.threads = {}, {}, {}
        self.states, self.clocks, self.release, self.start, self.end = [], {}, "", None, 0
        self.open, self.on_cpu, self.thread, self.io_wait = {}, {}, {}, {}
        self.packets = len(trace.packet)
        interned = None
        for i, p in enumerate(trace.packet):
            if p.trusted_packet_sequence_id != 1:
                self.complain("packet %d has no sequence" % i)
            if p.sequence_flags & 1:
                interned = Interned()
            if p.HasField("interned_data"):
                interned.add(p.interned_data)
            if p.HasField("timestamp") and not self.is_request(p):
                self.at(p.timestamp)
            self.packet(p, interned)
        self.finish()

    def complain(self, text):
        if len(self.wrong) < 100:
            self.wrong.append(text)

    def at(self, time):
        if self.start is None:
            self.start = time
        if time < self.end:
            self.complain("time goes back from %d to %d" % (self.end, time))
        self.end = max(self.end, time)

    def is_request(self, p):
        """Those are written when they are over."""
        track = self.tracks.get(p.track_event.track_uuid) if p.HasField("track_event") else None
        return bool(track and track["parent"] and self.tracks[track["parent"]]["tid"])

    def packet(self, p, interned):
        if p.HasField("clock_snapshot"):
            self.clocks = {c.clock_id: c.timestamp for c in p.clock_snapshot.clocks}
        if p.HasField("system_info"):
            self.release = p.system_info.utsname.release
        if p.HasField("track_descriptor"):
            self.descriptor(p.track_descriptor)
        if p.HasField("track_event"):
            self.event(p.timestamp, p.track_event, interned)
        if p.HasField("ftrace_events"):
            for e in p.ftrace_events.event:
                self.at(e.timestamp)
                self.ftrace(p.ftrace_events.cpu, e)

    # ---- tracks

    def descriptor(self, d):
        if d.HasField("process"):
            self.processes[d.process.pid] = d.process.process_name
        if d.HasField("thread"):
            self.threads[d.thread.tid] = (d.thread.pid, d.thread.thread_name)
            if not d.thread.tid:
                self.complain("a thread 0")
        if d.HasField("parent_uuid") and d.parent_uuid not in self.tracks:
            self.complain("track %d is below one that is not there" % d.uuid)
        self.tracks[d.uuid] = {"name": d.name, "parent": d.parent_uuid, "tid": d.thread.tid if d.HasField("thread") else None,
                               "counter": d.HasField("counter")}

    def event(self, time, e, interned):
        if e.track_uuid not in self.tracks:
            self.complain("an event on track %d, which is not there" % e.track_uuid)
            return
        args = {interned.annotations[a.name_iid]: a.string_value if a.HasField("string_value") else a.uint_value
                for a in e.debug_annotations}
        name = interned.names[e.name_iid] if e.name_iid else ""
        category = interned.categories[e.category_iids[0]] if len(e.category_iids) else ""
        new = Slice(e.track_uuid, name, category, time, time, args, list(e.flow_ids), list(e.terminating_flow_ids),
                    interned.stack(e.callstack_iid))
        stack = self.open.setdefault(e.track_uuid, [])
        if e.type == BEGIN:
            stack.append(new)
        elif e.type == INSTANT:
            self.instants.append(new)
        elif e.type == COUNTER:
            self.counters.append((e.track_uuid, time, e.counter_value))
        elif e.type == END and stack:
            begun = stack.pop()
            self.slices.append(begun._replace(end=time, args={**begun.args, **args}))
        else:
            self.complain("an end of nothing on track %d" % e.track_uuid)

    # ---- threads

    def enter(self, tid, state, time, cpu=None, waker=None):
        had = self.thread.get(tid)
        if had:
            self.states.append(State(tid, had[0], had[1], time, had[2], had[3]))
        self.thread[tid] = (state, time, cpu, waker)

    def ftrace(self, cpu, e):
        if not e.HasField("pid"):
            self.complain("an event of no thread")
        if e.HasField("sched_switch"):
            self.switch(cpu, e.timestamp, e.sched_switch)
        elif e.HasField("sched_blocked_reason"):
            self.io_wait[e.sched_blocked_reason.pid] = e.sched_blocked_reason.io_wait
        elif e.HasField("sched_waking"):
            self.waking(cpu, e.timestamp, e.pid, e.sched_waking.pid)

    def switch(self, cpu, time, s):
        if self.on_cpu.get(cpu, 0) != s.prev_pid:
            self.complain("%d leaves CPU %d, where %d is" % (s.prev_pid, cpu, self.on_cpu.get(cpu, 0)))
        for tid, names in ((s.prev_pid, ("prev_pid", "prev_state")), (s.next_pid, ("next_pid",))):
            for name in names:
                if not s.HasField(name):
                    self.complain("a switch without %s" % name)
        self.on_cpu[cpu] = s.next_pid
        if s.prev_pid:
            if s.prev_pid in self.thread and self.thread[s.prev_pid][0] != RUNNING:
                self.complain("thread %d leaves and did not run" % s.prev_pid)
            if s.prev_state not in STATES:
                self.complain("a state %d" % s.prev_state)
            self.enter(s.prev_pid, STATES.get(s.prev_state, "?"), time)
        if s.next_pid:
            if self.thread.get(s.next_pid, ("",))[0] == RUNNING:
                self.complain("thread %d is on two CPUs" % s.next_pid)
            self.enter(s.next_pid, RUNNING, time, cpu)

    def waking(self, cpu, time, waker, tid):
        state = self.thread.get(tid, (None,))[0]
        if state in (RUNNING, RUNNABLE, PREEMPTED):
            self.complain("thread %d is woken and %s" % (tid, state))
        if state == BLOCKED and self.io_wait.pop(tid, 0):
            self.thread[tid] = (DISK, *self.thread[tid][1:])
        self.enter(tid, RUNNABLE, time, cpu, waker)

    # ---- the whole

    def finish(self):
        for track, stack in self.open.items():
            for s in stack:
                self.complain("slice %s on track %d is not closed" % (s.name, track))
        for cpu, tid in self.on_cpu.items():
            if tid:
                self.complain("thread %d is still on CPU %d" % (tid, cpu))
        for tid in list(self.thread):
            self.enter(tid, "", self.end)
        begun = collections.Counter(f for s in self.slices + self.instants for f in s.flows)
        ended = collections.Counter(f for s in self.slices + self.instants for f in s.ends)
        if begun != ended or any(n != 1 for n in begun.values()):
            self.complain("flows without both ends: %s" % list((begun - ended) + (ended - begun))[:10])
        self.flows = set(begun)

    def tid(self, slice_):
        return self.tracks[slice_.track]["tid"]

    def track_slices(self, category):
        return [s for s in self.slices if s.category == category]

    def total(self, tid, *states):
        return sum(s.end - s.start for s in self.states if s.tid == tid and s.state in states)

    def totals(self):
        result = collections.defaultdict(lambda: collections.Counter())
        for s in self.states:
            result[s.tid][s.state] += s.end - s.start
        return {tid: dict(c) for tid, c in result.items()}

    def summary(self):
        """What two readers must agree on."""
        return {"packets": self.packets, "wrong": self.wrong, "slices": [list(s) for s in self.slices], "threads": self.threads,
                "instants": [list(s) for s in self.instants], "counters": self.counters, "states": [list(s) for s in self.states],
                "tracks": self.tracks, "clocks": self.clocks, "release": self.release}


def read(path):
    return Trace(own_reader(path))


if __name__ == "__main__":
    json.dump(Trace(perfetto_reader(sys.argv[1])).summary(), sys.stdout)
