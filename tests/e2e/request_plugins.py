#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=90
"""Metrics of plugins: the example (waits for ext4's journal) counts, and what is wrong with one is said and harms nothing."""
import contextlib
import os
import shutil
import subprocess

import requests
from lib import devices, testing
from lib.testing import check, check_equal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DECLARATION = os.path.join(ROOT, "docs/plugins/ext4.conf")
OBJECT = os.path.join(devices.build(), "plugins/ext4.bpf.o")


@contextlib.contextmanager
def journalled_server():
    """The server's cached file lies on an ext4 with a journal, on a disk of a few milliseconds."""
    with testing.scratch() as folder, devices.slow_disk(folder, 2.0, size="64M") as disk:
        point = os.path.join(folder, "ext4")
        os.mkdir(point)
        devices.sh("mkfs.ext4", "-q", "-F", disk.node)
        devices.sh("mount", disk.node, point)
        image = os.path.join(folder, "raw")
        with open(image, "wb") as f:
            f.truncate(8 << 20)
        try:
            with devices.loop(image) as node:
                server = requests.Server(point, node)
                try:
                    yield folder, server
                finally:
                    server.close()
        finally:
            devices.sh("umount", point)


def install(folder, *names):
    """The example under these names."""
    plugins = os.path.join(folder, "plugins")
    os.makedirs(plugins, mode=0o755, exist_ok=True)
    shutil.copy(OBJECT, os.path.join(plugins, "ext4.bpf.o"))
    for name in names:
        with open(DECLARATION) as f, open(os.path.join(plugins, name + ".conf"), "w") as to:
            to.write(f.read().replace("ext4_", name + "_"))
    return plugins


def one_record(folder, server, plugins):
    following = requests.Following(folder, server, "--plugins", plugins)
    server.raw(b"GET /j?journal=3 HTTP/1.1\r\nX-Trace-Id: j\r\n\r\n")
    records, said = following.records()
    found = [r for r in records if r.get("trace_id_s") == "j"]
    check_equal(len(found), 1, "requests")
    return found[0], said


def counts():
    with journalled_server() as (folder, server):
        r, said = one_record(folder, server, install(folder, "ext4"))
    check_equal(r.get("ext4_syncs_i"), 3, "syncs")
    check(0 < r.get("ext4_journal_ms_f", 0) <= r["fsync_ms_f"], "journal %r of %r" % (r.get("ext4_journal_ms_f"), r["fsync_ms_f"]))
    check("plugin" not in said, said)


def refused():
    with journalled_server() as (folder, server):
        plugins = install(folder, "ext4", "other")
        wrong = {"abi": "[source]\nabi = 2\nobject = ext4.bpf.o\n[metrics]\nabi_x_i = counter sum sum\n",
                 "name": "[source]\nabi = 1\nobject = ext4.bpf.o\n[metrics]\noncpu_ms_f = timer sum sum\n",
                 "broken": "[source]\nabi = 1\nobject = broken.bpf.o\n[metrics]\nbroken_x_i = counter sum sum\n",
                 "kind": "[source]\nabi = 1\nobject = ext4.bpf.o\n[metrics]\nkind_x_i = histogram sum sum\n"}
        for name, text in wrong.items():
            with open(os.path.join(plugins, name + ".conf"), "w") as f:
                f.write(text)
        with open(os.path.join(plugins, "broken.bpf.o"), "wb") as f:
            f.write(b"\x7fELF nothing more")
        os.mkfifo(os.path.join(plugins, "pipe.conf"))
        with open(os.path.join(plugins, "writable.conf"), "w") as f:
            f.write(wrong["kind"])
        os.chmod(os.path.join(plugins, "writable.conf"), 0o666)
        r, said = one_record(folder, server, plugins)
    for name, why in (("abi", "abi = 2"), ("name", "begin with its own name"), ("broken", "no BPF object"), ("pipe", "is no file"), ("kind", "timer, counter or gauge"),
                      ("writable", "chmod go-w")):
        check(any("plugin %s.conf is not used" % name in line and why in line for line in said.splitlines()), "%s: %r" % (name, said))
    check_equal((r.get("ext4_syncs_i"), r.get("other_syncs_i")), (3, 3), "the others count")
    check("broken_x_i" in r.get("missing_ss", []) and "broken_x_i" not in r, "what failed is missing: %r" % r.get("missing_ss"))
    check("incomplete_b" not in r, "the request is whole")


if __name__ == "__main__":
    if not os.path.exists(OBJECT) or subprocess.run(["grep", "-qw", "ext4", "/proc/filesystems"], check=False).returncode:
        print("no ext4 here, or the plugin was not built")
        raise SystemExit(77)
    testing.main(counts, refused)
