# SPDX-License-Identifier: Apache-2.0
"""A bare Debian in a folder, made by debootstrap once and kept, and commands in it."""
import hashlib
import os
import shutil
import subprocess
import time

from .devices import lock
from .testing import skip

CACHE = os.path.join(os.environ.get("BLKPROF_CACHE") or os.path.join(os.path.dirname(__file__), "../../../.cache"), "debootstrap")
MONTH = 30 * 24 * 3600
ENTER = """
mount --make-rprivate /
mount --bind /proc "$0/proc" && mount --rbind /sys "$0/sys" && mount -t tmpfs none "$0/run" && mount -t tmpfs none "$0/tmp"
[ ! -x /sbin/ip ] || /sbin/ip link set lo up
exec chroot "$0" "$@"
"""


def codename():
    with open("/etc/os-release") as f:
        names = dict(line.rstrip().split("=", 1) for line in f if "=" in line)
    return names.get("VERSION_CODENAME", "").strip('"')


def archive():
    """Release and address of the main archive, by this machine's own sources."""
    release = codename()
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
                          text=True, capture_output=True)
    for line in done.stdout.splitlines():
        if line.split()[1:] == [release, "main"]:
            return release, line.split()[0]
    return skip("this machine has no package source of a Debian release")


def _make(tar, release, address, packages, work):
    root = os.path.join(work, "new")
    done = subprocess.run(["debootstrap", "--variant=minbase", "--include=" + ",".join(packages), release, root, address],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        skip("debootstrap of %s from %s failed: %s" % (release, address, (done.stdout.splitlines() or ["without a word"])[-1]))
    shutil.rmtree(os.path.join(root, "var/cache/apt/archives"))
    shutil.rmtree(os.path.join(root, "var/lib/apt/lists"))
    os.makedirs(CACHE, exist_ok=True)
    for old in (os.path.join(CACHE, name) for name in os.listdir(CACHE)):
        if os.path.getmtime(old) < time.time() - MONTH:
            os.unlink(old)
    subprocess.run(["tar", "-C", root, "-cf", tar + ".new", "."], check=True)
    os.rename(tar + ".new", tar)
    shutil.rmtree(root)


class Chroot:
    """Unpacked below `work`, which is on a file system that may have device nodes and programs."""

    def __init__(self, work, packages):
        if not shutil.which("debootstrap"):
            skip("debootstrap is not installed")
        release, address = archive()
        mark = hashlib.sha256(repr((release, address, sorted(packages))).encode()).hexdigest()[:16]
        tar = os.path.join(CACHE, mark + ".tar")
        with lock("debootstrap"):
            if not os.path.exists(tar):
                _make(tar, release, address, sorted(packages), work)
        self.root = os.path.join(work, "root")
        os.mkdir(self.root)
        subprocess.run(["tar", "-C", self.root, "-xf", tar], check=True)

    def command(self, *args):
        """With namespaces of its own: mounts and processes end with it, its addresses are nobody else's."""
        return ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, self.root, *args]

    def run(self, *args, timeout=120):
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.run(self.command(*args), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, env=env)

    def path(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def exists(self, path):
        return os.path.lexists(self.path(path))

    def read(self, path):
        with open(self.path(path)) as f:
            return f.read()

    def write(self, path, text):
        with open(self.path(path), "w") as f:
            f.write(text)

    def files(self):
        """Every path in it."""
        found = set()
        for folder, folders, files in os.walk(self.root):
            found.update(os.path.join(folder, name)[len(self.root):] for name in folders + files)
        return found
