#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=sanitized timeout=120
"""The rules compiled from real files say what readelf says of the same addresses."""
import bisect
import os
import random
import re
import subprocess

from lib import devices, testing
from lib.testing import check

FILES = {
    "libc": ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"],
    "ld.so": ["/lib64/ld-linux-x86-64.so.2"],
    "libm": ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"],
    "libstdc++": ["/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6"],
    "libcrypto": ["/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib64/libcrypto.so.3"],
    "bash": ["/bin/bash"],
    "python3": ["/usr/bin/python3"],
    "postgres": ["/usr/lib/postgresql/15/bin/postgres", "/usr/local/bin/postgres"],
    "perl": ["/usr/bin/perl"],
    "busybox (static)": ["/bin/busybox"],
}
CHOSEN = 4000  # functions of a file, at random
NONE, END, RSP, RBP, PLT, DEREF_RSP, DEREF_RBP, SIGNAL = range(8)
SAME, AT_CFA, AT_RBP, UNKNOWN = range(4)
FDE = re.compile(r"FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)")
REGISTER = re.compile(r"(r\d+) \(\w+\)")  # two words for one column
EXPRESSIONS = [  # what readelf calls the expression of a CFA, and the rule that must be in the table
    (re.compile(r"DW_OP_breg7 \(rsp\): (-?\d+); DW_OP_deref(?:; DW_OP_plus_uconst: (\d+))?$"), DEREF_RSP),
    (re.compile(r"DW_OP_breg6 \(rbp\): (-?\d+); DW_OP_deref(?:; DW_OP_plus_uconst: (\d+))?$"), DEREF_RBP),
    (re.compile(r"DW_OP_breg7 \(rsp\): 8; DW_OP_breg16 \(rip\): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit(\d+)(); DW_OP_ge; .*"), PLT),
]
ENTRY = re.compile(r"^([0-9a-f]{8}) [0-9a-f]+ [0-9a-f]+ (CIE|FDE)")


