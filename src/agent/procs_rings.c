// SPDX-License-Identifier: Apache-2.0
#include "agent/procs_rings.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/perfring.h"
#include "common/clock.h"
#include "common/file.h"

// All rings together stay below RINGS_TOTAL where a node has many CPUs.
#define RING_MAX (512u << 10)
#define RING_MIN (64u << 10)
#define RINGS_TOTAL (8u << 20)
#define CPUS_MAX 8192u
#define RECORD_LARGEST 4352u // a path of PATH_MAX and its record

struct ring {
	int fd;
	unsigned cpu;
	struct perf_event_mmap_page *page; // the data area follows it
	struct perf_view view;
	uint64_t reported_tail;
	// The record at the tail, once peeked at.
	bool peeked;
	struct proc_event event;
	size_t event_size;
};

struct procs_rings {
	unsigned count, capacity;
	struct ring *rings;
	struct ring *current; // whose event was handed out last
	uint64_t cutoff_ns;
	size_t size; // of one data area
	size_t page_size;
	char online[256];
};

static int event_open(unsigned cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

// The size that the first ring got is every ring's.
static void *ring_map(struct procs_rings *r, int fd)
{
	for (;;) {
		void *memory = mmap(NULL, r->page_size + r->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (memory != MAP_FAILED)
			return memory;
		if ((errno != EPERM && errno != ENOMEM) || r->size <= r->page_size)
			return NULL;
		r->size /= 2;
	}
}

static void ring_close(struct procs_rings *r, struct ring *ring)
{
	munmap(ring->page, r->page_size + ring->view.size);
	close(ring->fd);
	free(ring->view.scratch);
}

static int ring_open(struct procs_rings *r, unsigned cpu)
{
	struct ring *ring = &r->rings[r->count];
	int err;

	memset(ring, 0, sizeof(*ring));
	ring->cpu = cpu;
	ring->fd = event_open(cpu);
	if (ring->fd < 0)
		return ring->fd;
	ring->view.scratch = malloc(PERF_RECORD_SIZE_MAX);
	ring->page = ring->view.scratch ? ring_map(r, ring->fd) : NULL;
	if (!ring->page) {
		err = ring->view.scratch ? -errno : -ENOMEM;
		close(ring->fd);
		free(ring->view.scratch);
		return err;
	}
	ring->view.data = (uint8_t *)ring->page + r->page_size;
	ring->view.size = r->size;
	r->count++;
	return 0;
}

// Calls for each CPU of a list like "0-3,8"; what is malformed ends it.
static int rings_open_list(struct procs_rings *r, const char *list)
{
	const char *at = list;
	int first_error = 0;

	while (*at >= '0' && *at <= '9') {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) {
			unsigned i = 0;
			int err;

			while (i < r->count && r->rings[i].cpu != cpu)
				i++;
			if (i < r->count || r->count == r->capacity)
				continue;
			err = ring_open(r, (unsigned)cpu);
			// A CPU that went offline meanwhile is no failure.
			if (err && err != -ENODEV && !first_error)
				first_error = err;
		}
		at = *end == ',' ? end + 1 : "";
	}
	return first_error;
}

static size_t ring_size(unsigned cpus)
{
	size_t size = RING_MAX;

	while (size > RING_MIN && size * cpus > RINGS_TOTAL)
		size /= 2;
	return size;
}

static int explain(int err, struct error *e)
{
	switch (-err) {
	case EPERM:
	case EACCES:
		return error_set(e, err, "cannot follow processes: perf_event_open is not permitted; run as root or with "
				 "CAP_PERFMON, or lower kernel.perf_event_paranoid; short-lived processes may go unnamed");
	case ENOSYS:
		return error_set(e, err, "cannot follow processes: this kernel has no perf_event_open; "
				 "short-lived processes may go unnamed");
	default:
		return error_set(e, err, "cannot follow processes: perf_event_open: %s; "
				 "short-lived processes may go unnamed", strerror(-err));
	}
}

int procs_rings_new(struct procs_rings **ret, struct error *e)
{
	struct procs_rings *r = calloc(1, sizeof(*r));
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	int err;

	if (!r)
		return error_set(e, -ENOMEM, "no memory to follow processes");
	r->capacity = configured > 0 ? (unsigned)configured : 1;
	r->page_size = (size_t)sysconf(_SC_PAGESIZE);
	r->size = ring_size(r->capacity);
	r->rings = calloc(r->capacity, sizeof(*r->rings));
	if (!r->rings) {
		procs_rings_free(r);
		return error_set(e, -ENOMEM, "no memory to follow processes");
	}
	if (file_read_line("/sys/devices/system/cpu/online", r->online, sizeof(r->online)) || !r->online[0])
		memcpy(r->online, "0", 2);
	err = rings_open_list(r, r->online);
	if (!err && !r->count)
		err = -ENODEV;
	// With a CPU missing, whatever ran there would be unknown and nobody would know: all or none.
	if (err) {
		procs_rings_free(r);
		return explain(err, e);
	}
	*ret = r;
	return 0;
}

void procs_rings_free(struct procs_rings *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->count; i++)
		ring_close(r, &r->rings[i]);
	free(r->rings);
	free(r);
}

