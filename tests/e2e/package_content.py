#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=120
"""The Debian package by lintian's rules and by what it says of itself; the units by systemd's own check."""
import os
import re
import shutil
import subprocess

from lib import testing
from lib.package import field, made
from lib.testing import check, check_equal, skip

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


def content():
    """lintian, and what the package says of itself."""
    with testing.scratch() as folder:
        package = made(folder)
        with open(os.path.join(SOURCE, "deploy/debian/changelog")) as f:
            version = re.match(r"blkprof \((.*?)\)", f.readline()).group(1)
        check_equal(field(package, "Version"), version, "the version is the one of deploy/debian/changelog")
        depends = field(package, "Depends")
        for library in ("libbpf1", "libzmq5", "libsqlite3-0", "libc6"):
            check(library in depends, "%s is in Depends: %s" % (library, depends))
        if not shutil.which("lintian"):
            print("   no lintian: not checked by it")
            return
        done = subprocess.run(["lintian", "--allow-root", package], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout)
        check(not re.search("^[EW]: ", done.stdout, re.M), "lintian has no complaint")


def units():
    if not shutil.which("systemd-analyze"):
        skip("no systemd-analyze here")
    with testing.scratch() as folder:
        for name, worst in (("blkprof-agent", 40), ("blkprof-collector", 15)):
            unit = os.path.join(folder, name + ".service")
            with open(os.path.join(SOURCE, "deploy", name + ".service")) as f:
                text = f.read()
            with open(unit, "w") as f:  # the program is not installed here
                f.write(text.replace("ExecStart=/usr/bin/blkprof", "ExecStart=" + os.environ["BLKPROF"]))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], text=True, capture_output=True)
            check(done.returncode == 0 and name not in done.stderr, "%s: %s" % (name, done.stderr))
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=%d" % worst, unit], text=True,
                                  capture_output=True)
            found = re.search(r"exposure level.*?: ([0-9.]+)", done.stdout)
            print("   %s: exposure %s" % (name, found.group(1) if found else "unknown: " + done.stderr))
            check_equal(done.returncode, 0, "%s: exposure is at most %g" % (name, worst / 10))


testing.main(content, units)
