// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "pprof/top_internal.h"
#include "pprof/units.h"

static uint64_t size_of(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

const char *top_format(char *out, size_t cap, int64_t value, const char *unit)
{
	int64_t scale;
	enum unit_family family = unit_parse(unit, &scale);
	char digits[32];

	if (family == UNIT_TIME)
		return text_time(out, cap, (double)value * (double)scale);
	if (family == UNIT_BYTES)
		return text_bytes(out, cap, (double)value * (double)scale);
	text_count(digits, sizeof(digits), size_of(value));
	if (!*unit || !strcmp(unit, "count"))
		snprintf(out, cap, "%s%s", value < 0 ? "-" : "", digits);
	else
		snprintf(out, cap, "%s%s %.40s", value < 0 ? "-" : "", digits, unit);
	return out;
}

// n + 1 zeroed elements, within the memory limit of the profile.
static int rows_new(struct top *t, size_t n, size_t size, void *ret)
{
	void *rows;
	int err = memory_take(t->budget, (n + 1) * size);

	if (err)
		return err;
	rows = calloc(n + 1, size);
	if (!rows)
		return -ENOMEM;
	*(void **)ret = rows;
	return 0;
}

// A node without a name is shown by the file of its mapping, as pprof does.
static int make_names(struct top *t)
{
	char **names;
	int err;

	if (t->names)
		return 0;
	err = rows_new(t, t->nodes.n, sizeof(*names), &names);
	if (err)
		return err;
	t->names = names;
	t->names_cap = (size_t)t->nodes.n + 1;
	for (uint32_t id = 1; id <= t->nodes.n; id++) {
		const struct node_key *key = intern_key(&t->nodes, id);
		const char *file = profile_text(t->profile, key->file), *slash = strrchr(file, '/');

		if (key->name)
			continue;
		if (!*file)
			names[id] = strdup("<unknown>");
		else if (asprintf(&names[id], "[%s]", slash ? slash + 1 : file) < 0)
			names[id] = NULL;
		if (!names[id])
			return -ENOMEM;
	}
	return 0;
}

const char *top_node_name(const struct top *t, uint32_t node)
{
	const struct node_key *key = intern_key(&t->nodes, node);

	return key->name ? profile_text(t->profile, key->name) : t->names[node];
}

static int compare_rows(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int c;

	if (size_of(x->flat) != size_of(y->flat))
		return size_of(x->flat) > size_of(y->flat) ? -1 : 1;
	c = strcmp(x->name, y->name);
	if (c)
		return c;
	return size_of(x->cum) > size_of(y->cum) ? -1 : size_of(x->cum) < size_of(y->cum);
}

int top_functions(struct top *t, struct top_row **ret, size_t *ret_n)
{
	struct top_row *rows;
	size_t n = 0;
	int err = make_names(t);

	if (!err)
		err = rows_new(t, t->nodes.n, sizeof(*rows), &rows);
	if (err)
		return err;
	for (uint32_t id = 1; id <= t->nodes.n; id++) {
		const struct node *node = &t->node[id];

		if (!node->cum && !node->flat)
			continue;
		rows[n++] = (struct top_row){ .name = top_node_name(t, id),
					      .flat = node->flat,
					      .cum = node->cum,
					      .flat_events = node->flat_events,
					      .cum_events = node->cum_events,
					      .inlined = node->inlined,
					      .called = node->called };
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	*ret = rows;
	*ret_n = n;
	return 0;
}


// Equal ones in the order in which they stand in the file.
static int compare_stacks(const void *a, const void *b)
{
	const struct top_stack *x = a, *y = b;

	if (size_of(x->value) != size_of(y->value))
		return size_of(x->value) > size_of(y->value) ? -1 : 1;
	return x->nodes < y->nodes ? -1 : x->nodes > y->nodes;
}

int top_stacks(struct top *t, struct top_stack **ret, size_t *ret_n)
{
	struct top_stack *rows;
	size_t n = 0;
	int err = make_names(t);

	if (!err)
		err = rows_new(t, t->stacks.n, sizeof(*rows), &rows);
	if (err)
		return err;
	for (uint32_t id = 1; id <= t->stacks.n; id++)
		if (t->stack_sums[id].value)
			rows[n++] = (struct top_stack){ .nodes = intern_key(&t->stacks, id),
							.n = intern_len(&t->stacks, id) / sizeof(uint32_t),
							.value = t->stack_sums[id].value,
							.events = t->stack_sums[id].events };
	qsort(rows, n, sizeof(*rows), compare_stacks);
	*ret = rows;
	*ret_n = n;
	return 0;
}

static void name_label(const struct top *t, const struct label_key *key, struct top_label *to)
{
	const char *unit = profile_text(t->profile, key->unit);
	char text[96];
	int64_t scale;

	if (!key->present) {
		to->name = "(none)";
		return;
	}
	if (key->text) {
		to->name = profile_text(t->profile, key->text);
		return;
	}
	// A number without a unit is an identity (a pid), not an amount.
	if (unit_parse(unit, &scale) == UNIT_OTHER)
		snprintf(text, sizeof(text), "%" PRId64 "%s%.40s", key->number, *unit ? " " : "", unit);
	else
		top_format(text, sizeof(text), key->number, unit);
	to->made = strdup(text);
	to->name = to->made;
}

static int compare_labels(const void *a, const void *b)
{
	const struct top_label *x = a, *y = b;

	if (size_of(x->value) != size_of(y->value))
		return size_of(x->value) > size_of(y->value) ? -1 : 1;
	return strcmp(x->name, y->name);
}

int top_labels(struct top *t, struct top_label **ret, size_t *ret_n)
{
	struct top_label *rows;
	size_t n = 0;
	// Beside the row, what its name may take.
	int err = memory_take(t->budget, (size_t)t->labels.n * 64);

	if (!err)
		err = rows_new(t, t->labels.n, sizeof(*rows), &rows);
	if (err)
		return err;
	for (uint32_t id = 1; id <= t->labels.n; id++) {
		name_label(t, intern_key(&t->labels, id), &rows[n]);
		rows[n].value = t->label_sums[id].value;
		rows[n].events = t->label_sums[id].events;
		if (!rows[n++].name) {
			while (n--)
				free(rows[n].made);
			free(rows);
			return -ENOMEM;
		}
	}
	qsort(rows, n, sizeof(*rows), compare_labels);
	*ret = rows;
	*ret_n = n;
	return 0;
}
