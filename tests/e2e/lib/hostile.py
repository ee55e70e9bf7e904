# SPDX-License-Identifier: Apache-2.0
"""Kinds of hostile profiles: (name, what it is, maker of the bytes or of a list of them, what `top` must say).

What it must say is a part of its error line, or None when it must show the profile: then `total` is in its output."""
import gzip
import struct
import zlib


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def tag(field, wire):
    return varint(field << 3 | wire)


def num(field, value):
    return tag(field, 0) + varint(value)


def msg(field, data):
    return tag(field, 2) + varint(len(data)) + data


def packed(field, values):
    return msg(field, b"".join(map(varint, values)))


STRINGS = ["", "ops", "count", "main", "read", "/bin/app", "key", "value"]


def strings(texts=STRINGS):
    return b"".join(msg(6, t if isinstance(t, bytes) else t.encode()) for t in texts)


TYPE = msg(1, num(1, 1) + num(2, 2))
MAPPING = msg(3, num(1, 1) + num(2, 0x1000) + num(3, 0x9000) + num(5, 5) + num(7, 1))
LOCATIONS = msg(4, num(1, 1) + num(2, 1) + num(3, 0x1234) + msg(4, num(1, 1) + num(2, 7))) + \
    msg(4, num(1, 2) + num(2, 1) + num(3, 0x2345) + msg(4, num(1, 2)))
FUNCTIONS = msg(5, num(1, 1) + num(2, 4)) + msg(5, num(1, 2) + num(2, 3))
SAMPLE = msg(2, packed(1, [1, 2]) + packed(2, [5]))
TIMES = num(9, 1700000000000000000) + num(10, 10**9)
TABLES = TYPE + MAPPING + LOCATIONS + FUNCTIONS
GOOD = TABLES + SAMPLE + strings() + TIMES


def with_sample(body):
    return TABLES + msg(2, body) + strings()


def with_function(body, extra=()):
    """A profile whose function 1 is `body`."""
    return TYPE + MAPPING + LOCATIONS + msg(5, body) + msg(5, num(1, 2) + num(2, 3)) + SAMPLE + strings(STRINGS + list(extra))


def with_location(body):
    return TYPE + MAPPING + msg(4, body) + msg(4, num(1, 2)) + FUNCTIONS + SAMPLE + strings()


def named(name):
    return with_function(num(1, 1) + num(2, len(STRINGS)), [name])


def gz(data, level=6):
    return gzip.compress(data, level, mtime=0)


