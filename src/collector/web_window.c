// SPDX-License-Identifier: Apache-2.0
// The window that a request asks for: its arguments, and the limits of its query.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector/web_internal.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/when.h"

#define DEFAULT_WINDOW "-15m"
#define NICE 10 // of queries: ingestion goes first

int web_go_on(void *window, struct error *e)
{
	const struct web_window *w = window;

	if (http_stopping(w->request->server))
		return error_set(e, -ECANCELED, "the collector is stopping; ask again when it runs");
	if (http_client_gone(w->request))
		return error_set(e, -ECANCELED, "the client has gone");
	if (clock_monotonic() < w->until)
		return 0;
	return error_set(e, -ETIMEDOUT, "the query took longer than %u s (query_time): ask for a shorter time, or for one node or service",
			 w->seconds);
}

// A '+' in an address is a blank: "...T08:15:00 01:00" was meant to be an offset.
static int parse_time(const char *text, uint64_t now, const char *what, uint64_t *ret, struct error *e)
{
	size_t len = strlen(text);
	char copy[64];

	if (len > 16 && len < sizeof(copy) && text[len - 6] == ' ' && text[len - 3] == ':') {
		strcpy(copy, text);
		copy[len - 6] = '+';
		text = copy;
	}
	return when_parse(text, now, what, ret, e);
}

static const char *exactly(const struct http_request *q, const char *prefix, const char *name)
{
	char whole[32];

	snprintf(whole, sizeof(whole), "%s%s", prefix, name);
	return http_argument_of(q, whole);
}

// "base_node", and where that is not there "node".
static const char *argument(const struct http_request *q, const char *prefix, const char *name)
{
	const char *value = exactly(q, prefix, name);

	return value ? value : http_argument_of(q, name);
}

static int take_times(const struct http_request *q, const char *prefix, struct store_query *to, struct error *e)
{
	const char *from = exactly(q, prefix, "from"), *until = exactly(q, prefix, "to"), *seconds = exactly(q, prefix, "seconds");
	uint64_t now = clock_realtime(), n = 0;
	int err = 0;

	to->to = now;
	if (until)
		err = parse_time(until, now, "to", &to->to, e);
	if (!err && from)
		err = parse_time(from, now, "from", &to->from, e);
	else if (!err && seconds)
		err = text_number(seconds, 1, 1000000000, "seconds", &n, e);
	else if (!err)
		err = when_parse(DEFAULT_WINDOW, to->to, "from", &to->from, e);
	if (!err && !from && seconds)
		to->from = to->to > n * 1000000000 ? to->to - n * 1000000000 : 0;
	return err;
}

// The base of a difference: at the same time where none is given, as long as the other window where it has no end.
static int take_base_times(const struct http_request *q, struct store_query *to, struct error *e)
{
	const char *from = exactly(q, "base_", "from"), *seconds = exactly(q, "base_", "seconds");
	struct store_query incident;
	int err = take_times(q, "", &incident, e);

	if (!from && !seconds) {
		to->from = incident.from;
		to->to = incident.to;
		return err;
	}
	if (!err)
		err = take_times(q, "base_", to, e);
	if (!err && from && !exactly(q, "base_", "to") && incident.to > incident.from)
		to->to = to->from + (incident.to - incident.from);
	return err;
}

static int take_labels(const struct http_request *q, struct web_window *w, struct error *e)
{
	const char *text;

	for (unsigned i = 0; (text = http_argument_nth(q, "label", i)); i++) {
		char *equal;

		if (i == WEB_LABELS)
			return error_set(e, -EINVAL, "at most %d labels can be asked for", WEB_LABELS);
		snprintf(w->texts[i], sizeof(w->texts[i]), "%s", text);
		equal = strchr(w->texts[i], '=');
		if (!equal || equal == w->texts[i] || !equal[1])
			return error_set(e, -EINVAL, "label=%.60s: write label=NAME=VALUE, with the second = as %%3D where it is changed",
					 text);
		*equal = 0;
		w->labels[i] = (struct batch_label){ w->texts[i], equal + 1 };
		w->query.n_labels = i + 1;
	}
	w->query.labels = w->labels;
	return 0;
}

static const char *not_empty(const char *text)
{
	return text && *text ? text : NULL;
}

int web_window(const struct web *web, const struct http_request *q, const char *prefix, struct web_window *ret, struct error *e)
{
	int err;

	memset(ret, 0, sizeof(*ret));
	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	err = *prefix ? take_base_times(q, &ret->query, e) : take_times(q, prefix, &ret->query, e);
	if (!err)
		err = take_labels(q, ret, e);
	if (!err && ret->query.from >= ret->query.to)
		err = error_set(e, -EINVAL, "the window ends before it starts: %sfrom must be before %sto", prefix, prefix);
	if (err)
		return err;
	ret->query.node = not_empty(argument(q, prefix, "node"));
	ret->query.service = not_empty(argument(q, prefix, "service"));
	ret->query.device = not_empty(argument(q, prefix, "device"));
	ret->query.type = not_empty(http_argument_of(q, "type"));
	ret->query.limits = &ret->limits;
	ret->limits = (struct store_limits){ web->settings->query_memory, web_go_on, ret };
	ret->request = q;
	ret->until = clock_monotonic() + web->settings->query_time;
	ret->seconds = (unsigned)((web->settings->query_time + 999999999) / 1000000000);
	return 0;
}

int web_number(const struct http_request *q, const char *name, unsigned max, unsigned fallback, unsigned *ret, struct error *e)
{
	const char *text = http_argument_of(q, name);
	uint64_t n = fallback;
	int err = text ? text_number(text, 0, max, name, &n, e) : 0;

	if (!err)
		*ret = (unsigned)n;
	return err;
}
