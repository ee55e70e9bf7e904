// SPDX-License-Identifier: Apache-2.0
// A question goes through the batches whose times meet its own, those with the slowest requests first when only they are
// asked for: it ends where no batch can have a slower one.
#include "collector/store_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/store_records.h"
#include "collector/store_requests_sums.h"
#include "collector/store_watch.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define IO_FIELD "total_io_duration_ms_f"
#define DURATION_FIELD "duration_ms_f"

struct candidate {
	int64_t id;
	double most; // of the field that is sorted by; infinite when not known
	unsigned store;
};

// A batch that was read, by who sent it.
struct batch_key {
	char node[BATCH_NODE_MAX + 1];
	uint8_t instance[16];
	int64_t sequence;
};

struct batch_seen {
	struct batch_key key;
	UT_hash_handle hh;
};

struct asking {
	const struct store_requests *q;
	unsigned n_stores;
	sqlite3 **db;
	sqlite3_stmt **row;
	struct candidate *candidate;
	size_t n, cap;
	struct batch_seen *seen;
	struct records_reader records;
	struct document document;
	struct largest largest;
	struct facet_sums *facet[REQUESTS_FACETS];
	struct requests_answer *answer;
	struct watch watch;
	const char *sort;
};

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

// ---- which batches -----------------------------------------------------------------------------------------------------

// The least that a record must have of a field, by the conditions.
static double at_least(const struct store_requests *q, const char *field)
{
	double least = -1;

	for (unsigned i = 0; i < q->n_where; i++) {
		const struct where *w = &q->where[i];

		if (!strcmp(w->name, field) && w->is_number && (w->is == WHERE_AT_LEAST || w->is == WHERE_MORE || w->is == WHERE_EQUAL) &&
		    w->number > least)
			least = w->number;
	}
	return least;
}

static int add_candidate(struct asking *a, const struct candidate *c, struct error *e)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 256;
		struct candidate *more = realloc(a->candidate, cap * sizeof(*more));

		if (!more)
			return no_memory(e);
		a->candidate = more;
		a->cap = cap;
	}
	a->candidate[a->n++] = *c;
	return watch_memory(&a->watch, a->n * sizeof(*c), e);
}

static int find_batches(struct asking *a, unsigned store, struct error *e)
{
	static const char sql[] = "SELECT id, slowest, longest FROM requests WHERE last >= ?1 AND first < ?2 AND slowest >= ?3 AND "
				  "longest >= ?4 AND (?5 IS NULL OR node = (SELECT id FROM nodes WHERE name = ?5))";
	const struct store_requests *q = a->q;
	bool by_io = !strcmp(a->sort, IO_FIELD), by_duration = !strcmp(a->sort, DURATION_FIELD);
	sqlite3_stmt *st;
	int err = db_prepare(a->db[store], sql, &st, e);

	if (err)
		return err;
	sqlite3_bind_int64(st, 1, (int64_t)q->from);
	sqlite3_bind_int64(st, 2, (int64_t)q->to);
	sqlite3_bind_double(st, 3, at_least(q, IO_FIELD));
	sqlite3_bind_double(st, 4, at_least(q, DURATION_FIELD));
	sqlite3_bind_text(st, 5, q->node, -1, SQLITE_STATIC);
	while (!err && (err = db_step(st, "read", e)) > 0) {
		struct candidate c = { sqlite3_column_int64(st, 0), 1e308, store };

		if (by_io || by_duration)
			c.most = sqlite3_column_double(st, by_io ? 1 : 2);
		err = add_candidate(a, &c, e);
	}
	sqlite3_finalize(st);
	return err;
}

static int by_most(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->most != y->most)
		return x->most < y->most ? 1 : -1;
	return x->store != y->store ? (x->store > y->store) - (x->store < y->store) : (x->id > y->id) - (x->id < y->id);
}

// ---- records -----------------------------------------------------------------------------------------------------------

static double number_of(const struct document *d, const char *name)
{
	const struct document_field *f = document_find(d, name);

	return f ? document_double(f) : 0;
}

static bool kind_is(const struct document *d, const char *kind)
{
	const struct document_field *f = document_find(d, "kind_s");
	char text[32];

	if (!f)
		return !strcmp(kind, "request");
	document_text(f, text, sizeof(text));
	return !strcmp(text, kind);
}

// A sum among requests stands for each of them.
static bool matches(const struct asking *a, bool sum)
{
	const struct store_requests *q = a->q;
	uint64_t time = record_time(document_find(&a->document, "event_timestamp_dt"));

	if (time < q->from || time >= q->to)
		return false;
	for (unsigned i = 0; i < q->n_where; i++)
		if (sum ? !where_holds_for_all(&q->where[i], &a->document) : !where_holds(&q->where[i], &a->document))
			return false;
	return true;
}

