// SPDX-License-Identifier: Apache-2.0
// bench-probes SET [RATE]: attaches a set of BPF programs, prints "ready" and holds them until standard input ends. The set
// "count" prints what it has counted so far as one line of JSON for each line it is given; "stats" attaches nothing and keeps
// the kernel's accounting of program run time switched on. RATE is the published design's stacks a second and CPU (1000). Run
// times are read from this process's /proc/PID/fdinfo.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "count.skel.h"
#include "count_rec.h"
#include "empty.skel.h"
#include "published.skel.h"

#define PROGRAMS_MAX 8
#define SECOND "submit_second"

struct set {
	const char *name;
	const void *(*elf)(size_t *size);
	const char *programs[PROGRAMS_MAX];
	bool raw_queue; // the first program has a second form, tried first
};

static const struct set sets[] = {
	{ .name = "empty-typed", .elf = empty__elf_bytes, .programs = { "typed_submit", "typed_complete", "typed_rq_complete" } },
	{ .name = "empty-raw", .elf = empty__elf_bytes, .programs = { "raw_submit", "raw_complete" } },
	{ .name = "empty-kprobe", .elf = empty__elf_bytes, .programs = { "kprobe_submit", "kprobe_complete" } },
	{ .name = "empty-fentry", .elf = empty__elf_bytes, .programs = { "fentry_submit", "fentry_complete" } },
	{ .name = "published", .elf = published__elf_bytes, .programs = { "submit", "complete" }, .raw_queue = true },
	{ .name = "published-kprobe", .elf = published__elf_bytes, .programs = { "kprobe_submit", "kprobe_complete" } },
	{ .name = "published-fentry", .elf = published__elf_bytes, .programs = { "fentry_submit", "fentry_complete" } },
	{ .name = "empty-requests", .elf = empty__elf_bytes, .programs = { "request_enter", "request_exit", "request_switch", "request_fault",
		"request_thread_exit", "raw_submit", "raw_complete", "raw_rq_complete" } },
	{ .name = "empty-calls", .elf = empty__elf_bytes, .programs = { "request_enter", "request_exit" } },
	{ .name = "empty-call-exits", .elf = empty__elf_bytes, .programs = { "request_exit" } },
	{ .name = "empty-switches", .elf = empty__elf_bytes, .programs = { "request_switch" } },
	{ .name = "count", .elf = count__elf_bytes, .programs = { "count_bio" } },
};

struct held {
	struct bpf_object *object;
	struct bpf_link *links[PROGRAMS_MAX];
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "bench-probes: %s: %s\n", what, strerror(-err));
	return err;
}

// The published design with that many stacks a second and CPU.
static int set_rate(struct bpf_object *o, unsigned long rate)
{
	struct bpf_map *map = bpf_object__find_map_by_name(o, ".rodata");
	size_t size;
	__u64 *interval = map ? (__u64 *)bpf_map__initial_value(map, &size) : NULL;

	if (!interval || size < sizeof(*interval) || !rate)
		return -EINVAL;
	*interval = 1000000000 / rate;
	return 0;
}

static struct bpf_link *attach(const struct set *set, unsigned i, struct bpf_object *o)
{
	struct bpf_link *link = NULL;
	libbpf_print_fn_t print;

	if (!i && set->raw_queue) {
		print = libbpf_set_print(NULL); // newer kernels refuse it
		link = bpf_program__attach(bpf_object__find_program_by_name(o, SECOND));
		libbpf_set_print(print);
	}
	return link ? link : bpf_program__attach(bpf_object__find_program_by_name(o, set->programs[i]));
}

