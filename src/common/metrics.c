// SPDX-License-Identifier: Apache-2.0
#include "common/metrics.h"

#include <string.h>

void metrics_print(const struct metric *table, unsigned n, const void *values, struct buf *to)
{
	for (unsigned i = 0; i < n; i++) {
		const struct metric *m = &table[i];
		const uint64_t *value = (const uint64_t *)((const char *)values + m->offset);

		if (!i || strcmp(m->name, table[i - 1].name))
			buf_printf(to, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
				   m->type == METRIC_COUNTER ? "counter" : "gauge");
		buf_printf(to, m->labels ? "%s{%s} %llu\n" : "%s%s %llu\n", m->name, m->labels ? m->labels : "",
			   (unsigned long long)metric_get(value));
	}
}
