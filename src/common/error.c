// SPDX-License-Identifier: Apache-2.0
#include "common/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, int code, const char *format, ...)
{
	va_list args;

	if (!e)
		return code;
	va_start(args, format);
	vsnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
	return code;
}

int error_prefix(struct error *e, int code, const char *format, ...)
{
	char prefix[128];
	struct error old;
	va_list args;

	if (!e)
		return code;
	va_start(args, format);
	vsnprintf(prefix, sizeof(prefix), format, args);
	va_end(args);
	old = *e;
	snprintf(e->text, sizeof(e->text), "%s: %.380s", prefix, old.text);
	return code;
}
