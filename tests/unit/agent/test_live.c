// SPDX-License-Identifier: Apache-2.0
// Pulls by threads out of a recording whose clock is the test's.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "agent/live.h"
#include "pprof/decode.h"
#include "pprof/profile.h"
#include "windows.h"

struct world {
	struct recorder r;
	struct live *l;
	uint64_t now; // of the last cut
	atomic_bool gone;
};

struct puller {
	pthread_t thread;
	struct live *l;
	struct live_pull q;
	struct buf gz;
	struct window_info info;
	struct error e;
	int err;
};

static void setup(struct world *w, size_t rows)
{
	memset(w, 0, sizeof(*w));
	recorder_make(&w->r);
	w->l = live_new(rows);
	assert_non_null(w->l);
	live_recorded(w->l, LABELS_FEW_COMM);
	w->now = 100 * S;
}

static void teardown(struct world *w)
{
	live_free(w->l);
	recorder_unmake(&w->r);
}

static const char *why_end(void *context)
{
	return ((struct world *)context)->gone ? "gone" : NULL;
}

static void *pull(void *argument)
{
	struct puller *p = argument;

	p->err = live_pull(p->l, &p->q, &p->gz, &p->info, &p->e);
	return NULL;
}

static void begin(struct world *w, struct puller *p, unsigned seconds)
{
	memset(p, 0, sizeof(*p));
	p->l = w->l;
	p->q = (struct live_pull){ .seconds = seconds, .why_end = why_end, .context = w };
	p->q.view.labels = LABELS_FEW_COMM;
	p->q.view.type = PPROF_IO_TIME;
	assert_int_equal(pthread_create(&p->thread, NULL, pull, p), 0);
}

static void wait_for_due(struct world *w)
{
	while (!live_due(w->l))
		usleep(1000);
}

static int end(struct puller *p)
{
	pthread_join(p->thread, NULL);
	buf_free(&p->gz);
	return p->err;
}

static int cut(struct world *w, uint64_t at, uint64_t ops)
{
	int err = live_add(w->l, window_of(&w->r, w->now, at, 0, ops));

	w->now = at;
	return err;
}

static uint64_t ship(struct world *w, uint64_t start, uint64_t end_at)
{
	struct window *s = NULL;
	uint64_t ops;

	assert_int_equal(live_ship(w->l, &s), 0);
	assert_int_equal(window_get_info(s)->start_mono, start);
	assert_int_equal(window_get_info(s)->end_mono, end_at);
	ops = window_get_info(s)->ops[OP_READ];
	window_free(s);
	return ops;
}

// The sum of its operations; the reader owns what ret shows.
static int64_t total_of(const struct buf *gz, struct pprof_reader **reader, const struct profile **ret)
{
	struct pprof_source source = { .fd = -1, .data = gz->data, .len = gz->len };
	struct error e = { "" };
	int64_t sum = 0;

	*reader = pprof_reader_new(NULL);
	assert_non_null(*reader);
	assert_int_equal(pprof_reader_add(*reader, &source, &e), 0);
	*ret = pprof_reader_finish(*reader);
	for (uint32_t i = 0; i < (*ret)->samples.n; i++)
		sum += (*ret)->values[i * (*ret)->n_types + PPROF_IO_OPS];
	return sum;
}

// It begins with the next cut and ends with the first that is late enough; the shipped windows know nothing of it.
static void one_pull(void **state)
{
	struct world w;
	struct puller p;
	struct pprof_reader *reader;
	const struct profile *profile;

	setup(&w, 1000);
	assert_int_equal(live_due(w.l), 0);
	begin(&w, &p, 2);
	wait_for_due(&w);
	assert_int_equal(cut(&w, 101 * S, 5), 0);
	assert_int_equal(live_due(w.l), 103 * S);
	assert_int_equal(cut(&w, 102 * S, 7), 0);
	assert_int_equal(ship(&w, 100 * S, 102 * S), 12);
	assert_false(live_work(w.l));
	assert_int_equal(cut(&w, 103 * S, 11), 0);
	assert_int_equal(live_due(w.l), 0);
	assert_true(live_work(w.l));
	assert_false(live_work(w.l));
	pthread_join(p.thread, NULL);
	assert_int_equal(p.err, 0);
	assert_int_equal(p.info.start_mono, 101 * S);
	assert_int_equal(p.info.end_mono, 103 * S);
	assert_int_equal(total_of(&p.gz, &reader, &profile), 18);
	pprof_reader_free(reader);
	buf_free(&p.gz);
	assert_int_equal(cut(&w, 104 * S, 13), 0);
	assert_int_equal(ship(&w, 102 * S, 104 * S), 24);
	teardown(&w);
}

