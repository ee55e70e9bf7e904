// SPDX-License-Identifier: Apache-2.0
#include "collector/tally.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector/store_query.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "common/quote.h"
#include "common/text.h"
#include "pprof/wire.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define PERIOD_NS 3000000000ull
#define SPANS 500 // of one look: a long one keeps the log of the store from being cut
#define NICE 10
#define PAIRS 256 // devices and operations of one look
#define TEXT_MAX 256

struct io {
	uint64_t ops, time, bytes;
};

struct cell {
	struct io io;
	UT_hash_handle hh;
	char key[]; // service, device, op, a NUL behind each
};

// Of the look at hand, since ids of the store may mean something else at the next.
struct pair {
	uint32_t device, op; // strings of `p`
	struct io io;	     // of the service at hand
};

struct look {
	sqlite3 *db;
	sqlite3_stmt *spans, *columns;
	struct pprof_builder *builder;
	struct profile *p;
	struct bodies *bodies;
	struct unpacker *unpacker;
	struct idmap pairs_of; // a set of labels: index + 1
	struct pair pair[PAIRS];
	unsigned n;
};

struct tally {
	struct store *store;
	int64_t last; // span
	pthread_mutex_t look, lock; // one look at a time; the cells
	struct cell *cells;
	unsigned n_cells;
	uint64_t failed;
	pthread_t thread;
	pthread_cond_t wake;
	bool running, stop;
};

static int no_memory(struct error *e)
{
	return error_set(e, -ENOMEM, "out of memory");
}

// ---- the sums ----

static size_t key_add(char *key, size_t at, const char *text)
{
	return at + text_sanitize(key + at, TEXT_MAX, text, strlen(text)) + 1;
}

static void add(struct tally *t, const char *service, const char *device, const char *op, const struct io *io)
{
	char key[3 * TEXT_MAX];
	size_t len;
	struct cell *c;

	len = key_add(key, key_add(key, key_add(key, 0, service), device), op);
	pthread_mutex_lock(&t->lock);
	HASH_FIND(hh, t->cells, key, len, c);
	if (!c && t->n_cells >= TALLY_CELLS) {
		len = key_add(key, key_add(key, key_add(key, 0, "[other]"), "[other]"), "[other]");
		HASH_FIND(hh, t->cells, key, len, c);
	}
	if (!c && (c = calloc(1, sizeof(*c) + len))) {
		memcpy(c->key, key, len);
		HASH_ADD(hh, t->cells, key[0], len, c);
		if (!c->hh.tbl) {
			free(c);
			c = NULL;
		}
		t->n_cells += c != NULL;
	}
	if (c) {
		c->io.ops += io->ops;
		c->io.time += io->time;
		c->io.bytes += io->bytes;
	} else {
		metric_add(&t->failed, 1);
	}
	pthread_mutex_unlock(&t->lock);
}

// ---- one look ----

static void look_close(struct look *l)
{
	sqlite3_finalize(l->spans);
	sqlite3_finalize(l->columns);
	bodies_free(l->bodies);
	pprof_builder_free(l->builder);
	unpacker_free(l->unpacker);
	idmap_free(&l->pairs_of);
	sqlite3_close(l->db);
	free(l);
}

static int look_open(struct store *s, struct look *l, struct error *e)
{
	int err = store_reader(s, &l->db, e);

	if (err)
		return err;
	l->builder = pprof_builder_new("");
	l->unpacker = unpacker_new();
	if (!l->builder || !l->unpacker)
		return no_memory(e);
	l->p = pprof_builder_profile(l->builder);
	err = db_exec(l->db, "PRAGMA cache_size = -2048; BEGIN", "read", e);
	if (!err)
		err = bodies_new(l->db, l->p, &l->bodies, e);
	if (!err)
		err = db_prepare(l->db, "SELECT id, services FROM spans WHERE id > ?1 AND level = 0 ORDER BY id LIMIT ?2", &l->spans, e);
	if (!err)
		err = db_prepare(l->db, "SELECT id, data FROM columns WHERE id BETWEEN ?1 AND ?2 ORDER BY id", &l->columns, e);
	return err;
}

