// SPDX-License-Identifier: Apache-2.0
// blkprof export: a profile of any program in the formats of other viewers.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/outfile.h"
#include "common/text.h"
#include "pprof/builder.h"
#include "pprof/decode.h"
#include "pprof/export.h"

enum format {
	FORMAT_NONE,
	FORMAT_SPEEDSCOPE,
	FORMAT_COLLAPSED,
	FORMAT_SVG,
	FORMAT_PPROF,
};

// What is larger than this no viewer opens.
#define EXPORT_MAX (1ull << 30)

struct export_command {
	unsigned format;
	const char *type, *root, *output;
	uint64_t memory, max_size;
	struct arguments files;
};

static const struct export_command defaults = { .memory = 160ull << 20, .max_size = 512ull << 20 };
static const char *const formats[] = { "speedscope", "collapsed", "svg", "pprof", NULL };

static int set_format(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	unsigned index;
	int err = option_set_word(spec, &index, value, e);

	if (!err)
		*(unsigned *)target = index + 1;
	return err;
}

#define AT(field) .offset = offsetof(struct export_command, field)

static const struct option_spec options[] = {
	{ .name = "format", .letter = 'f', .argument = "FORMAT", .set = set_format, .words = formats, .completes = COMPLETES_WORD,
	  AT(format),
	  .help = "Format to write. speedscope is the JSON of speedscope.app with every sample type in it, collapsed is one line for "
		  "each stack, svg a flame graph for a browser, pprof the merged profile." },
	{ .name = "type", .letter = 't', .argument = "TYPE", .set = option_set_text, AT(type),
	  .help = "Sample type to show, by its name or number. The default is the profile's own; in speedscope it is the one shown "
		  "first." },
	{ .name = "root", .letter = 'r', .argument = "LABELS", .set = option_set_text, AT(root),
	  .help = "Show the values of these labels (separated by commas) as frames below the process." },
	{ .name = "output", .letter = 'o', .argument = "FILE", .set = option_set_text, .completes = COMPLETES_FILE, AT(output),
	  .help = "Write to FILE. The default is standard output." },
	{ .name = "memory", .argument = "SIZE", .set = option_set_size, .min = 1 << 20, .max = 1ull << 40, AT(memory),
	  .help = "Use at most SIZE of memory for what is kept of the profile (160M by default)." },
	{ .name = "max-size", .argument = "SIZE", .set = option_set_size, .min = 1 << 10, .max = 1ull << 40, AT(max_size),
	  .help = "Refuse a profile that has more than SIZE when decompressed (512M by default)." },
	{ 0 },
};

static int check(void *arguments, struct error *e)
{
	const struct export_command *c = arguments;

	if (!c->format)
		return error_set(e, -EINVAL, "--format is missing; allowed: speedscope, collapsed, svg, pprof");
	if (c->format == FORMAT_PPROF && (c->root || c->type))
		return error_set(e, -EINVAL, "--root and --type go with speedscope, collapsed and svg: a pprof keeps its labels and types");
	return 0;
}

struct job {
	const struct export_command *c;
	const struct folded *folded;
	struct flame *flame;
	const char *title;
	size_t type;
};

static void write_format(const struct job *j, struct sink *s)
{
	if (j->c->format == FORMAT_SPEEDSCOPE)
		export_speedscope(j->folded, j->type, j->title, s);
	else if (j->c->format == FORMAT_COLLAPSED)
		export_collapsed(j->folded, j->type, s);
	else
		export_svg(j->flame, j->title, s);
}

static int write_failed(const struct export_command *c, int err, struct error *e)
{
	return error_set(e, err, "%.200s: cannot be written: %s", c->output ? c->output : "standard output", strerror(-err));
}

// Counted first: what would become too large is refused before anything is written.
static int write_job(const struct job *j, struct error *e)
{
	struct sink count = { .limit = EXPORT_MAX }, s = { .write = outfile_write };
	struct outfile o;
	int err;

	write_format(j, &count);
	if (sink_finish(&count) == -EFBIG)
		return error_set(e, -EFBIG, "it would become larger than 1 GiB, which no viewer opens; svg is smaller");
	err = outfile_open(&o, j->c->output, e);
	if (err)
		return err;
	s.context = &o;
	write_format(j, &s);
	err = sink_finish(&s);
	if (err) {
		outfile_close(&o, 0, NULL);
		return write_failed(j->c, err, e);
	}
	return outfile_close(&o, 1, e);
}

