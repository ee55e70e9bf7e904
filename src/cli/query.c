// SPDX-License-Identifier: Apache-2.0
// blkprof query: one merged profile of a window from stores of collectors, or what is in them.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "collector/store.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "common/when.h"

#define STORES_MAX 16
#define LABELS_MAX 16

enum list {
	LIST_NOTHING,
	LIST_NODES,
	LIST_SERVICES,
	LIST_WINDOWS,
};

static const char *const lists[] = { "nodes", "services", "windows", NULL };

struct query_stores {
	unsigned n;
	const char *directory[STORES_MAX];
};

struct query_labels {
	unsigned n;
	struct batch_label label[LABELS_MAX];
};

struct query_command {
	const char *from, *to, *node, *service, *device, *output;
	struct query_stores stores;
	struct query_labels labels;
	unsigned list; // enum list
	// Set by check.
	uint64_t from_ns, to_ns;
};

static const struct query_command defaults;

static int add_store(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct query_stores *s = target;

	if (!*value)
		return error_set(e, -EINVAL, "it is empty; allowed: the directory of a collector's store");
	if (s->n == STORES_MAX)
		return error_set(e, -EINVAL, "'%.60s' is one too many; allowed: at most %d stores", value, STORES_MAX);
	s->directory[s->n++] = value;
	return 0;
}

static int add_label(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct query_labels *l = target;
	char *equal = strchr(value, '=');

	if (!equal || equal == value || !equal[1])
		return error_set(e, -EINVAL, "'%.60s' is not allowed; allowed: NAME=VALUE", value);
	if (l->n == LABELS_MAX)
		return error_set(e, -EINVAL, "'%.60s' is one too many; allowed: at most %d labels", value, LABELS_MAX);
	*equal = 0;
	l->label[l->n++] = (struct batch_label){ value, equal + 1 };
	return 0;
}

static int set_list(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	unsigned index;
	int err = option_set_word(spec, &index, value, e);

	if (!err)
		*(unsigned *)target = index + 1;
	return err;
}

#define AT(field) .offset = offsetof(struct query_command, field)

static const struct option_spec options[] = {
	{ .name = "from", .argument = "TIME", .set = option_set_text, AT(from),
	  .help = "Start of the window. 2026-11-30T08:15:00Z, seconds since 1970, or relative to now: -15m, -2h." },
	{ .name = "to", .argument = "TIME", .set = option_set_text, AT(to), .help = "End of the window. Now by default." },
	{ .name = "node", .argument = "NAME", .set = option_set_text, AT(node), .help = "Only this node." },
	{ .name = "service", .argument = "NAME", .set = option_set_text, AT(service),
	  .help = "Only this service. As '--list services' has it." },
	{ .name = "device", .argument = "NAME", .set = option_set_text, AT(device), .completes = COMPLETES_DEVICE,
	  .help = "Only this disk. As the label device of the samples has it: nvme0n1, dm-0." },
	{ .name = "label", .argument = "NAME=VALUE", .set = add_label, AT(labels), .repeatable = true,
	  .help = "Only what has this label. One of the samples (op, comm, pid, latency ...) or of the agent's configuration; "
		  "repeatable, all must hold." },
	{ .name = "store", .argument = "DIR", .set = add_store, AT(stores), .repeatable = true, .completes = COMPLETES_FILE,
	  .help = "Read the store in this directory, also beside a running collector. Repeatable: what reached two collectors "
		  "counts once." },
	{ .name = "list", .argument = "WHAT", .set = set_list, .words = lists, .completes = COMPLETES_WORD, AT(list),
	  .help = "List nodes, services or windows instead. Of the whole store where no window is given." },
	{ .name = "output", .letter = 'o', .argument = "FILE", .set = option_set_text, AT(output), .completes = COMPLETES_FILE,
	  .help = "Write the profile to FILE, which appears whole or not at all. The default is standard output, if that is no "
		  "terminal." },
	{ 0 },
};

static int check(void *arguments, struct error *e)
{
	struct query_command *c = arguments;
	uint64_t now = clock_realtime();
	int err = 0;

	if (!c->stores.n)
		return error_set(e, -EINVAL, "--store is missing: the directory of a collector's store");
	if (!c->from && !c->list)
		return error_set(e, -EINVAL, "--from is missing: the start of the window, as -15m");
	c->to_ns = c->list && !c->to ? INT64_MAX : now;
	if (c->from)
		err = when_parse(c->from, now, "--from", &c->from_ns, e);
	if (!err && c->to)
		err = when_parse(c->to, now, "--to", &c->to_ns, e);
	if (err)
		return -EINVAL;
	if (c->from_ns >= c->to_ns)
		return error_set(e, -EINVAL, "the window ends before it starts: --from must be before --to");
	return 0;
}

