// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "pprof/decode_internal.h"
#include "pprof/top_internal.h"

#define NAME_MAX_SHOWN 4000
// Frames of a stack shown at its two ends.
#define STACK_TOP 12
#define STACK_ROOT 4

static const char *unit(const struct top *t)
{
	return profile_text(t->profile, t->profile->types[t->type].unit);
}

static const char *value(const struct top *t, char *out, size_t cap, int64_t v)
{
	return top_format(out, cap, v, unit(t));
}

static double percent(const struct top *t, int64_t v)
{
	int64_t total = top_total(t);

	return total ? 100.0 * (double)v / (double)total : 0;
}

static const char *mean(const struct top *t, char *out, size_t cap, int64_t v, int64_t events)
{
	// Of a difference it would be one change divided by another.
	if (events <= 0)
		return "-";
	return value(t, out, cap, v / events);
}

static void print_when(const struct profile *p, struct buf *out)
{
	time_t seconds = (time_t)(p->time_ns / 1000000000);
	char text[40];
	struct tm tm;

	if (p->mappings.n) {
		const struct profile_mapping *m = intern_key(&p->mappings, 1);

		if (m->file)
			buf_printf(out, "Of: %.200s\n", profile_text(p, m->file));
	}
	if (p->time_ns > 0 && gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		buf_printf(out, "From: %s\n", text);
	if (p->duration_ns > 0)
		buf_printf(out, "Duration: %s\n", text_time(text, sizeof(text), (double)p->duration_ns));
}

static void print_totals(const struct top *t, struct buf *out)
{
	const struct profile *p = t->profile;
	char text[64], other[64];

	print_when(p, out);
	buf_printf(out, "Type: %.60s\nTotal: %s", profile_text(p, p->types[t->type].type),
		   value(t, text, sizeof(text), top_total(t)));
	if (t->has_events && t->events)
		buf_printf(out, ", mean %s of %s %.60s", mean(t, text, sizeof(text), top_total(t), top_events(t)),
			   text_count(other, sizeof(other), (uint64_t)top_events(t)), profile_text(p, p->types[0].type));
	buf_printf(out, "\n");
	if (t->diff)
		buf_printf(out, "This is a difference of two profiles: values are changes, and a mean is not one.\n");
	if (p->drop_frames)
		buf_printf(out, "The profile asks readers to hide the frames '%.200s': they are shown.\n",
			   profile_text(p, p->drop_frames));
	buf_printf(out, "All types:");
	for (size_t i = 0; i < p->n_types; i++)
		buf_printf(out, "%s %.60s %s", i ? "," : "", profile_text(p, p->types[i].type),
			   top_format(text, sizeof(text), t->type_totals[i], profile_text(p, p->types[i].unit)));
	buf_printf(out, "\n");
}

static void print_left_out(struct buf *out, size_t shown, size_t n, const char *what)
{
	if (shown < n)
		buf_printf(out, "(%zu more %s)\n", n - shown, what);
}

static void print_functions(const struct top *t, const struct top_row *rows, size_t n, size_t shown, struct buf *out)
{
	char flat[64], cum[64], average[64];
	int64_t sum = 0;

	buf_printf(out, "\n%11s %7s %7s %11s %7s%s  function\n", "flat", "flat%", "sum%", "cum", "cum%",
		   t->has_events ? "        mean" : "");
	for (size_t i = 0; i < shown; i++) {
		const struct top_row *r = &rows[i];

		sum = saturating_add(sum, r->flat);
		buf_printf(out, "%11s %6.2f%% %6.2f%% %11s %6.2f%%", value(t, flat, sizeof(flat), r->flat), percent(t, r->flat),
			   percent(t, sum), value(t, cum, sizeof(cum), r->cum), percent(t, r->cum));
		if (t->has_events)
			buf_printf(out, " %11s", mean(t, average, sizeof(average), r->cum, r->cum_events));
		buf_printf(out, "  %.*s%s\n", NAME_MAX_SHOWN, r->name,
			   !r->inlined ? "" : r->called ? " (partial-inline)" : " (inline)");
	}
	print_left_out(out, shown, n, "functions");
}

static void print_stack(const struct top *t, const struct top_stack *s, struct buf *out)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (i == STACK_TOP && s->n > STACK_TOP + STACK_ROOT + 1) {
			buf_printf(out, "      ... %u frames\n", s->n - STACK_TOP - STACK_ROOT);
			i = s->n - STACK_ROOT;
		}
		buf_printf(out, "      %.*s\n", NAME_MAX_SHOWN, top_node_name(t, s->nodes[i]));
	}
	if (!s->n)
		buf_printf(out, "      (no stack)\n");
}

