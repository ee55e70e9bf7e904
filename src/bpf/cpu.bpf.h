/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* CPU samples for the same profile: the same stacks, from a software clock on every CPU. Included behind core.bpf.h. */
#ifndef BLKPROF_BPF_CPU_H
#define BLKPROF_BPF_CPU_H

SEC("?perf_event")
int on_cpu_clock(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u32 flags = BPF_CORE_READ(task, flags);
	u64 id = bpf_get_current_pid_tgid();
	struct cpu_state *cpu = this_cpu();
	struct bio_rec *rec;
	struct in_flight e = {};
	struct comm_key comm = {};
	u32 tgid = id >> 32;

	if (!state.active || !cpu || !tgid || tgid == config.self)
		return 0;
	bpf_get_current_comm(comm.comm, sizeof(comm.comm));
	if (!comm_wanted(&comm) || !process_wanted(tgid))
		return 0;
	e.tgid = tgid;
	e.tid = (u32)id;
	e.weight = RECORD_WEIGHT_ONE;
	e.window = state.window;
	if (flags & PF_KTHREAD)
		e.kind = TASK_KTHREAD;
	else if (flags & (PF_IO_WORKER | PF_USER_WORKER))
		e.kind = TASK_IO_WORKER;
	__builtin_memcpy(e.comm, comm.comm, sizeof(e.comm));
	e.stack = stack_take(ctx, cpu, STACK_OF_CLOCK, e.kind, config.kernel_stacks || e.kind == TASK_KTHREAD);
	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (!rec) {
		lose(cpu, LOSS_RING_FULL);
		return 0;
	}
	e.submit = bpf_ktime_get_ns();
	rec->type = RECORD_CPU;
	rec->end_reason = END_COMPLETED;
	rec->end = e.submit;
	__builtin_memcpy(&rec->bio, &e, sizeof(e));
	bpf_ringbuf_submit(rec, wakeup());
	return 0;
}

#endif
