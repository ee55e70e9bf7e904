/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Whose request an io_uring worker runs: the stack is taken where the request is handed over, in the context of its
 * submitter, and found by the worker that submits bios for it. Included by core.bpf.h. */
#ifndef BLKPROF_BPF_SUBMITTER_H
#define BLKPROF_BPF_SUBMITTER_H

struct submitter {
	u64 stack; /* 0 = handed over by a polling thread, which has none */
	u32 tgid;
	u32 pad;
};

/* By address of the request. A request that is handed over overwrites what was there. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct submitter);
} submitters SEC(".maps");

#define SUBMITTERS_PER_SAMPLE 8 /* stacks taken here for each that the rate asks for */

static __always_inline bool submitter_in_budget(struct cpu_state *cpu)
{
	u32 target = state.target;
	u64 tick;

	if (!target)
		return true;
	tick = bpf_jiffies64();
	if (tick != cpu->submitters_tick) {
		cpu->submitters_tick = tick;
		cpu->submitters_taken = 0;
	}
	return cpu->submitters_taken++ < (u64)target * SUBMITTERS_PER_SAMPLE;
}

static __always_inline void work_queued(void *ctx, u64 request)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct submitter s = {};
	struct cpu_state *cpu = this_cpu();

	s.tgid = bpf_get_current_pid_tgid() >> 32;
	if (!state.active || !cpu || s.tgid == config.self || !process_wanted(s.tgid))
		return;
	if (!(BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))) {
		if (!submitter_in_budget(cpu)) {
			bpf_map_delete_elem(&submitters, &request);
			return;
		}
		s.stack = stack_take(ctx, cpu, STACK_OF_SUBMITTER, 0, false);
	}
	bpf_map_update_elem(&submitters, &request, &s, BPF_ANY);
}

/* Written out: clang would make one load of them, at an offset that the verifier does not take. */
#define ARGUMENT(n) asm volatile("%0 = *(u64 *)(%1 + " #n " * 8)" : "=r"(request) : "r"(ctx))

/* Up to 5.16 the third argument is the request, up to 5.19 the second, from then on the first. */
SEC("?raw_tp/io_uring_queue_async_work")
int on_work_queued(struct bpf_raw_tracepoint_args *ctx)
{
	u64 request;

	switch (config.async_request) {
	case 1:
		ARGUMENT(0);
		break;
	case 2:
		ARGUMENT(1);
		break;
	default:
		ARGUMENT(2);
	}
	hold_cpu();
	work_queued(ctx, request);
	release_cpu();
	return 0;
}

/* Hash of the stack behind what the current task, an io_uring worker, does; 0 when it is not known. */
static __noinline u64 submitter_stack(u32 tgid, struct cpu_state *cpu)
{
	struct io_wq_work *work = current_work();
	struct submitter *s;
	u64 request;

	if (!work || !cpu)
		return 0;
	request = (u64)work - bpf_core_field_offset(struct io_kiocb, work);
	s = bpf_map_lookup_elem(&submitters, &request);
	if (s && s->tgid == tgid)
		return s->stack;
	cpu->submitters_unknown++;
	return 0;
}

#endif
