// SPDX-License-Identifier: Apache-2.0
// Which kind of change it is. Judged by time and operations whatever the rows are ranked by.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/diff_internal.h"

static const char *const kind_names[DIFF_KINDS] = {
	[DIFF_NOISE] = "noise", [DIFF_SLOWER] = "slower", [DIFF_FASTER] = "faster", [DIFF_QUEUED] = "queued", [DIFF_TAIL] = "tail",
	[DIFF_MORE] = "more",	[DIFF_LESS] = "less",	  [DIFF_OTHER] = "other",   [DIFF_SPLIT] = "split",
};

const char *diff_kind_name(enum diff_kind kind)
{
	return kind < DIFF_KINDS ? kind_names[kind] : "?";
}

// Rates of one cell and the errors of their changes.
struct change {
	double ops[DIFF_SIDES], time[DIFF_SIDES], bytes[DIFF_SIDES], mean[DIFF_SIDES];
	double ops_error, time_error;
};

static double error_of(const struct diff *d, double base, double incident)
{
	double b = d->facts[DIFF_BASE].coverage.node_seconds, i = d->facts[DIFF_INCIDENT].coverage.node_seconds;

	return sqrt(base / (b * b) + incident / (i * i));
}

static struct change change_of(const struct diff *d, const struct diff_sum side[DIFF_SIDES])
{
	struct change c;

	for (unsigned s = 0; s < DIFF_SIDES; s++) {
		c.ops[s] = diff_rate(d, s, side[s].ops);
		c.time[s] = diff_rate(d, s, side[s].time);
		c.bytes[s] = diff_rate(d, s, side[s].bytes);
		c.mean[s] = c.ops[s] > 0 ? c.time[s] / c.ops[s] : 0;
	}
	c.ops_error = error_of(d, side[0].var_ops, side[1].var_ops);
	c.time_error = error_of(d, side[0].var_time, side[1].var_time);
	return c;
}

static double by_time(const struct change *c)
{
	return c->time[1] - c->time[0];
}

static double by_ops(const struct change *c)
{
	return c->ops[1] - c->ops[0];
}

// ---- more work and slower work ----

// Of the (device, op) `only`, or of all with 0: operations more at the old mean latency of their size, and the new ones at
// the change of that mean. Where a size is new its old mean is that of its device and op.
static void split(const struct diff *d, uint32_t only, double *ret_more, double *ret_slower)
{
	double more = 0, slower = 0, sized[DIFF_SIDES] = { 0 };

	for (uint32_t id = 1; id <= d->sizes.keys.n; id++) {
		const struct diff_class *k = intern_key(&d->sizes.keys, id);
		struct change c = change_of(d, d->sizes.cells[id].side), whole;
		double old = c.mean[0];

		if (only && k->device_op != only)
			continue;
		sized[0] += c.ops[0];
		sized[1] += c.ops[1];
		if (c.ops[0] <= 0) {
			whole = change_of(d, d->groups[DIFF_BY_DEVICE].cells[k->device_op].side);
			old = whole.mean[0] > 0 ? whole.mean[0] : c.mean[1];
		}
		more += by_ops(&c) * old;
		slower += by_time(&c) - by_ops(&c) * old;
	}
	// Profiles without size classes: by device and op alone.
	for (uint32_t id = 1; sized[0] + sized[1] == 0 && id <= d->groups[DIFF_BY_DEVICE].keys.n; id++) {
		struct change c = change_of(d, d->groups[DIFF_BY_DEVICE].cells[id].side);
		double old = c.mean[0] > 0 ? c.mean[0] : c.mean[1];

		if (only && id != only)
			continue;
		more += by_ops(&c) * old;
		slower += by_time(&c) - by_ops(&c) * old;
	}
	*ret_more = more;
	*ret_slower = slower;
}

// ---- the latencies of one (device, op) ----

struct class_ops {
	int64_t class;
	double ops;
};

