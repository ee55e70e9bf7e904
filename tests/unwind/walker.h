// SPDX-License-Identifier: Apache-2.0
// Walks the stack of another process by the tables of its files: in user space what the kernel side does.
#ifndef BLKPROF_TESTS_WALKER_H
#define BLKPROF_TESTS_WALKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WALK_MAX 512

struct walker;

struct registers {
	uint64_t rip, rsp, rbp;
};

enum walk_end {
	WALK_END,	 // the outermost frame
	WALK_NO_TABLE,	 // in a file without call frame information
	WALK_NO_RULE,	 // in a file that has some
	WALK_UNREADABLE, // the stack is not there
	WALK_LOST,	 // rbp is needed and was lost
	WALK_TOO_LONG,
};

struct walk {
	unsigned n;
	uint64_t address[WALK_MAX]; // of callers; the first is the caller of where the walk began
	enum walk_end end;
	uint64_t last; // where it ended
};

struct walker *walker_new(pid_t pid);
void walker_free(struct walker *w);
void walker_walk(struct walker *w, struct registers at, struct walk *ret);
bool walker_read(const struct walker *w, uint64_t address, void *out, size_t len);
// The same by the kernel side's own code.
void walker_walk_as_kernel(struct walker *w, struct registers at, struct walk *ret);
// "/lib/libc.so.6+0x1234"
void walker_name(struct walker *w, uint64_t address, char *out, size_t cap);

#endif
