// SPDX-License-Identifier: Apache-2.0
// HTTP to a Solr: several addresses of one collection, tried in turn. For one thread.
#ifndef BLKPROF_COLLECTOR_SOLR_CLIENT_H
#define BLKPROF_COLLECTOR_SOLR_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/config.h"
#include "common/error.h"

#define SOLR_ANSWER_MAX (4u << 20)

struct solr_client_options {
	struct config_list url;	       // up to the collection
	const char *user, *password_file; // NULL: nobody asks
	const char *ca;		       // PEM; NULL: the system's authorities
	const char *trace_id;	       // 32 hexadecimal digits that each request carries; NULL: none
	const bool *stop;	       // set by another thread: a request at hand ends
};

struct solr_client;

int solr_client_new(const struct solr_client_options *options, struct solr_client **ret, struct error *e);
void solr_client_free(struct solr_client *c);

// GET, or POST of a JSON body, of `path` below the collection. The status of HTTP and the body, which is the client's until
// the next request and ends with a NUL; or a negative errno when no address answers (or only with 502, 503, 504), with what
// the last one said.
int solr_get(struct solr_client *c, const char *path, const struct buf **ret, struct error *e);
int solr_post(struct solr_client *c, const char *path, const void *json, size_t size, const struct buf **ret, struct error *e);
const char *solr_client_url(const struct solr_client *c); // that answered last

// What went wrong, of an answer that is no 200: Solr's own words where it has some. Returns code.
int solr_explain(struct solr_client *c, int status, const struct buf *body, int code, struct error *e);
// A collection whose updates pass a TolerantUpdateProcessor answers 200 to documents that it refuses: are there any? The
// words for the first of them.
bool solr_refused_some(const struct buf *body, char *out, size_t cap);

#endif
