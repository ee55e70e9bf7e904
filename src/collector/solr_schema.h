// SPDX-License-Identifier: Apache-2.0
// The fields that an index of requests needs, over Solr's Schema API.
#ifndef BLKPROF_COLLECTOR_SOLR_SCHEMA_H
#define BLKPROF_COLLECTOR_SOLR_SCHEMA_H

#include <stdbool.h>

#include "collector/solr_client.h"

// Are they all there, with the types that they must have? 0; -ENOENT what is missing (--init-solr would create it), -EPROTO
// what is there and different; or as solr_get.
int solr_schema_check(struct solr_client *c, struct error *e);
// Creates what is missing; say gets a line for each. What is different is left, -EPROTO.
typedef void (*solr_say_fn)(void *context, const char *text);
int solr_schema_init(struct solr_client *c, solr_say_fn say, void *context, struct error *e);

#endif
