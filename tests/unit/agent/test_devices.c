// SPDX-License-Identifier: Apache-2.0
// A made-up node: sda with two partitions, LVM and dm-crypt on top, md over two disks, a loop device over a file, zram, a
// btrfs file system, a multipath disk with hidden paths; then this host's own devices.
#include "agent/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <cmocka.h>

#include "unit/agent/tree.h"

struct node {
	struct tree tree;
	char sysfs[128], mountinfo[128];
	struct devices *devices;
};

static void disk(struct tree *t, const char *name, unsigned major, unsigned minor, const char *scheduler)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/block/%s/dev", name);
	tree_file(t, path, "%u:%u\n", major, minor);
	snprintf(path, sizeof(path), "sys/block/%s/size", name);
	tree_file(t, path, "20480\n");
	snprintf(path, sizeof(path), "sys/block/%s/holders/", name);
	tree_file(t, path, "%s", "");
	if (!scheduler)
		return;
	snprintf(path, sizeof(path), "sys/block/%s/queue/scheduler", name);
	tree_file(t, path, "%s\n", scheduler);
	snprintf(path, sizeof(path), "sys/block/%s/mq/0/", name);
	tree_file(t, path, "%s", "");
}

static void partition(struct tree *t, const char *on, const char *name, unsigned number, unsigned major, unsigned minor)
{
	char path[160];

	snprintf(path, sizeof(path), "sys/block/%s/%s/dev", on, name);
	tree_file(t, path, "%u:%u\n", major, minor);
	snprintf(path, sizeof(path), "sys/block/%s/%s/partition", on, name);
	tree_file(t, path, "%u\n", number);
	snprintf(path, sizeof(path), "sys/block/%s/%s/size", on, name);
	tree_file(t, path, "2048\n");
}

static void holder(struct tree *t, const char *below, const char *above)
{
	char path[160];

	snprintf(path, sizeof(path), "sys/block/%s/holders/%s/", below, above);
	tree_file(t, path, "%s", "");
}

static void build(struct tree *t)
{
	disk(t, "sda", 8, 0, "none [mq-deadline] kyber");
	partition(t, "sda", "sda1", 1, 8, 1);
	partition(t, "sda", "sda2", 2, 8, 2);
	disk(t, "dm-0", 253, 0, NULL);
	tree_file(t, "sys/block/dm-0/dm/name", "vg0-root\n");
	disk(t, "dm-1", 253, 1, NULL);
	tree_file(t, "sys/block/dm-1/dm/name", "luks-data\n");
	holder(t, "sda/sda2", "dm-0");
	holder(t, "dm-0", "dm-1");
	disk(t, "sdb", 8, 16, "[none] mq-deadline");
	disk(t, "sdc", 8, 32, "none");
	disk(t, "md127", 9, 127, NULL);
	holder(t, "sdb", "md127");
	holder(t, "sdc", "md127");
	partition(t, "md127", "md127p1", 1, 259, 7);
	disk(t, "loop0", 7, 0, "[none] mq-deadline");
	tree_file(t, "sys/block/loop0/loop/backing_file", "/srv/images/a b.img (deleted)\n");
	disk(t, "loop1", 7, 1, "[none]");
	tree_file(t, "sys/block/loop1/size", "0\n");
	disk(t, "loop2", 7, 2, "[none]");
	tree_file(t, "sys/block/loop2/loop/backing_file", "/dev/mapper/luks-data\n");
	disk(t, "zram0", 252, 0, NULL);
	disk(t, "cciss!c0d0", 104, 0, "[none]");
	partition(t, "cciss!c0d0", "cciss!c0d0p1", 1, 104, 1);
	disk(t, "sdd", 8, 48, "[bfq] none");
	disk(t, "nvme0n1", 259, 0, NULL);
	// A path of it: hidden, without a number.
	tree_file(t, "sys/block/nvme0c0n1/hidden", "1\n");
	tree_file(t, "mountinfo",
		  "21 20 8:1 /sub /boot/bind rw - ext4 /dev/sda1 rw\n"
		  "22 20 8:1 / /boot rw - ext4 /dev/sda1 rw\n"
		  "23 20 253:1 / /srv rw - xfs /dev/mapper/luks-data rw\n"
		  "24 20 0:44 / /my\\040data rw - btrfs /dev/sdd rw,space_cache\n"
		  "25 20 0:45 / /net rw - nfs4 server:/export rw\n"
		  "26 20 7:0 / /mnt/loop rw - ext4 /dev/loop0 rw\n"
		  "27 20 253:0 /var /var/bind rw - ext4 /dev/mapper/vg0-root rw\n"
		  "20 1 253:0 / / rw - ext4 /dev/mapper/vg0-root rw\n");
}

