// SPDX-License-Identifier: Apache-2.0
#include "agent/proctable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/proctable_internal.h"
#include "common/text.h"

// A slot with its share of uthash's buckets.
#define SLOT_SIZE (sizeof(struct pid_slot) + 16)

struct proctable *proctable_new(size_t budget)
{
	struct proctable *t = calloc(1, sizeof(*t));

	if (t)
		t->budget = budget;
	return t;
}

static void ended_append(struct proctable *t, struct proc *p)
{
	p->ended_prev = t->last_ended;
	p->ended_next = NULL;
	if (t->last_ended)
		t->last_ended->ended_next = p;
	else
		t->first_ended = p;
	t->last_ended = p;
}

static void ended_remove(struct proctable *t, struct proc *p)
{
	if (p->end_ns == UINT64_MAX)
		return;
	if (p->ended_prev)
		p->ended_prev->ended_next = p->ended_next;
	else
		t->first_ended = p->ended_next;
	if (p->ended_next)
		p->ended_next->ended_prev = p->ended_prev;
	else
		t->last_ended = p->ended_prev;
}

static void slot_remove(struct proctable *t, struct pid_slot *slot)
{
	HASH_DEL(t->slots, slot);
	proctable_release(t, slot, SLOT_SIZE);
}

static void life_remove(struct proctable *t, struct proc *p)
{
	ended_remove(t, p);
	if (p->newer)
		p->newer->older = p->older;
	else
		p->slot->newest = p->older;
	if (p->older)
		p->older->newer = p->newer;
	if (!p->slot->newest)
		slot_remove(t, p->slot);
	mappings_drop(t, p->mappings);
	proctable_drop(t, p->exe);
	proctable_drop(t, p->cgroup_text);
	proctable_drop(t, p->service);
	proctable_release(t, p, sizeof(*p));
	t->lives--;
}

void proctable_free(struct proctable *t)
{
	struct pid_slot *slot, *next;

	if (!t)
		return;
	for (slot = t->slots; slot; slot = next) {
		next = slot->hh.next;
		// Removing the last life frees the slot.
		for (struct proc *p = slot->newest, *older; p; p = older) {
			older = p->older;
			life_remove(t, p);
		}
	}
	free(t);
}

void proctable_stats(const struct proctable *t, struct proctable_stats *ret)
{
	*ret = (struct proctable_stats){ .evicted = t->evicted, .refused_mappings = t->refused_mappings,
					 .lives = t->lives, .bytes = t->used };
}

static bool evict(struct proctable *t)
{
	struct proc *p = t->first_ended;

	if (p && p == t->pinned)
		p = p->ended_next;
	if (!p || t->keep_all)
		return false;
	life_remove(t, p);
	t->evicted++;
	return true;
}

void *proctable_alloc(struct proctable *t, size_t size)
{
	void *memory;

	while (t->used + size > t->budget) {
		if (!evict(t))
			return NULL;
	}
	memory = calloc(1, size);
	if (memory)
		t->used += size;
	return memory;
}

void proctable_release(struct proctable *t, void *memory, size_t size)
{
	free(memory);
	t->used -= size;
}

static struct pid_slot *slot_find(struct proctable *t, pid_t pid)
{
	struct pid_slot *slot;

	HASH_FIND(hh, t->slots, &pid, sizeof(pid), slot);
	return slot;
}

static struct pid_slot *slot_add(struct proctable *t, pid_t pid)
{
	struct pid_slot *slot = proctable_alloc(t, SLOT_SIZE);

	if (!slot)
		return NULL;
	slot->pid = pid;
	HASH_ADD(hh, t->slots, pid, sizeof(slot->pid), slot);
	if (slot->hh.tbl)
		return slot;
	proctable_release(t, slot, SLOT_SIZE);
	return NULL;
}

struct proc *proctable_newest(struct proctable *t, pid_t pid)
{
	struct pid_slot *slot = slot_find(t, pid);

	return slot ? slot->newest : NULL;
}

struct proc *proctable_find(struct proctable *t, pid_t pid, uint64_t time_ns)
{
	struct proc *p = proctable_newest(t, pid);

	while (p && p->start_ns > time_ns)
		p = p->older;
	return p;
}

void proctable_end(struct proctable *t, struct proc *p, uint64_t time_ns)
{
	ended_remove(t, p);
	p->end_ns = time_ns < UINT64_MAX ? time_ns : UINT64_MAX - 1; // which would say that it lives
	ended_append(t, p);
}

struct proc *proctable_begin(struct proctable *t, pid_t pid, uint64_t time_ns)
{
	struct proc *before = proctable_newest(t, pid), *p;
	struct pid_slot *slot;

	if (before && before->end_ns == UINT64_MAX)
		proctable_end(t, before, time_ns);
	p = proctable_alloc(t, sizeof(*p));
	if (!p)
		goto refused;
	// Only now: making room may have removed the slot with its last life.
	slot = slot_find(t, pid);
	if (!slot)
		slot = slot_add(t, pid);
	if (!slot) {
		proctable_release(t, p, sizeof(*p));
		goto refused;
	}
	p->pid = pid;
	p->start_ns = time_ns;
	p->end_ns = UINT64_MAX;
	p->slot = slot;
	p->older = slot->newest;
	if (p->older)
		p->older->newer = p;
	slot->newest = p;
	t->lives++;
	return p;
refused:
	t->evicted++;
	return NULL;
}

