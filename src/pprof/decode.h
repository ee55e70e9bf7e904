// SPDX-License-Identifier: Apache-2.0
// Reads profiles of any program (google/pprof's profile.proto, gzipped or not) and merges them into one model. Bounded
// in memory and work, not recursive, and strict: an id, an index or a length that is wrong is an error that names the
// byte of the (uncompressed) message where it stands.
//
// Two profiles merge when their period types are equal; sample types that both have are kept, in the order of the first.
// Values add up (saturating). Where units differ (us and ns) all values are converted to the finer one, exactly; units
// that cannot be converted are refused. The duration of the result is the length of the union of the windows where all
// of them have a time, else the sum.
#ifndef BLKPROF_PPROF_DECODE_H
#define BLKPROF_PPROF_DECODE_H

#include "common/error.h"
#include "pprof/profile.h"
#include "pprof/stream.h"

struct pprof_limits {
	uint64_t message; // bytes of one message, uncompressed
	size_t memory;	  // bytes of everything that is kept while reading and of the result
	uint64_t frames;  // frames of all stacks, inlined calls counted: bounds the work
};

#define PPROF_LIMITS_DEFAULT { .message = 512ull << 20, .memory = (size_t)160 << 20, .frames = 1ull << 30 }

struct pprof_sample {
	const uint32_t *locations; // ids, leaf first
	const struct profile_label *labels;
	const int64_t *values;
	uint32_t n, n_labels;
	bool base; // labelled pprof::base=true: the base of a diff profile
};

// Sees a sample; what it returns other than 0 ends the reading and is returned (with e as it set it).
typedef int pprof_sample_fn(void *context, const struct profile *p, const struct pprof_sample *s, struct error *e);

struct pprof_reader;

// NULL limits = the default; NULL without memory.
struct pprof_reader *pprof_reader_new(const struct pprof_limits *limits);
void pprof_reader_free(struct pprof_reader *r);
// Profiles with negative values or pprof::base labels are read too instead of refused.
void pprof_reader_allow_diff(struct pprof_reader *r);
// Hands out samples instead of keeping them. For one file: the types are set before the first call.
void pprof_reader_on_sample(struct pprof_reader *r, pprof_sample_fn *fn, void *context);
// Adds a file. Errors: -EBADMSG (not a profile, or a broken one), -EFBIG, -E2BIG (limits), -EINVAL (cannot be merged with
// the ones before, or is a diff profile), -ENOMEM, or of reading. After an error only pprof_reader_free is possible.
int pprof_reader_add(struct pprof_reader *r, const struct pprof_source *source, struct error *e);
// What the reader's memory is taken from: a report that grows with the profile shares the limit.
struct memory_budget *pprof_reader_budget(struct pprof_reader *r);
// The merged profile, owned by the reader until pprof_reader_free; durations are complete.
const struct profile *pprof_reader_finish(struct pprof_reader *r);

// Index of a sample type: by name, else by number; NULL = the default one of the profile, else the last. "inuse_" in
// front of a name is ignored as pprof does. -EINVAL with the list of names.
int profile_type_index(const struct profile *p, const char *name, size_t *ret, struct error *e);

#endif
