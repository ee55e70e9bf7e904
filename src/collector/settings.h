// SPDX-License-Identifier: Apache-2.0
// collector.conf.
#ifndef BLKPROF_COLLECTOR_SETTINGS_H
#define BLKPROF_COLLECTOR_SETTINGS_H

#include "common/buf.h"
#include "common/config.h"

struct collector_settings {
	struct config_list bind;
	const char *listen, *token_file, *tls_cert, *tls_key, *tls_client_ca; // HTTP
	uint64_t query_time, query_memory; // of one
	uint32_t queries;		   // at once
	const char *key, *allowed_keys;
	bool insecure;
	const char *directory;
	uint64_t max_age, max_size;
	struct config_list solr_url;
	const char *solr_user, *solr_password_file, *solr_ca;
	uint32_t solr_batch;
	uint64_t solr_commit_within;
};

// Reads and checks the file: addresses, and that what leaves the machine is encrypted. *ret's values live until
// config_free(*ret_config).
int settings_read(const char *path, struct collector_settings *ret, struct config **ret_config, struct error *e);
// Lines about what is set and not served by this version; empty when there is nothing to say.
void settings_warnings(const struct collector_settings *s, struct buf *to);
// The addresses to listen on: the default one when there is none.
struct config_list settings_bind(const struct collector_settings *s);

#endif
