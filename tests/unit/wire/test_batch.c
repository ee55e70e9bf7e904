// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "sample_batch.h"
#include "wire/header.h"

static struct buf encoded(const struct batch *b)
{
	struct buf out = { 0 };

	assert_int_equal(batch_encode(b, &out), 0);
	return out;
}

// A message of ours with this body.
static struct buf message(const void *body, size_t size)
{
	struct buf out = { 0 };

	message_header_put(buf_reserve(&out, MESSAGE_HEADER_SIZE), MESSAGE_BATCH, 0);
	out.len += MESSAGE_HEADER_SIZE;
	buf_append(&out, body, size);
	return out;
}

static void refused(const void *data, size_t size, int want, const char *says)
{
	struct batch *b = NULL;
	struct error e = { 0 };

	assert_int_equal(batch_decode(data, size, &b, &e), want);
	assert_null(b);
	if (!strstr(e.text, says))
		fail_msg("'%s' does not say '%s'", e.text, says);
}

static void same_labels(const struct batch *a, const struct batch *b)
{
	assert_int_equal(a->n_labels, b->n_labels);
	for (unsigned i = 0; i < a->n_labels; i++) {
		assert_string_equal(a->labels[i].name, b->labels[i].name);
		assert_string_equal(a->labels[i].value, b->labels[i].value);
	}
}

static void same_items(const struct batch_profile *a, const struct batch_profile *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (a[i].service)
			assert_string_equal(a[i].service, b[i].service);
		assert_int_equal(a[i].size, b[i].size);
		assert_memory_equal(a[i].data, b[i].data, a[i].size);
	}
}

static void comes_back(struct batch b)
{
	struct buf out = encoded(&b), again;
	struct batch *got;

	assert_int_equal(batch_decode(out.data, out.len, &got, NULL), 0);
	assert_int_equal(got->kind, b.kind);
	assert_string_equal(got->node, b.node);
	assert_memory_equal(got->instance, b.instance, 16);
	assert_int_equal(got->sequence, b.sequence);
	assert_int_equal(got->start, b.start);
	assert_int_equal(got->end, b.end);
	assert_int_equal(got->gap_first, b.gap_first);
	assert_int_equal(got->gap_bytes, b.gap_bytes);
	same_labels(got, &b);
	assert_int_equal(got->n_profiles, b.n_profiles);
	same_items(b.profiles, got->profiles, b.n_profiles);
	assert_int_equal(got->n_requests, b.n_requests);
	same_items(b.requests, got->requests, b.n_requests);
	again = encoded(got);
	assert_int_equal(again.len, out.len);
	assert_memory_equal(again.data, out.data, out.len);
	batch_free(got);
	buf_free(&out);
	buf_free(&again);
}

static void every_kind_comes_back(void **state)
{
	struct batch empty = sample_window();

	comes_back(sample_window());
	comes_back(sample_gap());
	comes_back(sample_request_batch());
	empty.n_profiles = empty.n_labels = 0;
	comes_back(empty);
}

// BATCH_GOLDEN_WRITE=1 in the environment writes the files instead.
static void golden(struct batch b, const char *name)
{
	struct buf got = encoded(&b), want = { 0 };
	char path[512];

	snprintf(path, sizeof(path), TEST_DATA "/wire/%s.batch", name);
	if (getenv("BATCH_GOLDEN_WRITE"))
		assert_int_equal(file_write_atomic(path, got.data, got.len, NULL), 0);
	assert_int_equal(file_read(path, 1 << 20, &want), 0);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
	buf_free(&got);
	buf_free(&want);
}

static void golden_bytes(void **state)
{
	golden(sample_window(), "window");
	golden(sample_gap(), "gap");
	golden(sample_request_batch(), "requests");
}

static void what_is_cut_is_refused(void **state)
{
	struct batch b = sample_window(), *got;
	struct buf out = encoded(&b);

	for (size_t n = 0; n < out.len; n++) {
		uint8_t *cut = malloc(n ? n : 1); // of its exact size, for the sanitizer
		int err;

		memcpy(cut, out.data, n);
		err = batch_decode(cut, n, &got, NULL);
		if (!err) // between two fields of the last kind that repeats
			batch_free(got);
		else
			assert_int_equal(err, -EBADMSG);
		free(cut);
	}
	buf_free(&out);
}

