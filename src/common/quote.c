// SPDX-License-Identifier: Apache-2.0
#include "common/quote.h"

#include <errno.h>
#include <stdlib.h>

#include "common/text.h"

void quote_append(struct buf *to, const char *text, size_t len)
{
	char *clean = malloc(len + 1);

	if (!clean) {
		to->error = to->error ? to->error : -ENOMEM;
		return;
	}
	// Without control characters: only these two are left that cannot stand there.
	len = text_sanitize(clean, len + 1, text, len);
	buf_byte(to, '"');
	for (size_t i = 0; i < len; i++) {
		if (clean[i] == '"' || clean[i] == '\\')
			buf_byte(to, '\\');
		buf_byte(to, (uint8_t)clean[i]);
	}
	buf_byte(to, '"');
	free(clean);
}