static int setup(void **state)
{
	struct node *n = calloc(1, sizeof(*n));
	struct devices_options o;

	tree_new(&n->tree);
	build(&n->tree);
	tree_path(&n->tree, "sys", n->sysfs, sizeof(n->sysfs));
	tree_path(&n->tree, "mountinfo", n->mountinfo, sizeof(n->mountinfo));
	o.sysfs = n->sysfs;
	o.mountinfo = n->mountinfo;
	n->devices = devices_new(&o, NULL);
	*state = n;
	return n->devices ? 0 : -1;
}

static int teardown(void **state)
{
	struct node *n = *state;

	devices_free(n->devices);
	tree_free(&n->tree);
	free(n);
	return 0;
}

static const struct device *get(void **state, unsigned major, unsigned minor)
{
	const struct device *d = devices_find(((struct node *)*state)->devices, KDEV(major, minor));

	assert_non_null(d);
	return d;
}

static void snapshot(void **state)
{
	struct node *n = *state;
	const struct device *d = get(state, 8, 0);

	assert_int_equal(devices_count(n->devices), 17);
	assert_string_equal(d->name, "sda");
	assert_int_equal(d->disk, d->dev);
	assert_string_equal(d->scheduler, "mq-deadline");
	assert_false(d->bio_based);
	assert_false(d->has_holders);
	d = get(state, 8, 2);
	assert_string_equal(d->name, "sda2");
	assert_int_equal(d->disk, KDEV(8, 0));
	assert_string_equal(d->scheduler, "mq-deadline");
	assert_true(d->has_holders);
	d = get(state, 253, 0);
	assert_string_equal(d->mapper, "vg0-root");
	assert_string_equal(d->mount, "/");
	assert_string_equal(d->scheduler, "none");
	assert_true(d->bio_based);
	assert_true(d->has_holders);
	assert_string_equal(get(state, 8, 32)->scheduler, "none");
	assert_true(get(state, 252, 0)->bio_based);
	assert_false(get(state, 7, 0)->bio_based);
	assert_true(get(state, 259, 0)->bio_based);
	assert_string_equal(get(state, 104, 1)->name, "cciss/c0d0p1");
	assert_int_equal(get(state, 259, 7)->disk, KDEV(9, 127));
	assert_null(devices_find(n->devices, KDEV(1, 1)));
	assert_null(devices_get(n->devices, 17));
	assert_int_equal(devices_get(n->devices, 0)->dev, KDEV(7, 0));
}

