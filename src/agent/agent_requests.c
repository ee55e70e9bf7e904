// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_requests.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/requests.h"
#include "common/clock.h"

#define POLL_MS 50
#define BATCH_NS 1000000000ull
#define PART_BYTES (BATCH_BYTES_MAX - (1u << 20))
#define COUNTS_MAX 64

struct agent_requests {
	struct requests_options options;
	struct requests *requests;
	struct spool *spool;
	char node[BATCH_NODE_MAX + 1];
	pthread_t thread;
	bool stopping;
	// The batch that is being made.
	struct buf json;
	size_t *ends; // of each document in json
	unsigned n, cap;
	uint64_t began;
	pthread_mutex_t lock; // of what is below: read by other threads
	struct requests_count counts[COUNTS_MAX];
	unsigned n_counts;
	uint64_t batches, records, batches_lost, records_lost;
	unsigned targets;
};

bool agent_requests_wanted(const struct agent_config *c)
{
	return c->requests_pid.n || c->requests_comm.n || c->requests_cgroup.n || c->requests_cmdline.n;
}

static void spool_batch(struct agent_requests *a)
{
	struct batch_profile *docs = calloc(a->n ? a->n : 1, sizeof(*docs));
	struct batch b = { .kind = BATCH_REQUESTS, .start = a->began, .end = clock_realtime(), .n_requests = a->n, .requests = docs };
	size_t at = 0;
	int err = docs ? 0 : -ENOMEM;

	if (!a->n) {
		free(docs);
		a->began = b.end;
		return;
	}
	for (unsigned i = 0; docs && i < a->n; i++) {
		docs[i] = (struct batch_profile){ .data = a->json.data + at, .size = a->ends[i] - at };
		at = a->ends[i];
	}
	// A clock that was set back.
	if (b.end <= b.start)
		b.start = b.end - 1;
	err = err ? err : spool_add(a->spool, &b);
	pthread_mutex_lock(&a->lock);
	a->batches += !err;
	a->records += err ? 0 : a->n;
	a->batches_lost += err != 0;
	a->records_lost += err ? a->n : 0;
	pthread_mutex_unlock(&a->lock);
	free(docs);
	a->n = 0;
	a->json.len = 0;
	a->began = b.end;
}

static bool room_for_one(struct agent_requests *a)
{
	size_t *ends;

	if (a->n < a->cap)
		return true;
	ends = reallocarray(a->ends, a->cap ? 2 * a->cap : 256, sizeof(*ends));
	if (!ends)
		return false;
	a->ends = ends;
	a->cap = a->cap ? 2 * a->cap : 256;
	return true;
}

static void take(void *context, const struct request_record *r)
{
	struct agent_requests *a = context;
	size_t before = a->json.len;

	if (before > PART_BYTES || a->n == BATCH_REQUESTS_MAX)
		spool_batch(a);
	before = a->json.len;
	if (room_for_one(a))
		record_json(r, requests_metrics(a->requests), a->node, &a->json);
	else
		a->json.error = -ENOMEM;
	if (!a->json.error) {
		a->ends[a->n++] = a->json.len;
		return;
	}
	a->json.error = 0;
	a->json.len = before;
	pthread_mutex_lock(&a->lock);
	a->records_lost++;
	pthread_mutex_unlock(&a->lock);
}

static void publish(struct agent_requests *a)
{
	unsigned n;
	const struct requests_count *counts = requests_counts(a->requests, &n);

	pthread_mutex_lock(&a->lock);
	a->n_counts = n < COUNTS_MAX ? n : COUNTS_MAX;
	memcpy(a->counts, counts, a->n_counts * sizeof(*counts));
	a->targets = requests_targets(a->requests);
	pthread_mutex_unlock(&a->lock);
}

static void end_batch(struct agent_requests *a)
{
	requests_take(a->requests, take, a);
	spool_batch(a);
	publish(a);
}

static void *run(void *context)
{
	struct agent_requests *a = context;
	uint64_t due = clock_monotonic() + BATCH_NS, now;

	while (!__atomic_load_n(&a->stopping, __ATOMIC_ACQUIRE)) {
		requests_poll(a->requests, POLL_MS);
		now = clock_monotonic();
		if (now < due)
			continue;
		end_batch(a);
		due = now + BATCH_NS;
	}
	requests_stop(a->requests);
	end_batch(a);
	return NULL;
}

