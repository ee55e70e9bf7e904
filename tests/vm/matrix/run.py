# SPDX-License-Identifier: Apache-2.0
"""Runs a matrix, or a part of one, and says what came out."""
import tempfile

from . import guest, verdict

KERNELS = ("5.10", "6.1", "6.12", "newest")
# (kernel, backend) that is known not to be taken, see docs/kernels.md.
REFUSED = set()


class Unreachable(Exception):
    """The kernel's archive."""


def run_boot(boot, backends):
    """Results of one guest; what it says beside them is printed."""
    with tempfile.TemporaryDirectory(prefix="blkprof-matrix-") as out:
        status, said = guest.run(boot, backends, out)
        if status == 77:
            raise Unreachable(said.splitlines()[-1])
        if said:
            print("%s said:\n    %s" % (boot.name, said.replace("\n", "\n    ")[-3000:]))
        results = [r for b in backends for r in verdict.judge_backend(boot, b, (boot.kernel, b) in REFUSED, out)]
        results += [verdict.agree(boot, pair, out) for pair in verdict.pairs(boot, backends, out)]
        if status:
            results.append(verdict.Result(boot, "", "guest", wrong=["exit status %d" % status]))
    return results


def run(boots, backends=verdict.BACKENDS):
    """(results, kernels that cannot be reached)."""
    results, unreachable = [], set()
    for boot in boots:
        if boot.kernel in unreachable:
            continue
        try:
            mine = run_boot(boot, backends)
        except Unreachable as reason:
            print("SKIP %s: %s" % (boot.kernel, reason), flush=True)
            unreachable.add(boot.kernel)
            continue
        for result in mine:
            print(result.line(), flush=True)
        results += mine
    return results, unreachable