static int by_class(const void *a, const void *b)
{
	const struct class_ops *x = a, *y = b;

	return x->class < y->class ? -1 : x->class > y->class;
}

// The class of the median operation of the base; -1 = not known.
static double median_class(const struct diff *d, uint32_t subject)
{
	struct class_ops *of = calloc((size_t)d->latencies.keys.n + 1, sizeof(*of));
	double total = 0, sum = 0, median = -1;
	size_t n = 0;

	for (uint32_t id = 1; of && id <= d->latencies.keys.n; id++) {
		const struct diff_class *k = intern_key(&d->latencies.keys, id);

		if (k->device_op != subject)
			continue;
		of[n] = (struct class_ops){ k->class, d->latencies.cells[id].side[DIFF_BASE].ops };
		total += of[n++].ops;
	}
	if (n)
		qsort(of, n, sizeof(*of), by_class);
	for (size_t i = 0; i < n && median < 0; i++) {
		sum += of[i].ops;
		if (sum > 0 && sum >= total / 2)
			median = (double)of[i].class;
	}
	free(of);
	return median;
}

#define TAIL_FROM 5 // times the median's class
#define TAIL_OPS 0.1
#define TAIL_TIME 0.7
#define BODY_CHANGE 0.25

// Are the many as fast as before and a few much slower?
static bool tail_only(const struct diff *d, uint32_t subject, const struct change *c, double *ret_ops, double *ret_from)
{
	double median = median_class(d, subject), ops[2][DIFF_SIDES] = { 0 }, time[2][DIFF_SIDES] = { 0 }, body[DIFF_SIDES], from;

	if (median < 0)
		return false;
	from = median < 1000 ? TAIL_FROM * 1000 : TAIL_FROM * median;
	for (uint32_t id = 1; id <= d->latencies.keys.n; id++) {
		const struct diff_class *k = intern_key(&d->latencies.keys, id);
		bool tail = (double)k->class >= from;

		if (k->device_op != subject)
			continue;
		for (unsigned s = 0; s < DIFF_SIDES; s++) {
			ops[tail][s] += diff_rate(d, s, d->latencies.cells[id].side[s].ops);
			time[tail][s] += diff_rate(d, s, d->latencies.cells[id].side[s].time);
		}
	}
	for (unsigned s = 0; s < DIFF_SIDES; s++)
		body[s] = ops[0][s] > 0 ? time[0][s] / ops[0][s] : 0;
	*ret_ops = ops[1][DIFF_INCIDENT] / c->ops[DIFF_INCIDENT];
	*ret_from = from;
	return body[0] > 0 && fabs(body[1] / body[0] - 1) < BODY_CHANGE && *ret_ops < TAIL_OPS && c->mean[1] > c->mean[0] &&
	       time[1][1] - time[1][0] > TAIL_TIME * by_time(c);
}

// ---- the same work or other work ----

// The share of the larger side's operations whose stacks grew or shrank about as the whole did.
static double same_work(const struct diff *d, double ratio)
{
	const struct diff_group *g = &d->groups[DIFF_BY_STACK];
	const unsigned larger = ratio >= 1 ? DIFF_INCIDENT : DIFF_BASE;
	double same = 0, all = 0;

	for (uint32_t id = 1; id <= g->keys.n; id++) {
		struct change c = change_of(d, g->cells[id].side);
		double r, slack = 3 * c.ops_error;

		all += c.ops[larger];
		if (fabs(c.ops[1] - c.ops[0] * ratio) <= slack) {
			same += c.ops[larger];
			continue;
		}
		r = c.ops[0] > 0 && c.ops[1] > 0 ? c.ops[1] / c.ops[0] / ratio : 0;
		if (r >= 0.5 && r <= 2)
			same += c.ops[larger];
	}
	return all > 0 ? same / all : 1;
}

