// SPDX-License-Identifier: Apache-2.0
// Records N windows of four slices each, cut every S seconds and added up as the agent does; writes a profile of each
// service of window I to PREFIX.I.K.pb.gz and of the node to PREFIX.I.pb.gz. Prints "ready" when it counts, then for each
// window its times, its exact operations and how long its cuts and profiles took. The slice behind the last is left out.
// Arguments: PREFIX S N RATE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/recorder.h"
#include "common/clock.h"
#include "common/file.h"

#define SLICES 4

struct run {
	const char *prefix;
	unsigned window, service;
	uint64_t cut_cpu, made_cpu;
};

static uint64_t cpu(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int write_service(const char *service, const struct buf *gz, void *context)
{
	struct run *run = context;
	struct error e = { "" };
	char path[4096];

	(void)service;
	snprintf(path, sizeof(path), "%s.%u.%u.pb.gz", run->prefix, run->window, run->service++);
	return file_write_atomic(path, gz->data, gz->len, &e);
}

static int write_node(struct run *run, struct window *w, struct error *e)
{
	struct buf gz = { 0 };
	char path[4096];
	int err = window_profile(w, &gz, e);

	snprintf(path, sizeof(path), "%s.%u.pb.gz", run->prefix, run->window);
	if (!err)
		err = file_write_atomic(path, gz.data, gz.len, e);
	buf_free(&gz);
	return err;
}

static int slice(struct recorder *r, struct run *run, uint64_t until, struct window **into, struct error *e)
{
	struct window *w;
	uint64_t before;
	int err;

	while (clock_monotonic() < until) {
		err = recorder_poll(r, 20);
		if (err < 0)
			return err;
	}
	before = cpu();
	err = recorder_cut(r, &w, e);
	run->cut_cpu += cpu() - before;
	if (err || !*into) {
		if (!err)
			*into = w;
		return err;
	}
	err = window_merge(*into, w);
	window_free(w);
	return err;
}

static int window(struct recorder *r, struct run *run, uint64_t *next, uint64_t length, struct error *e)
{
	const struct window_info *info;
	struct window *w = NULL;
	uint64_t ops = 0, before;
	int err = 0;

	run->service = 0;
	run->cut_cpu = 0;
	for (unsigned i = 0; !err && i < SLICES; i++, *next += length)
		err = slice(r, run, *next, &w, e);
	before = cpu();
	if (!err)
		err = window_services(w, write_service, run, e);
	run->made_cpu = cpu() - before;
	if (!err)
		err = write_node(run, w, e);
	if (!err) {
		info = window_get_info(w);
		for (unsigned op = 0; op < OP_CLASSES; op++)
			ops += info->ops[op];
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %u %" PRIu64 " %" PRIu64 "\n", info->start_mono, info->end_mono, ops,
		       run->service, run->cut_cpu / SLICES, run->made_cpu);
	}
	window_free(w);
	return err;
}

int main(int argc, char **argv)
{
	struct recorder_options o = { .labels = LABELS_FEW_COMM, .java_attach = true };
	struct run run = { 0 };
	struct error e = { "" };
	struct recorder *r;
	uint64_t length, next;
	int err;

	if (argc != 5)
		return 2;
	run.prefix = argv[1];
	length = (uint64_t)(atof(argv[2]) * 1e9);
	o.rate = (uint32_t)atoi(argv[4]);
	err = recorder_new(&o, &r, &e);
	if (!err)
		err = recorder_start(r, &e);
	if (!err) {
		puts("ready");
		fflush(stdout);
		next = clock_monotonic() + length;
		for (; !err && run.window < (unsigned)atoi(argv[3]); run.window++)
			err = window(r, &run, &next, length, &e);
		recorder_free(r);
	}
	if (err)
		fprintf(stderr, "record_services: %s (%s)\n", e.text, strerror(-err));
	return err ? 1 : 0;
}
