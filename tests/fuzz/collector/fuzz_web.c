// SPDX-License-Identifier: Apache-2.0
// Arguments of a query over HTTP, "name=value" a line: an error, or a window whose ends are in order and whose texts end.
#include <stdlib.h>
#include <string.h>

#include "collector/web_internal.h"

static void split(char *text, struct http_request *q)
{
	char *line;

	while ((line = strsep(&text, "\n")) && q->n < HTTP_ARGUMENTS) {
		char *value = strchr(line, '=');

		if (strlen(line) > HTTP_TEXT)
			continue;
		if (value)
			*value++ = 0;
		q->argument[q->n++] = (struct http_argument){ line, value ? value : line + strlen(line) };
	}
}

static void take(const struct web *w, const struct http_request *q, const char *prefix)
{
	struct web_window window;
	struct error e = { "" };
	unsigned n = 7;

	if (web_window(w, q, prefix, &window, &e)) {
		if (!*e.text || strchr(e.text, '\n'))
			abort();
	} else {
		if (window.query.from >= window.query.to || window.query.n_labels > WEB_LABELS)
			abort();
		for (unsigned i = 0; i < window.query.n_labels; i++)
			if (!*window.query.labels[i].name || !*window.query.labels[i].value)
				abort();
	}
	if (!web_number(q, "rows", 100, 7, &n, &e) && n > 100)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct collector_settings settings = { .query_time = 1000000000, .query_memory = 1 << 20 };
	const struct web w = { .settings = &settings };
	struct http_request q = { 0 };
	char *text = malloc(len + 1);

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = 0;
	split(text, &q);
	take(&w, &q, "");
	take(&w, &q, "base_");
	free(text);
	return 0;
}