static int write_folded(const struct export_command *c, const struct profile *p, struct pprof_reader *r, const char *title,
			struct error *e)
{
	struct folded_options o = { .root = c->root, .files = c->format == FORMAT_SPEEDSCOPE };
	struct folded folded;
	struct job j = { .c = c, .folded = &folded, .title = title };
	int err = profile_type_index(p, c->type, &j.type, e);

	if (err)
		return err;
	err = folded_make(&folded, p, pprof_reader_budget(r), &o, e);
	if (!err && c->format == FORMAT_SVG) {
		err = flame_new(&folded, j.type, &j.flame);
		if (err)
			error_set(e, err, err == -E2BIG ? "the flame graph needs more than the limit of memory" : "out of memory");
	}
	if (!err)
		err = write_job(&j, e);
	flame_free(j.flame);
	folded_free(&folded);
	return err;
}

static int write_pprof(const struct export_command *c, const struct profile *p, struct error *e)
{
	struct buf message = { 0 }, gz = { 0 };
	struct outfile o;
	int err = profile_encode(p, &message);

	if (!err)
		err = pprof_gzip(message.data, message.len, &gz);
	buf_free(&message);
	if (err)
		error_set(e, err, "out of memory");
	else
		err = outfile_open(&o, c->output, e);
	if (!err) {
		err = outfile_write(&o, gz.data, gz.len);
		if (err) {
			outfile_close(&o, 0, NULL);
			write_failed(c, err, e);
		} else {
			err = outfile_close(&o, 1, e);
		}
	}
	buf_free(&gz);
	return err;
}

static void make_title(const struct inputs *in, char *to, size_t cap)
{
	const char *name = in->names[0], *slash = strrchr(name, '/');
	char text[160];

	if (slash && slash[1] && !strstr(name, "://"))
		name = slash + 1;
	text_sanitize(text, sizeof(text), name, strlen(name));
	if (in->n > 1)
		snprintf(to, cap, "%s and %zu more", text, in->n - 1);
	else
		snprintf(to, cap, "%s", text);
}

static int export(const struct export_command *c, const struct inputs *in, struct error *e)
{
	struct pprof_limits limits = PPROF_LIMITS_DEFAULT;
	struct pprof_reader *r;
	const struct profile *p;
	char title[200];
	int err = 0;

	limits.memory = c->memory;
	limits.message = c->max_size;
	r = pprof_reader_new(&limits);
	if (!r)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < in->n && !err; i++) {
		err = pprof_reader_add(r, &in->sources[i], e);
		if (err)
			inputs_explain(in->names[i], err, e);
	}
	if (!err) {
		p = pprof_reader_finish(r);
		make_title(in, title, sizeof(title));
		err = c->format == FORMAT_PPROF ? write_pprof(c, p, e) : write_folded(c, p, r, title, e);
		if (err == -E2BIG)
			inputs_explain(in->names[0], err, e);
	}
	pprof_reader_free(r);
	return err;
}

static int run(const void *arguments)
{
	const struct export_command *c = arguments;
	struct inputs in = { 0 };
	struct error e = { 0 };
	int err = inputs_open(&c->files, c->max_size, &in, &e);

	if (!err) {
		err = export(c, &in, &e);
		inputs_close(&in);
	}
	return err ? command_error("export", STATUS_FAILED, &e) : STATUS_DONE;
}

const struct command command_export = {
	.name = "export",
	.summary = "write a profile for speedscope, as collapsed stacks or as a flame graph",
	.usage = "-f speedscope|collapsed|svg|pprof FILE...",
	.about = "Reads pprof profiles of any program: files, '-' for standard input, or http:// and https:// addresses, whose "
		 "password is a token (http://user:TOKEN@host/debug/pprof/io?seconds=10). Several are merged.\n\n"
		 "A difference of two profiles is refused: the width of a frame cannot be negative. 'go tool pprof' shows one.",
	.options = options,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.argument = "FILE",
	.arguments = offsetof(struct export_command, files),
	.min = 1,
	.max = 1000,
	.completes = COMPLETES_FILE,
	.check = check,
	.run = run,
};
