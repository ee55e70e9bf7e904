// SPDX-License-Identifier: Apache-2.0
#include "collector/solr_index.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/solr_aside.h"
#include "collector/solr_batch.h"
#include "collector/solr_check.h"
#include "collector/solr_itself.h"
#include "collector/solr_schema.h"
#include "collector/store_indexing.h"
#include "common/clock.h"

#define BODY_MAX (8u << 20) // bytes of one update; one more document may follow when this is not reached
#define IDLE_MS 500
#define WAIT_MIN_MS 500
#define WAIT_MAX_MS 30000
#define COUNT_EVERY_NS 10000000000ull
#define SAY_EVERY_NS 10000000000ull
#define FAILURES_MEANT 5 // so many answers 500 to the same documents: it is they

struct solr_index {
	struct solr_index_options options;
	struct solr_client *client;
	struct indexing_reader *reader;
	struct indexing_place place, read; // done; and behind the batch at hand
	struct solr_batch batch;
	struct document document;
	struct solr_itself itself;
	uint64_t of_itself; // records of the batch at hand that are left out
	char update[64];
	unsigned wait_ms, failures;
	bool trouble, schema_fits;
	char trouble_text[sizeof(struct error)];
	uint64_t counted, said, unsaid; // said: of what was put aside
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool running, stop;
};

static bool stopping(struct solr_index *x)
{
	return __atomic_load_n(&x->stop, __ATOMIC_RELAXED);
}

static void rest(struct solr_index *x, unsigned ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_mutex_lock(&x->lock);
	if (!stopping(x))
		pthread_cond_clockwait(&x->wake, &x->lock, CLOCK_MONOTONIC, &t);
	pthread_mutex_unlock(&x->lock);
}

// ---- what is next ------------------------------------------------------------------------------------------------------

static void tell_itself(struct solr_index *x, const struct solr_itself_process *p)
{
	char line[512];

	snprintf(line, sizeof(line), "process %lld of node %s has the core %s that requests are indexed into, and is followed itself: what it "
		 "records of this core and of its threads is not indexed; leave the process out of [requests] in that agent.conf, or index "
		 "into another Solr", (long long)p->pid, p->node, p->core);
	x->options.say(x->options.say_context, line);
}

static bool is_itself(struct solr_index *x, const char *node)
{
	enum solr_itself_result r = solr_itself(&x->itself, node, &x->document);

	if (r == SOLR_ITSELF_NEW)
		tell_itself(x, &x->itself.process[x->itself.n - 1]);
	x->of_itself += r != SOLR_ITSELF_NOT;
	return r != SOLR_ITSELF_NOT;
}

static int take(void *context, const char *node, const void *document, size_t size)
{
	struct solr_index *x = context;
	struct error why;
	int err = document_read(document, size, &x->document, &why);

	if (!err && is_itself(x, node))
		return 0;
	if (!err)
		err = solr_check(&x->document, node, &why);
	if (solr_batch_add(&x->batch, node, document, size, err ? why.text : NULL))
		x->batch.bytes.error = -ENOMEM;
	return x->batch.n >= x->options.batch || x->batch.bytes.len >= BODY_MAX || x->batch.bytes.error;
}

// Somebody may have set the place back.
static int look(struct solr_index *x, struct error *e)
{
	struct indexing_place now;
	int err = indexing_place(x->reader, &now, e);

	if (err)
		return err;
	if (now.batch != x->place.batch || now.record != x->place.record) {
		x->options.say(x->options.say_context, "requests are indexed from an earlier place on, as was asked for");
		x->counted = 0;
	}
	x->place = now;
	return 0;
}

// A row that is damaged is left out.
static int fill(struct solr_index *x, struct error *e)
{
	int err = look(x, e);

	if (err)
		return err;
	solr_batch_clear(&x->batch);
	x->of_itself = 0;
	x->read = x->place;
	err = indexing_read(x->reader, &x->read, take, x, e);
	if (err == -EBADMSG) {
		x->read = (struct indexing_place){ x->read.batch + 1, 0 };
		metric_add(&x->options.counters->solr_damaged, 1);
		err = 0;
	}
	return !err && x->batch.bytes.error ? error_set(e, -ENOMEM, "out of memory") : err;
}

