// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/diff_internal.h"

// Long names were cut, perhaps inside a character, which JSON does not take.
static json_t *string(const char *text)
{
	size_t len = strlen(text);
	json_t *s = json_string(text);
	char *clean = s ? NULL : malloc(len + 1);

	if (!clean)
		return s;
	text_sanitize(clean, len + 1, text, len);
	s = json_string(clean);
	free(clean);
	return s;
}

static json_t *row_json(const struct diff_row *r)
{
	return json_pack("{s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:b, s:b}", "name", string(r->name), "base", r->value[0], "incident",
			 r->value[1], "change", r->value[1] - r->value[0], "error", r->error, "base_ops", r->ops[0], "incident_ops",
			 r->ops[1], "base_mean_ns", r->mean_ns[0], "incident_mean_ns", r->mean_ns[1], "beyond_noise", r->beyond_noise, "new",
			 r->appeared, "gone", r->gone);
}

static json_t *rows_json(struct diff *d, enum diff_by by, unsigned rows)
{
	json_t *list = json_array();
	struct diff_row *r;
	size_t n;

	if (!list || diff_rows(d, by, &r, &n)) {
		json_decref(list);
		return NULL;
	}
	for (size_t i = 0; i < n && (!rows || i < rows); i++) {
		if (!json_array_append_new(list, row_json(&r[i])))
			continue;
		json_decref(list);
		list = NULL;
		break;
	}
	free(r);
	return list;
}

static json_t *side_json(const struct diff *d, enum diff_side side)
{
	const struct diff_coverage *c = diff_get_coverage(d, side);
	const struct profile *p = d->profile[side];

	return json_pack("{s:I, s:I, s:f, s:i, s:i, s:f, s:b}", "time_nanos", (json_int_t)p->time_ns, "duration_nanos",
			 (json_int_t)p->duration_ns, "node_seconds", c->node_seconds, "nodes", (int)c->nodes, "windows", (int)c->windows,
			 "stacks", c->stacks, "series", c->series);
}

int diff_json(struct diff *d, unsigned rows, struct buf *out)
{
	const struct diff_verdict *v = diff_get_verdict(d);
	struct diff_row total = diff_total(d);
	json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:o*, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", diff_kind_name(v->kind),
				 "summary", string(v->text), "type", string(d->type), "unit", string(d->unit), "device",
				 v->row ? string(v->row) : NULL, "more_work", v->more, "slower_work",
				 v->slower, "base", side_json(d, DIFF_BASE), "incident", side_json(d, DIFF_INCIDENT), "total",
				 row_json(&total), "devices", rows_json(d, DIFF_BY_DEVICE, rows), "services",
				 rows_json(d, DIFF_BY_SERVICE, rows), "functions", rows_json(d, DIFF_BY_FUNCTION, rows), "stacks",
				 rows_json(d, DIFF_BY_STACK, rows));
	char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) : NULL;

	json_decref(root);
	if (!text)
		return -ENOMEM;
	buf_printf(out, "%s\n", text);
	free(text);
	return out->error;
}
