// SPDX-License-Identifier: Apache-2.0
#include "cli/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/remote_internal.h"
#include "common/file.h"
#include "common/text.h"
#include "common/when.h"
#include "pprof/decode.h"

#define ANSWER_MAX ((uint64_t)1 << 30)
#define PATIENCE 600   // a collector has limits of its own
#define PIECES_MAX 1000 // of one collector, between the windows of others

int remote_new(const struct source_options *o, struct remote **ret, struct error *e)
{
	struct remote *r = calloc(1, sizeof(*r));
	int err = r ? 0 : error_set(e, -ENOMEM, "out of memory");

	if (err)
		return err;
	r->options = o;
	if (o->token_file) {
		err = file_read_line(o->token_file, r->token, sizeof(r->token));
		if (err)
			error_set(e, err, "cannot read --token-file %.200s: %s", o->token_file, strerror(-err));
		else if (!*r->token || strpbrk(r->token, " \t\r"))
			err = error_set(e, -EINVAL, "--token-file %.200s: its first line is no token", o->token_file);
	}
	if (err)
		remote_free(r);
	else
		*ret = r;
	return err;
}

void remote_free(struct remote *r)
{
	if (r)
		explicit_bzero(r->token, sizeof(r->token));
	free(r);
}

static void add_query(struct buf *url, const struct store_query *q)
{
	char text[WHEN_SIZE];
	struct buf label = { 0 };

	fetch_add(url, "from", when_text(q->from, text));
	if (q->to < INT64_MAX)
		fetch_add(url, "to", when_text(q->to, text));
	fetch_add(url, "node", q->node);
	fetch_add(url, "service", q->service);
	fetch_add(url, "device", q->device);
	for (unsigned i = 0; i < q->n_labels; i++) {
		label.len = 0;
		buf_printf(&label, "%s=%s", q->labels[i].name, q->labels[i].value);
		buf_byte(&label, 0);
		if (!label.error)
			fetch_add(url, "label", (char *)label.data);
	}
	url->error = url->error ? url->error : label.error;
	buf_free(&label);
}

int remote_get(struct remote *r, unsigned collector, const char *path, const struct store_query *q, struct buf *to, char note[256],
	       struct error *e)
{
	const struct source_options *o = r->options;
	struct fetch_request request = { .token = *r->token ? r->token : NULL, .ca = o->ca, .cert = o->cert, .key = o->key,
					 .max = ANSWER_MAX, .patience = PATIENCE };
	const char *base = o->collectors.name[collector];
	size_t len = strlen(base);
	struct buf url = { 0 };
	int err;

	while (len && base[len - 1] == '/')
		len--;
	buf_append(&url, base, len);
	buf_printf(&url, "%s", path);
	add_query(&url, q);
	buf_byte(&url, 0);
	err = url.error ? error_set(e, url.error, "out of memory") : fetch_to((char *)url.data, &request, to, e);
	if (!err && note)
		memcpy(note, request.note, sizeof(request.note));
	buf_free(&url);
	return err;
}

// ---- several collectors ----

struct merge {
	struct remote *r;
	const struct store_query *q;
	struct buf *said;
	struct pprof_reader *reader;
	struct remote_items had; // what the collectors before have
	unsigned answers;
	struct error nothing; // the last "there is nothing"
};

static int merge_get(struct merge *m, unsigned collector, const struct store_query *q, struct error *e)
{
	struct pprof_source source = { .fd = -1 };
	char note[256] = "", *shown;
	struct buf gz = { 0 };
	int err = remote_get(m->r, collector, "/debug/pprof/io", q, &gz, note, &m->nothing);

	if (err == -ENODATA) {
		buf_free(&gz);
		return 0;
	}
	if (err)
		*e = m->nothing;
	source.data = gz.data;
	source.len = gz.len;
	if (!err)
		err = pprof_reader_add(m->reader, &source, e);
	buf_free(&gz);
	if (err)
		return err;
	shown = fetch_display(m->r->options->collectors.name[collector]);
	buf_printf(m->said, "%s%s: %s", m->answers ? "\n" : "", shown ? shown : "", note);
	free(shown);
	m->answers++;
	return 0;
}

static int compare_spans(const void *a, const void *b)
{
	const struct remote_item *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : x->from != y->from ? (x->from < y->from ? -1 : 1) : 0;
}

static bool overlaps(const struct remote_items *had, const struct remote_item *i)
{
	for (size_t k = 0; k < had->n; k++)
		if (!strcmp(had->item[k].name, i->name) && had->item[k].from < i->to && had->item[k].to > i->from)
			return true;
	return false;
}

static int get_piece(struct merge *m, unsigned collector, const char *node, uint64_t from, uint64_t to, unsigned *pieces, struct error *e)
{
	struct store_query q = *m->q;

	if (from >= to)
		return 0;
	if (++*pieces > PIECES_MAX)
		return error_set(e, -E2BIG, "the windows of these collectors alternate too often: ask for a shorter time, or each alone");
	q.node = node;
	q.from = from;
	q.to = to;
	return merge_get(m, collector, &q, e);
}

