// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_AGENT_PROCTABLE_INTERNAL_H
#define BLKPROF_AGENT_PROCTABLE_INTERNAL_H

#include "agent/proctable.h"

// A hash table without memory leaves the element out instead of ending the program.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct proc_text {
	UT_hash_handle hh;
	unsigned users;
	struct proc_module *module;
	struct proc_text_key {
		uint64_t dev, inode, generation;
		char text[]; // terminated; the key ends before the NUL
	} key;
};

struct pid_slot {
	UT_hash_handle hh;
	pid_t pid;
	struct proc *newest;
};

struct proctable {
	size_t budget, used;
	uint64_t lives, evicted, refused_mappings;
	uint64_t serial; // of the last change of mappings
	struct pid_slot *slots;
	struct proc_text *texts;
	struct proc *first_ended, *last_ended;
	const struct proc *pinned; // not to be evicted now
	bool keep_all;		   // nobody is to be evicted now
};

// Memory within the budget: evicts ended lives to make room; NULL when there is nothing left to evict.
void *proctable_alloc(struct proctable *t, size_t size);
void proctable_release(struct proctable *t, void *memory, size_t size);

struct proc_text *proctable_keep_file(struct proctable *t, const struct proc_event *ev);
struct proc_text *proctable_share(struct proc_text *text); // NULL too

struct proc_mappings *mappings_share(struct proc_mappings *m); // NULL too
void mappings_drop(struct proctable *t, struct proc_mappings *m);
void mappings_compact(struct proctable *t, struct proc_mappings *m, uint64_t before_ns);

#endif