// ---- into Solr ---------------------------------------------------------------------------------------------------------

static int send(void *context, const void *json, size_t size, unsigned n, struct error *e)
{
	struct solr_index *x = context;
	struct collector_counters *c = x->options.counters;
	const struct buf *body;
	int status = solr_post(x->client, x->update, json, size, &body, e);
	char said[300];
	bool refused = status == 200 && solr_refused_some(body, said, sizeof(said));

	metric_add(&c->solr_updates, 1);
	metric_add(&c->solr_bytes, size);
	if (status == 200 && !refused) {
		metric_add(&c->solr_documents, n);
		return 0;
	}
	metric_add(&c->solr_update_errors, 1);
	if (status < 0)
		return status;
	if (refused)
		return error_set(e, -EINVAL, "Solr at %.150s refuses it: %.250s", solr_client_url(x->client), said);
	// 413: something on the way takes less at once; halves until it fits.
	if (status == 400 || status == 413 || (status == 500 && x->failures >= FAILURES_MEANT))
		return solr_explain(x->client, status, body, -EINVAL, e);
	return solr_explain(x->client, status, body, status == 500 ? -EREMOTEIO : -EIO, e);
}

// All refused: is it they, or is it the index?
static int suspect(struct solr_index *x, unsigned refused_before, struct error *e)
{
	int err;

	if (x->batch.n_refused == refused_before)
		return 0;
	err = solr_schema_check(x->client, e);
	if (err)
		return err;
	if (x->failures >= FAILURES_MEANT && x->batch.n_refused == x->batch.n)
		return error_set(e, -EREMOTEIO, "Solr fails with everything that it is sent: see its log");
	return 0;
}

static int post(struct solr_index *x, struct error *e)
{
	unsigned checked = x->batch.n_refused;
	int err = x->schema_fits || x->batch.n == checked ? 0 : solr_schema_check(x->client, e);

	if (err)
		return err;
	x->schema_fits = true;
	err = solr_batch_send(&x->batch, send, x, e);
	if (!err)
		err = suspect(x, checked, e);
	if (!err)
		err = solr_aside(x->options.directory, &x->batch, clock_realtime(), e);
	x->failures = err == -EREMOTEIO ? x->failures + 1 : 0;
	x->schema_fits = !err;
	return err;
}

// Not more often than a log can bear.
static void tell_aside(struct solr_index *x)
{
	const struct solr_document *d = x->batch.document;
	uint64_t now = clock_monotonic();
	char line[512];

	x->unsaid += x->batch.n_refused;
	if (!x->batch.n_refused || (x->said && now - x->said < SAY_EVERY_NS))
		return;
	while (!d->refused)
		d++;
	snprintf(line, sizeof(line), "%llu requests are not for Solr and were put aside in %.100s/" ASIDE_FILE ": %.250s",
		 (unsigned long long)x->unsaid, x->options.directory, d->refused);
	x->options.say(x->options.say_context, line);
	x->said = now;
	x->unsaid = 0;
}

static int advance(struct solr_index *x, struct error *e)
{
	int err = store_indexing_advance(x->options.store, &x->place, &x->read, x->batch.n_refused, e);

	if (err)
		return err;
	metric_add(&x->options.counters->solr_aside, x->batch.n_refused);
	metric_add(&x->options.counters->solr_itself, x->of_itself);
	tell_aside(x);
	x->place = x->read;
	return 0; // or it was set back: then the next look finds that
}

// ---- the thread --------------------------------------------------------------------------------------------------------

static void tell(struct solr_index *x, int err, const struct error *e)
{
	char line[sizeof(e->text) + 100];

	metric_set(&x->options.counters->solr_failing, err != 0);
	if (err && (!x->trouble || strcmp(x->trouble_text, e->text))) {
		snprintf(line, sizeof(line), "requests are not indexed and wait in the store; tried again: %s", e->text);
		snprintf(x->trouble_text, sizeof(x->trouble_text), "%s", e->text);
		x->options.say(x->options.say_context, line);
	}
	if (!err && x->trouble)
		x->options.say(x->options.say_context, "requests are indexed again");
	x->trouble = err;
}

