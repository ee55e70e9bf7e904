// SPDX-License-Identifier: Apache-2.0
// Who had which pid when, and what was mapped there: lives of processes built from events in order of time. Pure: no
// /proc, no clock. A life is one address space: fork begins one that shares its parent's mappings until either changes
// them, exec begins another under the same pid. Bounded in bytes: the lives that ended first go first, then what is new
// is refused and counted.
#ifndef BLKPROF_AGENT_PROCTABLE_H
#define BLKPROF_AGENT_PROCTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sym_module;
struct proctable;
struct pid_slot;

enum proc_event_type {
	PROC_NONE,
	PROC_FORK,
	PROC_EXEC, // a comm that comes with a new address space
	PROC_COMM,
	PROC_MMAP, // executable memory
	PROC_EXIT,
	PROC_LOST
};

struct proc_event {
	enum proc_event_type type;
	uint64_t time_ns;
	pid_t pid, tid, ppid; // ppid: FORK
	uint64_t start, limit, offset;
	dev_t dev;
	uint64_t inode, generation; // generation 0 = unknown
	const char *text;	    // comm, or path as the kernel names it; text_len bytes
	size_t text_len;
	uint64_t lost;
};

// A text kept once, counted by its users; for the path of a file together with the file's identity. Device and inode
// are 0 for what is no file.
struct proc_text;
const char *proc_text_string(const struct proc_text *t);

// An opened file as mappings refer to it. Owned by whoever opens files, who may drop it when it has no users.
struct proc_module {
	unsigned users;
	struct sym_module *module; // NULL for memory with generated code
};

struct proc_mapping {
	uint64_t start, limit, offset;
	uint64_t time_ns; // when it appeared
	struct proc_text *file;
	struct proc_module *module; // NULL until resolved, and for anonymous memory
	bool resolved;		    // opening was tried
};

// In order of appearance; shared by all lives that were forked with it.
struct proc_mappings {
	unsigned users, count, capacity;
	unsigned unresolved; // entries not resolved yet
	unsigned compacted;  // count after the last compaction
	uint64_t serial;     // another after each change of what lies where
	struct proc_mapping entries[];
};

struct proc {
	pid_t pid, ppid;
	char name[16]; // valid UTF-8
	uint64_t start_ns, end_ns; // end UINT64_MAX while it lives
	struct proc_mappings *mappings; // or NULL
	struct proc_text *exe;		// or NULL
	struct proc_text *cgroup_text;	// of /proc/PID/cgroup, or NULL
	struct proc_text *service;	// derived from it and the name; NULL = to be derived
	uint64_t cgroup;		// id, 0 = unknown
	uint64_t cgroup_read_ns, scanned_ns; // when /proc was last asked, 0 = never
	uint64_t starttime;		// field 22 of /proc/PID/stat, 0 = unknown
	bool incomplete;		// its beginning was missed: mappings may be unknown
	struct pid_slot *slot;
	struct proc *older, *newer;	    // lives of the same pid
	struct proc *ended_prev, *ended_next; // in order of their end
};

struct proctable_stats {
	uint64_t evicted;	   // lives dropped or not begun for the budget
	uint64_t refused_mappings; // not kept for the budget
	uint64_t lives, bytes;
};

struct proctable *proctable_new(size_t budget);
void proctable_free(struct proctable *t);
void proctable_stats(const struct proctable *t, struct proctable_stats *ret);

// Takes in an event. -ENOMEM (counted) when the budget has no room for it.
int proctable_apply(struct proctable *t, const struct proc_event *ev);
// The life that had the pid at the time, the newest that had begun by then; NULL when there is none.
struct proc *proctable_find(struct proctable *t, pid_t pid, uint64_t time_ns);
struct proc *proctable_newest(struct proctable *t, pid_t pid);
// Begins a life that no event told of, ending the one before; NULL when the budget has no room.
struct proc *proctable_begin(struct proctable *t, pid_t pid, uint64_t time_ns);
void proctable_rename(struct proctable *t, struct proc *p, const char *comm, size_t len);
void proctable_end(struct proctable *t, struct proc *p, uint64_t time_ns);
void proc_mapping_set_module(struct proc_mapping *m, struct proc_module *module);
// Ends the lives that had begun by then and were not scanned since.
void proctable_end_unscanned(struct proctable *t, uint64_t since_ns, uint64_t now_ns);
// Adds what ev says as a mapping of p; what is known already changes nothing.
int proctable_map(struct proctable *t, struct proc *p, const struct proc_event *ev);
// The mapping that held the address at the time: the newest by then; else the first that came later, since code does
// not run where nothing is mapped.
struct proc_mapping *proctable_lookup(struct proc *p, uint64_t address, uint64_t time_ns);
// Drops lives that ended before the time, and mappings that were replaced before it.
void proctable_forget(struct proctable *t, uint64_t time_ns);

// Texts. keep returns a counted reference, NULL without room.
struct proc_text *proctable_keep(struct proctable *t, const char *text, size_t len);
void proctable_drop(struct proctable *t, struct proc_text *text);
// Sets one of p's texts; without room it stays as it was. Evicts nobody.
void proctable_set(struct proctable *t, struct proc_text **field, const char *text, size_t len);
dev_t proc_text_dev(const struct proc_text *t);
uint64_t proc_text_inode(const struct proc_text *t);
struct proc_module *proc_text_module(const struct proc_text *t); // last one seen for this file, or NULL
void proc_text_set_module(struct proc_text *t, struct proc_module *module);
// Memory without a file whose code somebody generated: "//anon", "", "[heap]", "[stack]", "[anon:…]".
bool proc_text_is_anonymous(const struct proc_text *t);

#endif
