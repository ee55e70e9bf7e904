// SPDX-License-Identifier: Apache-2.0
#include "agent/resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/resolve_stack.h"
#include "agent/service.h"
#include "common/hash.h"
#include "common/text.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = (unsigned)hash_bytes(key, len, 0))
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define TURNS_KEPT 3 // what was not used for so long goes with a sweep
#define OVERHEAD 32  // of malloc and of uthash's buckets, for each element

// A raw stack in an address space.
struct resolved {
	struct resolved_key {
		uint64_t space, hash, submitter;
		uint64_t generation; // of the process's generated code
		uint32_t kind, pad;
	} key;
	uint32_t stack; // number of its frames
	uint32_t used;	// turn
	UT_hash_handle hh;
};

struct resolver {
	struct resolver_options options;
	struct frames *frames;
	struct resolved *resolved;
	size_t after_sweep; // bytes
	uint32_t turn;
	uint64_t missing, refused;
};

struct resolver *resolver_new(const struct resolver_options *options)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->options = *options;
	r->frames = frames_new();
	if (r->frames)
		return r;
	free(r);
	return NULL;
}

static void forget(struct resolver *r, struct resolved *k)
{
	HASH_DEL(r->resolved, k);
	free(k);
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	while (r->resolved)
		forget(r, r->resolved);
	frames_free(r->frames);
	free(r);
}

struct frames *resolver_frames(struct resolver *r)
{
	return r->frames;
}

static struct proc *proc_of(struct resolver *r, const struct in_flight *e)
{
	return e->kind & TASK_KTHREAD ? NULL : procs_find(r->options.procs, (pid_t)e->tgid, e->submit);
}

static void key_of(struct resolver *r, struct resolved_key *key, const struct in_flight *e, struct proc *proc)
{
	memset(key, 0, sizeof(*key));
	key->space = proc_space(proc);
	key->hash = e->stack;
	key->submitter = e->submitter;
	key->kind = resolve_stack_kind(e);
	if (proc)
		key->generation = procs_generation(r->options.procs, proc);
}

static struct resolved *find(struct resolver *r, const struct resolved_key *key)
{
	struct resolved *k;

	HASH_FIND(hh, r->resolved, key, sizeof(*key), k);
	if (k)
		k->used = r->turn;
	return k;
}

static int add(struct resolver *r, const struct resolved_key *key, uint32_t stack)
{
	struct resolved *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->key = *key;
	k->stack = stack;
	k->used = r->turn;
	HASH_ADD(hh, r->resolved, key, sizeof(k->key), k);
	if (k->hh.tbl)
		return 0;
	free(k);
	return -ENOMEM;
}

static void process_name(const struct in_flight *e, struct proc *proc, char *out, size_t cap)
{
	*out = 0;
	if (e->kind & TASK_KTHREAD)
		kernel_thread_kind(e->comm, out, cap);
	else if (proc)
		text_sanitize(out, cap, proc_name(proc), strlen(proc_name(proc)));
	if (!*out)
		text_sanitize(out, cap, e->comm, sizeof(e->comm));
	if (!*out)
		text_sanitize(out, cap, "[unknown process]", 32);
}

// All but the stack.
static void names_of(struct resolver *r, const struct in_flight *e, struct proc *proc, struct row_who *ret)
{
	const char *service = NULL;
	char name[64], comm[64];

	memset(ret, 0, sizeof(*ret));
	process_name(e, proc, name, sizeof(name));
	if (e->kind & TASK_KTHREAD)
		service = "kernel";
	else if (proc)
		service = proc_service(proc);
	ret->process = frames_text(r->frames, name);
	ret->service = frames_text(r->frames, service && *service ? service : name);
	if (r->options.comm) {
		thread_stem(e->comm, comm, sizeof(comm));
		ret->comm = frames_text(r->frames, comm);
	}
	if (r->options.pid)
		ret->tgid = e->tgid;
}

bool resolver_known(struct resolver *r, const struct in_flight *e, struct row_who *ret)
{
	struct proc *proc = proc_of(r, e);
	struct resolved_key key;
	struct resolved *k;

	key_of(r, &key, e, proc);
	k = find(r, &key);
	if (!k)
		return false;
	names_of(r, e, proc, ret);
	ret->stack = k->stack;
	return true;
}

static size_t memory(const struct resolver *r)
{
	return frames_memory(r->frames) + HASH_COUNT(r->resolved) * (sizeof(struct resolved) + OVERHEAD);
}

static struct resolving resolving(struct resolver *r)
{
	return (struct resolving){ .frames = r->frames, .symbolizer = r->options.symbolizer, .procs = r->options.procs };
}

