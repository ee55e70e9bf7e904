// SPDX-License-Identifier: Apache-2.0
// The rows of a window as a pprof profile.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/hostinfo.h"
#include "agent/recorder_internal.h"
#include "agent/service.h"
#include "common/text.h"
#include "pprof/builder.h"

struct output {
	struct recorder *r;
	struct pprof_builder *b;
	struct resolver *resolver;
	uint32_t kernel_mapping;
	double period_ns; // of a CPU sample
};

static uint32_t mapping_id(struct output *o, const struct frame *f)
{
	const struct frame_mapping *m = f->mapping;
	struct pprof_mapping_info info = { .has_functions = true };

	if (f->kind == FRAME_KERNEL) {
		info.file = "[kernel.kallsyms]";
		return o->kernel_mapping ? o->kernel_mapping : (o->kernel_mapping = pprof_add_mapping(o->b, &info));
	}
	if (!m)
		return 1;
	info.start = m->start;
	info.limit = m->limit;
	info.offset = m->offset;
	info.file = m->file;
	info.build_id = m->build_id;
	info.has_filenames = m->has_filenames;
	info.has_line_numbers = m->has_line_numbers;
	info.has_inline_frames = m->has_inline_frames;
	return pprof_add_mapping(o->b, &info);
}

static uint32_t location_id(struct output *o, const struct frame *f)
{
	struct pprof_line_info lines[SYM_LINES_MAX];
	uint32_t mapping;

	if (f->kind == FRAME_SYNTHETIC)
		return pprof_add_frame(o->b, f->lines[0].name);
	mapping = mapping_id(o, f);
	for (unsigned i = 0; i < f->n_lines; i++)
		lines[i] = (struct pprof_line_info){ .name = f->lines[i].name, .system_name = f->lines[i].system_name,
						     .file = f->lines[i].file, .line = f->lines[i].line };
	return mapping ? pprof_add_location(o->b, mapping, f->address, lines, f->n_lines) : 0;
}

#define LABELS_MAX 8

// Always in this order; which there are depends only on --labels.
static unsigned make_labels(struct output *o, const struct row *row, char comm[64], struct pprof_label_info l[LABELS_MAX])
{
	enum label_set set = o->r->options.labels;
	bool io = !row->key.cpu;
	unsigned n = 0;

	if (set == LABELS_NONE)
		return 0;
	thread_stem(row->key.comm, comm, 64);
	if (set == LABELS_ALL && *comm)
		l[n++] = (struct pprof_label_info){ .key = "comm", .text = comm };
	if (io)
		l[n++] = (struct pprof_label_info){ .key = "device", .text = o->r->disks[row->key.disk] };
	if (io)
		l[n++] = (struct pprof_label_info){ .key = "op", .text = filter_op_name(row->key.op) };
	l[n++] = (struct pprof_label_info){ .key = "service", .text = resolver_service(o->resolver, row) };
	if (set == LABELS_ALL && row->key.tgid)
		l[n++] = (struct pprof_label_info){ .key = "pid", .number = row->key.tgid };
	if (io && !row->key.not_sampled) {
		if (set == LABELS_ALL)
			l[n++] = (struct pprof_label_info){ .key = "bytes", .number = row->key.bytes, .unit = "bytes" };
		l[n++] = (struct pprof_label_info){ .key = "latency", .number = (int64_t)row->key.latency, .unit = "nanoseconds" };
	}
	return n;
}

#define ROOTS_MAX 8

// The frames that --root asks for, "service,device": the labels' values.
static unsigned root_frames(struct output *o, const struct row *row, char text[ROOTS_MAX][80], const char *out[ROOTS_MAX])
{
	const char *at = o->r->options.root;
	char comm[64];
	unsigned n = 0;

	while (at && *at && n < ROOTS_MAX) {
		size_t len = strcspn(at, ",");
		const char *value = NULL;

		if (len == 6 && !strncmp(at, "device", len))
			value = row->key.cpu ? "[cpu]" : o->r->disks[row->key.disk];
		else if (len == 2 && !strncmp(at, "op", len))
			value = row->key.cpu ? "[cpu]" : filter_op_name(row->key.op);
		else if (len == 7 && !strncmp(at, "service", len))
			value = resolver_service(o->resolver, row);
		else if (len == 4 && !strncmp(at, "comm", len)) {
			thread_stem(row->key.comm, comm, sizeof(comm));
			value = comm;
		}
		if (value)
			snprintf(text[n], sizeof(text[n]), "%s", value);
		else if (len == 3 && !strncmp(at, "pid", len))
			snprintf(text[n], sizeof(text[n]), "pid %u", row->key.tgid);
		else if (len == 7 && !strncmp(at, "latency", len))
			text_time(text[n], sizeof(text[n]), (double)row->key.latency);
		else if (len == 5 && !strncmp(at, "bytes", len))
			text_bytes(text[n], sizeof(text[n]), row->key.bytes);
		else
			snprintf(text[n], sizeof(text[n]), "[%.*s]", (int)len, at);
		out[n] = text[n];
		n++;
		at += len;
		at += *at == ',';
	}
	return n;
}

static int64_t whole(double value)
{
	return value < 9.2e18 ? llround(value) : INT64_MAX;
}

