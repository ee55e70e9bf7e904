/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Maps, and which threads are looked at. Included by request.bpf.c. */
#ifndef BLKPROF_BPF_REQUEST_MAPS_H
#define BLKPROF_BPF_REQUEST_MAPS_H

/* All are plain and preallocated: an LRU map evicts what is in use long before it is full, and says nothing. User space
 * sweeps what was left behind; an insert that fails is counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct req_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct req_connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct req_bio);
} bios SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

struct plugin_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REQ_PLUGIN_THREADS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct req_plugin_values));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, REQ_PLUGINS);
	__type(key, u32);
	__array(values, struct plugin_map);
} plugins SEC(".maps");

/* What a new thread's entry is copied from: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct req_thread);
} blank SEC(".maps");

#include "bpf/hold_cpu.bpf.h"

static __always_inline void lose(enum req_loss cause)
{
	__sync_fetch_and_add(&state.losses[cause], 1);
}

static __always_inline bool maybe_target(u32 tgid)
{
	return state.targets[(tgid / 64) & (REQ_TARGET_BITS / 64 - 1)] & (1ull << (tgid & 63));
}

struct sched_info {
	unsigned long long run_delay;
} __attribute__((preserve_access_index));

struct sched_entity {
	u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct task_struct___request {
	unsigned int __state;
	unsigned int in_iowait : 1;
	struct sched_info sched_info;
	struct sched_entity se;
	unsigned long maj_flt, min_flt;
	struct files_struct *files;
	int pid, tgid;
} __attribute__((preserve_access_index));

/* Up to 5.13. */
struct task_struct___state {
	long state;
} __attribute__((preserve_access_index));

#include "bpf/task_btf.bpf.h"

/* Each probe read is a call. */
#define OF_TASK(task, field) (HAS_TASK_BTF ? (task)->field : BPF_CORE_READ(task, field))

static __always_inline struct task_struct___request *this_task(void)
{
	return (struct task_struct___request *)bpf_get_current_task();
}

static __always_inline struct task_struct___request *this_typed_task(void)
{
	return HAS_TASK_BTF ? (struct task_struct___request *)bpf_get_current_task_btf() : this_task();
}

static __noinline struct req_thread *new_thread(u32 tgid, u32 tid)
{
	struct req_thread *t, *model;
	u32 zero = 0;

	if (!bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	model = bpf_map_lookup_elem(&blank, &zero);
	if (!model)
		return 0;
	if (bpf_map_update_elem(&threads, &tid, model, BPF_ANY)) {
		lose(REQ_LOSS_THREADS);
		return 0;
	}
	t = bpf_map_lookup_elem(&threads, &tid);
	if (!t)
		return 0;
	t->tgid = tgid;
	t->tid = tid;
	t->call = CALL_NONE;
	t->in = bpf_ktime_get_ns();
	t->run_delay = BPF_CORE_READ(this_task(), sched_info.run_delay);
	return t;
}

/* Of a thread of what may be a target. */
static __always_inline struct req_thread *known_thread(u32 tgid, u32 tid, bool make)
{
	struct req_thread *t = bpf_map_lookup_elem(&threads, &tid);

	/* A thread's number is used again by another process: its sums are not that one's. */
	if (t && t->tgid == tgid)
		return t;
	return make ? new_thread(tgid, tid) : 0;
}

static __always_inline struct req_thread *this_thread(void)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 tid = (u32)id, tgid = id >> 32;

	return maybe_target(tgid) ? known_thread(tgid, tid, false) : 0;
}

#endif
