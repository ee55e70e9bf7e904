// SPDX-License-Identifier: Apache-2.0
#include "collector/solr_check.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Longer endings first.
const struct solr_type solr_types[] = {
	{ "_dt", "pdate", "solr.DatePointField", false },
	{ "_ss", "string", "solr.StrField", true },
	{ "_s", "string", "solr.StrField", false },
	{ "_i", "pint", "solr.IntPointField", false },
	{ "_l", "plong", "solr.LongPointField", false },
	{ "_f", "pfloat", "solr.FloatPointField", false },
	{ "_b", "boolean", "solr.BoolField", false },
};
const unsigned solr_types_n = sizeof(solr_types) / sizeof(*solr_types);

static const char *const always[] = {
	"id", "hostname_s", "pid_i", "tid_i", "total_io_duration_ms_f", "read_duration_ms_f", "write_duration_ms_f", "read_bytes_l",
	"write_bytes_l", "read_ops_i", "write_ops_i", "event_timestamp_dt",
};

const struct solr_type *solr_type_of(const char *name, size_t len)
{
	for (unsigned i = 0; i < solr_types_n; i++) {
		size_t n = strlen(solr_types[i].suffix);

		if (len > n && !memcmp(name + len - n, solr_types[i].suffix, n))
			return &solr_types[i];
	}
	return NULL;
}

static int wrong(const struct document_field *f, const char *what, struct error *e)
{
	return error_set(e, -EINVAL, "%.*s = %.*s%s: %s", (int)f->name_len, f->name, (int)(f->value_len < 60 ? f->value_len : 60), f->value,
			 f->value_len < 60 ? "" : "...", what);
}

static int check_text(const struct document_field *f, struct error *e)
{
	if (f->type != DOCUMENT_TEXT)
		return wrong(f, "is no text", e);
	return document_text(f, NULL, 0) > SOLR_TEXT_MAX ? wrong(f, "is longer than 32766 bytes", e) : 0;
}

static int check_texts(const struct document_field *f, struct error *e)
{
	struct document_field one;
	const char *at = NULL;
	int err = 0;

	if (f->type != DOCUMENT_TEXTS)
		return check_text(f, e);
	while (!err && document_next_text(f, &at, &one))
		err = check_text(&one, e);
	return err;
}

static int check_whole(const struct document_field *f, int64_t min, int64_t max, const char *what, struct error *e)
{
	int64_t v = 0;

	return document_integer(f, &v) || v < min || v > max ? wrong(f, what, e) : 0;
}

static int check_float(const struct document_field *f, struct error *e)
{
	if (f->type != DOCUMENT_NUMBER)
		return wrong(f, "is no number", e);
	return fabs(document_double(f)) > FLT_MAX ? wrong(f, "is too large for a number of 32 bits", e) : 0;
}

static bool in_range(const char *text, unsigned at, unsigned digits, unsigned min, unsigned max)
{
	unsigned v = 0;

	for (unsigned i = at; i < at + digits; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (unsigned)(text[i] - '0');
	}
	return v >= min && v <= max;
}

static unsigned days_of(const char *text)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	unsigned year = (unsigned)strtoul(text, NULL, 10), month = (unsigned)strtoul(text + 5, NULL, 10);

	return month == 2 && year % 4 == 0 && (year % 100 || year % 400 == 0) ? 29 : days[month - 1];
}

// YYYY-MM-DDThh:mm:ss[.fraction]Z
static int check_date(const struct document_field *f, struct error *e)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd";
	char t[40];
	size_t len = document_text(f, t, sizeof(t)), i = strlen(form);

	if (f->type != DOCUMENT_TEXT || len <= i || len >= sizeof(t))
		return wrong(f, "is no time (2026-11-30T08:15:00.123Z)", e);
	for (unsigned k = 0; k < i; k++)
		if (form[k] != 'd' && t[k] != form[k])
			return wrong(f, "is no time (2026-11-30T08:15:00.123Z)", e);
	if (t[i] == '.')
		i += 1 + strspn(t + i + 1, "0123456789");
	if (strcmp(t + i, "Z") || t[i - 1] == '.' || !in_range(t, 0, 4, 1, 9999) || !in_range(t, 5, 2, 1, 12) ||
	    !in_range(t, 8, 2, 1, 31) || !in_range(t, 8, 2, 1, days_of(t)) || !in_range(t, 11, 2, 0, 23) || !in_range(t, 14, 2, 0, 59) ||
	    !in_range(t, 17, 2, 0, 59))
		return wrong(f, "is no time (2026-11-30T08:15:00.123Z)", e);
	return 0;
}

static int check_field(const struct document_field *f, struct error *e)
{
	const struct solr_type *type = solr_type_of(f->name, f->name_len);

	if (f->name_len == 2 && !memcmp(f->name, "id", 2))
		return f->value_len > 2 ? check_text(f, e) : wrong(f, "is empty", e);
	// Solr gives names of that kind a meaning of its own (_version_, _root_).
	if (!type || f->name[0] == '_')
		return wrong(f, "no type is known for a field of that name", e);
	switch (type->suffix[1]) {
	case 'd': return check_date(f, e);
	case 's': return type->many ? check_texts(f, e) : check_text(f, e);
	case 'i': return check_whole(f, INT32_MIN, INT32_MAX, "is no whole number of 32 bits", e);
	case 'l': return check_whole(f, INT64_MIN, INT64_MAX, "is no whole number of 64 bits", e);
	case 'f': return check_float(f, e);
	default: return f->type == DOCUMENT_BOOL ? 0 : wrong(f, "is neither true nor false", e);
	}
}

// A node speaks for itself only: the key of its documents begins with its name.
static int check_node(const struct document *d, const char *node, struct error *e)
{
	char text[256];
	size_t len = strlen(node);

	document_text(document_find(d, "hostname_s"), text, sizeof(text));
	if (strcmp(text, node))
		return error_set(e, -EINVAL, "it names the node %s and came from %s", text, node);
	document_text(document_find(d, "id"), text, sizeof(text));
	if (strncmp(text, node, len) || text[len] != ':')
		return error_set(e, -EINVAL, "its id %s does not begin with %s:", text, node);
	return 0;
}

int solr_check(const struct document *d, const char *node, struct error *e)
{
	int err = 0;

	for (unsigned i = 0; i < sizeof(always) / sizeof(*always); i++)
		if (!document_find(d, always[i]))
			return error_set(e, -EINVAL, "it has no %s", always[i]);
	for (unsigned i = 0; i < d->n && !err; i++)
		err = check_field(&d->field[i], e);
	return err || !node ? err : check_node(d, node, e);
}
