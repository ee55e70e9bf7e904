# SPDX-License-Identifier: Apache-2.0
"""Checks and cases: every check of a case runs, each that fails says what it saw."""
import os
import signal
import sys
import tempfile
import time
import traceback


class Skipped(Exception):
    pass


def skip(reason):
    raise Skipped(reason)


def need_root():
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(77)


_failures = []


def check(condition, message):
    if not condition:
        _failures.append(message)
        print("   FAILED %s" % message, flush=True)
    return bool(condition)


def check_equal(got, want, what):
    return check(got == want, "%s: %r, expected %r" % (what, got, want))


def check_between(got, low, high, what):
    return check(low <= got <= high, "%s: %s, expected %s to %s" % (what, got, low, high))


def wait_for(condition, what, timeout=10.0):
    """Polls until condition() is true; its value, or an error after the timeout."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise TimeoutError("waited %g s for %s" % (timeout, what))


def scratch():
    """A folder on a real disk, removed at the end (a context manager)."""
    return tempfile.TemporaryDirectory(prefix="blkprof-e2e-", dir=os.environ.get("BLKPROF_SCRATCH", "/var/tmp"))


def _run_case(case):
    before, start = len(_failures), time.monotonic()
    try:
        case()
    except Skipped as reason:
        print("   skipped: %s" % reason, flush=True)
        return "skipped: %s" % reason
    except Exception:
        traceback.print_exc(file=sys.stdout)
        _failures.append("%s raised" % case.__name__)
    ok = len(_failures) == before
    print("%s %s (%.1f s)" % ("ok  " if ok else "FAIL", case.__name__, time.monotonic() - start), flush=True)
    return ok


def main(*cases):
    """Runs the cases (or those named on the command line) and ends the program: 0, 1, or 77 when all were skipped."""
    need_root()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # so that devices are torn down
    chosen = [c for c in cases if not sys.argv[1:] or c.__name__ in sys.argv[1:]]
    if not chosen:
        print("no such case; there are: %s" % " ".join(c.__name__ for c in cases))
        sys.exit(2)
    results = []
    for case in chosen:
        print("-- %s" % case.__name__, flush=True)
        results.append(_run_case(case))
    passed, failed = results.count(True), results.count(False)
    skipped = [r for r in results if isinstance(r, str)]
    print("%d passed, %d failed, %d skipped" % (passed, failed, len(skipped)))
    if failed:
        sys.exit(1)
    if not passed:
        print(skipped[-1])
        sys.exit(77)
    sys.exit(0)
