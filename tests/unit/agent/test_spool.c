// SPDX-License-Identifier: Apache-2.0
// The spool on a real folder: order, acknowledgement, restart, bounds, damage.
#include "agent/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/spool_file.h"

#define WAIT_MS 60000 // for a busy machine; never waited in full

static char folder[64];

static int setup(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/blkprof-spool.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int each_file(int (*fn)(const char *path, void *context), void *context)
{
	struct dirent *d;
	DIR *dir = opendir(folder);
	char path[512];
	int n = 0;

	assert_non_null(dir);
	while ((d = readdir(dir))) {
		if (*d->d_name == '.' || !strcmp(d->d_name, "lock"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		n += fn ? fn(path, context) : 1;
	}
	closedir(dir);
	return n;
}

static int remove_file(const char *path, void *context)
{
	return unlink(path) == 0;
}

static int teardown(void **state)
{
	char path[128];

	each_file(remove_file, NULL);
	snprintf(path, sizeof(path), "%s/lock", folder);
	unlink(path);
	return rmdir(folder);
}

static struct spool *open_spool(uint64_t max_size)
{
	struct spool_options o = { .directory = folder, .max_size = max_size, .node = "node-1" };
	struct error e = { "" };
	struct spool *s = NULL;

	if (spool_open(&o, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

// A window of one profile of `size` bytes, all of which are `fill`.
static int add(struct spool *s, size_t size, uint8_t fill, uint64_t start)
{
	uint8_t *data = malloc(size);
	struct batch_profile p = { .service = "svc", .data = data, .size = size };
	struct batch b = { .kind = BATCH_WINDOW, .start = start, .end = start + 10, .n_profiles = 1, .profiles = &p };
	int err;

	memset(data, fill, size);
	err = spool_add(s, &b);
	free(data);
	return err;
}

static void take(struct spool *s, struct spool_item *item, struct batch **batch)
{
	struct error e = { "" };

	assert_int_equal(spool_next(s, item), 0);
	if (batch_decode(item->data, item->size, batch, &e))
		fail_msg("%s", e.text);
	assert_memory_equal((*batch)->instance, item->instance, 16);
	assert_int_equal((*batch)->sequence, item->sequence);
}

static void take_window(struct spool *s, uint64_t sequence, uint8_t fill, bool acknowledge)
{
	struct spool_item item;
	struct batch *b;

	take(s, &item, &b);
	assert_int_equal(b->kind, BATCH_WINDOW);
	assert_string_equal(b->node, "node-1");
	assert_int_equal(b->sequence, sequence);
	assert_int_equal(((const uint8_t *)b->profiles[0].data)[0], fill);
	if (acknowledge)
		spool_acknowledge(s, item.instance, item.sequence);
	batch_free(b);
	spool_item_free(&item);
}

static void take_gap(struct spool *s, uint64_t first, uint64_t last)
{
	struct spool_item item;
	struct batch *b;

	take(s, &item, &b);
	assert_int_equal(b->kind, BATCH_GAP);
	assert_int_equal(b->gap_first, first);
	assert_int_equal(b->sequence, last);
	assert_true(b->gap_bytes > 0);
	batch_free(b);
	spool_acknowledge(s, item.instance, item.sequence);
	spool_item_free(&item);
}

static void nothing_left(struct spool *s)
{
	struct spool_item item;

	assert_int_equal(spool_next(s, &item), -EAGAIN);
}

static void in_order(void **state)
{
	struct spool *s = open_spool(0);
	struct pollfd p = { .fd = spool_fd(s), .events = POLLIN };
	struct spool_stats st;

	assert_int_equal(poll(&p, 1, 0), 0);
	for (uint8_t i = 1; i <= 3; i++)
		assert_int_equal(add(s, 100, i, i), 0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	take_window(s, 1, 1, false);
	take_window(s, 2, 2, true);
	spool_rewind(s);
	take_window(s, 1, 1, true);
	take_window(s, 3, 3, true);
	nothing_left(s);
	assert_int_equal(poll(&p, 1, 0), 0);
	spool_stats(s, &st);
	assert_int_equal(st.files, 0);
	assert_int_equal(st.bytes, 0);
	assert_int_equal(st.acknowledged, 3);
	spool_close(s, WAIT_MS);
	assert_int_equal(each_file(NULL, NULL), 0);
}

static void unknown_acknowledgements(void **state)
{
	struct spool *s = open_spool(0);
	uint8_t other[16] = { 1 };

	assert_int_equal(add(s, 100, 1, 1), 0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	spool_acknowledge(s, other, 1);
	spool_acknowledge(s, spool_instance(s), 2);
	take_window(s, 1, 1, true);
	spool_acknowledge(s, spool_instance(s), 1);
	nothing_left(s);
	spool_close(s, WAIT_MS);
}

static void restart(void **state)
{
	struct spool *s = open_spool(0);
	struct spool_stats st;

	assert_int_equal(add(s, 100, 1, 1), 0);
	assert_int_equal(add(s, 100, 2, 2), 0);
	spool_close(s, WAIT_MS);
	s = open_spool(0);
	assert_int_equal(add(s, 100, 3, 3), 0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	spool_stats(s, &st);
	assert_int_equal(st.recovered, 2);
	assert_int_equal(st.files, 3);
	assert_int_equal(st.oldest, 1);
	take_window(s, 1, 1, true);
	take_window(s, 2, 2, true);
	take_window(s, 1, 3, true); // the new start counts from 1
	spool_close(s, WAIT_MS);
}

static void one_process(void **state)
{
	struct spool_options o = { .directory = folder, .node = "node-1" };
	struct spool *s = open_spool(0), *second = NULL;
	struct error e = { "" };

	assert_int_equal(spool_open(&o, &second, &e), -EBUSY);
	assert_non_null(strstr(e.text, "in use by another process"));
	spool_close(s, WAIT_MS);
	o.node = "no node";
	assert_int_equal(spool_open(&o, &second, &e), -EINVAL);
	o.node = "n";
	o.directory = "/nonexistent/spool";
	assert_int_equal(spool_open(&o, &second, &e), -ENOENT);
	o.directory = "/dev/null";
	assert_int_equal(spool_open(&o, &second, &e), -ENOTDIR);
}

// Files of 12 KiB in a spool of 40: three stay, the older ones are one gap that grows.
static void bounded(void **state)
{
	struct spool *s = open_spool(40960);
	struct spool_stats st;

	for (uint8_t i = 1; i <= 8; i++) {
		assert_int_equal(add(s, 9000, i, i * 100), 0);
		assert_int_equal(spool_flush(s, WAIT_MS), 0);
		spool_stats(s, &st);
		assert_true(st.bytes <= 40960);
	}
	assert_int_equal(st.dropped_full, 5);
	take_gap(s, 1, 5);
	for (uint8_t i = 6; i <= 8; i++)
		take_window(s, i, i, true);
	nothing_left(s);
	spool_close(s, WAIT_MS);
}

// The answer to a batch that was dropped after it was sent is none to the gap in its place.
static void dropped_on_its_way(void **state)
{
	struct spool *s = open_spool(40960);
	struct spool_item gap;
	struct spool_stats st;

	for (uint8_t i = 1; i <= 3; i++) {
		assert_int_equal(add(s, 9000, i, i * 100), 0);
		assert_int_equal(spool_flush(s, WAIT_MS), 0);
		take_window(s, i, i, false);
	}
	assert_int_equal(add(s, 9000, 4, 400), 0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	assert_int_equal(spool_next(s, &gap), 0);
	assert_int_equal(gap.sequence, 1);
	spool_acknowledge(s, gap.instance, 1);
	spool_stats(s, &st);
	assert_int_equal(st.acknowledged, 0);
	spool_item_free(&gap);
	spool_rewind(s);
	take_gap(s, 1, 1);
	for (uint8_t i = 2; i <= 4; i++)
		take_window(s, i, i, true);
	nothing_left(s);
	spool_close(s, WAIT_MS);
}

static void larger_than_the_spool(void **state)
{
	struct spool *s = open_spool(16384);

	assert_int_equal(add(s, 100, 1, 1), 0);
	assert_int_equal(add(s, 20000, 2, 2), 0);
	assert_int_equal(add(s, 100, 3, 3), 0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	take_window(s, 1, 1, true);
	take_gap(s, 2, 2);
	take_window(s, 3, 3, true);
	spool_close(s, WAIT_MS);
}

static void lowered_bound(void **state)
{
	struct spool *s = open_spool(0);

	for (uint8_t i = 1; i <= 6; i++)
		assert_int_equal(add(s, 9000, i, i), 0);
	spool_close(s, WAIT_MS);
	s = open_spool(41000);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	assert_int_equal(add(s, 9000, 7, 7), 0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	take_gap(s, 1, 4);
	take_window(s, 5, 5, true);
	take_window(s, 6, 6, true);
	take_window(s, 1, 7, true);
	spool_close(s, WAIT_MS);
}

// ---- damage

enum damage { CUT, FLIP_HEADER, FLIP_BATCH, EMPTY, GROWN, LINK };

struct damage_job {
	enum damage how;
	uint64_t sequence;
};

static int damage_one(const char *path, void *context)
{
	const struct damage_job *job = context;
	uint64_t order, sequence;
	uint8_t instance[16], byte = 0;
	int temporary, fd;
	struct stat st;

	assert_int_equal(spool_name_parse(strrchr(path, '/') + 1, &order, instance, &sequence, &temporary), 0);
	if (sequence != job->sequence)
		return 0;
	assert_int_equal(stat(path, &st), 0);
	if (job->how == LINK) {
		unlink(path);
		assert_int_equal(symlink("/etc/passwd", path), 0);
		return 1;
	}
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	if (job->how == CUT || job->how == EMPTY) {
		assert_int_equal(ftruncate(fd, job->how == CUT ? st.st_size - 1 : 0), 0);
	} else if (job->how == GROWN) {
		assert_int_equal(pwrite(fd, &byte, 1, st.st_size), 1);
	} else {
		off_t at = job->how == FLIP_HEADER ? 30 : st.st_size - 5;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x40;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
	return 1;
}

static void put_file(const char *name, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

// One damaged file between two good ones, after a restart: the good ones are sent and the loss is known.
static void damaged(void **state)
{
	for (enum damage how = CUT; how <= LINK; how++) {
		struct damage_job job = { .how = how, .sequence = 2 };
		struct spool *s = open_spool(0);
		struct spool_stats st;

		for (uint8_t i = 1; i <= 3; i++)
			assert_int_equal(add(s, 5000, i, i), 0);
		spool_close(s, WAIT_MS);
		assert_int_equal(each_file(damage_one, &job), 1);
		s = open_spool(0);
		assert_int_equal(spool_flush(s, WAIT_MS), 0);
		take_window(s, 1, 1, true);
		if (how == FLIP_BATCH) { // found when it is read
			take_window(s, 3, 3, true);
			assert_int_equal(spool_flush(s, WAIT_MS), 0);
			take_gap(s, 2, 2);
		} else {
			take_gap(s, 2, 2);
			take_window(s, 3, 3, true);
		}
		nothing_left(s);
		spool_stats(s, &st);
		assert_int_equal(st.dropped_damaged, 1);
		spool_close(s, WAIT_MS);
		assert_int_equal(each_file(NULL, NULL), 0);
	}
}

static void foreign_files(void **state)
{
	struct spool *s = open_spool(0);
	char path[128];

	assert_int_equal(add(s, 100, 1, 1), 0);
	spool_close(s, WAIT_MS);
	put_file("README", "not ours");
	put_file("0000000000000009-000102030405060708090a0b0c0d0e0f-0000000000000001.batch.tmp", "half a batch");
	put_file("0000000000000009-000102030405060708090a0b0c0d0e0f-0000000000000001.batch", "garbage");
	s = open_spool(0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	take_window(s, 1, 1, true);
	take_gap(s, 1, 1); // of the other start
	nothing_left(s);
	spool_close(s, WAIT_MS);
	assert_int_equal(each_file(NULL, NULL), 1);
	snprintf(path, sizeof(path), "%s/README", folder);
	assert_int_equal(access(path, F_OK), 0);
}

static int remove_window(const char *path, void *context)
{
	return unlink(path) == 0;
}

static void files_that_vanish(void **state)
{
	struct spool *s = open_spool(0);

	assert_int_equal(add(s, 100, 1, 1), 0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	assert_int_equal(each_file(remove_window, NULL), 1);
	nothing_left(s);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	take_gap(s, 1, 1);
	nothing_left(s);
	spool_close(s, WAIT_MS);
}

static void bad_batches(void **state)
{
	struct spool *s = open_spool(0);
	struct batch b = { .kind = BATCH_WINDOW, .start = 10, .end = 5 };

	assert_int_equal(spool_add(s, &b), -EINVAL);
	assert_int_equal(add(s, BATCH_BYTES_MAX, 1, 1), -EFBIG);
	assert_int_equal(add(s, 100, 1, 1), 0);
	assert_int_equal(spool_flush(s, WAIT_MS), 0);
	take_window(s, 1, 1, true);
	spool_close(s, WAIT_MS);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(in_order), TEST(unknown_acknowledgements), TEST(restart), TEST(one_process), TEST(bounded), TEST(dropped_on_its_way),
		TEST(larger_than_the_spool), TEST(lowered_bound), TEST(damaged), TEST(foreign_files), TEST(files_that_vanish),
		TEST(bad_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
