// SPDX-License-Identifier: Apache-2.0
// Which keys may speak, and in which node's name: a file of lines "PUBLIC-KEY NODE" with # comments. Several keys may
// speak for one node (while one is being replaced), one key for one node only. May be used by any thread.
#ifndef BLKPROF_COLLECTOR_ALLOW_H
#define BLKPROF_COLLECTOR_ALLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "wire/batch.h"
#include "wire/keys.h"

#define ALLOW_BYTES_MAX (16u << 20)

struct allow;

// The message names the line. -EBADMSG, or of reading; -EFBIG.
int allow_new(const char *path, struct allow **ret, struct error *e);
void allow_free(struct allow *a);
// Reads the file again; after a failure the list is as it was.
int allow_reload(struct allow *a, struct error *e);
// Has the file changed since it was read (or is not the same one any more)?
bool allow_changed(struct allow *a);
// The node that the key may speak for.
bool allow_node(struct allow *a, const uint8_t key[KEY_SIZE], char ret[BATCH_NODE_MAX + 1]);
size_t allow_count(struct allow *a);

// The lines, sorted by key, for allow.c and its tests; `text` ends with a NUL and is changed.
struct allowed {
	uint8_t key[KEY_SIZE];
	char node[BATCH_NODE_MAX + 1];
};
int allow_parse(char *text, struct allowed **ret, size_t *ret_n, struct error *e);

#endif
