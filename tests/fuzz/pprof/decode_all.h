// SPDX-License-Identifier: Apache-2.0
// Everything that is done with a profile of strangers, on bytes: read, rank, fold, export, encode and read again.
#ifndef TESTS_FUZZ_DECODE_ALL_H
#define TESTS_FUZZ_DECODE_ALL_H

#include <stdlib.h>
#include <string.h>

#include "pprof/export.h"
#include "pprof/top.h"

static const struct pprof_limits fuzz_limits = { .message = 1 << 20, .memory = 8 << 20, .frames = 1 << 20 };

static inline void must(int condition)
{
	if (!condition)
		abort();
}

static inline void rank(const struct pprof_source *source, const char *label)
{
	struct top_options o = { .what = TOP_FUNCTIONS | TOP_STACKS | (label ? TOP_LABEL : 0), .label = label };
	const char *name = "input";
	struct top *t = top_new(&o);
	struct buf out = { 0 };
	struct error e = { 0 };
	int err = top_read(t, source, &name, 1, &fuzz_limits, &e);

	must(!err || *e.text);
	if (!err)
		top_print(t, 5, &out, &e);
	buf_free(&out);
	top_free(t);
}

static inline void export_all(const struct profile *p, struct memory_budget *budget)
{
	struct folded_options o = { .root = "key,other", .files = true };
	struct sink count = { .limit = 1 << 20 };
	struct flame *flame = NULL;
	struct folded f;
	struct error e;

	if (!folded_make(&f, p, budget, &o, &e)) {
		export_collapsed(&f, 0, &count);
		export_speedscope(&f, 0, "title", &count);
		if (!flame_new(&f, p->n_types - 1, &flame))
			export_svg(flame, "title", &count);
		flame_free(flame);
	}
	folded_free(&f);
	sink_finish(&count);
}

// What we write of what we read is read again, and written as the same bytes.
static inline void round_trip(const struct profile *p)
{
	struct pprof_reader *r = pprof_reader_new(&(struct pprof_limits){ .message = 8 << 20, .memory = 64 << 20, .frames = 1 << 22 });
	struct buf first = { 0 }, second = { 0 };
	struct error e = { 0 };

	must(!profile_encode(p, &first));
	if (first.len) {
		struct pprof_source s = { .fd = -1, .data = first.data, .len = first.len };

		must(!pprof_reader_add(r, &s, &e));
		must(!profile_encode(pprof_reader_finish(r), &second));
	}
	pprof_reader_free(r);
	r = pprof_reader_new(&(struct pprof_limits){ .message = 8 << 20, .memory = 64 << 20, .frames = 1 << 22 });
	if (second.len) {
		struct pprof_source s = { .fd = -1, .data = second.data, .len = second.len };

		first.len = 0;
		must(!pprof_reader_add(r, &s, &e));
		must(!profile_encode(pprof_reader_finish(r), &first));
		must(first.len == second.len && !memcmp(first.data, second.data, first.len));
	}
	pprof_reader_free(r);
	buf_free(&first);
	buf_free(&second);
}

static inline void decode_all(const void *data, size_t len)
{
	struct pprof_source source = { .fd = -1, .data = data, .len = len };
	struct pprof_reader *r = pprof_reader_new(&fuzz_limits);
	struct error e = { 0 };
	int err = pprof_reader_add(r, &source, &e);

	must(!err || *e.text);
	if (!err) {
		// The file merged with itself.
		pprof_reader_add(r, &source, &e);
		export_all(pprof_reader_finish(r), pprof_reader_budget(r));
		round_trip(pprof_reader_finish(r));
	}
	pprof_reader_free(r);
	rank(&source, NULL);
	rank(&source, "key");
}

#endif
