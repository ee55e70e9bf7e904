// SPDX-License-Identifier: Apache-2.0
// Runs a plan of block I/O from named functions and prints as JSON what it did: counts, bytes and the time that each
// request took as the program saw it, and what a profiler of block requests should see of it.
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/text.h"
#include "run.h"
#include "start.h"

struct options {
	struct plan plan;
	const char *target;
	uint64_t create, limit;
	bool wait, linger, parallel;
	const char *comm;
};

struct task {
	const struct entry *entry;
	struct target *target; // owned
	struct job *job;       // owned
	struct outcome outcome;
	pthread_t thread;
	int result;
	struct error error;
};

static void usage(FILE *out)
{
	fputs("usage: ioload [options] ENTRY…\n"
	      "Runs the entries one after the other and prints what they did as JSON.\n"
	      "  ENTRY  FUNCTION:METHOD[:KEY=VALUE,…]; keys: target size count threads depth rate order seed skip data name\n"
	      "  -t, --target PATH    file or block device of entries that name none\n"
	      "  -c, --create SIZE    make a target file that is missing or smaller, written and synced\n"
	      "  -m, --limit SIZE     use only so much of each target\n"
	      "  -f, --file FILE      more entries, one a line\n"
	      "  -p, --parallel       all entries at once\n"
	      "  -w, --wait           print \"ready\", start on a line on standard input or on SIGUSR1\n"
	      "  -l, --linger         when done, stay until standard input ends\n"
	      "  -n, --comm NAME      name of the process\n"
	      "      --list           functions and methods\n", out);
}

static void list(void)
{
	puts("functions:");
	for (unsigned i = 0; function_name(i); i++)
		printf("  %s\n", function_name(i));
	puts("methods:");
	for (int m = 0; m < METHODS; m++)
		printf("  %s\n", method_info((enum method)m)->name);
}

static const struct option long_options[] = {
	{"target", required_argument, NULL, 't'}, {"create", required_argument, NULL, 'c'},
	{"limit", required_argument, NULL, 'm'},  {"file", required_argument, NULL, 'f'},
	{"parallel", no_argument, NULL, 'p'},	  {"wait", no_argument, NULL, 'w'},
	{"linger", no_argument, NULL, 'l'},	  {"comm", required_argument, NULL, 'n'},
	{"list", no_argument, NULL, 'L'},	  {"help", no_argument, NULL, 'h'},
	{0},
};

static int parse_option(int c, struct options *o, struct error *e)
{
	switch (c) {
	case 't': o->target = optarg; return 0;
	case 'c': return text_size(optarg, "--create", &o->create, e);
	case 'm': return text_size(optarg, "--limit", &o->limit, e);
	case 'f': return plan_read(&o->plan, optarg, e);
	case 'p': o->parallel = true; return 0;
	case 'w': o->wait = true; return 0;
	case 'l': o->linger = true; return 0;
	case 'n': o->comm = optarg; return 0;
	case 'L': list(); exit(0);
	case 'h': usage(stdout); exit(0);
	default: return error_set(e, -EINVAL, "wrong usage, see --help");
	}
}

static int parse(int argc, char **argv, struct options *o, struct error *e)
{
	int c, r = 0;

	while (!r && (c = getopt_long(argc, argv, "t:c:m:f:pwln:h", long_options, NULL)) != -1)
		r = parse_option(c, o, e);
	for (; !r && optind < argc; optind++)
		r = plan_add(&o->plan, argv[optind], e);
	if (!r && o->plan.count == 0)
		r = error_set(e, -EINVAL, "no entry to run, see --help");
	return r;
}

static int prepare(const struct options *o, struct task *k, struct error *e)
{
	const char *path = k->entry->target[0] ? k->entry->target : o->target;
	int r;

	if (!path)
		return error_set(e, -EINVAL, "%s has no target (target=PATH or --target)", k->entry->function);
	r = target_open(path, o->create, o->limit, &k->target, e);
	return r ? r : job_new(k->entry, k->target, &k->job, e);
}

static void *task_main(void *arg)
{
	struct task *k = arg;

	k->result = job_run(k->job, &k->outcome, &k->error);
	return NULL;
}

static int run_parallel(struct task *tasks, unsigned count, struct error *e)
{
	unsigned started = 0;
	int r = 0;

	for (; started < count; started++) {
		r = -pthread_create(&tasks[started].thread, NULL, task_main, &tasks[started]);
		if (r) {
			error_set(e, r, "cannot start a thread: %s", strerror(-r));
			break;
		}
	}
	for (unsigned i = 0; i < started; i++) {
		pthread_join(tasks[i].thread, NULL);
		if (!r && tasks[i].result) {
			r = tasks[i].result;
			*e = tasks[i].error;
		}
	}
	return r;
}

static int run_serial(struct task *tasks, unsigned count, struct error *e)
{
	int r = 0;

	for (unsigned i = 0; i < count && !r; i++)
		r = job_run(tasks[i].job, &tasks[i].outcome, e);
	return r;
}

static bool is_space(const struct task *k)
{
	return !method_info(k->entry->method)->moves_data;
}

// The kernel writes pages of zeroes where the device has no command for it.
static bool zeroes_by_hand(const struct task *k)
{
	enum method m = k->entry->method;

	return (m == METHOD_ZEROOUT || m == METHOD_ZERO_RANGE) && !target_zeroes(k->target);
}

