// SPDX-License-Identifier: Apache-2.0
// verifier_counts [more]: how many instructions this kernel's verifier works through for each program of each BPF object, as JSON;
// null for a program that it refuses. Every filter is on, so that no branch is pruned that a recording can take.
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel_facts.h"
#include "bpf/record_rec.h"
#include "bpf/timeline_rec.h"
#include "fentry.skel.h"
#include "kprobe.skel.h"
#include "tracepoint.skel.h"
#include "timeline.skel.h"
#include "timeline_raw.skel.h"
#include "tracepoint_raw.skel.h"

#define LOG_STATS 4 // the verifier's log level that gives only the totals
#define LOG_SIZE (1u << 16)

static const struct object {
	const char *name;
	const void *(*elf)(size_t *size);
	bool more; // only when asked for
} objects[] = {
	{ .name = "fentry", .elf = fentry__elf_bytes },
	{ .name = "kprobe", .elf = kprobe__elf_bytes },
	{ .name = "tracepoint", .elf = tracepoint__elf_bytes },
	{ .name = "tracepoint_raw", .elf = tracepoint_raw__elf_bytes },
	{ .name = "timeline", .elf = timeline__elf_bytes, .more = true },
	{ .name = "timeline_raw", .elf = timeline_raw__elf_bytes, .more = true },
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return getenv("BLKPROF_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

static void configure(struct bpf_object *o, const struct kernel_facts *facts, bool hold_cpu)
{
	struct bpf_map *map = bpf_object__find_map_by_name(o, ".rodata.config");
	size_t size;
	struct record_config *c = map ? (struct record_config *)bpf_map__initial_value(map, &size) : NULL;

	if (!c || size < sizeof(*c))
		return;
	memset(c, 0, sizeof(*c));
	c->self = 1;
	c->flush_seq = facts->flush_seq;
	c->ops = 1;
	c->cgroup_subsys = 1;
	c->bio_list_valid = facts->bio_list_valid;
	c->hold_cpu = hold_cpu;
	c->async_request = facts->async_request;
	c->excludes = 0xff;
	c->kernel_stacks = c->by_pid = c->by_comm = c->by_cgroup = c->by_device = c->follow = c->unwind = 1;
	c->max_frames = RECORD_FRAMES;
	c->n_cgroups = RECORD_CGROUPS;
}

static void configure_timeline(struct bpf_object *o)
{
	struct bpf_map *map = bpf_object__find_map_by_name(o, ".rodata.timeline");
	size_t size;
	struct timeline_config *c = map ? (struct timeline_config *)bpf_map__initial_value(map, &size) : NULL;

	if (c && size >= sizeof(*c))
		c->stacks = 1;
}

// The number, or a negative errno when the program is refused.
static long count(const struct object *object, const char *program, const struct kernel_facts *facts, bool hold_cpu, char *log)
{
	struct bpf_program *p;
	struct bpf_object *o;
	const char *total;
	const void *elf;
	size_t size;
	long n;

	elf = object->elf(&size);
	o = bpf_object__open_mem(elf, size, NULL);
	if (!o)
		return -errno;
	configure(o, facts, hold_cpu);
	configure_timeline(o);
	log[0] = 0;
	bpf_object__for_each_program(p, o) {
		bool wanted = !strcmp(bpf_program__name(p), program);

		bpf_program__set_autoload(p, wanted);
		if (!wanted)
			continue;
		bpf_program__set_log_level(p, LOG_STATS);
		bpf_program__set_log_buf(p, log, LOG_SIZE);
	}
	n = bpf_object__load(o);
	total = strstr(log, "processed ");
	if (!n)
		n = total ? strtol(total + strlen("processed "), NULL, 10) : -EPROTO;
	bpf_object__close(o);
	return n;
}

static int count_object(const struct object *object, const struct kernel_facts *facts, char *log)
{
	size_t size;
	const void *elf = object->elf(&size);
	struct bpf_object *o = bpf_object__open_mem(elf, size, NULL);
	const char *separator = "";
	struct bpf_program *p;

	if (!o)
		return -errno;
	bpf_object__for_each_program(p, o) {
		const char *name = bpf_program__name(p);
		long n = count(object, name, facts, facts->hold_cpu, log);

		if (n < 0 && facts->hold_cpu)
			n = count(object, name, facts, false, log);
		printf(n < 0 ? "%s\"%s\": null" : "%s\"%s\": %ld", separator, name, n);
		separator = ", ";
	}
	bpf_object__close(o);
	return 0;
}

int main(int argc, char **argv)
{
	char *log = malloc(LOG_SIZE);
	struct kernel_facts facts;
	struct error e;

	libbpf_set_print(quiet);
	if (!log || kernel_facts_read(&facts, &e)) {
		fprintf(stderr, "verifier_counts: %s\n", log ? e.text : "no memory");
		return 1;
	}
	printf("{");
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++) {
		if (objects[i].more && argc < 2)
			continue;
		printf("%s\"%s\": {", i ? ", " : "", objects[i].name);
		if (count_object(&objects[i], &facts, log))
			return 1;
		printf("}");
	}
	puts("}");
	free(log);
	return 0;
}
