// SPDX-License-Identifier: Apache-2.0
// Names of generated code as a runtime writes them to /tmp/perf-PID.map, a line for each piece of code:
//   7f1c3c0a2000 1e0 LazyCompile:*read /srv/app.js:10
// START and SIZE are hexadecimal; the rest of the line is the name. The file grows while the program runs, and code moves:
// where lines overlap, the later one is true. Whoever wrote it may be hostile: bounded in bytes and in time.
#ifndef BLKPROF_SYMBOLIZE_PERF_MAP_H
#define BLKPROF_SYMBOLIZE_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_MAP_NAME_MAX 1024 // bytes of a name that are kept

struct perf_map;

// `memory` bounds the bytes of what is kept; lines beyond it are left out and counted.
struct perf_map *perf_map_new(size_t memory);
void perf_map_free(struct perf_map *m);
// Takes in the whole lines of a text. Returns the bytes up to the last newline: the rest is the beginning of a line that is
// still being written. Without memory lines are left out.
size_t perf_map_add(struct perf_map *m, const char *text, size_t len);

struct perf_symbol {
	uint64_t start, size;
	const char *name; // as it was written, made valid UTF-8; owned by the map until the next add
};

bool perf_map_find(struct perf_map *m, uint64_t address, struct perf_symbol *ret);
size_t perf_map_memory(const struct perf_map *m);
uint64_t perf_map_count(const struct perf_map *m);	// lines kept
uint64_t perf_map_malformed(const struct perf_map *m);	// lines that are none
uint64_t perf_map_refused(const struct perf_map *m);	// lines without room

// How a name is shown: Java as sym_java_name; JavaScript without its tier ("LazyCompile:*read /srv/app.js:10" is
// "read /srv/app.js:10"), Python's "py::read:/srv/app.py" as "read /srv/app.py". Returns whether the name as it was written
// tells more of the function (its parameters).
bool perf_map_display(const char *name, char *out, size_t cap);

#endif
