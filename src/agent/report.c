// SPDX-License-Identifier: Apache-2.0
// What `record` prints: totals, devices, the heaviest stacks, losses; or why there is nothing.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/recorder_internal.h"
#include "common/hash.h"
#include "common/text.h"

#define DEPTH 12 // frames shown of a stack, from the leaf

// Rows of one stack by its names, whatever their process, device, operation and classes.
struct heavy {
	const struct row *row; // one of them
	uint64_t names;	       // hash of the frames' names
	double ops, time, bytes;
};

static int compare_names(const void *pa, const void *pb)
{
	const struct heavy *a = pa, *b = pb;

	return a->names < b->names ? -1 : a->names > b->names;
}

static int compare_weight(const void *pa, const void *pb)
{
	const struct heavy *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time > b->time ? -1 : 1;
	if (a->ops != b->ops)
		return a->ops > b->ops ? -1 : 1;
	return compare_names(pa, pb);
}

static uint64_t names_of(struct resolver *resolver, const struct row *row)
{
	const struct frame *frames[FRAMES_MAX];
	int n = resolver_row(resolver, &row->key, NULL, 0, frames);
	uint64_t h = 0;

	for (int i = 0; i < n; i++)
		for (unsigned k = frames[i]->n_lines; k; k--)
			h = hash_bytes(frames[i]->lines[k - 1].name, strlen(frames[i]->lines[k - 1].name), h + 1);
	return h;
}

static unsigned gather(struct resolver *resolver, const struct rows *rows, struct heavy *h)
{
	unsigned n = 0, out = 0;

	for (unsigned i = 0; i < rows_count(rows); i++) {
		const struct row *row = rows_get(rows, i);

		if (row->key.cpu)
			continue;
		h[n++] = (struct heavy){ .row = row, .names = names_of(resolver, row), .ops = row->ops, .time = row->time_ns,
					 .bytes = row->bytes };
	}
	if (!n)
		return 0;
	qsort(h, n, sizeof(*h), compare_names);
	for (unsigned i = 1; i < n; i++) {
		if (compare_names(&h[out], &h[i])) {
			h[++out] = h[i];
			continue;
		}
		h[out].ops += h[i].ops;
		h[out].time += h[i].time;
		h[out].bytes += h[i].bytes;
	}
	qsort(h, out + 1, sizeof(*h), compare_weight);
	return out + 1;
}

static void print_stack(struct resolver *resolver, const struct heavy *h, double total, struct buf *out)
{
	const struct frame *frames[FRAMES_MAX];
	char time[32], mean[32], bytes[32], count[32];
	int n = resolver_row(resolver, &h->row->key, NULL, 0, frames), shown;

	if (n <= 0)
		return;
	buf_printf(out, "%5.1f%%  %s in %s operations (mean %s), %s  %s\n", total > 0 ? 100 * h->time / total : 0,
		   text_time(time, sizeof(time), h->time), text_count(count, sizeof(count), (uint64_t)h->ops),
		   text_time(mean, sizeof(mean), h->ops > 0 ? h->time / h->ops : 0), text_bytes(bytes, sizeof(bytes), h->bytes),
		   frames[0]->lines[0].name);
	shown = n - 1 > DEPTH ? DEPTH : n - 1;
	for (int i = n - shown; i < n; i++)
		for (unsigned k = frames[i]->n_lines; k; k--)
			buf_printf(out, "          %s%s\n", i == n - shown && k == frames[i]->n_lines && shown < n - 1 ? "… " : "",
				   frames[i]->lines[k - 1].name);
}

static void print_devices(struct recorder *r, struct buf *out)
{
	char ops[32], bytes[32], time[32], mean[32];

	buf_printf(out, "\n%-16s %-12s %14s %12s %12s %12s\n", "device", "operation", "operations", "bytes", "time", "mean");
	for (unsigned d = 0; d < AGGREGATE_DISKS; d++) {
		for (uint8_t op = 0; op < OP_CLASSES; op++) {
			uint64_t n = rows_exact_ops(r->last->rows, (uint16_t)d, op);
			double t = 0;

			if (!n)
				continue;
			for (unsigned i = 0; i < rows_count(r->last->rows); i++) {
				const struct row *row = rows_get(r->last->rows, i);

				if (row->key.disk == d && row->key.op == op)
					t += row->time_ns;
			}
			buf_printf(out, "%-16s %-12s %14s %12s %12s %12s\n", r->disks[d], filter_op_name(op),
				   text_count(ops, sizeof(ops), n),
				   text_bytes(bytes, sizeof(bytes), (double)rows_exact_bytes(r->last->rows, (uint16_t)d, op)),
				   text_time(time, sizeof(time), t), text_time(mean, sizeof(mean), t / (double)n));
		}
	}
}

