// SPDX-License-Identifier: Apache-2.0
// Mangled names, whole and cut to a small buffer.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "symbolize/symbolize.h"

static void check(bool (*function)(const char *, char *, size_t), const char *name, size_t cap)
{
	char *out = malloc(cap);

	if (!out)
		abort();
	function(name, out, cap);
	if (!memchr(out, 0, cap) || !text_is_utf8(out, strlen(out)))
		abort();
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *name = malloc(len + 1);

	if (!name)
		abort();
	if (len)
		memcpy(name, data, len);
	name[len] = 0;
	check(sym_display_name, name, 1024);
	check(sym_display_name, name, 9);
	check(sym_java_name, name, 1024);
	check(sym_java_name, name, 9);
	free(name);
	return 0;
}
