// SPDX-License-Identifier: Apache-2.0
#include "agent/resolve_stack.h"

#include <string.h>

#include "agent/skipped_caller.h"
#include "bpf/unwind_rec.h"
#include "symbolize/perf_map.h"

struct list {
	const struct frame *out[FRAMES_MAX];
	unsigned n;
	bool recovered, incomplete;
};

static void push(struct list *l, const struct frame *f)
{
	l->incomplete |= !f;
	if (f && l->n < FRAMES_MAX)
		l->out[l->n++] = f;
}

static void push_named(const struct resolving *x, struct list *l, const char *name)
{
	push(l, frames_synthetic(x->frames, name));
}

// Kernel frames carry no addresses: they would give the kernel's random base away and are of use to nobody.
static const char *kernel_name(const struct resolving *x, uint64_t address)
{
	const char *module, *name;
	uint64_t start;

	name = symbolizer_kernel(x->symbolizer, address, &module, &start);
	return name && *name ? name : "[kernel]";
}

static const struct frame *generated_frame(const struct resolving *x, struct proc *proc, uint64_t address)
{
	char name[PERF_MAP_NAME_MAX];
	const char *raw;

	if (!procs_generated(x->procs, proc, address, name, sizeof(name), &raw))
		return frames_synthetic(x->frames, "[jit]");
	return frames_generated(x->frames, name, raw);
}

// Mappings of one file in several processes differ in where they lie: the first one's addresses stand for all, so that
// equal code is one frame, and is looked up once however many processes run it.
static const struct frame *user_frame(const struct resolving *x, struct proc *proc, uint64_t address, uint64_t time)
{
	struct sym_line lines[SYM_LINES_MAX];
	const struct frame_mapping *mapping;
	const struct frame *f;
	struct proc_map map;
	unsigned n;

	if (!proc || !proc_find_map(x->procs, proc, address, time, &map))
		return frames_synthetic(x->frames, "[unknown]");
	if (!map.module)
		return generated_frame(x, proc, address);
	mapping = frames_mapping(x->frames, map.module, map.offset, map.limit - map.start, map.start, map.path);
	if (!mapping)
		return NULL;
	f = frames_user(x->frames, mapping, address - map.start);
	if (f)
		return f;
	procs_open(x->procs, proc, address, time, &map);
	n = sym_module_lookup(map.module, address - map.start + map.offset, lines);
	return frames_user_add(x->frames, mapping, address - map.start, map.module, lines, n);
}

