// SPDX-License-Identifier: Apache-2.0
// A configuration file: whatever is in it, every value that comes out is of its type and within its range.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/config.h"
#include "common/text.h"

struct values {
	const char *text;
	struct config_list list;
	bool yes;
	uint32_t number;
	uint64_t size, time;
	struct config_pairs pairs;
};

#define KEY(s, k, t, field, low, high)                                                                             \
	{ .section = s, .key = k, .type = t, .offset = offsetof(struct values, field), .min = low, .max = high }

static const struct config_key keys[] = {
	KEY("one", "text", CONFIG_TEXT, text, 0, 0),	KEY("one", "list", CONFIG_LIST, list, 0, 0),
	KEY("one", "yes", CONFIG_BOOL, yes, 0, 0),	KEY("one", "number", CONFIG_U32, number, 1, 1000),
	KEY("two", "size", CONFIG_SIZE, size, 1, 1e12), KEY("two", "time", CONFIG_TIME, time, 1e6, 1e12),
	KEY("pairs", "*", CONFIG_PAIRS, pairs, 0, 0),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
	if (!text || !text_is_utf8(text, strlen(text)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct values v = { .text = "default", .number = 1, .size = 1, .time = 1000000 };
	struct config *c = NULL;
	struct error e = { "" };
	int err = config_parse("file", (const char *)data, size, keys, sizeof(keys) / sizeof(*keys), &v, &c, &e);

	if (err && (!*e.text || c))
		abort();
	if (v.number < 1 || v.number > 1000 || v.size < 1 || v.size > 1e12 || v.time < 1e6 || v.time > 1e12)
		abort();
	check_text(v.text);
	for (unsigned i = 0; i < v.list.n && !err; i++)
		check_text(v.list.item[i]);
	for (unsigned i = 0; i < v.pairs.n && !err; i++) {
		check_text(v.pairs.name[i]);
		check_text(v.pairs.value[i]);
	}
	config_free(c);
	return 0;
}
