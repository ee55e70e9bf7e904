// SPDX-License-Identifier: Apache-2.0
#include "collector/web.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "collector/web_internal.h"

#define WAITING 32
#define CONNECTIONS 1000 // and at most a quarter of the files that may be open

static const struct http_route routes[] = {
	{ .path = "/debug/pprof/io", .fn = web_get_io },
	{ .path = "/debug/pprof/diff", .fn = web_get_diff },
	{ .path = "/api/v1/nodes", .fn = web_get_nodes },
	{ .path = "/api/v1/services", .fn = web_get_services },
	{ .path = "/api/v1/windows", .fn = web_get_windows },
	{ .path = "/api/v1/coverage", .fn = web_get_coverage },
	{ .path = "/api/v1/series", .fn = web_get_series },
	{ .path = "/api/v1/top", .fn = web_get_top },
	{ .path = "/api/v1/diff", .fn = web_get_api_diff },
	{ .path = "/api/v1/requests", .fn = web_get_requests },
	{ .path = "/metrics", .fn = web_get_metrics, .quick = true },
	{ .path = "/healthz", .fn = web_get_health, .open = true, .quick = true },
	{ .path = NULL },
};

unsigned web_connections(void)
{
	struct rlimit files = { 1024, 1024 };

	getrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur / 4 < CONNECTIONS ? (unsigned)files.rlim_cur / 4 : CONNECTIONS;
}

int web_new(const struct collector_settings *settings, struct store *store, const struct collector_counters *counters,
	    struct web **ret, struct error *e)
{
	const struct http_options o = {
		.listen = settings->listen, .token_file = settings->token_file, .tls_cert = settings->tls_cert,
		.tls_key = settings->tls_key, .tls_client_ca = settings->tls_client_ca, .running = settings->queries,
		.waiting = WAITING, .response = settings->query_memory, .connections = web_connections(), .timeout_s = 20,
	};
	struct web *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return error_set(e, -ENOMEM, "out of memory");
	w->settings = settings;
	w->store = store;
	w->counters = counters;
	err = tally_new(store, &w->tally, e);
	if (!err)
		err = http_server_new(&o, routes, w, &w->server, e);
	if (err)
		web_free(w);
	else
		*ret = w;
	return err;
}

void web_free(struct web *w)
{
	if (!w)
		return;
	http_server_free(w->server);
	tally_free(w->tally);
	free(w);
}

uint16_t web_port(const struct web *w)
{
	return http_port(w->server);
}