static void mounts(void **state)
{
	// The file system's root comes before a bind mount that is older; btrfs is found by its source.
	assert_string_equal(get(state, 8, 1)->mount, "/boot");
	assert_string_equal(get(state, 8, 48)->mount, "/my data");
	assert_string_equal(get(state, 253, 1)->mount, "/srv");
	assert_string_equal(get(state, 8, 0)->mount, "");
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void expect(void **state, const char *name, unsigned n, ...)
{
	struct node *node = *state;
	struct error e = { { 0 } };
	uint32_t got[32], want[32];
	va_list args;
	int count = devices_select(node->devices, name, got, 32, &e);

	va_start(args, n);
	for (unsigned i = 0; i < n; i++)
		want[i] = va_arg(args, uint32_t);
	va_end(args);
	if (count != (int)n)
		fail_msg("%s: %d devices, not %u (%s)", name, count, n, e.text);
	qsort(got, n, sizeof(*got), compare);
	qsort(want, n, sizeof(*want), compare);
	for (unsigned i = 0; i < n; i++)
		if (got[i] != want[i])
			fail_msg("%s: %u:%u, not %u:%u", name, got[i] >> 20, got[i] & 0xfffff, want[i] >> 20, want[i] & 0xfffff);
}

static void stacks(void **state)
{
	// Through the partition to LVM, to LUKS on it, to loops over a file there and over the device itself.
	expect(state, "sda", 7, KDEV(8, 0), KDEV(8, 1), KDEV(8, 2), KDEV(253, 0), KDEV(253, 1), KDEV(7, 0), KDEV(7, 2));
	expect(state, "sda1", 1, KDEV(8, 1));
	expect(state, "sda2", 5, KDEV(8, 2), KDEV(253, 0), KDEV(253, 1), KDEV(7, 0), KDEV(7, 2));
	// The partition of what is stacked above, too.
	expect(state, "sdb", 3, KDEV(8, 16), KDEV(9, 127), KDEV(259, 7));
	expect(state, "md127p1", 1, KDEV(259, 7));
	expect(state, "zram0", 1, KDEV(252, 0));
}

static void names(void **state)
{
	expect(state, "dm-1", 3, KDEV(253, 1), KDEV(7, 0), KDEV(7, 2));
	expect(state, "luks-data", 3, KDEV(253, 1), KDEV(7, 0), KDEV(7, 2));
	expect(state, "/dev/mapper/luks-data", 3, KDEV(253, 1), KDEV(7, 0), KDEV(7, 2));
	expect(state, "/dev/dm-1", 3, KDEV(253, 1), KDEV(7, 0), KDEV(7, 2));
	expect(state, "/srv", 3, KDEV(253, 1), KDEV(7, 0), KDEV(7, 2));
	expect(state, "/my data", 1, KDEV(8, 48));
	expect(state, "/boot/bind", 1, KDEV(8, 1));
	expect(state, "8:1", 1, KDEV(8, 1));
	expect(state, "cciss/c0d0p1", 1, KDEV(104, 1));
	expect(state, "/dev/cciss/c0d0p1", 1, KDEV(104, 1));
}

static void unknown(void **state)
{
	static const char *const nothing[] = { "", "nosuch", "/dev/nosuch", "/nosuch", "8:", "8:99", "8:1x", "sda3", "-1", "nvme0c0n1" };
	struct node *n = *state;
	uint32_t got[4];
	struct error e;

	for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++) {
		assert_int_equal(devices_select(n->devices, nothing[i], got, 4, &e), -ENOENT);
		assert_non_null(strstr(e.text, "sda2"));
		assert_non_null(strstr(e.text, "dm-0 (vg0-root, /)"));
		// Without a medium.
		assert_null(strstr(e.text, "loop1"));
	}
	assert_int_equal(devices_select(n->devices, "/net", got, 4, &e), -ENOENT);
	assert_non_null(strstr(e.text, "nfs4"));
	assert_int_equal(devices_select(n->devices, "/usr", got, 4, &e), -ENOENT);
	assert_non_null(strstr(e.text, "neither a device nor a mount point"));
	assert_int_equal(devices_select(n->devices, "sda", got, 4, &e), -E2BIG);
	assert_int_equal(devices_select(n->devices, "sda1", got, 4, NULL), 1);
}

// Holders that point at each other, at themselves and at what is not there: it ends.
static void cycles(void **state)
{
	struct node *n = *state;

	holder(&n->tree, "dm-1", "dm-0");
	holder(&n->tree, "dm-1", "dm-1");
	holder(&n->tree, "dm-1", "dm-77");
	tree_file(&n->tree, "sys/block/loop2/loop/backing_file", "/dev/loop2\n");
	assert_int_equal(devices_refresh(n->devices), 0);
	expect(state, "dm-1", 3, KDEV(253, 1), KDEV(253, 0), KDEV(7, 0));
	expect(state, "loop2", 1, KDEV(7, 2));
}

static void rubbish(void **state)
{
	struct node *n = *state;

	tree_file(&n->tree, "sys/block/evil/dev", "not a number");
	tree_file(&n->tree, "sys/block/evil2/dev", "8:1:2\n");
	tree_file(&n->tree, "sys/block/evil3/dev", "%s", "");
	tree_file(&n->tree, "sys/block/file", "x");
	disk(&n->tree, "a\xff\x01name-that-is-much-longer-than-any-disk-can-have", 300, 1, "[");
	assert_int_equal(devices_refresh(n->devices), 0);
	assert_int_equal(devices_count(n->devices), 18);
	assert_string_equal(get(state, 300, 1)->name, "a??name-that-is-much-longer-tha");
	assert_string_equal(get(state, 300, 1)->scheduler, "");
}

