// SPDX-License-Identifier: Apache-2.0
// blkprof query: one merged profile of a window from collectors or their stores, or what is in them.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/source.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "common/when.h"

enum list {
	LIST_NOTHING,
	LIST_NODES,
	LIST_SERVICES,
	LIST_WINDOWS,
};

static const char *const lists[] = { "nodes", "services", "windows", NULL };

struct query_command {
	const char *from, *to, *output;
	struct source_options source;
	unsigned list; // enum list
	// Set by check.
	uint64_t from_ns, to_ns;
};

static const struct query_command defaults;

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
	SOURCE_OPTIONS(struct query_command, source),
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
	bool any;
	int err = source_check(&c->source, &any, e);

	if (err)
		return err;
	if (!any)
		return error_set(e, -EINVAL, "--store or --collector is missing: the directory of a collector's store, or its address");
	if (!c->from && !c->list)
		return error_set(e, -EINVAL, "--from is missing: the start of the window, as -15m");
	if (!c->list && (!c->output || !strcmp(c->output, "-")) && isatty(STDOUT_FILENO))
		return error_set(e, -EINVAL, "the profile is not for a terminal: give -o FILE, or send it on ('| blkprof top -')");
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

static int print_item(void *context, const char *name, uint64_t from, uint64_t to, uint64_t windows)
{
	char a[WHEN_SIZE], b[WHEN_SIZE];

	printf("%-40s %-30s %-30s %llu\n", name, when_text(from, a), when_text(to, b), (unsigned long long)windows);
	return 0;
}

static int list(const struct query_command *c, struct source *source, struct error *e)
{
	struct store_query q = source_query_of(&c->source, c->from_ns, c->to_ns);
	int err;

	printf("%-40s %-30s %-30s %s\n", c->list == LIST_SERVICES ? "service" : "node", "from", "to", "windows");
	err = source_list(source, (enum store_list)(c->list - LIST_NODES), &q, print_item, NULL, e);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = error_set(e, -EIO, "cannot write to standard output: %s", strerror(errno));
	return err;
}

static int write_profile(const struct query_command *c, const struct buf *gz, struct error *e)
{
	int err;

	if (c->output && strcmp(c->output, "-"))
		return file_write_atomic(c->output, gz->data, gz->len, e);
	err = file_write_fd(STDOUT_FILENO, gz->data, gz->len);
	return err ? error_set(e, err, "cannot write to standard output: %s", strerror(-err)) : 0;
}

static int query(const struct query_command *c, struct source *source, struct error *e)
{
	struct store_query q = source_query_of(&c->source, c->from_ns, c->to_ns);
	struct buf gz = { 0 }, said = { 0 };
	int err;

	err = source_query(source, &q, &gz, &said, e);
	if (!err)
		err = write_profile(c, &gz, e);
	if (!err && said.len)
		fprintf(stderr, "%.*s\n", (int)said.len, (char *)said.data);
	buf_free(&gz);
	buf_free(&said);
	return err;
}

static int run(const void *arguments)
{
	const struct query_command *c = arguments;
	struct source *source = NULL;
	struct error e = { 0 };
	int err = source_open(&c->source, &source, &e);

	if (!err)
		err = c->list ? list(c, source, &e) : query(c, source, &e);
	source_close(source);
	return err ? command_error("query", STATUS_FAILED, &e) : STATUS_DONE;
}

const struct command command_query = {
	.name = "query",
	.summary = "merge the profiles of a window, of any nodes, into one",
	.usage = "--store DIR|--collector URL --from TIME [--to TIME]",
	.about = "Makes one profile of all windows that collectors have received between two times, of all nodes and services or of "
		 "those asked for. A window that an edge of the time cuts is shared out by time, which the profile says in a comment, "
		 "as it does what agents lost.",
	.options = options,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.check = check,
	.run = run,
};
