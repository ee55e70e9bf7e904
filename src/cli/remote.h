// SPDX-License-Identifier: Apache-2.0
// Collectors over HTTP. Of several, each gives the windows that those before it do not have.
#ifndef BLKPROF_CLI_REMOTE_H
#define BLKPROF_CLI_REMOTE_H

#include "cli/source.h"

struct remote;

int remote_new(const struct source_options *o, struct remote **ret, struct error *e);
void remote_free(struct remote *r);
int remote_query(struct remote *r, const struct store_query *q, struct buf *ret_gz, struct buf *said, struct error *e);
int remote_list(struct remote *r, enum store_list what, const struct store_query *q, store_list_fn fn, void *context, struct error *e);

#endif
