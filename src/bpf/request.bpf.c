// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// Where the threads of chosen processes spend their time, and what they read and write on connections that speak HTTP.
// Tracepoints only: they are there on kernels without kprobes and trampolines, and an exit is never lost as a return probe is.
#include "bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/request_rec.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct req_config config SEC(".rodata.config");
struct req_state state SEC(".data.state");

#include "bpf/pauses.bpf.h"
#include "bpf/request_maps.bpf.h"
#include "bpf/request_files.bpf.h"
#include "bpf/request_events.bpf.h"
#include "bpf/request_sched.bpf.h"
#include "bpf/request_bios.bpf.h"

static __always_inline void begin_call(struct req_thread *t, struct pt_regs *regs, u32 number, u64 now, bool straight)
{
	u32 slot = number & (REQ_SYSCALLS - 1);
	u8 action;

	barrier_var(slot);
	action = slot == number ? config.actions[slot & (REQ_SYSCALLS - 1)] : ACTION_OTHER;
	t->arg0 = call_argument(regs, 0, straight);
	t->arg1 = call_argument(regs, 1, straight);
	t->arg2 = call_argument(regs, 2, straight);
	t->action = action;
	t->inode = 0;
	t->call = call_kind(t, action, regs);
	t->enter = now;
	t->fault = 0;
	t->fault_waited = 0;
	if (t->call == CALL_SOCKET_READ && t->inode)
		connection_asked(t, now);
	else if (action == ACTION_CLOSE)
		connection_closing(t, (u32)t->arg0, now);
	else if (action == ACTION_DUP2)
		connection_closing(t, (u32)t->arg1, now);
}

SEC("?tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long number)
{
	u64 id = bpf_get_current_pid_tgid();
	struct req_thread *t;

	/* What all others pay for every call. */
	if (!maybe_target(id >> 32))
		return 0;
	hold_cpu();
	t = known_thread(id >> 32, (u32)id, true);
	if (t)
		begin_call(t, regs, (u32)number, bpf_ktime_get_ns(), true);
	release_cpu();
	return 0;
}

static __always_inline void end_call(struct req_thread *t, struct pt_regs *regs, s64 result)
{
	u64 now = bpf_ktime_get_ns();
	u32 call;
	struct req_call_sums *sums;

	/* It has been in this call since before we looked: what it is on is still in its registers. */
	if (t->call == CALL_NONE)
		begin_call(t, regs, call_number(regs), now, false);
	call = t->call == CALL_SLEEP ? CALL_OTHER : t->call;
	t->call = CALL_NONE;
	if (call >= CALLS)
		return;
	sums = &t->sums.calls[call];
	sums->ops++;
	sums->ns += now - t->enter;
	/* A look at what is there moves nothing. */
	if (call == CALL_SOCKET_READ && !t->inode)
		return;
	if (result > 0 && moves_bytes(call))
		sums->bytes += (u64)result;
	if (call == CALL_SOCKET_READ)
		connection_read(t, result, now);
	else if (call == CALL_SOCKET_WRITE || (call == CALL_COPY && t->inode))
		connection_written(t, result, now);
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	u64 id = bpf_get_current_pid_tgid();
	struct req_thread *t;

	/* What all others pay for every call. */
	if (!maybe_target(id >> 32))
		return 0;
	hold_cpu();
	t = known_thread(id >> 32, (u32)id, true);
	if (t)
		end_call(t, regs, result);
	release_cpu();
	return 0;
}
