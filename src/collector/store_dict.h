// SPDX-License-Identifier: Apache-2.0
// What is stored once: strings, mappings, locations, stacks and sets of labels, each with a dense id, found by its hash.
// Ids known lately are kept in memory. An entry carries the hour until which it may be needed, so that what nothing refers
// to any more can be deleted without reading the columns.
#ifndef BLKPROF_COLLECTOR_STORE_DICT_H
#define BLKPROF_COLLECTOR_STORE_DICT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector/store_hash.h"
#include "common/error.h"

enum dict_kind {
	DICT_TEXT,
	DICT_MAPPING,
	DICT_LOCATION,
	DICT_STACK,
	DICT_LABELS,
	DICT_KINDS
};

extern const char *const dict_tables[DICT_KINDS];

struct dict;

struct dict *dict_new(sqlite3 *db, struct error *e);
void dict_free(struct dict *d);
void dict_forget(struct dict *d); // what is in memory: after a rollback, after a deletion

// The id of a hash, when it is known in memory and kept until `hour`. *ret_until is how long it is kept.
bool dict_known(struct dict *d, enum dict_kind kind, struct hash128 h, uint32_t hour, uint32_t *ret_id);
// Asks for the memory that dict_known will look at.
void dict_ask(const struct dict *d, enum dict_kind kind, struct hash128 h);
// How long an entry that is needed until `hour` will be kept: what it refers to must be kept as long.
uint32_t dict_until(struct hash128 h, uint32_t hour);
// The same from the database; what is not there is added, what is kept too short is kept longer. -EOVERFLOW: too many.
int dict_put(struct dict *d, enum dict_kind kind, struct hash128 h, uint32_t hour, const void *body, size_t len,
	     uint32_t *ret_id, struct error *e);
// Deletes up to `rows` of a table from *position on that are not needed from `hour` on; *position becomes 0 at the end.
int dict_collect(struct dict *d, enum dict_kind kind, uint32_t hour, unsigned rows, int64_t *position, uint64_t *ret_deleted,
		 struct error *e);

#endif
