// SPDX-License-Identifier: Apache-2.0
// bench-probes SET: attaches a set of BPF programs, prints "ready" and holds them until standard input ends. The set
// "count" prints what it has counted so far as one line of JSON for each line it is given; "stats" attaches nothing and keeps
// the kernel's accounting of program run time switched on. Run times are read from this process's /proc/PID/fdinfo.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "count.skel.h"
#include "count_rec.h"
#include "empty.skel.h"
#include "published.skel.h"

#define PROGRAMS_MAX 3

struct set {
	const char *name;
	const void *(*elf)(size_t *size);
	const char *programs[PROGRAMS_MAX];
};

static const struct set sets[] = {
	{ "empty-typed", empty__elf_bytes, { "typed_submit", "typed_complete", "typed_rq_complete" } },
	{ "empty-raw", empty__elf_bytes, { "raw_submit", "raw_complete" } },
	{ "published", published__elf_bytes, { "submit", "complete" } },
	{ "count", count__elf_bytes, { "count_bio" } },
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

static int hold(const struct set *set, struct held *h)
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
	err = bpf_object__load(h->object);
	if (err)
		return fail("load", err);
	for (unsigned i = 0; i < PROGRAMS_MAX && set->programs[i]; i++) {
		h->links[i] = bpf_program__attach(bpf_object__find_program_by_name(h->object, set->programs[i]));
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

static int run_set(const struct set *set)
{
	struct held h = { 0 };
	int err = hold(set, &h);

	if (!err)
		err = wait_for_end(strcmp(set->name, "count") ? NULL : &h);
	detach(&h);
	bpf_object__close(h.object);
	return err;
}

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";

	if (!strcmp(name, "stats"))
		return run_stats() ? 1 : 0;
	for (unsigned i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (!strcmp(name, sets[i].name))
			return run_set(&sets[i]) ? 1 : 0;
	fputs("usage: bench-probes empty-typed|empty-raw|published|count|stats\n", stderr);
	return 2;
}
