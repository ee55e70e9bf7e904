// SPDX-License-Identifier: Apache-2.0
// bench-profiles SEED SAMPLES FILE: a large profile of the shape that recordings of a database server have: 5,000
// functions, stacks of 8 to 40 frames that share their beginnings, a fifth as many stacks as samples, seven labels.
// Profiles of different seeds have half of their stacks in common. FILE is gzipped when its name ends in .gz.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "pprof/builder.h"

#define FUNCTIONS 5000
#define LOCATIONS 20000

static uint64_t state;

static uint64_t next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static unsigned below(unsigned n)
{
	return (unsigned)(next() % n);
}

static void add_locations(struct pprof_builder *b, uint32_t *locations)
{
	struct pprof_mapping_info m = { 0x400000, 0x4000000, 0, "/usr/lib/postgresql/15/bin/postgres", "5ca1ab1e", true, true, true, true };
	uint32_t mapping = pprof_add_mapping(b, &m);

	for (unsigned i = 0; i < LOCATIONS; i++) {
		char name[64], file[64];
		struct pprof_line_info lines[2] = { { name, NULL, file, 10 + i % 900 }, { "heap_getnext", NULL, "heapam.c", 1300 } };

		snprintf(name, sizeof(name), "function_of_the_server_%u", i % FUNCTIONS);
		snprintf(file, sizeof(file), "src/backend/part%u/file%u.c", i % 37, i % FUNCTIONS / 10);
		locations[i] = pprof_add_location(b, mapping, 0x400000 + i * 64ull, lines, i % 5 ? 1 : 2);
	}
}

// The stack with this number: frames near the root are of few kinds, like those of real programs.
static unsigned make_stack(uint64_t number, const uint32_t *locations, uint32_t root, uint32_t *stack)
{
	uint64_t saved = state;
	unsigned n;

	state = number * 0x2545f4914f6cdd1dull;
	n = 8 + below(32);
	for (unsigned i = 0; i < n; i++)
		stack[i] = locations[below(16u << ((n - i) < 11 ? n - i : 10))];
	stack[n++] = root;
	state = saved;
	return n;
}

static int add_sample(struct pprof_builder *b, const uint32_t *locations, const uint32_t *roots, uint64_t number)
{
	static const char *const comms[] = { "postgres", "checkpointer", "walwriter", "autovacuum" };
	static const char *const ops[] = { "read", "write", "flush" };
	static const char *const devices[] = { "nvme0n1", "nvme1n1", "dm-0" };
	static const int64_t latencies[] = { 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000 };
	unsigned kind = below(4), op = below(10) < 7 ? 0 : 1 + below(2), latency = below(10), size = below(6);
	struct pprof_label_info labels[] = {
		{ "comm", comms[kind], 0, NULL },
		{ "device", devices[below(3)], 0, NULL },
		{ "op", ops[op], 0, NULL },
		{ "service", "postgresql@15-main.service", 0, NULL },
		{ "pid", NULL, 1000 + below(50), NULL },
		{ "bytes", NULL, op < 2 ? 4096 << size : 0, "bytes" },
		{ "latency", NULL, latencies[latency], "nanoseconds" },
	};
	int64_t n = 1 + below(20), bytes = op < 2 ? n * (4096 << size) : 0;
	int64_t values[PPROF_TYPES] = { n, n * latencies[latency], op ? 0 : bytes, op ? bytes : 0, 0 };
	uint32_t stack[64];

	return pprof_add_sample(b, stack, make_stack(number, locations, roots[kind], stack), values, labels, 7);
}

int main(int argc, char **argv)
{
	static uint32_t locations[LOCATIONS];
	struct pprof_builder *b = pprof_builder_new("[node bench]");
	const char *const roots[] = { "postgres", "checkpointer", "walwriter", "autovacuum" };
	struct buf message = { 0 }, gz = { 0 };
	struct error e = { { 0 } };
	uint32_t root[4];
	uint64_t seed, samples, universe;

	if (argc != 4 || !b) {
		fprintf(stderr, "usage: bench-profiles SEED SAMPLES FILE\n");
		return 2;
	}
	seed = strtoull(argv[1], NULL, 10);
	samples = strtoull(argv[2], NULL, 10);
	universe = samples / 5 + 1;
	state = seed;
	for (unsigned i = 0; i < 4; i++)
		root[i] = pprof_add_frame(b, roots[i]);
	add_locations(b, locations);
	for (uint64_t i = 0; i < samples; i++)
		if (add_sample(b, locations, root, next() % universe + (next() & 1 ? seed * universe : 0)))
			return 1;
	pprof_add_comment(b, "backend=none seed=%llu", (unsigned long long)seed);
	pprof_set_time(b, 1700000000000000000ull + seed * 10000000000ull, 10000000000ull);
	if (pprof_encode(b, &message))
		return 1;
	pprof_builder_free(b);
	if (strlen(argv[3]) > 3 && !strcmp(argv[3] + strlen(argv[3]) - 3, ".gz") && pprof_gzip(message.data, message.len, &gz))
		return 1;
	printf("%zu\n", message.len);
	if (file_write_atomic(argv[3], gz.len ? gz.data : message.data, gz.len ? gz.len : message.len, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return 0;
}
