#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=200
"""README's section about Solr, command by command as it is written there, with the package's configuration, on a machine of its
own (namespaces of mounts and of the network): ends with a slow query found in the analysis Solr and its breakdown on screen.
Both Solrs match the pattern, as they may for a newcomer: the index gets no records about itself."""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from lib import blkprof, solr, solrload, testing
from lib.devices import lock, program, sh
from lib.solrload import large
from lib.testing import check, check_between, check_equal, scratch, skip, wait_for

DOCUMENTS, SLOW = 2500, "600ms"
ANALYSIS = 8983  # as README says
MINE = "BLKPROF_WALKTHROUGH"


def alone():
    """Runs again where ports, /etc/blkprof and /var/lib/blkprof* are this test's own."""
    if MINE in os.environ:
        return
    if subprocess.run(["unshare", "--mount", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("no namespaces of mounts and of the network here")
        sys.exit(77)
    folders = [f for f in ("/etc/blkprof", "/var/lib/blkprof", "/var/lib/blkprof-collector") if not os.path.isdir(f)]
    for folder in folders:
        os.mkdir(folder)
    try:
        sys.exit(subprocess.run(["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *sys.argv],
                                env=dict(os.environ, **{MINE: "1"}), check=False).returncode)
    finally:
        for folder in folders:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def commands():
    """The section's blocks: live, setting up, questions."""
    with open(os.path.join(solr.ROOT, "README.md")) as f:
        section = re.search(r"^## Solr: .*?(?=^## )", f.read(), re.S | re.M)[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.S | re.M)
    check_equal(len(blocks), 3, "blocks of commands in README's section")
    return blocks


class Machine:
    """Where the commands run: the program, systemctl and bin/solr as far as they are needed, the package's files."""

    def __init__(self, folder):
        self.folder, self.run_in = folder, os.path.join(folder, "solr")
        self.programs, self.pids = os.path.join(folder, "programs"), os.path.join(folder, "pids")
        for path in (self.programs, self.pids, os.path.join(self.run_in, "bin")):
            os.makedirs(path)
        os.symlink(os.path.abspath(blkprof.path()), os.path.join(self.programs, "blkprof"))
        sh("ip", "link", "set", "lo", "up")
        for path in ("/etc/blkprof", "/var/lib/blkprof", "/var/lib/blkprof-collector"):
            sh("mount", "-t", "tmpfs", "none", path)
        for name in ("agent.conf", "collector.conf"):
            shutil.copy(os.path.join(solr.ROOT, "docs", name), "/etc/blkprof")
        # What the units say, without a service manager.
        self.script(self.programs, "systemctl", """[ "$1" = restart ] && shift || exit 2
for unit; do
	start=$(sed -n 's/^ExecStart=//p' "%s/deploy/$unit.service") && [ -n "$start" ] || exit 5
	[ ! -e "%s/$unit" ] || kill "$(cat "%s/$unit")"
	${start#/usr/bin/} 2>"%s/$unit.log" </dev/null >/dev/null &
	echo $! >"%s/$unit"
done""" % (solr.ROOT, self.pids, self.pids, folder, self.pids))
        # Of a distribution's: a core with its _default configuration in the server on its default port.
        self.script(os.path.join(self.run_in, "bin"), "solr", """[ "$#:$1:$2" = 3:create:-c ] || exit 2
exec curl -sSf "http://127.0.0.1:%d/solr/admin/cores?action=CREATE&name=$3&configSet=traced" """ % ANALYSIS)

    @staticmethod
    def script(folder, name, text):
        path = os.path.join(folder, name)
        with open(path, "w") as f:
            f.write("#!/bin/bash\n%s\n" % text)
        os.chmod(path, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for name in os.listdir(self.pids):
            with open(os.path.join(self.pids, name)) as f, contextlib.suppress(ProcessLookupError):
                os.kill(int(f.read()), signal.SIGTERM)

    def start(self, block):
        env = dict(os.environ, PATH=self.programs + ":" + os.environ["PATH"])
        return subprocess.Popen(["bash", "-e", "-c", block], cwd=self.run_in, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, block):
        process = self.start(block)
        out, err = process.communicate(timeout=60)
        check_equal(process.returncode, 0, "exit status of %s: %s" % (block, err))
        return out

    def log(self, unit):
        with open(os.path.join(self.folder, unit + ".log")) as f:
            return f.read()


@contextlib.contextmanager
def slow_disk(folder):
    """A file system on a disk that can be made slow, mounted at the folder."""
    tool = os.path.join(solr.ROOT, "tools", "slowdisk")
    program("slowfs")
    if not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
        skip("no FUSE or no loop devices in this kernel")
    with lock("slowdisk"):
        sh(tool, "make", "0ms")
        try:
            sh("mkfs.ext4", "-q", "-O", "^has_journal", "/dev/slowdisk")
            os.mkdir(folder)
            sh("mount", "/dev/slowdisk", folder)
            yield tool, os.path.basename(os.path.realpath("/dev/slowdisk"))
        finally:
            subprocess.run([tool, "delay", "0ms"], check=False)
            subprocess.run(["umount", folder], check=False)
            sh(tool, "remove")


def slow_query(shop, tool, trace):
    """While the disk is slow, of an index that is on disk only: the request as its client saw it."""
    solrload.evict(shop.process.pid, os.path.join(shop.home, "traced", "data", "index"))
    sh(tool, "delay", SLOW)
    request = large("traced", trace, random.Random(5), DOCUMENTS, 100)
    errors = solrload.run(shop.port, [[request]])
    sh(tool, "delay", "0ms")
    check_equal((errors, request.status), ([], 200), "the slow query")
    took = (request.end - request.start) * 1000
    check(took > 1000, "the query is slow: it took %.0f ms" % took)
    print("   %s took %.0f ms" % (trace, took), flush=True)
    return request


def on_screen(text, request, disk):
    """The first row: the time of the request, what it mostly waited for, and which it is."""
    took = (request.end - request.start) * 1000
    row = [line for line in text.splitlines() if "GET /solr/traced/select?" in line and "rows=100" in line]
    if not check(row and row[0] == text.splitlines()[1], "the slow query's row comes first: %s" % text):
        return
    print("   " + row[0], flush=True)
    share = re.search(r"(\d+)% disk (\S+?),? ", row[0])
    check(share and int(share[1]) >= 60 and share[2] == disk, "it waited for the disk %s: %s" % (disk, row[0]))
    duration, io = (float(word[:-1]) * 1000 if word.endswith("s") else float(word) for word in row[0].split()[1:3])
    check_between(duration, 1000, took + 1, "its time on screen")
    check_between(io, 1000, duration, "its I/O on screen")


def live(machine, block, shop, tool, disk):
    block, changed = re.subn(r"-d 60\b", "-d 9", block)
    check_equal(changed, 1, "README's -d 60")
    process = machine.start(block)
    time.sleep(2)
    request = slow_query(shop, tool, "live")
    out, err = process.communicate(timeout=60)
    check_equal(process.returncode, 0, "exit status of %s: %s" % (block, err))
    on_screen(out, request, disk)


def ask(core, **parameters):
    url = "http://127.0.0.1:%d/solr/%s/select?%s" % (ANALYSIS, core, urllib.parse.urlencode(parameters))
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)["response"]


def found(machine, block, request, disk):
    curl, requests = block.strip().splitlines()

    def traces():
        return [d.get("trace_id_s") for d in json.loads(machine.run(curl))["response"]["docs"]]
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: time.sleep(1) or "slow" in traces(), "the query in the analysis Solr", 60)
    docs = json.loads(machine.run(curl))["response"]["docs"]
    mine = [d for d in docs if d.get("trace_id_s") == "slow"]
    if check_equal(len(mine), 1, "the slow query among those of a second and more"):
        check_between(mine[0]["total_io_duration_ms_f"], 1000, (request.end - request.start) * 1000, "its I/O")
        check_equal((mine[0]["path_s"], mine[0]["core_s"], mine[0]["status_i"], mine[0]["disk_device_s"]),
                    ("/solr/traced/select", "traced", 200, disk), "what it was")
    on_screen(machine.run(requests), request, disk)


def nothing_of_itself(machine, analysis):
    """Once it is known that the index is followed itself, nothing about it is indexed any more, and nothing goes round."""
    wait_for(lambda: "is followed itself" in machine.log("blkprof-collector"), "the collector to say that the index is followed", 30)
    time.sleep(2)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    time.sleep(4)
    analysis.commit("blkprof")
    about = ask("blkprof", q='pid_i:%d AND event_timestamp_dt:["%s" TO *]' % (analysis.process.pid, now), rows=3)
    check_equal(about["docs"], [], "records of the index about itself (%d)" % about["numFound"])
    url = "http://127.0.0.1:6063/api/v1/requests?count=1&where=pid_i=%d" % analysis.process.pid
    with urllib.request.urlopen(url, timeout=30) as answer:
        check(json.load(answer)["sum"]["requests"] > 0, "they are in the store")


def readme():
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch())
        machine = stack.enter_context(Machine(folder))
        tool, disk = stack.enter_context(slow_disk(os.path.join(folder, "shop")))
        options = ["-Dsolr.install.dir=/opt/solr", "-XX:TieredStopAtLevel=1"]
        shop = solr.Solr(os.path.join(folder, "shop"), options=options)
        analysis = solr.Solr(os.path.join(folder, "analysis"), heap="128m", options=options, port=ANALYSIS)
        shutil.rmtree(os.path.join(analysis.home, "blkprof"))  # it has no such core yet
        for server in (shop, analysis):
            stack.callback(server.kill)
            server.launch()
        for server in (shop, analysis):
            server.wait()
        solrload.fill(shop, "traced", DOCUMENTS)
        print("   two Solrs after %.1f s" % (time.monotonic() - start), flush=True)
        block_live, block_set_up, block_ask = commands()
        live(machine, block_live, shop, tool, disk)
        machine.run(block_set_up)
        wait_for(lambda: "backend " in machine.log("blkprof-agent"), "the agent", 30)
        time.sleep(2)
        request = slow_query(shop, tool, "slow")
        found(machine, block_ask, request, disk)
        nothing_of_itself(machine, analysis)


alone()
testing.main(readme)
