// SPDX-License-Identifier: Apache-2.0
#include "request/target.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

// Parameters of Solr whose values choose how a query is answered and carry nothing of what is asked for.
static const char *const usual[] = {
	"action", "async", "boost", "cache", "cat", "collection", "commit", "commitWithin", "core", "cursorMark", "debug",
	"debugQuery", "defType", "df", "distrib", "echoParams", "expungeDeletes", "f", "facet", "facet.field", "facet.limit",
	"facet.mincount", "fl", "group", "group.field", "hl", "hl.fl", "indent", "indexInfo", "isShard", "json.nl", "lang",
	"maxSegments", "maxShardsPerNode", "mm", "name", "numShards", "numTerms", "omitHeader", "openSearcher", "optimize",
	"overwrite", "preferLocalShards", "qf", "q.op", "qt", "replicationFactor", "replicas", "rid", "rows", "shard",
	"shard.url", "shards", "shards.purpose", "shards.tolerant", "sort", "sow", "start", "stats", "stats.field", "timeAllowed",
	"update.chain", "update.distrib", "version", "waitSearcher", "wt",
};

static bool kept(const struct target_rules *rules, const char *name, size_t len)
{
	if (rules->keep_all)
		return true;
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (len && *usual[i] == *name && strlen(usual[i]) == len && !memcmp(usual[i], name, len))
			return true;
	for (unsigned i = 0; i < rules->n_keep; i++)
		if (strlen(rules->keep[i]) == len && !memcmp(rules->keep[i], name, len))
			return true;
	return false;
}

static size_t append(char *out, size_t at, size_t cap, const char *text, size_t len)
{
	if (at + len >= cap)
		len = cap > at + 1 ? cap - at - 1 : 0;
	memcpy(out + at, text, len);
	out[at + len] = 0;
	return at + len;
}

static void redact(const struct target_rules *rules, const char *query, size_t size, char *out, size_t cap)
{
	const char *end = query + size;
	size_t at = 0;

	out[0] = 0;
	while (query < end) {
		size_t len = (size_t)(end - query), name;
		const char *amp = memchr(query, '&', len), *equal;

		len = amp ? (size_t)(amp - query) : len;
		equal = memchr(query, '=', len);
		name = equal ? (size_t)(equal - query) : len;
		if (at)
			at = append(out, at, cap, "&", 1);
		if (kept(rules, query, name)) {
			at = append(out, at, cap, query, len);
		} else {
			at = append(out, at, cap, query, name);
			at = append(out, at, cap, equal ? "=?" : "", equal ? 2 : 0);
		}
		query += len + (amp != NULL);
	}
}

static const char *segment_end(const char *at)
{
	return at + strcspn(at, "/");
}

static void copy_segment(char *out, size_t cap, const char *from, const char *to)
{
	text_sanitize(out, cap, from, (size_t)(to - from));
}

// "/solr/CORE/handler…", "/solr/admin/…"; "/api/collections/NAME/…", "/api/cores/…", "/api/c/…".
static bool solr_path(struct request_record *r)
{
	const char *at = r->path, *end;

	if (!strncmp(at, "/solr/", 6)) {
		at += 6;
	} else if (!strncmp(at, "/api/", 5)) {
		at += 5;
		end = segment_end(at);
		if (strncmp(at, "collections/", 12) && strncmp(at, "cores/", 6) && strncmp(at, "c/", 2)) {
			snprintf(r->handler, sizeof(r->handler), "/api/%.*s", (int)(end - at < 100 ? end - at : 100), at);
			return true;
		}
		at = end + 1;
	} else {
		return false;
	}
	if (!strncmp(at, "admin/", 6) || !strcmp(at, "admin")) {
		copy_segment(r->handler, sizeof(r->handler), at - 1, at + strlen(at));
		return true;
	}
	end = segment_end(at);
	copy_segment(r->core, sizeof(r->core), at, end);
	copy_segment(r->handler, sizeof(r->handler), end, end + strlen(end));
	return true;
}

// A segment that is likely one of many: an id.
static bool is_id(const char *at, size_t len)
{
	size_t digits = 0;

	for (size_t i = 0; i < len; i++)
		digits += isdigit((unsigned char)at[i]) != 0;
	return len > 24 || (digits && digits * 3 >= len);
}

// Of other servers: the first two segments, ids as '*'.
static void plain_handler(struct request_record *r)
{
	const char *at = r->path;
	size_t used = 0;

	for (unsigned i = 0; i < 2 && *at == '/'; i++) {
		const char *end = segment_end(at + 1);
		size_t len = (size_t)(end - at - 1);

		used = append(r->handler, used, sizeof(r->handler), "/", 1);
		if (is_id(at + 1, len))
			used = append(r->handler, used, sizeof(r->handler), "*", 1);
		else
			used = append(r->handler, used, sizeof(r->handler), at + 1, len);
		at = end;
	}
}

void target_parse(const struct target_rules *rules, struct http_text target, struct request_record *r)
{
	const char *query = memchr(target.at, '?', target.len);
	size_t path = query ? (size_t)(query - target.at) : target.len;
	const char *start = target.at;
	char raw[RECORD_QUERY];

	// "http://host/path", as proxies ask.
	if (path > 7 && !memcmp(start, "http://", 7)) {
		const char *slash = memchr(start + 7, '/', path - 7);

		path = slash ? path - (size_t)(slash - start) : 0;
		start = slash ? slash : start;
	}
	text_sanitize(r->path, sizeof(r->path), start, path);
	if (query) {
		redact(rules, query + 1, target.len - (size_t)(query + 1 - target.at), raw, sizeof(raw));
		text_sanitize(r->query, sizeof(r->query), raw, strlen(raw));
	}
	if (!solr_path(r))
		plain_handler(r);
}
