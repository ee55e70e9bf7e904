// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_CLI_REMOTE_INTERNAL_H
#define BLKPROF_CLI_REMOTE_INTERNAL_H

#include <jansson.h>

#include "cli/fetch.h"
#include "cli/remote.h"

struct remote {
	const struct source_options *options;
	char token[300]; // "" = none
};

// What a collector names: a node, a service, or a window of a node.
struct remote_item {
	char *name;
	uint64_t from, to, windows;
	unsigned collector;
};

struct remote_items {
	struct remote_item *item;
	size_t n, cap;
};

// remote.c: a GET of `path` with the arguments of q.
int remote_get(struct remote *r, unsigned collector, const char *path, const struct store_query *q, struct buf *to, char note[256],
	       struct error *e);
// remote_json.c: NULL where it is none, or has more values than any collector answers.
json_t *remote_json(const struct buf *body);
// remote_list.c: appends what collector `collector` answers.
int remote_items_get(struct remote *r, unsigned collector, const char *what, const char *kind, const struct store_query *q,
		     struct remote_items *to, struct error *e);
void remote_items_free(struct remote_items *l);

#endif