// What is lost is not remembered: it may come again.
static int resolve_lost(struct resolver *r, const struct in_flight *e, struct row_who *ret)
{
	struct resolving x = resolving(r);

	r->missing += !(e->kind & TASK_IO_WORKER) || e->submitter;
	ret->stack = resolve_stack_lost(&x, e);
	return frames_no_memory(r->frames) ? -ENOMEM : 0;
}

int resolver_who(struct resolver *r, const struct in_flight *e, struct row_who *ret)
{
	struct resolving x = resolving(r);
	struct proc *proc = proc_of(r, e);
	struct stack_frames raw, submitter = { .n_user = 0 };
	struct resolved_key key;

	if (resolver_known(r, e, ret))
		return 0;
	names_of(r, e, proc, ret);
	if (memory(r) > 2 * r->options.memory) {
		r->refused++;
		return 0;
	}
	if (!stacks_find(r->options.stacks, e->stack, &raw) ||
	    (e->submitter && !stacks_find(r->options.stacks, e->submitter, &submitter)))
		return resolve_lost(r, e, ret);
	key_of(r, &key, e, proc);
	ret->stack = resolve_stack(&x, e, proc, &raw, &submitter);
	if (!ret->stack)
		return -ENOMEM;
	return add(r, &key, ret->stack);
}

void resolver_touch(struct resolver *r, const struct in_flight *e)
{
	struct stack_frames raw;

	stacks_find(r->options.stacks, e->stack, &raw);
	stacks_find(r->options.stacks, e->submitter, &raw);
}

void resolver_mark(struct resolver *r, const struct row_who *who)
{
	frames_mark_stack(r->frames, who->stack);
	frames_mark_text(r->frames, who->process);
	frames_mark_text(r->frames, who->service);
	frames_mark_text(r->frames, who->comm);
}

bool resolver_is_full(const struct resolver *r)
{
	size_t now = memory(r);

	// Not at each call where the rows alone hold as much.
	return now > r->options.memory && now > r->after_sweep + r->after_sweep / 4;
}

static void sweep(struct resolver *r, uint32_t turns, resolver_mark_fn mark, void *context)
{
	struct resolved *k, *next;

	frames_sweep_begin(r->frames);
	mark(r, context);
	HASH_ITER(hh, r->resolved, k, next) {
		if (r->turn - k->used > turns)
			forget(r, k);
		else
			frames_mark_stack(r->frames, k->stack);
	}
	frames_sweep_end(r->frames);
}

void resolver_sweep(struct resolver *r, resolver_mark_fn mark, void *context)
{
	size_t goal = r->options.memory / 4 * 3;

	sweep(r, TURNS_KEPT, mark, context);
	if (memory(r) > goal)
		sweep(r, 0, mark, context);
	if (memory(r) > goal) {
		while (r->resolved)
			forget(r, r->resolved);
		sweep(r, 0, mark, context);
	}
	r->after_sweep = memory(r);
}

void resolver_turn(struct resolver *r)
{
	r->turn++;
}

uint64_t resolver_stacks_missing(const struct resolver *r)
{
	return r->missing;
}

uint64_t resolver_stacks_refused(const struct resolver *r)
{
	return r->refused;
}

const char *resolver_process(const struct resolver *r, const struct row_key *key)
{
	return key->not_sampled ? "[not sampled]" : frames_text_get(r->frames, key->who.process);
}

const char *resolver_service(const struct resolver *r, const struct row_key *key)
{
	return key->not_sampled ? "[not sampled]" : frames_text_get(r->frames, key->who.service);
}

const char *resolver_comm(const struct resolver *r, const struct row_key *key)
{
	return frames_text_get(r->frames, key->who.comm);
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

int resolver_row(struct resolver *r, const struct row_key *key, const char *const *extra, unsigned n_extra,
		 const struct frame *out[FRAMES_MAX])
{
	const struct frame_stack *stack = frames_stack_get(r->frames, key->who.stack);
	struct list l = { .out = out };

	push(&l, frames_synthetic(r->frames, resolver_process(r, key)));
	for (unsigned i = 0; i < n_extra; i++)
		push(&l, frames_synthetic(r->frames, extra[i]));
	for (unsigned i = 0; stack && i < stack->n; i++)
		push(&l, stack->frames[i]);
	if (!stack && !key->not_sampled) // folded: counted where it was
		push(&l, frames_synthetic(r->frames, "[too many stacks]"));
	if (key->in_flight)
		push(&l, frames_synthetic(r->frames, "[in flight]"));
	return frames_no_memory(r->frames) ? -ENOMEM : (int)l.n;
}
