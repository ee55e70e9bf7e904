#!/usr/bin/env python3
# test: program=plain timeout=240
# SPDX-License-Identifier: Apache-2.0
"""The agent's HTTP: profiles pulled live out of the recording that goes on for the collector, metrics, tokens and TLS, and
what clients may do to it."""
import collections
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from lib import blkprof, devices, testing
from lib.agent import WINDOW, Agent
from lib.load import Load, by_function, ioload_args
from lib.pprof import OPS, READ_BYTES, Profile
from lib.testing import check, check_between, check_equal, wait_for

LOCAL = ("listen = 127.0.0.1:0",)
PATH = "/debug/pprof/io"
TOKEN = "0123456789abcdef-e2e"
Answer = collections.namedtuple("Answer", "status headers body")


def get(agent, path, timeout=60):
    try:
        with urllib.request.urlopen("http://%s%s" % (agent.address(), path), timeout=timeout) as r:
            return Answer(r.status, r.headers, r.read())
    except urllib.error.HTTPError as e:
        return Answer(e.code, e.headers, e.read())


class Pull(threading.Thread):
    """A pull of its own thread."""

    def __init__(self, agent, query):
        super().__init__(daemon=True)
        self.agent, self.query, self.result = agent, query, None
        self.start()

    def run(self):
        self.result = get(self.agent, PATH + "?" + self.query)

    def answer(self):
        self.join(120)
        return self.result

    def profile(self):
        answer = self.answer()
        if answer.status != 200:
            raise RuntimeError("%s: %d %r" % (self.query, answer.status, answer.body))
        return Profile(answer.body)


def go_pprof(folder, *args, **more):
    env = dict(os.environ, PPROF_TMPDIR=folder, **more)
    return subprocess.run(["go", "tool", "pprof", *args], env=env, text=True, capture_output=True, timeout=120)


def numbers(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line and line[0] != "#"}


def metrics_of(agent):
    return numbers(get(agent, "/metrics").body.decode())


def wait_pulls(agent, n):
    wait_for(lambda: metrics_of(agent)["blkprof_agent_pulls_running"] == n, "%d pulls to run" % n, 60)


def live_pulls():
    """Two scrapers and go tool pprof at once see what the load did, each by itself; so does what is shipped."""
    with testing.scratch() as folder, devices.zram() as disk, Agent(folder, window="2s", agent=LOCAL) as agent:
        name = os.path.basename(disk)
        args = ioload_args(disk, "read_index:pread:count=2503,rate=900", "scan_table:pread:count=1009,rate=400",
                           extra=("--parallel",))
        queries = ("seconds=13", "seconds=12", "seconds=12&device=" + name, "seconds=12&service=ioload&labels=none&root=device,op",
                   "seconds=12&service=no-such&type=read_bytes")
        with Load(args, linger=True) as load:
            pulls = [Pull(agent, q) for q in queries]
            go = None
            if shutil.which("go"):
                go = threading.Thread(target=lambda: results.append(go_pprof(
                    folder, "-sample_index=io_ops", "-top", "-nodecount=500", "http://%s%s?seconds=12" % (agent.address(), PATH))))
                results = []
                go.start()
            wait_pulls(agent, len(pulls) + (go is not None))
            load.start()
            truth = by_function(load.truth())
            profiles = [p.profile() for p in pulls]
            if go:
                go.join(120)
            load.end()
        agent.stop()
        done = sum(e["calls"] for e in truth.values())
        for query, p in zip(queries[:4], profiles):
            ours = p if "labels=none" in query else p.select(device=name, op="read")
            check_equal(ours.total(OPS), done, query + ": operations")
            check_equal(ours.total(READ_BYTES), sum(e["bytes"] for e in truth.values()), query + ": bytes")
            for function, entry in truth.items():
                # The first moments of a program, until its unwind tables are there, may lack the function.
                check_between(ours.select(frame=function).total(OPS), 0.9 * entry["calls"], entry["calls"], query + ": " + function)
            seconds = int(re.search(r"seconds=(\d+)", query)[1])
            check_between(p.duration_ns / 1e9, seconds - 0.001, seconds + 20, query + ": duration")
        shaped, absent = profiles[3], profiles[4]
        check(all(not s.labels and s.frames[-3:] == ["read", name, "ioload"] for s in shaped), "frames of root=device,op: %r" %
              [s.frames[-3:] for s in shaped][:3])
        check_equal(shaped.mappings[min(shaped.mappings)]["file"], "[service ioload]", "name of a service's profile")
        check_equal(profiles[0].mappings[min(profiles[0].mappings)]["file"], "[node test-node]", "name of a node's profile")
        check_equal((absent.total(OPS), absent.default_type, profiles[0].default_type), (0, READ_BYTES, "io_time"), "default types")
        batches = [b for b in agent.batches() if b.kind == WINDOW]
        check_equal(sum(p.select(device=name, op="read").total(OPS) for b in batches for p in b.profiles.values()), done,
                    "operations shipped")
        for a, b in zip(batches, batches[1:]):
            check_equal(b.start - a.end, 0, "gap between two shipped windows")
        check(sum(1.9e9 < b.end - b.start < 2.1e9 for b in batches) >= len(batches) / 2, "lengths of shipped windows: %r" %
              [b.end - b.start for b in batches])
        if not go:
            print("   no go: not pulled by go tool pprof")
            return
        top = results[0]
        check_equal(top.returncode, 0, "go tool pprof: " + top.stderr)
        for function, entry in truth.items():
            row = [line.split() for line in top.stdout.splitlines() if line.split()[-1:] == [function]]
            check(row and 0.9 * entry["calls"] <= int(row[0][3]) <= entry["calls"], "go tool pprof shows %s: %r of %d" %
                  (function, row, entry["calls"]))


