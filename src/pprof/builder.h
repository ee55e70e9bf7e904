// SPDX-License-Identifier: Apache-2.0
// Builds one pprof profile (google/pprof's profile.proto) and encodes it. Everything is interned: the same string,
// mapping, function or location gets the same id, ids are dense from 1 in the order of first use, so that equal input
// gives equal bytes. Strings are copied and made valid UTF-8 (text_sanitize).
#ifndef BLKPROF_PPROF_BUILDER_H
#define BLKPROF_PPROF_BUILDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"

// The five sample types of every profile of ours, in their order in the file.
enum pprof_type {
	PPROF_IO_OPS,	   // io_ops/count: first, so that `go tool pprof -mean` is the mean latency of an operation
	PPROF_IO_TIME,	   // io_time/nanoseconds: the default
	PPROF_READ_BYTES,  // read_bytes/bytes
	PPROF_WRITE_BYTES, // write_bytes/bytes
	PPROF_CPU,	   // cpu/nanoseconds
	PPROF_TYPES
};

struct pprof_builder;
struct profile;

int pprof_type_parse(const char *name, enum pprof_type *ret); // "io_time"; -EINVAL

struct pprof_mapping_info {
	uint64_t start;	 // first address; 0 with limit 0 for the pseudo mapping
	uint64_t limit;	 // first address behind it
	uint64_t offset; // of `start` in the file, bytes
	const char *file;
	const char *build_id; // hexadecimal, or NULL
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct pprof_line_info {
	const char *name;	 // display name, never empty
	const char *system_name; // mangled name, or NULL where there is none
	const char *file;	 // source file, or NULL
	int64_t line;		 // 0 = unknown
};

struct pprof_label_info {
	const char *key;
	const char *text; // a string label; NULL = a numeric one
	int64_t number;
	const char *unit; // NULL = none
};

// `owner` is the name of mapping[0], the pseudo mapping that owns root and synthetic frames: "[node NAME]".
struct pprof_builder *pprof_builder_new(const char *owner);
void pprof_builder_free(struct pprof_builder *b);

// Each returns an id, or 0 when there is no memory. Mapping ids start at 2: the pseudo mapping is 1.
uint32_t pprof_add_mapping(struct pprof_builder *b, const struct pprof_mapping_info *m);
// `lines` innermost inlined call first, the function that holds the code last; n >= 1.
uint32_t pprof_add_location(struct pprof_builder *b, uint32_t mapping, uint64_t address, const struct pprof_line_info *lines,
			    unsigned n);
// A frame of the pseudo mapping (a process, "[in flight]").
uint32_t pprof_add_frame(struct pprof_builder *b, const char *name);
// locations leaf first. Samples with equal locations and labels are added up (saturating). Values all 0 are left out.
int pprof_add_sample(struct pprof_builder *b, const uint32_t *locations, unsigned n, const int64_t values[PPROF_TYPES],
		     const struct pprof_label_info *labels, unsigned n_labels);
int pprof_add_comment(struct pprof_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pprof_set_default_type(struct pprof_builder *b, enum pprof_type type); // PPROF_IO_TIME unless set
void pprof_set_time(struct pprof_builder *b, uint64_t time_ns, uint64_t duration_ns);

// What it has built so far, for those who fill it with the functions of pprof/profile.h; owned by the builder.
struct profile *pprof_builder_profile(struct pprof_builder *b);

// The encoded message, not compressed; samples in a deterministic order. 0 or -ENOMEM.
int pprof_encode(struct pprof_builder *b, struct buf *out);
// gzip of data appended to out (libdeflate; header without name and time). 0 or -ENOMEM.
int pprof_gzip(const void *data, size_t len, struct buf *out);

#endif