static void release(struct agent_requests *a)
{
	struct request_rules *t = &a->options.targets;
	struct target_rules *p = &a->options.params;

	requests_free(a->requests);
	for (unsigned i = 0; i < REQUEST_RULES_MAX; i++) {
		free((void *)t->pid[i]);
		free((void *)t->comm[i]);
		free((void *)t->cgroup[i]);
		free((void *)t->cmdline[i]);
	}
	for (unsigned i = 0; i < p->n_keep; i++)
		free((void *)p->keep[i]);
	free((void *)a->options.plugins);
	free((void *)a->options.trace_header);
	buf_free(&a->json);
	free(a->ends);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static int copy_list(const struct config_list *from, const char *what, unsigned max, const char **to, unsigned *n, struct error *e)
{
	if (from->n > max)
		return error_set(e, -EINVAL, "[requests] has %u lines of %s; %u are allowed", from->n, what, max);
	for (*n = 0; *n < from->n; (*n)++) {
		to[*n] = strdup(from->item[*n]);
		if (!to[*n])
			return error_set(e, -ENOMEM, "no memory for [requests]");
	}
	return 0;
}

static int copy_options(struct agent_requests *a, const struct agent_config *c, struct error *e)
{
	struct request_rules *t = &a->options.targets;
	struct target_rules *p = &a->options.params;
	int err = copy_list(&c->requests_pid, "pid", REQUEST_RULES_MAX, t->pid, &t->n_pid, e);

	if (!err)
		err = copy_list(&c->requests_comm, "comm", REQUEST_RULES_MAX, t->comm, &t->n_comm, e);
	if (!err)
		err = copy_list(&c->requests_cgroup, "cgroup", REQUEST_RULES_MAX, t->cgroup, &t->n_cgroup, e);
	if (!err)
		err = copy_list(&c->requests_cmdline, "cmdline", REQUEST_RULES_MAX, t->cmdline, &t->n_cmdline, e);
	if (!err)
		err = copy_list(&c->keep_params, "keep_params", TARGET_KEEP_MAX, p->keep, &p->n_keep, e);
	for (unsigned i = 0; i < p->n_keep; i++)
		p->keep_all |= !strcmp(p->keep[i], "*");
	a->options.window = c->window;
	a->options.java_names = c->java_attach;
	if (!err && *c->plugins && !(a->options.plugins = strdup(c->plugins)))
		err = error_set(e, -ENOMEM, "no memory for [requests]");
	if (!err && !(a->options.trace_header = strdup(c->trace_header)))
		err = error_set(e, -ENOMEM, "no memory for [requests]");
	memcpy(a->node, c->node_name, sizeof(a->node));
	return err;
}

int agent_requests_start(const struct agent_config *c, struct spool *spool, struct jvm_wake *wake,
			 void (*say)(void *context, const char *text), void *context, struct agent_requests **ret, struct error *e)
{
	struct agent_requests *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return error_set(e, -ENOMEM, "no memory for following requests");
	pthread_mutex_init(&a->lock, NULL);
	a->spool = spool;
	a->began = clock_realtime();
	a->options.jvm_wake = wake;
	a->options.say = say;
	a->options.say_context = context;
	err = copy_options(a, c, e);
	if (!err)
		err = requests_new(&a->options, &a->requests, e);
	if (!err && pthread_create(&a->thread, NULL, run, a))
		err = error_set(e, -EAGAIN, "no thread for following requests");
	if (err) {
		release(a);
		return err;
	}
	*ret = a;
	return 0;
}

static bool same_list(const struct config_list *a, const char *const *b, unsigned n)
{
	if (a->n != n)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(a->item[i], b[i]))
			return false;
	return true;
}

bool agent_requests_same(const struct agent_requests *a, const struct agent_config *c)
{
	const struct request_rules *t = &a->options.targets;

	return same_list(&c->requests_pid, t->pid, t->n_pid) && same_list(&c->requests_comm, t->comm, t->n_comm) &&
	       same_list(&c->requests_cgroup, t->cgroup, t->n_cgroup) && same_list(&c->requests_cmdline, t->cmdline, t->n_cmdline) &&
	       same_list(&c->keep_params, a->options.params.keep, a->options.params.n_keep) && a->options.window == c->window &&
	       a->options.java_names == c->java_attach && !strcasecmp(a->options.trace_header, c->trace_header) &&
	       !strcmp(a->options.plugins ? a->options.plugins : "", c->plugins);
}

void agent_requests_stop(struct agent_requests *a)
{
	if (!a)
		return;
	__atomic_store_n(&a->stopping, true, __ATOMIC_RELEASE);
	pthread_join(a->thread, NULL);
	release(a);
}

static void print_one(struct buf *ret, const char *name, const char *help, uint64_t value)
{
	buf_printf(ret, "# HELP blkprof_agent_%s %s.\n# TYPE blkprof_agent_%s counter\nblkprof_agent_%s %llu\n", name, help, name, name,
		   (unsigned long long)value);
}

void agent_requests_print(struct agent_requests *a, struct buf *ret)
{
	pthread_mutex_lock(&a->lock);
	buf_printf(ret, "# HELP blkprof_agent_request_targets Processes whose requests are followed.\n"
			"# TYPE blkprof_agent_request_targets gauge\nblkprof_agent_request_targets %u\n", a->targets);
	print_one(ret, "request_batches_total", "Batches of requests given to the spool", a->batches);
	print_one(ret, "request_records_total", "Records in those", a->records);
	print_one(ret, "request_records_lost_total", "Records that could not be made or spooled", a->records_lost);
	buf_printf(ret, "# HELP blkprof_agent_request_events_total What was seen of requests, and what was lost of them.\n"
			"# TYPE blkprof_agent_request_events_total counter\n");
	for (unsigned i = 0; i < a->n_counts; i++)
		buf_printf(ret, "blkprof_agent_request_events_total{what=\"%s\"} %llu\n", a->counts[i].name,
			   (unsigned long long)a->counts[i].value);
	pthread_mutex_unlock(&a->lock);
}
