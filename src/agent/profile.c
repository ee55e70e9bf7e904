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
#include "agent/series.h"
#include "agent/service.h"
#include "agent/view.h"
#include "common/text.h"
#include "pprof/builder.h"

struct output {
	const struct window *w;
	struct recorder *r;
	struct pprof_builder *b;
	uint32_t service; // whose rows are shown, 0 = all
	struct window_view view; // and which of them, and how
	bool device[AGGREGATE_DISKS]; // that view.device means
	uint32_t kernel_mapping;
	double period_ns; // of a CPU sample
	uint64_t recovered, resolved;  // samples whose skipped caller was recovered, of all
	uint64_t ops[AGGREGATE_DISKS][OP_CLASSES], bytes[AGGREGATE_DISKS][OP_CLASSES]; // of the rows shown
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

	if (f->kind == FRAME_SYNTHETIC && !f->lines[0].system_name)
		return pprof_add_frame(o->b, f->lines[0].name);
	mapping = mapping_id(o, f);
	for (unsigned i = 0; i < f->n_lines; i++)
		lines[i] = (struct pprof_line_info){ .name = f->lines[i].name, .system_name = f->lines[i].system_name,
						     .file = f->lines[i].file, .line = f->lines[i].line };
	return mapping ? pprof_add_location(o->b, mapping, f->address, lines, f->n_lines) : 0;
}

#define LABELS_MAX 8

// Always in this order; which there are depends only on --labels.
static unsigned make_labels(struct output *o, const struct row *row, struct pprof_label_info l[LABELS_MAX])
{
	enum label_set set = o->view.labels;
	const char *comm = resolver_comm(o->r->resolver, &row->key);
	bool io = !row->key.cpu;
	unsigned n = 0;

	if (set == LABELS_NONE)
		return 0;
	if ((set == LABELS_ALL || set == LABELS_FEW_COMM) && *comm)
		l[n++] = (struct pprof_label_info){ .key = "comm", .text = comm };
	if (io)
		l[n++] = (struct pprof_label_info){ .key = "device", .text = o->r->disks[row->key.disk] };
	if (io)
		l[n++] = (struct pprof_label_info){ .key = "op", .text = filter_op_name(row->key.op) };
	l[n++] = (struct pprof_label_info){ .key = "service", .text = resolver_service(o->r->resolver, &row->key) };
	if (set == LABELS_ALL && row->key.who.tgid)
		l[n++] = (struct pprof_label_info){ .key = "pid", .number = row->key.who.tgid };
	if (io && !row->key.not_sampled) {
		if (set == LABELS_ALL)
			l[n++] = (struct pprof_label_info){ .key = "bytes", .number = row->key.bytes, .unit = "bytes" };
		if (!row->key.unseen)
			l[n++] = (struct pprof_label_info){ .key = "latency", .number = (int64_t)row->key.latency, .unit = "nanoseconds" };
	}
	return n;
}

#define ROOTS_MAX 8