bool procs_rings_begin(struct procs_rings *r)
{
	bool full = false;

	// An event that causes another is in its ring before the other takes its time. With the time taken before any
	// ring is read, a cause is thus always seen no later than what it caused; what is younger waits for next time.
	r->cutoff_ns = clock_monotonic();
	for (unsigned i = 0; i < r->count; i++) {
		struct perf_view *v = &r->rings[i].view;

		v->head = __atomic_load_n(&r->rings[i].page->data_head, __ATOMIC_ACQUIRE);
		full |= v->size - (v->head - v->tail) < RECORD_LARGEST;
	}
	return full;
}

static void ring_report(struct ring *ring)
{
	if (ring->reported_tail == ring->view.tail)
		return;
	__atomic_store_n(&ring->page->data_tail, ring->view.tail, __ATOMIC_RELEASE);
	ring->reported_tail = ring->view.tail;
}

static void ring_consume(struct ring *ring)
{
	ring->view.tail += ring->event_size;
	ring->peeked = false;
	// Not at each record: the line is shared with the writer.
	if (ring->view.tail - ring->reported_tail >= ring->view.size / 8)
		ring_report(ring);
}

static bool ring_peek(struct ring *ring)
{
	int err;

	if (ring->peeked)
		return true;
	err = perf_view_peek(&ring->view, &ring->event, &ring->event_size);
	if (err == -EBADMSG) {
		ring->event = (struct proc_event){ .type = PROC_LOST, .lost = 1 };
		ring->event_size = ring->view.head - ring->view.tail;
		err = 0;
	}
	ring->peeked = !err;
	return ring->peeked;
}

int procs_rings_next(struct procs_rings *r, struct proc_event *ret)
{
	struct ring *first = NULL;

	if (r->current) {
		ring_consume(r->current);
		r->current = NULL;
	}
	for (unsigned i = 0; i < r->count; i++) {
		struct ring *ring = &r->rings[i];

		if (ring_peek(ring) && ring->event.time_ns <= r->cutoff_ns &&
		    (!first || ring->event.time_ns < first->event.time_ns))
			first = ring;
	}
	if (!first) {
		for (unsigned i = 0; i < r->count; i++)
			ring_report(&r->rings[i]);
		return 0;
	}
	r->current = first;
	*ret = first->event;
	return 1;
}

int procs_rings_pending(const struct procs_rings *r)
{
	for (unsigned i = 0; i < r->count; i++) {
		if (__atomic_load_n(&r->rings[i].page->data_head, __ATOMIC_RELAXED) != r->rings[i].view.tail)
			return 1;
	}
	return 0;
}

void procs_rings_refresh(struct procs_rings *r)
{
	char online[sizeof(r->online)];

	if (file_read_line("/sys/devices/system/cpu/online", online, sizeof(online)) || !strcmp(online, r->online))
		return;
	memcpy(r->online, online, sizeof(online));
	// An event dies with its CPU: those that are gone are closed, so that a CPU that comes back gets a new one.
	for (unsigned i = 0; i < r->count;) {
		struct ring *ring = &r->rings[i];
		int fd = event_open(ring->cpu);

		if (fd >= 0)
			close(fd);
		if (fd != -ENODEV) {
			i++;
			continue;
		}
		ring_close(r, ring);
		*ring = r->rings[--r->count];
	}
	rings_open_list(r, online);
}
