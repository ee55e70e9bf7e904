#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: timeout=400
"""Generated code has names where its runtime writes a perf map: Node, Python, and a JVM that has an attach socket and is
asked over it. Maps that somebody else wrote, and hostile ones, are not believed and do no harm."""
import glob
import os
import shutil
import subprocess
import time

from lib import devices, testing
from lib.blkprof import Recording, record_command
from lib.load import ioload_args
from lib.pprof import OPS, Profile
from lib.programs import JAVA
from lib.testing import check, check_equal, skip, wait_for

NODE = """
const fs = require('fs');
const fd = fs.openSync(process.argv[1], fs.constants.O_RDONLY | fs.constants.O_DIRECT);
const memory = Buffer.from(new ArrayBuffer(8192));
function readPage(i) { try { return fs.readSync(fd, memory, 0, 4096, (i % 256) * 4096); } catch (e) { return 0; } }
function scanTable() { for (let i = 0; i < 3000; i++) readPage(i); }
// Node writes its map when 2 MiB of it have come together.
scanTable();
for (let i = 0; i < 40000; i++) eval('(function someFunctionWithALongName' + i + '() { return ' + i + '; })()');
for (const end = Date.now() + 4000; Date.now() < end; ) scanTable();
"""

PYTHON = """
import mmap, os, sys, time
memory = mmap.mmap(-1, 4096)
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
def read_page(i):
    os.preadv(fd, [memory], (i % 256) * 4096)
def scan_table():
    for i in range(2000):
        read_page(i)
# The first reads come before the unwind tables of the interpreter.
scan_table()
time.sleep(2)
for _ in range(5):
    scan_table()
"""

def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip("%s is not installed" % program)


def python_with_perf():
    """A Python that writes perf maps (3.12 and later) without a wrapper between."""
    for path in sorted(glob.glob("/usr/bin/python3.1[2-9]") + glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9]*/bin/python3"))):
        if not subprocess.run([path, "-X", "perf", "-c", "pass"], stderr=subprocess.DEVNULL).returncode:
            return path
    return skip("no Python that has -X perf")


def shares(profile, root, *names):
    of = profile.select(root=root)
    check(of.total(OPS) > 0, "no operation of %s: %s" % (root, dict(profile.by(OPS, lambda s: s.frames[-1]))))
    for name in names:
        found = of.where(lambda s: any(f.split(" ")[0].split(".")[-1] == name for f in s.frames)).total(OPS)
        print("   %s: %d of %d operations below %s" % (root, found, of.total(OPS), name))
        check(found >= 0.5 * of.total(OPS), "%d of %d operations of %s are below %s; generated code is %s" % (
            found, of.total(OPS), root, name, sorted({f for s in of for f in s.frames if f.startswith("[")})))


def node():
    need("node")
    with testing.scratch() as folder, devices.file_of(folder + "/data", 1 << 20) as data:
        profile, _ = record_command(folder, ["--rate", "0"], [
            "node", "--no-opt", "--perf-basic-prof", "--interpreted-frames-native-stack", "-e", NODE, data])
        shares(profile, "node", "readPage", "scanTable")


def python():
    program = python_with_perf()
    with testing.scratch() as folder, devices.file_of(folder + "/data", 1 << 20) as data:
        profile, _ = record_command(folder, ["--rate", "0"], [program, "-X", "perf", "-c", PYTHON, data])
        shares(profile, os.path.basename(program), "read_page")


def java():
    need("java", "javac", "jcmd")
    with testing.scratch() as folder, devices.file_of(folder + "/data", 1 << 20) as data:
        source = os.path.join(folder, "Pages.java")
        with open(source, "w") as f:
            f.write(JAVA)
        devices.sh("javac", "-d", folder, source, timeout=120)
        process = subprocess.Popen(["java", "-XX:+PreserveFramePointer", "-cp", folder, "Pages", data, "25"])
        try:
            time.sleep(2)
            # Its attach socket is opened by whoever asks first: here the JDK's own tool.
            devices.sh("jcmd", str(process.pid), "VM.version", timeout=60)
            path = "/tmp/perf-%d.map" % process.pid
            check(not os.path.exists(path), "there is a perf map already")
            recorder = subprocess.Popen([os.path.join(devices.build(), "tests", "bpf", "record_services"),
                                         os.path.join(folder, "window"), "3", "1", "0"], stdout=subprocess.PIPE, text=True)
            recorder.communicate(timeout=120)
            check_equal(recorder.returncode, 0, "status of record_services")
            check(os.path.exists(path), "the JVM was not asked for its perf map")
        finally:
            process.kill()
            process.wait()
            for left in glob.glob("/tmp/perf-%d.map" % process.pid):
                os.unlink(left)
        shares(Profile.read(os.path.join(folder, "window.0.pb.gz")), "java", "readPage")  # what is interpreted has no name of its own


testing.main(node, python, java)
