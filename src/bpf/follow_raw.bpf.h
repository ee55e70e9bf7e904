/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* COMMAND's descendants, for the backends without typed tracepoints. */
#ifndef BLKPROF_BPF_FOLLOW_RAW_H
#define BLKPROF_BPF_FOLLOW_RAW_H

SEC("?raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	task_forked((struct task_struct *)ctx->args[0], (struct task_struct *)ctx->args[1]);
	return 0;
}

SEC("?raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	task_exited((struct task_struct *)ctx->args[0]);
	return 0;
}

#endif
