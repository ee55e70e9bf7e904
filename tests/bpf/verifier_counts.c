// SPDX-License-Identifier: Apache-2.0
// verifier_counts: how many instructions this kernel's verifier works through for each program of each BPF object, as JSON;
// null for a program that it refuses. Every filter is on, so that no branch is pruned that a recording can take.
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel_facts.h"
#include "bpf/record_rec.h"
#include "bpf/request_rec.h"
#include "bpf/timeline_rec.h"
#include "fentry.skel.h"
#include "kprobe.skel.h"
#include "pauses.skel.h"
#include "request.skel.h"
#include "tracepoint.skel.h"
#include "timeline.skel.h"
#include "timeline_raw.skel.h"
#include "tracepoint_raw.skel.h"

#define LOG_STATS 4 // the verifier's log level that gives only the totals
#define LOG_SIZE (1u << 16)

#define PROGRAMS_MAX 32

struct counted {
	const char *name; // its object's
	long count;	  // 0 not yet, negative refused
	char *log;
};

// What libbpf said last about a program that did not load: there is no other way to learn which one of an object it was.
static char refused[64];

static int hear(enum libbpf_print_level level, const char *format, va_list args)
{
	const char *said = strstr(format, "prog '%s': failed to load") ? va_arg(args, const char *) : NULL;

	if (said)
		snprintf(refused, sizeof(refused), "%s", said);
	return 0;
}

static void *constants(struct bpf_object *o, const char *section, size_t needed)
{
	struct bpf_map *map = bpf_object__find_map_by_name(o, section);
	size_t size;
	void *value = map ? (void *)bpf_map__initial_value(map, &size) : NULL;

	return value && size >= needed ? memset(value, 0, size) : NULL;
}

static void configure_record(struct bpf_object *o, const struct kernel_facts *facts, bool hold_cpu)
{
	struct record_config *c = constants(o, ".rodata.config", sizeof(*c));
	struct timeline_config *t = constants(o, ".rodata.timeline", sizeof(*t));

	if (t)
		t->stacks = 1;
	if (!c)
		return;
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

static void configure_request(struct bpf_object *o, const struct kernel_facts *facts, bool hold_cpu)
{
	struct req_config *c = constants(o, ".rodata.config", sizeof(*c));

	if (!c)
		return;
	c->flush_seq = facts->flush_seq;
	c->bio_list_valid = facts->bio_list_valid;
	c->hold_cpu = hold_cpu;
	c->faults_seen = 1;
	c->rdonly_cast = facts->rdonly_cast;
	c->ring_wakes = 1;
	c->n_plugins = REQ_PLUGINS;
}

static void configure_nothing(struct bpf_object *o, const struct kernel_facts *facts, bool hold_cpu)
{
}

static const struct object {
	const char *name;
	const void *(*elf)(size_t *size);
	void (*configure)(struct bpf_object *o, const struct kernel_facts *facts, bool hold_cpu);
} objects[] = {
	{ .name = "fentry", .elf = fentry__elf_bytes, .configure = configure_record },
	{ .name = "kprobe", .elf = kprobe__elf_bytes, .configure = configure_record },
	{ .name = "tracepoint", .elf = tracepoint__elf_bytes, .configure = configure_record },
	{ .name = "tracepoint_raw", .elf = tracepoint_raw__elf_bytes, .configure = configure_record },
	{ .name = "request", .elf = request__elf_bytes, .configure = configure_request },
	{ .name = "pauses", .elf = pauses__elf_bytes, .configure = configure_nothing },
	{ .name = "timeline", .elf = timeline__elf_bytes, .configure = configure_record },
	{ .name = "timeline_raw", .elf = timeline_raw__elf_bytes, .configure = configure_record },
};

static struct counted *find(struct counted *c, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(c[i].name, name))
			return &c[i];
	return NULL;
}

static long processed(const char *log)
{
	const char *total = strstr(log, "processed ");

	return total ? strtol(total + strlen("processed "), NULL, 10) : -EPROTO;
}

