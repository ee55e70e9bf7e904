// SPDX-License-Identifier: Apache-2.0
#include "agent/skipped_caller.h"

#include <stdio.h>
#include <string.h>

// How well a candidate fits, best first.
enum fit {
	FIT_LEAF,     // its call goes to the leaf, directly or through the procedure linkage table
	FIT_INDIRECT, // through a pointer: may be anything
	FIT_PLT,      // to another library's function
	FIT_OTHER,
	FIT_NONE
};

static bool wrapper_library(const char *path)
{
	static const char *const names[] = { "libc.so", "libc-", "libpthread", "ld-", "libaio.so", "liburing.so" };
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(base, names[i], strlen(names[i])))
			return true;
	return false;
}

// "pread64@plt", "__pread64" and "__libc_pread64" are names of one function.
static void stem(const char *name, char *out, size_t cap)
{
	size_t len;

	while (*name == '_')
		name++;
	if (!strncmp(name, "libc_", 5))
		name += 5;
	snprintf(out, cap, "%s", name);
	len = strcspn(out, "@");
	out[len] = 0;
	if (len > 2 && !strcmp(out + len - 2, "64"))
		out[len - 2] = 0;
}

static bool same_function(const char *a, const char *b)
{
	char x[128], y[128];

	stem(a, x, sizeof(x));
	stem(b, y, sizeof(y));
	return *x && !strcmp(x, y);
}

static const char *name_at(const struct proc_map *map, uint64_t address, struct sym_line lines[SYM_LINES_MAX])
{
	unsigned n = sym_module_lookup(map->module, address - map->start + map->offset, lines);

	return lines[n - 1].name; // the function that holds the code
}

static enum fit fit_of(struct procs *procs, struct proc *proc, uint64_t candidate, const struct proc_map *leaf_map,
		       uint64_t leaf, uint64_t time)
{
	struct sym_line a[SYM_LINES_MAX], b[SYM_LINES_MAX];
	uint64_t target, start, size;
	struct proc_map map, to;
	const char *name;
	uint8_t code[5];
	int32_t relative;

	if (!proc_find_map(procs, proc, candidate - 1, time, &map) || !map.module || candidate - map.start < 7)
		return FIT_NONE;
	procs_open(procs, proc, candidate - 1, time, &map);
	if (sym_module_read(map.module, candidate - 5 - map.start + map.offset, code, 5) != 5)
		return FIT_NONE;
	if (code[0] != 0xe8)
		return FIT_INDIRECT;
	memcpy(&relative, code + 1, sizeof(relative));
	target = candidate + (uint64_t)(int64_t)relative;
	if (!proc_find_map(procs, proc, target, time, &to) || !to.module)
		return FIT_NONE;
	procs_open(procs, proc, target, time, &to);
	procs_open(procs, proc, leaf, time, leaf_map);
	if (to.module == leaf_map->module &&
	    sym_module_function(to.module, leaf - leaf_map->start + leaf_map->offset, &start, &size) &&
	    start == target - to.start + to.offset)
		return FIT_LEAF;
	name = name_at(&to, target, a);
	if (!strstr(name, "@plt"))
		return FIT_OTHER;
	return same_function(name, name_at(leaf_map, leaf, b)) ? FIT_LEAF : FIT_PLT;
}

uint64_t skipped_caller(struct procs *procs, struct proc *proc, const struct stack_frames *s, uint64_t time)
{
	enum fit best = FIT_NONE, worst_allowed, fit;
	struct proc_map leaf_map;
	uint64_t caller = 0;

	if (!proc || !s->n_callers || !s->n_user || !proc_find_map(procs, proc, s->user[0], time, &leaf_map) ||
	    !leaf_map.module)
		return 0;
	// Outside the libraries of wrappers the leaf is likely the function that makes the system call itself, and words on
	// the stack mean nothing unless their call leads here.
	worst_allowed = wrapper_library(leaf_map.path) ? FIT_OTHER : FIT_LEAF;
	for (unsigned i = 0; i < s->n_callers; i++) {
		fit = fit_of(procs, proc, s->callers[i], &leaf_map, s->user[0], time);
		if (fit >= best || fit > worst_allowed)
			continue;
		best = fit;
		caller = s->callers[i];
	}
	// The leaf has a frame after all: the walk has seen its caller.
	return s->n_user > 1 && caller == s->user[1] ? 0 : caller;
}
