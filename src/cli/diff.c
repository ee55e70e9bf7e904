// SPDX-License-Identifier: Apache-2.0
// blkprof diff: what changed between two profiles, or two windows of collectors or their stores.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/outfile.h"
#include "cli/source.h"
#include "common/clock.h"
#include "common/when.h"
#include "pprof/builder.h"
#include "pprof/diff.h"

struct diff_command {
	const char *type, *output;
	uint32_t rows;
	uint64_t memory, max_size;
	bool json;
	struct source_options source;
	const char *base_node, *base_service, *base_device;
	struct arguments files; // or windows
	// Set by check.
	bool windows;
	uint64_t from[DIFF_SIDES], to[DIFF_SIDES];
};

static const struct diff_command defaults = { .rows = 10, .memory = 256ull << 20, .max_size = 512ull << 20 };

#define AT(field) .offset = offsetof(struct diff_command, field)

static const struct option_spec options[] = {
	{ .name = "type", .letter = 't', .argument = "TYPE", .set = option_set_text, AT(type),
	  .help = "Sample type to rank by, by its name or number. The default is the profile's own, for a profile of blkprof "
		  "io_time. The sentence at the top is about time and operations whatever the type." },
	{ .name = "output", .letter = 'o', .argument = "FILE", .set = option_set_text, .completes = COMPLETES_FILE, AT(output),
	  .help = "Write the difference as a profile to FILE, for 'go tool pprof': red is more, green is less. Its -mean is no mean." },
	{ .name = "json", .set = option_set_flag, AT(json), .help = "Print JSON instead of text." },
	{ .name = "rows", .letter = 'n', .argument = "N", .set = option_set_number, .min = 0, .max = UINT32_MAX, AT(rows),
	  .help = "Show at most N rows of each ranking (10 by default; 0 = all)." },
	{ .name = "memory", .argument = "SIZE", .set = option_set_size, .min = 1 << 20, .max = 1ull << 40, AT(memory),
	  .help = "Use at most SIZE of memory for each of both profiles and for what is kept of them (256M by default)." },
	{ .name = "max-size", .argument = "SIZE", .set = option_set_size, .min = 1 << 10, .max = 1ull << 40, AT(max_size),
	  .help = "Refuse a profile that has more than SIZE when decompressed (512M by default)." },
	SOURCE_OPTIONS(struct diff_command, source),
	{ .name = "base-node", .argument = "NAME", .set = option_set_text, AT(base_node),
	  .help = "The base is of this node. The other window is of --node." },
	{ .name = "base-service", .argument = "NAME", .set = option_set_text, AT(base_service),
	  .help = "The base is of this service. The other window is of --service." },
	{ .name = "base-device", .argument = "NAME", .set = option_set_text, AT(base_device), .completes = COMPLETES_DEVICE,
	  .help = "The base is of this disk. The other window is of --device." },
	{ 0 },
};

static bool has_filter(const struct diff_command *c)
{
	const struct source_options *o = &c->source;

	return o->node || o->service || o->device || o->labels.n || c->base_node || c->base_service || c->base_device;
}

static int check_files(const struct diff_command *c, struct error *e)
{
	if (has_filter(c))
		return error_set(e, -EINVAL, "--node, --service, --device and --label choose from --store or --collector: give one of them");
	if (c->files.n == 2)
		return 0;
	return error_set(e, -EINVAL, "FILE is missing: two of them are compared, or windows with --store or --collector");
}

static int check(void *arguments, struct error *e)
{
	static const char *const names[] = { "BASE", "INCIDENT" };
	struct diff_command *c = arguments;
	uint64_t now = clock_realtime();
	int err = source_check(&c->source, &c->windows, e);

	if (err || !c->windows)
		return err ? err : check_files(c, e);
	// One window is both: of two nodes, services or disks.
	if (c->files.n == 1 && !c->base_node && !c->base_service && !c->base_device)
		return error_set(e, -EINVAL, "one window and nothing to compare it with: give two windows, or --base-node, --base-service "
				 "or --base-device");
	for (int i = 0; i < DIFF_SIDES && !err; i++)
		err = when_range(c->files.v[i < c->files.n ? i : 0], now, names[i], &c->from[i], &c->to[i], e);
	return err ? -EINVAL : 0;
}

// What is compared: bytes of files, or what windows gave.
struct compared {
	struct pprof_source source[DIFF_SIDES];
	const char *name[DIFF_SIDES];
};

struct sides {
	struct pprof_reader *readers[DIFF_SIDES];
	const struct profile *profiles[DIFF_SIDES];
};

static int read_sides(const struct diff_command *c, const struct compared *in, struct sides *s, struct error *e)
{
	struct pprof_limits limits = PPROF_LIMITS_DEFAULT;

	limits.memory = c->memory;
	limits.message = c->max_size;
	for (unsigned i = 0; i < DIFF_SIDES; i++) {
		int err;

		s->readers[i] = pprof_reader_new(&limits);
		if (!s->readers[i])
			return error_set(e, -ENOMEM, "out of memory");
		err = pprof_reader_add(s->readers[i], &in->source[i], e);
		if (err)
			return inputs_explain(in->name[i], err, e);
		s->profiles[i] = pprof_reader_finish(s->readers[i]);
	}
	return 0;
}

