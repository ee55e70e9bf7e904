// SPDX-License-Identifier: Apache-2.0
// From what a parsed profile holds to ids of the dictionaries, adding what is new.
#ifndef BLKPROF_COLLECTOR_STORE_RESOLVE_H
#define BLKPROF_COLLECTOR_STORE_RESOLVE_H

#include "collector/store_internal.h"
#include "collector/store_parse.h"

// labels: the index of a set. hour: until when it is needed (hours since the epoch).
int resolve_stack_row(struct store *s, const struct parsed *r, const struct parsed_sample *sample, uint32_t hour, uint32_t *ret,
		  struct error *e);
int resolve_labels(struct store *s, const struct parsed *r, uint32_t labels, uint32_t hour, uint32_t *ret, struct error *e);
int resolve_text(struct store *s, const char *text, size_t len, uint32_t hour, uint32_t *ret, struct error *e);
// Texts as labels of a batch.
int resolve_batch_labels(struct store *s, const struct batch_label *labels, unsigned n, uint32_t hour, uint32_t *ret,
			 struct error *e);

#endif
