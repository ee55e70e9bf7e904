// SPDX-License-Identifier: Apache-2.0
#include "agent/view.h"

#include <errno.h>
#include <string.h>

#include "common/error.h"

#define ROOTS_MAX 8

static const char *const set_names[] = {
	[LABELS_ALL] = "all", [LABELS_FEW_COMM] = "comm", [LABELS_FEW] = "few", [LABELS_NONE] = "none"
};

int label_set_parse(const char *text, enum label_set *ret)
{
	for (unsigned i = 0; i < sizeof(set_names) / sizeof(*set_names); i++) {
		if (strcmp(text, set_names[i]))
			continue;
		*ret = i;
		return 0;
	}
	return -EINVAL;
}

const char *label_set_name(enum label_set set)
{
	return set_names[set];
}

// How many labels a set has, in an order in which each contains those before it.
static unsigned extent(enum label_set set)
{
	switch (set) {
	case LABELS_NONE:
		return 0;
	case LABELS_FEW:
		return 1;
	case LABELS_FEW_COMM:
		return 2;
	default:
		return 3;
	}
}

static int check_root(const char *word, size_t len, enum label_set recorded, struct error *e)
{
	static const struct {
		const char *name;
		enum label_set least; // that tells rows apart by it
	} known[] = {
		{ "device", LABELS_NONE }, { "op", LABELS_NONE },  { "service", LABELS_NONE }, { "latency", LABELS_FEW },
		{ "comm", LABELS_FEW_COMM }, { "pid", LABELS_ALL }, { "bytes", LABELS_ALL },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strlen(known[i].name) != len || strncmp(known[i].name, word, len))
			continue;
		if (extent(recorded) >= extent(known[i].least))
			return 0;
		return error_set(e, -EINVAL, "root=%s: this agent records no such label; set labels = %s in its configuration",
				 known[i].name, label_set_name(known[i].least));
	}
	return error_set(e, -EINVAL, "root=%.*s: it is labels separated by commas, of comm, device, op, service, latency, pid, bytes",
			 len < 60 ? (int)len : 60, word);
}

int view_check(const struct window_view *v, enum label_set recorded, struct error *e)
{
	const char *at = v->root;
	unsigned n = 0;
	int err;

	if (extent(v->labels) > extent(recorded))
		return error_set(e, -EINVAL, "labels=%s: this agent records labels = %s; set more in its configuration",
				 label_set_name(v->labels), label_set_name(recorded));
	while (at && *at) {
		size_t len = strcspn(at, ",");

		err = check_root(at, len, recorded, e);
		if (err)
			return err;
		if (++n > ROOTS_MAX)
			return error_set(e, -EINVAL, "root: more than %d labels", ROOTS_MAX);
		at += len;
		at += *at == ',';
	}
	return 0;
}