class Table:
    def __init__(self, path):
        out = subprocess.run([os.path.join(devices.build(), "tests", "unwind", "unwind_dump"), path],
                             check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
        rows = [line.split() for line in out if not line.startswith("#")]
        self.addresses = [int(row[0], 16) for row in rows]
        self.rules = [tuple(int(field) for field in row[1:]) for row in rows]

    def at(self, address):
        i = bisect.bisect_right(self.addresses, address)
        return self.rules[i - 1] if i else (NONE, 0, 0, SAME, 0)


def dump(path, what):
    return subprocess.run(["readelf", "--debug-dump=" + what, "--debug-dump=no-follow-links", path], check=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def readelf(path):
    """(start, end, rows) of each FDE; a row is the address and what holds from there on, by column."""
    fdes, cies, columns, rows, cie = [], {}, [], [], None
    for line in dump(path, "frames-interp").splitlines():
        entry = ENTRY.match(line)
        if entry:
            columns, rows = [], []
            if entry.group(2) == "CIE":
                cies[entry.group(1)] = rows
            else:
                cie, start, end = FDE.search(line).groups()
                fdes.append((int(start, 16), int(end, 16), rows, cies.get(cie[-8:])))
        elif line.startswith("   LOC"):
            columns = line.split()
        elif columns and line.strip() and "ZERO terminator" not in line:
            fields = REGISTER.sub(r"\1", line).split()
            rows.append((int(fields[0], 16), dict(zip(columns[1:], fields[1:]))))
    # Functions without instructions of their own have their CIE's row.
    return [(start, end, rows or [(start, cie[0][1])]) for start, end, rows, cie in fdes if end > start and (rows or cie)]


def offset_of(text):
    return int(re.search(r"[+-]\d+$", text).group())


def agrees(row, rule):
    """Whether the rule (cfa, offset, add, rbp, rbp offset) is what readelf's row says."""
    cfa, offset, _, rbp, rbp_offset = rule
    want, ra, saved = row["CFA"], row.get("ra", "u"), row.get("rbp", "u")
    if ra == "u":
        return cfa == END
    if want == "exp":
        if cfa == SIGNAL:
            return ra == "exp" and saved == "exp"
        if cfa not in (NONE, PLT, DEREF_RSP, DEREF_RBP):
            return False
    elif ra != "c-8" or want.split("+")[0] not in ("rsp", "rbp"):
        return cfa == NONE
    elif (cfa, offset) != (RSP if want.startswith("rsp") else RBP, offset_of(want)):
        return False
    if cfa == NONE:
        return True
    if saved in ("u", "s"):
        return rbp == SAME
    if saved.startswith("c"):
        return (rbp, rbp_offset) == (AT_CFA, offset_of(saved))
    return rbp in (AT_CFA, AT_RBP, UNKNOWN) if saved == "exp" else rbp == UNKNOWN


def addresses(start, end, rows):
    """The first, the last and one address between of each row."""
    for i, (begin, row) in enumerate(rows):
        last = min(rows[i + 1][0] if i + 1 < len(rows) else end, end) - 1
        if begin <= last:
            for address in {begin, last, random.randint(begin, last)}:
                yield address, row


def compare(name, path, at_least=100):
    table, functions = Table(path), readelf(path)
    starts = sorted({start for start, _, _ in functions})
    wrong, n, unsupported = [], 0, 0
    for start, end, rows in random.sample(functions, min(CHOSEN, len(functions))):
        following = bisect.bisect_right(starts, start)
        if following < len(starts) and starts[following] < end:
            continue  # overlapping ones have a test of their own
        for address, row in addresses(start, end, rows):
            n += 1
            rule = table.at(address)
            unsupported += rule[0] == NONE
            if not agrees(row, rule):
                wrong.append("%#x: readelf says %s, the table %s" % (address, row, rule))
    print("%s (%s): %d addresses, %d without a rule, %d expressions" % (name, path, n, unsupported, expressions(path, table)))
    check(n > at_least, "%s: readelf shows %d addresses" % (path, n))
    check(not wrong, "%s: %d of %d differ: %s" % (path, len(wrong), n, "; ".join(wrong[:5])))
    check(unsupported <= n / 50, "%s: %d of %d have no rule" % (path, unsupported, n))
    return n


def expressions(path, table):
    """Each expression of a CFA is in the table as its rule. The rules are few, so that all of them are looked at."""
    have, n = {rule[:3] for rule in table.rules}, 0
    for text in set(re.findall(r"DW_CFA_def_cfa_expression \((.*)\)", dump(path, "frames"))):
        for shape, kind in EXPRESSIONS:
            found = shape.match(text)
            if found:
                offset, add = int(found.group(1)), int(found.group(2) or 0)
                signal = kind == DEREF_RSP and (SIGNAL, offset - 160, 0) in have
                check(signal or (kind, offset, add) in have, "%s: no rule for %s" % (path, text))
                n += 1
    return n


def real_files():
    seed = random.randrange(1 << 32)
    random.seed(seed)
    print("seed %d" % seed)
    found = {name: next((p for p in paths if os.path.exists(p)), None) for name, paths in FILES.items()}
    print("not installed: %s" % (", ".join(name for name, path in found.items() if not path) or "none"))
    total = sum(compare(name, path) for name, path in found.items() if path)
    check(total > 10000, "only %d addresses were compared" % total)


def vdso():
    """The vDSO is no file: the kernel maps it into each process."""
    with open("/proc/self/maps") as f:
        found = re.search(r"^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$", f.read(), re.M)
    if not found:
        testing.skip("no vDSO")
    start, end = [int(n, 16) for n in found.groups()]
    with testing.scratch() as folder, open("/proc/self/mem", "rb") as memory:
        path = os.path.join(folder, "vdso.so")
        memory.seek(start)
        with open(path, "wb") as f:
            f.write(memory.read(end - start))
        compare("vDSO", path, 5)


def without_frames():
    """Programs that have none say so."""
    go = next((p for p in ("/usr/local/go/bin/gofmt", "/usr/lib/go-1.19/bin/gofmt", "/usr/lib/go/bin/gofmt") if os.path.exists(p)), None)
    if not go:
        testing.skip("no program written in Go (package golang-go)")
    out = subprocess.run([os.path.join(devices.build(), "tests", "unwind", "unwind_dump"), go], capture_output=True, text=True, timeout=60)
    check(out.returncode == 1 and "frame pointers" in out.stderr, "%s: %d, %s" % (go, out.returncode, out.stderr))


if subprocess.run(["which", "readelf"], stdout=subprocess.DEVNULL).returncode:
    testing.skip("no readelf (package binutils)")
testing.main(real_files, vdso, without_frames)
