// SPDX-License-Identifier: Apache-2.0
// Heads, statuses and targets of any bytes; a head that is whole in pieces is the same head.
#include <stdlib.h>
#include <string.h>

#include "request/http.h"
#include "request/target.h"

static void check_pieces(const uint8_t *data, size_t size, const struct http_head *whole)
{
	struct http_head head;

	for (size_t cut = 0; cut < whole->size; cut += 1 + whole->size / 16)
		if (http_parse_head(data, cut, NULL, &head) == HTTP_HEAD)
			abort();
	if (http_parse_head(data, whole->size, NULL, &head) != HTTP_HEAD || head.size != whole->size)
		abort();
}

static void take_target(struct http_text target)
{
	struct target_rules rules = { .keep = { "q" }, .n_keep = 1 };
	struct request_record *r = calloc(1, sizeof(*r));
	struct breakdown_table table;
	struct buf json = { 0 };

	breakdown_table_init(&table);
	target_parse(&rules, target, r);
	r->kind = REQUEST_ONE;
	record_json(r, &table, "h", &json);
	buf_free(&json);
	free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1); // its end is the end of what may be read
	struct http_head head;

	memcpy(copy, data, size);
	http_parse_status(copy, size);
	if (http_parse_head(copy, size, NULL, &head) == HTTP_HEAD) {
		if (head.size > size || head.target.at + head.target.len > copy + size)
			abort();
		check_pieces((uint8_t *)copy, size, &head);
		take_target(head.target);
	}
	if (http_first_line(copy, size, &head))
		take_target(head.target);
	free(copy);
	return 0;
}
