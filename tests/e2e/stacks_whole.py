#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=600
"""Packaged programs, built without frame pointers and without debug symbols: the stacks of their I/O reach main or a thread's
start, and the functions that read are in them."""

import time

from lib import blkprof, programs, testing
from lib.testing import check, check_between

# Of the operations; what is missing is the moment until a process's tables are there, on a machine that others may use too.
# tools/bench/stacks measures the share.
WHOLE = 0.9
# The program is stopped for a second soon after its start.
PAUSED = '"$@" & p=$!; sleep 0.15; kill -STOP $p; sleep 1; kill -CONT $p; wait $p'


def check_whole(samples, name, at_least=100):
    check(samples.total("io_ops") >= at_least, "%s: only %d operations" % (name, samples.total("io_ops")))
    share = programs.share_whole(samples)
    print("   %s: %.2f%% of %d operations reach the outermost frame" % (name, 100 * share, samples.total("io_ops")))
    if not check_between(share, WHOLE, 1.0, "%s: share of whole stacks" % name):
        print(samples.where(lambda s: not programs.is_whole(s)).show(10))


def command(name, *options):
    with testing.scratch() as folder:
        roots, args = programs.COMMANDS[name](folder)
        programs.drop_caches()
        profile = blkprof.record_command(folder, [*options], ["sh", "-c", PAUSED, "sh", *args])[0]
    return programs.of_program(profile, *roots)


def python3():
    samples = command("python3")
    check_whole(samples, "python3")
    check(samples.select(frame="os_pread").total("io_ops") > 1000, "no os_pread: %s" % samples.show())
    check(samples.select(frame="Py_BytesMain").total("io_ops") > 1000, "no Py_BytesMain: %s" % samples.show())


def dd():
    check_whole(command("dd"), "dd")


def tar():
    check_whole(command("tar"), "tar", 20)


def rsync():
    check_whole(command("rsync"), "rsync", 20)


def sqlite3():
    samples = command("sqlite3")
    check_whole(samples, "sqlite3")
    check(samples.select(frame="sqlite3_step").total("io_ops") > 0, "no sqlite3_step: %s" % samples.show())


def server(start, load, *roots):
    with testing.scratch() as folder, start(folder) as sql:
        programs.drop_caches()
        with blkprof.Recording(folder) as recording:
            # Long enough that the moment until its tables are ready is less than the share that may be missing.
            end, turns = time.monotonic() + 8, 0
            while time.monotonic() < end or turns < 12:
                sql(load)
                programs.drop_caches()
                turns += 1
            profile = recording.stop()
    return programs.of_program(profile, *roots)


def postgresql():
    """From main down to the executor's and the heap's functions, without debug symbols."""
    samples = server(programs.postgresql, programs.POSTGRES_LOAD, "postgres")
    check_whole(samples, "postgres")
    for function in ("main", "PostmasterMain", "PostgresMain", "standard_ExecutorRun"):
        share = samples.select(frame=function).total("io_ops") / samples.total("io_ops")
        check(share > 0.5, "%s is in %.0f%% of the operations' stacks\n%s" % (function, 100 * share, samples.show(5)))
    for function in ("heap_getnextslot", "index_getnext_slot"):
        check(samples.select(frame=function).total("io_ops") > 0, "no %s\n%s" % (function, samples.show(10)))


def mariadb():
    samples = server(programs.mariadb, programs.MARIADB_LOAD, "mariadbd")
    check_whole(samples, "mariadbd")


def frame_pointers_only():
    """What --unwind fp gives, as a frame-pointer walk of a packaged program does: the function that read and little more."""
    samples = command("python3", "--unwind", "fp")
    check(programs.share_whole(samples) < 0.5, "frame pointers were enough: %s" % samples.show(3))
    check(samples.containing("[broken stack").total("io_ops") == 0, "marked as broken: %s" % samples.show(3))


testing.main(python3, dd, tar, rsync, sqlite3, postgresql, mariadb, frame_pointers_only)
