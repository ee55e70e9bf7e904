# SPDX-License-Identifier: Apache-2.0
"""Packaged programs, as the distribution ships them, doing real I/O with cold caches."""
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys

from . import testing

# Where a stack may begin: what the C library and the dynamic linker start a process or a thread with, and main.
STARTS = {"main", "_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "start_thread", "clone", "clone3",
          "__clone", "__clone3", "_dl_start_user", "_dl_start", "runtime.main", "runtime.goexit", "runtime.mcall", "runtime.rt0_go",
          "runtime.mstart", "thread_start", "_start_c"}
OUTERMOST = 6  # frames below the process's own that are looked at: programs without symbols have an unnamed one first


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3")


def is_whole(sample):
    frames = sample.frames[::-1][1:]
    if any(f.startswith(("[broken stack", "[unwind tables", "[truncated]", "[stack lost]", "[no user stack]")) for f in frames[:1]):
        return False
    return any(f in STARTS for f in frames[:OUTERMOST])


def of_program(profile, *names):
    """Samples of user processes of these names (the root frames)."""
    return profile.where(lambda s: s.frames and s.frames[-1] in names)


def share_whole(samples, kind="io_ops"):
    total = samples.total(kind)
    return samples.where(is_whole).total(kind) / total if total else 0.0


def need(program, package):
    found = shutil.which(program)
    return found or testing.skip("%s is not installed (package %s)" % (program, package))


def tree(folder, files=16000, size=12 << 10):
    """A folder of files to read."""
    top = os.path.join(folder, "tree")
    for i in range(files):
        sub = os.path.join(top, "d%d" % (i % 60))
        os.makedirs(sub, exist_ok=True)
        with open(os.path.join(sub, "f%d" % i), "wb") as f:
            f.write(os.urandom(size))
    return top


def data_file(folder, size=64 << 20):
    path = os.path.join(folder, "data")
    with open(path, "wb") as f:
        for _ in range(size >> 20):
            f.write(os.urandom(1 << 20))
        f.flush()
        os.fsync(f.fileno())
    return path


PYTHON = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
def read_index(n):
    return os.pread(fd, 4096, n * 4096)
