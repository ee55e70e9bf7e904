// SPDX-License-Identifier: Apache-2.0
// The processes of the node over time: who had which pid when, what its executable mappings were, and which service it
// belongs to. One snapshot of /proc at the start, then PERF_RECORD_MMAP2, COMM, FORK and EXIT of a dummy software event
// on every CPU (times on CLOCK_MONOTONIC, the clock of the BPF records). A process that has ended stays known until
// procs_forget. Bounded: beyond the budget the oldest ended processes go first and are counted; a fork storm cannot
// exceed it. Not thread-safe.
#ifndef BLKPROF_AGENT_PROCS_H
#define BLKPROF_AGENT_PROCS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "symbolize/symbolize.h"

struct jvm_wake;
struct procs;
struct proc;

struct procs_options {
	struct symbolizer *symbolizer; // opens the modules; not owned
	size_t memory;		       // budget in bytes, 0 = 64 MiB
	size_t perf_maps;	       // another one, of perf maps, 0 = 32 MiB
	bool java_attach;	       // ask JVMs for their perf map
	struct jvm_wake *jvm_wake;     // not owned; NULL: those without an attach socket are let be
};

struct procs_stats {
	uint64_t lost_events;	// perf ring overran
	uint64_t evicted;	// processes dropped for the budget
	uint64_t refused_mappings; // not kept for the budget
	uint64_t missing_files; // mapped files that could not be opened
	uint64_t perf_map_lines_lost; // of perf maps: malformed, or without room
	uint64_t known;		// processes now, one for each exec
	uint64_t bytes;		// of the budget in use
};

struct proc_jvm {
	pid_t pid;
	char name[16], service[256];
};

struct proc_map {
	uint64_t start, limit; // addresses
	uint64_t offset;       // of start in the file
	const char *path;      // as the kernel names it without " (deleted)", not always UTF-8; "[vdso]", "//anon" for JIT
			       // code; owned by the process
	struct sym_module *module; // NULL for generated code and other anonymous memory; opened on the first look-up
};

// Without perf_event_open there is the snapshot, and /proc on demand: e->text then says so (empty when all is well), and
// the caller goes on. NULL only without memory.
struct procs *procs_new(const struct procs_options *options, struct error *e);
void procs_free(struct procs *p);
// Takes in what the perf rings hold. Call every 100 ms or so, and once more before a profile is made.
int procs_poll(struct procs *p);
// Opens files of processes that have just appeared while they still run, so that short-lived ones are named: called with
// each pid that is seen doing I/O. Cheap when the process is known already.
void procs_touch(struct procs *p, pid_t pid, uint64_t time_ns);
// The process that had this pid at that time (its address space: exec starts another), or NULL. It, and the modules of
// its mappings, are valid until the next procs_poll, procs_touch or procs_forget.
struct proc *procs_find(struct procs *p, pid_t pid, uint64_t time_ns);
void procs_stats(const struct procs *p, struct procs_stats *ret);
// Drops processes that ended before time_ns.
void procs_forget(struct procs *p, uint64_t time_ns);

const char *proc_name(const struct proc *p);	// the process's name: comm of its main thread; valid UTF-8
const char *proc_exe(const struct proc *p);	// path of the executable as the kernel names it, or ""
const char *proc_service(const struct proc *p);	// container or unit or process name (service.h)
uint64_t proc_cgroup(const struct proc *p);	// id of its cgroup (unified, or the v1 memory controller's), 0 = unknown
// The executable mapping that held the address at time_ns; false when there is none. Opens its module.
bool proc_find_map(struct procs *ps, struct proc *p, uint64_t address, uint64_t time_ns, struct proc_map *ret);
// Makes sure that the module's file is open, if it can be: before a look-up in it. Cheap when it is.
void procs_open(struct procs *ps, struct proc *p, uint64_t address, uint64_t time_ns, const struct proc_map *map);
// What lies where in the process: equal numbers, equal mappings, in whichever process; 0 when nothing is known.
uint64_t proc_space(const struct proc *p);
// The name of generated code at an address, as the runtime's perf map says; false when there is none. `out` is how it is
// shown, *ret_raw how it was written where that tells more, or NULL; valid until the next call.
bool procs_generated(struct procs *ps, struct proc *p, uint64_t address, char *out, size_t cap, const char **ret_raw);
// Another number whenever the perf map of the process has changed; 0 while there was no need for one. Looks at most once
// a second.
uint64_t procs_generation(struct procs *ps, struct proc *p);
// JVMs whose code was met since then (ns, CLOCK_MONOTONIC) and that keep no frame pointers: stacks end in their Java code.
// Of the last 32 of them.
void procs_cut_jvms(struct procs *ps, uint64_t since, void (*fn)(void *context, const struct proc_jvm *jvm), void *context);
bool procs_is_alive(struct procs *ps, pid_t pid); // as far as events tell

#endif