static struct store_query query_of(const struct query_command *c)
{
	return (struct store_query){ .from = c->from_ns, .to = c->to_ns, .node = c->node, .service = c->service,
				     .device = c->device, .n_labels = c->labels.n, .labels = c->labels.label };
}

static int open_stores(const struct query_command *c, struct store *stores[STORES_MAX], struct error *e)
{
	int err = 0;

	for (unsigned i = 0; i < c->stores.n && !err; i++) {
		struct store_options o = { .directory = c->stores.directory[i], .read_only = true };

		err = store_open(&o, &stores[i], e);
	}
	return err;
}

static int print_item(void *context, const char *name, uint64_t from, uint64_t to, uint64_t windows)
{
	char a[WHEN_SIZE], b[WHEN_SIZE];

	printf("%-40s %-30s %-30s %llu\n", name, when_text(from, a), when_text(to, b), (unsigned long long)windows);
	return 0;
}

static int list(const struct query_command *c, struct store **stores, struct error *e)
{
	struct store_query q = query_of(c);
	int err = 0;

	printf("%-40s %-30s %-30s %s\n", c->list == LIST_SERVICES ? "service" : "node", "from", "to", "windows");
	for (unsigned i = 0; i < c->stores.n && !err; i++)
		err = store_list(stores[i], (enum store_list)(c->list - LIST_NODES), &q, print_item, NULL, e);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = error_set(e, -EIO, "cannot write to standard output: %s", strerror(errno));
	return err;
}

static void say(const struct query_command *c, const struct store_coverage *v)
{
	double asked = (double)(c->to_ns - c->from_ns) / 1e9 * v->nodes;

	fprintf(stderr, "%u windows of %u nodes: %.0f node-seconds", v->windows, v->nodes, (double)v->node_seconds_ns / 1e9);
	if (asked > 0)
		fprintf(stderr, ", %.1f%% of the time asked for", 100 * (double)v->node_seconds_ns / 1e9 / asked);
	if (v->straddling)
		fprintf(stderr, "; %u windows that an edge cuts are shared out by time", v->straddling);
	if (v->rollups)
		fprintf(stderr, "; of %u windows only sums over a longer time, without pid, are left", v->rollups);
	if (v->ambiguous)
		fprintf(stderr, "; %u windows are left out: the stores have them in sums that overlap", v->ambiguous);
	if (v->lost)
		fprintf(stderr, "; agents had to drop %llu windows (%.0f s)", (unsigned long long)v->lost, (double)v->lost_ns / 1e9);
	fprintf(stderr, "\n");
}

static int write_profile(const struct query_command *c, const struct buf *gz, struct error *e)
{
	int err;

	if (c->output && strcmp(c->output, "-"))
		return file_write_atomic(c->output, gz->data, gz->len, e);
	err = file_write_fd(STDOUT_FILENO, gz->data, gz->len);
	return err ? error_set(e, err, "cannot write to standard output: %s", strerror(-err)) : 0;
}

static int query(const struct query_command *c, struct store **stores, struct error *e)
{
	struct store_query q = query_of(c);
	struct store_coverage coverage;
	struct buf gz = { 0 };
	int err;

	if ((!c->output || !strcmp(c->output, "-")) && isatty(STDOUT_FILENO))
		return error_set(e, -EINVAL, "the profile is not for a terminal: give -o FILE, or send it on ('| blkprof top -')");
	err = store_query_many(stores, c->stores.n, &q, &gz, &coverage, e);
	if (!err)
		err = write_profile(c, &gz, e);
	if (!err)
		say(c, &coverage);
	buf_free(&gz);
	return err;
}

static int run(const void *arguments)
{
	const struct query_command *c = arguments;
	struct store *stores[STORES_MAX] = { 0 };
	struct error e = { 0 };
	int err = open_stores(c, stores, &e);

	if (!err)
		err = c->list ? list(c, stores, &e) : query(c, stores, &e);
	for (unsigned i = 0; i < c->stores.n; i++)
		store_close(stores[i]);
	return err ? command_error("query", STATUS_FAILED, &e) : STATUS_DONE;
}

const struct command command_query = {
	.name = "query",
	.summary = "merge the profiles of a window, of any nodes, into one",
	.usage = "--store DIR --from TIME [--to TIME]",
	.about = "Makes one profile of all windows that collectors have received between two times, of all nodes and services or of "
		 "those asked for. A window that an edge of the time cuts is shared out by time, which the profile says in a comment, "
		 "as it does what agents lost.",
	.options = options,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.check = check,
	.run = run,
};
