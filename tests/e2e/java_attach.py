#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# test: program=plain timeout=240
"""JVMs without an attach socket are made to open one where a SIGQUIT is safe, and are let be everywhere else: none dies, none
prints a dump of its threads, no file stays."""
import contextlib
import glob
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from lib import agent, blkprof, devices, testing
from lib.programs import JAVA
from lib.testing import check, check_equal, wait_for

SERVER = """
import com.sun.net.httpserver.*; import java.net.*; import java.util.concurrent.*; import java.util.concurrent.atomic.*;
public class Named { public static void main(String[] a) throws Exception {
  AtomicInteger n = new AtomicInteger();
  HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
  s.setExecutor(Executors.newFixedThreadPool(2, r -> new Thread(r, "a-worker-with-a-long-name-" + n.incrementAndGet())));
  s.createContext("/", x -> { byte[] b = "hi".getBytes(); x.sendResponseHeaders(200, b.length); x.getResponseBody().write(b); x.close(); });
  s.start(); System.out.println(s.getAddress().getPort()); } }
"""

# What a process may do that is no JVM: be called java, have the library in its memory, catch SIGQUIT.
PRETENDER = """
import ctypes, mmap, os, signal, sys, time
signal.signal(signal.SIGQUIT, lambda *_: print("SIGQUIT", flush=True))
fd = os.open(sys.argv[1], os.O_RDONLY)
memory = mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
ctypes.CDLL(None).prctl(15, b"Signal Dispatch", 0, 0, 0)
print(0, flush=True)
while True:
    time.sleep(1)
"""


def javas():
    """One `java` for each JDK that is here."""
    found = {os.path.realpath(p) for p in glob.glob("/usr/lib/jvm/*/bin/java")}
    if not found or not shutil.which("javac"):
        testing.skip("no JDK here")
    return sorted(found)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write(text)
    return path


@contextlib.contextmanager
def classes():
    """A folder with the compiled programs that everybody may read."""
    with testing.scratch() as folder:
        os.chmod(folder, 0o755)
        sources = [write(folder, "Named.java", SERVER), write(folder, "Pages.java", JAVA)]
        devices.sh("javac", "--release", "17", "-d", folder, *sources, timeout=120)
        yield folder


def clear(pid):
    """What a JVM that was killed leaves."""
    for left in glob.glob("/tmp/perf-%d.map" % pid) + glob.glob("/tmp/.java_pid%d" % pid):
        os.unlink(left)


