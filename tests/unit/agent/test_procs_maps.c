// SPDX-License-Identifier: Apache-2.0
// /proc/PID/maps and stat, and mountinfo as far as it decides what is opened.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/procs_maps.h"
#include "agent/procs_mounts.h"

static int parse(const char *line, struct procmaps_entry *ret)
{
	return procmaps_parse(line, strlen(line), ret);
}

static void test_lines(void **state)
{
	struct procmaps_entry e;

	assert_int_equal(parse("5573a3067000-5573a306c000 r-xp 00002000 fe:01 247026                     /usr/bin/cat", &e), 0);
	assert_int_equal(e.start, 0x5573a3067000);
	assert_int_equal(e.limit, 0x5573a306c000);
	assert_true(e.readable && !e.writable && e.executable && !e.shared);
	assert_int_equal(e.offset, 0x2000);
	assert_int_equal(e.major, 0xfe);
	assert_int_equal(e.minor, 1);
	assert_int_equal(e.inode, 247026);
	assert_int_equal(e.path_len, 12);
	assert_memory_equal(e.path, "/usr/bin/cat", 12);

	assert_int_equal(parse("7f0000000000-7f0000001000 rwxs 00000000 00:00 0 ", &e), 0);
	assert_int_equal(e.path_len, 0);
	assert_true(e.shared && e.writable);
	assert_int_equal(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]", &e), 0);
	assert_int_equal(e.path_len, 10);
	assert_int_equal(parse("1000-2000 r-xp 0 0:0 18446744073709551615 /a b (deleted)", &e), 0);
	assert_int_equal(e.inode, UINT64_MAX);
	assert_int_equal(e.path_len, 14);
}

static void test_lines_that_are_none(void **state)
{
	static const char *const bad[] = {
		"", "1000", "1000-", "1000-2000", "1000-2000 ", "1000-2000 r-x", "1000-2000 r-xq 0 0:0 0", "2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0", "1000-2000 r-xp 0 0:0", "1000-2000 r-xp 0 0:0 ", "1000-2000 r-xp 0 0 0",
		"1000-2000 r-xp  0:0 0", "10000000000000000-20000000000000000 r-xp 0 0:0 0", "1000-2000 r-xp 0 100000000:0 0",
		"1000-2000 r-xp 0 0:0 18446744073709551616", "1000-2000 r-xp 0 0:0 12x", "-1000-2000 r-xp 0 0:0 0",
		"1000-2000 xr-p 0 0:0 0", "0x10-0x20 r-xp 0 0:0 0", " 1000-2000 r-xp 0 0:0 0",
	};
	struct procmaps_entry e = { .start = 77 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse(bad[i], &e), -EINVAL);
	assert_int_equal(e.start, 77);
}

static void test_paths(void **state)
{
	char out[16];
	bool deleted;

	assert_int_equal(procmaps_unescape(out, sizeof(out), "/a\\012b\\01", 10), 7);
	assert_string_equal(out, "/a\nb\\01");
	assert_int_equal(procmaps_unescape(out, 4, "/abcdef", 7), 3);
	assert_string_equal(out, "/ab");
	assert_int_equal(procmaps_strip_deleted("/x (deleted)", 12, &deleted), 2);
	assert_true(deleted);
	assert_int_equal(procmaps_strip_deleted("/x (delete)", 11, &deleted), 11);
	assert_false(deleted);
	assert_int_equal(procmaps_strip_deleted(" (deleted)", 10, &deleted), 10);
}

struct counted {
	unsigned lines, executable, longest;
};

static bool count(const struct procmaps_entry *e, void *context)
{
	struct counted *c = context;

	c->lines++;
	c->executable += e->executable;
	if (e->path_len > c->longest)
		c->longest = (unsigned)e->path_len;
	return c->lines < 100000;
}

