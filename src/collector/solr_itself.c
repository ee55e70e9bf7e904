// SPDX-License-Identifier: Apache-2.0
#include "collector/solr_itself.h"

#include <stdio.h>
#include <string.h>

#include "collector/store_records.h"

#define REMEMBERED_NS (600ull * 1000000000u)

static void text(const struct document *d, const char *field, char *out, size_t cap)
{
	const struct document_field *f = document_find(d, field);

	*out = 0;
	if (f)
		document_text(f, out, cap);
}

static bool recent(const struct solr_itself_process *p, uint64_t time)
{
	return time <= p->seen + REMEMBERED_NS && p->seen <= time + REMEMBERED_NS;
}

static bool served_by(const struct solr_itself_process *p, const struct solr_itself_process *of)
{
	return p->pid == of->pid && !strcmp(p->node, of->node);
}

// In the place of the one that was seen longest ago where there are too many; the latest is the last.
static void remember(struct solr_itself *s, const struct solr_itself_process *p)
{
	unsigned oldest = 0;

	if (s->n == SOLR_ITSELF_MAX) {
		for (unsigned i = 1; i < s->n; i++)
			if (s->process[i].seen < s->process[oldest].seen)
				oldest = i;
		s->process[oldest] = s->process[--s->n];
	}
	s->process[s->n++] = *p;
}

static enum solr_itself_result updated(struct solr_itself *s, const struct solr_itself_process *p)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct solr_itself_process *known = &s->process[i];

		if (!served_by(known, p) || strcmp(known->core, p->core))
			continue;
		if (known->seen < p->seen)
			known->seen = p->seen;
		return SOLR_ITSELF_IS;
	}
	remember(s, p);
	return SOLR_ITSELF_NEW;
}

enum solr_itself_result solr_itself(struct solr_itself *s, const char *node, const struct document *d)
{
	const struct document_field *pid = document_find(d, "pid_i");
	struct solr_itself_process p = { .seen = record_time(document_find(d, "event_timestamp_dt")) };
	char trace[SOLR_MARK_MAX + 1], kind[16];
	bool thread;

	text(d, "trace_id_s", trace, sizeof(trace));
	text(d, "core_s", p.core, sizeof(p.core));
	if (pid)
		document_integer(pid, &p.pid);
	snprintf(p.node, sizeof(p.node), "%s", node);
	if (*s->mark && !strcmp(trace, s->mark))
		return updated(s, &p);
	if (!s->n)
		return SOLR_ITSELF_NOT;
	text(d, "kind_s", kind, sizeof(kind));
	thread = !strcmp(kind, "thread");
	for (unsigned i = 0; i < s->n; i++)
		if (served_by(&s->process[i], &p) && recent(&s->process[i], p.seen) && (thread || !strcmp(s->process[i].core, p.core)))
			return SOLR_ITSELF_IS;
	return SOLR_ITSELF_NOT;
}
