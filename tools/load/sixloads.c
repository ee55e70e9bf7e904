// SPDX-License-Identifier: Apache-2.0
// Runs one of the six loads for real, each stack a function of its own, and prints as JSON what was done.
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/text.h"
#include "player.h"
#include "start.h"

enum {
	DEVICES = 2,
	TRIAL_MS = 600,
};

struct options {
	const char *load, *paths[DEVICES];
	uint64_t create, limit, duration, seed, cpu;
	double scale; // 0: find out
	bool wait, linger, pinned;
};

struct stage {
	struct target *targets[DEVICES]; // owned; NULL where no stack of the load goes
	struct performance done[DEVICES];
	double scale;
};

struct act {
	struct player_options options;
	struct performance performance;
	struct error error;
	pthread_t thread;
	int result;
};

static void usage(FILE *out)
{
	fputs("usage: sixloads [options] LOAD\n  LOAD  one of", out);
	for (unsigned i = 0; stream_name(i); i++)
		fprintf(out, " %s", stream_name(i));
	fputs("\n  -1, --first PATH     file or device of the load\n"
	      "  -2, --second PATH    the fast device of two-devices\n"
	      "  -c, --create SIZE    make a file that is missing or smaller\n"
	      "  -m, --limit SIZE     use only so much of each\n"
	      "  -d, --duration TIME  (20s)\n"
	      "  -s, --scale N        of the model's rates; without it the largest up to 1 that the devices keep up with\n"
	      "      --seed N         (1)\n"
	      "      --cpu N          submit from this CPU only\n"
	      "  -w, --wait           print \"ready\", start on a line on standard input or on SIGUSR1\n"
	      "  -l, --linger         when done, stay until standard input ends\n", out);
}

static const struct option long_options[] = {
	{"first", required_argument, NULL, '1'},    {"second", required_argument, NULL, '2'},
	{"create", required_argument, NULL, 'c'},   {"limit", required_argument, NULL, 'm'},
	{"duration", required_argument, NULL, 'd'}, {"scale", required_argument, NULL, 's'},
	{"seed", required_argument, NULL, 'S'},	    {"cpu", required_argument, NULL, 'C'},
	{"wait", no_argument, NULL, 'w'},	    {"linger", no_argument, NULL, 'l'},
	{"help", no_argument, NULL, 'h'},	    {0},
};

static int parse_scale(const char *text, double *ret, struct error *e)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || *end || !(n > 0 && n <= 100))
		return error_set(e, -EINVAL, "--scale: '%.60s' is not a number above 0 and up to 100", text);
	*ret = n;
	return 0;
}

static int parse_option(int c, struct options *o, struct error *e)
{
	switch (c) {
	case '1': o->paths[0] = optarg; return 0;
	case '2': o->paths[1] = optarg; return 0;
	case 'c': return text_size(optarg, "--create", &o->create, e);
	case 'm': return text_size(optarg, "--limit", &o->limit, e);
	case 'd': return text_duration(optarg, "--duration", &o->duration, e);
	case 's': return parse_scale(optarg, &o->scale, e);
	case 'S': return text_number(optarg, 0, UINT32_MAX, "--seed", &o->seed, e);
	case 'C': o->pinned = true; return text_number(optarg, 0, 1023, "--cpu", &o->cpu, e);
	case 'w': o->wait = true; return 0;
	case 'l': o->linger = true; return 0;
	case 'h': usage(stdout); exit(0);
	default: return error_set(e, -EINVAL, "wrong usage, see --help");
	}
}

static int parse(int argc, char **argv, struct options *o, struct error *e)
{
	int c, r = 0;

	while (!r && (c = getopt_long(argc, argv, "1:2:c:m:d:s:wlh", long_options, NULL)) != -1)
		r = parse_option(c, o, e);
	if (!r && argc - optind != 1)
		r = error_set(e, -EINVAL, "one load has to be named, see --help");
	if (!r)
		o->load = argv[optind];
	return r;
}

static bool uses_device(const struct stack *stacks, unsigned count, unsigned device)
{
	for (unsigned i = 0; i < count; i++) {
		if (stacks[i].device == device)
			return true;
	}
	return false;
}

static int open_targets(const struct options *o, struct stage *g, struct error *e)
{
	struct stream *s = stream_new(o->load, 1, 1);
	const struct stack *stacks;
	unsigned count;
	int r = 0;

	if (!s)
		return error_set(e, -EINVAL, "no load '%.60s', see --help", o->load);
	stacks = stream_stacks(s, &count);
	for (unsigned d = 0; d < DEVICES && !r; d++) {
		if (!uses_device(stacks, count, d))
			continue;
		r = o->paths[d] ? target_open(o->paths[d], o->create, o->limit, &g->targets[d], e)
				: error_set(e, -EINVAL, "%s needs %s", o->load, d ? "--second" : "--first");
		if (!r && target_size(g->targets[d]) < 2 << 20)
			r = error_set(e, -ERANGE, "%s is smaller than 2 MiB", o->paths[d]);
	}
	stream_free(s);
	return r;
}

static void *act_main(void *arg)
{
	struct act *a = arg;

	a->result = player_run(&a->options, &a->performance, &a->error);
	return NULL;
}