def errors():
    with testing.scratch() as folder, Agent(folder, agent=LOCAL) as agent:
        for query, status, text in (("seconds=0", 400, "seconds"), ("seconds=301", 400, "300"), ("seconds=x", 400, "seconds"),
                                    ("second=3", 400, "there is no argument 'second'"), ("labels=all", 400, "labels = comm"),
                                    ("labels=x", 400, "few"), ("type=cpus", 400, "io_time"), ("root=pid", 400, "labels = all"),
                                    ("root=x", 400, "device"), ("&".join("service=%d" % n for n in range(40)), 400, "too many arguments")):
            a = get(agent, PATH + "?" + query)
            check_equal((a.status, a.headers["X-Go-Pprof"], a.headers["Content-Type"].split(";")[0], a.body.count(b"\n")),
                        (status, "1", "text/plain", 1), query)
            check(text in a.body.decode(), "%s: %r" % (query, a.body))
        check_equal(get(agent, "/debug/pprof/heap").status, 404, "another path")
        check_equal(get(agent, "/healthz").body, b"ok\n", "healthz")
        # Parca adds `seconds` to one address for each of its targets.
        check_equal(get(agent, PATH + "?" + "&".join(["seconds=1"] * 100)).status, 200, "an argument that is repeated")
        if shutil.which("go"):
            said = go_pprof(folder, "-top", "http://%s%s?seconds=1&root=x" % (agent.address(), PATH))
            check(said.returncode and "server response: 400 Bad Request - root=x" in said.stderr, "go tool pprof: " + said.stderr)
        # As many as there may be; those whose clients have gone make room.
        sockets = [ask(agent, PATH + "?seconds=100") for _ in range(16)]
        wait_pulls(agent, 16)
        a = get(agent, PATH + "?seconds=1")
        check_equal((a.status, a.headers["Retry-After"], a.headers["X-Go-Pprof"]), (503, "5", "1"), "one pull too many")
        check(b"already" in a.body, "one pull too many: %r" % a.body)
        for s in sockets:
            s.close()
        wait_for(lambda: get(agent, PATH + "?seconds=1").status == 200, "room for a pull", 20)
        agent.stop()


def ask(agent, path, host=None, size=None):
    """A connection that has asked and does not read."""
    address, port = agent.address().rsplit(":", 1)
    s = socket.socket()
    if size:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    s.settimeout(60)
    s.connect((address, int(port)))
    s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host or address)).encode())
    return s


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def certificate(folder, name, ca, usage):
    with open(os.path.join(folder, name + ".ext"), "w") as f:
        f.write("subjectAltName = IP:127.0.0.1\nextendedKeyUsage = %s\n" % usage)
    openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
    openssl(folder, "x509", "-req", "-in", name + ".csr", "-CA", ca + ".crt", "-CAkey", ca + ".key", "-CAcreateserial", "-days", "2",
            "-extfile", name + ".ext", "-out", name + ".crt")


def authorities(folder):
    for ca in ("ca", "other"):
        openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", ca + ".key", "-out", ca + ".crt", "-days", "2",
                "-subj", "/CN=" + ca)
    certificate(folder, "server", "ca", "serverAuth")
    certificate(folder, "client", "ca", "clientAuth")
    certificate(folder, "stranger", "other", "clientAuth")