void proctable_rename(struct proctable *t, struct proc *p, const char *comm, size_t len)
{
	char name[sizeof(p->name)];

	text_sanitize(name, sizeof(name), comm, len);
	if (!strcmp(name, p->name))
		return;
	memcpy(p->name, name, sizeof(name));
	// Where nothing else names the service, the process does.
	proctable_drop(t, p->service);
	p->service = NULL;
}

static int apply_fork(struct proctable *t, const struct proc_event *ev)
{
	struct proc *parent, *p;
	struct proc inherited = { .incomplete = true };

	if (ev->pid == ev->ppid || ev->tid != ev->pid)
		return 0; // a thread
	parent = proctable_find(t, ev->ppid, ev->time_ns);
	if (parent) {
		inherited = *parent;
		mappings_share(parent->mappings);
		proctable_share(parent->exe);
		proctable_share(parent->cgroup_text);
		proctable_share(parent->service);
	}
	// The parent itself may be evicted here; what it shared stays.
	p = proctable_begin(t, ev->pid, ev->time_ns);
	if (!p) {
		mappings_drop(t, inherited.mappings);
		proctable_drop(t, inherited.exe);
		proctable_drop(t, inherited.cgroup_text);
		proctable_drop(t, inherited.service);
		return -ENOMEM;
	}
	p->ppid = ev->ppid;
	p->mappings = inherited.mappings;
	p->exe = inherited.exe;
	p->cgroup_text = inherited.cgroup_text;
	p->service = inherited.service;
	p->cgroup = inherited.cgroup;
	p->incomplete = inherited.incomplete;
	memcpy(p->name, inherited.name, sizeof(p->name));
	return 0;
}

static int apply_exec(struct proctable *t, const struct proc_event *ev)
{
	struct proc *before = proctable_newest(t, ev->pid), *p;
	struct proc_text *cgroup_text = before ? proctable_share(before->cgroup_text) : NULL;
	uint64_t cgroup = before ? before->cgroup : 0;
	pid_t ppid = before ? before->ppid : 0;

	p = proctable_begin(t, ev->pid, ev->time_ns);
	if (!p) {
		proctable_drop(t, cgroup_text);
		return -ENOMEM;
	}
	p->ppid = ppid;
	p->cgroup_text = cgroup_text;
	p->cgroup = cgroup;
	proctable_rename(t, p, ev->text, ev->text_len);
	return 0;
}

// The life that an event of a running process is about; one whose beginning was missed is begun.
static struct proc *running(struct proctable *t, const struct proc_event *ev)
{
	struct proc *p = proctable_newest(t, ev->pid);

	if (p && p->end_ns == UINT64_MAX)
		return p;
	// The main thread may have ended before the others.
	if (p && ev->tid != ev->pid)
		return p;
	p = proctable_begin(t, ev->pid, ev->time_ns);
	if (p)
		p->incomplete = true;
	return p;
}

static int apply_comm(struct proctable *t, const struct proc_event *ev)
{
	struct proc *p;

	if (ev->tid != ev->pid)
		return 0;
	p = running(t, ev);
	if (!p)
		return -ENOMEM;
	proctable_rename(t, p, ev->text, ev->text_len);
	return 0;
}

static int apply_map(struct proctable *t, const struct proc_event *ev)
{
	struct proc *p = running(t, ev);

	return p ? proctable_map(t, p, ev) : -ENOMEM;
}

static void apply_exit(struct proctable *t, const struct proc_event *ev)
{
	struct proc *p = proctable_newest(t, ev->pid);

	// A thread's end matters only behind the main thread's: the process then ends with its last thread.
	if (p && (ev->tid == ev->pid || p->end_ns != UINT64_MAX) && p->start_ns <= ev->time_ns)
		proctable_end(t, p, ev->time_ns);
}

int proctable_apply(struct proctable *t, const struct proc_event *ev)
{
	if (ev->pid <= 0)
		return 0; // the idle task, and tasks outside this pid namespace
	switch (ev->type) {
	case PROC_FORK:
		return apply_fork(t, ev);
	case PROC_EXEC:
		return apply_exec(t, ev);
	case PROC_COMM:
		return apply_comm(t, ev);
	case PROC_MMAP:
		return apply_map(t, ev);
	case PROC_EXIT:
		apply_exit(t, ev);
		return 0;
	default:
		return 0;
	}
}

void proctable_forget(struct proctable *t, uint64_t time_ns)
{
	// A life whose main thread ended late sits behind younger ends by microseconds at most: the order is good enough.
	while (t->first_ended && t->first_ended->end_ns < time_ns)
		life_remove(t, t->first_ended);
	for (struct pid_slot *slot = t->slots; slot; slot = slot->hh.next)
		mappings_compact(t, slot->newest->mappings, time_ns);
}

void proctable_end_unscanned(struct proctable *t, uint64_t since_ns, uint64_t now_ns)
{
	for (struct pid_slot *slot = t->slots; slot; slot = slot->hh.next) {
		struct proc *p = slot->newest;

		if (p->end_ns == UINT64_MAX && p->start_ns < since_ns && p->scanned_ns < since_ns)
			proctable_end(t, p, now_ns);
	}
}
