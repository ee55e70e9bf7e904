// SPDX-License-Identifier: Apache-2.0
#include "collector/settings.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "wire/address.h"

#define DEFAULT_BIND "tcp://127.0.0.1:6062"
#define DEFAULT_DIRECTORY "/var/lib/blkprof/store"
#define MINUTE_NS 60e9
#define MIB 1048576.0

#define AT(field) offsetof(struct collector_settings, field)

static const struct config_key keys[] = {
	{ "collector", "bind", CONFIG_LIST, AT(bind), 0, 0 },
	{ "collector", "listen", CONFIG_TEXT, AT(listen), 0, 0 },
	{ "collector", "token_file", CONFIG_TEXT, AT(token_file), 0, 0 },
	{ "collector", "tls_cert", CONFIG_TEXT, AT(tls_cert), 0, 0 },
	{ "collector", "tls_key", CONFIG_TEXT, AT(tls_key), 0, 0 },
	{ "collector", "tls_client_ca", CONFIG_TEXT, AT(tls_client_ca), 0, 0 },
	{ "collector", "query_time", CONFIG_TIME, AT(query_time), 1e8, 3600e9 },
	{ "collector", "query_memory", CONFIG_SIZE, AT(query_memory), MIB, 1e12 },
	{ "collector", "queries", CONFIG_U32, AT(queries), 1, 64 },
	{ "collector", "key", CONFIG_TEXT, AT(key), 0, 0 },
	{ "collector", "allowed_keys", CONFIG_TEXT, AT(allowed_keys), 0, 0 },
	{ "collector", "insecure", CONFIG_BOOL, AT(insecure), 0, 0 },
	{ "store", "directory", CONFIG_TEXT, AT(directory), 0, 0 },
	{ "store", "max_age", CONFIG_TIME, AT(max_age), MINUTE_NS, 9e18 },
	{ "store", "max_size", CONFIG_SIZE, AT(max_size), MIB, 9e18 },
	{ "solr", "url", CONFIG_LIST, AT(solr_url), 0, 0 },
	{ "solr", "user", CONFIG_TEXT, AT(solr_user), 0, 0 },
	{ "solr", "password_file", CONFIG_TEXT, AT(solr_password_file), 0, 0 },
	{ "solr", "ca", CONFIG_TEXT, AT(solr_ca), 0, 0 },
	{ "solr", "batch", CONFIG_U32, AT(solr_batch), 1, 100000 },
	{ "solr", "commit_within", CONFIG_TIME, AT(solr_commit_within), 1e6, 3600e9 },
};

static const char *default_bind[] = { DEFAULT_BIND };

struct config_list settings_bind(const struct collector_settings *s)
{
	return s->bind.n ? s->bind : (struct config_list){ .n = 1, .item = default_bind };
}

static int check_bind(const char *path, const struct collector_settings *s, struct error *e)
{
	for (unsigned i = 0; i < s->bind.n; i++) {
		const char *address = s->bind.item[i];
		int err = address_check(address, e);

		if (err)
			return error_prefix(e, err, "%.100s:%u", path, s->bind.line[i]);
		if (!s->key && !s->insecure && !address_is_local(address))
			return error_set(e, -EINVAL, "%.100s:%u: bind = %.80s is open to other machines without encryption: set key "
					 "('blkprof keygen' makes one) and allowed_keys, or say insecure = yes", path, s->bind.line[i],
					 address);
	}
	return 0;
}

static int check_keys(const char *path, const struct collector_settings *s, struct error *e)
{
	if (s->key && !s->allowed_keys)
		return error_set(e, -EINVAL, "%.100s: key is set and allowed_keys is not: name the file with a line "
				 "'PUBLIC-KEY NODE' for each node", path);
	if (!s->key && s->allowed_keys)
		return error_set(e, -EINVAL, "%.100s: allowed_keys is set and key is not: make one with 'blkprof keygen'", path);
	if (!s->tls_cert != !s->tls_key)
		return error_set(e, -EINVAL, "%.100s: tls_cert and tls_key go together", path);
	return 0;
}

// A password in an address would stand in every message.
static bool url_fits(const char *url)
{
	return (!strncmp(url, "http://", 7) || !strncmp(url, "https://", 8)) && !strpbrk(url, "@?#");
}

static int check_solr(const char *path, const struct collector_settings *s, struct error *e)
{
	for (unsigned i = 0; i < s->solr_url.n; i++)
		if (!url_fits(s->solr_url.item[i]))
			return error_set(e, -EINVAL, "%.100s:%u: url is http:// or https:// up to the collection (http://localhost:8983/solr/NAME), "
					 "without user and password", path, s->solr_url.line[i]);
	if (!s->solr_user != !s->solr_password_file)
		return error_set(e, -EINVAL, "%.100s: user and password_file go together", path);
	return 0;
}

int settings_read(const char *path, struct collector_settings *ret, struct config **ret_config, struct error *e)
{
	struct collector_settings s = { .listen = "127.0.0.1:6063", .directory = DEFAULT_DIRECTORY, .solr_batch = 1000,
					.solr_commit_within = 10000000000, .query_time = 30000000000, .query_memory = 256ull << 20,
					.queries = 2 };
	struct config *config;
	int err = config_read(path, keys, sizeof(keys) / sizeof(*keys), &s, &config, e);

	if (err)
		return err;
	err = check_bind(path, &s, e);
	if (!err)
		err = check_keys(path, &s, e);
	if (!err)
		err = check_solr(path, &s, e);
	if (err) {
		config_free(config);
		return err;
	}
	*ret = s;
	*ret_config = config;
	return 0;
}

static bool any_https(const struct config_list *url)
{
	for (unsigned i = 0; i < url->n; i++)
		if (!strncmp(url->item[i], "https://", 8))
			return true;
	return false;
}

void settings_warnings(const struct collector_settings *s, struct buf *to)
{
	if (s->solr_ca && !any_https(&s->solr_url))
		buf_printf(to, "[solr] ca: no url begins with https://, so nothing is checked against it\n");
	if (!*s->listen && (s->token_file || s->tls_cert || s->tls_client_ca))
		buf_printf(to, "[collector] token_file and tls_*: listen is empty, so nothing is served over HTTP\n");
}