// Loads those that have no count yet, together: to open and to load an object takes longer than the verifier does. Gives them
// their counts, or the one that is refused its error. An error is one of all.
static int load_rest(const struct object *object, const struct kernel_facts *facts, bool hold_cpu, struct counted *c, unsigned n)
{
	struct bpf_program *p;
	struct bpf_object *o;
	const void *elf;
	size_t size;
	int err;

	elf = object->elf(&size);
	o = bpf_object__open_mem(elf, size, NULL);
	if (!o)
		return -errno;
	object->configure(o, facts, hold_cpu);
	bpf_object__for_each_program(p, o) {
		struct counted *one = find(c, n, bpf_program__name(p));

		bpf_program__set_autoload(p, !one->count);
		bpf_program__set_log_level(p, LOG_STATS);
		bpf_program__set_log_buf(p, one->log, LOG_SIZE);
		one->log[0] = 0;
	}
	refused[0] = 0;
	err = bpf_object__load(o);
	for (unsigned i = 0; i < n && !err; i++)
		if (!c[i].count)
			c[i].count = processed(c[i].log);
	if (err && find(c, n, refused)) {
		if (getenv("VERIFIER_LOG"))
			fprintf(stderr, "%s is refused: %s\n", refused, find(c, n, refused)->log);
		find(c, n, refused)->count = err;
		err = 0;
	}
	bpf_object__close(o);
	return err;
}

static int count_all(const struct object *object, const struct kernel_facts *facts, bool hold_cpu, struct counted *c, unsigned n)
{
	int err = 0;

	for (unsigned i = 0; i < n && !err;) {
		if (c[i].count)
			i++;
		else
			err = load_rest(object, facts, hold_cpu, c, n);
	}
	return err;
}

static int list(struct bpf_object *o, struct counted *c)
{
	struct bpf_program *p;
	int n = 0;

	bpf_object__for_each_program(p, o) {
		if (n == PROGRAMS_MAX)
			return -E2BIG;
		c[n].name = bpf_program__name(p);
		c[n].count = 0;
		n++;
	}
	return n;
}

static int count_object(const struct object *object, const struct kernel_facts *facts, struct counted *c)
{
	size_t size;
	const void *elf = object->elf(&size);
	struct bpf_object *o = bpf_object__open_mem(elf, size, NULL);
	int n = o ? list(o, c) : -errno, err = n < 0 ? n : 0;

	if (!err)
		err = count_all(object, facts, facts->hold_cpu, c, (unsigned)n);
	for (int i = 0; i < n && facts->hold_cpu; i++)
		c[i].count = c[i].count < 0 ? 0 : c[i].count;
	if (!err)
		err = count_all(object, facts, false, c, (unsigned)n);
	for (int i = 0; i < n && !err; i++)
		printf(c[i].count < 0 ? "%s\"%s\": null" : "%s\"%s\": %ld", i ? ", " : "", c[i].name, c[i].count);
	bpf_object__close(o);
	return err;
}

int main(void)
{
	struct counted c[PROGRAMS_MAX] = { 0 };
	char *logs = malloc(PROGRAMS_MAX * LOG_SIZE);
	struct kernel_facts facts;
	struct error e;
	int err;

	libbpf_set_print(hear);
	if (!logs || kernel_facts_read(&facts, &e)) {
		fprintf(stderr, "verifier_counts: %s\n", logs ? e.text : "no memory");
		return 1;
	}
	for (unsigned i = 0; i < PROGRAMS_MAX; i++)
		c[i].log = logs + (size_t)i * LOG_SIZE;
	printf("{");
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++) {
		printf("%s\"%s\": {", i ? ", " : "", objects[i].name);
		err = count_object(&objects[i], &facts, c);
		if (err) {
			fprintf(stderr, "verifier_counts: %s: %s\n", objects[i].name, strerror(-err));
			return 1;
		}
		printf("}");
	}
	puts("}");
	free(logs);
	return 0;
}
