#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=420
"""The Debian package, made from the build: installed, started, upgraded, removed, purged and installed again in a bare Debian."""
import os
import re
import shutil
import stat
import subprocess

from lib import devices, testing
from lib.chroot import Chroot
from lib.package import field, made
from lib.testing import check, check_equal

CONFIGS = ("/etc/blkprof/agent.conf", "/etc/blkprof/collector.conf")
# What dpkg, apt and adduser write for any package.
NOISE = re.compile(r"/(var/lib/(dpkg|apt)|var/log|var/cache|var/backups)/|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|"
                   r"/etc/ld.so.cache|/(tmp|run|proc|sys|dev)/")
# Starts the daemon, waits until it says the words, ends it; its own status, or 99 when it never said them.
TRY = """
"$@" >/tmp/log 2>&1 & pid=$!
for i in $(seq 300); do grep -q "$0" /tmp/log && break; kill -0 $pid 2>/dev/null || break; sleep 0.1; done
cat /tmp/log; grep -q "$0" /tmp/log || exit 99
kill -TERM $pid; wait $pid
"""


def next_version(package, folder):
    """The same package as a later version whose configuration files are others."""
    tree, result = os.path.join(folder, "tree"), os.path.join(folder, "next.deb")
    devices.sh("dpkg-deb", "-R", package, tree)
    for path in CONFIGS:
        with open(tree + path, "a") as f:
            f.write("# of the later version\n")
    with open(tree + "/DEBIAN/control") as f:
        text = f.read()
    with open(tree + "/DEBIAN/control", "w") as f:
        f.write(re.sub("(?m)^Version: .*", "Version: 99.0-1", text))
    os.unlink(tree + "/DEBIAN/md5sums")
    devices.sh("dpkg-deb", "--root-owner-group", "-b", tree, result)
    return result


def apt(debian, *args):
    done = debian.run("apt-get", "-y", "-q=2", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", *args)
    return check_equal(done.returncode, 0, "apt-get %s: %s" % (" ".join(args), done.stdout))


def works(debian):
    done = debian.run("blkprof", "--version")
    check(done.returncode == 0 and done.stdout.startswith("blkprof "), "blkprof --version: " + done.stdout)
    outside = subprocess.run([os.environ["BLKPROF"], "doctor"], stdout=subprocess.DEVNULL).returncode
    done = debian.run("blkprof", "doctor")
    check_equal(done.returncode, outside, "blkprof doctor says the same as outside: " + done.stdout)
    for path in ("man/man1/blkprof.1.gz", "man/man1/blkprof-record.1.gz", "man/man1/blkprof-diff.1.gz", "doc/blkprof/copyright",
                 "bash-completion/completions/blkprof", "zsh/vendor-completions/_blkprof", "fish/vendor_completions.d/blkprof.fish"):
        check(debian.exists("/usr/share/" + path), path)
    check(debian.exists("/lib/systemd/system/blkprof-agent.service"), "the agent's unit")
    check(not debian.exists("/etc/systemd/system/multi-user.target.wants/blkprof-agent.service"), "it is not enabled")


def account(debian):
    line = [line for line in debian.read("/etc/passwd").splitlines() if line.startswith("blkprof:")]
    check(len(line) == 1 and line[0].endswith("/nologin"), "the user: %s" % line)
    uid = int(line[0].split(":")[2])
    for path, owner in (("/var/lib/blkprof", 0), ("/var/lib/blkprof-collector", uid)):
        found = os.stat(debian.path(path))
        check_equal((found.st_uid, stat.S_IMODE(found.st_mode)), (owner, 0o700), "owner and mode of " + path)


def daemons(debian):
    """Both start with the configuration as it is installed, the collector without privileges."""
    for words, command in (("listening at", ["setpriv", "--reuid", "blkprof", "--regid", "blkprof", "--clear-groups", "--bounding-set",
                                             "-all", "blkprof", "collector", "-c", CONFIGS[1]]),
                           ("backend ", ["blkprof", "agent", "-c", CONFIGS[0]])):
        done = debian.run("sh", "-c", TRY, words, *command)
        check_equal(done.returncode, 0, "%s: %s" % (" ".join(command), done.stdout))
    check(debian.exists("/var/lib/blkprof-collector/store/blkprof.db"), "the store is there")
    check(os.listdir(debian.path("/var/lib/blkprof/spool")), "a window is in the spool")


def upgrade(debian, package):
    """A changed file stays, an unchanged one becomes the new version's."""
    with open(debian.path(CONFIGS[0]), "a") as f:
        f.write("[labels]\nzone = mine\n")
    spooled = os.listdir(debian.path("/var/lib/blkprof/spool"))
    apt(debian, "install", "-o", "Dpkg::Options::=--force-confold", package)
    check("zone = mine" in debian.read(CONFIGS[0]) and "later version" not in debian.read(CONFIGS[0]), "the changed file is kept")
    check("later version" in debian.read(CONFIGS[1]), "the other one is the new version's")
    check_equal(os.listdir(debian.path("/var/lib/blkprof/spool")), spooled, "the spool is kept")
    check(debian.exists("/var/lib/blkprof-collector/store/blkprof.db"), "the store is kept")
    works(debian)


def lifecycle():
    with testing.scratch() as folder:
        package = made(folder)
        later = next_version(package, folder)
        needed = [re.split("[ (|]", name.strip())[0] for name in field(package, "Depends").split(",")]
        debian = Chroot(folder, needed)
        for source, name in ((package, "blkprof.deb"), (later, "later.deb")):
            shutil.copy(source, debian.path("/" + name))
        before = debian.files()
        if not apt(debian, "install", "/blkprof.deb"):
            return
        works(debian)
        account(debian)
        daemons(debian)
        upgrade(debian, "/later.deb")
        apt(debian, "remove", "blkprof")
        check(not debian.exists("/usr/bin/blkprof"), "the program is gone")
        check("zone = mine" in debian.read(CONFIGS[0]) and debian.exists("/var/lib/blkprof/spool"), "configuration and spool are not")
        apt(debian, "install", "/later.deb")
        check("zone = mine" in debian.read(CONFIGS[0]), "the configuration is still there when it is installed again")
        debian.write("/etc/blkprof/agent.key", "secret")
        apt(debian, "purge", "blkprof")
        left = sorted(path for path in debian.files() - before if not NOISE.search(path))
        check_equal(left, [], "what a purge leaves")
        check_equal(sorted(path for path in before - debian.files() if not NOISE.search(path)), [], "what a purge took of others")
        for path in ("passwd", "group", "shadow", "gshadow"):
            check("blkprof" not in debian.read("/etc/" + path), "/etc/%s does not have the user any more" % path)
        apt(debian, "install", "/blkprof.deb")
        works(debian)


testing.main(lifecycle)
