/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What happens on connections, into the ring. Included by request.bpf.c. */
#ifndef BLKPROF_BPF_REQUEST_EVENTS_H
#define BLKPROF_BPF_REQUEST_EVENTS_H

#include "bpf/request_text.bpf.h"

/* The kernel adds a thread's wait for a CPU to its sum when it gets it, behind the tracepoint of the switch: its last time
 * off the CPU is split when it is looked at next. */
static __always_inline void settle(struct req_thread *t, u64 run_delay)
{
	u64 waited = run_delay - t->run_delay;
	u32 reason = t->reason;

	t->run_delay = run_delay;
	if (!t->off)
		return;
	if (reason >= WAITS || waited > t->off) {
		t->sums.runq += t->off;
	} else {
		t->sums.runq += waited;
		t->sums.blocked[reason] += t->off - waited;
	}
	t->off = 0;
}

static __always_inline void switched_in(struct req_thread *t, u64 now)
{
	if (!t->out)
		return;
	t->off = now - t->out;
	t->in = now;
	t->out = 0;
	if (!(t->fault_waited & 2))
		return;
	/* From the fault's begin to the end of its last wait; one fault may wait several times. */
	t->sums.fault_io_ns += now - t->fault;
	if (!(t->fault_waited & 1))
		t->sums.fault_io_ops++;
	t->fault = config.faults_seen ? now : 0;
	t->fault_waited = config.faults_seen ? 1 : 0;
}

/* It runs, and was not seen to get its CPU: on busy machines once in some thousand times. What it ran since then the kernel
 * knows; it is brought up to date with each switch and tick. */
static __always_inline void notice_missed(struct req_thread *t, struct task_struct___request *task, u64 now)
{
	u64 ran, most;

	if (!t->out)
		return;
	lose(REQ_LOSS_SWITCHES);
	ran = BPF_CORE_READ(task, se.sum_exec_runtime) - t->ran;
	most = now - t->out;
	switched_in(t, now - (ran < most ? ran : most));
}

static __always_inline void look_at_plugins(struct req_thread *t)
{
	struct req_plugin_values *values;
	u32 i, slot, tid = t->tid;
	void *map;

#pragma unroll
	for (i = 0; i < REQ_PLUGINS; i++) {
		slot = i;
		if (i >= config.n_plugins)
			return;
		map = bpf_map_lookup_elem(&plugins, &slot);
		values = map ? bpf_map_lookup_elem(map, &tid) : 0;
		if (values)
			__builtin_memcpy(t->sums.plugin[i], values->value, sizeof(values->value));
	}
}

static __always_inline void bring_up(struct req_thread *t, u64 now)
{
	struct task_struct___request *task = this_task();

	notice_missed(t, task, now);
	settle(t, BPF_CORE_READ(task, sched_info.run_delay));
	t->sums.oncpu += now - t->in;
	t->in = now;
	t->sums.major_faults = BPF_CORE_READ(task, maj_flt);
	t->sums.minor_faults = BPF_CORE_READ(task, min_flt);
	look_at_plugins(t);
}

static __always_inline u64 wakeup(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > config.ring_wakes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void fill_head(struct req_event *e, struct req_thread *t, u16 type, s64 result, u64 now)
{
	e->type = type;
	e->payload_size = 0;
	e->tgid = t->tgid;
	e->tid = t->tid;
	e->connection = t->inode;
	e->enter = t->enter;
	e->exit = now;
	e->result = result;
	e->fd = (u32)t->arg0;
	e->jvm = JVM_NONE;
	e->gc = e->safepoint = 0;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	__sync_fetch_and_add(&state.events, 1);
}

/* A few ns below 0 when it began on another CPU just now. */
static __always_inline u64 paused(u64 word, u64 now)
{
	return (u64)((s64)(word & 1 ? word + 2 * now : word) >> 1);
}

static __always_inline void fill_pauses(struct req_event *e, u32 tgid, u64 now)
{
	struct req_pauses *p = state.jvms ? bpf_map_lookup_elem(&pauses, &tgid) : 0;

	if (!p)
		return;
	e->jvm = p->jvm;
	e->gc = paused(*(volatile u64 *)&p->gc, now);
	e->safepoint = paused(*(volatile u64 *)&p->safepoint, now);
}

static __always_inline void fill(struct req_event *e, struct req_thread *t, u16 type, s64 result, u64 now)
{
	fill_head(e, t, type, result, now);
	fill_pauses(e, t->tgid, now);
	bpf_probe_read_kernel(&e->sums, sizeof(e->sums), &t->sums);
	t->sums.disk_max_ns = 0;
	t->sums.disk_max_dev = 0;
}

/* A record has its size before it is written: these are the sizes there are. What is behind `room` fills its text. */
#define EMIT(room, ...)                                                                           \
	do {                                                                                      \
		struct {                                                                          \
			struct req_event e;                                                       \
			u8 payload[room];                                                         \
		} *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);                                 \
		if (!r) {                                                                         \
			lose(REQ_LOSS_RING);                                                      \
			return;                                                                   \
		}                                                                                 \
		fill(&r->e, t, type, result, now);                                                \
		r->e.sequence = sequence;                                                         \
		__VA_ARGS__                                                                       \
		bpf_ringbuf_submit(r, wakeup());                                                  \
	} while (0)