// As many as there may be, begun at different times; one more is refused.
static void many_pulls(void **state)
{
	struct world w;
	struct puller p[LIVE_PULLS], more;
	struct live_counters c;

	setup(&w, 1000);
	for (unsigned i = 0; i < LIVE_PULLS; i++) {
		begin(&w, &p[i], 20);
		while (!live_due(w.l) || live_due(w.l) > w.now + S)
			usleep(1000);
		assert_int_equal(cut(&w, w.now + S, 1), 0);
	}
	begin(&w, &more, 10);
	assert_int_equal(end(&more), -EBUSY);
	assert_non_null(strstr(more.e.text, "try again"));
	while (w.now < 140 * S) {
		assert_int_equal(cut(&w, w.now + S, 1), 0);
		while (live_work(w.l))
			;
	}
	for (unsigned i = 0; i < LIVE_PULLS; i++) {
		assert_int_equal(end(&p[i]), 0);
		assert_int_equal(p[i].info.start_mono, (101 + i) * S);
		assert_int_equal(p[i].info.ops[OP_READ], 20);
	}
	assert_int_equal(ship(&w, 100 * S, 140 * S), 40);
	live_get_counters(w.l, &c);
	assert_true(c.pulls == LIVE_PULLS && c.refused == 1 && !c.failed);
	teardown(&w);
}

static void given_up(void **state)
{
	struct world w;
	struct puller p, ended;

	setup(&w, 1000);
	begin(&w, &ended, 1);
	wait_for_due(&w);
	assert_int_equal(cut(&w, 101 * S, 1), 0);
	assert_int_equal(cut(&w, 102 * S, 1), 0); // its window is there, its profile is not
	begin(&w, &p, 10);
	wait_for_due(&w);
	assert_int_equal(cut(&w, 103 * S, 1), 0);
	w.gone = true;
	assert_int_equal(end(&p), -ECANCELED);
	assert_int_equal(end(&ended), -ECANCELED);
	assert_false(live_work(w.l)); // nobody wants it
	assert_int_equal(live_due(w.l), 0);
	assert_int_equal(cut(&w, 104 * S, 1), 0);
	assert_int_equal(ship(&w, 100 * S, 104 * S), 4);
	teardown(&w);
}

static void stopped(void **state)
{
	struct world w;
	struct puller p;

	setup(&w, 1000);
	begin(&w, &p, 10);
	wait_for_due(&w);
	assert_int_equal(cut(&w, 101 * S, 1), 0);
	live_stop(w.l);
	assert_int_equal(end(&p), -ECANCELED);
	assert_non_null(strstr(p.e.text, "stopping"));
	begin(&w, &p, 10);
	assert_int_equal(end(&p), -ECANCELED);
	teardown(&w);
}

// The recorder is replaced: who runs is told, who has just ended gets what there was.
static void made_anew(void **state)
{
	struct world w;
	struct puller p, ended;

	setup(&w, 1000);
	begin(&w, &ended, 1);
	wait_for_due(&w);
	assert_int_equal(cut(&w, 101 * S, 1), 0);
	assert_int_equal(cut(&w, 102 * S, 1), 0);
	begin(&w, &p, 10);
	wait_for_due(&w);
	assert_int_equal(cut(&w, 103 * S, 1), 0);
	live_end(w.l, -ECANCELED, "made anew");
	assert_null(w.r.windows);
	assert_int_equal(end(&p), -ECANCELED);
	assert_string_equal(p.e.text, "made anew");
	assert_int_equal(end(&ended), 0);
	assert_int_equal(ended.info.ops[OP_READ], 1);
	teardown(&w);
}