static void headers(void **state)
{
	struct batch b = sample_window();
	struct buf out = encoded(&b);
	struct batch *got;

	refused("", 0, -EBADMSG, "too short");
	refused("HELLO, is this blkprof?", 23, -EBADMSG, "no message of blkprof");
	refused(out.data, BATCH_BYTES_MAX + 1, -EBADMSG, "larger than the limit");
	out.data[8] = MESSAGE_REPLY;
	refused(out.data, out.len, -EBADMSG, "not a batch");
	out.data[8] = MESSAGE_BATCH;
	out.data[4] = 9; // a newer writer that old readers understand
	assert_int_equal(batch_decode(out.data, out.len, &got, NULL), 0);
	batch_free(got);
	out.data[6] = 9; // and one that they do not
	refused(out.data, out.len, -EPROTO, "upgrade");
	out.data[6] = 10;
	refused(out.data, out.len, -EBADMSG, "cannot be");
	buf_free(&out);
}

static void fields_of_a_newer_agent_are_let_be(void **state)
{
	struct batch b = sample_gap(), *got;
	struct buf out = encoded(&b);

	buf_append(&out, "\xa2\x06\x03new\x80\x7d\x05\x91\x7d" "12345678" "\x95\x7d" "1234", 28 - 3);
	assert_int_equal(batch_decode(out.data, out.len, &got, NULL), 0);
	assert_int_equal(got->gap_first, 5);
	batch_free(got);
	buf_free(&out);
}

static void identity_without_decoding(void **state)
{
	struct batch b = sample_window();
	struct buf out = encoded(&b);
	uint8_t instance[16];
	uint64_t sequence;

	assert_int_equal(batch_identity(out.data, out.len, instance, &sequence, NULL), 0);
	assert_memory_equal(instance, b.instance, 16);
	assert_int_equal(sequence, 300);
	assert_int_equal(batch_identity(out.data, out.len - 1, instance, &sequence, NULL), -EBADMSG);
	buf_free(&out);
}

static void cannot_be_encoded(struct batch b, const char *says)
{
	struct buf out = { 0 };
	struct error e = { 0 };

	assert_int_equal(batch_encode(&b, &out), -EINVAL);
	assert_int_equal(out.len, 0);
	assert_int_equal(batch_check(&b, &e), -EINVAL);
	if (!strstr(e.text, says))
		fail_msg("'%s' does not say '%s'", e.text, says);
}

#define WRONG(sample, change, says)         \
	do {                                \
		struct batch b = sample();  \
		change;                     \
		cannot_be_encoded(b, says); \
	} while (0)

