// SPDX-License-Identifier: Apache-2.0
#include "agent/whyempty.h"

#include <stdio.h>
#include <string.h>

#include "agent/filter.h"
#include "agent/io_snapshot.h"
#include "common/text.h"

// Less than this is what any node reads and writes on pipes and in /proc by itself.
#define NOTABLE (64u << 10)

// What processes did between two snapshots.
struct change {
	uint64_t rchar, wchar, read_bytes, write_bytes; // sums
	uint64_t paged_in, paged_out;			 // bytes that the kernel handed to block devices
	uint64_t most;					 // of one process
	pid_t most_pid;
	char most_comm[IO_COMM];
};

static uint64_t grown(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

static void add_process(struct change *c, const struct process_io *was, const struct process_io *is)
{
	static const struct process_io none;
	uint64_t chars;

	// A smaller count is another process with the number of one that ended.
	if (!was || is->rchar < was->rchar || is->wchar < was->wchar)
		was = &none;
	chars = is->rchar - was->rchar + is->wchar - was->wchar;
	c->rchar += is->rchar - was->rchar;
	c->wchar += is->wchar - was->wchar;
	c->read_bytes += grown(was->read_bytes, is->read_bytes);
	c->write_bytes += grown(was->write_bytes, is->write_bytes);
	if (chars <= c->most)
		return;
	c->most = chars;
	c->most_pid = is->pid;
	memcpy(c->most_comm, is->comm, sizeof(c->most_comm));
}

static struct change compare(const struct io_snapshot *before, const struct io_snapshot *after)
{
	struct change c = { 0 };
	size_t i = 0;

	for (size_t j = 0; j < after->n; j++) {
		while (i < before->n && before->process[i].pid < after->process[j].pid)
			i++;
		// A process that only the later one has began in between, unless the earlier one had no room for it.
		if (i < before->n && before->process[i].pid == after->process[j].pid)
			add_process(&c, &before->process[i], &after->process[j]);
		else if (!before->truncated)
			add_process(&c, NULL, &after->process[j]);
	}
	c.paged_in = grown(before->paged_in, after->paged_in);
	c.paged_out = grown(before->paged_out, after->paged_out);
	return c;
}

static bool has_filter(const struct whyempty_input *in)
{
	const struct filter *f = in->filter;

	return in->follow || (f && (f->n_pid || f->n_comm || f->n_cgroup || f->n_device || f->ops));
}

static const char *whose(const struct whyempty_input *in)
{
	const struct filter *f = in->filter;

	return in->follow ? "the command" : f && f->n_pid ? "the processes of --pid" : "this node's processes";
}

// "--pid and --device"
static void filter_names(const struct whyempty_input *in, char *out, size_t cap)
{
	const struct filter *f = in->filter;
	const char *names[6];
	unsigned n = 0;
	size_t len = 0;

	if (in->follow)
		names[n++] = "the command and its descendants";
	if (f && f->n_pid)
		names[n++] = "--pid";
	if (f && f->n_comm)
		names[n++] = "--comm";
	if (f && f->n_cgroup)
		names[n++] = "--cgroup";
	if (f && f->n_device)
		names[n++] = "--device";
	if (f && f->ops)
		names[n++] = "--op";
	out[0] = 0;
	for (unsigned i = 0; i < n && len < cap; i++)
		len += (size_t)snprintf(out + len, cap - len, "%s%s", !i ? "" : i + 1 == n ? " and " : ", ", names[i]);
}

// The kinds of file systems in use that a block profiler does not see, as a clause, or "".
static void elsewhere(const struct io_snapshot *before, const struct io_snapshot *after, char *out, size_t cap)
{
	const struct unseen_fs *both[2] = { &before->unseen, &after->unseen };
	char types[160];
	size_t n = 0;

	types[0] = out[0] = 0;
	for (unsigned k = 0; k < UNSEEN_KINDS; k++) {
		const struct unseen_fs *u = both[1]->open[k] || !both[0]->open[k] ? both[1] : both[0];

		if (!u->open[k] || n >= sizeof(types))
			continue;
		n += (size_t)snprintf(types + n, sizeof(types) - n, "%s%s at %s", n ? ", " : "", u->type[k], u->point[k]);
	}
	if (n)
		snprintf(out, cap, "; files are open on %s, which does no block I/O here", types);
}

// A clause for mounts of such kinds when nothing is known of open files.
static void mounted(const struct io_snapshot *s, char *out, size_t cap)
{
	size_t n = 0;

	out[0] = 0;
	for (unsigned k = 0; k < UNSEEN_KINDS; k++) {
		// Every node has a tmpfs: its mount alone says nothing.
		if (k == UNSEEN_MEMORY || !s->unseen.mounts[k] || n >= cap)
			continue;
		n += (size_t)snprintf(out + n, cap - n, "%s%s at %s", n ? ", " : " (mounted here: ", s->unseen.type[k], s->unseen.point[k]);
	}
	if (n && n < cap)
		snprintf(out + n, cap - n, ")");
}

static void say_filtered(const struct whyempty_input *in, char *out, size_t cap)
{
	char names[96], count[24];

	filter_names(in, names, sizeof(names));
	snprintf(out, cap, "no I/O matched %s: %s block I/Os of others were kept out", names,
		 text_count(count, sizeof(count), in->filtered_ops));
}

static void say_unseen(const struct whyempty_input *in, const struct change *c, char *out, size_t cap)
{
	char bytes[24];

	snprintf(out, cap, "the kernel counted %s of block I/O that the %s backend did not see; run `blkprof doctor`",
		 text_bytes(bytes, sizeof(bytes), (double)(c->paged_in + c->paged_out)), in->backend ? in->backend : "chosen");
}

// Network clients account what they read to the process like a disk's bytes, without any bio.
static void say_network(const struct whyempty_input *in, const struct change *c, const struct io_snapshot *before,
			const struct io_snapshot *after, char *out, size_t cap)
{
	char bytes[24], clause[224];

	elsewhere(before, after, clause, sizeof(clause));
	if (!clause[0])
		mounted(after, clause, sizeof(clause));
	snprintf(out, cap, "no block I/O, but %s read %s through a network file system%s", whose(in),
		 text_bytes(bytes, sizeof(bytes), (double)c->read_bytes), clause);
}

static void say_cached(const struct whyempty_input *in, const struct change *c, const struct io_snapshot *before,
		       const struct io_snapshot *after, char *out, size_t cap)
{
	char rchar[24], wchar[24], clause[224];

	elsewhere(before, after, clause, sizeof(clause));
	if (c->rchar >= c->wchar)
		snprintf(out, cap, "no block I/O: %s read %s (most by %s, pid %d), all of it from the page cache, pipes or sockets%s",
			 whose(in), text_bytes(rchar, sizeof(rchar), (double)c->rchar), c->most_comm, (int)c->most_pid, clause);
	else
		snprintf(out, cap, "no block I/O: %s wrote %s (most by %s, pid %d), which is still in the page cache or went to pipes "
			 "and sockets%s", whose(in), text_bytes(wchar, sizeof(wchar), (double)c->wchar), c->most_comm,
			 (int)c->most_pid, clause);
}

// The processes of the snapshots are those that the filter lets through, and nothing else narrows it.
static bool only_processes(const struct whyempty_input *in)
{
	const struct filter *f = in->filter;

	return (in->follow || (f && f->n_pid)) && !(f && (f->n_comm || f->n_cgroup || f->n_device || f->ops));
}

// What the processes' own counters tell; false when they did nothing worth a word.
static bool say_from_processes(const struct whyempty_input *in, const struct change *c, const struct io_snapshot *before,
			       const struct io_snapshot *after, char *out, size_t cap)
{
	// write_bytes is no sign of it: it grows when the page cache takes the data.
	if (c->read_bytes >= NOTABLE)
		say_network(in, c, before, after, out, cap);
	else if (c->rchar + c->wchar >= NOTABLE)
		say_cached(in, c, before, after, out, cap);
	else
		return false;
	return true;
}

static void say_from_counters(const struct whyempty_input *in, const struct io_snapshot *before, const struct io_snapshot *after,
			      char *out, size_t cap)
{
	struct change c = compare(before, after);
	char clause[224];

	// The kernel counts for the node: with a filter others' I/O is in there, and ours when some was kept out.
	if (!has_filter(in) && !in->own_ops && before->vmstat && after->vmstat && c.paged_in + c.paged_out >= NOTABLE) {
		say_unseen(in, &c, out, cap);
		return;
	}
	if (say_from_processes(in, &c, before, after, out, cap))
		return;
	elsewhere(before, after, clause, sizeof(clause));
	snprintf(out, cap, "no I/O at all: %s neither read nor wrote files%s", whose(in), clause);
}

static void say_kept_out(const struct whyempty_input *in, const struct io_snapshot *before, const struct io_snapshot *after,
			 char *out, size_t cap)
{
	struct change c;
	char count[24];
	size_t n;

	if (before && after && only_processes(in)) {
		c = compare(before, after);
		if (say_from_processes(in, &c, before, after, out, cap)) {
			n = strlen(out);
			snprintf(out + n, cap - n, "; %s block I/Os of others were kept out",
				 text_count(count, sizeof(count), in->filtered_ops));
			return;
		}
	}
	say_filtered(in, out, cap);
}

bool whyempty(const struct whyempty_input *in, const struct io_snapshot *before, const struct io_snapshot *after,
	      char *out, size_t cap)
{
	char line[768] = "";

	out[0] = 0;
	if (in->ops)
		return false;
	if (in->filtered_ops && has_filter(in))
		say_kept_out(in, before, after, line, sizeof(line));
	else if (before && after)
		say_from_counters(in, before, after, line, sizeof(line));
	else
		snprintf(line, sizeof(line), "no block I/O on this node meanwhile");
	text_sanitize(out, cap, line, strlen(line));
	return true;
}
