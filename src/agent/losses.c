// SPDX-License-Identifier: Apache-2.0
// The causes of loss by name.
#include <string.h>

#include "agent/recorder_internal.h"

static const struct {
	const char *name, *explanation;
} causes[LOSS_CAUSES] = {
	[LOSS_RING_FULL] = { "ring_full", "samples that found no room in the ring; a lower --rate helps" },
	[LOSS_STACK_RING_FULL] = { "stack_ring_full", "stacks that found no room in the ring and were sent again later" },
	[LOSS_INSERT_FAILED] = { "insert_failed", "sampled bios that the map of bios in flight refused" },
	[LOSS_UNSEEN] = { "unseen", "sampled bios whose completion the kernel did not show us; the others' time makes up for theirs" },
	[LOSS_MISMATCH] = { "mismatch", "completions that did not belong to the bio sampled at their address" },
	[LOSS_STACK_TRUNCATED] = { "stack_truncated", "stacks deeper than the limit, cut and marked [truncated]" },
	[LOSS_STACK_UNREADABLE] = { "stack_unreadable", "samples whose user stack could not be walked" },
	[LOSS_READ_ERROR] = { "read_error", "kernel structures that could not be read" },
	[LOSS_REQUEST_TOO_LONG] = { "request_too_long", "requests of more bios than are followed" },
	[LOSS_SLOTS_FULL] = { "slots_full", "bios of devices beyond the 255th, counted as [other devices]" },
	[LOSS_MAP_BUSY] = { "map_busy", "completions that could not take their bio out of the map, which was locked" },
	[LOSS_EVICTED] = { "evicted", "sampled bios pushed out of the full map of bios in flight" },
	[LOSS_NEVER_COMPLETED] = { "never_completed", "sampled bios given up after an hour" },
	[LOSS_RECURSION] = { "recursion", "runs of our programs that the kernel skipped because they interrupted themselves" },
	[LOSS_STACK_MISSING] = { "stack_missing", "samples whose stack was lost, shown as [stack lost]" },
	[LOSS_PROC_EVENTS] = { "process_events", "process events lost; some frames may have no name" },
	[LOSS_PROC_EVICTED] = { "processes_evicted", "processes forgotten for the memory budget" },
	[LOSS_FILES_MISSING] = { "files_missing", "mapped files that could not be opened for their symbols" },
	[LOSS_PERF_MAP_LINES] = { "perf_map_lines", "lines of perf maps that are malformed or found no room: some generated code has no name" },
	[LOSS_PIDS_FOLDED] = { "pids_folded", "samples of ended processes that lost their pid label: there were too many processes" },
	[LOSS_ROWS_FULL] = { "rows_full", "samples folded into their process under [too many stacks]: there were too many different ones" },
	[LOSS_BROKEN_NO_MAPPING] = { "broken_no_mapping", "stacks cut where they leave all known code" },
	[LOSS_BROKEN_NO_TABLE] = { "broken_no_table", "stacks cut in code without unwind information and frame pointers" },
	[LOSS_BROKEN_NO_RULE] = { "broken_no_rule", "stacks cut in code that its unwind information leaves out" },
	[LOSS_BROKEN_UNREADABLE] = { "broken_unreadable", "stacks cut where their memory could not be read" },
	[LOSS_BROKEN_BAD_RETURN] = { "broken_bad_return", "stacks cut at a return address that is none" },
	[LOSS_BROKEN_NOT_GROWING] = { "broken_not_growing", "stacks cut at a frame that is not above the one it called" },
	[LOSS_BROKEN_LOST_REGISTER] = { "broken_lost_register", "stacks cut where the frame pointer they need was lost" },
	[LOSS_TABLES_PENDING] = { "tables_pending", "stacks of new processes, walked by frame pointer until their unwind tables were ready" },
	[LOSS_SUBMITTER_UNKNOWN] = { "submitter_unknown", "samples of io_uring workers without the stack of their submitter; a higher --rate helps" },
};

const char *loss_name(enum loss_cause cause)
{
	return cause < LOSS_CAUSES ? causes[cause].name : "?";
}

const char *loss_explanation(enum loss_cause cause)
{
	return cause < LOSS_CAUSES ? causes[cause].explanation : "?";
}

uint64_t recorder_loss(struct recorder *r, enum loss_cause cause)
{
	return cause < LOSS_CAUSES ? r->losses[cause] : 0;
}

void recorder_sum_losses(struct recorder *r)
{
	struct procs_stats ps = { 0 };

	for (unsigned i = 0; i < LOSS_KERNEL; i++)
		r->losses[i] = r->kernel.losses[i];
	for (unsigned why = 1; why < UNWIND_BREAKS; why++)
		r->losses[LOSS_BROKEN + why - 1] = r->kernel.broken[why];
	r->losses[LOSS_TABLES_PENDING] = r->kernel.tables_pending;
	r->losses[LOSS_SUBMITTER_UNKNOWN] = r->kernel.submitters_unknown;
	r->losses[LOSS_UNSEEN] += r->unseen;
	r->losses[LOSS_RECURSION] = probes_recursion_misses(r->probes);
	r->losses[LOSS_STACK_MISSING] = resolver_stacks_missing(r->resolver);
	r->losses[LOSS_ROWS_FULL] = aggregate_rows_full(r->aggregate) + resolver_stacks_refused(r->resolver);
	r->losses[LOSS_PIDS_FOLDED] = r->pids_folded;
	procs_stats(r->procs, &ps);
	r->losses[LOSS_PROC_EVENTS] = ps.lost_events;
	r->losses[LOSS_PROC_EVICTED] = ps.evicted;
	r->losses[LOSS_FILES_MISSING] = ps.missing_files;
	r->losses[LOSS_PERF_MAP_LINES] = ps.perf_map_lines_lost;
}