// What lies between the spans that are there already, which are sorted.
static int get_missing(struct merge *m, unsigned collector, const struct remote_item *i, unsigned *pieces, struct error *e)
{
	uint64_t at = i->from;
	int err = 0;

	for (size_t k = 0; k < m->had.n && !err; k++) {
		const struct remote_item *h = &m->had.item[k];

		if (strcmp(h->name, i->name) || h->to <= at || h->from >= i->to)
			continue;
		err = get_piece(m, collector, i->name, at, h->from, pieces, e);
		at = h->to;
	}
	return err ? err : get_piece(m, collector, i->name, at, i->to, pieces, e);
}

static void clip(struct remote_items *l, const struct store_query *q)
{
	for (size_t i = 0; i < l->n; i++) {
		l->item[i].from = l->item[i].from > q->from ? l->item[i].from : q->from;
		l->item[i].to = l->item[i].to < q->to ? l->item[i].to : q->to;
	}
}

static int merge_one(struct merge *m, unsigned collector, struct error *e)
{
	struct remote_items has = { 0 };
	struct store_query times = { .from = m->q->from, .to = m->q->to, .node = m->q->node };
	unsigned pieces = 0;
	bool any = false;
	int err = remote_items_get(m->r, collector, "coverage", "node", &times, &has, e);

	clip(&has, m->q);
	for (size_t i = 0; i < has.n && !err; i++)
		any |= overlaps(&m->had, &has.item[i]);
	if (!err && !any)
		err = merge_get(m, collector, m->q, e);
	for (size_t i = 0; i < has.n && !err && any; i++)
		err = get_missing(m, collector, &has.item[i], &pieces, e);
	for (size_t i = 0; i < has.n && !err; i++) {
		if (memory_grow(NULL, &m->had.item, &m->had.cap, m->had.n + 1, sizeof(*m->had.item)))
			err = error_set(e, -ENOMEM, "out of memory");
		else
			m->had.item[m->had.n++] = has.item[i];
		if (!err)
			has.item[i].name = NULL; // it has gone there
	}
	remote_items_free(&has);
	if (m->had.n)
		qsort(m->had.item, m->had.n, sizeof(*m->had.item), compare_spans);
	return err;
}

static int compare_times(const void *a, const void *b)
{
	const struct remote_item *x = a, *y = b;

	return x->from != y->from ? (x->from < y->from ? -1 : 1) : 0;
}

// The time that is covered by any node.
static int64_t covered(struct remote_items *had)
{
	uint64_t sum = 0, end = 0;

	if (had->n)
		qsort(had->item, had->n, sizeof(*had->item), compare_times);
	for (size_t i = 0; i < had->n; i++) {
		uint64_t from = had->item[i].from > end ? had->item[i].from : end;

		sum += had->item[i].to > from ? had->item[i].to - from : 0;
		end = had->item[i].to > end ? had->item[i].to : end;
	}
	return (int64_t)sum;
}

static int pack(struct pprof_reader *reader, struct remote_items *had, struct buf *ret_gz, struct error *e)
{
	struct profile p = *pprof_reader_finish(reader);
	struct buf raw = { 0 };
	int err;

	// Each of the profiles may have holes that another one fills.
	p.duration_ns = covered(had);
	err = profile_encode(&p, &raw);

	if (!err)
		err = pprof_gzip(raw.data, raw.len, ret_gz);
	buf_free(&raw);
	return err ? error_set(e, err, "out of memory") : 0;
}

static int merge_all(struct remote *r, const struct store_query *q, struct buf *ret_gz, struct buf *said, struct error *e)
{
	struct pprof_limits limits = PPROF_LIMITS_DEFAULT;
	struct merge m = { .r = r, .q = q, .said = said };
	int err = 0;

	limits.memory = ANSWER_MAX;
	m.reader = pprof_reader_new(&limits);
	if (!m.reader)
		return error_set(e, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < r->options->collectors.n && !err; i++)
		err = merge_one(&m, i, e);
	if (!err && !m.answers)
		err = error_set(e, -ENODATA, "%s", m.nothing.text);
	if (!err)
		err = pack(m.reader, &m.had, ret_gz, e);
	pprof_reader_free(m.reader);
	remote_items_free(&m.had);
	return err;
}

// What is no profile must not be kept as one.
static int check_profile(const struct buf *gz, struct error *e)
{
	struct pprof_limits limits = PPROF_LIMITS_DEFAULT;
	struct pprof_source source = { .fd = -1, .data = gz->data, .len = gz->len };
	struct pprof_reader *reader;
	int err;

	limits.memory = ANSWER_MAX;
	reader = pprof_reader_new(&limits);
	err = reader ? pprof_reader_add(reader, &source, e) : error_set(e, -ENOMEM, "out of memory");
	pprof_reader_free(reader);
	return err && err != -ENOMEM ? error_prefix(e, err, "the collector's answer is no profile") : err;
}

int remote_query(struct remote *r, const struct store_query *q, struct buf *ret_gz, struct buf *said, struct error *e)
{
	char note[256] = "";
	int err;

	if (r->options->collectors.n > 1)
		return merge_all(r, q, ret_gz, said, e);
	err = remote_get(r, 0, "/debug/pprof/io", q, ret_gz, note, e);
	if (!err)
		err = check_profile(ret_gz, e);
	if (!err)
		buf_printf(said, "%s", note);
	return err;
}