// The frames that --root asks for, "service,device": the labels' values.
static unsigned root_frames(struct output *o, const struct row *row, char text[ROOTS_MAX][80], const char *out[ROOTS_MAX])
{
	const char *at = o->view.root;
	unsigned n = 0;

	while (at && *at && n < ROOTS_MAX) {
		size_t len = strcspn(at, ",");
		const char *value = NULL;

		if (len == 6 && !strncmp(at, "device", len))
			value = row->key.cpu ? "[cpu]" : o->r->disks[row->key.disk];
		else if (len == 2 && !strncmp(at, "op", len))
			value = row->key.cpu ? "[cpu]" : filter_op_name(row->key.op);
		else if (len == 7 && !strncmp(at, "service", len))
			value = resolver_service(o->r->resolver, &row->key);
		else if (len == 4 && !strncmp(at, "comm", len))
			value = resolver_comm(o->r->resolver, &row->key);
		if (value)
			snprintf(text[n], sizeof(text[n]), "%s", value);
		else if (len == 3 && !strncmp(at, "pid", len))
			snprintf(text[n], sizeof(text[n]), "pid %u", row->key.who.tgid);
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

static void values_of(const struct output *o, const struct row *row, int64_t values[PPROF_TYPES])
{
	if (row->key.cpu) {
		values[PPROF_CPU] = whole(row->cpu * o->period_ns);
		return;
	}
	values[PPROF_IO_OPS] = whole(row->ops);
	values[PPROF_IO_TIME] = whole(row->time_ns);
	if (row->key.op == OP_READ)
		values[PPROF_READ_BYTES] = whole(row->bytes);
	if (row->key.op == OP_WRITE)
		values[PPROF_WRITE_BYTES] = whole(row->bytes);
}

static void count_row(struct output *o, const struct row *row)
{
	const struct frame_stack *stack = frames_stack_get(resolver_frames(o->r->resolver), row->key.who.stack);

	o->resolved += row->samples;
	if (stack && stack->recovered)
		o->recovered += row->samples;
	if (row->key.cpu)
		return;
	o->ops[row->key.disk][row->key.op] += (uint64_t)whole(row->ops);
	o->bytes[row->key.disk][row->key.op] += (uint64_t)whole(row->bytes);
}

static int add_row(struct output *o, const struct row *row)
{
	const struct frame *frames[FRAMES_MAX];
	struct pprof_label_info labels[LABELS_MAX];
	uint32_t locations[FRAMES_MAX];
	char text[ROOTS_MAX][80];
	const char *roots[ROOTS_MAX];
	int64_t values[PPROF_TYPES] = { 0 };
	unsigned n_roots = root_frames(o, row, text, roots), n_labels;
	int n = resolver_row(o->r->resolver, &row->key, roots, n_roots, frames);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		locations[n - 1 - i] = location_id(o, frames[i]);
		if (!locations[n - 1 - i])
			return -ENOMEM;
	}
	count_row(o, row);
	values_of(o, row, values);
	n_labels = make_labels(o, row, labels);
	return pprof_add_sample(o->b, locations, (unsigned)n, values, labels, n_labels);
}

// What the completions that the kernel did not show make of the time. Kernels before 6.7 do not count the runs that they skip:
// there this is all that tells of them.
static void comment_missed(struct output *o, unsigned disk, uint8_t op)
{
	double missed = rows_missed(o->w->rows, (uint16_t)disk, op);

	if (missed > 0)
		pprof_add_comment(o->b,
				  "corrected node=%s device=%s op=%s missed=%.4f operations=%" PRIu64 " window=%" PRIu64
				  " (this share of the completions was not seen; time is scaled by submitted over completed samples)",
				  o->r->node, o->r->disks[disk], filter_op_name(op), missed,
				  (uint64_t)llround(missed * (double)o->ops[disk][op]), o->w->info.start);
}

// A value of a comment: blanks and what is not to be seen as %20 and the like, so that a name cannot pass for other fields.
static const char *field(char *out, size_t cap, const char *text)
{
	size_t n = 0;

	for (; *text && n + 4 < cap; text++) {
		unsigned char c = (unsigned char)*text;

		if (c <= ' ' || c == '%' || c == 0x7f)
			n += (size_t)snprintf(out + n, cap - n, "%%%02X", c);
		else
			out[n++] = *text;
	}
	out[n] = 0;
	return n ? out : "-";
}

static void comment_device(struct output *o, unsigned i)
{
	struct recorder *r = o->r;
	char name[128], mapper[512], mount[1024], scheduler[128];
	const struct device *d;
	uint64_t ops = 0;

	for (unsigned op = 0; op < OP_CLASSES; op++) {
		if (o->ops[i][op])
			pprof_add_comment(o->b, "total node=%s device=%s op=%s ops=%" PRIu64 " bytes=%" PRIu64 " window=%" PRIu64, r->node,
					  field(name, sizeof(name), r->disks[i]), filter_op_name(op), o->ops[i][op], o->bytes[i][op], o->w->info.start);
		if (o->ops[i][op])
			comment_missed(o, i, (uint8_t)op);
		ops += o->ops[i][op];
	}
	d = ops ? devices_find(r->devices, r->disk_devs[i]) : NULL;
	if (d)
		pprof_add_comment(o->b, "device node=%s name=%s mapper=%s mount=%s scheduler=%s", r->node,
				  field(name, sizeof(name), r->disks[i]), field(mapper, sizeof(mapper), d->mapper),
				  field(mount, sizeof(mount), d->mount), field(scheduler, sizeof(scheduler), d->scheduler));
}

#define SERIES_LEAST 4 // fewer steps say nothing of how a load varies

// How the node's load went, for those who compare windows. Only whole steps: the last one has just begun.
static void comment_series(struct output *o)
{
	const struct series *s = rows_series(o->w->rows);
	uint64_t whole_steps = (o->w->info.end_mono - o->w->info.start_mono) / s->step;
	unsigned n = whole_steps < SERIES_STEPS ? (unsigned)whole_steps : SERIES_STEPS;

	if (o->service || o->view.service || o->view.device)
		return;

	for (uint16_t disk = 0; disk < AGGREGATE_DISKS && n >= SERIES_LEAST; disk++) {
		for (uint8_t op = 0; op < OP_CLASSES; op++) {
			const struct series_steps *of = s->of[disk][op];
			struct buf text = { 0 };

			for (unsigned i = 0; of && i < n; i++)
				buf_printf(&text, "%s%.0f", i ? "," : " ops=", of->ops[i]);
			for (unsigned i = 0; of && i < n; i++)
				buf_printf(&text, "%s%.0f", i ? "," : " time=", of->time_ns[i]);
			buf_byte(&text, 0);
			if (of && !text.error)
				pprof_add_comment(o->b, "series node=%s device=%s op=%s start=%" PRIu64 " step=%" PRIu64 "%s", o->r->node,
						  o->r->disks[disk], filter_op_name(op), o->w->info.start, s->step, (char *)text.data);
			buf_free(&text);
		}
	}
}

static void comment_losses(struct output *o)
{
	const struct window_info *info = &o->w->info;
	const char *node = o->r->node;

	for (unsigned c = 0; c < LOSS_CAUSES; c++)
		if (info->losses[c])
			pprof_add_comment(o->b, "lost node=%s cause=%s count=%" PRIu64 " window=%" PRIu64 " (%s)", node, loss_name(c),
					  info->losses[c], info->start, loss_explanation(c));
	pprof_add_comment(o->b,
			  "kept_out node=%s own_ops=%" PRIu64 " second_level_ops=%" PRIu64 " filtered_ops=%" PRIu64 " window=%" PRIu64,
			  node, info->own_ops, info->second_level_ops, info->filtered_ops, info->start);
	if (o->recovered)
		pprof_add_comment(o->b,
				  "recovered node=%s samples=%" PRIu64 " of=%" PRIu64 " window=%" PRIu64
				  " (the caller of a system-call wrapper was found on the stack, not by frame pointer)",
				  node, o->recovered, o->resolved, info->start);
}

static void comment_jvm(void *context, const struct proc_jvm *jvm)
{
	char name[64], service[768];
	struct output *o = context;
	const char *shown = o->view.service;

	if (!shown && o->service && o->service != SERVICE_NOT_SAMPLED)
		shown = frames_text_get(resolver_frames(o->r->resolver), o->service);
	if (o->service != SERVICE_NOT_SAMPLED && (!shown || !strcmp(shown, jvm->service)))
		pprof_add_comment(o->b, "java node=%s service=%s process=%s pid=%d stack_quality=no_frame_pointers (stacks of this JVM end in"
				  " Java code: it was started without -XX:+PreserveFramePointer)", o->r->node,
				  field(service, sizeof(service), jvm->service), field(name, sizeof(name), jvm->name), (int)jvm->pid);
}

static void comment_host(struct output *o)
{
	const struct window_info *info = &o->w->info;
	struct recorder *r = o->r;
	struct utsname u;

	if (uname(&u))
		strcpy(u.release, "unknown");
	pprof_add_comment(o->b, "window node=%s start=%" PRIu64 " duration=%" PRIu64 " (nanoseconds)", r->node, info->start,
			  info->end_mono - info->start_mono);
	pprof_add_comment(o->b, "blkprof version=%s backend=%s kernel=%s rate=%u cpu_hz=%u", BLKPROF_VERSION,
			  recorder_backend(r), u.release, r->options.rate, r->options.cpu_hz);
	if (*r->reason)
		pprof_add_comment(o->b, "backend_reason node=%s %s", r->node, r->reason);
	if (r->options.rate)
		pprof_add_comment(o->b,
				  "sampled node=%s stacks=%" PRIu64 " window=%" PRIu64
				  " (operations and bytes are exact, time is an estimate)",
				  r->node, info->samples, info->start);
}

static bool is_shown(const struct output *o, const struct row *row)
{
	if (o->view.device && (row->key.cpu || !o->device[row->key.disk]))
		return false;
	if (o->view.service)
		return !strcmp(resolver_service(o->r->resolver, &row->key), o->view.service);
	return !o->service || (row->key.not_sampled ? SERVICE_NOT_SAMPLED : row->key.who.service) == o->service;
}

static int add_rows(struct output *o)
{
	const struct rows *rows = o->w->rows;
	int err = 0;

	for (unsigned i = 0; !err && i < rows_count(rows); i++)
		if (is_shown(o, rows_get(rows, i)))
			err = add_row(o, rows_get(rows, i));
	return err;
}

static void owner_name(const struct recorder *r, uint32_t service, const struct window_view *v, char *out, size_t cap)
{
	if (v->service)
		snprintf(out, cap, "[service %s]", v->service);
	else if (service == SERVICE_NOT_SAMPLED)
		snprintf(out, cap, "[service [not sampled]]");
	else if (service)
		snprintf(out, cap, "[service %s]", frames_text_get(resolver_frames(r->resolver), service));
	else
		snprintf(out, cap, "[node %s]", r->node);
}

static void choose_devices(struct output *o)
{
	const char *name = o->view.device;

	if (!name)
		return;
	if (!strncmp(name, "/dev/", 5))
		name += 5;
	for (unsigned i = 0; i < o->r->n_disks; i++) {
		const struct device *d = devices_find(o->r->devices, o->r->disk_devs[i]);

		o->device[i] = !strcmp(o->r->disks[i], name) ||
			       (d && (!strcmp(d->mapper, o->view.device) || !strcmp(d->mount, o->view.device)));
	}
}

int profile_make(const struct window *w, uint32_t service, const struct window_view *view, struct buf *ret_gz)
{
	struct recorder *r = w->recorder;
	struct output *o = calloc(1, sizeof(*o));
	struct buf raw = { 0 };
	char owner[320];
	int err = -ENOMEM;

	if (!o)
		return -ENOMEM;
	*o = (struct output){ .w = w, .r = r, .service = service, .period_ns = r->options.cpu_hz ? 1e9 / r->options.cpu_hz : 0 };
	o->view = view ? *view : (struct window_view){ .labels = r->options.labels, .type = PPROF_IO_TIME };
	o->view.root = o->view.root ? o->view.root : r->options.root;
	owner_name(r, service, &o->view, owner, sizeof(owner));
	choose_devices(o);
	o->b = pprof_builder_new(owner);
	if (!o->b)
		goto out;
	err = add_rows(o);
	if (err)
		goto out;
	pprof_set_default_type(o->b, o->view.type);
	pprof_set_time(o->b, w->info.start, w->info.end_mono - w->info.start_mono);
	comment_host(o);
	for (unsigned i = 0; i < AGGREGATE_DISKS; i++)
		comment_device(o, i);
	comment_series(o);
	comment_losses(o);
	if (o->r->procs)
		procs_cut_jvms(o->r->procs, o->w->info.start_mono, comment_jvm, o);
	err = pprof_encode(o->b, &raw);
	if (!err)
		err = pprof_gzip(raw.data, raw.len, ret_gz);
out:
	buf_free(&raw);
	pprof_builder_free(o->b);
	free(o);
	return err;
}