def curl(url, *args):
    """The status, or curl's own exit code below 100."""
    r = subprocess.run(["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "30", *args, url], text=True,
                       capture_output=True)
    return int(r.stdout) or r.returncode


def again(agent, *lines):
    heard = agent.log().count("was read again")
    agent.configure(lines)
    agent.signal(signal.SIGHUP)
    wait_for(lambda: agent.log().count("was read again") > heard, "the new configuration", 30)


def tokens_and_tls():
    if not shutil.which("curl") or not shutil.which("openssl"):
        testing.skip("needs curl and openssl")
    with testing.scratch() as folder, Agent(folder, agent=LOCAL) as agent:
        authorities(folder)
        token = os.path.join(folder, "token")
        with open(token, "w") as f:
            f.write(TOKEN + "\n")
        os.chmod(token, 0o600)
        path = lambda name: os.path.join(folder, name)
        again(agent, *LOCAL, "token_file = " + token)
        host = agent.address()
        url, bearer = "http://%s/metrics" % host, ("-H", "Authorization: Bearer " + TOKEN)
        check_equal(curl(url), 401, "without the token")
        check_equal(curl(url, *bearer), 200, "with the token")
        check_equal(curl("http://u:%s@%s/metrics" % (TOKEN, host)), 200, "with the token as the URL's password")
        check_equal(curl("http://u:%sx@%s/metrics" % (TOKEN, host)), 401, "with a wrong password")
        check_equal(curl("http://%s/healthz" % host), 200, "healthz, which is open")
        go = shutil.which("go")
        if go:
            said = go_pprof(folder, "-top", "http://u:%s@%s%s?seconds=1" % (TOKEN, host, PATH))
            check_equal(said.returncode, 0, "go tool pprof with the token: " + said.stderr)
            said = go_pprof(folder, "-top", "http://%s%s?seconds=1" % (host, PATH))
            check("a token is needed" in said.stderr, "go tool pprof without the token: " + said.stderr)

        tls = ("tls_cert = " + path("server.crt"), "tls_key = " + path("server.key"))
        again(agent, *LOCAL, "token_file = " + token, *tls)
        url = "https://%s/metrics" % agent.address()
        check_equal(curl(url, "--cacert", path("ca.crt")), 401, "TLS without the token")
        check_equal(curl(url, "--cacert", path("ca.crt"), *bearer), 200, "TLS and the token")
        check_equal(curl(url, "--cacert", path("other.crt"), *bearer), 60, "a client that does not trust the server")
        if go:
            said = go_pprof(folder, "-top", "https://u:%s@%s%s?seconds=1" % (TOKEN, agent.address(), PATH),
                            SSL_CERT_FILE=path("ca.crt"))
            check_equal(said.returncode, 0, "go tool pprof over TLS: " + said.stderr)

        again(agent, *LOCAL, *tls, "tls_client_ca = " + path("ca.crt"))
        url = "https://%s/metrics" % agent.address()
        mine = ("--cacert", path("ca.crt"), "--cert", path("client.crt"), "--key", path("client.key"))
        check_equal(curl(url, *mine), 200, "a certificate")
        check_equal(curl(url, "--cacert", path("ca.crt")), 401, "no certificate")
        check(curl(url, "--cacert", path("ca.crt"), "--cert", path("stranger.crt"), "--key", path("stranger.key")) != 200,
              "a certificate of somebody else")

        # What is wrong with it is said, and the server of before goes on.
        agent.configure(("listen = 0.0.0.0:0",))
        agent.signal(signal.SIGHUP)
        agent.hears("the new configuration is refused")
        check("can be reached from other machines: set token_file" in agent.log(), "an open port: " + agent.log()[-500:])
        url = "https://%s/metrics" % agent.address()
        check_equal(curl(url, *mine), 200, "the server of before")
        agent.stop()
        refused = subprocess.run([blkprof.path(), "agent", "-c", agent.config], text=True, capture_output=True, timeout=60)
        check(refused.returncode == 1 and "set token_file" in refused.stderr, "a start with an open port: %r" % refused)


def metrics():
    with testing.scratch() as folder, devices.zram() as disk, Agent(folder, window="1s", agent=LOCAL) as agent:
        with Load(ioload_args(disk, "read_index:pread:count=1009"), linger=True) as load:
            load.start()
            truth = by_function(load.truth())["read_index"]
            labels = '{service="ioload",device="%s",op="read"}' % os.path.basename(disk)
            ours = "blkprof_agent_io_operations_total" + labels
            wait_for(lambda: metrics_of(agent).get(ours, 0) >= truth["calls"], "the load's metrics", 30)
            load.end()
        answer = get(agent, "/metrics")
        check(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), "type: " + answer.headers["Content-Type"])
        text = answer.body.decode()
        before = numbers(text)
        check_equal(before[ours], truth["calls"], "operations")
        check_equal(before["blkprof_agent_io_bytes_total" + labels], truth["bytes"], "bytes")
        check(before["blkprof_agent_io_seconds_total" + labels] > 0, "seconds")
        if shutil.which("promtool"):
            said = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, timeout=60)
            check_equal((said.returncode, said.stdout + said.stderr), (0, ""), "promtool")
        else:
            print("   no promtool: not checked by it")
        subprocess.run(["dd", "if=/dev/zero", "of=" + folder + "/x", "bs=64k", "count=8", "oflag=direct"], stderr=subprocess.DEVNULL)
        agent.wait_windows(len(agent.batches()) + 2)
        text = get(agent, "/metrics").body.decode()
        now, counters = numbers(text), re.findall(r"^# TYPE (\S+) counter$", text, re.M)
        for name, value in before.items():
            if name.split("{")[0] in counters:
                check(now.get(name, 0) >= value, "%s fell from %r to %r" % (name, value, now.get(name)))
        agent.stop()


