// SPDX-License-Identifier: Apache-2.0
// Why a profile is empty, in one line: nothing did I/O, all of it came from the page cache, the files are on a network
// file system, in memory or DAX, a filter kept all of it out, or the kernel counted I/O that the probes did not see.
// Rests on two snapshots of the kernel's own counters, one before and one after the recording.
#ifndef BLKPROF_AGENT_WHYEMPTY_H
#define BLKPROF_AGENT_WHYEMPTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct filter;
struct io_snapshot;

struct io_snapshot_options {
	const char *proc;   // NULL = /proc
	const pid_t *pid;   // only these processes (--pid, or COMMAND); n_pid 0 = all of the node, at most 4096 of them
	unsigned n_pid;
};

// Reads one small file for each process: about 50 us each. Of a COMMAND that has ended, take the snapshot before it is
// reaped (waitid with WNOWAIT): its zombie still says what it and its reaped children read. NULL without memory.
struct io_snapshot *io_snapshot_new(const struct io_snapshot_options *options);
void io_snapshot_free(struct io_snapshot *s);

struct whyempty_input {
	uint64_t ops;	       // in the profile, all classes; an answer is given only when it is 0
	uint64_t filtered_ops; // bios that no filter matched (recorder_totals)
	uint64_t own_ops;      // blkprof's own, kept out
	const struct filter *filter; // NULL = none
	bool follow;		     // only COMMAND and its descendants
	const char *backend;	     // "tracepoint"
};

// Writes one line without a newline and returns true; false (out is "") when the profile is not empty. Either snapshot
// may be NULL: then only what the totals say.
bool whyempty(const struct whyempty_input *in, const struct io_snapshot *before, const struct io_snapshot *after,
	      char *out, size_t cap);

#endif