static int find_pair(struct tally *t, struct look *l, uint32_t labels, struct pair **ret, struct error *e)
{
	uint32_t *found = idmap_find(&l->pairs_of, labels), n = 0, device = 0, op = 0, i;
	const struct profile_label *label = NULL;
	int err;

	if (found) {
		*ret = *found ? &l->pair[*found - 1] : NULL;
		return 0;
	}
	err = bodies_labels(l->bodies, labels, &label, &n, e);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		if (!strcmp(profile_text(l->p, label[i].key), "device"))
			device = label[i].text;
		if (!strcmp(profile_text(l->p, label[i].key), "op"))
			op = label[i].text;
	}
	for (i = 0; i < l->n && (l->pair[i].device != device || l->pair[i].op != op); i++)
		;
	// CPU samples have neither.
	*ret = (device || op) && i < PAIRS ? &l->pair[i] : NULL;
	if (*ret && i == l->n) {
		**ret = (struct pair){ .device = device, .op = op };
		l->n++;
	}
	if ((device || op) && !*ret)
		metric_add(&t->failed, 1);
	return labels && idmap_put(&l->pairs_of, labels, *ret ? i + 1 : 0) ? no_memory(e) : 0;
}

static uint64_t value(const struct columns *c, unsigned type, size_t i)
{
	return c->value[type] && c->value[type][i] > 0 ? (uint64_t)c->value[type][i] : 0;
}

static int add_rows(struct tally *t, struct look *l, const char *service, const struct columns *c, struct error *e)
{
	struct pair *p;
	int err = 0;

	for (size_t i = 0; i < c->n && !err; i++) {
		err = find_pair(t, l, c->labels[i], &p, e);
		if (err || !p)
			continue;
		p->io.ops += value(c, PPROF_IO_OPS, i);
		p->io.time += value(c, PPROF_IO_TIME, i);
		p->io.bytes += value(c, PPROF_READ_BYTES, i) + value(c, PPROF_WRITE_BYTES, i);
	}
	for (unsigned i = 0; i < l->n; i++) {
		if (l->pair[i].io.ops || l->pair[i].io.time)
			add(t, service, profile_text(l->p, l->pair[i].device), profile_text(l->p, l->pair[i].op), &l->pair[i].io);
		memset(&l->pair[i].io, 0, sizeof(l->pair[i].io));
	}
	return err;
}

static int add_columns(struct tally *t, struct look *l, const uint8_t *services, size_t len, struct error *e)
{
	const uint8_t *p = services, *end = services + len;
	struct columns c;
	uint32_t text;
	uint64_t id;
	int r;

	while ((r = db_step(l->columns, "read", e)) > 0) {
		if (wire_get_varint(&p, end, &id) || id > UINT32_MAX ||
		    columns_unpack(l->unpacker, sqlite3_column_blob(l->columns, 1), (size_t)sqlite3_column_bytes(l->columns, 1), &c)) {
			r = error_set(e, -EBADMSG, "the store is damaged: columns %lld are wrong", (long long)sqlite3_column_int64(l->columns, 0));
			break;
		}
		r = bodies_text(l->bodies, (uint32_t)id, &text, e);
		if (!r)
			r = add_rows(t, l, profile_text(l->p, text), &c, e);
		if (r)
			break;
	}
	sqlite3_reset(l->columns);
	return r;
}

// 1 when there may be more.
static int look(struct tally *t, struct look *l, struct error *e)
{
	unsigned n = 0;
	int r;

	sqlite3_bind_int64(l->spans, 1, t->last);
	sqlite3_bind_int64(l->spans, 2, SPANS);
	while ((r = db_step(l->spans, "read", e)) > 0) {
		int64_t span = sqlite3_column_int64(l->spans, 0);

		sqlite3_bind_int64(l->columns, 1, span * COLUMNS_PER_SPAN);
		sqlite3_bind_int64(l->columns, 2, span * COLUMNS_PER_SPAN + COLUMNS_PER_SPAN - 1);
		r = add_columns(t, l, sqlite3_column_blob(l->spans, 1), (size_t)sqlite3_column_bytes(l->spans, 1), e);
		t->last = span; // also where it is damaged: once is enough
		n++;
		if (r)
			break;
	}
	return r ? r : n == SPANS;
}

