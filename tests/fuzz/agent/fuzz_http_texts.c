// SPDX-License-Identifier: Apache-2.0
// What clients write into arguments, and what programs call themselves in metrics.
#include <stdlib.h>
#include <string.h>

#include "agent/io_metrics.h"
#include "agent/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Names come out as one line each, whatever is in them.
static void check_lines(const struct buf *b)
{
	unsigned lines = 0;

	for (size_t i = 0; i < b->len; i++)
		lines += b->data[i] == '\n';
	if (lines != 3 * (2 + 1) + 2 * 3)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct window_view v = { .labels = LABELS_NONE };
	struct io_metrics *m = io_metrics_new(1, 1);
	struct io_item item = { .op = "read", .amount = { 1, 1, 1 } };
	struct error e = { "" };
	struct buf b = { 0 };
	enum pprof_type type;
	char *text = malloc(size + 1);

	if (!m || !text)
		abort();
	memcpy(text, data, size);
	text[size] = 0;
	v.root = text;
	label_set_parse(text, &v.labels);
	pprof_type_parse(text, &type);
	for (unsigned set = 0; set <= LABELS_FEW_COMM; set++) {
		e.text[0] = 0;
		if (!view_check(&v, set, &e) != !*e.text)
			abort();
	}
	item.service = text;
	item.device = text + strlen(text) / 2;
	io_metrics_window(m, &item, 1, 10);
	io_metrics_print(m, &b);
	check_lines(&b);
	buf_free(&b);
	io_metrics_free(m);
	free(text);
	return 0;
}