static void what_is_wrong_is_not_written(void **state)
{
	static const struct batch_profile twice[] = { { "a", "x", 1 }, { "b", "x", 1 }, { "a", "y", 1 } };
	static const struct batch_profile control = { "a\nb", "x", 1 }, nameless = { "", "x", 1 }, hollow = { "a", "", 0 };
	static const struct batch_profile latin = { "\xe9tat", "x", 1 };
	static const struct batch_label same[] = { { "k", "1" }, { "k", "2" } }, bad = { "k v", "1" };
	char name[BATCH_NODE_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[BATCH_NODE_MAX + 1] = 0;
	WRONG(sample_window, b.node = name, "node");
	WRONG(sample_window, b.node = "", "node");
	WRONG(sample_window, b.node = "..", "node");
	WRONG(sample_window, b.node = "a/b", "node");
	WRONG(sample_window, memset(b.instance, 0, 16), "instance");
	WRONG(sample_window, b.sequence = 0, "sequence");
	WRONG(sample_window, b.sequence = 1ull << 63, "sequence");
	WRONG(sample_window, b.end = b.start, "end after its start");
	WRONG(sample_gap, b.end = b.start - 1, "end after its start");
	WRONG(sample_window, b.end = 1ull << 63, "2262");
	WRONG(sample_window, b.gap_bytes = 1, "a gap");
	WRONG(sample_window, b.kind = 7, "no kind");
	WRONG(sample_gap, b.gap_first = b.sequence + 1, "cannot be");
	WRONG(sample_gap, b.gap_first = 0, "cannot be");
	WRONG(sample_request_batch, b.gap_first = 1, "a gap");
	WRONG(sample_window, (b.profiles = twice, b.n_profiles = 3), "two profiles");
	WRONG(sample_window, (b.profiles = &control, b.n_profiles = 1), "not text");
	WRONG(sample_window, (b.profiles = &latin, b.n_profiles = 1), "not text");
	WRONG(sample_window, (b.profiles = &nameless, b.n_profiles = 1), "service");
	WRONG(sample_window, (b.profiles = &hollow, b.n_profiles = 1), "empty");
	WRONG(sample_window, b.n_profiles = BATCH_PROFILES_MAX + 1, "profiles are more");
	WRONG(sample_window, (b.labels = same, b.n_labels = 2), "two labels");
	WRONG(sample_window, (b.labels = &bad, b.n_labels = 1), "a name that is");
	WRONG(sample_window, b.n_labels = BATCH_LABELS_MAX + 1, "labels are more");
}

static void too_large_is_not_written(void **state)
{
	static char data[BATCH_BYTES_MAX];
	struct batch_profile p = { "a", data, sizeof(data) };
	struct batch b = sample_window();
	struct buf out = { 0 };

	b.profiles = &p;
	b.n_profiles = 1;
	assert_int_equal(batch_encode(&b, &out), -EFBIG);
	buf_free(&out);
}

static void body_refused(const char *body, size_t size, const char *says)
{
	struct buf out = message(body, size);

	refused(out.data, out.len, -EBADMSG, says);
	buf_free(&out);
}

static void bodies(void **state)
{
	body_refused("", 0, "node");
	body_refused("\x08\x04", 2, "no kind 4");
	body_refused("\x0a\x01x", 3, "the kind has the wrong type");
	body_refused("\x10\x01", 2, "node's name has the wrong type");
	body_refused("\x1a\x01x", 3, "instance has 1 bytes");
	body_refused("\x12\x02x\0", 4, "NUL");
	body_refused("\x12\x01x\x12\x01y", 6, "twice");
	body_refused("\x12\x05x", 3, "longer than its message");
	body_refused("\x13\x05x", 3, "type that is not allowed");
	body_refused("\x02\x05x", 3, "no field 0");
	body_refused("\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11, "64 bits");
	body_refused("\x20\xff", 2, "inside a number");
	body_refused("\x39" "1234567", 8, "inside a field");
	body_refused("\x42\x05\x12\x01x\x12\x01", 7, "longer than its message");
	body_refused("\x42\x06\x12\x01x\x12\x01y", 8, "twice");
}

static void too_many(const char *item, size_t size, unsigned n, const char *says)
{
	struct buf body = { 0 };

	for (unsigned i = 0; i <= n; i++)
		buf_append(&body, item, size);
	body_refused((const char *)body.data, body.len, says);
	buf_free(&body);
}

static void counts_are_bounded(void **state)
{
	too_many("\x42\x00", 2, BATCH_PROFILES_MAX, "more than 4096 profiles");
	too_many("\x3a\x00", 2, BATCH_LABELS_MAX, "more than 32 labels");
	too_many("\x5a\x00", 2, BATCH_REQUESTS_MAX, "more than 65536 requests");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_comes_back),
		cmocka_unit_test(golden_bytes),
		cmocka_unit_test(what_is_cut_is_refused),
		cmocka_unit_test(headers),
		cmocka_unit_test(fields_of_a_newer_agent_are_let_be),
		cmocka_unit_test(identity_without_decoding),
		cmocka_unit_test(what_is_wrong_is_not_written),
		cmocka_unit_test(too_large_is_not_written),
		cmocka_unit_test(bodies),
		cmocka_unit_test(counts_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
