// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_COLLECTOR_WEB_INTERNAL_H
#define BLKPROF_COLLECTOR_WEB_INTERNAL_H

#include "collector/tally.h"
#include "collector/web.h"
#include "http/server.h"

#define WEB_LABELS 16

struct web {
	const struct collector_settings *settings;
	struct store *store;
	const struct collector_counters *counters;
	struct tally *tally;
	struct http_server *server;
};

// A window that a request asks for, with the limits of its query. It points into the request and into itself.
struct web_window {
	struct store_query query;
	struct store_limits limits;
	struct batch_label labels[WEB_LABELS];
	char texts[WEB_LABELS][HTTP_TEXT + 1]; // of labels
	const struct http_request *request;
	uint64_t until; // monotonic
	unsigned seconds;
};

// The names of the arguments of a window.
#define WEB_WINDOW_ARGUMENTS "from", "to", "seconds", "node", "service", "device", "label"
// `prefix` "base_" for the base of a difference: what it has not is as without a prefix.
int web_window(const struct web *w, const struct http_request *q, const char *prefix, struct web_window *ret, struct error *e);
int web_go_on(void *window, struct error *e);
// A number of rows, and the like: `fallback` where it is not there.
int web_number(const struct http_request *q, const char *name, unsigned max, unsigned fallback, unsigned *ret, struct error *e);

// web_profile.c
http_handler web_get_io, web_get_diff, web_get_top, web_get_api_diff;
// web_lists.c
http_handler web_get_nodes, web_get_services, web_get_windows, web_get_coverage, web_get_series;
// web_requests.c
http_handler web_get_requests;
// web_metrics.c
http_handler web_get_metrics, web_get_health;

// web_json.c
void web_json_text(struct buf *to, const char *text); // with its quotes
void web_json_time(struct buf *to, uint64_t ns);	  // RFC 3339
void web_json_coverage(struct buf *to, const struct store_query *q, const struct store_coverage *c); // an object

#endif
