// SPDX-License-Identifier: Apache-2.0
#include "cli/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fetch.h"
#include "cli/remote.h"

struct source {
	unsigned n;
	struct store *store[SOURCES_MAX];
	struct remote *remote; // instead of stores
};

static int add_name(struct source_names *to, const char *value, const char *what, struct error *e)
{
	if (to->n == SOURCES_MAX)
		return error_set(e, -EINVAL, "'%.60s' is one too many; allowed: at most %d %s", value, SOURCES_MAX, what);
	to->name[to->n++] = value;
	return 0;
}

int source_add_store(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	if (!*value)
		return error_set(e, -EINVAL, "it is empty; allowed: the directory of a collector's store");
	return add_name(target, value, "stores", e);
}

static bool has_host(const char *url)
{
	const char *host = strstr(url, "://") + 3, *at = memrchr(host, '@', strcspn(host, "/"));

	return !strchr("/:", *(at ? at + 1 : host));
}

int source_add_collector(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	if (!fetch_is_url(value) || strpbrk(value, "?# ") || !has_host(value))
		return error_set(e, -EINVAL, "'%.60s' is not allowed; allowed: http://HOST:PORT or https://HOST:PORT", value);
	return add_name(target, value, "collectors", e);
}

int source_add_label(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	struct source_labels *l = target;
	char *equal = strchr(value, '=');

	if (!equal || equal == value || !equal[1])
		return error_set(e, -EINVAL, "'%.60s' is not allowed; allowed: NAME=VALUE", value);
	if (l->n == SOURCE_LABELS_MAX)
		return error_set(e, -EINVAL, "'%.60s' is one too many; allowed: at most %d labels", value, SOURCE_LABELS_MAX);
	*equal = 0;
	l->label[l->n++] = (struct batch_label){ value, equal + 1 };
	return 0;
}

int source_check(const struct source_options *o, bool *ret_any, struct error *e)
{
	*ret_any = o->stores.n || o->collectors.n;
	if (o->stores.n && o->collectors.n)
		return error_set(e, -EINVAL, "--store and --collector do not go together: give one of them");
	if (!o->collectors.n && (o->token_file || o->ca || o->cert || o->key))
		return error_set(e, -EINVAL, "--token-file and --tls-* are for --collector");
	if (!o->cert != !o->key)
		return error_set(e, -EINVAL, "--tls-cert and --tls-key belong together");
	return 0;
}

int source_open(const struct source_options *o, struct source **ret, struct error *e)
{
	struct source *s = calloc(1, sizeof(*s));
	int err = s ? 0 : error_set(e, -ENOMEM, "out of memory");

	if (!err && o->collectors.n)
		err = remote_new(o, &s->remote, e);
	for (unsigned i = 0; i < o->stores.n && !err; i++) {
		struct store_options so = { .directory = o->stores.name[i], .read_only = true };

		err = store_open(&so, &s->store[i], e);
		s->n += !err;
	}
	if (err)
		source_close(s);
	else
		*ret = s;
	return err;
}

void source_close(struct source *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n; i++)
		store_close(s->store[i]);
	remote_free(s->remote);
	free(s);
}

struct store_query source_query_of(const struct source_options *o, uint64_t from, uint64_t to)
{
	return (struct store_query){ .from = from, .to = to, .node = o->node, .service = o->service, .device = o->device,
				     .n_labels = o->labels.n, .labels = o->labels.label };
}

int source_query(struct source *s, const struct store_query *q, struct buf *ret_gz, struct buf *said, struct error *e)
{
	struct store_coverage coverage;
	int err;

	if (s->remote)
		return remote_query(s->remote, q, ret_gz, said, e);
	err = store_query_many(s->store, s->n, q, ret_gz, &coverage, e);
	if (!err)
		store_coverage_print(&coverage, q, said);
	return err;
}

int source_list(struct source *s, enum store_list what, const struct store_query *q, store_list_fn fn, void *context, struct error *e)
{
	if (s->remote)
		return remote_list(s->remote, what, q, fn, context, e);
	return store_list_many(s->store, s->n, what, q, fn, context, e);
}
