// SPDX-License-Identifier: Apache-2.0
// The summary for a terminal.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "timeline/timeline_internal.h"

static uint64_t waits_for_cpu(const struct thread *th)
{
	return th->time[THREAD_RUNNABLE] + th->time[THREAD_PREEMPTED];
}

static int by_cpu_time(const void *a, const void *b)
{
	const struct thread *x = *(const struct thread *const *)a, *y = *(const struct thread *const *)b;

	if (x->time[THREAD_RUNNING] != y->time[THREAD_RUNNING])
		return x->time[THREAD_RUNNING] < y->time[THREAD_RUNNING] ? 1 : -1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static const char *waker_name(struct timeline *t, const struct waker *w, char *out, size_t cap)
{
	const struct thread *th = thread_table_find(t->threads, w->tid);

	if (!w->tid)
		return "interrupt";
	snprintf(out, cap, "%s/%" PRIu32, th && *th->comm ? th->comm : w->comm, w->tid);
	return out;
}

static int by_count(const void *a, const void *b)
{
	const struct waker *x = a, *y = b;

	return x->count != y->count ? (x->count < y->count ? 1 : -1) : 0;
}

static void print_wakers(struct timeline *t, const struct thread *th, struct buf *to)
{
	struct waker sorted[THREAD_WAKERS];
	char name[48];

	memcpy(sorted, th->wakers, sizeof(sorted));
	qsort(sorted, THREAD_WAKERS, sizeof(*sorted), by_count);
	for (unsigned i = 0; i < 2 && sorted[i].count; i++)
		buf_printf(to, "%s%s %" PRIu64, i ? ", " : "", waker_name(t, &sorted[i], name, sizeof(name)), sorted[i].count);
}

static void print_requests(const struct thread *th, struct buf *to)
{
	char time[32];

	if (th->requests)
		buf_printf(to, "%s%" PRIu64 " requests of %s", th->woken ? "; " : "", th->requests,
			   text_time(time, sizeof(time), (double)th->request_time / (double)th->requests));
}

static void print_thread(struct timeline *t, const struct thread *th, struct buf *to)
{
	char name[32], a[32], b[32], c[32], d[32], e[32];

	snprintf(name, sizeof(name), "%s/%" PRIu32, *th->comm ? th->comm : "?", th->tid);
	buf_printf(to, "  %-23s %10s %10s %10s %10s %10s %9" PRIu64 " %9" PRIu64 " %7" PRIu64 " %8" PRIu64 "  ", name,
		   text_time(a, sizeof(a), (double)th->time[THREAD_RUNNING]), text_time(b, sizeof(b), (double)waits_for_cpu(th)),
		   text_time(c, sizeof(c), (double)th->time[THREAD_DISK]),
		   text_time(d, sizeof(d), (double)(th->time[THREAD_BLOCKED] + th->time[THREAD_STOPPED])),
		   text_time(e, sizeof(e), (double)th->time[THREAD_SLEEPING]), th->voluntary, th->involuntary, th->ops, th->woken);
	print_wakers(t, th, to);
	print_requests(th, to);
	buf_byte(to, '\n');
}

static void print_threads(struct timeline *t, unsigned rows, struct buf *to)
{
	size_t n = thread_table_count(t->threads);
	struct thread **sorted = malloc((n ? n : 1) * sizeof(*sorted));

	if (!sorted) {
		to->error = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = thread_table_get(t->threads, i);
	qsort(sorted, n, sizeof(*sorted), by_cpu_time);
	if (n)
		buf_printf(to, "\n  %-23s %10s %10s %10s %10s %10s %9s %9s %7s %8s  %s\n", "THREAD", "ON CPU", "RUNNABLE", "DISK",
			   "BLOCKED", "SLEEPING", "SLEPT", "PREEMPTED", "I/O", "WOKEN", "BY");
	for (size_t i = 0; i < n && (!rows || i < rows); i++)
		print_thread(t, sorted[i], to);
	if (rows && n > rows)
		buf_printf(to, "  and %zu threads more\n", n - rows);
	free(sorted);
}

static void print_disk(const struct disk *disk, struct buf *to)
{
	char bytes[32], mean[32];

	for (unsigned op = 0; op < DISK_OPS; op++) {
		if (!disk->ops[op])
			continue;
		buf_printf(to, "  %-23s %-12s %9" PRIu64 " %10s %10s %10" PRIu64 "\n", disk->name, io_op_name(op), disk->ops[op],
			   text_bytes(bytes, sizeof(bytes), (double)disk->bytes[op]),
			   text_time(mean, sizeof(mean), (double)disk->time[op] / (double)disk->ops[op]), disk->most);
	}
	if (disk->open)
		buf_printf(to, "  %-23s %" PRIu64 " still in flight\n", disk->name, disk->open);
	if (disk->unseen)
		buf_printf(to, "  %-23s %" PRIu64 " whose end was not seen\n", disk->name, disk->unseen);
}

static void print_disks(struct timeline *t, struct buf *to)
{
	if (!disks_count(t->disks))
		return;
	buf_printf(to, "\n  %-23s %-12s %9s %10s %10s %10s\n", "DEVICE", "OPERATION", "COUNT", "BYTES", "MEAN", "IN FLIGHT");
	for (size_t i = 0; i < disks_count(t->disks); i++)
		print_disk(disks_at(t->disks, i), to);
}

static void print_unknown(struct timeline *t, struct buf *to)
{
	uint64_t threads = 0, ns = 0;
	char n[32], time[32];

	for (size_t i = 0; i < thread_table_count(t->threads); i++) {
		uint64_t unknown = thread_table_get(t->threads, i)->time[THREAD_UNKNOWN];

		threads += unknown > 0;
		ns += unknown;
	}
	if (ns)
		buf_printf(to, "unknown: what %s threads did for %s together, as the kernel did not tell of all their switches\n",
			   text_count(n, sizeof(n), threads), text_time(time, sizeof(time), (double)ns));
}

static void print_lost(const struct timeline_stats *s, struct buf *to)
{
	char n[32];

	for (unsigned i = 0; i < LOST_KINDS; i++)
		if (s->lost[i])
			buf_printf(to, "lost: %s %s%s\n", text_count(n, sizeof(n), s->lost[i]), lost_name(i),
				   i <= LOST_THREAD ? " (no room); a thread's time around them is unknown" : "");
	if (s->late)
		buf_printf(to, "lost: the place of %s events that came too late\n", text_count(n, sizeof(n), s->late));
	if (s->refused)
		buf_printf(to, "lost: %s threads and I/O beyond what is kept\n", text_count(n, sizeof(n), s->refused));
	if (s->left_out)
		buf_printf(to, "left out of the trace, which is full: %s events (--max-size)\n",
			   text_count(n, sizeof(n), s->left_out));
}

void timeline_summary(struct timeline *t, unsigned rows, struct buf *to)
{
	struct timeline_stats s;
	char time[32], n[32], m[32];

	timeline_get_stats(t, &s);
	buf_printf(to, "%s, %zu threads, %s switches, %s I/O", text_time(time, sizeof(time), (double)s.duration), s.threads,
		   text_count(n, sizeof(n), s.switches), text_count(m, sizeof(m), s.ops));
	if (s.requests)
		buf_printf(to, ", %s requests", text_count(n, sizeof(n), s.requests));
	buf_byte(to, '\n');
	print_threads(t, rows, to);
	print_disks(t, to);
	print_unknown(t, to);
	print_lost(&s, to);
}
