// SPDX-License-Identifier: Apache-2.0
// What the agent serves over HTTP. Its requests run on threads of the server: they see what is made for them (live.h,
// the metrics under their lock), never the recorder.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/live.h"
#include "common/clock.h"
#include "common/text.h"

#define SILENT_NS 30000000000ull // of the loop: shorter than the service manager's patience
#define CONNECTIONS 64
#define IDLE_S 15
#define OTHERS 2 // requests beside pulls

static const char *why_end(void *context)
{
	const struct http_request *q = context;

	if (http_stopping(q->server))
		return "the agent reads its configuration again; try again";
	return http_client_gone(q) ? "the client is gone" : NULL;
}

// "" is as good as nothing: templates leave it.
static const char *text_of(const struct http_request *q, const char *name)
{
	const char *text = http_argument_of(q, name);

	return text && *text ? text : NULL;
}

static int parse_pull(struct agent *a, const struct http_request *q, struct live_pull *ret, struct error *e)
{
	static const char *const names[] = { "seconds", "service", "device", "root", "labels", "type", NULL };
	const char *seconds = text_of(q, "seconds"), *labels = text_of(q, "labels"), *type = text_of(q, "type");
	uint64_t n = LIVE_SECONDS;
	int err = http_check_arguments(q, names, e);

	if (!err && seconds)
		err = text_number(seconds, 1, LIVE_SECONDS_MAX, "seconds", &n, e);
	if (err)
		return err;
	ret->seconds = (unsigned)n;
	ret->view = (struct window_view){ .service = text_of(q, "service"), .device = text_of(q, "device"),
					  .root = text_of(q, "root"), .type = PPROF_IO_TIME, .labels = live_labels(a->live) };
	if (labels && label_set_parse(labels, &ret->view.labels))
		return error_set(e, -EINVAL, "labels=%.40s: there are all, comm, few and none", labels);
	if (type && pprof_type_parse(type, &ret->view.type))
		return error_set(e, -EINVAL, "type=%.40s: there are io_ops, io_time, read_bytes, write_bytes and cpu", type);
	return 0;
}

static void note(const struct window_info *info, struct http_response *r)
{
	uint64_t lost = 0;

	for (unsigned i = 0; i < LOSS_CAUSES; i++)
		lost += info->losses[i];
	if (lost)
		snprintf(r->note, sizeof(r->note), "%" PRIu64 " losses, by cause in the profile's comments", lost);
}

static int pull(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	struct agent *a = context;
	struct live_pull p = { .why_end = why_end, .context = (void *)q };
	struct window_info info;
	int err = parse_pull(a, q, &p, e);

	if (!err)
		err = live_pull(a->live, &p, &r->body, &info, e);
	if (err)
		return err;
	note(&info, r);
	r->type = "application/octet-stream";
	r->file_name = "io.pb.gz";
	return 0;
}

static int metrics(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	static const char *const names[] = { NULL };
	int err = http_check_arguments(q, names, e);

	if (err)
		return err;
	agent_metrics_text(context, &r->body);
	agent_metrics_http(q->server, &r->body);
	r->type = "text/plain; version=0.0.4; charset=utf-8";
	return 0;
}

static int healthy(void *context, const struct http_request *q, struct http_response *r, struct error *e)
{
	struct agent *a = context;
	uint64_t silent = clock_monotonic() - metric_get(&a->stepped);

	if (silent > SILENT_NS)
		return error_set(e, -EBUSY, "the recording's loop has not turned for %u s", (unsigned)(silent / 1000000000u));
	buf_printf(&r->body, "ok\n");
	return 0;
}

static const struct http_route routes[] = {
	{ .path = "/debug/pprof/io", .fn = pull },
	{ .path = "/metrics", .fn = metrics },
	{ .path = "/healthz", .fn = healthy, .open = true, .quick = true },
	{ .path = NULL },
};

static const char *set_or_null(const char *text)
{
	return *text ? text : NULL;
}

static void options_of(const struct agent_config *c, struct http_options *ret)
{
	*ret = (struct http_options){
		.listen = c->listen, .token_file = set_or_null(c->token_file), .tls_cert = set_or_null(c->tls_cert),
		.tls_key = set_or_null(c->tls_key), .tls_client_ca = set_or_null(c->tls_client_ca), .connections = CONNECTIONS,
		.running = LIVE_PULLS + OTHERS, .timeout_s = IDLE_S,
	};
}

int agent_http_open(struct agent *a, const struct agent_config *c, struct error *e)
{
	struct http_options o;
	int err;

	if (!*c->listen)
		return 0;
	metric_set(&a->stepped, clock_monotonic());
	options_of(c, &o);
	err = http_server_new(&o, routes, a, &a->http, e);
	if (!err)
		agent_say(a, AGENT_INFO, "serving HTTP%s at %.*s:%u%s", *c->tls_cert ? "S" : "",
			  (int)(strrchr(c->listen, ':') - c->listen), c->listen, http_port(a->http),
			  *c->token_file ? " to those who have the token" : "");
	return err;
}

void agent_http_close(struct agent *a)
{
	http_server_free(a->http);
	a->http = NULL;
}

int agent_http_reload(struct agent *a, const struct agent_config *c, struct error *e)
{
	struct error ignored = { "" };
	int err;

	agent_http_close(a);
	err = agent_http_open(a, c, e);
	if (err && agent_http_open(a, &a->config, &ignored))
		agent_say(a, AGENT_ERROR, "HTTP is off: %s", ignored.text);
	return err;
}
