// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "pprof/diff_internal.h"
#include "pprof/units.h"

#define STACK_FRAMES 14 // shown of a stack, nearest to the leaf

// A rate: seconds of I/O a second (the mean queue depth), bytes or operations a second.
static const char *rate(const struct diff *d, char *out, size_t cap, double v, bool sign)
{
	int64_t scale;
	enum unit_family family = unit_parse(d->unit, &scale);
	char text[40];
	const char *plus = sign && v >= 0 ? "+" : "";

	if (family == UNIT_TIME)
		snprintf(text, sizeof(text), "%s/s", text_time(out, cap, v * (double)scale));
	else if (family == UNIT_BYTES)
		snprintf(text, sizeof(text), "%s/s", text_bytes(out, cap, v * (double)scale));
	else
		snprintf(text, sizeof(text), "%.*f/s", fabs(v) < 10 ? 2 : 0, v);
	snprintf(out, cap, "%s%s", plus, text);
	return out;
}

static const char *relative(char *out, size_t cap, const struct diff_row *r)
{
	double ratio = r->value[0] > 0 ? r->value[1] / r->value[0] : 0;

	if (r->appeared || r->value[0] <= 0)
		snprintf(out, cap, "new");
	else if (r->gone || r->value[1] <= 0)
		snprintf(out, cap, "gone");
	else if (ratio >= 2)
		snprintf(out, cap, "%.3gx", ratio);
	else
		snprintf(out, cap, "%+.1f%%", 100 * (ratio - 1));
	return out;
}

static const char *mean(char *out, size_t cap, double ns)
{
	if (ns > 0)
		text_time(out, cap, ns);
	else
		snprintf(out, cap, "-");
	return out;
}

static void print_side(const struct diff *d, enum diff_side side, struct buf *out)
{
	const struct profile *p = d->profile[side];
	const struct diff_coverage *c = diff_get_coverage(d, side);
	time_t seconds = (time_t)(p->time_ns / 1000000000);
	char when[40] = "", covered[32], stacks[32];
	struct tm tm;

	if (p->time_ns > 0 && gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ, ", &tm);
	buf_printf(out, "%-9s %s%s of %u node%s", side == DIFF_BASE ? "Base:" : "Incident:", when,
		   text_time(covered, sizeof(covered), c->node_seconds * 1e9), c->nodes, c->nodes == 1 ? "" : "s");
	if (c->windows > c->nodes)
		buf_printf(out, " in %u windows", c->windows);
	if (c->stacks > 0)
		buf_printf(out, ", %s stacks sampled", text_count(stacks, sizeof(stacks), (uint64_t)c->stacks));
	buf_printf(out, "\n");
}

static void print_row(const struct diff *d, const struct diff_row *r, struct buf *out)
{
	char a[48], b[48], c[48], e[48], rel[24], m0[32], m1[32];

	buf_printf(out, "%13s %13s %13s %8s  %11s %9s %9s  ", rate(d, a, sizeof(a), r->value[0], false),
		   rate(d, b, sizeof(b), r->value[1], false), rate(d, c, sizeof(c), r->value[1] - r->value[0], true),
		   relative(rel, sizeof(rel), r), rate(d, e, sizeof(e), r->error, false), mean(m0, sizeof(m0), r->mean_ns[0]),
		   mean(m1, sizeof(m1), r->mean_ns[1]));
}

static void print_heading(const char *what, struct buf *out)
{
	buf_printf(out, "\n%13s %13s %13s %8s  %11s %9s %9s  %s\n", "base", "incident", "change", "", "std error", "mean was", "mean is",
		   what);
}

// Leaf first, as `top` shows them.
static void print_stack(const char *name, struct buf *out)
{
	const char *end = name + strlen(name);
	unsigned n = 0, all = 1;

	for (const char *at = name; *at; at++)
		all += *at == ';';
	while (end > name && n < STACK_FRAMES) {
		const char *from = end;

		while (from > name && from[-1] != ';')
			from--;
		buf_printf(out, "      %.*s\n", (int)(end - from), from);
		n++;
		end = from > name ? from - 1 : name;
	}
	if (all > n)
		buf_printf(out, "      ... %u frames\n", all - n);
}

static int print_ranking(struct diff *d, enum diff_by by, const char *what, unsigned rows, struct buf *out)
{
	struct diff_row *r;
	size_t n, shown = 0, beyond = 0;
	int err = diff_rows(d, by, &r, &n);

	if (err)
		return err;
	while (beyond < n && r[beyond].beyond_noise)
		beyond++;
	if (n)
		print_heading(what, out);
	for (size_t i = 0; i < beyond && (!rows || i < rows); i++, shown++) {
		print_row(d, &r[i], out);
		if (by != DIFF_BY_STACK) {
			buf_printf(out, "%.400s\n", r[i].name);
			continue;
		}
		buf_printf(out, "\n");
		print_stack(r[i].name, out);
	}
	if (n)
		buf_printf(out, "(%zu more beyond noise, %zu within it)\n", beyond - shown, n - beyond);
	free(r);
	return 0;
}

int diff_print(struct diff *d, unsigned rows, struct buf *out)
{
	static const struct {
		enum diff_by by;
		const char *what;
	} rankings[] = {
		{ DIFF_BY_DEVICE, "device and operation" },
		{ DIFF_BY_SERVICE, "service" },
		{ DIFF_BY_FUNCTION, "function" },
		{ DIFF_BY_STACK, "stack" },
	};
	const struct diff_verdict *v = diff_get_verdict(d);
	struct diff_row total = diff_total(d);
	int err = 0;

	buf_printf(out, "%s\n\n", v->text);
	print_side(d, DIFF_BASE, out);
	print_side(d, DIFF_INCIDENT, out);
	buf_printf(out, "Type:     %.60s, per second%s\n", d->type,
		   d->facts[0].coverage.nodes > 1 || d->facts[1].coverage.nodes > 1 ? " and node" : "");
	if (v->kind != DIFF_NOISE)
		buf_printf(out, "Change of I/O time: %+.3g s/s by more work, %+.3g s/s by slower work\n", v->more, v->slower);
	if (!d->facts[0].coverage.series || !d->facts[1].coverage.series)
		buf_printf(out, "How much these loads vary from second to second is not known: changes below 10%% count as noise.\n");
	print_heading("", out);
	print_row(d, &total, out);
	buf_printf(out, "total\n");
	for (unsigned i = 0; i < sizeof(rankings) / sizeof(*rankings) && !err; i++)
		err = print_ranking(d, rankings[i].by, rankings[i].what, rows, out);
	return err ? err : out->error;
}
