// SPDX-License-Identifier: Apache-2.0
// Requests that collectors have stored: from store directories, or asked for over HTTP.
#ifndef BLKPROF_CLI_REQUESTS_STORED_H
#define BLKPROF_CLI_REQUESTS_STORED_H

#include "cli/source.h"
#include "collector/store_requests.h"

struct requests_stored {
	struct source_options source; // node, stores or collectors and how to ask them
	const char *from, *to;	      // NULL: of the last 15 minutes
	const char *by;		      // the field that sums are made by, NULL = handler_s
	unsigned n_where;
	const char *where[WHERE_MAX];
};

option_setter requests_add_where;

bool requests_stored_asked(const struct requests_stored *o);
// Of what does not go together.
int requests_stored_check(const struct requests_stored *o, struct error *e);
// Prints the slowest and the sums, or with `json` the records, a line each.
int requests_stored_print(const struct requests_stored *o, unsigned slowest, bool json, struct error *e);

#endif
