// SPDX-License-Identifier: Apache-2.0
// agent.conf, read and checked. docs/agent.conf is the documented example of every key.
#ifndef BLKPROF_AGENT_AGENT_CONFIG_H
#define BLKPROF_AGENT_AGENT_CONFIG_H

#include "agent/recorder.h"
#include "common/config.h"

struct agent_config {
	// [agent]
	const char *node, *backend, *labels_set, *listen, *token_file, *tls_cert, *tls_key, *tls_client_ca;
	uint64_t window, memory;
	uint32_t rate, cpu_hz;
	bool kernel_stacks, java_attach;
	struct config_list exclude;
	// [filter]
	struct config_list pid, comm, cgroup, device, op;
	// [spool]
	const char *directory;
	uint64_t max_size;
	// [ship]
	struct config_list endpoint;
	const char *key;
	bool insecure;
	// [labels]
	struct config_pairs labels;
	// [requests]
	struct config_list requests_comm, requests_pid, requests_cgroup, requests_cmdline, keep_params;
	const char *plugins, *trace_header;

	struct config *texts; // owns what the pointers above point to
	char node_name[65];   // of `node`, or the host's
	enum backend backend_kind;
	enum label_set label_set;
};

// -EINVAL with file and line, errors of reading. The struct is filled whole or left alone.
int agent_config_read(const char *path, struct agent_config *ret, struct error *e);
void agent_config_free(struct agent_config *c);
// Names of [filter] and `exclude` as they are on this node now.
int agent_config_filter(const struct agent_config *c, struct filter *ret, struct error *e);
// What the file asks for and this program does not do; the i-th such sentence, or NULL. Never silently ignored.
const char *agent_config_warning(const struct agent_config *c, unsigned i);

#endif