def bomb(head, unit, count):
    """gzip of head and count times unit, without holding it."""
    c = zlib.compressobj(9, zlib.DEFLATED, 31)
    out = [c.compress(head)]
    block = unit * (max(1, (1 << 20) // len(unit)))
    per = len(block) // len(unit)
    while count > 0:
        out.append(c.compress(block if count >= per else unit * count))
        count -= per
    out.append(c.flush())
    return b"".join(out)


def deep(depth, samples=1):
    return TYPE + LOCATIONS + FUNCTIONS + b"".join(msg(2, packed(1, [1] * depth + [2]) + packed(2, [5])) for _ in range(samples)) + \
        strings()


def wide_location(lines, refs, samples):
    line = msg(4, num(1, 1))
    return TYPE + msg(4, num(1, 1) + line * lines) + FUNCTIONS + \
        msg(2, packed(1, [1] * refs) + packed(2, [1])) * samples + strings()


def many_types(n):
    return b"".join(msg(1, num(1, 1 + i) + num(2, 0)) for i in range(n)) + strings([""] + ["t%d" % i for i in range(n)]) + \
        msg(2, packed(2, [1] * n))


def sparse_ids():
    big = [(1 << 64) - 1, 1 << 63, 7]
    return TYPE + b"".join(msg(3, num(1, i) + num(5, 5)) for i in big) + \
        b"".join(msg(4, num(1, i) + num(2, i) + msg(4, num(1, i))) for i in big) + \
        b"".join(msg(5, num(1, i) + num(2, 3)) for i in big) + msg(2, packed(1, big) + packed(2, [5])) + strings()


def truncated(data):
    return [data[:i] for i in range(1, len(data))]


def flipped(data):
    """Every byte of it, once as 0xff, once as 0x80, once with a bit flipped."""
    out = []
    for i in range(len(data)):
        for b in (0xFF, 0x80, data[i] ^ 1, data[i] ^ 0x10):
            out.append(data[:i] + bytes([b]) + data[i + 1:])
    return out


def crc_broken():
    data = bytearray(gz(GOOD))
    data[-6] ^= 0x55
    return bytes(data)


def wire(number, kind, body=b""):
    return GOOD + varint(number << 3 | kind) + body


ANSWER = None
EITHER = ""  # an error or an answer: only limits and signals are checked

KINDS = [
    # -- nothing there
    ("empty", "an empty file", lambda: b"", "it is empty"),
    ("empty-gzip", "gzip of nothing", lambda: gz(b""), "gzip with nothing in it"),
    ("one-zero", "one byte 0", lambda: b"\0", "byte 0"),
    ("zeros-1m", "a megabyte of zeros", lambda: b"\0" * (1 << 20), "byte 0"),
    ("ones-1m", "a megabyte of 0xff", lambda: b"\xff" * (1 << 20), "byte 0"),
    ("newline", "one line end", lambda: b"\n", "byte 0"),
    ("strings-only", "a string table and nothing else", strings, "no sample types"),
    ("no-strings", "no string table", lambda: TABLES + SAMPLE, "no string table"),
    ("no-types", "samples without sample types", lambda: MAPPING + LOCATIONS + FUNCTIONS + SAMPLE + strings(), "no sample types"),
    ("no-samples", "a profile without samples", lambda: TABLES + strings(), ANSWER),
    ("zero-samples", "samples whose values are all 0", lambda: with_sample(packed(2, [0])), ANSWER),
    # -- something else
    ("text", "a text file", lambda: b"hello, this is a text file\n", "it is text"),
    ("heap-text", "a legacy heap profile of text", lambda: b"heap profile: 1: 2 [3: 4] @ heap/1048576\n", "legacy"),
    ("heap-v2", "tcmalloc's heap_v2 text", lambda: b"heap_v2/524288\n  t*: 1: 2 [0: 0]\n", "legacy"),
    ("growth-text", "a legacy growth profile", lambda: b"--- growthz 1\n", "legacy"),
    ("contention-text", "a legacy contention profile", lambda: b"--- contentionz 1 ---\ncycles/second=1\n", "legacy"),
    ("mutex-text", "a legacy mutex profile", lambda: b"--- mutex:\ncycles/second=1\n", "legacy"),
    ("thread-text", "a legacy thread profile", lambda: b"--- threadz 1 ---\n", "legacy"),
    ("goroutine-text", "a goroutine dump", lambda: b"goroutine profile: total 5\n", "legacy"),
    ("legacy-cpu-64", "a legacy CPU profile, 64 bits", lambda: struct.pack("<6Q", 0, 3, 0, 10000, 0, 1), "legacy CPU"),
    ("legacy-cpu-32", "a legacy CPU profile, 32 bits", lambda: struct.pack("<6I", 0, 3, 0, 10000, 0, 1), "legacy CPU"),
    ("legacy-cpu-be", "a legacy CPU profile, big endian", lambda: struct.pack(">6Q", 0, 3, 0, 10000, 0, 1), "legacy CPU"),
    ("legacy-gz", "a gzipped legacy profile", lambda: gz(b"heap profile: 1: 2 [3: 4] @ heap/1048576\n"), "legacy"),
    ("elf", "an ELF file", lambda: b"\x7fELF\2\1\1" + b"\0" * 57, "ELF"),
    ("perf-data", "a perf.data file", lambda: b"PERFILE2" + b"\0" * 100, "perf"),
    ("json", "a JSON file", lambda: b'{"nodes":[]}', "JSON"),
    ("html", "a page of a server", lambda: b"<!DOCTYPE html><html>", "HTML"),
    ("zstd", "zstd data", lambda: b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00", "zstd"),
    ("xz", "xz data", lambda: b"\xfd7zXZ\0\0\x04", "xz"),
    ("bzip2", "bzip2 data", lambda: b"BZh91AY&SY", "bzip2"),
    ("zip", "a ZIP archive", lambda: b"PK\3\4\x14\0", "ZIP"),
    ("collapsed", "collapsed stacks", lambda: b"main;read 5\nmain;write 7\n", "it is text"),
    # -- cut off, damaged
    ("truncated-raw", "cut off at every byte", lambda: truncated(GOOD), EITHER),
    ("truncated-gzip", "gzip cut off at every byte", lambda: truncated(gz(GOOD))[2:], "byte"),
    ("flipped", "every byte changed in four ways", lambda: flipped(GOOD), EITHER),
    ("flipped-gzip", "every byte of the gzip changed in four ways", lambda: flipped(gz(GOOD)), EITHER),
    ("crc", "gzip with a wrong checksum", crc_broken, "damaged"),
    ("gzip-length", "gzip with a wrong length", lambda: gz(GOOD)[:-1] + b"\x7f", "damaged"),
    ("gzip-header", "only the header of gzip", lambda: gz(GOOD)[:10], "cut off"),
    ("gzip-method", "an unknown compression method", lambda: b"\x1f\x8b\x07" + gz(GOOD)[3:], "damaged"),
    ("gzip-in-gzip", "gzip within gzip", lambda: gz(gz(GOOD)), "gzip within gzip"),
    ("gzip-trailing", "bytes behind the gzip data", lambda: gz(GOOD) + b"trailing", "follow the gzip data"),
    ("gzip-padding", "zeros behind the gzip data", lambda: gz(GOOD) + b"\0" * 512, ANSWER),
    ("gzip-members", "one profile in two gzip members", lambda: gz(GOOD[:50]) + gz(GOOD[50:]), ANSWER),
    ("gzip-empty-members", "10000 empty gzip members, then a profile", lambda: gz(b"") * 10000 + gz(GOOD), ANSWER),
    ("two-members", "two gzipped profiles one after the other", lambda: gz(GOOD) * 2, "two profiles"),
    ("two-profiles", "two profiles one after the other", lambda: GOOD * 2, "two profiles"),
    ("two-untimed", "two profiles without a time", lambda: (TABLES + SAMPLE + strings()) * 2, "twice"),
    ("raw-trailing", "bytes behind the message", lambda: GOOD + b"\xff\xff\xff", "byte"),
    ("raw-zeros", "zeros behind the message", lambda: GOOD + b"\0" * 16, "not a field number"),
    # -- numbers
    ("varint-10", "a number of ten bytes with the value 2^64-1", lambda: GOOD + tag(100, 0) + b"\xff" * 9 + b"\1", ANSWER),
    ("varint-overflow", "a number that overflows in its tenth byte", lambda: GOOD + tag(100, 0) + b"\xff" * 9 + b"\2", "64 bits"),
    ("varint-11", "a number of eleven bytes", lambda: GOOD + tag(100, 0) + b"\x80" * 10 + b"\0", "64 bits"),
    ("varint-long", "small numbers in more bytes than needed", lambda: with_sample(msg(1, b"\x81\x80\x00\x82\0") + msg(2, b"\x85\x80\0")),
     ANSWER),
    ("varint-cut", "a number cut off in a sample", lambda: with_sample(msg(1, b"\x81") + packed(2, [5])), "cut off"),
    ("tag-overflow", "a tag above 32 bits", lambda: GOOD + varint(1 << 40) + b"\0", "not a field number"),
    ("field-0", "field number 0", lambda: GOOD + b"\0\0", "not a field number"),
    ("length-huge", "a length of 2^63", lambda: GOOD + tag(6, 2) + varint(1 << 63), "byte"),
    ("length-max", "a length of 2^64-1", lambda: GOOD + tag(6, 2) + varint((1 << 64) - 1), "byte"),
    ("length-4g", "a length of 4 GiB in an unknown field", lambda: GOOD + tag(99, 2) + varint(1 << 32), "cut off"),
    ("inner-length", "a label longer than its sample", lambda: with_sample(packed(2, [5]) + tag(3, 2) + varint(50)), "reaches past"),
    ("inner-2", "a line longer than its location", lambda: with_location(num(1, 1) + tag(4, 2) + varint(9) + num(1, 1)), "reaches past"),
    # -- wire types
    ("group", "a group", lambda: wire(20, 3), "wire type 3"),
    ("group-end", "the end of a group", lambda: wire(20, 4), "wire type 4"),
    ("wire-6", "wire type 6", lambda: wire(20, 6), "wire type 6"),
    ("wire-7", "wire type 7", lambda: wire(20, 7), "wire type 7"),
    ("group-in-sample", "a group within a sample", lambda: with_sample(packed(2, [5]) + tag(9, 3)), "wire type 3"),
    ("groups-nested", "a million nested groups", lambda: GOOD + tag(20, 3) * 1000000, "wire type 3"),
    ("unknown-fields", "unknown fields of every wire type", lambda: wire(77, 0, b"\5") + tag(78, 1) + b"8bytes.." + tag(79, 5) +
     b"four" + msg(80, b"text"), ANSWER),
    ("unknown-inside", "unknown fields within a sample", lambda: with_sample(packed(1, [1]) + packed(2, [5]) + num(9, 1) + msg(10, b"x")),
     ANSWER),
    ("unknown-100m", "100 MB of unknown fields", lambda: bomb(GOOD, msg(100, b"x" * 1000), 100000), ANSWER),
    ("sample-number", "a sample that is a number", lambda: GOOD + num(2, 5), "not a message"),
    ("string-number", "a string that is a number", lambda: GOOD + num(6, 5), "not a message"),
    ("id-text", "a location id that is text", lambda: with_location(msg(1, b"1")), "not a number"),
    ("time-fixed", "a time of fixed width", lambda: TABLES + SAMPLE + strings() + tag(9, 1) + b"\0" * 8, "not a number"),
    ("values-fixed", "values of fixed width", lambda: with_sample(tag(2, 1) + b"\0" * 8), "not a message"),
    # -- strings
    ("string-0", "a first string that is not empty", lambda: TABLES + SAMPLE + strings(["x"] + STRINGS[1:]), "first string"),
    ("string-range", "a string index that is out of range", lambda: with_function(num(1, 1) + num(2, 99)), "out of range"),
    ("string-negative", "a negative string index", lambda: with_function(num(1, 1) + num(2, -1)), "out of range"),
    ("string-2^32", "a string index of 2^32", lambda: with_function(num(1, 1) + num(2, 1 << 32)), "out of range"),
    ("type-range", "a type's name out of range", lambda: TYPE + msg(1, num(1, 99)) + strings(), "out of range"),
    ("label-range", "a label's key out of range", lambda: with_sample(packed(2, [5]) + msg(3, num(1, 99) + num(2, 1))), "out of range"),
    ("label-negative", "a label's text negative", lambda: with_sample(packed(2, [5]) + msg(3, num(1, 6) + num(2, -5))), "out of range"),
    ("comment-range", "a comment out of range", lambda: GOOD + packed(13, [1, 99]), "out of range"),
    ("default-range", "a default type out of range", lambda: GOOD + num(14, 99), "out of range"),
    ("default-unknown", "a default type that is no type", lambda: GOOD + num(14, 3), ANSWER),
    ("period-range", "a period type out of range", lambda: GOOD + msg(11, num(1, 1000)), "out of range"),
    ("mapping-range", "a file name out of range", lambda: GOOD + msg(3, num(1, 9) + num(5, 99)), "out of range"),
    ("type-empty", "a type without a name", lambda: msg(1, num(1, 0)) + strings(), "no name"),
    ("type-twice", "two types of one name", lambda: TYPE + TYPE + strings(), "same name"),
    ("types-10000", "ten thousand sample types", lambda: many_types(10000), "256"),
    ("types-200", "two hundred sample types", lambda: many_types(200), ANSWER),
    ("nul", "NUL bytes in a name", lambda: named(b"a\0b\0"), ANSWER),
    ("controls", "escape sequences in a name", lambda: named(b"\x1b[2J\x1b]0;title\x07\r\n\t\x08\x7f"), ANSWER),
    ("c1", "control characters of two bytes in a name", lambda: named(b"\xc2\x9b2J\xc2\x85"), ANSWER),
    ("utf8-invalid", "invalid UTF-8 in a name", lambda: named(b"\xff\xfe\xc0\x80\xed\xa0\x80\xf5"), ANSWER),
    ("utf8-cut", "a name that ends within a character", lambda: named(b"abc\xe2\x82"), ANSWER),
    ("nonchar", "U+FFFE and U+FFFF in a name", lambda: named("\ufffe\uffff".encode()), ANSWER),
    ("bidi", "right-to-left overrides in a name", lambda: named("a\u202eb\u2066c".encode()), ANSWER),
    ("markup", "quotes and angle brackets in a name", lambda: named(b"</title><script>alert(1)</script>\"'&]]>"), ANSWER),
    ("json-name", "quotes and backslashes in a name", lambda: named(b"\\\",\"x\":\"\\u0000"), ANSWER),
    ("semicolons", "semicolons and spaces in a name", lambda: named(b"a;b c;d 5"), ANSWER),
    ("format", "conversions of printf in a name", lambda: named(b"%s%n%n%n%x"), ANSWER),
    ("path", "a path that climbs in a file name", lambda: with_function(num(1, 1) + num(2, 3) + num(4, 8), ["../../etc/passwd"]), ANSWER),
    ("name-empty", "functions without names", lambda: with_function(num(1, 1)), ANSWER),
    ("name-1m", "a name of a megabyte", lambda: named(b"n" * (1 << 20)), ANSWER),
    ("name-60m", "a name of 60 MB", lambda: gz(named(b"n" * (60 << 20)), 1), EITHER),
    ("name-100m", "a name of 100 MB", lambda: gz(named(b"n" * (100 << 20)), 1), "limit of 64 MiB for one"),
    ("strings-10m", "ten million empty strings", lambda: bomb(GOOD, b"\x32\0", 10000000), "limit of"),
    # -- ids
    ("location-0", "a location with the id 0", lambda: with_location(num(1, 0)), "id 0"),
    ("function-0", "a function with the id 0", lambda: with_function(num(2, 3)), "id 0"),
    ("mapping-0", "a mapping with the id 0", lambda: GOOD + msg(3, num(2, 5)), "id 0"),
    ("location-twice", "a location id twice", lambda: GOOD + LOCATIONS, "twice"),
    ("function-twice", "a function id twice", lambda: GOOD + FUNCTIONS, "twice"),
    ("mapping-twice", "a mapping id twice", lambda: GOOD + MAPPING, "twice"),
    ("location-unknown", "a sample of an unknown location", lambda: with_sample(packed(1, [77]) + packed(2, [5])), "location 77"),
    ("location-id-0", "a sample of location 0", lambda: with_sample(packed(1, [0]) + packed(2, [5])), "location 0"),
    ("location-64", "a sample of location 2^64-1", lambda: with_sample(packed(1, [-1]) + packed(2, [5])), "not there"),
    ("function-unknown", "a line of an unknown function", lambda: with_location(num(1, 1) + msg(4, num(1, 55))), "function 55"),
    ("line-0", "a line of function 0", lambda: with_location(num(1, 1) + msg(4, num(2, 5))), "function id 0"),
    ("mapping-unknown", "a location of an unknown mapping", lambda: with_location(num(1, 1) + num(2, 99) + msg(4, num(1, 1))), ANSWER),
    ("no-mapping", "locations without a mapping", lambda: TYPE + msg(4, num(1, 1)) + msg(4, num(1, 2) + num(3, 5)) + SAMPLE + strings(),
     ANSWER),
    ("no-line", "locations without lines", lambda: with_location(num(1, 1) + num(2, 1) + num(3, 0x1234)), ANSWER),
    ("sparse", "ids of 64 bits far apart", sparse_ids, ANSWER),
    ("order", "tables behind the samples, strings first", lambda: strings() + SAMPLE + FUNCTIONS + LOCATIONS + MAPPING + TYPE, ANSWER),
    ("unpacked", "unpacked numbers", lambda: with_sample(num(1, 1) + num(1, 2) + num(2, 5)), ANSWER),
    ("mixed", "packed and unpacked numbers in one sample", lambda: with_sample(num(1, 1) + num(2, 5) + packed(1, [2])), ANSWER),
    ("last-wins", "a scalar of a location twice", lambda: with_location(num(1, 9) + num(1, 1) + msg(4, num(1, 1))), ANSWER),
    ("ids-reversed", "100000 locations in descending order",
     lambda: TYPE + b"".join(msg(4, num(1, i) + msg(4, num(1, 1))) for i in range(100000, 0, -1)) + FUNCTIONS + SAMPLE + strings(), ANSWER),
    # -- values
    ("values-few", "fewer values than types", lambda: with_sample(packed(1, [1])), "0 values for 1"),
    ("values-many", "more values than types", lambda: with_sample(packed(2, [1, 2, 3])), "3 values for 1"),
    ("values-10m", "ten million values in a sample", lambda: gz(with_sample(packed(2, [1] * 10000000)), 1), "10000000 values for 1"),
    ("values-max", "two values of 2^63-1", lambda: TABLES + msg(2, packed(1, [1]) + packed(2, [2**63 - 1])) * 2 + strings(), ANSWER),
    ("values-overflow", "a thousand values of 2^62", lambda: TABLES + msg(2, packed(1, [1, 2]) + packed(2, [2**62])) * 1000 + strings(),
     ANSWER),
    ("negative", "a negative value", lambda: with_sample(packed(1, [1]) + packed(2, [-5])), ANSWER),
    ("negative-max", "the value -2^63", lambda: TABLES + msg(2, packed(1, [1]) + packed(2, [-2**63])) * 3 + strings(), ANSWER),
    ("diff", "a sample labelled pprof::base", lambda: TABLES + msg(2, packed(1, [1]) + packed(2, [5]) +
     msg(3, num(1, 8) + num(2, 9))) + strings(STRINGS + ["pprof::base", "true"]), ANSWER),
    ("time-negative", "times before 1970", lambda: TABLES + SAMPLE + strings() + num(9, -5) + num(10, -7), ANSWER),
    ("time-max", "times at the end of 64 bits", lambda: TABLES + SAMPLE + strings() + num(9, 2**63 - 1) + num(10, 2**63 - 1), ANSWER),
    ("addresses", "addresses and mappings at the end of 64 bits", lambda: TYPE + msg(3, num(1, 1) + num(2, -1) + num(3, 1) + num(4, -1)) +
     msg(4, num(1, 1) + num(2, 1) + num(3, -1) + msg(4, num(1, 1) + num(2, -1))) + msg(4, num(1, 2)) + FUNCTIONS + SAMPLE + strings(),
     ANSWER),
    # -- labels
    ("label-empty", "an empty label", lambda: with_sample(packed(2, [5]) + msg(3, b"")), ANSWER),
    ("label-both", "a label that is text and number", lambda: with_sample(packed(2, [5]) + msg(3, num(1, 6) + num(2, 7) + num(3, 9))), ANSWER),
    ("label-repeated", "a label of one key three times", lambda: with_sample(packed(2, [5]) + msg(3, num(1, 6) + num(2, 7)) * 3), ANSWER),
    ("labels-1m", "a million labels on a sample", lambda: gz(with_sample(packed(2, [5]) + msg(3, num(1, 6) + num(3, 1)) * 1000000), 1),
     ANSWER),
    ("labels-distinct", "a million samples with labels of their own",
     lambda: gz(TABLES + b"".join(msg(2, packed(1, [1]) + packed(2, [1]) + msg(3, num(1, 6) + num(3, i + 1))) for i in range(1000000)) +
                strings(), 1), ANSWER),
    # -- size
    ("deep-100k", "a stack of 100000 frames", lambda: deep(100000), ANSWER),
    ("deep-5m", "a stack of 5 million frames", lambda: gz(deep(5000000), 1), EITHER),
    ("lines-100k", "a location with 100000 inlined calls", lambda: wide_location(100000, 1, 1), ANSWER),
    ("lines-squared", "20000 lines times 20000 references times 10", lambda: wide_location(20000, 20000, 10), "limit of"),
    ("cyclic", "a stack that repeats itself ten thousand times", lambda: TABLES + msg(2, packed(1, [1, 2] * 10000) + packed(2, [5])) +
     strings(), ANSWER),
    ("samples-empty", "200 MiB of empty samples", lambda: bomb(TABLES + strings(), b"\x12\0", 100 << 20), "0 values for 1"),
    ("samples-200m", "200 MiB of equal samples", lambda: bomb(GOOD, SAMPLE, (200 << 20) // len(SAMPLE)), ANSWER),
    ("samples-tiny", "60 million samples of four bytes", lambda: bomb(GOOD, msg(2, num(2, 1)), 60000000), ANSWER),
    ("locations-empty", "200 MiB of empty locations", lambda: bomb(TABLES + strings(), b"\x22\0", 100 << 20), "id 0"),
    ("locations-10m", "ten million locations", lambda: gz(
        TYPE + FUNCTIONS + strings() + b"".join(msg(4, num(1, i + 1)) for i in range(5000000)), 1), "limit of"),
    ("types-200m", "200 MiB of sample types", lambda: bomb(strings(), b"\x0a\0", 100 << 20), EITHER),
    ("comments-200m", "200 MiB of comments", lambda: bomb(GOOD, num(13, 1), 100 << 20), "limit of"),
    ("bomb-zeros", "a gzip bomb of 1 GiB of zeros", lambda: bomb(b"", b"\0", 1 << 30), "byte 0"),
    ("bomb-string", "a gzip bomb: one string of 1 GiB", lambda: bomb(tag(6, 2) + varint(1 << 30), b"a", 1 << 30), "64 MiB"),
    ("bomb-unknown", "a gzip bomb: one unknown field of 1 GiB", lambda: bomb(GOOD + tag(99, 2) + varint(1 << 30), b"a", 1 << 30), "inflates to more"),
    ("bomb-samples", "a gzip bomb: 1 GiB of equal samples", lambda: bomb(GOOD, SAMPLE, (1 << 30) // len(SAMPLE)), "inflates to more"),
    ("bomb-members", "a gzip bomb of 1024 members", lambda: gz(GOOD) + bomb(msg(99, b"a" * 1000), msg(99, b"a" * 1000), 1100) * 1024,
     "inflates to more"),
]
