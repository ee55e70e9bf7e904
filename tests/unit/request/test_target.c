// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "request/target.h"

static struct request_record parsed(const struct target_rules *rules, const char *target)
{
	struct request_record r = { .kind = REQUEST_ONE };

	target_parse(rules, (struct http_text){ target, strlen(target) }, &r);
	return r;
}

static void solr_paths(void **state)
{
	static const struct {
		const char *target, *core, *handler;
	} cases[] = {
		{ "/solr/books/select?q=x", "books", "/select" },
		{ "/solr/books/update/json/docs", "books", "/update/json/docs" },
		{ "/solr/trace_shard2_replica_n1/select", "trace_shard2_replica_n1", "/select" },
		{ "/solr/admin/collections?action=CREATE", "", "/admin/collections" },
		{ "/solr/books", "books", "" },
		{ "/api/collections/books/query", "books", "/query" },
		{ "/api/c/books/select", "books", "/select" },
		{ "/api/cores/books/update", "books", "/update" },
		{ "/api/cluster", "", "/api/cluster" },
		{ "http://node:8983/solr/books/get", "books", "/get" },
		{ "/", "", "/" },
		{ "/orders/4711/items", "", "/orders/*" },
		{ "/static/app.js", "", "/static/app.js" },
		{ "*", "", "" },
	};
	const struct target_rules none = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct request_record r = parsed(&none, cases[i].target);

		assert_string_equal(r.core, cases[i].core);
		assert_string_equal(r.handler, cases[i].handler);
	}
}

static void values_are_redacted(void **state)
{
	const struct target_rules none = { 0 }, q = { .keep = { "q" }, .n_keep = 1 }, all = { .keep_all = true };
	const char *target = "/solr/a/select?q=name:Smith&fq=ssn:1&rows=10&flag&wt=json&=x&q";

	assert_string_equal(parsed(&none, target).query, "q=?&fq=?&rows=10&flag&wt=json&=?&q");
	assert_string_equal(parsed(&q, target).query, "q=name:Smith&fq=?&rows=10&flag&wt=json&=?&q");
	assert_string_equal(parsed(&all, target).query, "q=name:Smith&fq=ssn:1&rows=10&flag&wt=json&=x&q");
	assert_string_equal(parsed(&none, "/a?").query, "");
}

static void long_and_odd_targets(void **state)
{
	const struct target_rules all = { .keep_all = true };
	char target[20000];
	struct request_record r;

	memset(target, 'a', sizeof(target));
	memcpy(target, "/solr/", 6);
	target[10000] = '?';
	target[sizeof(target) - 1] = 0;
	r = parsed(&all, target);
	assert_int_equal(strlen(r.path), RECORD_PATH - 1);
	assert_int_equal(strlen(r.query), RECORD_QUERY - 1);
	r = parsed(&all, "/\xff\x01/x");
	assert_string_equal(r.path, "/?" "?/x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(solr_paths),
		cmocka_unit_test(values_are_redacted),
		cmocka_unit_test(long_and_odd_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
