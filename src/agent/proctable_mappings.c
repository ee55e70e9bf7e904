// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/proctable_internal.h"

#define MAPPINGS_FIRST 8
#define MAPPINGS_MAX 65536 // vm.max_map_count is 65530

static size_t mappings_size(unsigned capacity)
{
	return sizeof(struct proc_mappings) + capacity * sizeof(struct proc_mapping);
}

void proc_mapping_set_module(struct proc_mapping *m, struct proc_module *module)
{
	if (module)
		module->users++;
	if (m->module)
		m->module->users--;
	m->module = module;
}

static void entry_drop(struct proctable *t, struct proc_mapping *m)
{
	proc_mapping_set_module(m, NULL);
	proctable_drop(t, m->file);
}

struct proc_mappings *mappings_share(struct proc_mappings *m)
{
	if (m)
		m->users++;
	return m;
}

void mappings_drop(struct proctable *t, struct proc_mappings *m)
{
	if (!m || --m->users)
		return;
	for (unsigned i = 0; i < m->count; i++)
		entry_drop(t, &m->entries[i]);
	proctable_release(t, m, mappings_size(m->capacity));
}

static struct proc_mappings *mappings_copy(struct proctable *t, const struct proc_mappings *from, unsigned capacity)
{
	struct proc_mappings *m = proctable_alloc(t, mappings_size(capacity));

	if (!m)
		return NULL;
	m->users = 1;
	m->capacity = capacity;
	m->serial = ++t->serial;
	if (!from)
		return m;
	m->count = from->count;
	m->unresolved = from->unresolved;
	m->compacted = from->compacted;
	m->serial = from->serial;
	memcpy(m->entries, from->entries, from->count * sizeof(from->entries[0]));
	for (unsigned i = 0; i < m->count; i++) {
		proctable_share(m->entries[i].file);
		if (m->entries[i].module)
			m->entries[i].module->users++;
	}
	return m;
}

// Makes p's mappings its own, with room for one more when `grow`.
static int mappings_unshare(struct proctable *t, struct proc *p, bool grow)
{
	struct proc_mappings *m = p->mappings, *own;
	unsigned capacity = m ? m->capacity : MAPPINGS_FIRST;

	if (m && m->users == 1 && (!grow || m->count < m->capacity))
		return 0;
	if (m && grow && m->count == m->capacity)
		capacity += capacity / 2;
	if (capacity > MAPPINGS_MAX)
		return -ENOMEM;
	// Eviction may drop the other users of m meanwhile, but not ours.
	own = mappings_copy(t, m, capacity);
	if (!own)
		return -ENOMEM;
	mappings_drop(t, m);
	p->mappings = own;
	return 0;
}

static bool overlaps_or_touches(const struct proc_mapping *m, const struct proc_event *ev)
{
	return m->start <= ev->limit && ev->start <= m->limit;
}

static bool overlaps(const struct proc_mapping *m, const struct proc_event *ev)
{
	return m->start < ev->limit && ev->start < m->limit;
}

static bool holds(const struct proc_mapping *m, uint64_t start, uint64_t limit)
{
	return m->start <= start && limit <= m->limit;
}

// The newest entry that the event's range overlaps (or, for generated code, touches), if it is of the same file and
// agrees about what lies where: then there is no new entry to make. Else -1.
static int same_mapping(const struct proc_mappings *m, const struct proc_event *ev, const struct proc_text *file)
{
	bool anonymous = proc_text_is_anonymous(file);

	for (unsigned i = m ? m->count : 0; i-- > 0;) {
		const struct proc_mapping *e = &m->entries[i];

		if (anonymous && proc_text_is_anonymous(e->file) && overlaps_or_touches(e, ev))
			return (int)i;
		if (!overlaps(e, ev))
			continue;
		if (e->file == file && holds(e, ev->start, ev->limit) && e->offset - e->start == ev->offset - ev->start)
			return (int)i;
		return -1;
	}
	return -1;
}

// JIT compilers open their code pages to writing and back thousands of times, in ever other pieces: one entry grows.
static int mapping_extend(struct proctable *t, struct proc *p, unsigned i, const struct proc_event *ev)
{
	struct proc_mapping *e = &p->mappings->entries[i];

	if (holds(e, ev->start, ev->limit) || !proc_text_is_anonymous(e->file))
		return 0;
	if (mappings_unshare(t, p, false))
		return -ENOMEM;
	e = &p->mappings->entries[i];
	if (ev->start < e->start) {
		e->offset -= e->start - ev->start;
		e->start = ev->start;
	}
	if (ev->limit > e->limit)
		e->limit = ev->limit;
	p->mappings->serial = ++t->serial;
	return 0;
}

static int mapping_add(struct proctable *t, struct proc *p, const struct proc_event *ev, struct proc_text *file)
{
	struct proc_mapping *e;
	int same = same_mapping(p->mappings, ev, file);

	if (same >= 0) {
		proctable_drop(t, file);
		return mapping_extend(t, p, (unsigned)same, ev);
	}
	if (mappings_unshare(t, p, true)) {
		proctable_drop(t, file);
		return -ENOMEM;
	}
	e = &p->mappings->entries[p->mappings->count++];
	*e = (struct proc_mapping){ .start = ev->start, .limit = ev->limit, .offset = ev->offset,
				    .time_ns = ev->time_ns, .file = file };
	p->mappings->serial = ++t->serial;
	e->resolved = proc_text_is_anonymous(file);
	p->mappings->unresolved += !e->resolved;
	if (!p->exe && proc_text_inode(file))
		p->exe = proctable_share(file);
	return 0;
}

int proctable_map(struct proctable *t, struct proc *p, const struct proc_event *ev)
{
	const struct proc *pinned = t->pinned;
	struct proc_text *file;
	int err = -ENOMEM;

	t->pinned = p;
	file = proctable_keep_file(t, ev);
	if (file)
		err = mapping_add(t, p, ev, file);
	t->pinned = pinned;
	t->refused_mappings += err != 0;
	return err;
}

struct proc_mapping *proctable_lookup(struct proc *p, uint64_t address, uint64_t time_ns)
{
	struct proc_mappings *m = p->mappings;
	struct proc_mapping *later = NULL;

	for (unsigned i = m ? m->count : 0; i-- > 0;) {
		struct proc_mapping *e = &m->entries[i];

		if (address < e->start || address >= e->limit)
			continue;
		if (e->time_ns <= time_ns)
			return e;
		later = e;
	}
	return later;
}

static bool replaced(const struct proc_mappings *m, unsigned i, uint64_t before_ns)
{
	for (unsigned j = i + 1; j < m->count; j++) {
		if (m->entries[j].time_ns < before_ns && holds(&m->entries[j], m->entries[i].start, m->entries[i].limit))
			return true;
	}
	return false;
}

void mappings_compact(struct proctable *t, struct proc_mappings *m, uint64_t before_ns)
{
	unsigned kept = 0;

	if (!m || m->count == m->compacted)
		return;
	for (unsigned i = 0; i < m->count; i++) {
		struct proc_mapping e = m->entries[i];

		if (!replaced(m, i, before_ns)) {
			m->entries[kept++] = e;
			continue;
		}
		m->unresolved -= !e.resolved;
		entry_drop(t, &e);
	}
	m->count = kept;
	m->compacted = kept;
}
