// SPDX-License-Identifier: Apache-2.0
// Fills a store with batches as agents send them and measures it: `bench-store DIR [nodes=N] [services=N] [samples=N]
// [windows=N] [distinct=N] [group=N] [new=PERMILLE]`. A service has stacks of its own that all nodes share; of a window's
// samples `new` in a thousand have a stack that was never there. `distinct` batches are made and sent again and again for
// other nodes and windows (their samples differ, what they cost does not). Prints key=value lines.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "collector/store.h"
#include "common/clock.h"
#include "pprof/builder.h"

#define S 1000000000ull

struct load {
	unsigned nodes, services, samples, windows, distinct, group, fresh, start;
};

struct made {
	struct batch b;
	struct batch_profile *profiles;
	struct buf *gz;
};

static uint64_t state = 88172645463325252ull;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static double uniform(void)
{
	return (double)(rnd() >> 11) / 9007199254740992.0;
}

// Few stacks have most of the samples.
static unsigned skewed(unsigned n)
{
	return (unsigned)(pow(uniform(), 3) * n);
}

static uint32_t add_location(struct pprof_builder *b, uint32_t mapping, uint64_t base, unsigned service, unsigned function)
{
	char name[64], file[64];
	struct pprof_line_info line = { .name = name, .file = file, .line = (int64_t)(function % 900) + 10 };

	snprintf(name, sizeof(name), "service%u_module%u_function_%u", service, function % 17, function);
	snprintf(file, sizeof(file), "src/module%u/file%u.c", function % 17, function % 60);
	return pprof_add_location(b, mapping, base + 0x40 * function + 1, &line, 1);
}

// The path through the functions is a function of the stack's number.
static unsigned make_stack(struct pprof_builder *b, uint32_t mapping, uint64_t base, unsigned service, uint64_t stack,
			   uint32_t *locations)
{
	uint64_t h = (stack + 1) * 0x9e3779b97f4a7c15ull;
	unsigned depth = 10 + (unsigned)(h >> 60), at = depth, shared = depth / 2;
	char name[32];

	snprintf(name, sizeof(name), "service%u", service);
	locations[--at] = pprof_add_frame(b, name);
	for (unsigned i = 0; at; i++) {
		// Near the root stacks are alike.
		uint64_t f = i < shared ? i * 7 + (stack % 5) : (h = h * 6364136223846793005ull + 1442695040888963407ull) >> 40;

		locations[--at] = add_location(b, mapping, base, service, (unsigned)(f % 400));
	}
	return depth;
}

static void add_sample(struct pprof_builder *b, const struct load *l, uint32_t mapping, uint64_t base, unsigned service)
{
	static const char *const devices[] = { "nvme0n1", "nvme1n1" }, *const ops[] = { "read", "write", "flush" };
	static const int64_t classes[] = { 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000 };
	uint64_t stack = rnd() % 1000 < l->fresh ? 1000000 + rnd() % 1000000000 : skewed(300);
	unsigned op = stack % 11 == 0 ? 2 : stack % 3 == 0;
	int64_t n = 1 + (int64_t)skewed(50), bytes = op == 2 ? 0 : n * (4096 << (stack % 4)), class = classes[skewed(9)];
	int64_t values[PPROF_TYPES] = { n, n * (class + (int64_t)(rnd() % (uint64_t)class)), op == 0 ? bytes : 0, op == 1 ? bytes : 0, 0 };
	char service_name[32], comm[32];
	struct pprof_label_info labels[] = {
		{ .key = "comm", .text = comm }, { .key = "device", .text = devices[stack % 7 == 0] }, { .key = "op", .text = ops[op] },
		{ .key = "service", .text = service_name }, { .key = "latency", .number = class, .unit = "nanoseconds" },
	};
	uint32_t locations[64];
	unsigned depth = make_stack(b, mapping, base, service, stack, locations);

	snprintf(service_name, sizeof(service_name), "app%u.service", service);
	snprintf(comm, sizeof(comm), "worker%u-", (unsigned)(stack % 3));
	if (pprof_add_sample(b, locations, depth, values, labels, 5))
		abort();
}

static void make_profile(const struct load *l, unsigned service, struct buf *gz)
{
	char owner[64], build_id[48], file[64];
	uint64_t base = 0x550000000000ull + (rnd() % 100000) * 4096;
	struct pprof_mapping_info m = { .start = base, .limit = base + 0x100000, .file = file, .build_id = build_id,
					.has_functions = true, .has_filenames = true, .has_line_numbers = true };
	struct pprof_builder *b;
	struct buf raw = { 0 };
	uint32_t mapping;

	snprintf(owner, sizeof(owner), "[service app%u.service]", service);
	snprintf(build_id, sizeof(build_id), "%040u", service);
	snprintf(file, sizeof(file), "/usr/lib/app/service%u", service);
	b = pprof_builder_new(owner);
	mapping = pprof_add_mapping(b, &m);
	for (unsigned i = 0; i < l->samples; i++)
		add_sample(b, l, mapping, base, service);
	pprof_set_time(b, 1700000000ull * S, 10 * S);
	pprof_add_comment(b, "blkprof version=0.1.0 backend=tracepoint kernel=6.1.0-30-amd64 rate=1000 cpu_hz=0");
	pprof_add_comment(b, "device node=node name=nvme0n1 mapper=- mount=/srv scheduler=none");
	pprof_add_comment(b, "sampled node=node stacks=%llu (operations and bytes are exact, time is an estimate)",
			  (unsigned long long)(rnd() % 10000));
	if (pprof_encode(b, &raw) || pprof_gzip(raw.data, raw.len, gz))
		abort();
	buf_free(&raw);
	pprof_builder_free(b);
}

