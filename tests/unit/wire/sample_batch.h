// SPDX-License-Identifier: Apache-2.0
// Batches of each kind, for the tests of everything that sends, keeps or reads them.
#ifndef TESTS_WIRE_SAMPLE_BATCH_H
#define TESTS_WIRE_SAMPLE_BATCH_H

#include "wire/batch.h"

static const struct batch_profile sample_profiles[] = {
	{ "postgresql.service", "\x1f\x8b\0one", 6 },
	{ "shop/cart/\xc3\xa9tat", "\x1f\x8b\0two\0", 7 },
};
static const struct batch_label sample_labels[] = { { "region", "eu-1" }, { "tier", "" } };
static const struct batch_profile sample_requests[] = { { NULL, "{\"id\":1}", 8 }, { NULL, "{\"id\":2}", 8 } };

#define SAMPLE_INSTANCE { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff }

static inline struct batch sample_window(void)
{
	return (struct batch){ .kind = BATCH_WINDOW, .node = "db-1.example", .instance = SAMPLE_INSTANCE, .sequence = 300,
			       .start = 1700000000000000000, .end = 1700000010000000000, .n_profiles = 2,
			       .profiles = sample_profiles, .n_labels = 2, .labels = sample_labels };
}

static inline struct batch sample_gap(void)
{
	return (struct batch){ .kind = BATCH_GAP, .node = "db-1.example", .instance = SAMPLE_INSTANCE, .sequence = 9,
			       .start = 1700000000000000000, .end = 1700000030000000000, .gap_first = 5, .gap_bytes = 123456 };
}

static inline struct batch sample_request_batch(void)
{
	return (struct batch){ .kind = BATCH_REQUESTS, .node = "db-1.example", .instance = SAMPLE_INSTANCE, .sequence = 1,
			       .start = 1700000000000000000, .end = 1700000001000000000, .n_requests = 2,
			       .requests = sample_requests };
}

#endif