// Programs and trampolines of the tracing itself stand above the function that was traced.
static bool tracing_frame(const char *name)
{
	static const char *const prefixes[] = { "bpf_", "__bpf_", "__traceiter_", "trace_", "ftrace_", "kprobe_",
						"arch_rethook", "stack_take" };

	for (unsigned i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void push_kernel(const struct resolving *x, struct list *l, const struct stack_frames *s)
{
	unsigned leaf = 0;

	while (leaf < s->n_kernel && tracing_frame(kernel_name(x, s->kernel[leaf] - (leaf ? 1 : 0))))
		leaf++;
	for (unsigned i = s->n_kernel; i > leaf; i--)
		push(l, frames_kernel(x->frames, kernel_name(x, s->kernel[i - 1] - (i > 1 ? 1 : 0))));
}

// Why a kernel thread does this I/O, where its stack tells.
static const char *kernel_reason(const struct resolving *x, const struct stack_frames *s)
{
	static const struct {
		const char *function, *reason;
	} reasons[] = {
		{ "wb_workfn", "[writeback]" },
		{ "wb_do_writeback", "[writeback]" },
		{ "blk_throtl_dispatch_work_fn", "[throttled]" },
		{ "loop_process_work", "[second level: loop device's file]" },
		{ "loop_queue_work", "[second level: loop device's file]" }, // up to 5.13
	};

	for (unsigned i = 0; i < s->n_kernel; i++) {
		const char *name = kernel_name(x, s->kernel[i] - 1);

		for (unsigned k = 0; k < sizeof(reasons) / sizeof(*reasons); k++)
			if (!strcmp(name, reasons[k].function))
				return reasons[k].reason;
	}
	return NULL;
}

// Where a walk by tables ended too early, and why.
static const char *broken_frame(enum unwind_break why)
{
	static const char *const names[UNWIND_BREAKS] = {
		[UNWIND_NO_MAPPING] = "[broken stack: unknown code]",
		[UNWIND_BREAK_NO_TABLE] = "[broken stack: no unwind table]",
		[UNWIND_NO_RULE] = "[broken stack: no unwind rule]",
		[UNWIND_UNREADABLE] = "[broken stack: unreadable]",
		[UNWIND_BAD_RETURN] = "[broken stack: bad return address]",
		[UNWIND_NOT_GROWING] = "[broken stack: not growing]",
		[UNWIND_LOST_REGISTER] = "[broken stack: frame pointer lost]",
	};

	return why < UNWIND_BREAKS ? names[why] : NULL;
}

static void push_user(const struct resolving *x, struct list *l, const struct in_flight *e, struct proc *proc,
		      const struct stack_frames *s)
{
	uint64_t time = e->submit, caller = skipped_caller(x->procs, proc, s, time);

	if (s->flags & STACK_TRUNCATED_USER)
		push_named(x, l, "[truncated]");
	else if (broken_frame(s->broken))
		push_named(x, l, broken_frame(s->broken));
	else if (s->flags & STACK_PENDING)
		push_named(x, l, "[unwind tables not ready]");
	for (unsigned i = s->n_user; i > 1; i--)
		push(l, user_frame(x, proc, s->user[i - 1] - 1, time));
	if (caller)
		push(l, user_frame(x, proc, caller - 1, time));
	l->recovered = caller != 0;
	push(l, user_frame(x, proc, s->user[0], time));
}

#define KIND_SQPOLL 0x100

uint32_t resolve_stack_kind(const struct in_flight *e)
{
	uint32_t kind = e->kind & (TASK_KTHREAD | TASK_IO_WORKER);

	return kind & TASK_IO_WORKER && !strncmp(e->comm, "iou-sqp", 7) ? kind | KIND_SQPOLL : kind;
}

static void push_worker(const struct resolving *x, struct list *l, const struct in_flight *e)
{
	uint32_t kind = resolve_stack_kind(e);

	if (kind & TASK_IO_WORKER)
		push_named(x, l, kind & KIND_SQPOLL ? "[io_uring sqpoll]" : "[io_uring worker]");
}

static uint32_t finish(const struct resolving *x, const struct list *l)
{
	return l->incomplete ? 0 : frames_stack(x->frames, l->out, l->n, l->recovered);
}

uint32_t resolve_stack(const struct resolving *x, const struct in_flight *e, struct proc *proc,
		       const struct stack_frames *raw, const struct stack_frames *submitter)
{
	struct list l = { .n = 0 };
	const char *reason;

	if (e->kind & TASK_IO_WORKER && submitter->n_user)
		push_user(x, &l, e, proc, submitter);
	push_worker(x, &l, e);
	if (e->kind & TASK_KTHREAD) {
		reason = kernel_reason(x, raw);
		if (reason)
			push_named(x, &l, reason);
	} else if (!(e->kind & TASK_IO_WORKER)) {
		if (raw->n_user)
			push_user(x, &l, e, proc, raw);
		else
			push_named(x, &l, "[no user stack]");
	}
	push_kernel(x, &l, raw);
	return finish(x, &l);
}

uint32_t resolve_stack_lost(const struct resolving *x, const struct in_flight *e)
{
	struct list l = { .n = 0 };

	if (!(e->kind & TASK_IO_WORKER) || e->submitter)
		push_named(x, &l, "[stack lost]");
	push_worker(x, &l, e);
	return finish(x, &l);
}