static struct made *make_all(const struct load *l, uint64_t *ret_bytes)
{
	struct made *m = calloc(l->distinct, sizeof(*m));

	for (unsigned i = 0; i < l->distinct; i++) {
		m[i].profiles = calloc(l->services, sizeof(*m[i].profiles));
		m[i].gz = calloc(l->services, sizeof(*m[i].gz));
		for (unsigned k = 0; k < l->services; k++) {
			char name[32];

			snprintf(name, sizeof(name), "app%u.service", k);
			make_profile(l, k, &m[i].gz[k]);
			m[i].profiles[k] = (struct batch_profile){ strdup(name), m[i].gz[k].data, m[i].gz[k].len };
			*ret_bytes += m[i].gz[k].len;
		}
		m[i].b = (struct batch){ .kind = BATCH_WINDOW, .n_profiles = l->services, .profiles = m[i].profiles };
	}
	return m;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static uint64_t size_of(const char *directory, const char *name)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static int put(struct store *s, const struct batch *const *list, unsigned n)
{
	struct error e = { 0 };
	int results[1024];
	int err = store_put(s, list, n, results, &e);

	for (unsigned i = 0; i < n && !err; i++)
		err = results[i];
	if (err)
		fprintf(stderr, "%s (%s)\n", e.text, strerror(-err));
	return err;
}

static int run(const struct load *l, struct store *s, struct made *m, double *ret_slowest)
{
	struct batch copies[1024];
	const struct batch *list[1024];
	char names[1024][32];
	unsigned n = 0, next = 0;

	for (unsigned w = 0; w < l->windows; w++)
		for (unsigned node = 0; node < l->nodes; node++) {
			snprintf(names[n], sizeof(names[n]), "node%05u", node);
			copies[n] = m[next++ % l->distinct].b;
			copies[n].node = names[n];
			copies[n].sequence = w + 1;
			copies[n].start = (1700000000ull / 3600 * 3600 + l->start + w * 10) * S;
			copies[n].end = copies[n].start + 10 * S;
			list[n] = &copies[n];
			if (++n == l->group || (w + 1 == l->windows && node + 1 == l->nodes)) {
				double at = (double)clock_monotonic() / 1e9, took;

				if (put(s, list, n))
					return 1;
				took = (double)clock_monotonic() / 1e9 - at;
				*ret_slowest = took > *ret_slowest ? took : *ret_slowest;
				n = 0;
			}
		}
	return 0;
}

static int option(struct load *l, const char *text)
{
	const struct {
		const char *name;
		unsigned *to;
	} known[] = { { "nodes=", &l->nodes }, { "services=", &l->services }, { "samples=", &l->samples }, { "windows=", &l->windows },
		      { "distinct=", &l->distinct }, { "group=", &l->group }, { "new=", &l->fresh }, { "start=", &l->start } };

	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strncmp(text, known[i].name, strlen(known[i].name))) {
			*known[i].to = (unsigned)strtoul(text + strlen(known[i].name), NULL, 10);
			return 0;
		}
	fprintf(stderr, "bench-store: there is no option '%s'\n", text);
	return 1;
}

int main(int argc, char **argv)
{
	struct load l = { .nodes = 100, .services = 10, .samples = 200, .windows = 60, .distinct = 200, .group = 50, .fresh = 2 };
	struct store_options o = { .directory = argc > 1 ? argv[1] : NULL };
	uint64_t gz = 0, put_gz, bytes;
	double start, seconds, cpu, slowest = 0, batches;
	struct error e = { 0 };
	struct rusage u;
	struct store *s;
	struct made *m;

	for (int i = 2; i < argc; i++)
		if (option(&l, argv[i]))
			return 2;
	if (!o.directory || l.group > 1024 || !l.group || !l.distinct)
		return 2;
	m = make_all(&l, &gz);
	if (store_open(&o, &s, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	start = (double)clock_monotonic() / 1e9;
	cpu = cpu_seconds();
	if (run(&l, s, m, &slowest))
		return 1;
	seconds = (double)clock_monotonic() / 1e9 - start;
	cpu = cpu_seconds() - cpu;
	batches = (double)l.windows * l.nodes;
	put_gz = (uint64_t)((double)gz / l.distinct * batches);
	bytes = size_of(o.directory, "blkprof.db") + size_of(o.directory, "blkprof.db-wal") + size_of(o.directory, "blkprof.db-shm");
	getrusage(RUSAGE_SELF, &u);
	printf("batches=%.0f\nprofiles=%.0f\nseconds=%.2f\ncpu_seconds=%.2f\nbatches_per_second=%.1f\nsamples_per_second=%.0f\n"
	       "cpu_us_per_profile=%.1f\nslowest_commit_seconds=%.3f\n",
	       batches, batches * l.services, seconds, cpu, batches / seconds, batches * l.services * l.samples / seconds,
	       cpu * 1e6 / batches / l.services, slowest);
	printf("gzip_bytes=%llu\nstore_bytes=%llu\nratio=%.3f\ngzip_bytes_per_profile=%.0f\nstore_bytes_per_profile=%.0f\nmax_rss_kib=%ld\n",
	       (unsigned long long)put_gz, (unsigned long long)bytes, (double)bytes / (double)put_gz,
	       (double)gz / l.distinct / l.services, (double)bytes / batches / l.services, u.ru_maxrss);
	store_close(s);
	printf("closed_bytes=%llu\n", (unsigned long long)(size_of(o.directory, "blkprof.db") + size_of(o.directory, "blkprof.db-wal")));
	return 0;
}
