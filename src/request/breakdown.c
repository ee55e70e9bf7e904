// SPDX-License-Identifier: Apache-2.0
#include "request/breakdown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "request/record.h"

static bool suffix_fits(const struct breakdown_metric *m)
{
	if (m->kind == KIND_TIMER)
		return text_ends_with(m->field, "_ms_f");
	return text_ends_with(m->field, "_i") || text_ends_with(m->field, "_l");
}

static bool name_valid(const char *name)
{
	size_t n = strlen(name);

	return n && n < METRIC_FIELD_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n && name[0] >= 'a';
}

// By a field of the record that is no metric, or by those that are made of a metric's.
static bool name_taken(const char *name)
{
	const char *field;

	for (unsigned i = 0; (field = record_field(i)); i++)
		if (!strcmp(field, name))
			return true;
	return !strncmp(name, "min_", 4) || !strncmp(name, "max_", 4) || !strncmp(name, "avg_", 4);
}

int breakdown_table_add(struct breakdown_table *m, const struct breakdown_metric *metric, unsigned *ret, struct error *e)
{
	if (!name_valid(metric->field))
		return error_set(e, -EINVAL, "metric '%.60s': a field has small letters, digits and '_', at most %d of them", metric->field,
				 METRIC_FIELD_MAX - 1);
	if (!suffix_fits(metric))
		return error_set(e, -EINVAL, "metric '%s': a timer's field ends in _ms_f, a counter's or gauge's in _i or _l",
				 metric->field);
	if (name_taken(metric->field))
		return error_set(e, -EEXIST, "metric '%s' is a field of every record, or begins as its sums do (min_, max_, avg_); take another name",
				 metric->field);
	for (unsigned i = 0; i < m->n; i++)
		if (!strcmp(m->metric[i]->field, metric->field))
			return error_set(e, -EEXIST, "metric '%s' is there already; take another name", metric->field);
	if (m->n == METRICS_MAX)
		return error_set(e, -ENOSPC, "metric '%s' is one too many; %d are allowed", metric->field, METRICS_MAX);
	m->metric[m->n] = metric;
	m->source[m->n] = METRIC_NO_SOURCE;
	*ret = m->n++;
	return 0;
}

void breakdown_free(struct breakdown *b)
{
	free(b->range);
	b->range = NULL;
}

void breakdown_set(struct breakdown *b, unsigned metric, uint64_t value)
{
	b->value[metric] = value;
	b->state[metric] = VALUE_SET;
}

void breakdown_missing(struct breakdown *b, unsigned metric)
{
	b->value[metric] = 0;
	b->state[metric] = VALUE_MISSING;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t combine(enum breakdown_combine how, uint64_t a, uint64_t b)
{
	switch (how) {
	case COMBINE_MIN:
		return a < b ? a : b;
	case COMBINE_MAX:
		return a > b ? a : b;
	case COMBINE_SPAN:
		return a;
	default: // an average is kept as its sum and divided by the parts when it is shown
		return add(a, b);
	}
}

// What one of two parts lacks is lacking in both together: a sum without it would be invented.
static void combine_value(struct breakdown *to, const struct breakdown *from, unsigned i, enum breakdown_combine how, bool first)
{
	if (to->state[i] == VALUE_MISSING || from->state[i] == VALUE_MISSING) {
		breakdown_missing(to, i);
		return;
	}
	if (from->state[i] != VALUE_SET && (to->state[i] != VALUE_SET || how != COMBINE_MIN))
		return;
	to->value[i] = first ? from->value[i] : combine(how, to->value[i], from->value[i]);
	to->state[i] = VALUE_SET;
}

void breakdown_extend(struct breakdown *to, const struct breakdown_table *m, const struct breakdown *more)
{
	for (unsigned i = 0; i < m->n; i++)
		combine_value(to, more, i, m->metric[i]->within, to->state[i] == VALUE_ZERO && m->metric[i]->within == COMBINE_SPAN);
}

static void note_range(struct breakdown *to, const struct breakdown *part, unsigned n)
{
	const uint64_t *least = part->range ? part->range->min : part->value, *most = part->range ? part->range->max : part->value;
	struct breakdown_range *range = to->range;

	for (unsigned i = 0; i < n; i++)
		range->min[i] = least[i] < range->min[i] ? least[i] : range->min[i];
	for (unsigned i = 0; i < n; i++)
		range->max[i] = most[i] > range->max[i] ? most[i] : range->max[i];
}

int breakdown_merge(struct breakdown *to, const struct breakdown_table *m, const struct breakdown *part)
{
	bool first = !to->parts;

	if (!first && !to->range) {
		to->range = malloc(sizeof(*to->range));
		if (!to->range)
			return -ENOMEM;
		memcpy(to->range->min, to->value, sizeof(to->value));
		memcpy(to->range->max, to->value, sizeof(to->value));
	}
	if (!first)
		note_range(to, part, m->n);
	for (unsigned i = 0; i < m->n; i++)
		combine_value(to, part, i, m->metric[i]->across, first);
	to->parts += part->parts ? part->parts : 1;
	return 0;
}

static void sum_into(struct breakdown *b, unsigned to, const unsigned *from, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++) {
		if (b->state[from[i]] == VALUE_MISSING) {
			breakdown_missing(b, to);
			return;
		}
		sum = add(sum, b->value[from[i]]);
	}
	breakdown_set(b, to, sum);
}

