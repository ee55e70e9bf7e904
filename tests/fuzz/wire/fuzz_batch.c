// SPDX-License-Identifier: Apache-2.0
// What is accepted can be written again, and reads as the same.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct buf one = { 0 }, two = { 0 };
	struct batch *b = NULL, *again = NULL;
	uint8_t instance[16];
	uint64_t sequence;

	if (batch_decode(data, len, &b, NULL))
		return 0;
	if (batch_identity(data, len, instance, &sequence, NULL) || sequence != b->sequence ||
	    memcmp(instance, b->instance, sizeof(instance)))
		abort();
	if (batch_encode(b, &one) || batch_decode(one.data, one.len, &again, NULL) || batch_encode(again, &two))
		abort();
	if (one.len != two.len || memcmp(one.data, two.data, one.len))
		abort();
	batch_free(again);
	two.len = 0;
	if (batch_decode_borrow(data, len, &again, NULL) || batch_encode(again, &two) || one.len != two.len ||
	    memcmp(one.data, two.data, one.len))
		abort();
	batch_free(b);
	batch_free(again);
	buf_free(&one);
	buf_free(&two);
	return 0;
}