static int look_once(struct tally *t, struct error *e)
{
	struct look *l = calloc(1, sizeof(*l));
	int r = l ? look_open(t->store, l, e) : no_memory(e);

	if (!r)
		r = look(t, l, e);
	if (l)
		look_close(l);
	return r;
}

static bool stopping(struct tally *t)
{
	bool stop;

	pthread_mutex_lock(&t->lock);
	stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	return stop;
}

int tally_look(struct tally *t, struct error *e)
{
	int r;

	pthread_mutex_lock(&t->look);
	do {
		r = look_once(t, e);
		if (r < 0)
			metric_add(&t->failed, 1);
	} while (r > 0 && !stopping(t));
	pthread_mutex_unlock(&t->look);
	return r < 0 ? r : 0;
}

static void *run(void *tally)
{
	struct tally *t = tally;
	struct error e;

	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	pthread_mutex_lock(&t->lock);
	while (!t->stop) {
		uint64_t until = clock_monotonic() + PERIOD_NS;
		struct timespec ts = { (time_t)(until / 1000000000), (long)(until % 1000000000) };

		pthread_cond_clockwait(&t->wake, &t->lock, CLOCK_MONOTONIC, &ts);
		pthread_mutex_unlock(&t->lock);
		tally_look(t, &e);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

int tally_new(struct store *s, struct tally **ret, struct error *e)
{
	struct tally *t = calloc(1, sizeof(*t));
	sqlite3 *db;
	int err;

	if (!t)
		return no_memory(e);
	t->store = s;
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->look, NULL);
	pthread_cond_init(&t->wake, NULL);
	err = store_reader(s, &db, e);
	if (!err) {
		err = db_number(db, "SELECT coalesce(max(id), 0) FROM spans", &t->last, e);
		sqlite3_close(db);
	}
	if (!err) {
		err = -pthread_create(&t->thread, NULL, run, t);
		t->running = !err;
		if (err)
			error_set(e, err, "cannot start a thread");
	}
	if (err)
		tally_free(t);
	else
		*ret = t;
	return err;
}

void tally_free(struct tally *t)
{
	struct cell *c, *next;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	if (t->running)
		pthread_join(t->thread, NULL);
	HASH_ITER(hh, t->cells, c, next) {
		HASH_DEL(t->cells, c);
		free(c);
	}
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->look);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

// ---- as text ----

static const char *print_label(struct buf *to, const char *name, const char *value)
{
	size_t len = strlen(value);

	buf_printf(to, "%s=", name);
	quote_append(to, value, len);
	return value + len + 1;
}

static void print_labels(struct buf *to, const char *name, const char *key)
{
	buf_printf(to, "%s{", name);
	key = print_label(to, "service", key);
	buf_byte(to, ',');
	key = print_label(to, "device", key);
	buf_byte(to, ',');
	print_label(to, "op", key);
	buf_printf(to, "} ");
}

void tally_print(struct tally *t, struct buf *to)
{
	static const char *const names[] = { "blkprof_collector_io_operations_total", "blkprof_collector_io_seconds_total",
					     "blkprof_collector_io_bytes_total" };
	static const char *const helps[] = { "I/O operations in the windows received.", "Time that they took.",
					     "Bytes that they read and wrote." };

	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < 3; i++) {
		buf_printf(to, "# HELP %s %s\n# TYPE %s counter\n", names[i], helps[i], names[i]);
		for (struct cell *c = t->cells; c; c = c->hh.next) {
			print_labels(to, names[i], c->key);
			if (i == 1)
				buf_printf(to, "%" PRIu64 ".%09" PRIu64 "\n", c->io.time / 1000000000, c->io.time % 1000000000);
			else
				buf_printf(to, "%" PRIu64 "\n", i ? c->io.bytes : c->io.ops);
		}
	}
	pthread_mutex_unlock(&t->lock);
	buf_printf(to, "# HELP blkprof_collector_io_unread_total Times that received windows could not be read for the metrics above.\n"
		       "# TYPE blkprof_collector_io_unread_total counter\nblkprof_collector_io_unread_total %" PRIu64 "\n",
		   metric_get(&t->failed));
}
