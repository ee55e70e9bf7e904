// SPDX-License-Identifier: Apache-2.0
// What the encoder writes, read by another decoder.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "timeline/interned.h"
#include "timeline/proto.h"
#include "timeline/trace.h"
#include "timeline/trace_fields.h"
#include "unit/timeline/decode.h"

static void numbers_come_back(void **state)
{
	static const uint64_t values[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX };
	struct buf b = { 0 };
	struct field f;

	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++) {
		proto_number(&b, 1 + i, values[i]);
		proto_fixed64(&b, 2000 + i, values[i]);
	}
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++) {
		assert_true(field_get(b.data, b.len, 1 + i, 0, &f));
		assert_true(f.wire == 0 && f.value == values[i]);
		assert_true(field_get(b.data, b.len, 2000 + i, 0, &f));
		assert_true(f.wire == 1 && f.data[0] == (values[i] & 0xff) && f.data[7] == values[i] >> 56);
	}
	buf_free(&b);
}

static void messages_of_any_length_nest(void **state)
{
	static const size_t lengths[] = { 0, 1, 120, 127, 128, 200, 16380, 16383, 16384, 300000 };
	char *text = calloc(1, 300000);

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct buf b = { 0 };
		struct field outer, inner, body;
		size_t first = proto_begin(&b, 7), second = proto_begin(&b, 300);

		memset(text, 'x', lengths[i]);
		proto_bytes(&b, 2, text, lengths[i]);
		proto_end(&b, second);
		proto_number(&b, 3, 99);
		proto_end(&b, first);
		proto_number(&b, 8, 5);
		assert_true(field_get(b.data, b.len, 7, 0, &outer));
		assert_true(field_get(outer.data, outer.len, 300, 0, &inner));
		assert_true(field_get(inner.data, inner.len, 2, 0, &body));
		assert_int_equal(body.len, lengths[i]);
		assert_memory_equal(body.data, text, lengths[i]);
		assert_true(field_get(outer.data, outer.len, 3, 0, &inner) && inner.value == 99);
		assert_true(field_get(b.data, b.len, 8, 0, &inner) && inner.value == 5);
		buf_free(&b);
	}
	free(text);
}

static void what_is_interned_is_said_once(void **state)
{
	struct interned *in = interned_new(4096);
	struct buf said = { 0 };
	uint64_t a = interned_text(in, INTERNED_NAME, "read", &said);
	size_t len = said.len;
	struct field f;

	assert_true(a == 1 && len > 0);
	assert_int_equal(interned_text(in, INTERNED_NAME, "read", &said), a);
	assert_int_equal(said.len, len);
	assert_int_equal(interned_text(in, INTERNED_NAME, "write", &said), 2);
	assert_int_equal(interned_text(in, INTERNED_CATEGORY, "read", &said), 1); // numbers are of a kind
	said.len = 0;
	assert_int_equal(interned_stack(in, 77, "main\nwork\nread", &said), 1);
	assert_int_equal(interned_stack(in, 78, "main\nidle", &said), 2);
	for (unsigned i = 0; i < 4; i++)
		assert_true(field_get(said.data, said.len, INTERNED_FRAME, i, &f)); // main is one frame
	assert_false(field_get(said.data, said.len, INTERNED_FRAME, 4, &f));
	for (unsigned i = 0; !interned_is_full(in); i++) {
		char name[16] = { (char)('a' + i % 26), (char)('a' + i / 26) };

		interned_text(in, INTERNED_NAME, name, &said);
	}
	interned_clear(in);
	assert_false(interned_is_full(in));
	assert_int_equal(interned_text(in, INTERNED_NAME, "write", &said), 1);
	interned_free(in);
	buf_free(&said);
}

static int keep(void *context, const void *data, size_t len)
{
	buf_append(context, data, len);
	return 0;
}

// With very many different names the state is cleared, and each packet that does so says that it does.
static void interned_names_are_never_ahead_of_a_clearing(void **state)
{
	struct buf out = { 0 };
	struct trace *t = trace_new(keep, &out);
	struct event start = { .type = EVENT_START, .text = "" };
	uint64_t known = 0, cleared = 0;
	struct field packet, f, event;
	const uint8_t *at;
	bool bad = false;

	trace_begin(t, &start, 1);
	trace_track(t, 0, 1, 0, TRACE_LANE, "x");
	for (unsigned i = 0; i < 100000; i++) {
		char name[64];
		struct trace_event e = { .time = i, .track = 1, .type = TRACE_INSTANT, .category = "c", .name = name };

		snprintf(name, sizeof(name), "name %u", i / 2);
		trace_event(t, &e);
	}
	trace_flush(t);
	assert_int_equal(trace_error(t), 0);
	assert_int_equal(trace_size(t), out.len);
	at = out.data;
	while (field_next(&at, out.data + out.len, &packet, &bad)) {
		if (field_get(packet.data, packet.len, PACKET_FLAGS, 0, &f) && f.value & FLAG_CLEARED) {
			cleared++;
			known = 0;
		}
		if (field_get(packet.data, packet.len, PACKET_INTERNED, 0, &f)) {
			struct field name, iid;

			for (unsigned n = 0; field_get(f.data, f.len, INTERNED_NAME, n, &name); n++) {
				assert_true(field_get(name.data, name.len, INTERNED_IID, 0, &iid));
				assert_int_equal(iid.value, ++known);
			}
		}
		if (field_get(packet.data, packet.len, PACKET_TRACK_EVENT, 0, &event)) {
			assert_true(field_get(event.data, event.len, TRACK_EVENT_NAME_IID, 0, &f));
			assert_true(f.value && f.value <= known);
		}
	}
	assert_false(bad);
	assert_true(cleared > 1);
	trace_free(t);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_come_back),
		cmocka_unit_test(messages_of_any_length_nest),
		cmocka_unit_test(what_is_interned_is_said_once),
		cmocka_unit_test(interned_names_are_never_ahead_of_a_clearing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
