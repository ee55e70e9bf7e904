// SPDX-License-Identifier: Apache-2.0
// Does a document fit the types that the names of its fields tell? Solr itself stores 3000000000 in an integer as
// -1294967296 and NaN as NaN, and answers that all is well.
#ifndef BLKPROF_COLLECTOR_SOLR_CHECK_H
#define BLKPROF_COLLECTOR_SOLR_CHECK_H

#include "request/document.h"

// A field's type, by the end of its name.
struct solr_type {
	const char *suffix;	// "_i"
	const char *type;	// as Solr's own configuration calls it: "pint"
	const char *type_class; // "solr.IntPointField"
	bool many;
};

extern const struct solr_type solr_types[];
extern const unsigned solr_types_n;

#define SOLR_TEXT_MAX 32766 // bytes of a text; Lucene's

// -EINVAL with what is wrong. node: whose batch it came in, NULL = anybody's; the document must say so too.
int solr_check(const struct document *d, const char *node, struct error *e);
// NULL: no type is known by that name.
const struct solr_type *solr_type_of(const char *name, size_t len);

#endif
