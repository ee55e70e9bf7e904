/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the timeline records beside bios: switches, wake-ups, new threads, names; and of bios their submission, when the
 * driver got them and their end. Included behind core.bpf.h by an object that defines CORE_WATCHED. */
#ifndef BLKPROF_BPF_TIMELINE_H
#define BLKPROF_BPF_TIMELINE_H

#include "bpf/timeline_rec.h"

const volatile struct timeline_config timeline_config SEC(".rodata.timeline");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct timeline_cpu);
} timeline_cpus SEC(".maps");

/* When the driver got a bio, by its address. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u64);
} issued SEC(".maps");

static __always_inline void send(const void *rec, u32 size, enum timeline_loss loss)
{
	struct timeline_cpu *cpu;
	u32 zero = 0;

	if (!bpf_ringbuf_output(&ring, (void *)rec, size, wakeup()))
		return;
	cpu = bpf_map_lookup_elem(&timeline_cpus, &zero);
	if (cpu)
		__sync_fetch_and_add(&cpu->lost[loss], 1);
}

static __always_inline bool task_wanted(struct task_struct *task)
{
	u32 tgid = READ(task, tgid);

	if (config.by_pid && !bpf_map_lookup_elem(&filter_pids, &tgid))
		return false;
	return !config.by_cgroup || (tgid && task_in_cgroups(task, 0, 0));
}

/* The system call that the current task, which is about to sleep, is in: what user registers say of it is a system call's
 * number only behind an instruction for one (else an error code of a page fault). */
static __always_inline bool sleeping_syscall(s32 *nr)
{
	struct task_struct *task;
	struct pt_regs *regs;
	u16 code = 0;

#ifdef __TARGET_ARCH_x86
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		regs = (struct pt_regs *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	} else {
		task = (struct task_struct *)bpf_get_current_task();
		regs = (struct pt_regs *)(BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs));
	}
	if (bpf_probe_read_user(&code, sizeof(code), (void *)(BPF_CORE_READ(regs, ip) - 2)) || code != 0x050f)
		return false;
	*nr = (s32)BPF_CORE_READ(regs, orig_ax);
	return true;
#else
	return false;
#endif
}

static __always_inline u64 switch_stack(void *ctx, bool kthread)
{
	struct cpu_state *cpu;

	if (!timeline_config.stacks)
		return 0;
	cpu = this_cpu();
	return cpu ? stack_take(ctx, cpu, STACK_OF_SWITCH, kthread ? TASK_KTHREAD : 0, true) : 0;
}

static __always_inline void task_switched(void *ctx, bool preempted, struct task_struct *prev, struct task_struct *next,
					  u32 prev_state)
{
	struct switch_rec rec = {};

	if (!state.active)
		return;
	if (task_wanted(prev))
		rec.flags |= SWITCH_PREV;
	if (task_wanted(next))
		rec.flags |= SWITCH_NEXT;
	if (!rec.flags)
		return;
	rec.type = TIMELINE_SWITCH;
	rec.cpu = bpf_get_smp_processor_id();
	rec.prev_tid = READ(prev, pid);
	rec.prev_tgid = READ(prev, tgid);
	rec.next_tid = READ(next, pid);
	rec.next_tgid = READ(next, tgid);
	rec.prev_state = prev_state;
	if (preempted)
		rec.flags |= SWITCH_PREEMPTED;
	else if (prev_state && (rec.flags & SWITCH_PREV) && rec.prev_tid) {
		bool kthread = READ(prev, flags) & PF_KTHREAD;

		if (READ_BIT(prev, in_iowait))
			rec.flags |= SWITCH_IO_WAIT;
		if (kthread)
			rec.flags |= SWITCH_KTHREAD;
		else if (sleeping_syscall(&rec.syscall))
			rec.flags |= SWITCH_SYSCALL;
		rec.stack = switch_stack(ctx, kthread);
	}
	READ_STRING(rec.next_comm, next, comm);
	/* The last thing: what prev ran until here was its own. */
	rec.time = bpf_ktime_get_ns();
	send(&rec, sizeof(rec), TIMELINE_LOST_SWITCH);
}

static __always_inline void task_waking(struct task_struct *task)
{
	struct waking_rec rec = {};
	u64 waker;

	if (!state.active || !task_wanted(task))
		return;
	waker = bpf_get_current_pid_tgid();
	rec.type = TIMELINE_WAKING;
	rec.cpu = bpf_get_smp_processor_id();
	rec.time = bpf_ktime_get_ns();
	rec.tid = READ(task, pid);
	rec.tgid = READ(task, tgid);
	rec.waker_tid = (u32)waker;
	rec.waker_tgid = waker >> 32;
	rec.flags = READ_BIT(task, on_rq) ? 0 : WAKING_OFF_QUEUE;
	bpf_get_current_comm(rec.waker_comm, sizeof(rec.waker_comm));
	send(&rec, sizeof(rec), TIMELINE_LOST_WAKING);
}

