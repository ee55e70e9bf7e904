// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "pprof/export.h"
#include "pprof/units.h"

void export_collapsed(const struct folded *f, size_t type, struct sink *s)
{
	size_t n_types = f->profile->n_types;

	for (uint32_t id = 1; id <= f->stacks.n && !s->error; id++) {
		const uint32_t *frames = intern_key(&f->stacks, id);
		size_t n = intern_len(&f->stacks, id) / sizeof(*frames);
		int64_t v = f->values[(size_t)(id - 1) * n_types + type];

		if (!v)
			continue;
		for (size_t i = 0; i < n && !s->error; i++) {
			if (i)
				sink_put(s, ";", 1);
			sink_frame(s, folded_name(f, frames[i]));
		}
		sink_printf(s, " %" PRId64 "\n", v);
	}
}

// The units that speedscope knows, by exactly these words.
static const char *speedscope_unit(const char *unit)
{
	int64_t scale;
	enum unit_family family = unit_parse(unit, &scale);

	if (family == UNIT_BYTES && scale == 1)
		return "bytes";
	if (family == UNIT_TIME)
		return scale == 1 ? "nanoseconds" :
		       scale == 1000 ? "microseconds" :
		       scale == 1000000 ? "milliseconds" :
		       scale == 1000000000 ? "seconds" :
					     "none";
	return "none";
}

static void put_frames(const struct folded *f, struct sink *s)
{
	for (uint32_t id = 1; id <= f->frames.n && !s->error; id++) {
		const struct frame *frame = folded_frame(f, id);

		sink_text(s, id > 1 ? ",\n{\"name\":\"" : "\n{\"name\":\"");
		sink_json(s, folded_name(f, id));
		if (frame->file) {
			sink_text(s, "\",\"file\":\"");
			sink_json(s, intern_key(&f->names, frame->file));
		}
		sink_text(s, "\"}");
	}
}

static void put_stack(const struct folded *f, uint32_t id, struct sink *s)
{
	const uint32_t *frames = intern_key(&f->stacks, id);
	size_t n = intern_len(&f->stacks, id) / sizeof(*frames);

	sink_put(s, "[", 1);
	for (size_t i = 0; i < n && !s->error; i++)
		sink_printf(s, i ? ",%u" : "%u", frames[i] - 1);
	sink_put(s, "]", 1);
}

static void put_profile(const struct folded *f, size_t type, struct sink *s)
{
	const struct profile *p = f->profile;
	int64_t total = 0;
	bool any = false;

	sink_text(s, "{\"type\":\"sampled\",\"name\":\"");
	sink_json(s, profile_text(p, p->types[type].type));
	sink_printf(s, "\",\"unit\":\"%s\",\"samples\":[", speedscope_unit(profile_text(p, p->types[type].unit)));
	for (uint32_t id = 1; id <= f->stacks.n && !s->error; id++) {
		int64_t v = f->values[(size_t)(id - 1) * p->n_types + type];

		if (!v)
			continue;
		sink_text(s, any ? ",\n" : "\n");
		put_stack(f, id, s);
		total = saturating_add(total, v);
		any = true;
	}
	sink_text(s, "],\"weights\":[");
	any = false;
	for (uint32_t id = 1; id <= f->stacks.n && !s->error; id++) {
		int64_t v = f->values[(size_t)(id - 1) * p->n_types + type];

		if (v)
			sink_printf(s, any ? ",%" PRId64 : "%" PRId64, v);
		any |= v != 0;
	}
	sink_printf(s, "],\"startValue\":0,\"endValue\":%" PRId64 "}", total);
}

void export_speedscope(const struct folded *f, size_t type, const char *title, struct sink *s)
{
	sink_text(s, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"blkprof@" BLKPROF_VERSION
		     "\",\"name\":\"");
	sink_json(s, title);
	sink_printf(s, "\",\"activeProfileIndex\":%zu,\"shared\":{\"frames\":[", type);
	put_frames(f, s);
	sink_text(s, "]},\"profiles\":[\n");
	for (size_t i = 0; i < f->profile->n_types && !s->error; i++) {
		if (i)
			sink_text(s, ",\n");
		put_profile(f, i, s);
	}
	sink_text(s, "]}\n");
}
