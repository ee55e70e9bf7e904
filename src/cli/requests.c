// SPDX-License-Identifier: Apache-2.0
// blkprof requests: the requests of a server and where their time went, from this node's kernel or from a collector.
#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/jvm_wake.h"
#include "agent/requests.h"
#include "cli/command.h"
#include "cli/privileges.h"
#include "cli/requests_stored.h"
#include "cli/requests_table.h"
#include "cli/signals.h"
#include "common/clock.h"

#define POLL_MS 50
#define TAKE_NS 1000000000ull
#define SLOWEST 20

struct requests_command {
	struct request_rules targets;
	struct target_rules params;
	const char *trace_header, *node, *plugins;
	uint64_t duration_ns;
	uint32_t slowest, full;
	bool json, threads, java_names;
	struct requests_stored stored; // of collectors, instead
};

static const struct requests_command defaults = { .slowest = SLOWEST, .full = REQUESTS_FULL };

struct printing {
	const struct requests_command *o;
	struct requests *requests;
	struct jvm_wake *jvm_wake; // NULL: Java names are not asked for
	struct requests_table *table;
	char node[65];
	uint64_t threads;
	unsigned said_unread; // by the number of the count
	int error; // of standard output
};

static void print_json(struct printing *p, const struct request_record *r)
{
	struct buf b = { 0 };

	// Another try might wait for ever for somebody who reads.
	if (p->error)
		return;
	record_json(r, requests_metrics(p->requests), p->node, &b);
	buf_byte(&b, '\n');
	if (!b.error && fwrite(b.data, 1, b.len, stdout) != b.len)
		p->error = -errno;
	buf_free(&b);
}

static double ms(const struct request_record *r, enum metric_id metric)
{
	return r->times.state[metric] == VALUE_MISSING ? -1 : (double)r->times.value[metric] / 1e6;
}

static void fill(struct requests_row *row, const struct request_record *r)
{
	memset(row, 0, sizeof(*row));
	row->start = r->start;
	row->duration = ms(r, METRIC_DURATION);
	row->io = ms(r, METRIC_TOTAL_IO_DURATION);
	row->oncpu = ms(r, METRIC_ONCPU);
	row->runq = ms(r, METRIC_RUNQ);
	row->lock = ms(r, METRIC_LOCK_WAIT);
	row->client = ms(r, METRIC_CLIENT_WAIT);
	row->stopped = ms(r, METRIC_SAFEPOINT);
	row->disk = ms(r, METRIC_DISK_WAIT);
	row->net = ms(r, METRIC_NET_WAIT);
	row->poll = ms(r, METRIC_POLL_WAIT);
	row->pipe = ms(r, METRIC_PIPE_WAIT);
	row->sleep = ms(r, METRIC_SLEEP_WAIT);
	row->other = ms(r, METRIC_OTHER_WAIT);
	row->disk_max = ms(r, METRIC_DISK_MAX);
	row->read_bytes = r->times.value[METRIC_READ_BYTES];
	row->write_bytes = r->times.value[METRIC_WRITE_BYTES];
	row->requests = r->kind == REQUEST_HANDLER ? r->times.value[METRIC_REQUESTS] : 1;
	row->longest = r->times.range ? (double)r->times.range->max[METRIC_DURATION] / 1e6 : row->duration;
	row->status = r->status;
	row->incomplete = r->incomplete;
	snprintf(row->method, sizeof(row->method), "%s", r->method);
	snprintf(row->core, sizeof(row->core), "%.63s", r->core);
	snprintf(row->handler, sizeof(row->handler), "%s", r->handler);
	snprintf(row->target, sizeof(row->target), "%.300s%s%.200s", r->path, *r->query ? "?" : "", r->query);
	snprintf(row->device, sizeof(row->device), "%s", r->device);
}

static void take(void *context, const struct request_record *r)
{
	struct printing *p = context;
	struct requests_row row;

	p->threads += r->kind == REQUEST_THREAD;
	if (p->o->json) {
		if (r->kind != REQUEST_THREAD || p->o->threads)
			print_json(p, r);
		return;
	}
	if (r->kind == REQUEST_THREAD)
		return;
	fill(&row, r);
	if (r->kind == REQUEST_ONE)
		requests_table_add(p->table, &row);
	else
		requests_table_add_sum(p->table, &row);
}

// Connections whose requests nobody can tell.
static bool is_unread(const char *name)
{
	return !strcmp(name, "h2_connections") || !strcmp(name, "tls_connections");
}