static __always_inline void thread_event(u32 type, struct task_struct *task, u32 other, struct thread_rec *rec)
{
	rec->type = type;
	rec->cpu = bpf_get_smp_processor_id();
	rec->time = bpf_ktime_get_ns();
	rec->tid = READ(task, pid);
	rec->tgid = READ(task, tgid);
	rec->other = other;
	send(rec, sizeof(*rec), TIMELINE_LOST_THREAD);
}

static __always_inline void task_started(struct task_struct *task)
{
	struct thread_rec rec = {};

	if (!state.active || !task_wanted(task))
		return;
	READ_STRING(rec.comm, task, comm);
	thread_event(TIMELINE_NEW, task, (u32)bpf_get_current_pid_tgid(), &rec);
}

/* Raw everywhere: up to 5.16 a typed program may not take a pointer to characters. User space knows whether the thread is
 * one of those that are wanted. */
SEC("?raw_tp/task_rename")
int on_rename(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	struct thread_rec rec = {};

	rec.tgid = BPF_CORE_READ(task, tgid);
	if (!state.active || (config.by_pid && !bpf_map_lookup_elem(&filter_pids, &rec.tgid)))
		return 0;
	rec.type = TIMELINE_RENAME;
	rec.cpu = bpf_get_smp_processor_id();
	rec.time = bpf_ktime_get_ns();
	rec.tid = BPF_CORE_READ(task, pid);
	bpf_probe_read_kernel_str(rec.comm, sizeof(rec.comm), (const char *)ctx->args[1]);
	send(&rec, sizeof(rec), TIMELINE_LOST_THREAD);
	return 0;
}

static __always_inline void task_executed(struct task_struct *task, u32 old_tid)
{
	struct thread_rec rec = {};

	if (!state.active || !task_wanted(task))
		return;
	READ_STRING(rec.comm, task, comm);
	thread_event(TIMELINE_EXEC, task, old_tid, &rec);
}

/* ---- bios ---- */

/* A frame of its own: its caller's and those of the stack walk may be 512 bytes together up to 6.12. */
static __noinline void watch_submitted(struct bio *bio, u64 address, const struct in_flight *e)
{
	struct submit_rec rec = {};

	if (!e)
		return;
	bpf_map_delete_elem(&issued, &address);
	rec.type = TIMELINE_SUBMIT;
	rec.cpu = bpf_get_smp_processor_id();
	rec.time = e->submit;
	rec.address = address;
	rec.sector = READ(bio, bi_iter.bi_sector);
	rec.stack = e->stack;
	rec.tid = e->tid;
	rec.tgid = e->tgid;
	rec.size = e->size;
	rec.slot = e->slot;
	rec.op = e->op;
	rec.kind = e->kind;
	__builtin_memcpy(rec.comm, e->comm, sizeof(rec.comm));
	send(&rec, sizeof(rec), TIMELINE_LOST_SUBMIT);
}

static __always_inline void watch_ended(u64 address, const struct bio_rec *bio)
{
	u64 *issue = bpf_map_lookup_elem(&issued, &address);
	struct end_rec rec = {};

	rec.type = TIMELINE_END;
	rec.cpu = bpf_get_smp_processor_id();
	rec.time = bio->end;
	rec.address = address;
	rec.submit = bio->bio.submit;
	rec.issue = issue ? *issue : 0;
	rec.reason = bio->end_reason;
	send(&rec, sizeof(rec), TIMELINE_LOST_END);
}

/* Verified once, not once for each turn of the loop that calls it. */
__noinline int bio_issued(u64 address, u64 now)
{
	if (may_be_in_flight(filter_of(address)))
		bpf_map_update_elem(&issued, &address, &now, BPF_ANY);
	return 0;
}

#define ISSUED_BIOS 128

static __always_inline void request_issued(struct request *rq)
{
	struct bio *bio = READ(rq, bio);
	struct timeline_cpu *cpu;
	u64 now, address;
	u32 i, zero = 0;

	if (!state.active)
		return;
	cpu = bpf_map_lookup_elem(&timeline_cpus, &zero);
	if (!cpu)
		return;
	now = bpf_ktime_get_ns();
	for (i = 0; i < ISSUED_BIOS && bio; i++) {
		address = number(&cpu->issuing, bio);
		bio_issued(address, now);
		bio = READ(bio, bi_next);
	}
}

#endif