// A call is one block request, so that the request's time lies within the call's, or its requests follow one another.
static bool time_is_bound(const struct task *k)
{
	const struct method_info *m = method_info(k->entry->method);

	if (!m->one_bio || (is_space(k) && !target_is_device(k->target)) || (m->cached && !k->entry->random))
		return false;
	return k->entry->method == METHOD_MMAP || k->outcome.requests == k->entry->count;
}

// Of a request that is one bio: as many pages as a bio can hold. A device's page cache is written page by page, and a
// file system may write the inode beside the data.
static uint64_t size_limit(const struct task *k)
{
	if (k->entry->method == METHOD_WRITE_FDATASYNC)
		return target_is_device(k->target) ? 4096 : 0;
	return 256 * 4096;
}

static void print_expectation(const struct task *k, struct buf *out)
{
	const struct method_info *m = method_info(k->entry->method);
	bool space = is_space(k), file = !target_is_device(k->target), moves = m->moves_data || zeroes_by_hand(k);
	bool one = m->one_bio && !(space && file) && k->entry->size <= size_limit(k) && !(m->cached && !k->entry->random);
	bool all = m->cached && k->entry->count * k->entry->size == target_size(k->target);
	bool synced = k->entry->method == METHOD_WRITE_FDATASYNC;
	uint64_t flushes = m->flushes && target_has_cache(k->target) ? k->entry->count : 0;

	buf_printf(out, "\"expect\": {\"op\": \"%s\", \"ops\": %" PRIu64 ", \"ops_exact\": %s, ",
		zeroes_by_hand(k) ? "write" : m->op, k->outcome.requests, one ? "true" : "false");
	buf_printf(out, "\"bytes\": %" PRIu64 ", \"bytes_exact\": %s, ", moves ? k->outcome.truth.bytes : 0,
		all || one || (synced && !file) ? "true" : "false");
	buf_printf(out, "\"flushes\": %" PRIu64 ", \"time_bound\": %s}", flushes, time_is_bound(k) ? "true" : "false");
}

static void print_task(const struct task *k, struct buf *out)
{
	const struct entry *n = k->entry;
	const struct method_info *m = method_info(n->method);

	buf_printf(out, "{\"function\": \"%s\", \"method\": \"%s\", \"issuer\": \"%s\", \"target\": ", n->function, m->name,
		issuer_name(m->issuer));
	truth_string(out, target_path(k->target));
	buf_printf(out, ", \"device\": ");
	truth_string(out, target_disk(k->target));
	buf_printf(out, ", \"size\": %" PRIu64 ", \"count\": %" PRIu64 ", \"threads\": %u, \"depth\": %u, \"rate\": %" PRIu64,
		n->size, n->count, n->threads, n->depth, n->rate);
	buf_printf(out, ", \"extents\": %u, \"cancellable\": %s, \"workers\": %u", target_extents(k->target),
		k->outcome.cancellable ? "true" : "false", k->outcome.workers);
	buf_printf(out, ", \"started_ns\": %" PRIu64 ", \"ended_ns\": %" PRIu64 ", \"cpu_ns\": %" PRIu64 ", ",
		k->outcome.started_ns, k->outcome.ended_ns, k->outcome.cpu_ns);
	truth_print(&k->outcome.truth, out);
	buf_printf(out, ", ");
	print_expectation(k, out);
	buf_printf(out, "}");
}

static int print_all(const struct task *tasks, unsigned count)
{
	struct buf out = {0};
	int r;

	buf_printf(&out, "{\"pid\": %d, \"entries\": [", getpid());
	for (unsigned i = 0; i < count; i++) {
		buf_printf(&out, i ? ",\n " : "\n ");
		print_task(&tasks[i], &out);
	}
	buf_printf(&out, "\n]}\n");
	r = out.error;
	if (!r && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)))
		r = -EIO;
	buf_free(&out);
	return r;
}

static int run(const struct options *o, struct task *tasks, struct error *e)
{
	unsigned count = o->plan.count;
	int r = 0;

	for (unsigned i = 0; i < count && !r; i++) {
		tasks[i].entry = &o->plan.entries[i];
		r = prepare(o, &tasks[i], e);
	}
	if (!r && o->wait)
		r = start_wait(e);
	if (!r)
		r = o->parallel ? run_parallel(tasks, count, e) : run_serial(tasks, count, e);
	if (!r && print_all(tasks, count))
		r = error_set(e, -EIO, "cannot write the result");
	if (!r && o->linger)
		start_linger();
	return r;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct error e = {{0}};
	struct task *tasks = NULL;
	int r = parse(argc, argv, &o, &e);

	if (!r && o.wait)
		start_prepare();
	if (!r && o.comm)
		prctl(PR_SET_NAME, o.comm);
	if (!r) {
		tasks = calloc(o.plan.count, sizeof(*tasks));
		r = tasks ? run(&o, tasks, &e) : error_set(&e, -ENOMEM, "no memory");
	}
	for (unsigned i = 0; tasks && i < o.plan.count; i++) {
		job_free(tasks[i].job);
		target_free(tasks[i].target);
	}
	free(tasks);
	plan_free(&o.plan);
	if (r)
		fprintf(stderr, "ioload: %s\n", e.text);
	return r ? 1 : 0;
}
