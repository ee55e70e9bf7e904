# SPDX-License-Identifier: Apache-2.0
"""A real Solr 9 in a JVM of its own, built from Maven Central once and kept under .cache/solr (or $BLKPROF_CACHE)."""
import base64
import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

from .collector import free_port
from .testing import skip, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SOURCE = os.path.join(ROOT, "tests", "solr")
CACHE = os.path.join(os.environ.get("BLKPROF_CACHE") or os.path.join(ROOT, ".cache"), "solr")


def _identity():
    """Of what the server is built from."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(os.path.join(SOURCE, "server")):
        folders.sort()
        for name in sorted(files):
            with open(os.path.join(folder, name), "rb") as f:
                digest.update(name.encode() + b"\0" + f.read())
    return digest.hexdigest()[:16]


def _maven(folder):
    command = ["mvn", "-q", "-B", "-Dmaven.repo.local=" + os.path.join(CACHE, "m2"), "package", "dependency:copy-dependencies",
               "-DoutputDirectory=target/lib", "-DincludeScope=runtime"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400, check=False)
    if done.returncode and ("Could not transfer" in done.stdout or "Could not resolve" in done.stdout or "Unknown host" in done.stdout):
        skip("Maven cannot fetch Solr: %s" % done.stdout.strip().splitlines()[0][:200])
    if done.returncode:
        raise RuntimeError("Maven cannot build the server: %s" % done.stdout[-2000:])


def classpath():
    """Builds the server if need be; skips where that cannot be done."""
    for program in ("java", "mvn"):
        if not shutil.which(program):
            skip("no %s here" % program)
    os.makedirs(CACHE, exist_ok=True)
    target = os.path.join(CACHE, "server-" + _identity())
    with open(os.path.join(CACHE, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(target):
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                build = os.path.join(folder, "server")
                shutil.copytree(os.path.join(SOURCE, "server"), build)
                _maven(build)
                lib = os.path.join(build, "target", "lib")
                for name in os.listdir(os.path.join(build, "target")):
                    if name.endswith(".jar"):
                        shutil.move(os.path.join(build, "target", name), os.path.join(lib, "aa-" + name))
                os.rename(lib, target)
    return os.path.join(target, "*")


class Answer:
    def __init__(self, status, body):
        self.status, self.body = status, body

    def json(self):
        return json.loads(self.body)


class Solr:
    """A server with a home of its own in `folder`: cores `traced` (fields as in _default) and `blkprof` (none yet)."""

    def __init__(self, folder, heap="192m", options=(), port=None, home="home"):
        self.folder, self.heap, self.options = folder, heap, list(options)
        self.home, self.logs = os.path.join(folder, "home"), os.path.join(folder, "logs")
        self.port, self.process = port or free_port(), None
        self.classpath, self.password = classpath(), None
        os.makedirs(folder, exist_ok=True)
        shutil.copytree(os.path.join(SOURCE, home), self.home)
        os.makedirs(self.logs)

    def protect(self):
        """From the next start on, user and password are asked for."""
        self.password = "SolrRocks"
        known = "IV0EHq1OnNrj6gvRCwvFwTrZ1+z1oBbnQdiVC3otuq0= Ndd7LKvVBAaZIF0QAVi1ekCfAJXr1GGfLtRUXhgrF8c="
        with open(os.path.join(self.home, "security.json"), "w") as f:
            json.dump({"authentication": {"class": "solr.BasicAuthPlugin", "blockUnknown": True, "credentials": {"solr": known}}}, f)
        return self

    def url(self, core):
        return "http://127.0.0.1:%d/solr/%s" % (self.port, core)

    def launch(self):
        ready = os.path.join(self.logs, "ready")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(ready)
        command = ["java", "-Xms" + self.heap, "-Xmx" + self.heap, "-XX:+UseSerialGC", "-XX:+PreserveFramePointer", *self.options,
                   "-Dsolr.log.dir=" + self.logs, "-Djetty.port=%d" % self.port, "-Dserver.readyfile=" + ready,
                   "-Dserver.requestlog=" + os.path.join(self.logs, "yyyy_mm_dd.request.log"), "-cp", self.classpath,
                   "blkprof.SolrServer", self.home, str(self.port)]
        with open(os.path.join(self.logs, "console"), "a") as console:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, cwd=self.folder)
        return self

    def wait(self):
        ready = os.path.join(self.logs, "ready")
        wait_for(lambda: os.path.exists(ready) or self.process.poll() is not None, "Solr", 120)
        if self.process.poll() is not None:
            raise RuntimeError("Solr does not start: %s" % self.console()[-1500:])
        return self

    def start(self):
        return self.launch().wait()

    def console(self):
        with open(os.path.join(self.logs, "console")) as f:
            return f.read()

    def end(self, number=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def kill(self):
        self.end(signal.SIGKILL)

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.kill()

    def request(self, method, path, body=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            headers = {"Content-Type": "application/json"} if body is not None else {}
            if self.password:
                headers["Authorization"] = "Basic " + base64.b64encode(("solr:" + self.password).encode()).decode()
            connection.request(method, "/solr/" + path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())

    def select(self, core, **parameters):
        """A query's answer; the names of parameters have _ for . ("stats_field")."""
        pairs = [(name.replace("_", "."), value) for name, value in parameters.items()]
        answer = self.request("GET", "%s/select?%s" % (core, urllib.parse.urlencode(pairs)))
        if answer.status != 200:
            raise RuntimeError("query of Solr: %d %s" % (answer.status, answer.body[:500]))
        return answer.json()

    def count(self, core, query="*:*"):
        return self.select(core, q=query, rows=0)["response"]["numFound"]

    def commit(self, core):
        answer = self.request("POST", core + "/update?commit=true", b"[]")
        if answer.status != 200:
            raise RuntimeError("commit: %d %s" % (answer.status, answer.body[:500]))


def _two_ports():
    """One, and the one 1000 above it, where the ZooKeeper within Solr listens."""
    while True:
        port = free_port()
        if port + 1000 < 65536:
            with socket.socket() as s:
                with contextlib.suppress(OSError):
                    s.bind(("127.0.0.1", port + 1000))
                    return port


class Cloud:
    """A SolrCloud of two nodes in two JVMs, which speak HTTP/1.1 with each other."""

    def __init__(self, folder, heap="160m"):
        port = _two_ports()
        common = ["-Dsolr.http1=true", "-Dsolr.default.confdir=" + os.path.join(SOURCE, "home", "configsets", "traced", "conf")]
        self.nodes = [Solr(os.path.join(folder, "node1"), heap, [*common, "-DzkRun"], port, "cloud"),
                      Solr(os.path.join(folder, "node2"), heap, [*common, "-DzkHost=127.0.0.1:%d" % (port + 1000)], None, "cloud")]

    def __enter__(self):
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait()
        return self

    def __exit__(self, *exc):
        for node in reversed(self.nodes):
            node.kill()

    def create(self, name, shards=2):
        answer = self.nodes[0].request("GET", "admin/collections?action=CREATE&name=%s&numShards=%d&replicationFactor=1"
                                       "&collection.configName=_default" % (name, shards), timeout=180)
        if answer.status != 200:
            raise RuntimeError("CREATE: %d %s" % (answer.status, answer.body[:500]))