static int file_of(const char *text, size_t len)
{
	int fd = memfd_create("test", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void test_whole_file(void **state)
{
	char *text = malloc(4 << 20);
	struct counted c = { 0 };
	size_t len = 0;
	int fd;

	for (unsigned i = 0; i < 20000; i++)
		len += (size_t)sprintf(text + len, "%x000-%x000 r-%cp 00000000 fe:00 %u   /lib/%.*s\n", i + 1, i + 2, i & 1 ? 'x' : '-',
				       i, (int)(i % 40), "a/rather/long/name/for/a/library/of/ours.so");
	fd = file_of(text, len);
	assert_int_equal(procs_maps_read_fd(fd, count, &c), 0);
	assert_int_equal(c.lines, 20000);
	assert_int_equal(c.executable, 10000);
	close(fd);

	memset(text, 'x', 1 << 20); // a line without end
	fd = file_of(text, 1 << 20);
	assert_int_equal(procs_maps_read_fd(fd, count, &c), -EFBIG);
	close(fd);
	free(text);

	memset(&c, 0, sizeof(c));
	assert_int_equal(procs_maps_read(getpid(), count, &c), 0);
	assert_true(c.executable >= 3);
	assert_int_equal(procs_maps_read(-5, count, &c), -ENOENT);
}

static int stat_of(const char *text, struct procs_stat *ret)
{
	return procs_stat_parse(text, strlen(text), ret);
}

static void test_stat(void **state)
{
	struct procs_stat s = { 0 };

	assert_int_equal(stat_of("77 (a) (b) S) S 12 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3\n", &s), 0);
	assert_int_equal(s.comm_len, 8);
	assert_memory_equal(s.comm, "a) (b) S", 8);
	assert_int_equal(s.ppid, 12);
	assert_int_equal(s.starttime, 987654);
	assert_false(s.kernel_thread);
	assert_int_equal(stat_of("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0", &s), 0);
	assert_true(s.kernel_thread);
	assert_int_equal(stat_of("", &s), -EINVAL);
	assert_int_equal(stat_of("77 (a", &s), -EINVAL);
	assert_int_equal(stat_of("77 )a(", &s), -EINVAL);
	assert_int_equal(stat_of("77 (a) S 12 77", &s), -EINVAL);
}

static const char mountinfo[] =
	"22 1 254:0 / / rw - ext4 /dev/root rw\n"
	"30 22 0:40 / /home rw - nfs4 server:/home rw\n"
	"31 22 0:41 / /srv/with\\040blank rw - fuse.sshfs host: rw\n"
	"32 22 0:42 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,lowerdir=/a\n"
	"33 22 8:17 / /mnt/windows rw - fuseblk /dev/sdb1 rw\n"
	"34 22 0:43 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	"35 22 0:44 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	"36 22 0:45 /docker/abc /sys/fs/cgroup/pids rw shared:4 - cgroup cgroup rw,pids\n"
	"37 22 0:46 / /misc rw - autofs systemd-1 rw\n";

static void test_mounts(void **state)
{
	char path[64], folder[128];
	struct buf points = { 0 };
	int fd = file_of(mountinfo, sizeof(mountinfo) - 1);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(mounts_kind(path, 22), MOUNT_LOCAL);
	assert_int_equal(mounts_kind(path, 30), MOUNT_REMOTE);
	assert_int_equal(mounts_kind(path, 31), MOUNT_REMOTE);
	assert_int_equal(mounts_kind(path, 32), MOUNT_LAYERED);
	assert_int_equal(mounts_kind(path, 33), MOUNT_REMOTE);
	assert_int_equal(mounts_kind(path, 99), MOUNT_UNKNOWN);
	assert_int_equal(mounts_kind("/nowhere", 22), MOUNT_UNKNOWN);

	assert_int_equal(mounts_remote_points(path, &points), 0);
	assert_true(mounts_path_is_remote(&points, "/home/me/a.out"));
	assert_true(mounts_path_is_remote(&points, "/home"));
	assert_true(mounts_path_is_remote(&points, "/srv/with blank/x"));
	assert_true(mounts_path_is_remote(&points, "/misc/x"));
	assert_false(mounts_path_is_remote(&points, "/homes/me"));
	assert_false(mounts_path_is_remote(&points, "/usr/bin/cat"));
	buf_free(&points);

	assert_int_equal(mounts_cgroup_folder(path, "", "/system.slice/a.service", folder, sizeof(folder)), 0);
	assert_string_equal(folder, "/sys/fs/cgroup/unified/system.slice/a.service");
	assert_int_equal(mounts_cgroup_folder(path, "memory", "/", folder, sizeof(folder)), 0);
	assert_string_equal(folder, "/sys/fs/cgroup/memory/");
	assert_int_equal(mounts_cgroup_folder(path, "pids", "/docker/abc/x", folder, sizeof(folder)), 0);
	assert_string_equal(folder, "/sys/fs/cgroup/pids/x");
	assert_int_equal(mounts_cgroup_folder(path, "pids", "/docker/abcd", folder, sizeof(folder)), -ENOENT);
	assert_int_equal(mounts_cgroup_folder(path, "cpu", "/", folder, sizeof(folder)), -ENOENT);
	assert_int_equal(mounts_cgroup_folder(path, "memory", "/long", folder, 20), -ENAMETOOLONG);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	    cmocka_unit_test(test_lines_that_are_none),
		cmocka_unit_test(test_paths),	    cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_stat),	    cmocka_unit_test(test_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