// Is much of the work of either side unknown to the other? A slow device makes stacks rarer, but no new ones.
static bool replaced_work(const struct diff *d)
{
	const struct diff_group *g = &d->groups[DIFF_BY_STACK];
	double all[DIFF_SIDES] = { 0 }, alone[DIFF_SIDES] = { 0 };

	for (uint32_t id = 1; id <= g->keys.n; id++) {
		struct change c = change_of(d, g->cells[id].side);

		for (unsigned s = 0; s < DIFF_SIDES; s++) {
			all[s] += c.ops[s];
			if (fabs(by_ops(&c)) > 3 * c.ops_error && c.ops[!s] < 0.1 * c.ops[s])
				alone[s] += c.ops[s];
		}
	}
	return alone[0] > 0.4 * all[0] && alone[1] > 0.4 * all[1] && all[0] > 0 && all[1] > 0;
}

// ---- the sentence ----

struct case_ {
	const char *name; // "vda read"
	uint32_t subject;
	struct change c;
	double more, slower;
};

#define LEAST 0.05   // of all: a change below it is no subject
#define WAITING 0.25
#define KEPT 0.8      // of the operations: more waiting costs a device a little of what it serves
#define SATURATED 0.8 // in flight on average: a program that waits for each request has a little less than one

static const char *times(char *out, size_t cap, double ratio)
{
	snprintf(out, cap, ratio >= 10 ? "%.0fx" : "%.2gx", ratio);
	if (ratio >= 1 && ratio < 10)
		snprintf(out, cap, "%.1fx", ratio);
	return out;
}

static const char *first_row(struct diff *d, enum diff_by by, char *out, size_t cap)
{
	struct diff_row *rows;
	size_t n;

	*out = 0;
	if (diff_rows(d, by, &rows, &n))
		return out;
	if (n && rows[0].beyond_noise)
		snprintf(out, cap, "%.120s%s", rows[0].name, rows[0].appeared ? " (new)" : rows[0].gone ? " (gone)" : "");
	free(rows);
	return out;
}

static void say_latency(struct diff *d, const struct case_ *k)
{
	struct diff_verdict *v = &d->verdict;
	char before[32], after[32], ratio[16], ops[16];
	const struct change *c = &k->c;

	text_time(before, sizeof(before), c->mean[0]);
	text_time(after, sizeof(after), c->mean[1]);
	times(ratio, sizeof(ratio), c->mean[0] > 0 ? c->mean[1] / c->mean[0] : 0);
	times(ops, sizeof(ops), c->ops[0] > 0 ? c->ops[1] / c->ops[0] : 0);
	if (v->kind == DIFF_QUEUED)
		snprintf(v->text, sizeof(v->text),
			 "%.120s: requests wait longer, %s instead of %s on average (%s), while it serves %s the operations: more are asked of it at "
			 "once (%.2g in flight instead of %.2g).",
			 k->name, after, before, ratio, ops, c->time[1] / 1e9, c->time[0] / 1e9);
	else
		snprintf(v->text, sizeof(v->text), "%.120s got %s: an operation took %s, now %s (%s), at %s the operations a second.", k->name,
			 v->kind == DIFF_SLOWER ? "slower" : "faster", before, after, ratio, ops);
}

