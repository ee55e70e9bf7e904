// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "collector/web_internal.h"

#define M(field, name, help, type) { "blkprof_collector_" name, NULL, help, type, offsetof(struct http_counters, field) }

static const struct metric http_metrics[] = {
	M(requests, "http_requests_total", "Requests over HTTP.", METRIC_COUNTER),
	M(refused_token, "http_refused_token_total", "Those without the token.", METRIC_COUNTER),
	M(refused_busy, "http_refused_busy_total", "Those that came when too many were waiting.", METRIC_COUNTER),
	M(failed, "http_failed_total", "Those that were answered with an error.", METRIC_COUNTER),
	M(connections, "http_connections_total", "Connections over HTTP.", METRIC_COUNTER),
	M(bytes, "http_sent_bytes_total", "Bytes of answers.", METRIC_COUNTER),
	M(cut, "http_cut_total", "Connections that took too long to ask or to read, and were ended.", METRIC_COUNTER),
};

static void gauge(struct buf *to, const char *name, const char *help, uint64_t value)
{
	buf_printf(to, "# HELP blkprof_collector_%s %s\n# TYPE blkprof_collector_%s gauge\nblkprof_collector_%s %" PRIu64 "\n", name, help,
		   name, name, value);
}

int web_get_metrics(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	static const char *const names[] = { NULL };
	struct web *w = context;
	int err = http_check_arguments(q, names, e);
	uint64_t file, log;

	if (err)
		return err;
	metrics_print(collector_metrics, collector_metrics_n, w->counters, &r->body);
	metrics_print(http_metrics, sizeof(http_metrics) / sizeof(*http_metrics), http_get_counters(w->server), &r->body);
	store_size(w->store, &file, &log);
	gauge(&r->body, "store_bytes", "Bytes of the store's database.", file);
	gauge(&r->body, "store_log_bytes", "Bytes of the log beside it.", log);
	gauge(&r->body, "store_trouble", "1 while roll-ups and retention of the store fail.", store_trouble(w->store, NULL) != 0);
	tally_print(w->tally, &r->body);
	r->type = "text/plain; version=0.0.4; charset=utf-8";
	return 0;
}

int web_get_health(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	struct web *w = context;

	(void)q;
	if (store_trouble(w->store, NULL))
		return error_set(e, -EAGAIN, "roll-ups and retention of the store fail; the log says why");
	buf_printf(&r->body, "ok\n");
	return 0;
}