#define EMIT_SIZED(room)                                                                          \
	EMIT(room, if (size > room)                                                               \
			size = room;                                                              \
		if (size && bpf_probe_read_user(r->payload, size, (void *)at))                    \
			lose(REQ_LOSS_PAYLOAD);                                                   \
		else                                                                              \
			r->e.payload_size = (u16)size;)

#define EMIT_GATHERED()                                                                           \
	EMIT(GATHERED_ROOM, r->e.payload_size = (u16)gather(r->payload, at, (u32)(size >> 32), size & GATHERED_MAX);)

/* size: its upper half is in how many pieces, which are described at `at`, if it is in more than one. */
static __always_inline void emit(struct req_thread *t, u16 type, s64 result, u64 now, u32 sequence, u64 at, u64 size)
{
	bring_up(t, now);
	if (!size) {
		struct req_event *e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);

		if (!e) {
			lose(REQ_LOSS_RING);
			return;
		}
		fill(e, t, type, result, now);
		e->sequence = sequence;
		bpf_ringbuf_submit(e, wakeup());
	} else if (size >> 32) {
		EMIT_GATHERED();
	} else if (size <= 64) {
		EMIT_SIZED(64);
	} else if (size <= 512) {
		EMIT_SIZED(512);
	} else if (size <= 1536) {
		EMIT_SIZED(1536);
	} else if (size <= 4096) {
		EMIT_SIZED(4096);
	} else {
		EMIT_SIZED(REQ_PAYLOAD_MAX);
	}
}

static __noinline int emit_event(struct req_thread *t, u64 type_sequence, s64 result, u64 at, u64 size)
{
	if (!t)
		return 0;
	emit(t, (u16)(type_sequence >> 32), result, bpf_ktime_get_ns(), (u32)type_sequence, at, size);
	return 0;
}

static __always_inline void tell(struct req_thread *t, struct req_connection *c, u16 type, s64 result, u64 at, u64 size)
{
	c->sequence++;
	emit_event(t, (u64)type << 32 | c->sequence, result, at, size);
}

static __always_inline void emit_exit(struct req_thread *t)
{
	t->inode = 0;
	emit_event(t, (u64)REQ_EXIT << 32, 0, 0, 0);
}

/* With as much of the text as is wanted, and of many pieces a few. */
static __always_inline void tell_text(struct req_thread *t, struct req_connection *c, u16 type, s64 result, struct call_text *text, u64 most)
{
	u64 moved = (u64)result;

	if (text->pieces)
		tell(t, c, type, result, text->vector, (u64)text->pieces << 32 | (moved < GATHERED_MAX ? moved : GATHERED_MAX));
	else
		tell(t, c, type, result, text->at, !text->at ? 0 : text->size < most ? text->size : most);
}

#define WORD(a, b, c, d) ((u32)(a) | (u32)(b) << 8 | (u32)(c) << 16 | (u32)(d) << 24)

/* The first bytes of a method (or of HTTP/2's preface, or of a TLS hello, to be told once), as far as there are. */
static __always_inline bool may_begin_request(u32 word, u64 size)
{
	static const u32 words[] = {
		WORD('G', 'E', 'T', ' '), WORD('P', 'O', 'S', 'T'), WORD('P', 'U', 'T', ' '), WORD('H', 'E', 'A', 'D'),
		WORD('D', 'E', 'L', 'E'), WORD('O', 'P', 'T', 'I'), WORD('P', 'A', 'T', 'C'), WORD('T', 'R', 'A', 'C'),
		WORD('C', 'O', 'N', 'N'), WORD('P', 'R', 'I', ' '),
	};
	u32 mask = size >= 4 ? ~0u : (1u << (size * 8)) - 1;

	if ((word & 0xffff & mask) == (0x0316 & mask))
		return true;
#pragma unroll
	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		if ((word & mask) == (words[i] & mask))
			return true;
	return false;
}

