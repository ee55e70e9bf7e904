// SPDX-License-Identifier: Apache-2.0
// What a snapshot of the kernel's I/O counters holds; whyempty.h is the interface.
#ifndef BLKPROF_AGENT_IO_SNAPSHOT_H
#define BLKPROF_AGENT_IO_SNAPSHOT_H

#include "agent/whyempty.h"

#define IO_COMM	     64
#define IO_PROCESSES 4096

// Kinds of file systems whose I/O makes no bio on this node, or not where the process is.
enum unseen {
	UNSEEN_NETWORK, // nfs, cifs, ceph, 9p, …
	UNSEEN_FUSE,	// its server does the I/O
	UNSEEN_MEMORY,	// tmpfs, ramfs, hugetlbfs
	UNSEEN_DAX,	// mapped straight from persistent memory
	UNSEEN_KINDS
};

struct unseen_fs {
	unsigned mounts[UNSEEN_KINDS];	    // how many there are
	unsigned open[UNSEEN_KINDS];	    // files that the processes have open there; looked at only of named processes
	unsigned most[UNSEEN_KINDS];	    // of these on one mount
	char type[UNSEEN_KINDS][32];	    // of the one that is used most, else of the first
	char point[UNSEEN_KINDS][64];
};

struct process_io {
	pid_t pid;
	char comm[IO_COMM];
	uint64_t rchar, wchar, read_bytes, write_bytes;
};

struct io_snapshot {
	bool vmstat;
	uint64_t paged_in, paged_out; // bytes since boot, submit_bio of every device
	bool truncated;		      // more processes than there was room for
	size_t n;
	struct process_io *process; // sorted by pid
	struct unseen_fs unseen;
};

#endif