static struct act prepare_act(const struct options *o, const struct stage *g, unsigned device, uint64_t duration)
{
	return (struct act){.options = {
				    .load = o->load,
				    .duration_ns = duration,
				    .scale = g->scale,
				    .seed = o->seed,
				    .device = device,
				    .target = g->targets[device],
				    .cpu = o->pinned ? (int)o->cpu : -1,
				    .start_ns = clock_monotonic() + 10000000,
			    }};
}

static int perform(const struct options *o, struct stage *g, uint64_t duration, struct error *e)
{
	struct act acts[DEVICES];
	int r = 0;

	for (unsigned d = 0; d < DEVICES; d++) {
		acts[d] = prepare_act(o, g, d, duration);
		if (g->targets[d] && pthread_create(&acts[d].thread, NULL, act_main, &acts[d]))
			r = acts[d].result = error_set(&acts[d].error, -EAGAIN, "cannot start a thread");
	}
	for (unsigned d = 0; d < DEVICES; d++) {
		if (!g->targets[d])
			continue;
		if (acts[d].thread)
			pthread_join(acts[d].thread, NULL);
		if (acts[d].result) {
			r = acts[d].result;
			*e = acts[d].error;
		}
		g->done[d] = acts[d].performance;
	}
	return r;
}

// How much longer than planned the slowest device took, 1 when it kept up.
static double stretch(const struct stage *g, uint64_t duration)
{
	double worst = 1;

	for (unsigned d = 0; d < DEVICES; d++) {
		uint64_t late = g->done[d].submitted_ns - g->done[d].planned_ns;

		if (g->targets[d] && late > duration / 50)
			worst = 1 + (double)late / (double)duration > worst ? 1 + (double)late / (double)duration : worst;
	}
	return worst;
}

static int find_scale(const struct options *o, struct stage *g, struct error *e)
{
	uint64_t duration = TRIAL_MS * 1000000ull;

	for (g->scale = 1; g->scale > 0.001;) {
		double by;
		int r = perform(o, g, duration, e);

		if (r)
			return r;
		by = stretch(g, duration);
		if (by <= 1)
			return 0;
		g->scale *= 0.9 / by;
	}
	return error_set(e, -ETIMEDOUT, "the device does not keep up with a thousandth of the load");
}

static void print_stack(const struct stage *g, const struct stack *k, const struct truth *t, struct buf *out)
{
	buf_printf(out, "{\"stack\": \"%s\", \"function\": \"%s\", \"device\": ", k->name, k->function);
	truth_string(out, target_disk(g->targets[k->device]));
	buf_printf(out, ", \"op\": \"%s\", \"size\": %zu, \"flushes\": %" PRIu64 ", ", k->writes ? "write" : "read", k->size,
		k->syncs && target_has_cache(g->targets[k->device]) ? t->calls : 0);
	truth_print(t, out);
	buf_printf(out, "}");
}

static int print_all(const struct options *o, const struct stage *g)
{
	struct stream *s = stream_new(o->load, 1, 1);
	const struct stack *stacks;
	struct buf out = {0};
	uint64_t events = 0, lag = 0;
	unsigned count;
	int r;

	if (!s)
		return -ENOMEM;
	stacks = stream_stacks(s, &count);
	for (unsigned d = 0; d < DEVICES; d++) {
		events += g->done[d].events;
		lag = g->done[d].lag_max_ns > lag ? g->done[d].lag_max_ns : lag;
	}
	buf_printf(&out, "{\"pid\": %d, \"load\": \"%s\", \"seconds\": %.3f, \"scale\": %.4f, ", getpid(), o->load,
		(double)o->duration / 1e9, g->scale);
	buf_printf(&out, "\"events\": %" PRIu64 ", \"per_second\": %.0f, \"max_lag_ns\": %" PRIu64 ", \"stacks\": [", events,
		(double)events * 1e9 / (double)o->duration, lag);
	for (unsigned i = 0; i < count; i++) {
		buf_printf(&out, i ? ",\n " : "\n ");
		print_stack(g, &stacks[i], &g->done[stacks[i].device].stacks[i], &out);
	}
	buf_printf(&out, "\n]}\n");
	stream_free(s);
	r = out.error;
	if (!r && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)))
		r = -EIO;
	buf_free(&out);
	return r;
}

static int run(const struct options *o, struct stage *g, struct error *e)
{
	int r = open_targets(o, g, e);

	g->scale = o->scale;
	if (!r && g->scale <= 0)
		r = find_scale(o, g, e);
	if (!r && o->wait)
		r = start_wait(e);
	if (!r)
		r = perform(o, g, o->duration, e);
	if (!r && print_all(o, g))
		r = error_set(e, -EIO, "cannot write the result");
	if (!r && o->linger)
		start_linger();
	return r;
}

int main(int argc, char **argv)
{
	struct options o = {.duration = 20000000000u, .seed = 1};
	struct stage g = {0};
	struct error e = {{0}};
	int r;

	start_prepare();
	r = parse(argc, argv, &o, &e);
	if (!r)
		r = run(&o, &g, &e);
	for (unsigned d = 0; d < DEVICES; d++)
		target_free(g.targets[d]);
	if (r)
		fprintf(stderr, "sixloads: %s\n", e.text);
	return r ? 1 : 0;
}
