// SPDX-License-Identifier: Apache-2.0
#include "agent/perfring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/sysmacros.h>

// What sample_id_all appends.
struct trailer {
	uint32_t pid, tid;
	uint64_t time;
};

struct task_body { // PERF_RECORD_FORK, PERF_RECORD_EXIT
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct mmap2_body {
	uint32_t pid, tid;
	uint64_t address, len, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
};

struct comm_body {
	uint32_t pid, tid;
};

struct lost_body {
	uint64_t id, lost;
};

_Static_assert(sizeof(struct trailer) == 16, "trailer");
_Static_assert(sizeof(struct task_body) == 24, "task record");
_Static_assert(sizeof(struct mmap2_body) == 64, "mmap2 record");

static int parse_task(const uint8_t *body, size_t len, enum proc_event_type type, struct proc_event *ev)
{
	struct task_body b;

	if (len < sizeof(b))
		return -EBADMSG;
	memcpy(&b, body, sizeof(b));
	ev->type = type;
	ev->pid = (pid_t)b.pid;
	ev->tid = (pid_t)b.tid;
	ev->ppid = (pid_t)b.ppid;
	return 0;
}

static int parse_text(const uint8_t *text, size_t len, struct proc_event *ev)
{
	const uint8_t *end = memchr(text, 0, len);

	if (!end)
		return -EBADMSG;
	ev->text = (const char *)text;
	ev->text_len = (size_t)(end - text);
	return 0;
}

static int parse_comm(const uint8_t *body, size_t len, uint16_t misc, struct proc_event *ev)
{
	struct comm_body b;

	if (len < sizeof(b))
		return -EBADMSG;
	memcpy(&b, body, sizeof(b));
	ev->type = misc & PERF_RECORD_MISC_COMM_EXEC ? PROC_EXEC : PROC_COMM;
	ev->pid = (pid_t)b.pid;
	ev->tid = (pid_t)b.tid;
	return parse_text(body + sizeof(b), len - sizeof(b), ev);
}

static int parse_mmap2(const uint8_t *body, size_t len, uint16_t misc, struct proc_event *ev)
{
	struct mmap2_body b;

	if (len < sizeof(b))
		return -EBADMSG;
	memcpy(&b, body, sizeof(b));
	if (misc & PERF_RECORD_MISC_MMAP_DATA)
		return 0;
	if (!b.len || b.address + b.len < b.address)
		return -EBADMSG;
	ev->type = PROC_MMAP;
	ev->pid = (pid_t)b.pid;
	ev->tid = (pid_t)b.tid;
	ev->start = b.address;
	ev->limit = b.address + b.len;
	ev->offset = b.offset;
	// With a build-id in their place there is no device and inode to go by.
	if (!(misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		ev->dev = makedev(b.major, b.minor);
		ev->inode = b.inode;
		ev->generation = b.generation;
	}
	return parse_text(body + sizeof(b), len - sizeof(b), ev);
}

static int parse_lost(const uint8_t *body, size_t len, struct proc_event *ev)
{
	struct lost_body b;

	if (len < sizeof(b))
		return -EBADMSG;
	memcpy(&b, body, sizeof(b));
	ev->type = PROC_LOST;
	ev->lost = b.lost;
	return 0;
}

static int parse_body(const struct perf_event_header *h, const uint8_t *body, size_t len, struct proc_event *ev)
{
	switch (h->type) {
	case PERF_RECORD_FORK:
		return parse_task(body, len, PROC_FORK, ev);
	case PERF_RECORD_EXIT:
		return parse_task(body, len, PROC_EXIT, ev);
	case PERF_RECORD_COMM:
		return parse_comm(body, len, h->misc, ev);
	case PERF_RECORD_MMAP2:
		return parse_mmap2(body, len, h->misc, ev);
	case PERF_RECORD_LOST:
		return parse_lost(body, len, ev);
	default:
		return 0;
	}
}

int perf_record_parse(const void *data, size_t len, struct proc_event *ret)
{
	struct perf_event_header h;
	struct trailer t;
	struct proc_event ev;
	const uint8_t *bytes = data;
	int err;

	memset(&ev, 0, sizeof(ev));
	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, bytes, sizeof(h));
	if (h.size < sizeof(h) || h.size > len)
		return -EBADMSG;
	// Ring-buffer bookkeeping records of newer kernels may be shorter than the trailer.
	if (h.size >= sizeof(h) + sizeof(t)) {
		memcpy(&t, bytes + h.size - sizeof(t), sizeof(t));
		ev.time_ns = t.time;
		err = parse_body(&h, bytes + sizeof(h), h.size - sizeof(h) - sizeof(t), &ev);
		if (err)
			return err;
	}
	*ret = ev;
	return h.size;
}

int perf_view_peek(const struct perf_view *v, struct proc_event *ret, size_t *ret_size)
{
	uint64_t filled = v->head - v->tail;
	size_t at = (size_t)(v->tail & (v->size - 1)), first = v->size - at, size;
	const uint8_t *record = v->data + at;
	struct perf_event_header h;
	int n;

	if (!filled)
		return -EAGAIN;
	if (filled > v->size || filled < sizeof(h) || first < sizeof(h))
		return -EBADMSG;
	memcpy(&h, record, sizeof(h));
	size = h.size;
	if (size < sizeof(h) || size > filled || (size & 7))
		return -EBADMSG;
	if (size > first) {
		memcpy(v->scratch, record, first);
		memcpy(v->scratch + first, v->data, size - first);
		record = v->scratch;
	}
	n = perf_record_parse(record, size, ret);
	// A record that makes no sense inside its bounds is passed over; its neighbours are whole.
	if (n < 0)
		memset(ret, 0, sizeof(*ret));
	*ret_size = size;
	return 0;
}
