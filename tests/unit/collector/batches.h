// SPDX-License-Identifier: Apache-2.0
// Batches for tests of the store, and sums of what a query gives.
#ifndef BLKPROF_TESTS_COLLECTOR_BATCHES_H
#define BLKPROF_TESTS_COLLECTOR_BATCHES_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/store.h"
#include "pprof/builder.h"
#include "pprof/decode.h"

#define S 1000000000ull
#define T0 (1700000000ull / 3600 * 3600 * S) // a whole hour

struct totals {
	int64_t v[PPROF_TYPES];
	size_t samples;
	int64_t time, duration;
};

static inline uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static inline void add_random_sample(struct pprof_builder *b, const char *service, uint64_t *random, bool pids, struct totals *sum)
{
	static const char *const devices[] = { "nvme0n1", "sda" }, *const ops[] = { "read", "write" };
	struct pprof_mapping_info m = { .start = 0x1000 + (next_random(random) % 4) * 0x100000, .offset = 0, .file = "/usr/bin/app",
					.build_id = "abcd", .has_functions = true };
	uint32_t locations[12], mapping, n = 2 + (uint32_t)(next_random(random) % 9);
	unsigned op = (unsigned)(next_random(random) % 2);
	int64_t ops_n = 1 + (int64_t)(next_random(random) % 1000), bytes = ops_n * 4096;
	int64_t values[PPROF_TYPES] = { ops_n, (int64_t)next_random(random), op ? 0 : bytes, op ? bytes : 0, 0 };
	struct pprof_label_info labels[] = {
		{ .key = "device", .text = devices[next_random(random) % 2] }, { .key = "op", .text = ops[op] },
		{ .key = "service", .text = service }, { .key = "pid", .number = pids ? 1 + (int64_t)(next_random(random) % 3) : 0 },
		{ .key = "latency", .number = 1000 * (int64_t)(next_random(random) % 3), .unit = "nanoseconds" },
	};

	m.limit = m.start + 0x10000;
	mapping = pprof_add_mapping(b, &m);
	for (uint32_t i = 0; i + 1 < n; i++) {
		uint64_t f = next_random(random) % 30;
		char name[32];
		struct pprof_line_info line = { .name = name, .file = "app.c", .line = (int64_t)f };

		snprintf(name, sizeof(name), "function_%u", (unsigned)f);
		locations[i] = pprof_add_location(b, mapping, m.start + 0x100 * f + 1, &line, 1);
	}
	locations[n - 1] = pprof_add_frame(b, service);
	assert_int_equal(pprof_add_sample(b, locations, n, values, labels, 5), 0);
	for (unsigned i = 0; i < PPROF_TYPES; i++)
		sum->v[i] += values[i];
}

static inline void make_profile(const char *service, uint64_t start, uint64_t end, unsigned samples, uint64_t seed, bool pids,
				struct buf *gz, struct totals *sum)
{
	char owner[300];
	struct pprof_builder *b;
	struct buf raw = { 0 };

	snprintf(owner, sizeof(owner), "[service %s]", service);
	b = pprof_builder_new(owner);
	for (unsigned i = 0; i < samples; i++)
		add_random_sample(b, service, &seed, pids, sum);
	pprof_set_time(b, start, end - start);
	pprof_add_comment(b, "lost node=n1 cause=ring_full count=2 window=1796038131561086421 (samples)");
	pprof_add_comment(b, "blkprof version=0.1.0 backend=tracepoint kernel=6.1 rate=1000 cpu_hz=0");
	assert_int_equal(pprof_encode(b, &raw), 0);
	assert_int_equal(pprof_gzip(raw.data, raw.len, gz), 0);
	buf_free(&raw);
	pprof_builder_free(b);
}

#define SERVICES 3

struct made {
	struct batch b;
	struct batch_profile profiles[SERVICES];
	struct buf gz[SERVICES];
	struct totals sum, by_service[SERVICES];
};

static const char *const service_names[SERVICES] = { "postgresql.service", "shop/web/nginx", "kernel" };

static inline void make_batch(struct made *m, const char *node, uint8_t instance, uint64_t sequence, uint64_t start, uint64_t end,
			      unsigned samples, uint64_t seed, bool pids)
{
	memset(m, 0, sizeof(*m));
	m->b = (struct batch){ .kind = BATCH_WINDOW, .node = node, .sequence = sequence, .start = start, .end = end,
			       .n_profiles = SERVICES, .profiles = m->profiles };
	memset(m->b.instance, instance, 16);
	for (unsigned i = 0; i < SERVICES; i++) {
		make_profile(service_names[i], start, end, samples, seed * 31 + i, pids, &m->gz[i], &m->by_service[i]);
		m->profiles[i] = (struct batch_profile){ service_names[i], m->gz[i].data, m->gz[i].len };
		for (unsigned k = 0; k < PPROF_TYPES; k++)
			m->sum.v[k] += m->by_service[i].v[k];
	}
}

static inline void free_batch(struct made *m)
{
	for (unsigned i = 0; i < SERVICES; i++)
		buf_free(&m->gz[i]);
}

static inline int put_one(struct store *s, const struct batch *b)
{
	struct error e = { 0 };
	int result = 1, err = store_put(s, &b, 1, &result, &e);

	if (err)
		print_message("%s\n", e.text);
	assert_int_equal(err, 0);
	return result;
}

static inline struct store *open_store_with(const char *directory, bool read_only, uint64_t max_age, uint64_t max_size)
{
	struct store_options o = { .directory = directory, .read_only = read_only, .max_age_ns = max_age, .max_size = max_size };
	struct error e = { 0 };
	struct store *s = NULL;

	if (store_open(&o, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

static inline struct totals totals_of(const struct buf *gz, struct buf *ret_comments)
{
	struct pprof_reader *r = pprof_reader_new(NULL);
	struct pprof_source source = { .fd = -1, .data = gz->data, .len = gz->len };
	struct totals t = { 0 };
	struct error e = { 0 };
	const struct profile *p;

	if (pprof_reader_add(r, &source, &e))
		fail_msg("%s", e.text);
	p = pprof_reader_finish(r);
	assert_int_equal(p->n_types, PPROF_TYPES);
	for (size_t i = 0; i < p->samples.n; i++)
		for (unsigned k = 0; k < PPROF_TYPES; k++)
			t.v[k] += p->values[i * PPROF_TYPES + k];
	t.samples = p->samples.n;
	t.time = p->time_ns;
	t.duration = p->duration_ns;
	for (size_t i = 0; ret_comments && i < p->n_comments; i++)
		buf_printf(ret_comments, "%s\n", profile_text(p, p->comments[i]));
	pprof_reader_free(r);
	return t;
}

static inline struct totals query_totals(struct store *s, struct store_query q, struct store_coverage *c, struct buf *comments)
{
	struct error e = { 0 };
	struct buf gz = { 0 };
	struct totals t = { 0 };
	int err = store_query(s, &q, &gz, c, &e);

	if (err == -ENODATA)
		return t;
	if (err)
		fail_msg("%s", e.text);
	t = totals_of(&gz, comments);
	buf_free(&gz);
	return t;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	return remove(path);
}

static inline void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline char *make_directory(void)
{
	char *path = strdup("/tmp/blkprof-store-XXXXXX");

	assert_non_null(mkdtemp(path));
	return path;
}

#endif