static void say_work(struct diff *d, const struct case_ *k)
{
	struct diff_verdict *v = &d->verdict;
	char ratio[16], service[160], function[160], before[32], after[32];
	const struct change *c = &k->c;

	times(ratio, sizeof(ratio), c->ops[0] > 0 ? c->ops[1] / c->ops[0] : 0);
	first_row(d, DIFF_BY_SERVICE, service, sizeof(service));
	first_row(d, DIFF_BY_FUNCTION, function, sizeof(function));
	text_bytes(before, sizeof(before), c->ops[0] > 0 ? c->bytes[0] / c->ops[0] : 0);
	text_bytes(after, sizeof(after), c->ops[1] > 0 ? c->bytes[1] / c->ops[1] : 0);
	if (v->kind == DIFF_SPLIT)
		snprintf(v->text, sizeof(v->text),
			 "%.120s: the same bytes in %s requests, %s instead of %s on average: %s the operations a second.", k->name,
			 c->ops[1] > c->ops[0] ? "smaller" : "larger", after, before, ratio);
	else if (v->kind == DIFF_OTHER)
		snprintf(v->text, sizeof(v->text), "Other work is done%s%s: most changed %s%s%s.", *service ? " by " : "", service,
			 *function ? function : "which stacks do the I/O", k->name ? ", mostly on " : "", k->name ? k->name : "");
	else if (c->ops[0] <= 0 || c->ops[1] <= 0)
		snprintf(v->text, sizeof(v->text), "%s work on %.120s%s%s: there was %s before.", c->ops[0] <= 0 ? "New" : "No more", k->name,
			 *service ? ", by " : "", service, c->ops[0] <= 0 ? "none" : "some");
	else
		snprintf(v->text, sizeof(v->text), "%s of the same work%s%s: %s the operations a second on %.120s.",
			 v->kind == DIFF_MORE ? "More" : "Less", *service ? ", mostly by " : "", service, ratio, k->name);
}

static void say_noise(struct diff *d)
{
	struct diff_row t = diff_total(d);
	double percent = t.value[0] > 0 ? 100 * (t.value[1] / t.value[0] - 1) : 0;
	double slack = t.value[0] > 0 ? 100 * diff_limit(1) * t.error / t.value[0] : 0;

	d->verdict.kind = DIFF_NOISE;
	if (t.value[0] <= 0 && t.value[1] <= 0)
		snprintf(d->verdict.text, sizeof(d->verdict.text), "Nothing beyond noise: neither window has any %.60s.", d->type);
	else
		snprintf(d->verdict.text, sizeof(d->verdict.text),
			 "Nothing beyond noise: %.60s changed by %+.1f%%, and windows like these differ by up to %.0f%%.", d->type, percent,
			 slack);
}

static double larger(const double v[DIFF_SIDES])
{
	return fmax(v[DIFF_BASE], v[DIFF_INCIDENT]);
}

// The (device, op) that changed most, by more work and slower work together: programs that wait for each request do less
// of them on a slower disk, and the two then cancel in the time.
static bool find_subject(const struct diff *d, struct case_ *ret)
{
	const struct diff_group *g = &d->groups[DIFF_BY_DEVICE];
	const struct change all = change_of(d, d->total);
	const double limit = diff_limit(2 * (size_t)g->keys.n);
	double best = 0;

	for (uint32_t id = 1; id <= g->keys.n; id++) {
		struct change c = change_of(d, g->cells[id].side);
		double more, slower, score;
		bool by_its_time = fabs(by_time(&c)) > limit * c.time_error && fabs(by_time(&c)) > LEAST * larger(all.time);
		bool by_its_ops = fabs(by_ops(&c)) > limit * c.ops_error && fabs(by_ops(&c)) > LEAST * larger(all.ops);

		// Few are: splitting each of them costs no more than reading all.
		if (!by_its_time && !by_its_ops)
			continue;
		split(d, id, &more, &slower);
		score = fabs(more) + fabs(slower);
		if (score <= best || score < LEAST * larger(all.time))
			continue;
		best = score;
		*ret = (struct case_){ .name = intern_key(&g->keys, id), .subject = id, .c = c, .more = more, .slower = slower };
	}
	return best > 0;
}

// Is it the latency that changed, rather than the work?
static bool is_latency(const struct case_ *k)
{
	const struct change *c = &k->c;

	if (c->ops[0] <= 0 || c->ops[1] <= 0)
		return false;
	// As much in flight as before: programs that wait for each request.
	if (k->more * k->slower < 0 && fabs(by_time(c)) <= WAITING * larger(c->time))
		return true;
	return k->slower * by_time(c) > 0 && fabs(k->slower) >= fabs(k->more);
}

