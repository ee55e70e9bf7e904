// SPDX-License-Identifier: Apache-2.0
#include "common/metrics.h"

#include <inttypes.h>
#include <string.h>

static const char *type_name(enum metric_type type)
{
	return type == METRIC_COUNTER || type == METRIC_SECONDS_COUNTER ? "counter" : "gauge";
}

static void print_value(const struct metric *m, uint64_t value, struct buf *to)
{
	if (m->type == METRIC_SECONDS_COUNTER || m->type == METRIC_SECONDS_GAUGE)
		buf_printf(to, " %" PRIu64 ".%09" PRIu64 "\n", value / 1000000000, value % 1000000000);
	else
		buf_printf(to, " %" PRIu64 "\n", value);
}

void metrics_print(const struct metric *table, unsigned n, const void *values, struct buf *to)
{
	for (unsigned i = 0; i < n; i++) {
		const struct metric *m = &table[i];
		const uint64_t *value = (const uint64_t *)((const char *)values + m->offset);

		if (!i || strcmp(m->name, table[i - 1].name))
			buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
				   type_name(m->type));
		buf_printf(to, m->labels ? "%s{%s}" : "%s%s", m->name, m->labels ? m->labels : "");
		print_value(m, metric_get(value), to);
	}
}
