// SPDX-License-Identifier: Apache-2.0
// blkprof timeline: what the threads of a process do and wait for, as a Perfetto trace.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/hostinfo.h"
#include "agent/tracer.h"
#include "cli/command.h"
#include "cli/outfile.h"
#include "cli/privileges.h"
#include "cli/signals.h"
#include "cli/timeline_options.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "timeline/timeline.h"

#define POLL_MS 50
#define RAW_BYTES (256 << 10)
#define READ_BYTES (1 << 20)

struct run {
	const struct timeline_options_cli *o;
	struct filter filter;
	struct timeline *timeline;
	char path[4200]; // of the trace, "" = none
	struct outfile trace, raw;
	bool has_trace, has_raw;
	struct buf raw_data;
	struct buf unread; // lines of the report
	struct error error; // of an event
	int trace_error;    // of writing the trace
};

static void default_path(char *out, size_t cap)
{
	char host[65] = "", name[65], stamp[32];
	time_t now = time(NULL);
	struct tm utc;

	gethostname(host, sizeof(host) - 1);
	hostinfo_node_name(host, name, sizeof(name));
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
	snprintf(out, cap, "blkprof-%s-%s-%d.pftrace", name, stamp, (int)getpid());
}

static int choose_path(struct run *r, struct error *e)
{
	if (r->o->output && strlen(r->o->output) >= sizeof(r->path))
		return error_set(e, -EINVAL, "option --output: the path is too long");
	if (r->o->output)
		snprintf(r->path, sizeof(r->path), "%s", r->o->output);
	else if (!r->o->from_file)
		default_path(r->path, sizeof(r->path));
	if (!strcmp(r->path, "-") && isatty(STDOUT_FILENO))
		return error_set(e, -EINVAL, "option --output: '-' is a terminal here, and a trace is no text; allowed: a file, or "
					     "standard output into a pipe or a file");
	if (r->o->raw && !strcmp(r->o->raw, "-") && isatty(STDOUT_FILENO))
		return error_set(e, -EINVAL, "option --raw: '-' is a terminal here, and the stream is no text; allowed: a file, or "
					     "standard output into a pipe or a file");
	return 0;
}

// Whose threads: what there is none of is wrong usage.
static int choose(struct run *r, struct error *e)
{
	struct devices *devices = devices_new(NULL, e);
	int err = devices ? filter_resolve(&r->o->filter, devices, &r->filter, e) : -ENOMEM;

	devices_free(devices);
	return err;
}

static int write_trace(void *context, const void *data, size_t len)
{
	struct run *r = context;

	return r->trace_error = outfile_write(&r->trace, data, len);
}