static void refresh(void **state)
{
	struct node *n = *state;
	char path[160], gone[160];

	disk(&n->tree, "sde", 8, 64, "[none]");
	assert_int_equal(devices_refresh(n->devices), 0);
	assert_string_equal(get(state, 8, 64)->name, "sde");
	// A refresh that fails leaves what was there.
	tree_path(&n->tree, "sys/block", path, sizeof(path));
	tree_path(&n->tree, "gone", gone, sizeof(gone));
	assert_int_equal(rename(path, gone), 0);
	assert_int_equal(devices_refresh(n->devices), -ENOENT);
	assert_string_equal(get(state, 8, 64)->name, "sde");
	assert_int_equal(rename(gone, path), 0);
	unlink(n->mountinfo);
	assert_int_equal(devices_refresh(n->devices), 0);
	assert_string_equal(get(state, 8, 64)->mount, "");
}

static void no_sysfs(void **state)
{
	struct devices_options o = { .sysfs = "/nonexistent" };
	struct error e;

	assert_null(devices_new(&o, &e));
	assert_non_null(strstr(e.text, "/nonexistent/block"));
	devices_free(NULL);
}

static void this_host(void **state)
{
	struct devices *d = devices_new(NULL, NULL);
	struct stat st;
	uint32_t got[256];

	if (!d)
		skip();
	for (unsigned i = 0; i < devices_count(d); i++) {
		const struct device *v = devices_get(d, i);
		char path[64];
		int n;

		assert_ptr_equal(devices_find(d, v->dev), v);
		assert_non_null(devices_find(d, v->disk));
		n = devices_select(d, v->name, got, 256, NULL);
		assert_true(n >= 1);
		assert_int_equal(got[0], v->dev);
		snprintf(path, sizeof(path), "/dev/%s", v->name);
		if (!stat(path, &st))
			assert_true(devices_select(d, path, got, 256, NULL) >= 1);
		if (!strncmp(v->name, "zram", 4))
			assert_true(v->bio_based);
		if (!strncmp(v->name, "loop", 4))
			assert_false(v->bio_based);
	}
	devices_free(d);
}

// A loop device over a file in /var/tmp is stacked above the disk of that file system. Needs root; elsewhere skipped.
static void this_host_loop(void **state)
{
	char file[] = "/var/tmp/blkprof-test-XXXXXX", path[32];
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), fd, loop = -1, number = -1;
	struct devices *d = NULL;
	struct error e = { { 0 } };
	uint32_t got[256];
	bool found = false;
	struct stat st;
	int n = 0;

	if (control < 0)
		skip();
	fd = mkstemp(file);
	unlink(file);
	if (fd >= 0 && !fstat(fd, &st) && major(st.st_dev) && !ftruncate(fd, 1 << 20))
		number = ioctl(control, LOOP_CTL_GET_FREE);
	snprintf(path, sizeof(path), "/dev/loop%d", number);
	if (number >= 0)
		loop = open(path, O_RDWR | O_CLOEXEC);
	if (loop >= 0 && !ioctl(loop, LOOP_SET_FD, fd)) {
		d = devices_new(NULL, &e);
		snprintf(path, sizeof(path), "%u:%u", major(st.st_dev), minor(st.st_dev));
		n = d ? devices_select(d, path, got, 256, &e) : 0;
		for (int i = 0; i < n; i++)
			found |= got[i] == KDEV(7, (uint32_t)number);
		ioctl(loop, LOOP_CLR_FD);
	}
	close(loop);
	close(fd);
	close(control);
	if (!d)
		skip();
	devices_free(d);
	if (!found)
		fail_msg("loop%d is not above %s (%d devices) %s", number, path, n, e.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(snapshot, setup, teardown), cmocka_unit_test_setup_teardown(mounts, setup, teardown),
		cmocka_unit_test_setup_teardown(stacks, setup, teardown),   cmocka_unit_test_setup_teardown(names, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown, setup, teardown),  cmocka_unit_test_setup_teardown(cycles, setup, teardown),
		cmocka_unit_test_setup_teardown(rubbish, setup, teardown),  cmocka_unit_test_setup_teardown(refresh, setup, teardown),
		cmocka_unit_test(no_sysfs), cmocka_unit_test(this_host),
		cmocka_unit_test(this_host_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
