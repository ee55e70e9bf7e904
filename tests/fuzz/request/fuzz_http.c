// SPDX-License-Identifier: Apache-2.0
// Heads, statuses, answers, chunks and targets of any bytes; what is whole in pieces is the same.
#include <stdlib.h>
#include <string.h>

#include "request/body.h"
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

// A body in chunks ends at the same place when it comes byte by byte; behind what is kept it may get out of sight.
static void take_chunks(const char *data, size_t size)
{
	struct piece whole = { data, size, size }, cut = { data, size, size + 1000 };
	struct body a, b, c;
	uint64_t n, sum = 0;

	body_in_chunks(&a);
	body_in_chunks(&b);
	body_in_chunks(&c);
	n = body_take(&a, &whole);
	for (size_t i = 0; i < size && body_is_followed(&b); i++) {
		struct piece p = { data + i, 1, 1 };

		sum += body_take(&b, &p);
	}
	if (n > size || a.kind != b.kind || (a.kind == BODY_NONE && sum != n))
		abort();
	n = body_take(&c, &cut);
	if (n + cut.total != size + 1000 || cut.known > cut.total || (c.kind == BODY_NONE) != (a.kind == BODY_NONE))
		abort();
}

static void take_answer(const char *data, size_t size)
{
	struct http_answer answer, again;

	if (!http_parse_answer(data, size, &answer))
		return;
	if (answer.size > size || answer.status != http_parse_status(data, size))
		abort();
	if (http_parse_answer(data, answer.size - 1, &again) || !http_parse_answer(data, answer.size, &again))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1); // its end is the end of what may be read
	struct http_head head;

	memcpy(copy, data, size);
	http_parse_status(copy, size);
	take_answer(copy, size);
	take_chunks(copy, size);
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
