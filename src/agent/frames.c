// SPDX-License-Identifier: Apache-2.0
#include "agent/frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/service.h"
#include "agent/skipped_caller.h"
#include "bpf/unwind_rec.h"
#include "common/hash.h"
#include "common/text.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct text {
	UT_hash_handle hh;
	char text[];
};

// A frame by what it was made from: a mapping and an offset in it, or a name.
struct known_frame {
	struct {
		const void *owner; // struct frame_mapping, the symbolizer for the kernel's, or NULL
		uint64_t value;	   // offset; pointer of an interned name
	} key;
	struct frame frame;
	UT_hash_handle hh;
};

struct known_mapping {
	struct {
		const struct sym_module *module;
		uint64_t offset, size;
	} key;
	struct frame_mapping mapping;
	UT_hash_handle hh;
};

struct known_caller {
	struct {
		const struct proc *proc;
		uint64_t stack;
	} key;
	uint64_t caller; // return address, 0 = none was skipped
	UT_hash_handle hh;
};

struct resolver {
	struct symbolizer *symbolizer;
	struct procs *procs;
	const struct stacks *stacks;
	struct text *texts;
	struct known_frame *frames;
	struct known_mapping *mappings;
	struct known_caller *callers;
	uint64_t missing;
	bool no_memory;
};

struct resolver *resolver_new(struct symbolizer *symbolizer, struct procs *procs, const struct stacks *stacks)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->symbolizer = symbolizer;
	r->procs = procs;
	r->stacks = stacks;
	return r;
}

void resolver_free(struct resolver *r)
{
	struct known_frame *f, *next_frame;
	struct known_mapping *m, *next_mapping;
	struct known_caller *c, *next_caller;
	struct text *t, *next_text;

	if (!r)
		return;
	HASH_ITER(hh, r->frames, f, next_frame) {
		HASH_DEL(r->frames, f);
		free(f->frame.lines);
		free(f);
	}
	HASH_ITER(hh, r->mappings, m, next_mapping) {
		HASH_DEL(r->mappings, m);
		free(m);
	}
	HASH_ITER(hh, r->callers, c, next_caller) {
		HASH_DEL(r->callers, c);
		free(c);
	}
	HASH_ITER(hh, r->texts, t, next_text) {
		HASH_DEL(r->texts, t);
		free(t);
	}
	free(r);
}

uint64_t resolver_stacks_missing(const struct resolver *r)
{
	return r->missing;
}

// The one copy of a text; "" without memory.
static const char *intern(struct resolver *r, const char *text)
{
	size_t len;
	struct text *t;

	if (!text)
		return NULL;
	len = strlen(text);
	HASH_FIND(hh, r->texts, text, len, t);
	if (t)
		return t->text;
	t = malloc(sizeof(*t) + len + 1);
	if (!t)
		goto no_memory;
	memcpy(t->text, text, len + 1);
	HASH_ADD_KEYPTR(hh, r->texts, t->text, len, t);
	if (t->hh.tbl)
		return t->text;
	free(t);
no_memory:
	r->no_memory = true;
	return "";
}

static struct known_frame *frame_find(struct resolver *r, const void *owner, uint64_t value)
{
	struct known_frame key, *f;

	memset(&key, 0, sizeof(key));
	key.key.owner = owner;
	key.key.value = value;
	HASH_FIND(hh, r->frames, &key.key, sizeof(key.key), f);
	return f;
}

static struct known_frame *frame_add(struct resolver *r, const void *owner, uint64_t value, const struct sym_line *lines,
				     unsigned n)
{
	struct known_frame *f = calloc(1, sizeof(*f));

	if (!f)
		goto no_memory;
	f->frame.lines = calloc(n, sizeof(*lines));
	if (!f->frame.lines)
		goto no_memory;
	f->frame.n_lines = n;
	for (unsigned i = 0; i < n; i++) {
		f->frame.lines[i].name = intern(r, lines[i].name);
		f->frame.lines[i].system_name = intern(r, lines[i].system_name);
		f->frame.lines[i].file = intern(r, lines[i].file);
		f->frame.lines[i].line = lines[i].line;
	}
	f->key.owner = owner;
	f->key.value = value;
	HASH_ADD(hh, r->frames, key, sizeof(f->key), f);
	if (f->hh.tbl)
		return f;
	free(f->frame.lines);
no_memory:
	free(f);
	r->no_memory = true;
	return NULL;
}

static const struct frame *synthetic(struct resolver *r, const char *name)
{
	struct sym_line line = { .name = intern(r, name) };
	struct known_frame *f = frame_find(r, NULL, (uint64_t)(uintptr_t)line.name);

	if (!f)
		f = frame_add(r, NULL, (uint64_t)(uintptr_t)line.name, &line, 1);
	return f ? &f->frame : NULL;
}

