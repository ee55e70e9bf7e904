// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// The backend that needs neither kprobes nor trampolines: BTF-typed raw tracepoints. block_bio_complete fires only for
// bios that do not end through a request, block_rq_complete for the others.
#define CORE_TYPED
#define CORE_TRACEPOINT
#include "bpf/core.bpf.h"
#include "bpf/cpu.bpf.h"
#include "bpf/block_hooks.bpf.h"

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	task_forked(parent, child);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	task_exited(task);
	return 0;
}