// With the table: without them it would look whole.
static void print_unread(struct printing *p)
{
	unsigned n;
	const struct requests_count *c = requests_counts(p->requests, &n);

	for (unsigned i = 0; i < n; i++)
		if (is_unread(c[i].name) && c[i].value)
			printf("not among them: %llu %s\n", (unsigned long long)c[i].value, c[i].help);
}

// Records that are written for days have no end where it could be said.
static void say_unread(struct printing *p)
{
	unsigned n;
	const struct requests_count *c = requests_counts(p->requests, &n);

	for (unsigned i = 0; i < n; i++) {
		if (!is_unread(c[i].name) || !c[i].value || (p->said_unread & 1u << i % 32))
			continue;
		p->said_unread |= 1u << i % 32;
		fprintf(stderr, "there are %s\n", c[i].help);
	}
}

static int follow(struct printing *p, struct error *e)
{
	uint64_t now = clock_monotonic(), end = p->o->duration_ns ? now + p->o->duration_ns : UINT64_MAX, taken = now;
	int err;

	for (; now < end && !signals_stop() && !p->error; now = clock_monotonic()) {
		err = requests_poll(p->requests, POLL_MS);
		if (err < 0 && err != -EINTR)
			return error_set(e, err, "cannot read what the kernel tells: %s", strerror(-err));
		if (now - taken < TAKE_NS)
			continue;
		requests_take(p->requests, take, p);
		if (p->o->json) {
			if (fflush(stdout))
				p->error = -errno;
			say_unread(p);
		}
		taken = now;
	}
	requests_stop(p->requests);
	requests_take(p->requests, take, p);
	return 0;
}

// What was lost, and why there may be nothing.
static void summarize(struct printing *p)
{
	unsigned n;
	const struct requests_count *c = requests_counts(p->requests, &n);

	if (!p->o->json && !requests_table_requests(p->table))
		fprintf(stderr, "no request was seen: %s\n", requests_targets(p->requests) ?
			"none came, or they came over HTTP/2 or TLS" : "no process matches (see --pid, --comm, --cgroup, --cmdline)");
	for (unsigned i = 0; i < n; i++)
		if (c[i].loss && c[i].value && (p->o->json || !is_unread(c[i].name)))
			fprintf(stderr, "%llu %s: %s\n", (unsigned long long)c[i].value, c[i].name, c[i].help);
	for (unsigned i = 0; p->jvm_wake && i < JVM_WAKE_COUNTS; i++)
		if (jvm_wake_count(p->jvm_wake, i))
			fprintf(stderr, "%llu %s: %s\n", (unsigned long long)jvm_wake_count(p->jvm_wake, i), jvm_wake_count_name(i),
				jvm_wake_count_help(i));
}

static int print(struct printing *p, struct error *e)
{
	if (!p->o->json) {
		requests_table_print(p->table, "handler", stdout);
		print_unread(p);
	}
	if (!p->error && (fflush(stdout) || ferror(stdout)))
		p->error = -errno;
	if (p->error) {
		__fpurge(stdout); // or the end of the program tries again
		return error_set(e, -EIO, "cannot write to standard output: %s", strerror(-p->error));
	}
	summarize(p);
	return 0;
}

static void say(void *context, const char *text)
{
	fprintf(stderr, "%s\n", text);
}

// A service's processes come and go; a process of that number will not come.
static int check_pids(const struct request_rules *targets, struct error *e)
{
	char path[64];

	for (unsigned i = 0; i < targets->n_pid; i++) {
		snprintf(path, sizeof(path), "/proc/%.20s", targets->pid[i]);
		if (access(path, F_OK))
			return error_set(e, -ESRCH, "--pid: there is no process %.20s; --comm and --cmdline find those that come later",
					 targets->pid[i]);
	}
	return 0;
}

static int prepare(struct printing *p, struct error *e)
{
	struct requests_options ro = { .targets = p->o->targets, .params = p->o->params, .trace_header = p->o->trace_header,
				       .full = p->o->full, .plugins = p->o->plugins, .java_names = p->o->java_names, .say = say };
	int err;

	p->jvm_wake = p->o->java_names ? jvm_wake_new() : NULL;
	ro.jvm_wake = p->jvm_wake;

	if (p->o->node)
		snprintf(p->node, sizeof(p->node), "%s", p->o->node);
	else if (gethostname(p->node, sizeof(p->node) - 1))
		snprintf(p->node, sizeof(p->node), "localhost");
	p->table = requests_table_new(p->o->slowest);
	if (!p->table)
		return error_set(e, -ENOMEM, "no memory");
	err = requests_new(&ro, &p->requests, e);
	if (err)
		return privileges_explain(err, e);
	return check_pids(&p->o->targets, e);
}