static int raw_failed(const struct run *r, int err, struct error *e)
{
	return error_set(e, err, "cannot write %s: %s; name another file with --raw", r->o->raw, strerror(-err));
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !strcmp(a, b) || (!stat(a, &x) && !stat(b, &y) && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

static int open_files(struct run *r, struct error *e)
{
	struct timeline_options o = { .max_size = r->o->max_size };
	int err = choose_path(r, e);

	if (!err && r->o->raw && same_file(r->path, r->o->raw))
		err = error_set(e, -EINVAL, "--output and --raw are one file: name two");
	if (!err && r->o->from_file && *r->path && same_file(r->path, r->o->from_file))
		err = error_set(e, -EINVAL, "--output and --from-file are one file: name two");
	if (!err)
		err = choose(r, e);
	if (!err && *r->path) {
		err = outfile_open(&r->trace, r->path, e);
		r->has_trace = !err;
		o.sink = write_trace;
		o.context = r;
	}
	if (!err && r->o->raw) {
		err = outfile_open(&r->raw, r->o->raw, e);
		r->has_raw = !err;
		if (err)
			raw_failed(r, err, e);
		event_file_begin(&r->raw_data);
	}
	if (err)
		return err;
	r->timeline = timeline_new(&o);
	return r->timeline ? 0 : error_set(e, -ENOMEM, "out of memory");
}

static int close_files(struct run *r, bool keep, struct error *e)
{
	struct error other = { 0 };
	int err = r->has_trace ? outfile_close(&r->trace, keep, e) : 0;
	int raw_err = r->has_raw ? outfile_close(&r->raw, keep && !err, &other) : 0;

	if (raw_err && !err)
		raw_failed(r, raw_err, e);
	r->has_trace = r->has_raw = false;
	return err ? err : raw_err;
}

static int flush_raw(struct run *r, size_t least)
{
	int err;

	if (r->raw_data.error)
		return error_set(&r->error, r->raw_data.error, "no memory for what --raw writes; free some");
	if (r->raw_data.len < least || !r->raw_data.len)
		return 0;
	err = outfile_write(&r->raw, r->raw_data.data, r->raw_data.len);
	r->raw_data.len = 0;
	return err ? raw_failed(r, err, &r->error) : 0;
}

static int take(void *context, const struct event *e)
{
	struct run *r = context;
	int err;

	if (r->has_raw) {
		event_encode(&r->raw_data, e);
		err = flush_raw(r, RAW_BYTES);
		if (err)
			return err;
	}
	return timeline_add(r->timeline, e, &r->error);
}

// ---- recording

static int poll_until_end(struct run *r, struct tracer *tracer, struct error *e)
{
	uint64_t now = clock_monotonic(), end = r->o->duration_ns ? now + r->o->duration_ns : UINT64_MAX;
	int err;

	fprintf(stderr, "recording%s\n", r->o->duration_ns ? "" : "; Ctrl-C ends it");
	for (; now < end && !signals_stop(); now = clock_monotonic()) {
		uint64_t ms = (end - now + 999999) / 1000000;

		err = tracer_poll(tracer, ms < POLL_MS ? (int)ms : POLL_MS);
		if (err < 0 && err != -EINTR)
			return *r->error.text ? error_set(e, err, "%s", r->error.text)
					      : error_set(e, err, "cannot read what the kernel recorded: %s", strerror(-err));
	}
	return 0;
}

static int record(struct run *r, struct error *e)
{
	struct tracer_options to = { .filter = r->filter, .requests = !r->o->no_requests, .stacks = r->o->stacks,
				     .event = take, .context = r };
	struct tracer *tracer = NULL;
	int err = tracer_new(&to, &tracer, e);

	if (err)
		privileges_explain(err, e);
	else if (*tracer_requests_reason(tracer))
		fprintf(stderr, "without requests: %s\n", tracer_requests_reason(tracer));
	if (!err)
		err = tracer_start(tracer, e);
	if (!err)
		err = poll_until_end(r, tracer, e);
	if (!err)
		err = tracer_stop(tracer, e);
	if (!err)
		tracer_requests_unread(tracer, &r->unread);
	if (!err && *tracer_backend_reason(tracer))
		fprintf(stderr, "backend: %s\n", tracer_backend_reason(tracer));
	tracer_free(tracer);
	return err;
}

// ---- replay

struct replay {
	int fd;
	size_t len, at; // bytes in data
	uint64_t offset; // of data in the file
	bool ended;
	uint8_t data[READ_BYTES];
	char text[EVENT_TEXT_MAX + 1];
};

static int fill(struct replay *p, const char *path, struct error *e)
{
	ssize_t n;

	memmove(p->data, p->data + p->at, p->len - p->at);
	p->offset += p->at;
	p->len -= p->at;
	p->at = 0;
	while (!p->ended && p->len < sizeof(p->data)) {
		if (signals_stop())
			return error_set(e, -EINTR, "interrupted");
		n = read(p->fd, p->data + p->len, sizeof(p->data) - p->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(e, -errno, "cannot read %s: %s", path, strerror(errno));
		p->len += (size_t)n;
		p->ended = !n;
	}
	return 0;
}

static int replay_events(struct run *r, struct replay *p, struct error *e)
{
	const char *path = r->o->from_file;
	int err = fill(p, path, e);
	struct event event;
	long used;

	if (!err)
		err = event_file_check(p->data, p->len, &p->at, e);
	while (!err) {
		if (p->len - p->at < EVENT_BYTES_MAX && !p->ended)
			err = fill(p, path, e);
		if (err || p->at == p->len)
			break;
		used = event_decode(p->data + p->at, p->len - p->at, &event, p->text, e);
		if (used <= 0)
			return error_prefix(e, used ? (int)used : error_set(e, -EINVAL, "it is cut off"), "%s, byte %llu", path,
					    (unsigned long long)(p->offset + p->at));
		p->at += (size_t)used;
		err = timeline_add(r->timeline, &event, e);
	}
	return err ? error_prefix(e, err, "%s", path) : 0;
}

static int replay(struct run *r, struct error *e)
{
	static struct replay p;
	int err;

	p = (struct replay){ .fd = open(r->o->from_file, O_RDONLY | O_CLOEXEC) };
	if (p.fd < 0)
		return error_set(e, -errno, "cannot open %s: %s", r->o->from_file, strerror(errno));
	err = replay_events(r, &p, e);
	close(p.fd);
	return err;
}

// ---- both

static void report(struct run *r)
{
	struct timeline_stats stats;
	struct buf text = { 0 };
	char size[32];

	timeline_summary(r->timeline, r->o->rows, &text);
	buf_append(&text, r->unread.data, r->unread.len);
	timeline_get_stats(r->timeline, &stats);
	if (text.error)
		fprintf(stderr, "blkprof timeline: no memory for the summary\n");
	else
		fwrite(text.data, 1, text.len, stderr);
	if (*r->path && strcmp(r->path, "-"))
		fprintf(stderr, "\nwrote %s (%s): open it in https://ui.perfetto.dev\n", r->path,
			text_bytes(size, sizeof(size), (double)stats.size));
	buf_free(&text);
}

static int run(const void *options)
{
	struct run r = { .o = options };
	struct error e = { 0 }, ignored;
	int err;

	signals_install(false);
	err = open_files(&r, &e);
	if (!err)
		err = r.o->from_file ? replay(&r, &e) : record(&r, &e);
	if (!err) {
		err = timeline_end(r.timeline, &e);
		if (err && r.o->from_file)
			error_prefix(&e, err, "%s", r.o->from_file);
	}
	if (!err && r.has_raw)
		err = flush_raw(&r, 0);
	if (err && *r.error.text) // what came first
		e = r.error;
	if (r.trace_error)
		err = file_write_explain(strcmp(r.path, "-") ? r.path : "standard output", r.trace_error, &e);
	if (err)
		close_files(&r, false, &ignored);
	else
		err = close_files(&r, true, &e);
	if (!err)
		report(&r);
	timeline_free(r.timeline);
	buf_free(&r.raw_data);
	buf_free(&r.unread);
	return err ? command_error("timeline", r.timeline ? STATUS_FAILED : command_status(err), &e) : STATUS_DONE;
}

const struct command command_timeline = {
	.name = "timeline",
	.summary = "show what a process's threads do and wait for, as a Perfetto trace",
	.usage = "",
	.about = "Records when each thread of a process runs, waits for a CPU, sleeps and on what, and each block request from its "
		 "submission to its completion, until the time is up or Ctrl-C, and writes a trace that https://ui.perfetto.dev "
		 "opens. The summary, a line for each thread, goes to standard error.",
	.options = timeline_option_table,
	.defaults = &timeline_defaults,
	.size = sizeof(timeline_defaults),
	.check = timeline_options_check,
	.run = run,
};