static struct requests_sum sum_of(const struct document *d, bool handler)
{
	struct requests_sum s = { .requests = 1, .io = number_of(d, IO_FIELD), .duration = number_of(d, DURATION_FIELD),
				  .oncpu = number_of(d, "oncpu_ms_f"), .lock = number_of(d, "lock_wait_ms_f") };
	double requests = handler ? number_of(d, "requests_l") : 1;

	s.requests = requests >= 1 && requests < 1e18 ? (uint64_t)requests : 1;
	s.io_max = handler ? number_of(d, "max_" IO_FIELD) : s.io;
	s.duration_max = handler ? number_of(d, "max_" DURATION_FIELD) : s.duration;
	return s;
}

static double key_of(const struct asking *a)
{
	const struct document_field *f = document_find(&a->document, a->sort);

	if (!f)
		return -1e308;
	return f->type == DOCUMENT_TEXT ? (double)record_time(f) : document_double(f);
}

static int take_record(struct asking *a, const void *data, size_t size, struct error *e)
{
	const struct store_requests *q = a->q;
	bool handler, single;
	struct requests_sum sum;
	int err = 0;

	a->answer->read++;
	if (document_read(data, size, &a->document, NULL)) {
		a->answer->unreadable++;
		return 0;
	}
	handler = kind_is(&a->document, "handler");
	single = q->kind ? !strcmp(q->kind, "all") || kind_is(&a->document, q->kind) : kind_is(&a->document, "request");
	if ((!single && (q->kind || !handler)) || !matches(a, !single))
		return 0;
	sum = sum_of(&a->document, handler);
	requests_sum_add(&a->answer->sum, &sum);
	for (unsigned i = 0; i < q->n_facets && !err; i++)
		err = facet_sums_add(a->facet[i], document_find(&a->document, q->facet[i]), &sum);
	if (single && !err)
		err = largest_add(&a->largest, key_of(a), data, size);
	return err ? no_memory(e) : 0;
}

// 1: it was read from a store before this one.
static int seen_before(struct asking *a, sqlite3_stmt *st, struct error *e)
{
	struct batch_seen *s, *there;
	const char *node = (const char *)sqlite3_column_text(st, 2);

	if (a->n_stores < 2)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return no_memory(e);
	strncpy(s->key.node, node ? node : "", BATCH_NODE_MAX);
	if (sqlite3_column_bytes(st, 3) == sizeof(s->key.instance))
		memcpy(s->key.instance, sqlite3_column_blob(st, 3), sizeof(s->key.instance));
	s->key.sequence = sqlite3_column_int64(st, 4);
	HASH_FIND(hh, a->seen, &s->key, sizeof(s->key), there);
	if (there) {
		free(s);
		return 1;
	}
	HASH_ADD(hh, a->seen, key, sizeof(s->key), s);
	if (s->hh.tbl)
		return 0;
	free(s);
	return no_memory(e);
}

static int read_records(struct asking *a, sqlite3_stmt *st, struct error *e)
{
	const void *body = sqlite3_column_blob(st, 1), *data;
	size_t size;
	int r = seen_before(a, st, e);

	if (r)
		return r < 0 ? r : 0;
	r = records_open(&a->records, body ? body : "", (size_t)sqlite3_column_bytes(st, 1), (size_t)sqlite3_column_int64(st, 0), e);
	while (!r && (r = records_next(&a->records, &data, &size, e)) > 0)
		r = take_record(a, data, size, e);
	return r;
}

static size_t memory_of(const struct asking *a)
{
	size_t bytes = a->largest.bytes + a->records.own.cap;

	for (unsigned i = 0; i < a->q->n_facets; i++)
		bytes += facet_sums_bytes(a->facet[i]);
	return bytes;
}

static int read_batch(struct asking *a, const struct candidate *c, struct error *e)
{
	sqlite3_stmt *st = a->row[c->store];
	int r;

	sqlite3_bind_int64(st, 1, c->id);
	r = db_step(st, "read", e);
	if (r > 0)
		r = read_records(a, st, e);
	sqlite3_reset(st);
	if (!r)
		r = watch_ask(&a->watch, e);
	return r ? r : watch_memory(&a->watch, memory_of(a), e);
}

static int read_batches(struct asking *a, struct error *e)
{
	bool all = a->q->count || a->q->n_facets;
	size_t i = 0;
	int err = 0;

	if (a->n)
		qsort(a->candidate, a->n, sizeof(*a->candidate), by_most);
	for (; i < a->n && !err && (all || largest_wants(&a->largest, a->candidate[i].most)); i++)
		err = read_batch(a, &a->candidate[i], e);
	a->answer->whole = i == a->n;
	return err;
}

