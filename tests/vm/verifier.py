#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=900
"""verifier.py [--update] [KERNEL…]: what each program costs each kernel's verifier, and the host's, against verifier.json. Fails when a
count has moved by more than 15 percent and a thousand, when a kernel refuses what it accepted, and when a program has no entry. The oldest
and the newest kernel and the host by default, all with VERIFIER=all. --update writes what is measured into the file, of all."""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KNOWN = os.path.join(ROOT, "tests/vm/verifier.json")
KERNELS = ["5.10", "6.1", "6.12", "newest", "host"]
DEFAULT = ["5.10", "newest", "host"]
TOLERANCE, FEW = 0.15, 1000
PROGRAM = os.path.join(os.environ.get("BUILD", os.path.join(ROOT, "build")), "tests/bpf/verifier_counts")


def measure(kernel):
    """{object: {program: count or None}} and the kernel's release; None when the kernel cannot be had."""
    if kernel == "host":
        result = subprocess.run([PROGRAM], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(result.stdout), os.uname().release
    with tempfile.TemporaryDirectory() as out:
        result = subprocess.run([os.path.join(ROOT, "tools/vm/run"), kernel, "--timeout", "600", "--out", out, "--with", PROGRAM, "--", "sh", "-c",
                                 "/payload/verifier_counts >/out/counts && uname -r >/out/release"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)
        if result.returncode == 77:
            print("%s: skipped, %s" % (kernel, result.stdout.strip().splitlines()[-1]))
            return None
        if result.returncode:
            raise SystemExit("%s: exit status %d\n%s" % (kernel, result.returncode, result.stdout[-3000:]))
        with open(out + "/counts") as counts, open(out + "/release") as release:
            return json.load(counts), release.read().strip()


def compare(kernel, counts, known):
    for name, programs in counts.items():
        for program, count in programs.items():
            had = known.get(name, {}).get(program, "missing")
            what = "%s %s %s" % (kernel, name, program)
            if had == "missing":
                yield what + ": has no entry in tests/vm/verifier.json"
            elif (had is None) != (count is None):
                yield "%s: %s" % (what, "is refused" if count is None else "is accepted, and was refused")
            elif count is not None and abs(count - had) > max(TOLERANCE * had, FEW):
                yield "%s: %d instructions, were %d" % (what, count, had)


def load():
    if not os.path.exists(KNOWN):
        return {}
    with open(KNOWN) as f:
        return json.load(f)


def save(known):
    with open(KNOWN, "w") as f:
        json.dump(known, f, indent=1, sort_keys=True)
        f.write("\n")


def check(kernel, known, update):
    """Lines of what is wrong; None when it cannot be looked at."""
    measured = measure(kernel)
    if not measured:
        return None
    counts, release = measured
    if update:
        known[kernel] = {"release": release, "counts": counts}
        save(known)
    entry = known.get(kernel, {"release": release, "counts": {}})
    # The reference host's kernel is one of many that a host may have.
    if kernel == "host" and release.split(".")[:2] != entry["release"].split(".")[:2]:
        print("host: skipped, its kernel is %s and the file's %s" % (release, entry["release"]))
        return None
    worst = max((c or 0 for programs in counts.values() for c in programs.values()))
    print("%s (%s): %d programs, the largest takes %d instructions" % (kernel, release, sum(map(len, counts.values())), worst))
    return list(compare(kernel, counts, entry["counts"]))


def main():
    words = sys.argv[1:]
    update = "--update" in words
    known = load()
    results = []
    chosen = [w for w in words if w != "--update"]
    if not chosen:
        chosen = KERNELS if update or os.environ.get("VERIFIER") == "all" else DEFAULT
        print("looked at: %s; left out: %s" % (" ".join(chosen), " ".join(k for k in KERNELS if k not in chosen) or "nothing"))
    for kernel in chosen:
        results.append(check(kernel, known, update))
        sys.stdout.flush()
    if all(r is None for r in results):
        print("no kernel can be looked at")
        sys.exit(77)
    wrong = [line for r in results if r for line in r]
    if wrong:
        print("\n".join(wrong) + "\nWhen this is meant: tests/vm/verifier.py --update, and commit the file with the change")
    sys.exit(1 if wrong else 0)


main()
