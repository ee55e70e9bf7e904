// SPDX-License-Identifier: Apache-2.0
// What a request's target says: path, Solr's core or collection, handler, and parameters, of which only those that are
// named are kept; the values of the others may be somebody's data and become '?'.
#ifndef BLKPROF_REQUEST_TARGET_H
#define BLKPROF_REQUEST_TARGET_H

#include "request/http.h"
#include "request/record.h"

#define TARGET_KEEP_MAX 64

struct target_rules {
	const char *keep[TARGET_KEEP_MAX]; // names beside the usual ones, whose values are no data (rows, start, wt, …)
	unsigned n_keep;
	bool keep_all; // "*"
};

// Fills path, query, core and handler of the record.
void target_parse(const struct target_rules *rules, struct http_text target, struct request_record *ret);

#endif