// ---- a question --------------------------------------------------------------------------------------------------------

static int open_stores(struct asking *a, struct store *const *stores, struct error *e)
{
	static const char sql[] = "SELECT r.size, r.body, n.name, a.instance, r.sequence FROM requests r JOIN nodes n ON n.id = r.node "
				  "JOIN agents a ON a.id = r.agent WHERE r.id = ?1";
	int err = 0;

	a->db = calloc(a->n_stores, sizeof(*a->db));
	a->row = calloc(a->n_stores, sizeof(*a->row));
	if (!a->db || !a->row)
		return no_memory(e);
	for (unsigned i = 0; i < a->n_stores && !err; i++) {
		err = store_reader(stores[i], &a->db[i], e);
		if (!err) {
			watch_db(&a->watch, a->db[i]);
			err = db_prepare(a->db[i], sql, &a->row[i], e);
		}
		if (!err)
			err = find_batches(a, i, e);
	}
	return err;
}

static int check_kind(const char *kind, struct error *e)
{
	static const char *const kinds[] = { "request", "handler", "thread", "all" };

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!kind || !strcmp(kind, kinds[i]))
			return 0;
	return error_set(e, -EINVAL, "'%.60s' is no kind of records; allowed: request, handler, thread, all", kind);
}

static int check_fields(const struct store_requests *q, struct error *e)
{
	int err = q->sort ? where_check_field(q->sort, e) : 0;

	for (unsigned i = 0; i < q->n_facets && i < REQUESTS_FACETS && !err; i++)
		err = where_check_field(q->facet[i], e);
	return err;
}

static int prepare(struct asking *a, struct error *e)
{
	const struct store_requests *q = a->q;
	int err = check_kind(q->kind, e);

	if (!err)
		err = check_fields(q, e);
	if (err)
		return err;
	if (q->limit > REQUESTS_MOST || q->n_facets > REQUESTS_FACETS || q->n_where > WHERE_MAX)
		return error_set(e, -EINVAL, "at most %d records, %d facets and %d conditions can be asked for", REQUESTS_MOST, REQUESTS_FACETS,
				 WHERE_MAX);
	a->answer = calloc(1, sizeof(*a->answer));
	if (!a->answer || largest_new(&a->largest, q->limit))
		return no_memory(e);
	for (unsigned i = 0; i < q->n_facets; i++) {
		a->facet[i] = facet_sums_new();
		if (!a->facet[i])
			return no_memory(e);
	}
	return 0;
}

static int finish(struct asking *a, struct error *e)
{
	struct requests_answer *r = a->answer;

	largest_sort(&a->largest);
	r->n = a->largest.n;
	r->record = a->largest.record;
	a->largest = (struct largest){ 0 };
	for (unsigned i = 0; i < a->q->n_facets; i++) {
		r->facet[i].field = a->q->facet[i];
		r->n_facets = i + 1;
		if (facet_sums_give(a->facet[i], &r->facet[i]))
			return no_memory(e);
	}
	return 0;
}

static void release(struct asking *a)
{
	struct batch_seen *s, *next;

	for (unsigned i = 0; i < a->n_stores; i++) {
		if (a->row)
			sqlite3_finalize(a->row[i]);
		if (a->db)
			sqlite3_close(a->db[i]);
	}
	free(a->row);
	free(a->db);
	free(a->candidate);
	HASH_ITER(hh, a->seen, s, next) {
		HASH_DEL(a->seen, s);
		free(s);
	}
	for (unsigned i = 0; i < REQUESTS_FACETS; i++)
		facet_sums_free(a->facet[i]);
	largest_free(&a->largest);
	records_free(&a->records);
}

int store_requests(struct store *const *stores, unsigned n, const struct store_requests *q, struct requests_answer **ret, struct error *e)
{
	struct asking *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return no_memory(e);
	a->q = q;
	a->n_stores = n;
	a->sort = q->sort ? q->sort : DURATION_FIELD;
	a->watch.limits = q->limits;
	err = prepare(a, e);
	if (!err)
		err = open_stores(a, stores, e);
	if (!err)
		err = read_batches(a, e);
	if (!err)
		err = finish(a, e);
	release(a);
	if (err) {
		err = watch_end(&a->watch, err, e);
		requests_answer_free(a->answer);
	} else {
		*ret = a->answer;
	}
	free(a);
	return err;
}

void requests_answer_free(struct requests_answer *a)
{
	if (!a)
		return;
	for (unsigned i = 0; i < a->n; i++)
		free(a->record[i].document);
	free(a->record);
	for (unsigned i = 0; i < a->n_facets; i++) {
		for (unsigned k = 0; k < a->facet[i].n; k++)
			free(a->facet[i].value[k].value);
		free(a->facet[i].value);
	}
	free(a);
}