static __always_inline struct req_connection *new_connection(struct req_thread *t, u64 now)
{
	struct req_connection blank_connection = { .last = now, .tgid = t->tgid };
	u64 key = t->inode;

	if (bpf_map_update_elem(&connections, &key, &blank_connection, BPF_ANY)) {
		lose(REQ_LOSS_CONNECTIONS);
		return 0;
	}
	return bpf_map_lookup_elem(&connections, &key);
}

#define READS_WITH_TEXT 6 /* of a request: its head may come in pieces; behind them is a body */

/* The answer on a connection is over when the connection is read again, whether anything comes or not. */
static __always_inline void connection_asked(struct req_thread *t, u64 now)
{
	u64 key = t->inode;
	struct req_connection *c = bpf_map_lookup_elem(&connections, &key);
	struct req_event *e;

	if (!c || (c->flags & (REQ_CONN_IGNORED | REQ_CONN_ENDED)) || !(c->flags & REQ_CONN_ANSWERED))
		return;
	c->flags |= REQ_CONN_ENDED;
	c->sequence++;
	e = bpf_ringbuf_reserve(&ring, __builtin_offsetof(struct req_event, sums), 0);
	if (!e) {
		lose(REQ_LOSS_RING);
		return;
	}
	fill_head(e, t, REQ_NEXT, 0, now);
	e->sequence = c->sequence;
	bpf_ringbuf_submit(e, wakeup());
}

static __always_inline void connection_read(struct req_thread *t, s64 result, u64 now)
{
	struct call_text text = { .size = result > 0 ? (u64)result : 0 };
	u64 key = t->inode;
	struct req_connection *c = bpf_map_lookup_elem(&connections, &key);
	u32 word = 0;

	if (c && (c->flags & REQ_CONN_IGNORED))
		return;
	if (result <= 0) {
		/* Tried again and again; or interrupted (-EINTR, -ERESTARTSYS and its kin), and will go on. */
		if (!c || (result == -EAGAIN && (c->flags & REQ_CONN_ENDED)) || result == -4 || result <= -512)
			return;
		tell(t, c, REQ_READ, result, 0, 0);
		return;
	}
	find_text(t, &text);
	if (!c) {
		bpf_probe_read_user(&word, sizeof(word), (void *)text.at);
		if (!text.size || !may_begin_request(word, text.size))
			return;
		c = new_connection(t, now);
		if (!c)
			return;
	}
	c->last = now;
	c->tgid = t->tgid;
	if (c->flags & REQ_CONN_ANSWERED)
		c->reads = 0;
	c->flags &= ~(REQ_CONN_ANSWERED | REQ_CONN_ENDED);
	c->reads++;
	tell_text(t, c, REQ_READ, result, &text, c->reads > READS_WITH_TEXT ? 64 : c->reads > 1 ? 4096 : REQ_PAYLOAD_MAX);
}

#define WRITE_TEXT 512 /* the head of an answer says where the next one begins */

static __always_inline void connection_written(struct req_thread *t, s64 result, u64 now)
{
	struct call_text text = { .size = result > 0 ? (u64)result : 0 };
	u64 key = t->inode;
	struct req_connection *c = bpf_map_lookup_elem(&connections, &key);
	u32 word = 0;

	if ((c && (c->flags & REQ_CONN_IGNORED)) || (!c && result < 12))
		return;
	if (result <= 0) {
		if (result == -EAGAIN)
			tell(t, c, REQ_WRITE, result, 0, 0);
		return;
	}
	find_text(t, &text);
	if (!c) {
		/* An answer on a connection that is older than we are. */
		bpf_probe_read_user(&word, sizeof(word), (void *)text.at);
		if (word != WORD('H', 'T', 'T', 'P'))
			return;
		c = new_connection(t, now);
		if (!c)
			return;
	}
	c->last = now;
	c->tgid = t->tgid;
	c->flags |= REQ_CONN_ANSWERED;
	tell_text(t, c, REQ_WRITE, result, &text, WRITE_TEXT);
}

static __always_inline void connection_closing(struct req_thread *t, u32 fd, u64 now)
{
	struct req_connection *c;
	u64 inode = 0;

	if (file_class(fd, &inode) != FILE_SOCKET)
		return;
	c = bpf_map_lookup_elem(&connections, &inode);
	/* Who handed it to another process, and closes what is left of it, does not end it. */
	if (!c || c->tgid != t->tgid)
		return;
	t->inode = inode;
	if (!(c->flags & REQ_CONN_IGNORED))
		tell(t, c, REQ_CLOSE, 0, 0, 0);
	bpf_map_delete_elem(&connections, &inode);
	t->inode = 0;
}

#endif