def resident(agent):
    with open("/proc/%d/status" % agent.process.pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) * 1024


def sockets_of(agent):
    folder, n = "/proc/%d/fd" % agent.process.pid, 0
    for fd in os.listdir(folder):
        try:
            n += os.readlink(os.path.join(folder, fd)).startswith("socket:")
        except FileNotFoundError:
            pass
    return n


def crowd():
    """500 connections that say half a request, and clients that do not read: the recording goes on, memory stays bounded."""
    with testing.scratch() as folder, Agent(folder, window="1s", agent=LOCAL) as agent:
        get(agent, PATH + "?seconds=1")
        agent.wait_windows(3)
        before = resident(agent)
        slow = [ask(agent, "/metrics", size=2048) for _ in range(8)]
        address, port = agent.address().rsplit(":", 1)
        many = []
        for _ in range(500):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((address, int(port)))
            many.append(s)
        for s in many:
            try:
                s.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 1000)
            except OSError:
                pass
        begun = len(agent.batches())
        agent.wait_windows(begun + 3)
        grown = resident(agent) - before
        print("   resident memory grew by %.1f MiB" % (grown / 2 ** 20))
        check(grown < 32 << 20, "resident memory grew by %d bytes" % grown)
        check_between(sockets_of(agent), 8, 64 + 16, "sockets of the agent")
        for s in slow + many:
            s.close()
        check_equal(get(agent, "/healthz").status, 200, "healthz")
        check_equal(get(agent, PATH + "?seconds=1").status, 200, "a pull after the crowd")
        agent.stop()


def stop_during_a_pull():
    with testing.scratch() as folder, Agent(folder, agent=LOCAL) as agent:
        pulls = [Pull(agent, "seconds=100") for _ in range(3)]
        unread = ask(agent, PATH + "?seconds=100")
        wait_pulls(agent, 4)
        took = agent.stop()
        print("   the agent ended %.2f s after SIGTERM" % took)
        check(took < 10, "the agent ended %.2f s after SIGTERM" % took)
        for p in pulls:
            a = p.answer()
            check(a and a.status == 503 and b"stopping" in a.body, "what the client is told: %r" % (a,))
        unread.close()


def reload_during_a_pull():
    """The probes are replaced: a pull cannot go on, and says so; the shipped windows have no gap."""
    with testing.scratch() as folder, Agent(folder, window="1s", agent=LOCAL) as agent:
        p = Pull(agent, "seconds=100")
        wait_pulls(agent, 1)
        again(agent, *LOCAL)
        a = p.answer()
        check(a and a.status == 503 and b"try again" in a.body, "what the client is told: %r" % (a,))
        check_equal(get(agent, PATH + "?seconds=1").status, 200, "a pull afterwards")
        agent.stop()
        batches = [b for b in agent.batches() if b.kind == WINDOW]
        for a, b in zip(batches, batches[1:]):
            check(0 <= b.start - a.end < 10 ** 9, "gap between two windows: %d" % (b.start - a.end))


testing.main(live_pulls, errors, tokens_and_tls, metrics, crowd, stop_during_a_pull, reload_during_a_pull)
