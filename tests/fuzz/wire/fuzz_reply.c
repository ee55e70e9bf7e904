// SPDX-License-Identifier: Apache-2.0
// What is accepted can be written again, and reads as the same.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "wire/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct reply r = { 0 }, again = { 0 };
	struct buf out = { 0 };

	if (reply_decode(data, len, &r, NULL))
		return 0;
	if (!text_is_utf8(r.text, strlen(r.text)) || reply_encode(&r, &out) || reply_decode(out.data, out.len, &again, NULL))
		abort();
	if (r.token != again.token || r.status != again.status || strcmp(r.text, again.text))
		abort();
	buf_free(&out);
	return 0;
}
