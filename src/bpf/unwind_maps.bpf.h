/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the walk by tables (unwind.bpf.h) reads, in the kernel: maps that the agent fills, user memory, and the registers
 * and mappings that a walk starts from. Included by stack.bpf.h. */
#ifndef BLKPROF_BPF_UNWIND_MAPS_H
#define BLKPROF_BPF_UNWIND_MAPS_H

#include "bpf/unwind_rec.h"

struct unwind_arena_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct unwind_arena)); /* clang 16 writes no type for it here */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_ARENAS);
	__type(key, u32);
	__array(values, struct unwind_arena_map);
} unwind_arenas SEC(".maps");

struct unwind_rules {
	struct unwind_rule rules[UNWIND_RULES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct unwind_rules);
} unwind_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNWIND_PROCS);
	__type(key, u32);
	__type(value, struct unwind_proc);
} unwind_procs SEC(".maps");

static __always_inline u32 *unwind_words(u32 place)
{
	u32 arena = place >> UNWIND_ARENA_BITS, zero = 0;
	struct unwind_arena *a;
	void *map = bpf_map_lookup_elem(&unwind_arenas, &arena);

	if (!map)
		return 0;
	a = bpf_map_lookup_elem(map, &zero);
	return a ? a->words : 0;
}

static __always_inline const struct unwind_rule *unwind_rule_at(u32 id)
{
	u32 zero = 0;
	struct unwind_rules *all = bpf_map_lookup_elem(&unwind_rules, &zero);

	if (!all || id >= UNWIND_RULES)
		return 0;
	return &all->rules[id];
}

#define unwind_read(out, size, address) bpf_probe_read_user(out, size, (const void *)(address))

#include "bpf/unwind.bpf.h"

/* A process that has not exec'ed since it was forked has what its parent had mapped. */
static __noinline struct unwind_proc *unwind_parent(void)
{
	struct task_struct *leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
	u32 tgid;

	if (!(BPF_CORE_READ(leader, flags) & PF_FORKNOEXEC))
		return 0;
	tgid = BPF_CORE_READ(leader, real_parent, tgid);
	return bpf_map_lookup_elem(&unwind_procs, &tgid);
}

/* Wakes the agent for the mappings of a process: once, then its entry is there. */
static __noinline void unwind_wake(u32 tgid)
{
	struct process_rec rec = { .type = RECORD_PROCESS, .tgid = tgid };

	rec.time = bpf_ktime_get_ns();
	bpf_ringbuf_output(&ring, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP);
}

static __noinline void unwind_ask(u32 tgid, u64 mm)
{
	struct unwind_proc asked = { .mm = mm };

	if (!bpf_map_update_elem(&unwind_procs, &tgid, &asked, BPF_ANY))
		unwind_wake(tgid);
}

/* It runs code that was mapped since its mappings were given. */
static __noinline void unwind_ask_again(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct unwind_proc *p = bpf_map_lookup_elem(&unwind_procs, &tgid);

	if (!p || p->stale)
		return;
	p->stale = 1;
	unwind_wake(tgid);
}

/* Registers and mappings of the current process; false when the agent has not given any yet. */
static __always_inline bool unwind_begin(struct unwind_walk *w)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct unwind_proc *p = bpf_map_lookup_elem(&unwind_procs, &tgid);
	u64 mm = (u64)BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), mm);

	if (!p) {
		p = unwind_parent();
		if (!p) {
			unwind_ask(tgid, mm);
			return false;
		}
	} else if (!p->mm) {
		p->mm = mm;
	} else if (p->mm != mm) { /* it has exec'ed */
		unwind_ask(tgid, mm);
		return false;
	}
	if (!p->count)
		return false;
	w->list = p->place;
	w->n_list = p->count;
	w->exact = 1;
	w->bp_lost = 0;
	w->broken = UNWIND_WHOLE;
	w->pending = 0;
	w->map.start = 0;
	w->map.pages = 0;
	return !user_registers(&w->ip, &w->sp, &w->bp);
}

#endif
