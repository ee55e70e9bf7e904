# SPDX-License-Identifier: Apache-2.0
"""Boots a guest that records, and hands back the folder of what it left."""
import os
import signal
import subprocess
import sys

from . import ROOT
from .devices import ALL, TOGETHER, TOGETHER_LOAD

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 1500
PROGRAMS = ("/usr/sbin/dmsetup", "/sbin/mdadm", "/usr/bin/addpart", "/usr/sbin/bpftool")


def missing_programs():
    return [p for p in PROGRAMS if not os.access(p, os.X_OK)]


def vm(command):
    """Runs tools/vm/run; (exit status, output). The guest ends with us."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = process.communicate()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return process.returncode, output.strip()


def plan(path, loads):
    with open(path, "w") as f:
        f.writelines("%s %s\n" % (name, " ".join(load)) for name, load in loads.items())


def disk_options(boot):
    disks = sum(ALL[n].disks for n in boot.devices)
    return ["--disk", "virtio"] * disks + (["--disk", "nvme"] if "nvme" in boot.devices else [])


def run(boot, backends, out):
    """(exit status, output) of the guest; its /out is in `out`."""
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    files = [os.path.join(HERE, "guest.sh"), os.path.join(build, "load/ioload"), out + "/plan", out + "/together", *PROGRAMS]
    plan(out + "/plan", {n: ALL[n].load for n in boot.devices})
    plan(out + "/together", {TOGETHER: TOGETHER_LOAD} if boot.together else {})
    command = [os.path.join(ROOT, "tools/vm/run"), boot.kernel, *disk_options(boot), "--cgroup", str(boot.cgroup),
               "--timeout", str(TIMEOUT), "--out", out]
    for file in files:
        command += ["--with", file]
    if boot.append:
        command += ["--append", boot.append]
    if boot.last_forms:
        command += ["--", "env", "BLKPROF_LAST_FORMS=1"]
    else:
        command += ["--"]
    command += ["sh", "/payload/guest.sh", " ".join(backends), *boot.devices, *([TOGETHER] if boot.together else [])]
    return vm(command)