// Kernel frames carry no addresses: they would give the kernel's random base away and are of use to nobody.
static const struct frame *kernel_frame(struct resolver *r, uint64_t address)
{
	struct sym_line line = { .name = NULL };
	struct known_frame *f;
	const char *module;
	uint64_t start;

	line.name = intern(r, symbolizer_kernel(r->symbolizer, address, &module, &start));
	if (!line.name || !*line.name)
		line.name = intern(r, "[kernel]");
	f = frame_find(r, r->symbolizer, (uint64_t)(uintptr_t)line.name);
	if (!f) {
		f = frame_add(r, r->symbolizer, (uint64_t)(uintptr_t)line.name, &line, 1);
		if (f)
			f->frame.kind = FRAME_KERNEL;
	}
	return f ? &f->frame : NULL;
}

static const struct frame_mapping *mapping_of(struct resolver *r, const struct proc_map *map)
{
	struct known_mapping key, *m;
	struct frame_mapping *f;

	memset(&key, 0, sizeof(key));
	key.key.module = map->module;
	key.key.offset = map->offset;
	key.key.size = map->limit - map->start;
	HASH_FIND(hh, r->mappings, &key.key, sizeof(key.key), m);
	if (m)
		return &m->mapping;
	m = calloc(1, sizeof(*m));
	if (!m) {
		r->no_memory = true;
		return NULL;
	}
	m->key = key.key;
	f = &m->mapping;
	f->start = map->start;
	f->limit = map->limit;
	f->offset = map->offset;
	f->file = intern(r, map->path);
	f->build_id = intern(r, sym_module_build_id(map->module));
	sym_module_has(map->module, &f->has_filenames, &f->has_line_numbers, &f->has_inline_frames);
	HASH_ADD(hh, r->mappings, key, sizeof(m->key), m);
	if (!m->hh.tbl) {
		free(m);
		r->no_memory = true;
		return NULL;
	}
	return f;
}

// Mappings of one file in several processes differ in where they lie: the first one's addresses stand for all, so that
// equal code is one location, and is looked up once however many processes run it.
static const struct frame *user_frame(struct resolver *r, struct proc *proc, uint64_t address, uint64_t time)
{
	struct sym_line lines[SYM_LINES_MAX];
	const struct frame_mapping *mapping;
	struct known_frame *f;
	struct proc_map map;
	unsigned n;

	if (!proc || !proc_find_map(r->procs, proc, address, time, &map))
		return synthetic(r, "[unknown]");
	if (!map.module)
		return synthetic(r, "[jit]");
	mapping = mapping_of(r, &map);
	if (!mapping)
		return NULL;
	f = frame_find(r, mapping, address - map.start);
	if (f)
		return &f->frame;
	n = sym_module_lookup(map.module, address - map.start + map.offset, lines);
	f = frame_add(r, mapping, address - map.start, lines, n);
	if (!f)
		return NULL;
	f->frame.kind = FRAME_USER;
	f->frame.mapping = mapping;
	f->frame.address = mapping->start + (address - map.start);
	return &f->frame;
}

static struct proc *proc_of(struct resolver *r, const struct row *row)
{
	return row->key.not_sampled || row->key.kind & TASK_KTHREAD ? NULL :
								      procs_find(r->procs, (pid_t)row->key.tgid, row->seen);
}

const char *resolver_process(struct resolver *r, const struct row *row)
{
	char name[64];
	struct proc *proc;

	if (row->key.not_sampled)
		return intern(r, "[not sampled]");
	if (row->key.kind & TASK_KTHREAD) {
		kernel_thread_kind(row->key.comm, name, sizeof(name));
		return intern(r, name);
	}
	proc = proc_of(r, row);
	if (proc && *proc_name(proc))
		return intern(r, proc_name(proc));
	text_sanitize(name, sizeof(name), row->key.comm, sizeof(row->key.comm));
	return intern(r, *name ? name : "[unknown process]");
}

const char *resolver_service(struct resolver *r, const struct row *row)
{
	struct proc *proc;

	if (row->key.not_sampled)
		return "[not sampled]";
	if (row->key.kind & TASK_KTHREAD)
		return "kernel";
	proc = proc_of(r, row);
	return proc && *proc_service(proc) ? intern(r, proc_service(proc)) : resolver_process(r, row);
}

struct list {
	const struct frame **out;
	unsigned n;
};

static void push(struct list *l, const struct frame *f)
{
	if (f && l->n < FRAMES_MAX)
		l->out[l->n++] = f;
}

