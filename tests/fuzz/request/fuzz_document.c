// SPDX-License-Identifier: Apache-2.0
// Documents of anybody: every value of one that is taken can be read.
#include <stdlib.h>

#include "request/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct document doc;

static void read_value(const struct document_field *f)
{
	struct document_field one;
	const char *at = NULL;
	char out[40];
	int64_t n;

	if (document_text(f, out, sizeof(out)) > f->value_len)
		abort();
	document_double(f);
	document_integer(f, &n);
	while (document_next_text(f, &at, &one))
		document_text(&one, out, sizeof(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e;

	if (document_read(data, size, &doc, &e))
		return 0;
	for (unsigned i = 0; i < doc.n; i++)
		read_value(&doc.field[i]);
	return 0;
}
