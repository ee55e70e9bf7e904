// SPDX-License-Identifier: Apache-2.0
// A row of stored requests that is damaged, and documents in it that are anything: what is read stays within it.
#include <stdlib.h>

#include "collector/solr_check.h"
#include "collector/store_records.h"
#include "request/where.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct document document;

static void read_document(const void *data, size_t size)
{
	struct where where;
	struct error e;

	if (document_read(data, size, &document, &e))
		return;
	solr_check(&document, "n1", &e);
	for (unsigned i = 0; i < document.n; i++)
		record_time(&document.field[i]);
	if (!where_parse("kind_s=re*", &where, &e))
		where_holds(&where, &document);
	if (!where_parse("pid_i>=7", &where, &e))
		where_holds(&where, &document);
}

// The first two bytes are the size that the row claims: 0 = its body is not compressed.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct records_reader r = { 0 };
	struct error e;
	const void *one;
	size_t len, claimed;

	if (size < 2)
		return 0;
	claimed = (size_t)data[0] | (size_t)data[1] << 8;
	if (!records_open(&r, data + 2, size - 2, claimed, &e))
		while (records_next(&r, &one, &len, &e) > 0)
			read_document(one, len);
	records_free(&r);
	return 0;
}