// Requests in flight on the subject's device in the base, of every op: they share its queue.
static double base_in_flight(const struct diff *d, const struct case_ *k)
{
	const struct diff_group *g = &d->groups[DIFF_BY_DEVICE];
	const char *end = strrchr(k->name, ' ');
	size_t device = end ? (size_t)(end - k->name) + 1 : strlen(k->name);
	double ns = 0;

	for (uint32_t id = 1; id <= g->keys.n; id++)
		if (!strncmp(intern_key(&g->keys, id), k->name, device))
			ns += diff_rate(d, DIFF_BASE, g->cells[id].side[DIFF_BASE].time);
	return ns / 1e9;
}

// A device that was busy all the time, serves about as much as before and has more waiting was given more to do at once.
// One that was often idle and is now slow at the same rate got slower: its rate was never bound by it. So did one that has
// as many in flight as before and serves less.
static bool is_queued(const struct diff *d, const struct case_ *k)
{
	const struct change *c = &k->c;

	return c->ops[1] >= KEPT * c->ops[0] && by_time(c) > WAITING * larger(c->time) && base_in_flight(d, k) >= SATURATED;
}

static enum diff_kind latency_kind(const struct diff *d, const struct case_ *k, double *ret_ops, double *ret_from)
{
	const struct change *c = &k->c;

	if (c->mean[1] < c->mean[0])
		return DIFF_FASTER;
	if (tail_only(d, k->subject, c, ret_ops, ret_from))
		return DIFF_TAIL;
	return is_queued(d, k) ? DIFF_QUEUED : DIFF_SLOWER;
}

static enum diff_kind work_kind(const struct diff *d, const struct case_ *k)
{
	const struct change *c = &k->c;
	struct change all = change_of(d, d->total);
	double ratio = all.ops[0] > 0 ? all.ops[1] / all.ops[0] : 0, size;

	if (c->ops[0] > 0 && c->ops[1] > 0 && c->bytes[0] > 0) {
		size = c->bytes[1] / c->ops[1] / (c->bytes[0] / c->ops[0]);
		if (fabs(c->bytes[1] / c->bytes[0] - 1) < 0.2 && (size < 0.67 || size > 1.5))
			return DIFF_SPLIT;
	}
	if (all.ops[0] > 0 && all.ops[1] > 0 && same_work(d, ratio) < 0.6)
		return DIFF_OTHER;
	return by_ops(c) > 0 ? DIFF_MORE : DIFF_LESS;
}

// Nothing as a whole, but other functions than before.
static bool other_functions(struct diff *d)
{
	struct diff_row *rows;
	bool found;
	size_t n;

	if (diff_rows(d, DIFF_BY_STACK, &rows, &n))
		return false;
	found = n && rows[0].beyond_noise &&
		fabs(rows[0].value[1] - rows[0].value[0]) > 0.05 * fmax(diff_rate(d, 0, d->total[0].value), diff_rate(d, 1, d->total[1].value));
	free(rows);
	return found;
}

void diff_judge(struct diff *d)
{
	struct diff_verdict *v = &d->verdict;
	double ops = 0, from = 0;
	struct case_ k = { 0 };
	char text[32];

	split(d, 0, &v->more, &v->slower);
	v->more /= 1e9;
	v->slower /= 1e9;
	if (!find_subject(d, &k)) {
		say_noise(d);
		if (other_functions(d)) {
			v->kind = DIFF_OTHER;
			say_work(d, &k);
		}
		return;
	}
	v->row = k.name;
	if (replaced_work(d))
		v->kind = DIFF_OTHER;
	else
		v->kind = is_latency(&k) ? latency_kind(d, &k, &ops, &from) : work_kind(d, &k);
	if (v->kind == DIFF_TAIL)
		snprintf(v->text, sizeof(v->text),
			 "%.120s: only the tail got slower: %.2g%% of the operations take %s or more and make up the change, the others are as fast "
			 "as before.",
			 k.name, 100 * ops, text_time(text, sizeof(text), from));
	else if (v->kind == DIFF_SLOWER || v->kind == DIFF_FASTER || v->kind == DIFF_QUEUED)
		say_latency(d, &k);
	else
		say_work(d, &k);
}