// Looked up once for each stack of a process: it costs several look-ups of symbols.
static uint64_t caller_of(struct resolver *r, struct proc *proc, uint64_t hash, const struct stack_frames *s, uint64_t time)
{
	struct known_caller key, *c;
	uint64_t caller;

	memset(&key, 0, sizeof(key));
	key.key.proc = proc;
	key.key.stack = hash;
	HASH_FIND(hh, r->callers, &key.key, sizeof(key.key), c);
	if (c)
		return c->caller;
	c = calloc(1, sizeof(*c));
	if (!c) {
		r->no_memory = true;
		return 0;
	}
	c->key = key.key;
	c->caller = skipped_caller(r->procs, proc, s, time);
	caller = c->caller;
	HASH_ADD(hh, r->callers, key, sizeof(c->key), c);
	if (!c->hh.tbl) {
		free(c);
		r->no_memory = true;
	}
	return caller;
}

// Programs and trampolines of the tracing itself stand above the function that was traced.
static bool tracing_frame(const char *name)
{
	static const char *const prefixes[] = { "bpf_", "__bpf_", "__traceiter_", "trace_", "ftrace_", "kprobe_", "arch_rethook", "stack_take" };

	for (unsigned i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void push_kernel(struct resolver *r, struct list *l, const struct stack_frames *s)
{
	unsigned leaf = 0;

	for (; leaf < s->n_kernel; leaf++) {
		const struct frame *f = kernel_frame(r, s->kernel[leaf] - (leaf ? 1 : 0));

		if (!f || !tracing_frame(f->lines[0].name))
			break;
	}
	for (unsigned i = s->n_kernel; i > leaf; i--)
		push(l, kernel_frame(r, s->kernel[i - 1] - (i > 1 ? 1 : 0)));
}

// Why a kernel thread does this I/O, where its stack tells.
static const char *kernel_reason(struct resolver *r, const struct stack_frames *s)
{
	static const struct {
		const char *function, *reason;
	} reasons[] = {
		{ "wb_workfn", "[writeback]" },
		{ "wb_do_writeback", "[writeback]" },
		{ "blk_throtl_dispatch_work_fn", "[throttled]" },
		{ "loop_process_work", "[second level: loop device's file]" },
	};

	for (unsigned i = 0; i < s->n_kernel; i++) {
		const struct frame *f = kernel_frame(r, s->kernel[i] - 1);

		for (unsigned k = 0; f && k < sizeof(reasons) / sizeof(*reasons); k++)
			if (!strcmp(f->lines[0].name, reasons[k].function))
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

static void push_user(struct resolver *r, struct list *l, const struct row *row, const struct stack_frames *s,
		      bool *ret_recovered)
{
	struct proc *proc = proc_of(r, row);
	uint64_t time = row->seen, caller = caller_of(r, proc, row->key.stack, s, time);

	if (s->flags & STACK_TRUNCATED_USER)
		push(l, synthetic(r, "[truncated]"));
	else if (broken_frame(s->broken))
		push(l, synthetic(r, broken_frame(s->broken)));
	else if (s->flags & STACK_PENDING)
		push(l, synthetic(r, "[unwind tables not ready]"));
	for (unsigned i = s->n_user; i > 1; i--)
		push(l, user_frame(r, proc, s->user[i - 1] - 1, time));
	if (caller) {
		push(l, user_frame(r, proc, caller - 1, time));
		*ret_recovered = true;
	}
	push(l, user_frame(r, proc, s->user[0], time));
}

static void push_stack(struct resolver *r, struct list *l, const struct row *row, bool *ret_recovered)
{
	struct stack_frames s;
	const char *reason;

	if (row->key.not_sampled)
		return;
	if (row->key.kind & TASK_IO_WORKER)
		push(l, synthetic(r, strncmp(row->key.comm, "iou-sqp", 7) ? "[io_uring worker]" : "[io_uring sqpoll]"));
	if (!row->key.stack) { // folded: counted where it was
		push(l, synthetic(r, "[too many stacks]"));
		return;
	}
	if (!stacks_find(r->stacks, row->key.stack, &s)) {
		if (!(row->key.kind & TASK_IO_WORKER)) {
			r->missing += row->samples;
			push(l, synthetic(r, "[stack lost]"));
		}
		return;
	}
	if (row->key.kind & TASK_KTHREAD) {
		reason = kernel_reason(r, &s);
		if (reason)
			push(l, synthetic(r, reason));
	} else if (!(row->key.kind & TASK_IO_WORKER)) {
		if (s.n_user)
			push_user(r, l, row, &s, ret_recovered);
		else
			push(l, synthetic(r, "[no user stack]"));
	}
	push_kernel(r, l, &s);
}

int resolver_row(struct resolver *r, const struct row *row, const char *const *extra, unsigned n_extra,
		 const struct frame *out[FRAMES_MAX], bool *ret_recovered)
{
	struct list l = { .out = out };

	*ret_recovered = false;
	push(&l, synthetic(r, resolver_process(r, row)));
	for (unsigned i = 0; i < n_extra; i++)
		push(&l, synthetic(r, extra[i]));
	push_stack(r, &l, row, ret_recovered);
	if (row->key.in_flight)
		push(&l, synthetic(r, "[in flight]"));
	return r->no_memory ? -ENOMEM : (int)l.n;
}