def serve():
    for n in range(os.fstat(fd).st_size // 4096):
        read_index(n)
serve()
"""


def python(folder):
    return ("python3",), [sys.executable, "-c", PYTHON, data_file(folder)]


def dd(folder):
    return ("dd",), [need("dd", "coreutils"), "if=" + data_file(folder, 256 << 20), "of=/dev/null", "bs=16k", "iflag=direct", "status=none"]


def tar(folder):
    return ("tar",), ["sh", "-c", 'exec tar -cf - -C "$1" . | cat >/dev/null', "sh", tree(folder)]


def rsync(folder):
    return ("rsync",), [need("rsync", "rsync"), "-a", "--whole-file", tree(folder) + "/", os.path.join(folder, "copy") + "/"]


def sqlite(folder):
    path = os.path.join(folder, "db")
    script = "create table t(id integer primary key, k integer, b blob);" \
             "with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000) insert into t select i, (i * 7919) % 40000," \
             " randomblob(1500) from n; create index k on t(k);"
    subprocess.run([need("sqlite3", "sqlite3"), path, script], check=True)
    return ("sqlite3",), ["sqlite3", path, "pragma cache_size=100; select sum(length(b)) from t where k < 8000; select count(*) from t "
                          "where hex(b) like '%ABCDEFABCDEF%';"]


# Reads pages past the page cache for so many seconds.
JAVA = """
import com.sun.nio.file.ExtendedOpenOption;
import java.nio.*;
import java.nio.channels.*;
import java.nio.file.*;
public class Pages {
    static int readPage(FileChannel c, ByteBuffer b, int i) throws Exception {
        b.clear();
        return c.read(b, (i % 256) * 4096L);
    }
    static void scanTable(FileChannel c, ByteBuffer b) throws Exception {
        for (int i = 0; i < 20000; i++) readPage(c, b, i);
    }
    public static void main(String[] args) throws Exception {
        FileChannel c = FileChannel.open(Path.of(args[0]), StandardOpenOption.READ, ExtendedOpenOption.DIRECT);
        ByteBuffer b = ByteBuffer.allocateDirect(8192).alignedSlice(4096).limit(4096).slice();
        long end = System.nanoTime() + Long.parseLong(args[1]) * 1000000000L;
        while (System.nanoTime() < end) scanTable(c, b);
    }
}
"""


def java(folder):
    source = os.path.join(folder, "Pages.java")
    with open(source, "w") as f:
        f.write(JAVA)
    return ("java",), [need("java", "default-jre-headless"), "-XX:+PreserveFramePointer", "-Xmx256m", source, data_file(folder), "8"]


COMMANDS = {"java": java, "python3": python, "dd": dd, "tar": tar, "rsync": rsync, "sqlite3": sqlite}


def as_user(user, *args):
    return ["setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups", *args]


@contextlib.contextmanager
def running(args, folder, ready, stop=signal.SIGTERM):
    """A server until the block ends; stopped by its pid."""
    with open(os.path.join(folder, "log"), "w") as log:
        process = subprocess.Popen(args, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        testing.wait_for(lambda: process.poll() is not None or ready(), args[-1], 90)
        if process.poll() is not None:
            with open(os.path.join(folder, "log")) as log:
                raise RuntimeError("%s ended: %s" % (args, log.read()[-2000:]))
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(stop)
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def postgres_binaries():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
    return found[-1] if found else testing.skip("PostgreSQL is not installed (package postgresql)")


@contextlib.contextmanager
def postgresql(folder, settings=()):
    """A cluster of its own with a table several times its cache; a function that runs SQL. The last of equal settings counts."""
    bin_, port = postgres_binaries(), "54387"
    os.chmod(folder, 0o755)
    home = os.path.join(folder, "pg")
    os.mkdir(home)
    shutil.chown(home, "postgres", "postgres")
    data = home + "/data"
    subprocess.run(as_user("postgres", bin_ + "/initdb", "-D", data, "-A", "trust", "--no-sync"), check=True, cwd=home,
                   stdout=subprocess.DEVNULL)
    args = as_user("postgres", bin_ + "/postgres", "-D", data, "-k", home, "-p", port)
    for setting in ("shared_buffers=2MB", "listen_addresses=", "jit=off", "max_parallel_workers_per_gather=0", "autovacuum=off",
                    "fsync=off", "effective_io_concurrency=0", *settings):
        args += ["-c", setting]

    def sql(text):
        return subprocess.run([*sql.client, "-c", text], check=True, cwd=home, stdout=subprocess.PIPE, text=True).stdout

    sql.client = [bin_ + "/psql", "-qAt", "-h", home, "-p", port, "-U", "postgres", "postgres"]

    ready = [bin_ + "/pg_isready", "-q", "-h", home, "-p", port]
    with running(args, home, lambda: subprocess.run(ready).returncode == 0, signal.SIGINT):
        sql("create table t as select i as id, (i * 7919) % 100000 as k, repeat(md5(i::text), 20) as b from generate_series(1, 100000) i;"
            "create index t_k on t(k); analyze t; checkpoint;")
        yield sql


POSTGRES_LOAD = "set enable_seqscan = off; select sum(length(b)) from t where k between 1000 and 4000;" \
                "set enable_seqscan = on; select count(*) from t where b like '%abcdefabcdef%';"


@contextlib.contextmanager
def mariadb(folder):
    server = shutil.which("mariadbd") or testing.skip("MariaDB is not installed (package mariadb-server)")
    os.chmod(folder, 0o755)
    home = os.path.join(folder, "maria")
    os.mkdir(home)
    shutil.chown(home, "mysql", "mysql")
    data, sock = home + "/data", home + "/sock"
    subprocess.run(as_user("mysql", "mariadb-install-db", "--no-defaults", "--datadir=" + data, "--skip-test-db",
                           "--auth-root-authentication-method=normal"), check=True, cwd=home, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    args = as_user("mysql", server, "--no-defaults", "--datadir=" + data, "--socket=" + sock, "--skip-networking",
                   "--innodb-buffer-pool-size=6M", "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0",
                   "--innodb-read-ahead-threshold=64", "--pid-file=" + home + "/pid", "--innodb-buffer-pool-dump-at-shutdown=0")

    def sql(text):
        return subprocess.run([*sql.client, "-e", text], check=True, cwd=home, stdout=subprocess.PIPE, text=True).stdout

    sql.client = ["mariadb", "--no-defaults", "-S", sock, "-u", "root", "-N", "-n"]

    def ready():
        return subprocess.run(["mariadb-admin", "--no-defaults", "-S", sock, "-u", "root", "ping"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    with running(args, home, ready) as process:
        sql.pid = process.pid
        sql("create database d; create table d.t (id int primary key, k int, b varchar(700), key(k)) engine=innodb;"
            "use d; insert into d.t select seq, (seq * 7919) % 60000, repeat(md5(seq), 20) from (select seq from seq_1_to_60000) s;")
        yield sql


MARIADB_LOAD = "select sum(length(b)) from d.t where k between 1000 and 3000; select count(*) from d.t where b like '%abcdefabcdef%';"