// What pulls make the agent keep is bounded; what is shipped does not suffer.
static void too_many_rows(void **state)
{
	struct world w;
	struct puller p;

	setup(&w, 1);
	begin(&w, &p, 10);
	wait_for_due(&w);
	assert_int_equal(cut(&w, 101 * S, 1), 0);
	assert_int_equal(cut(&w, 102 * S, 1), 0);
	assert_int_equal(end(&p), -E2BIG);
	assert_non_null(strstr(p.e.text, "fewer seconds"));
	assert_int_equal(ship(&w, 100 * S, 102 * S), 2);
	teardown(&w);
}

static int checked(enum label_set labels, const char *root, enum label_set recorded)
{
	struct window_view v = { .labels = labels, .root = root };
	struct error e = { "" };
	int err = view_check(&v, recorded, &e);

	assert_true(!err == !*e.text);
	return err;
}

static void views(void **state)
{
	assert_int_equal(checked(LABELS_FEW, "service,device,op", LABELS_FEW_COMM), 0);
	assert_int_equal(checked(LABELS_NONE, "", LABELS_NONE), 0);
	assert_int_equal(checked(LABELS_ALL, NULL, LABELS_FEW_COMM), -EINVAL);
	assert_int_equal(checked(LABELS_NONE, "pid", LABELS_FEW_COMM), -EINVAL);
	assert_int_equal(checked(LABELS_NONE, "pid", LABELS_ALL), 0);
	assert_int_equal(checked(LABELS_NONE, "servic", LABELS_ALL), -EINVAL);
	assert_int_equal(checked(LABELS_NONE, "service,,op", LABELS_ALL), -EINVAL);
	assert_int_equal(checked(LABELS_NONE, "op,op,op,op,op,op,op,op,op", LABELS_ALL), -EINVAL);
}

static int64_t shown(struct window *w, const char *service, const char *device, enum pprof_type type, const char *title)
{
	struct window_view v = { .service = service, .device = device, .labels = LABELS_FEW, .type = type };
	struct error e = { "" };
	struct pprof_reader *reader;
	const struct profile *p;
	struct buf gz = { 0 };
	int64_t sum;

	assert_int_equal(window_profile_view(w, &v, &gz, &e), 0);
	sum = total_of(&gz, &reader, &p);
	assert_string_equal(profile_text(p, ((const struct profile_mapping *)intern_key(&p->mappings, 1))->file), title);
	assert_int_equal(p->default_type, p->types[type].type);
	pprof_reader_free(reader);
	buf_free(&gz);
	return sum;
}

static void narrowed(void **state)
{
	struct recorder r;
	struct window *w, *b;

	recorder_make(&r);
	w = window_of(&r, 0, S, 0, 5);
	b = window_of(&r, S, 2 * S, 1, 7);
	assert_int_equal(window_merge(w, b), 0);
	window_free(b);
	assert_int_equal(shown(w, NULL, NULL, PPROF_IO_TIME, "[node n]"), 12);
	assert_int_equal(shown(w, NULL, "vda", PPROF_IO_OPS, "[node n]"), 5);
	assert_int_equal(shown(w, NULL, "/dev/vdb", PPROF_READ_BYTES, "[node n]"), 7);
	assert_int_equal(shown(w, NULL, "vdc", PPROF_CPU, "[node n]"), 0);
	assert_int_equal(shown(w, "[not sampled]", NULL, PPROF_IO_TIME, "[service [not sampled]]"), 12);
	assert_int_equal(shown(w, "web", NULL, PPROF_IO_TIME, "[service web]"), 0);
	window_free(w);
	recorder_unmake(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_pull), cmocka_unit_test(many_pulls),     cmocka_unit_test(given_up), cmocka_unit_test(stopped),
		cmocka_unit_test(made_anew), cmocka_unit_test(too_many_rows), cmocka_unit_test(views),	   cmocka_unit_test(narrowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