static int stored(const struct requests_command *o)
{
	struct requests_stored s = o->stored;
	struct error e = { "" };
	int err;

	s.source.node = o->node;
	err = requests_stored_print(&s, o->slowest, o->json, &e);
	return err ? command_error("requests", command_status(err), &e) : STATUS_DONE;
}

static int run(const void *options)
{
	struct printing p = { .o = options };
	struct error e = { "" };
	int err;

	if (requests_stored_asked(&p.o->stored))
		return stored(p.o);
	signals_install(false);
	err = prepare(&p, &e);
	if (!err)
		err = follow(&p, &e);
	if (!err)
		err = print(&p, &e);
	requests_free(p.requests);
	jvm_wake_free(p.jvm_wake);
	requests_table_free(p.table);
	return err ? command_error("requests", command_status(err), &e) : STATUS_DONE;
}

static int add(const char **items, unsigned *n, unsigned max, char *value, struct error *e)
{
	char *save = NULL;

	for (char *item = strtok_r(value, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		if (*n == max)
			return error_set(e, -EINVAL, "'%.60s' is one too many; allowed: at most %u", item, max);
		items[(*n)++] = item;
	}
	return 0;
}

static int add_pid(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct request_rules *r = target;

	return add(r->pid, &r->n_pid, REQUEST_RULES_MAX, value, e);
}

static int add_comm(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct request_rules *r = target;

	return add(r->comm, &r->n_comm, REQUEST_RULES_MAX, value, e);
}

static int add_cgroup(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct request_rules *r = target;

	return add(r->cgroup, &r->n_cgroup, REQUEST_RULES_MAX, value, e);
}

// A command line may hold commas.
static int add_cmdline(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct request_rules *r = target;

	if (!*value || r->n_cmdline == REQUEST_RULES_MAX)
		return error_set(e, -EINVAL, "allowed: a pattern, at most %d of them", REQUEST_RULES_MAX);
	r->cmdline[r->n_cmdline++] = value;
	return 0;
}

static int add_keep(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct target_rules *r = target;

	if (!strcmp(value, "*")) {
		r->keep_all = true;
		return 0;
	}
	return add(r->keep, &r->n_keep, TARGET_KEEP_MAX, value, e);
}

static int add_collector(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	const struct source_names *there = target;

	return there->n ? error_set(e, -EINVAL, "'%.60s' is one too many; allowed: one collector", value) :
			  source_add_collector(spec, target, value, e);
}

static int check(void *options, struct error *e)
{
	const struct requests_command *o = options;
	const struct request_rules *r = &o->targets;
	bool here = r->n_pid || r->n_comm || r->n_cgroup || r->n_cmdline, there = requests_stored_asked(&o->stored);
	int err = requests_stored_check(&o->stored, e);

	if (err)
		return err;
	if (here && there)
		return error_set(e, -EINVAL, "--pid, --comm, --cgroup and --cmdline follow requests of this node now; with --store or --collector "
				 "use --where pid_i=N");
	return here || there ? 0 : error_set(e, -EINVAL, "say whose requests: --pid, --comm, --cgroup or --cmdline of this node, or --store "
					     "or --collector for what was stored");
}

#define AT(field) .offset = offsetof(struct requests_command, field)
#define STORED(field) AT(stored.field)

static const struct option_spec table[] = {
	{ .name = "pid", .letter = 'p', .argument = "PID", .set = add_pid, AT(targets), .repeatable = true, .completes = COMPLETES_PID,
	  .help = "Requests that these processes serve, without their children. A list separated by commas, repeatable." },
	{ .name = "comm", .argument = "NAME", .set = add_comm, AT(targets), .repeatable = true,
	  .help = "Requests of processes of this name, as /proc/PID/comm has it. May have wildcards; a list, repeatable." },
	{ .name = "cgroup", .argument = "CGROUP", .set = add_cgroup, AT(targets), .repeatable = true, .completes = COMPLETES_FILE,
	  .help = "Requests of the processes of this cgroup and those below it. A list, repeatable." },
	{ .name = "cmdline", .argument = "PATTERN", .set = add_cmdline, AT(targets), .repeatable = true,
	  .help = "Requests of processes whose command line holds this text. With wildcards it is matched as a whole; repeatable." },
	{ .name = "duration", .letter = 'd', .argument = "SECONDS", .set = option_set_duration, AT(duration_ns), .min = 1000000,
	  .max = 365ull * 86400 * 1000000000,
	  .help = "Follow for so long. Also with a unit: 500ms, 90s, 5m. Without it, until Ctrl-C." },
	{ .name = "slowest", .letter = 'n', .argument = "N", .set = option_set_number, .max = 100000, AT(slowest),
	  .help = "Show so many of the slowest requests. 20 by default." },
	{ .name = "json", .set = option_set_flag, AT(json),
	  .help = "Write the records instead of a table: one JSON object a line, with the fields that are indexed." },
	{ .name = "threads", .set = option_set_flag, AT(threads),
	  .help = "With --json, also the sums of threads outside of requests, every ten seconds." },
	{ .name = "java-names", .set = option_set_flag, AT(java_names),
	  .help = "Ask HotSpot JVMs for the names of their threads, once a minute. One without an attach socket is made to open it, as jcmd does, by a SIGQUIT, where that is safe." },
	{ .name = "full", .argument = "N", .set = option_set_number, .min = 2, .max = 100000, AT(full),
	  .help = "Tell so many requests a second one by one: the slowest and a sample; the others as sums of their handler. 500 by default." },
	{ .name = "keep-params", .argument = "NAMES", .set = add_keep, AT(params), .repeatable = true,
	  .help = "Keep the values of these parameters of queries. Beside those that carry no data (rows, wt and the like) all are "
		  "shown as '?'. '*' keeps all; a list, repeatable." },
	{ .name = "trace-header", .argument = "NAME", .set = option_set_text, AT(trace_header),
	  .help = "The header with a request's own id. X-Trace-Id by default; traceparent is always looked at." },
	{ .name = "plugins", .argument = "FOLDER", .set = option_set_text, AT(plugins), .completes = COMPLETES_FILE,
	  .help = "Load the sources of further metrics in this folder, which must be root's alone. docs/plugins.md says how to write one." },
	{ .name = "node", .argument = "NAME", .set = option_set_text, AT(node), .help = "Name of this node in the records, the host name by default; with --store and --collector, only this node." },
	{ .name = "store", .argument = "DIR", .set = source_add_store, STORED(source.stores), .repeatable = true,
	  .completes = COMPLETES_FILE,
	  .help = "Show requests of the store in this directory instead, also beside a running collector. Repeatable: what reached two "
		  "collectors counts once." },
	{ .name = "collector", .argument = "URL", .set = add_collector, STORED(source.collectors),
	  .help = "Ask this collector instead: http://HOST:6063, or http://user:TOKEN@HOST:6063 where it needs a token." },
	{ .name = "from", .argument = "TIME", .set = option_set_text, STORED(from),
	  .help = "Stored requests that began at TIME or later: 2026-11-30T08:15:00Z, -15m (the default)." },
	{ .name = "to", .argument = "TIME", .set = option_set_text, STORED(to), .help = "And before TIME. Now by default." },
	{ .name = "where", .argument = "CONDITION", .set = requests_add_where, AT(stored), .repeatable = true,
	  .help = "Only stored requests with 'FIELD=VALUE', !=, <, <=, > or >=: 'status_i>=500', 'path_s=/solr/shop/*'. Repeatable, all must hold." },
	{ .name = "by", .argument = "FIELD", .set = option_set_text, STORED(by),
	  .help = "Add stored requests up by the values of FIELD, handler_s by default: core_s, hostname_s, status_i." },
	{ .name = "token-file", .argument = "FILE", .set = option_set_text, STORED(source.token_file), .completes = COMPLETES_FILE,
	  .help = "Send the token in the first line of FILE to the collector." },
	{ .name = "tls-ca", .argument = "FILE", .set = option_set_text, STORED(source.ca), .completes = COMPLETES_FILE,
	  .help = "Trust the certificates in FILE, PEM, instead of the system's." },
	{ .name = "tls-cert", .argument = "FILE", .set = option_set_text, STORED(source.cert), .completes = COMPLETES_FILE,
	  .help = "Our certificate, PEM, for a collector that asks for one." },
	{ .name = "tls-key", .argument = "FILE", .set = option_set_text, STORED(source.key), .completes = COMPLETES_FILE,
	  .help = "Its secret key, PEM." },
	{ 0 },
};

const struct command command_requests = {
	.name = "requests",
	.summary = "show a server's requests and where their time went",
	.usage = "",
	.about = "Follows the HTTP/1.1 requests that the chosen processes serve, without touching them, and shows where the time of the "
		 "serving thread went: disk, CPU, the run queue, locks, the client. Solr's cores and handlers are recognised.\n\n"
		 "With --store or --collector it shows the requests that agents have sent to a collector.",
	.options = table,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.check = check,
	.run = run,
};