void breakdown_derive(struct breakdown *b)
{
	static const unsigned reads[] = { METRIC_SYS_READ, METRIC_SYS_PREAD, METRIC_SYS_READV, METRIC_FAULT_IO };
	static const unsigned writes[] = { METRIC_SYS_WRITE, METRIC_SYS_PWRITE, METRIC_SYS_WRITEV, METRIC_FSYNC, METRIC_FDATASYNC,
					   METRIC_MSYNC };
	static const unsigned read_bytes[] = { METRIC_SYS_READ_BYTES, METRIC_SYS_PREAD_BYTES, METRIC_SYS_READV_BYTES,
					       METRIC_FAULT_DISK_BYTES };
	static const unsigned write_bytes[] = { METRIC_SYS_WRITE_BYTES, METRIC_SYS_PWRITE_BYTES, METRIC_SYS_WRITEV_BYTES };
	static const unsigned read_ops[] = { METRIC_SYS_READ_OPS, METRIC_SYS_PREAD_OPS, METRIC_SYS_READV_OPS, METRIC_FAULT_DISK_OPS };
	static const unsigned write_ops[] = { METRIC_SYS_WRITE_OPS, METRIC_SYS_PWRITE_OPS, METRIC_SYS_WRITEV_OPS, METRIC_FSYNC_OPS,
					      METRIC_FDATASYNC_OPS, METRIC_MSYNC_OPS };
	static const unsigned total[] = { METRIC_READ_DURATION, METRIC_WRITE_DURATION };

#define SUM(to, from) sum_into(b, to, from, sizeof(from) / sizeof(*from))
	SUM(METRIC_READ_DURATION, reads);
	SUM(METRIC_WRITE_DURATION, writes);
	SUM(METRIC_READ_BYTES, read_bytes);
	SUM(METRIC_WRITE_BYTES, write_bytes);
	SUM(METRIC_READ_OPS, read_ops);
	SUM(METRIC_WRITE_OPS, write_ops);
	SUM(METRIC_TOTAL_IO_DURATION, total);
#undef SUM
}

// Solr keeps what does not fit an _i by its low bits: at most what fits is sent.
static void print_number(struct buf *ret, const char *prefix, const struct breakdown_metric *m, uint64_t value)
{
	uint64_t most = text_ends_with(m->field, "_i") ? INT32_MAX : INT64_MAX;

	if (m->kind == KIND_TIMER)
		buf_printf(ret, ",\"%s%s\":%.6f", prefix, m->field, (double)value / 1e6);
	else
		buf_printf(ret, ",\"%s%s\":%llu", prefix, m->field, (unsigned long long)(value < most ? value : most));
}

static void print_value(const struct breakdown *b, const struct breakdown_metric *m, unsigned i, struct buf *ret)
{
	uint64_t value = b->value[i];

	if (m->across == COMBINE_AVG && b->parts > 1)
		value /= b->parts;
	print_number(ret, "", m, value);
	if (b->parts < 2 || !b->range || i == METRIC_REQUESTS)
		return;
	print_number(ret, "min_", m, b->range->min[i]);
	print_number(ret, "max_", m, b->range->max[i]);
	if (m->across == COMBINE_SUM)
		print_number(ret, "avg_", m, value / b->parts);
}

void breakdown_json(const struct breakdown *b, const struct breakdown_table *m, struct buf *ret)
{
	for (unsigned i = 0; i < m->n; i++) {
		if (b->state[i] == VALUE_MISSING && !m->metric[i]->always)
			continue;
		if (b->value[i] || m->metric[i]->always)
			print_value(b, m->metric[i], i, ret);
	}
}

void breakdown_missing_json(const struct breakdown *b, const struct breakdown_table *m, struct buf *ret)
{
	const char *comma = "";

	for (unsigned i = 0; i < m->n; i++) {
		if (b->state[i] != VALUE_MISSING)
			continue;
		buf_printf(ret, "%s\"%s\"", comma, m->metric[i]->field);
		comma = ",";
	}
}