class Process:
    """A process that prints its port; what it printed then is in `path`."""

    def __init__(self, folder, command, cwd=None, find=None, **kw):
        self.path = os.path.join(folder, "printed-%d" % time.monotonic_ns())
        with open(self.path, "w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=cwd or folder, **kw)
        wait_for(lambda: self.printed().endswith("\n") and self.printed().split("\n")[-2].isdigit(), "its port", 60)
        self.port = int(self.printed().split("\n")[-2])
        self.pid = find(self.process.pid) if find else self.process.pid

    def printed(self):
        with open(self.path) as f:
            return f.read()

    def ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/x")
        connection.getresponse().read()
        connection.close()

    def unharmed(self, what):
        check_equal(self.process.poll(), None, "%s: its end" % what)
        printed = self.printed()
        check("thread dump" not in printed and "SIGQUIT" not in printed, "%s printed %r" % (what, printed[-300:]))

    def close(self):
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait(timeout=30)
        clear(self.pid)


@contextlib.contextmanager
def running(*arguments, **kw):
    process = Process(*arguments, **kw)
    try:
        yield process
    finally:
        process.close()


def follow(folder, process, seconds, done=None, options=("--java-names",)):
    """(records, what was said) of `requests` while it is asked; ends sooner when done(records)."""
    out = os.path.join(folder, "records-%d" % time.monotonic_ns())
    with open(out, "w") as stdout, open(out + ".stderr", "w") as stderr:
        following = subprocess.Popen([blkprof.path(), "requests", "-p", str(process.pid), "--json", *options], stdout=stdout, stderr=stderr)

    def read():
        with open(out) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and following.poll() is None and not (done and done(read())):
            if process.port:
                process.ask()
            time.sleep(0.3)
    finally:
        following.send_signal(signal.SIGINT)
        check_equal(following.wait(timeout=70), 0, "status of requests")
    with open(out + ".stderr") as f:
        return read(), f.read()


def are_named(records):
    return any(r.get("thread_s", "").startswith("a-worker-with-a-long-name-") for r in records)


def no_file_in(*folders):
    for folder in folders:
        check_equal(glob.glob(os.path.join(folder, ".attach_pid*")), [], "files left in %s" % folder)


def opens():
    """A JVM that nobody has attached to gets a socket, and its threads their names; the second time nothing is sent."""
    with classes() as folder:
        for java in javas():
            with running(folder, [java, "-Xmx64m", "-cp", folder, "Named"]) as jvm:
                records, said = follow(folder, jvm, 60, are_named)
                check(are_named(records), "%s: no names; it said %r" % (java, said))
                check("1 signals" in said and "1 opened" in said, "%s: said %r" % (java, said))
                check(os.path.exists("/tmp/.java_pid%d" % jvm.pid), "%s has no socket" % java)
                records, said = follow(folder, jvm, 60, are_named)
                check(are_named(records) and "signals" not in said, "%s: again, it said %r" % (java, said))
                jvm.unharmed(java)
            no_file_in(folder, "/tmp")


def let_be():
    """-Xrs would die of it, -XX:+DisableAttachMechanism print a dump; without --java-names nothing is sent."""
    with classes() as folder:
        java = javas()[-1]
        arguments = write(folder, "arguments", "# of the JVM\n-Xmx64m \"-XX:+DisableAttachMechanism\"\n")
        for options, env, cause in ((["@" + arguments], {}, "attach_off"), (["-Xrs"], {"JDK_JAVA_OPTIONS": "-XX:+DisableAttachMechanism"}, "attach_off")):
            with running(folder, [java, *options, "-cp", folder, "Named"], env=dict(os.environ, **env)) as jvm:
                records, said = follow(folder, jvm, 30, lambda records: len(records) > 8)
                check("1 %s" % cause in said and "signals:" not in said, "%s %s: it said %r" % (options, env, said))
                check(records and not any(r.get("thread_s") for r in records), "%s %s: names" % (options, env))
                jvm.unharmed("%s %s" % (options, env))
        with running(folder, [java, "-Xrs", "-cp", folder, "Named"]) as jvm:  # has its socket from the start
            records, said = follow(folder, jvm, 60, are_named)
            check(are_named(records) and "signals:" not in said, "-Xrs: it said %r" % said)
            jvm.unharmed("-Xrs")
        with running(folder, [java, "-cp", folder, "Named"]) as jvm:
            follow(folder, jvm, 20, lambda records: len(records) > 8, ())
            check(not os.path.exists("/tmp/.java_pid%d" % jvm.pid), "it was asked without --java-names")
        no_file_in(folder, "/tmp")


def starting():
    """SIGQUIT kills a JVM that is still starting: it is found by its pid at once, and none dies."""
    with classes() as folder:
        java = javas()[0]
        following = subprocess.Popen([blkprof.path(), "requests", "--cmdline", folder + " Named", "--java-names", "--json"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            for _ in range(6):
                with running(folder, [java, "-Xint", "-cp", folder, "Named"]) as jvm:
                    time.sleep(0.5)
                    jvm.unharmed("a JVM that has just started")
        finally:
            following.send_signal(signal.SIGINT)
            said = following.communicate(timeout=70)[1]
        print("   %s" % said.replace("\n", "; "))
        check("unread" not in said and "off:" not in said and "silent" not in said, "it said %r" % said)
        no_file_in(folder, "/tmp")


def many():
    """A few signals a minute, however many JVMs there are."""
    with classes() as folder, contextlib.ExitStack() as all_of_them:
        jvms = [all_of_them.enter_context(running(folder, [javas()[0], "-Xmx32m", "-cp", folder, "Named"])) for _ in range(6)]
        following = subprocess.Popen([blkprof.path(), "requests", "--cmdline", folder + " Named", "--java-names", "--json"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

        def have_sockets():
            return sum(os.path.exists("/tmp/.java_pid%d" % jvm.pid) for jvm in jvms)
        try:
            wait_for(lambda: have_sockets() >= 4, "four sockets", 40)
            time.sleep(5)
            check_equal(have_sockets(), 4, "sockets")
        finally:
            following.send_signal(signal.SIGINT)
            said = following.communicate(timeout=70)[1]
        check("4 signals" in said and "2 waiting" in said, "it said %r" % said)
        for jvm in jvms:
            jvm.unharmed("one of many")
        no_file_in(folder, "/tmp")


def pretenders():
    """Nothing that is no JVM is sent anything, whatever it is called and has in its memory."""
    java = javas()[0]
    library = os.path.join(os.path.dirname(os.path.dirname(java)), "lib", "server", "libjvm.so")
    with testing.scratch() as folder:
        program = shutil.copy(os.path.realpath(sys.executable), os.path.join(folder, "java"))
        for command in ([program, "-c", PRETENDER, library], [sys.executable, "-c", PRETENDER, library],
                        [program, "-c", "import time; print(0, flush=True); time.sleep(100)"]):
            with running(folder, command, env=dict(os.environ, PYTHONHOME=sys.base_prefix)) as other:
                _, said = follow(folder, other, 4)
                check("signals:" not in said, "%s: it said %r" % (command[0], said))
                other.unharmed(command[0])
        no_file_in(folder, "/tmp")


def stopped():
    """A JVM that is stopped would see the signal when the file is gone."""
    with classes() as folder, running(folder, [javas()[0], "-cp", folder, "Named"]) as jvm:
        port, jvm.port = jvm.port, 0
        os.kill(jvm.pid, signal.SIGSTOP)
        _, said = follow(folder, jvm, 3)
        os.kill(jvm.pid, signal.SIGCONT)
        check("signals:" not in said, "it said %r" % said)
        jvm.port = port
        records, said = follow(folder, jvm, 60, are_named)
        check(are_named(records), "names afterwards; it said %r" % said)
        jvm.unharmed("a stopped one")


def planted():
    """A link where the file would be is not followed, and a file of somebody else's is let be."""
    with classes() as folder, testing.scratch() as cwd, running(folder, [javas()[0], "-cp", folder, "Named"], cwd=cwd) as jvm:
        name, victim = os.path.join(cwd, ".attach_pid%d" % jvm.pid), os.path.join(folder, "victim")
        os.symlink(victim, name)
        _, said = follow(folder, jvm, 3)
        check(not os.path.exists(victim) and os.path.islink(name), "the link was followed")
        check("signals:" not in said, "it said %r" % said)
        jvm.unharmed("the one with a link")


def contained():
    """Another user's, in namespaces of its own, with its own /tmp and a folder that it may not write to."""
    if not shutil.which("unshare") or not shutil.which("setpriv"):
        testing.skip("no unshare or setpriv here")

    def child(pid):
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return int(f.read().split()[0])
    with classes() as folder:
        for java in javas():
            inside = "mount -t tmpfs tmpfs /tmp && chmod 1777 /tmp && cd %s && exec setpriv --reuid=65534 --regid=65534 --clear-groups %s -Xmx64m -cp . Named" % (
                folder, java)
            with running(folder, ["unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c", inside], find=child) as jvm:
                records, said = follow(folder, jvm, 60, are_named)
                check(are_named(records), "%s: no names; it said %r" % (java, said))
                tmp = "/proc/%d/root/tmp" % jvm.pid
                check_equal(os.stat(tmp + "/.java_pid1").st_uid, 65534, "the socket's user")
                no_file_in(folder, tmp, "/tmp")
                jvm.unharmed(java)


def quality():
    """Whether stacks of Java code are whole is in records of requests and threads, and in profiles; of JVMs only."""
    java = javas()[0]
    with classes() as folder, devices.file_of(folder + "/data", 1 << 20) as data:
        for option, want in (("-XX:+PreserveFramePointer", "frame_pointers"), ("-XX:-PreserveFramePointer", "no_frame_pointers")):
            def done(records):
                return {"request", "thread"} <= {r["kind_s"] for r in records if r.get("stack_quality_s")}
            with running(folder, [java, option, "-cp", folder, "Named"]) as jvm:
                records, _ = follow(folder, jvm, 30, done, ("--threads",))
            check(done(records), "%s: of requests and threads: %s" % (option, {(r["kind_s"], r.get("stack_quality_s")) for r in records}))
            check_equal({r["stack_quality_s"] for r in records if "stack_quality_s" in r}, {want}, option)
            profile, result = blkprof.record_command(folder, ["--rate", "0"], [java, option, "-cp", folder, "Pages", data, "4"])
            said = [c for c in profile.comments if c.startswith("java ")]
            check_equal(len(said), int(want != "frame_pointers"), "%s: comments %s" % (option, said))
            check_equal("start it with -XX:+PreserveFramePointer" in result.stderr, bool(said), "%s: %s" % (option, result.stderr))
        profile, result = blkprof.record_command(folder, [], [sys.executable, "-c", "open(%r, 'rb').read()" % data])
        check_equal([c for c in profile.comments if c.startswith("java ")], [], "of Python")


def in_the_agent():
    """java_attach = yes: the perf map of a JVM that does I/O, and the count in the metrics; off: nothing."""
    with classes() as folder, devices.file_of(folder + "/data", 1 << 20) as data:
        java = javas()[0]
        for on in (False, True):
            command = [java, "-XX:+PreserveFramePointer", "-cp", folder, "Pages", data, "60"]
            jvm = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            path = "/tmp/perf-%d.map" % jvm.pid
            try:
                with agent.Agent(folder, agent=("java_attach = %s" % ("yes" if on else "no"), "listen = 127.0.0.1:0")) as daemon:
                    if on:
                        wait_for(lambda: os.path.exists(path), "the perf map", 40)
                        check_equal(daemon.metrics().get('blkprof_agent_java_attach_total{what="signals"}'), 1, "signals")
                        daemon.wait_windows(2)
                    else:
                        daemon.wait_windows(3)
                        check(not os.path.exists("/tmp/.java_pid%d" % jvm.pid), "it has a socket")
                check_equal(jvm.poll(), None, "its end")
            finally:
                jvm.kill()
                printed = jvm.communicate()[0]
                clear(jvm.pid)
            check_equal(printed, "", "what it printed")
            no_file_in(folder, "/tmp")


if __name__ == "__main__":
    testing.main(opens, let_be, starting, many, pretenders, stopped, planted, contained, quality, in_the_agent)