static void print_losses(struct recorder *r, struct buf *out)
{
	char n[32];
	bool any = false;

	for (unsigned c = 0; c < LOSS_CAUSES; c++) {
		if (!r->last->info.losses[c])
			continue;
		buf_printf(out, "%s%12s  %s: %s\n", any ? "" : "\nlost:\n", text_count(n, sizeof(n), r->last->info.losses[c]), loss_name(c),
			   loss_explanation(c));
		any = true;
	}
	if (!any)
		buf_printf(out, "\nlost: nothing\n");
	if (r->last->info.second_level_ops)
		buf_printf(out, "kept out: %s operations of devices below a stacked one, counted at the top\n",
			   text_count(n, sizeof(n), r->last->info.second_level_ops));
	if (r->last->info.own_ops)
		buf_printf(out, "kept out: %s operations of blkprof itself\n", text_count(n, sizeof(n), r->last->info.own_ops));
	if (r->last->info.filtered_ops)
		buf_printf(out, "kept out: %s operations that the filters do not match\n",
			   text_count(n, sizeof(n), r->last->info.filtered_ops));
}

struct jvms {
	struct buf *out;
	unsigned n;
};

#define JVMS_SHOWN 5

static void print_jvm(void *context, const struct proc_jvm *jvm)
{
	struct jvms *j = context;

	if (++j->n <= JVMS_SHOWN)
		buf_printf(j->out, "cut: stacks of %s (process %d) end in Java code; start it with -XX:+PreserveFramePointer\n", jvm->name,
			   (int)jvm->pid);
}

static void print_jvms(struct recorder *r, struct buf *out)
{
	struct jvms j = { out, 0 };

	procs_cut_jvms(r->procs, r->last->info.start_mono, print_jvm, &j);
	if (j.n > JVMS_SHOWN)
		buf_printf(out, "cut: and of %u more JVMs\n", j.n - JVMS_SHOWN);
}

static void print_empty(struct recorder *r, struct buf *out)
{
	struct whyempty_input in = {
		.filtered_ops = r->last->info.filtered_ops, .own_ops = r->last->info.own_ops, .filter = &r->options.filter,
		.follow = r->options.follow, .backend = recorder_backend(r),
	};
	char why[512];

	if (whyempty(&in, r->before, r->after, why, sizeof(why)))
		buf_printf(out, "no block I/O recorded: %s\n", why);
}

int recorder_report(struct recorder *r, unsigned top, struct buf *out)
{
	struct heavy *heavy = calloc(rows_count(r->last->rows) + 1, sizeof(*heavy));
	const struct window_info *info = &r->last->info;
	double total = 0, seconds = (double)(info->end_mono - info->start_mono) / 1e9;
	char ops_text[32], time_text[32];
	uint64_t ops = 0;
	unsigned n;

	if (!heavy)
		return -ENOMEM;
	for (unsigned i = 0; i < rows_count(r->last->rows); i++) {
		total += rows_get(r->last->rows, i)->time_ns;
		ops += (uint64_t)rows_get(r->last->rows, i)->ops;
	}
	n = gather(r->resolver, r->last->rows, heavy);
	buf_printf(out, "%.1f s on %s by %s: %s operations, %s of I/O time%s, mean queue depth %.2f, %s stacks taken\n", seconds,
		   r->node, recorder_backend(r), text_count(ops_text, sizeof(ops_text), ops),
		   text_time(time_text, sizeof(time_text), total), r->options.rate ? " (estimated)" : "",
		   seconds > 0 ? total / 1e9 / seconds : 0, text_count((char[32]){ 0 }, 32, info->samples));
	if (!ops && !n) {
		print_empty(r, out);
	} else {
		print_devices(r, out);
		buf_printf(out, "\nheaviest stacks by I/O time:\n");
		for (unsigned i = 0; i < n && i < top; i++)
			print_stack(r->resolver, &heavy[i], total, out);
	}
	print_losses(r, out);
	print_jvms(r, out);
	free(heavy);
	return out->error;
}
