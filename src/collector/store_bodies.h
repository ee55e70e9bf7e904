// SPDX-License-Identifier: Apache-2.0
// From ids of a store's dictionaries into a profile. What the file holds may be damaged: every id and length is checked.
#ifndef BLKPROF_COLLECTOR_STORE_BODIES_H
#define BLKPROF_COLLECTOR_STORE_BODIES_H

#include <sqlite3.h>

#include "collector/store_columns.h"
#include "collector/store_dict.h"
#include "collector/store_idmap.h"
#include "common/buf.h"
#include "pprof/profile.h"

struct bodies;

// p's first mapping is the pseudo mapping.
int bodies_new(sqlite3 *db, struct profile *p, struct bodies **ret, struct error *e);
void bodies_free(struct bodies *b);
// A string of p.
int bodies_text(struct bodies *b, uint32_t id, uint32_t *ret, struct error *e);
// The labels of a set, valid until the next call.
int bodies_labels(struct bodies *b, uint32_t id, const struct profile_label **ret, uint32_t *ret_n, struct error *e);
// Adds a sample to p.
int bodies_sample(struct bodies *b, const struct sum *s, struct error *e);

#endif