static int write_profile(const struct diff_command *c, const struct sides *s, struct error *e)
{
	struct buf message = { 0 }, gz = { 0 };
	struct outfile o;
	int err = diff_profile(s->profiles[DIFF_BASE], s->profiles[DIFF_INCIDENT], &message, e);

	if (!err && pprof_gzip(message.data, message.len, &gz))
		err = error_set(e, -ENOMEM, "out of memory");
	if (!err)
		err = outfile_open(&o, c->output, e);
	if (!err) {
		err = outfile_write(&o, gz.data, gz.len);
		if (err) {
			outfile_close(&o, 0, NULL);
			error_set(e, err, "cannot write %.200s: %s", c->output, strerror(-err));
		} else {
			err = outfile_close(&o, 1, e);
		}
	}
	buf_free(&message);
	buf_free(&gz);
	return err;
}

static int compare(const struct diff_command *c, const struct compared *in, struct buf *out, struct error *e)
{
	const struct diff_options o = { .type = c->type, .memory = c->memory };
	struct sides s = { 0 };
	struct diff *d = NULL;
	int err = read_sides(c, in, &s, e);

	if (!err)
		err = diff_new(s.profiles[DIFF_BASE], s.profiles[DIFF_INCIDENT], &o, &d, e);
	if (!err && c->output)
		err = write_profile(c, &s, e);
	if (!err && (c->json ? diff_json(d, c->rows, out) : diff_print(d, c->rows, out)))
		err = error_set(e, -ENOMEM, "out of memory");
	diff_free(d);
	for (unsigned i = 0; i < DIFF_SIDES; i++)
		pprof_reader_free(s.readers[i]);
	return err;
}

static int compare_files(const struct diff_command *c, struct buf *out, struct error *e)
{
	struct inputs in = { 0 };
	struct compared what;
	int err = inputs_open(&c->files, c->max_size, &in, e);

	if (err)
		return err;
	for (unsigned i = 0; i < DIFF_SIDES; i++) {
		what.source[i] = in.sources[i];
		what.name[i] = in.names[i];
	}
	err = compare(c, &what, out, e);
	inputs_close(&in);
	return err;
}

static struct store_query query_of(const struct diff_command *c, enum diff_side side)
{
	struct store_query q = source_query_of(&c->source, c->from[side], c->to[side]);

	if (side == DIFF_BASE) {
		q.node = c->base_node ? c->base_node : q.node;
		q.service = c->base_service ? c->base_service : q.service;
		q.device = c->base_device ? c->base_device : q.device;
	}
	return q;
}

static int compare_windows(const struct diff_command *c, struct buf *out, struct error *e)
{
	struct compared what = { .name = { "base", "incident" } };
	struct buf gz[DIFF_SIDES] = { 0 }, said = { 0 };
	struct source *source = NULL;
	int err = source_open(&c->source, &source, e);

	for (unsigned i = 0; i < DIFF_SIDES && !err; i++) {
		struct store_query q = query_of(c, i);

		said.len = 0;
		err = source_query(source, &q, &gz[i], &said, e);
		if (err)
			error_prefix(e, err, "%s", what.name[i]);
		else
			fprintf(stderr, "%s: %.*s\n", what.name[i], (int)said.len, (char *)said.data);
		what.source[i] = (struct pprof_source){ .fd = -1, .data = gz[i].data, .len = gz[i].len };
	}
	if (!err)
		err = compare(c, &what, out, e);
	source_close(source);
	buf_free(&gz[DIFF_BASE]);
	buf_free(&gz[DIFF_INCIDENT]);
	buf_free(&said);
	return err;
}

static int run(const void *arguments)
{
	const struct diff_command *c = arguments;
	struct error e = { 0 };
	struct buf out = { 0 };
	int err = c->windows ? compare_windows(c, &out, &e) : compare_files(c, &out, &e);

	if (!err && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout)))
		err = error_set(&e, -errno, "cannot write to standard output: %s", strerror(errno));
	buf_free(&out);
	return err ? command_error("diff", STATUS_FAILED, &e) : STATUS_DONE;
}

const struct command command_diff = {
	.name = "diff",
	.summary = "say what changed between two profiles or windows",
	.usage = "BASE INCIDENT",
	.about = "BASE and INCIDENT are files or addresses of profiles, or, with --store or --collector, windows FROM..TO, as -2h..-1h or "
		 "2026-11-30T08:00:00Z..2026-11-30T08:10:00Z. One window is enough to compare two nodes, services or disks.\n\n"
		 "Compares two profiles of any length by their rates per second (and node), says in one sentence what kind of change it "
		 "is, and ranks devices, services, functions and stacks by what changed most. Both windows are samples: a change has a "
		 "standard error, and what is within it is not ranked.\n\n"
		 "The change of I/O time is split by device, operation and size of request into more work (the change of operations at "
		 "the old mean latency) and slower work (the new operations at the change of the mean). A node that is missing on one side "
		 "is no change: rates are per node.",
	.options = options,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.argument = "FILE",
	.arguments = offsetof(struct diff_command, files),
	.min = 1,
	.max = 2,
	.times = true,
	.check = check,
	.completes = COMPLETES_FILE,
	.run = run,
};