static void count(struct solr_index *x)
{
	struct collector_counters *c = x->options.counters;
	struct indexing_counts n;

	x->counted = clock_monotonic();
	if (store_indexing_counts(x->options.store, &n, NULL))
		return;
	metric_set(&c->solr_waiting, n.waiting);
	metric_set(&c->solr_dropped, n.dropped);
}

// 1: there may be more.
static int step(struct solr_index *x, struct error *e)
{
	bool moved;
	int err = fill(x, e);

	if (err)
		return err;
	moved = x->read.batch != x->place.batch || x->read.record != x->place.record;
	if (x->batch.n)
		err = post(x, e);
	if (!err && moved)
		err = advance(x, e);
	return err ? err : moved;
}

static void *run(void *context)
{
	struct solr_index *x = context;
	struct error e;

	while (!stopping(x)) {
		int r = step(x, &e);

		if (r == -ECANCELED && stopping(x))
			break;
		if (r)
			tell(x, r < 0 ? r : 0, &e);
		if (clock_monotonic() - x->counted > COUNT_EVERY_NS)
			count(x);
		if (r < 0) {
			x->wait_ms = x->wait_ms ? 2 * x->wait_ms : WAIT_MIN_MS;
			x->wait_ms = x->wait_ms > WAIT_MAX_MS ? WAIT_MAX_MS : x->wait_ms;
			rest(x, x->wait_ms);
			continue;
		}
		x->wait_ms = 0;
		if (!r)
			rest(x, IDLE_MS);
	}
	count(x);
	return NULL;
}

static int start(struct solr_index *x, struct error *e)
{
	int err = store_indexing_mark(x->options.store, x->itself.mark, e);

	x->options.client.trace_id = x->itself.mark;
	if (!err)
		err = solr_client_new(&x->options.client, &x->client, e);
	if (!err)
		err = indexing_reader_new(x->options.store, &x->reader, e);
	if (!err)
		err = store_indexing_start(x->options.store, true, &x->place, e);
	if (err)
		return err;
	err = pthread_create(&x->thread, NULL, run, x);
	x->running = !err;
	return err ? error_set(e, -err, "cannot start a thread") : 0;
}

int solr_index_new(const struct solr_index_options *options, struct solr_index **ret, struct error *e)
{
	struct solr_index *x = calloc(1, sizeof(*x));
	int err;

	if (!x)
		return error_set(e, -ENOMEM, "out of memory");
	x->options = *options;
	x->options.client.stop = &x->stop;
	pthread_mutex_init(&x->lock, NULL);
	pthread_cond_init(&x->wake, NULL);
	snprintf(x->update, sizeof(x->update), "update?commitWithin=%llu", (unsigned long long)(options->commit_within / 1000000));
	err = start(x, e);
	if (err) {
		solr_index_free(x);
		return err;
	}
	*ret = x;
	return 0;
}

void solr_index_free(struct solr_index *x)
{
	if (!x)
		return;
	if (x->running) {
		pthread_mutex_lock(&x->lock);
		__atomic_store_n(&x->stop, true, __ATOMIC_RELAXED);
		pthread_cond_signal(&x->wake);
		pthread_mutex_unlock(&x->lock);
		pthread_join(x->thread, NULL);
	}
	indexing_reader_free(x->reader);
	solr_client_free(x->client);
	solr_batch_free(&x->batch);
	pthread_cond_destroy(&x->wake);
	pthread_mutex_destroy(&x->lock);
	free(x);
}

int solr_init(const struct collector_settings *settings, void (*say)(void *context, const char *text), void *context, struct error *e)
{
	struct solr_client_options o = { .url = settings->solr_url, .user = settings->solr_user,
					 .password_file = settings->solr_password_file, .ca = settings->solr_ca };
	struct solr_client *c;
	int err = solr_client_new(&o, &c, e);

	if (err)
		return err;
	err = solr_schema_init(c, say, context, e);
	solr_client_free(c);
	return err;
}
