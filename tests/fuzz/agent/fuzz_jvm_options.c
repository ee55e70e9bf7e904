// SPDX-License-Identifier: Apache-2.0
// A byte that says whether it is the launcher, then arguments, environment and a file of options, each up to a byte 255.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/jvm_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct part {
	char *text; // a copy of its own size, so that a read behind its end is seen
	size_t len;
};

static struct part take(const uint8_t **data, size_t *len)
{
	const uint8_t *end = memchr(*data, 255, *len);
	size_t n = end ? (size_t)(end - *data) : *len;
	struct part part = { malloc(n ? n : 1), n };

	memcpy(part.text, *data, n);
	*data += n + !!end;
	*len -= n + !!end;
	return part;
}

static bool read_file(void *context, const char *path, size_t len, struct buf *ret)
{
	const struct part *file = context;
	volatile char sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += path[i];
	buf_append(ret, file->text, file->len);
	return file->len % 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct jvm_options o = { .unread = true };
	struct part a, e, f;
	bool launcher;

	if (!len)
		return 0;
	launcher = *data++ & 1;
	len--;
	a = take(&data, &len);
	e = take(&data, &len);
	f = take(&data, &len);
	jvm_options_parse(&(struct jvm_options_source){ .arguments = a.text, .arguments_len = a.len, .environment = e.text,
							.environment_len = e.len, .launcher = launcher, .file = read_file,
							.context = &f }, &o);
	if (o.frame_pointers > JVM_OFF || o.few_signals > JVM_OFF || o.no_attach > JVM_OFF || (!launcher && !o.unread))
		abort();
	free(a.text);
	free(e.text);
	free(f.text);
	return 0;
}
