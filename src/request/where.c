// SPDX-License-Identifier: Apache-2.0
#include "request/where.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

static const struct {
	const char *sign;
	enum where_is is;
} signs[] = { { "!=", WHERE_UNEQUAL }, { ">=", WHERE_AT_LEAST }, { "<=", WHERE_AT_MOST }, { "=", WHERE_EQUAL }, { ">", WHERE_MORE },
	      { "<", WHERE_LESS } };

#define SIGNS (sizeof(signs) / sizeof(*signs))

static bool ends_with_any(const char *name, const char *const *ends)
{
	while (*ends && !text_ends_with(name, *ends))
		ends++;
	return *ends != NULL;
}

static bool is_number_field(const char *name)
{
	static const char *const ends[] = { "_i", "_l", "_f", NULL };

	return ends_with_any(name, ends);
}

int where_check_field(const char *name, struct error *e)
{
	static const char *const ends[] = { "_s", "_ss", "_b", "_dt", NULL };

	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name) &&
	    (is_number_field(name) || ends_with_any(name, ends) || !strcmp(name, "id")))
		return 0;
	return error_set(e, -EINVAL, "'%.60s' is no field of a record: their names end in _s, _ss, _i, _l, _f, _b or _dt, as duration_ms_f does",
			 name);
}

static int check(const struct where *w, const char *text, struct error *e)
{
	int err = where_check_field(w->name, e);

	if (err)
		return err;
	if (is_number_field(w->name) && !w->is_number)
		return error_set(e, -EINVAL, "'%.60s' is no number, and %.60s is one; times (_ms_f) are in milliseconds", text, w->name);
	if (*text == '=')
		return error_set(e, -EINVAL, "'%.60s=%.60s' has one = too many", w->name, text);
	return 0;
}

int where_parse(const char *text, struct where *ret, struct error *e)
{
	size_t name = strcspn(text, "!<>="), i = 0, len;
	char *end;

	while (i < SIGNS && strncmp(text + name, signs[i].sign, strlen(signs[i].sign)))
		i++;
	if (!name || name > DOCUMENT_NAME_MAX || i == SIGNS)
		return error_set(e, -EINVAL, "'%.60s' is no condition; allowed: FIELD=VALUE, !=, <, <=, >, >=", text);
	*ret = (struct where){ .is = signs[i].is };
	memcpy(ret->name, text, name);
	text += name + strlen(signs[i].sign);
	len = strlen(text);
	if (len > WHERE_TEXT)
		return error_set(e, -EINVAL, "the value of %.60s is longer than %d bytes", ret->name, WHERE_TEXT);
	memcpy(ret->text, text, len);
	ret->number = strtod(text, &end);
	ret->is_number = len && !*end && isfinite(ret->number);
	return check(ret, text, e);
}

static bool fits(enum where_is is, int order)
{
	switch (is) {
	case WHERE_LESS: return order < 0;
	case WHERE_AT_MOST: return order <= 0;
	case WHERE_MORE: return order > 0;
	default: return order >= 0;
	}
}

static bool text_equals(const struct where *w, const struct document_field *f)
{
	char text[WHERE_TEXT + 2];

	document_text(f, text, sizeof(text));
	return strpbrk(w->text, "*?") ? !fnmatch(w->text, text, FNM_NOESCAPE) : !strcmp(w->text, text);
}

static bool any_equals(const struct where *w, const struct document_field *f)
{
	struct document_field one;
	const char *at = NULL;

	while (document_next_text(f, &at, &one))
		if (text_equals(w, &one))
			return true;
	return false;
}

static int order_of(const struct where *w, const struct document_field *f)
{
	char text[WHERE_TEXT + 2];
	double v;

	if (f->type == DOCUMENT_NUMBER) {
		v = document_double(f);
		return v < w->number ? -1 : v > w->number;
	}
	document_text(f, text, sizeof(text));
	return strcmp(text, w->text);
}

static bool equals(const struct where *w, const struct document_field *f)
{
	switch (f->type) {
	case DOCUMENT_TEXT: return text_equals(w, f);
	case DOCUMENT_TEXTS: return any_equals(w, f);
	case DOCUMENT_BOOL: return !strcmp(w->text, document_is_true(f) ? "true" : "false");
	default: return w->is_number && !order_of(w, f);
	}
}

bool where_holds(const struct where *w, const struct document *d)
{
	const struct document_field *f = document_find(d, w->name);

	if (w->is == WHERE_EQUAL)
		return f && equals(w, f);
	if (w->is == WHERE_UNEQUAL)
		return !f || !equals(w, f);
	if (!f || f->type == DOCUMENT_TEXTS || f->type == DOCUMENT_BOOL || (f->type == DOCUMENT_NUMBER && !w->is_number))
		return false;
	return fits(w->is, order_of(w, f));
}

static const struct document_field *bound_of(const struct where *w, const struct document *d, const char *which)
{
	char name[DOCUMENT_NAME_MAX + 8];
	const struct document_field *f;

	snprintf(name, sizeof(name), "%s_%s", which, w->name);
	f = document_find(d, name);
	return f && f->type == DOCUMENT_NUMBER ? f : NULL;
}

bool where_holds_for_all(const struct where *w, const struct document *d)
{
	const struct document_field *min = bound_of(w, d, "min"), *max = bound_of(w, d, "max");

	if (!min || !max || !w->is_number)
		return where_holds(w, d);
	if (w->is == WHERE_EQUAL)
		return !order_of(w, min) && !order_of(w, max);
	if (w->is == WHERE_UNEQUAL)
		return order_of(w, min) > 0 || order_of(w, max) < 0;
	return fits(w->is, order_of(w, min)) && fits(w->is, order_of(w, max));
}
