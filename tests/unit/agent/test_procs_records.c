// SPDX-License-Identifier: Apache-2.0
// Perf records: each kind parsed, cut short at every length, wrapped at every place of a ring.
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "agent/perfring.h"

struct record {
	uint8_t bytes[512];
	size_t len;
};

static void put(struct record *r, const void *data, size_t len)
{
	memcpy(r->bytes + r->len, data, len);
	r->len += len;
}

static void put32(struct record *r, uint32_t v)
{
	put(r, &v, 4);
}

static void put64(struct record *r, uint64_t v)
{
	put(r, &v, 8);
}

static void put_text(struct record *r, const char *text)
{
	put(r, text, strlen(text) + 1);
	while (r->len & 7)
		r->bytes[r->len++] = 0;
}

static void begin(struct record *r)
{
	memset(r, 0, sizeof(*r));
	r->len = sizeof(struct perf_event_header);
}

static void end(struct record *r, uint32_t type, uint16_t misc, uint64_t time)
{
	struct perf_event_header h = { .type = type, .misc = misc };

	put32(r, 41);
	put32(r, 42);
	put64(r, time);
	h.size = (uint16_t)r->len;
	memcpy(r->bytes, &h, sizeof(h));
}

static void mmap2(struct record *r, const char *path, uint16_t misc, uint64_t time)
{
	begin(r);
	put32(r, 41);
	put32(r, 42);
	put64(r, 0x7f0000001000);
	put64(r, 0x5000);
	put64(r, 0x2000);
	put32(r, 254);
	put32(r, 3);
	put64(r, 247026);
	put64(r, 99);
	put32(r, 5);
	put32(r, 2);
	put_text(r, path);
	end(r, PERF_RECORD_MMAP2, misc, time);
}

static void task(struct record *r, uint32_t type, uint64_t time)
{
	begin(r);
	put32(r, 11);
	put32(r, 12);
	put32(r, 13);
	put32(r, 14);
	put64(r, time);
	end(r, type, 0, time);
}

static void test_mmap2(void **state)
{
	struct proc_event ev;
	struct record r;

	mmap2(&r, "/usr/lib/libc.so.6", 0, 1234);
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), r.len);
	assert_int_equal(ev.type, PROC_MMAP);
	assert_int_equal(ev.pid, 41);
	assert_int_equal(ev.tid, 42);
	assert_int_equal(ev.start, 0x7f0000001000);
	assert_int_equal(ev.limit, 0x7f0000006000);
	assert_int_equal(ev.offset, 0x2000);
	assert_int_equal(ev.dev, makedev(254, 3));
	assert_int_equal(ev.inode, 247026);
	assert_int_equal(ev.generation, 99);
	assert_int_equal(ev.time_ns, 1234);
	assert_int_equal(ev.text_len, strlen("/usr/lib/libc.so.6"));
	assert_memory_equal(ev.text, "/usr/lib/libc.so.6", ev.text_len);

	mmap2(&r, "/x", PERF_RECORD_MISC_MMAP_BUILD_ID, 1);
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), r.len);
	assert_int_equal(ev.inode, 0);
	mmap2(&r, "/x", PERF_RECORD_MISC_MMAP_DATA, 1);
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), r.len);
	assert_int_equal(ev.type, PROC_NONE);
}

static void test_mmap2_bad(void **state)
{
	struct proc_event ev;
	struct record r;

	mmap2(&r, "/x", 0, 1);
	memset(r.bytes + 16, 0xff, 16); // address and length run over
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), -EBADMSG);
	mmap2(&r, "/x234567", 0, 1);
	memset(r.bytes + 8 + 64, 'x', r.len - 8 - 64 - 16); // no end
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), -EBADMSG);
}

static void test_task_comm_lost(void **state)
{
	struct proc_event ev;
	struct record r;

	task(&r, PERF_RECORD_FORK, 77);
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), r.len);
	assert_int_equal(ev.type, PROC_FORK);
	assert_int_equal(ev.pid, 11);
	assert_int_equal(ev.ppid, 12);
	assert_int_equal(ev.tid, 13);
	assert_int_equal(ev.time_ns, 77);
	task(&r, PERF_RECORD_EXIT, 78);
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), r.len);
	assert_int_equal(ev.type, PROC_EXIT);

	for (unsigned exec = 0; exec < 2; exec++) {
		begin(&r);
		put32(&r, 5);
		put32(&r, 6);
		put_text(&r, "postgres");
		end(&r, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, 9);
		assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), r.len);
		assert_int_equal(ev.type, exec ? PROC_EXEC : PROC_COMM);
		assert_int_equal(ev.pid, 5);
		assert_int_equal(ev.tid, 6);
		assert_int_equal(ev.text_len, 8);
	}
	begin(&r);
	put64(&r, 1);
	put64(&r, 17);
	end(&r, PERF_RECORD_LOST, 0, 9);
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), r.len);
	assert_int_equal(ev.type, PROC_LOST);
	assert_int_equal(ev.lost, 17);
	begin(&r);
	end(&r, PERF_RECORD_THROTTLE, 0, 9);
	assert_int_equal(perf_record_parse(r.bytes, r.len, &ev), r.len);
	assert_int_equal(ev.type, PROC_NONE);
}

static void test_cut_short(void **state)
{
	struct proc_event ev;
	struct record r;

	mmap2(&r, "/usr/lib/libc.so.6", 0, 1234);
	for (size_t len = 0; len < r.len; len++) {
		uint8_t *copy = malloc(len + 1); // so that a sanitizer sees a read behind its end

		memcpy(copy, r.bytes, len);
		assert_int_equal(perf_record_parse(copy, len, &ev), -EBADMSG);
		free(copy);
	}
	for (uint16_t size = 0; size < r.len; size++) {
		struct record cut = r;

		memcpy(cut.bytes + 6, &size, 2);
		assert_true(perf_record_parse(cut.bytes, cut.len, &ev) != (int)r.len);
	}
}

static void test_every_wrap(void **state)
{
	uint8_t data[512], *scratch = malloc(PERF_RECORD_SIZE_MAX);
	struct record r;

	mmap2(&r, "/usr/lib/libc.so.6", 0, 1234);
	for (uint64_t tail = 1024; tail < 1024 + sizeof(data); tail += 8) {
		struct perf_view v = { data, sizeof(data), tail + r.len, tail, scratch };
		struct proc_event ev;
		size_t size;

		memset(data, 0xee, sizeof(data));
		for (size_t i = 0; i < r.len; i++)
			data[(tail + i) % sizeof(data)] = r.bytes[i];
		assert_int_equal(perf_view_peek(&v, &ev, &size), 0);
		assert_int_equal(size, r.len);
		assert_int_equal(ev.type, PROC_MMAP);
		assert_int_equal(ev.text_len, 18);
		assert_memory_equal(ev.text, "/usr/lib/libc.so.6", 18);
		v.head = v.tail;
		assert_int_equal(perf_view_peek(&v, &ev, &size), -EAGAIN);
		v.head = v.tail + r.len - 8;
		assert_int_equal(perf_view_peek(&v, &ev, &size), -EBADMSG);
		v.head = v.tail + sizeof(data) + 8;
		assert_int_equal(perf_view_peek(&v, &ev, &size), -EBADMSG);
	}
	free(scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mmap2),	      cmocka_unit_test(test_mmap2_bad),
		cmocka_unit_test(test_task_comm_lost), cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_every_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
