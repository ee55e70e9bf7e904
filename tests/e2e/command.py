#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""record -- COMMAND: whose I/O is recorded, whose streams and whose exit status they are."""
import os
import signal
import subprocess

from lib import blkprof, devices, testing
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS, Profile
from lib.testing import check, check_equal


def record(folder, *args, **kw):
    out = os.path.join(folder, "out.pb.gz")
    if os.path.exists(out):
        os.unlink(out)
    return blkprof.run("record", "-o", out, *args, **kw), out


def exit_statuses():
    with testing.scratch() as folder:
        plain = os.path.join(folder, "plain")
        devices.write(plain, "no program")
        killed = ["sh", "-c", "kill -TERM $$"]
        for command, status in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (killed, 128 + signal.SIGTERM)):
            result, out = record(folder, "--", *command)
            check_equal(result.returncode, status, "status of %s" % command)
            check(os.path.exists(out), "no profile of %s" % command)
        for command, status in ((["/nonexistent/program"], 127), (["no-such-program-anywhere"], 127), ([plain], 126)):
            result, out = record(folder, "--", *command)
            check_equal(result.returncode, status, "status of %s" % command)
            check(command[0] in result.stderr, "the message does not name the program: " + result.stderr)


def own_failures():
    """125, and the command does not run."""
    with testing.scratch() as folder:
        trace = os.path.join(folder, "ran")
        for options in (["--device", "no-such-device"], ["--pid", "4194303"], ["--cgroup", "/no/such/cgroup"],
                        ["-o", "/no/such/folder/x.pb.gz"]):
            result, out = record(folder, *options, "--", "touch", trace)
            check_equal(result.returncode, 125, "status with %s" % options)
            check(not os.path.exists(trace), "the command ran with %s" % options)
            check_equal(len(result.stderr.splitlines()), 1, "lines of the message with %s: %r" % (options, result.stderr))


def streams():
    with testing.scratch() as folder:
        result, out = record(folder, "--", "sh", "-c", "cat; echo problem >&2", input="hello\n")
        check_equal(result.stdout, "hello\n", "standard output")
        check("problem\n" in result.stderr, "the command's standard error is gone: " + result.stderr)
        check("wrote " in result.stderr, "no report on standard error: " + result.stderr)


def only_its_own():
    """The command's own I/O and its descendants', nobody else's."""
    with testing.scratch() as folder, devices.zram("64M") as node, \
            Load(ioload_args(node, "scan_table:pread:count=1009,rate=2000")) as other:
        other.start()
        inner = " ".join(ioload_args(node, "read_index:pread:count=503"))
        result, out = record(folder, "--rate", "0", "--", "sh", "-c", "(%s >/dev/null; true) & wait" % inner)
        by_function(other.truth())
        profile = Profile.read(out)
        check_equal(profile.select(frame="read_index").total(OPS), 503, "operations of a grandchild")
        check_equal(len(profile.select(frame="scan_table")), 0, "samples of somebody else")


def whole_node():
    with testing.scratch() as folder, devices.zram("64M") as node, \
            Load(ioload_args(node, "scan_table:pread:count=1009")) as other:
        ready, go = os.pipe(), os.pipe()
        out = os.path.join(folder, "out.pb.gz")
        inner = " ".join(ioload_args(node, "read_index:pread:count=503"))
        command = "echo >&%d; read x <&%d; %s >/dev/null" % (ready[1], go[0], inner)
        process = subprocess.Popen([blkprof.path(), "record", "--rate", "0", "-a", "-o", out, "--", "sh", "-c", command],
                                   pass_fds=(ready[1], go[0]), stderr=subprocess.PIPE)
        os.read(ready[0], 1)
        other.start()
        by_function(other.truth())
        os.write(go[1], b"\n")
        process.communicate(timeout=120)
        profile = Profile.read(out)
        device = os.path.basename(node)
        check_equal(profile.select(frame="read_index", device=device).total(OPS), 503, "operations of the command")
        check_equal(profile.select(frame="scan_table", device=device).total(OPS), 1009, "operations of another process")
        for fd in (*ready, *go):
            os.close(fd)


def signals_reach_it():
    """SIGTERM to record goes to the command, whose end ends the recording."""
    with testing.scratch() as folder:
        out = os.path.join(folder, "out.pb.gz")
        script = "trap 'exit 9' TERM; echo on; while :; do sleep 0.05; done"
        process = subprocess.Popen([blkprof.path(), "record", "-o", out, "--", "sh", "-c", script], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        check_equal(process.wait(timeout=20), 9, "status")
        process.stdout.close()
        check(os.path.exists(out), "no profile")


testing.main(exit_statuses, own_failures, streams, only_its_own, whole_node, signals_reach_it)