static void print_stacks(const struct top *t, const struct top_stack *rows, size_t n, size_t shown, struct buf *out)
{
	char text[64], average[64], events[64];

	buf_printf(out, "\nHeaviest stacks, each from the leaf to the root:\n");
	for (size_t i = 0; i < shown; i++) {
		buf_printf(out, "%11s %6.2f%%", value(t, text, sizeof(text), rows[i].value), percent(t, rows[i].value));
		if (t->has_events && rows[i].events > 0)
			buf_printf(out, "  %s times, mean %s", text_count(events, sizeof(events), (uint64_t)rows[i].events),
				   mean(t, average, sizeof(average), rows[i].value, rows[i].events));
		buf_printf(out, "\n");
		print_stack(t, &rows[i], out);
	}
	print_left_out(out, shown, n, "stacks");
}

static void print_labels(const struct top *t, const struct top_label *rows, size_t n, size_t shown, struct buf *out)
{
	char text[64], average[64], events[64];

	buf_printf(out, "\n%11s %7s%s  %.60s\n", profile_text(t->profile, t->profile->types[t->type].type), "share",
		   t->has_events ? "      events        mean" : "", t->options.label);
	for (size_t i = 0; i < shown; i++) {
		buf_printf(out, "%11s %6.2f%%", value(t, text, sizeof(text), rows[i].value), percent(t, rows[i].value));
		if (t->has_events)
			buf_printf(out, " %11s %11s", top_format(events, sizeof(events), rows[i].events, ""),
				   mean(t, average, sizeof(average), rows[i].value, rows[i].events));
		buf_printf(out, "  %.*s\n", NAME_MAX_SHOWN, rows[i].name);
	}
	print_left_out(out, shown, n, "values");
}

static size_t limited(size_t n, unsigned rows)
{
	return rows && n > rows ? rows : n;
}

static int report_functions(struct top *t, unsigned rows, struct buf *out)
{
	struct top_row *list;
	size_t n;
	int err = top_functions(t, &list, &n);

	if (!err) {
		print_functions(t, list, n, limited(n, rows), out);
		free(list);
	}
	return err;
}

static int report_stacks(struct top *t, unsigned rows, struct buf *out)
{
	struct top_stack *list;
	size_t n;
	int err = top_stacks(t, &list, &n);

	if (!err) {
		print_stacks(t, list, n, limited(n, rows), out);
		free(list);
	}
	return err;
}

static int report_labels(struct top *t, unsigned rows, struct buf *out)
{
	struct top_label *list;
	size_t n;
	int err = top_labels(t, &list, &n);

	if (err)
		return err;
	print_labels(t, list, n, limited(n, rows), out);
	for (size_t i = 0; i < n; i++)
		free(list[i].made);
	free(list);
	return 0;
}

int top_print(struct top *t, unsigned rows, struct buf *out, struct error *e)
{
	char limit[32];
	int err = 0;

	print_totals(t, out);
	if (t->options.what & TOP_FUNCTIONS)
		err = report_functions(t, rows, out);
	if (!err && t->options.what & TOP_STACKS)
		err = report_stacks(t, rows, out);
	if (!err && t->no_stacks)
		buf_printf(out, "\nIts stacks take more than the limit of %s of memory and are left out; --memory raises it.\n",
			   text_bytes(limit, sizeof(limit), (double)t->budget->limit));
	if (!err && t->options.what & TOP_LABEL)
		err = report_labels(t, rows, out);
	if (!err)
		err = out->error;
	return err ? decode_memory(t->budget, err, e) : 0;
}
