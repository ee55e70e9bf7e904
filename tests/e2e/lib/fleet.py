# SPDX-License-Identifier: Apache-2.0
"""What agents spooled and heard to be stored (load/keepspool keeps a copy of both) against what stores have; clocks that step."""
import collections
import os
import sqlite3
import struct

from . import blkprof
from .agent import GAP, WINDOW, Batch
from .devices import program
from .pprof import OPS, READ_BYTES, TIME, WRITE_BYTES, Profile
from .testing import check, check_equal

KINDS = (OPS, TIME, READ_BYTES, WRITE_BYTES)
Key = collections.namedtuple("Key", "node instance sequence")


class Clock:
    """A wall clock for one process (load/keepclock), right to begin with."""

    def __init__(self, path):
        self.path = path
        self.step(0)

    def environment(self):
        return {"LD_PRELOAD": program("keepspool.so"), "KEEP_CLOCK": self.path}

    def step(self, seconds):
        """From now on it is wrong by so much."""
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:
            f.write(struct.pack("<q", int(seconds * 1e9)))


class Spooled:
    """Everything that one agent ever made durable, over all its starts."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.acks = folder + ".acks"
        self.windows, self.gaps, self.unsure, self.acknowledged = {}, [], set(), collections.Counter()

    def environment(self):
        return {"LD_PRELOAD": program("keepspool.so"), "KEEP_SPOOL": self.folder, "KEEP_ACKS": self.acks}

    def read(self):
        self.windows, self.gaps, self.unsure, self.acknowledged = {}, [], set(), collections.Counter()
        if os.path.exists(self.acks):
            with open(self.acks) as f:
                for address, instance, sequence, answer in map(str.split, f):
                    self.acknowledged[address, instance, int(sequence), answer] += 1
        for name in sorted(os.listdir(self.folder)):
            with open(os.path.join(self.folder, name), "rb") as f:
                data = f.read()
            if name.endswith(".tmp"):
                parts = name.split(".")[0].split("-")
                self.unsure.add((parts[1], int(parts[2], 16)))
            self._add(name, data)
        return self

    def _add(self, name, data):
        try:
            b = Batch(data)
        except (ValueError, IndexError):
            check(name.endswith(".tmp"), "%s is damaged" % name)
            return
        if b.kind == WINDOW:
            self.windows[Key(b.node, b.instance, b.sequence)] = totals(b)
        elif b.kind == GAP:
            self.gaps.append(b)


def totals(batch):
    return {k: sum(p.total(k) for p in batch.profiles.values()) for k in KINDS}


def add_up(windows):
    windows = list(windows)
    return {k: sum(w[k] for w in windows) for k in KINDS}


class Stored:
    """What one store has: windows by key, gaps as ranges."""

    def __init__(self, folder):
        self.folder = folder
        name = next(n for n in os.listdir(folder) if n.endswith(".db"))
        with sqlite3.connect("file:%s?mode=ro" % os.path.join(folder, name), uri=True) as db:
            check_equal(db.execute("PRAGMA integrity_check").fetchone()[0], "ok", "integrity of " + folder)
            rows = db.execute("SELECT n.name, hex(a.instance), s.sequence FROM spans s JOIN agents a ON a.id = s.agent "
                              "JOIN nodes n ON n.id = s.node WHERE s.level = 0").fetchall()
            gaps = db.execute("SELECT n.name, hex(a.instance), g.first, g.last FROM gaps g JOIN agents a ON a.id = g.agent "
                              "JOIN nodes n ON n.id = a.node").fetchall()
        keys = [Key(n, i.lower(), s) for n, i, s in rows]
        self.windows = set(keys)
        check_equal(len(keys) - len(self.windows), 0, "windows that are twice in " + folder)
        lost = [Key(n, i.lower(), s) for n, i, first, last in gaps for s in range(first, last + 1)]
        self.lost = set(lost)
        check_equal(len(lost) - len(self.lost), 0, "batches that are lost twice in " + folder)
        check_equal(len(self.lost & self.windows), 0, "batches that are both stored and lost in " + folder)
        check_equal(blkprof.run("collector", "--check", folder).returncode, 0, "collector --check " + folder)


def query(stores, node, out, begin, end):
    """Totals of a node, merged by `blkprof query`, and the text that it prints."""
    args = [a for s in stores for a in ("--store", s.folder)]
    result = blkprof.run("query", *args, "--node", node, "--from", str(begin), "--to", str(end), "-o", out)
    if result.returncode:
        raise RuntimeError("query ended with %d: %s" % (result.returncode, result.stderr))
    profile = Profile.read(out)
    return {k: profile.total(k) for k in KINDS}, profile.comments
