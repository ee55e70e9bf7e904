// SPDX-License-Identifier: Apache-2.0
// A condition on a field of a document, as people write it: status_i>=500, handler_s=/select, path_s=/solr/*, core_s!=shop.
#ifndef BLKPROF_REQUEST_WHERE_H
#define BLKPROF_REQUEST_WHERE_H

#include "request/document.h"

#define WHERE_MAX 16 // of one query
#define WHERE_TEXT 512

enum where_is {
	WHERE_EQUAL, // a text may have the wildcards * and ?; of an array one element is enough
	WHERE_UNEQUAL, // also where the field is not there
	WHERE_LESS,
	WHERE_AT_MOST,
	WHERE_MORE,
	WHERE_AT_LEAST,
};

struct where {
	char name[DOCUMENT_NAME_MAX + 1];
	char text[WHERE_TEXT + 1];
	enum where_is is;
	bool is_number;
	double number;
};

// A name that a field of a record may have; which metrics plugins add is not known here. -EINVAL.
int where_check_field(const char *name, struct error *e);
int where_parse(const char *text, struct where *ret, struct error *e); // -EINVAL
bool where_holds(const struct where *w, const struct document *d);
// Of a document that is a sum: does it hold for each of the parts, as its fields min_NAME and max_NAME tell?
bool where_holds_for_all(const struct where *w, const struct document *d);

#endif
