// SPDX-License-Identifier: Apache-2.0
#include "request/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/quote.h"
#include "common/text.h"
#include "request/document.h"

static const char *const kinds[] = { [REQUEST_ONE] = "request", [REQUEST_THREAD] = "thread", [REQUEST_HANDLER] = "handler" };
static const char *const attributions[ATTRIBUTIONS] = { "exact", "handler_thread", "thread_only", "shared_thread" };
static const char *const ends[REQUEST_ENDS] = { "next_read", "next_response", "closed", "eof", "idle", "stopped", "window" };

_Static_assert(DOCUMENT_FIELDS_MAX >= 4 * METRICS_MAX + 64, "the largest record is one that can be read");

static const char *const fields[] = {
	"id", "kind_s", "hostname_s", "pid_i", "tid_i", "event_timestamp_dt", "end_dt", "conn_s", "req_seq_l", "status_i",
	"attribution_s", "end_s", "incomplete_b", "method_s", "proto_s", "path_s", "query_s", "params_ss", "core_s", "handler_s",
	"trace_id_s", "parent_span_s", "comm_s", "thread_s", "disk_device_s", "stack_quality_s", "missing_ss", "threads_i",
};

const char *record_field(unsigned i)
{
	return i < sizeof(fields) / sizeof(*fields) ? fields[i] : NULL;
}

void record_free(struct request_record *r)
{
	breakdown_free(&r->times);
}

void record_id(const struct request_record *r, const char *host, char *ret, unsigned cap)
{
	// Sums of a process and of its first thread may begin at one moment and have one number.
	snprintf(ret, cap, "%s:%u:%llx:%llx:%s%llu", host, r->kind == REQUEST_THREAD ? r->tid : r->pid,
		 (unsigned long long)r->connection, (unsigned long long)r->start, r->kind == REQUEST_HANDLER ? "h" : "",
		 (unsigned long long)r->number);
}

static void quoted(struct buf *b, const char *text)
{
	quote_append(b, text, strlen(text));
}

static void text_field(struct buf *b, const char *name, const char *text)
{
	if (!*text)
		return;
	buf_printf(b, ",\"%s\":", name);
	quoted(b, text);
}

// Solr takes milliseconds, UTC, with a Z.
static void time_field(struct buf *b, const char *name, uint64_t ns)
{
	time_t s = (time_t)(ns / 1000000000u);
	struct tm tm;
	char text[32];

	gmtime_r(&s, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	buf_printf(b, ",\"%s\":\"%s.%03uZ\"", name, text, (unsigned)(ns / 1000000u % 1000u));
}

// "a=1&b=?" as ["a=1","b=?"].
static void params_field(struct buf *b, const char *query)
{
	char one[RECORD_QUERY];
	unsigned n = 0;

	for (const char *at = query; *at && n < RECORD_PARAMS; n++) {
		size_t len = strcspn(at, "&");

		memcpy(one, at, len);
		one[len] = 0;
		if (!n)
			buf_printf(b, ",\"params_ss\":[");
		else
			buf_byte(b, ',');
		quoted(b, one);
		at += len + (at[len] == '&');
	}
	if (n)
		buf_byte(b, ']');
}

static void missing_field(const struct request_record *r, const struct breakdown_table *m, struct buf *b)
{
	struct buf names = { 0 };

	breakdown_missing_json(&r->times, m, &names);
	if (names.len || *r->missing) {
		buf_printf(b, ",\"missing_ss\":[");
		for (const char *at = r->missing; *at;) {
			size_t len = strcspn(at, ",");

			buf_printf(b, "\"%.*s\"", (int)len, at);
			at += len + (at[len] == ',');
			if (*at || names.len)
				buf_byte(b, ',');
		}
		buf_append(b, names.data, names.len);
		buf_byte(b, ']');
	}
	b->error = b->error ? b->error : names.error;
	buf_free(&names);
}

static void request_fields(const struct request_record *r, struct buf *b)
{
	buf_printf(b, ",\"conn_s\":\"%llu\",\"req_seq_l\":%llu", (unsigned long long)r->connection, (unsigned long long)r->number);
	if (r->status)
		buf_printf(b, ",\"status_i\":%d", r->status);
}

void record_json(const struct request_record *r, const struct breakdown_table *m, const char *host, struct buf *b)
{
	char id[200];

	record_id(r, host, id, sizeof(id));
	buf_printf(b, "{\"id\":");
	quoted(b, id);
	buf_printf(b, ",\"kind_s\":\"%s\"", kinds[r->kind]);
	text_field(b, "hostname_s", host);
	buf_printf(b, ",\"pid_i\":%u,\"tid_i\":%u", r->pid, r->tid);
	time_field(b, "event_timestamp_dt", r->start);
	time_field(b, "end_dt", r->end);
	if (r->kind == REQUEST_ONE)
		request_fields(r, b);
	buf_printf(b, ",\"attribution_s\":\"%s\",\"end_s\":\"%s\"", attributions[r->attribution], ends[r->ended]);
	if (r->incomplete)
		buf_printf(b, ",\"incomplete_b\":true");
	text_field(b, "method_s", r->method);
	text_field(b, "proto_s", r->proto);
	text_field(b, "path_s", r->path);
	text_field(b, "query_s", r->query);
	params_field(b, r->query);
	text_field(b, "core_s", r->core);
	text_field(b, "handler_s", r->handler);
	text_field(b, "trace_id_s", r->trace_id);
	text_field(b, "parent_span_s", r->parent_span);
	text_field(b, "comm_s", r->comm);
	text_field(b, "thread_s", r->thread);
	text_field(b, "disk_device_s", r->device);
	text_field(b, "stack_quality_s", r->stack_quality);
	if (r->times.parts > 1 && r->kind == REQUEST_ONE)
		buf_printf(b, ",\"threads_i\":%u", r->times.parts);
	missing_field(r, m, b);
	breakdown_json(&r->times, m, b);
	buf_byte(b, '}');
}