static int hold(const struct set *set, unsigned long rate, struct held *h)
{
	size_t size;
	const void *elf = set->elf(&size);
	struct bpf_program *p;
	int err;

	h->object = bpf_object__open_mem(elf, size, NULL);
	if (!h->object)
		return fail("open", -errno);
	bpf_object__for_each_program(p, h->object)
		bpf_program__set_autoload(p, false);
	for (unsigned i = 0; i < PROGRAMS_MAX && set->programs[i]; i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(h->object, set->programs[i]), true);
	if (set->raw_queue)
		bpf_program__set_autoload(bpf_object__find_program_by_name(h->object, SECOND), true);
	err = rate ? set_rate(h->object, rate) : 0;
	if (err)
		return fail("the rate", err);
	err = bpf_object__load(h->object);
	if (err)
		return fail("load", err);
	for (unsigned i = 0; i < PROGRAMS_MAX && set->programs[i]; i++) {
		h->links[i] = attach(set, i, h->object);
		if (!h->links[i])
			return fail("attach", -errno);
	}
	return 0;
}

static void detach(struct held *h)
{
	for (unsigned i = 0; i < PROGRAMS_MAX; i++) {
		bpf_link__destroy(h->links[i]);
		h->links[i] = NULL;
	}
}

static void print_count(const struct count_key *k, const struct count_value *v, int cpus, const char *separator)
{
	struct count_value sum = { 0 };

	for (int i = 0; i < cpus; i++) {
		sum.ops += v[i].ops;
		sum.bytes += v[i].bytes;
	}
	printf("%s{\"tgid\": %u, \"major\": %u, \"minor\": %u, \"op\": %u, \"empty\": %u, \"ops\": %llu, \"bytes\": %llu}", separator,
	       k->tgid, k->disk_major, k->disk_minor, k->op, k->empty, sum.ops, sum.bytes);
}

static int print_counts(struct held *h)
{
	int cpus = libbpf_num_possible_cpus(), counts = bpf_object__find_map_fd_by_name(h->object, "counts");
	int lost_map = bpf_object__find_map_fd_by_name(h->object, ".data.lost");
	struct count_key key, *last = NULL;
	struct count_value *values;
	unsigned long long lost = 0;
	const char *separator = "";
	__u32 zero = 0;

	values = cpus > 0 ? calloc((size_t)cpus, sizeof(*values)) : NULL;
	if (!values)
		return fail("counts", -ENOMEM);
	bpf_map_lookup_elem(lost_map, &zero, &lost);
	printf("{\"lost\": %llu, \"counts\": [", lost);
	while (!bpf_map_get_next_key(counts, last, &key)) {
		last = &key;
		if (bpf_map_lookup_elem(counts, &key, values))
			continue;
		print_count(&key, values, cpus, separator);
		separator = ", ";
	}
	printf("]}\n");
	free(values);
	return 0;
}

// Until standard input ends; `counting` is asked for its counts by each line.
static int wait_for_end(struct held *counting)
{
	char line;
	int err = 0;

	puts("ready");
	fflush(stdout);
	while (!err && read(STDIN_FILENO, &line, 1) == 1) {
		if (!counting || line != '\n')
			continue;
		err = print_counts(counting);
		fflush(stdout);
	}
	return err;
}

static int run_stats(void)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (fd < 0)
		return fail("run time statistics", fd);
	wait_for_end(NULL);
	close(fd);
	return 0;
}

static int run_set(const struct set *set, unsigned long rate)
{
	struct held h = { 0 };
	int err = hold(set, rate, &h);

	if (!err)
		err = wait_for_end(strcmp(set->name, "count") ? NULL : &h);
	detach(&h);
	bpf_object__close(h.object);
	return err;
}

int main(int argc, char **argv)
{
	const char *name = argc == 2 || argc == 3 ? argv[1] : "";
	unsigned long rate = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (!strcmp(name, "stats"))
		return run_stats() ? 1 : 0;
	for (unsigned i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (!strcmp(name, sets[i].name))
			return run_set(&sets[i], rate) ? 1 : 0;
	fputs("usage: bench-probes empty-typed|empty-raw|empty-kprobe|empty-fentry|count|stats\n"
	      "       bench-probes empty-requests|empty-calls|empty-call-exits|empty-switches\n"
	      "       bench-probes published|published-kprobe|published-fentry [RATE]\n", stderr);
	return 2;
}
