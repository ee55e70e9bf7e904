# SPDX-License-Identifier: Apache-2.0
"""Reads a gzipped perftools.profiles.Profile by itself, so that a test does not trust the code that wrote it."""
import collections
import gzip
import re

OPS, TIME, READ_BYTES, WRITE_BYTES, CPU = "io_ops", "io_time", "read_bytes", "write_bytes", "cpu"


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint too long")


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data):
    """(number, value) of a message: an int for wire type 0, bytes for 2."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            if len(value) != length:
                raise ValueError("field %d is cut off" % number)
        else:
            raise ValueError("field %d has wire type %d" % (number, kind))
        yield number, value


def packed(values):
    """The numbers of a repeated field, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            yield number


def message(data):
    result = collections.defaultdict(list)
    for number, value in fields(data):
        result[number].append(value)
    return result


def one(msg, number, default=0):
    return msg[number][-1] if number in msg else default


class Sample:
    """values: {type: number}; frames: function names, leaf first; labels: {key: text or number}; places: (file, offset in it)
    of the addresses, leaf first, of frames that have one."""

    def __init__(self, values, frames, labels, units, places=()):
        self.values, self.frames, self.labels, self.units, self.places = values, frames, labels, units, places

    def __getitem__(self, name):
        return self.values[name]


class Samples:
    """Some samples of a profile; select() narrows them."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __iter__(self):
        return iter(self.samples)

    def total(self, name):
        return sum(s[name] for s in self.samples)

    def where(self, predicate):
        return Samples([s for s in self.samples if predicate(s)])

    def select(self, frame=None, flat=None, root=None, **labels):
        """frame: anywhere in the stack; flat: the leaf; root: the outermost; labels by their value."""
        return self.where(lambda s: (frame is None or frame in s.frames) and (flat is None or s.frames[:1] == [flat])
                          and (root is None or s.frames[-1:] == [root])
                          and all(s.labels.get(k) == v for k, v in labels.items()))

    def containing(self, text):
        return self.where(lambda s: any(text in f for f in s.frames))

    def by(self, name, key):
        """Totals of type `name` by key: a label's name or a function of the sample."""
        sums = collections.Counter()
        for s in self.samples:
            sums[key(s) if callable(key) else s.labels.get(key)] += s[name]
        return sums

    def functions(self, name):
        """Totals of type `name` of each function anywhere in the stacks, each stack once."""
        sums = collections.Counter()
        for s in self.samples:
            for f in set(s.frames):
                sums[f] += s[name]
        return sums

    def show(self, limit=20):
        rows = sorted(self.samples, key=lambda s: -s.values.get(TIME, 0))[:limit]
        return "\n".join("  %8d ops %12d ns %s %s" % (s[OPS], s[TIME], s.labels, " < ".join(s.frames)) for s in rows)


class Profile(Samples):
    def __init__(self, data):
        if data[:2] != b"\x1f\x8b":
            raise ValueError("not gzipped")
        top = message(gzip.decompress(data))
        self.strings = [s.decode("utf-8") for s in top[6]]
        if not self.strings or self.strings[0]:
            raise ValueError("the first string is not empty")
        self.types, self.units = self._value_types(top[1])
        period = message(one(top, 11, b""))
        self.period_type = (self.strings[one(period, 1)], self.strings[one(period, 2)])
        self.period = one(top, 12)
        self.time_ns, self.duration_ns = signed(one(top, 9)), signed(one(top, 10))
        self.default_type = self.strings[one(top, 14)]
        self.comments = [self.strings[i] for i in packed(top[13])]
        self.functions_by_id = self._functions(top[5])
        self.mappings = self._mappings(top[3])
        self.places_by_id = {}
        self.locations = self._locations(top[4])
        super().__init__([self._sample(message(s)) for s in top[2]])

    def lost(self):
        """{cause: count} of the losses that the profile tells of."""
        found = {}
        for comment in self.comments:
            m = re.match(r"lost node=\S+ cause=(\w+) count=(\d+) window=\d+ \((.+)\)$", comment)
            if m:
                found[m[1]] = found.get(m[1], 0) + int(m[2])
        return found

    @classmethod
    def read(cls, path):
        with open(path, "rb") as f:
            return cls(f.read())

    def _value_types(self, rows):
        pairs = [message(r) for r in rows]
        names = [self.strings[one(p, 1)] for p in pairs]
        return names, {n: self.strings[one(p, 2)] for n, p in zip(names, pairs)}

    def _functions(self, rows):
        result = {}
        for row in rows:
            f = message(row)
            result[one(f, 1)] = self.strings[one(f, 2)]
        return result

    def _mappings(self, rows):
        result = {}
        for row in rows:
            m = message(row)
            result[one(m, 1)] = {"start": one(m, 2), "limit": one(m, 3), "offset": one(m, 4),
                                 "file": self.strings[one(m, 5)], "build_id": self.strings[one(m, 6)]}
        return result

    def _locations(self, rows):
        result = {}
        for row in rows:
            location = message(row)
            lines = [self.functions_by_id[one(message(line), 1)] for line in location[4]]
            mapping = one(location, 2)
            if mapping and mapping not in self.mappings:
                raise ValueError("a location has no mapping")
            result[one(location, 1)] = lines
            if mapping and one(location, 3):
                m = self.mappings[mapping]
                self.places_by_id[one(location, 1)] = (m["file"], one(location, 3) - m["start"] + m["offset"])
        return result

    def _sample(self, row):
        frames, labels, units, places = [], {}, {}, []
        for location in packed(row[1]):
            frames += self.locations[location]
            if location in self.places_by_id:
                places.append(self.places_by_id[location])
        values = [signed(v) for v in packed(row[2])]
        if len(values) != len(self.types):
            raise ValueError("a sample has %d values for %d types" % (len(values), len(self.types)))
        for text in row[3]:
            label = message(text)
            key = self.strings[one(label, 1)]
            labels[key] = self.strings[one(label, 2)] if 2 in label else signed(one(label, 3))
            units[key] = self.strings[one(label, 4)]
        return Sample(dict(zip(self.types, values)), frames, labels, units, tuple(places))
