// SPDX-License-Identifier: Apache-2.0
// The perf maps of processes with generated code: /tmp/perf-NSPID.map in the process's root, where NSPID is its number in
// its own pid namespace. Read when code is met that no file explains, and again when it has grown or was written anew.
// The file must be the process's user's or root's. Bounded: the map of the process that was asked for the longest ago goes
// first.
#ifndef BLKPROF_AGENT_PERF_MAPS_H
#define BLKPROF_AGENT_PERF_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/jvm_wake.h"
#include "agent/procs_files.h"
#include "agent/procs.h"
#include "agent/proctable.h"
#include "symbolize/perf_map.h"

struct perf_maps;

// wake: not owned; NULL: JVMs without an attach socket are not made to open one.
struct perf_maps *perf_maps_new(struct procs_files *files, size_t memory, bool java_attach, struct jvm_wake *wake);
void perf_maps_free(struct perf_maps *p);
bool perf_maps_find(struct perf_maps *p, const struct proc *proc, uint64_t address, struct perf_symbol *ret);
uint64_t perf_maps_generation(struct perf_maps *p, const struct proc *proc);
// Drops the maps of processes that `gone` tells of.
void perf_maps_forget(struct perf_maps *p, struct proctable *t);
// JVMs whose code was met since then (ns) and that keep no frame pointers: stacks of their Java code are cut. Of the last 32.
void perf_maps_cut_jvms(struct perf_maps *p, uint64_t since, void (*fn)(void *context, const struct proc_jvm *jvm), void *context);
uint64_t perf_maps_lost(const struct perf_maps *p);

#endif