static int add_row(struct output *o, const struct row *row)
{
	const struct frame *frames[FRAMES_MAX];
	struct pprof_label_info labels[LABELS_MAX];
	uint32_t locations[FRAMES_MAX];
	char text[ROOTS_MAX][80], comm[64];
	const char *roots[ROOTS_MAX];
	int64_t values[PPROF_TYPES] = { 0 };
	unsigned n_roots = root_frames(o, row, text, roots), n_labels;
	bool recovered;
	int n = resolver_row(o->resolver, row, roots, n_roots, frames, &recovered);

	if (n < 0)
		return n;
	o->r->resolved += row->samples;
	o->r->recovered += recovered ? row->samples : 0;
	for (int i = 0; i < n; i++) {
		locations[n - 1 - i] = location_id(o, frames[i]);
		if (!locations[n - 1 - i])
			return -ENOMEM;
	}
	if (row->key.cpu) {
		values[PPROF_CPU] = whole(row->cpu * o->period_ns);
	} else {
		values[PPROF_IO_OPS] = whole(row->ops);
		values[PPROF_IO_TIME] = whole(row->time_ns);
		if (row->key.op == OP_READ)
			values[PPROF_READ_BYTES] = whole(row->bytes);
		if (row->key.op == OP_WRITE)
			values[PPROF_WRITE_BYTES] = whole(row->bytes);
	}
	n_labels = make_labels(o, row, comm, labels);
	return pprof_add_sample(o->b, locations, (unsigned)n, values, labels, n_labels);
}

static void comment_devices(struct output *o, struct rows *rows)
{
	struct recorder *r = o->r;

	for (unsigned i = 0; i < AGGREGATE_DISKS; i++) {
		const struct device *d;
		uint64_t ops = 0;

		for (uint8_t op = 0; op < OP_CLASSES; op++) {
			uint64_t n = rows_exact_ops(rows, (uint16_t)i, op);

			if (n)
				pprof_add_comment(o->b, "total node=%s device=%s op=%s ops=%" PRIu64 " bytes=%" PRIu64, r->node,
						  r->disks[i], filter_op_name(op), n, rows_exact_bytes(rows, (uint16_t)i, op));
			ops += n;
		}
		d = ops ? devices_find(r->devices, r->disk_devs[i]) : NULL;
		if (d)
			pprof_add_comment(o->b, "device node=%s name=%s mapper=%s mount=%s scheduler=%s", r->node, r->disks[i],
					  *d->mapper ? d->mapper : "-", *d->mount ? d->mount : "-", d->scheduler);
	}
}

static void comment_losses(struct output *o)
{
	struct recorder *r = o->r;

	for (unsigned c = 0; c < LOSS_CAUSES; c++)
		if (r->losses[c])
			pprof_add_comment(o->b, "lost node=%s cause=%s count=%" PRIu64 " (%s)", r->node, loss_name(c), r->losses[c],
					  loss_explanation(c));
	pprof_add_comment(o->b, "kept_out node=%s own_ops=%" PRIu64 " second_level_ops=%" PRIu64 " filtered_ops=%" PRIu64, r->node,
			  r->kernel.own_ops, r->kernel.second_level_ops, r->kernel.filtered_ops);
	if (r->recovered)
		pprof_add_comment(o->b,
				  "recovered node=%s samples=%" PRIu64 " of=%" PRIu64
				  " (the caller of a system-call wrapper was found on the stack, not by frame pointer)",
				  r->node, r->recovered, r->resolved);
}

static void comment_host(struct output *o, uint64_t time_real, uint64_t duration)
{
	struct recorder *r = o->r;
	struct utsname u;

	if (uname(&u))
		strcpy(u.release, "unknown");
	pprof_add_comment(o->b, "window node=%s start=%" PRIu64 " duration=%" PRIu64 " (nanoseconds)", r->node, time_real, duration);
	pprof_add_comment(o->b, "blkprof version=%s backend=%s kernel=%s rate=%u cpu_hz=%u", BLKPROF_VERSION,
			  recorder_backend(r), u.release, r->options.rate, r->options.cpu_hz);
	if (*r->reason)
		pprof_add_comment(o->b, "backend_reason node=%s %s", r->node, r->reason);
	if (r->options.rate)
		pprof_add_comment(o->b, "sampled node=%s stacks=%" PRIu64 " (operations and bytes are exact, time is an estimate)",
				  r->node, r->kernel.samples);
}

int profile_make(struct recorder *r, struct rows *rows, uint64_t time_real, uint64_t duration, struct buf *ret_gz)
{
	struct output o = { .r = r, .period_ns = r->options.cpu_hz ? 1e9 / r->options.cpu_hz : 0 };
	struct buf raw = { 0 };
	char owner[80];
	int err = -ENOMEM;

	snprintf(owner, sizeof(owner), "[node %s]", r->node);
	o.b = pprof_builder_new(owner);
	o.resolver = resolver_new(r->symbolizer, r->procs, r->stacks);
	if (!o.b || !o.resolver)
		goto out;
	r->resolved = r->recovered = 0;
	for (unsigned i = 0; i < rows_count(rows); i++) {
		err = add_row(&o, rows_get(rows, i));
		if (err)
			goto out;
	}
	r->losses[LOSS_STACK_MISSING] = resolver_stacks_missing(o.resolver);
	recorder_sum_losses(r);
	pprof_set_time(o.b, time_real, duration);
	comment_host(&o, time_real, duration);
	comment_devices(&o, rows);
	comment_losses(&o);
	err = pprof_encode(o.b, &raw);
	if (!err)
		err = pprof_gzip(raw.data, raw.len, ret_gz);
out:
	buf_free(&raw);
	resolver_free(o.resolver);
	pprof_builder_free(o.b);
	return err;
}
