// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "agent/devices.h"
#include "agent/hostinfo.h"
#include "agent/view.h"
#include "wire/batch.h"

#define HEADER_MAX 64
#define KEY(s, k, t, field) { .section = s, .key = k, .type = t, .offset = offsetof(struct agent_config, field) }
#define RANGE(s, k, t, field, low, high)                                                                            \
	{ .section = s, .key = k, .type = t, .offset = offsetof(struct agent_config, field), .min = low, .max = high }

static const struct config_key keys[] = {
	KEY("agent", "node", CONFIG_TEXT, node),
	RANGE("agent", "window", CONFIG_TIME, window, 1e9, 3600e9),
	RANGE("agent", "rate", CONFIG_U32, rate, 0, 1000000),
	RANGE("agent", "cpu_hz", CONFIG_U32, cpu_hz, 0, 10000),
	KEY("agent", "backend", CONFIG_TEXT, backend),
	KEY("agent", "kernel_stacks", CONFIG_BOOL, kernel_stacks),
	KEY("agent", "labels", CONFIG_TEXT, labels_set),
	KEY("agent", "java_attach", CONFIG_BOOL, java_attach),
	RANGE("agent", "memory", CONFIG_SIZE, memory, 16 << 20, 64e9),
	KEY("agent", "exclude", CONFIG_LIST, exclude),
	KEY("agent", "listen", CONFIG_TEXT, listen),
	KEY("agent", "token_file", CONFIG_TEXT, token_file),
	KEY("agent", "tls_cert", CONFIG_TEXT, tls_cert),
	KEY("agent", "tls_key", CONFIG_TEXT, tls_key),
	KEY("agent", "tls_client_ca", CONFIG_TEXT, tls_client_ca),
	KEY("filter", "pid", CONFIG_LIST, pid),
	KEY("filter", "comm", CONFIG_LIST, comm),
	KEY("filter", "cgroup", CONFIG_LIST, cgroup),
	KEY("filter", "device", CONFIG_LIST, device),
	KEY("filter", "op", CONFIG_LIST, op),
	KEY("spool", "directory", CONFIG_TEXT, directory),
	RANGE("spool", "max_size", CONFIG_SIZE, max_size, 1 << 20, 1e15),
	KEY("ship", "endpoint", CONFIG_LIST, endpoint),
	KEY("ship", "key", CONFIG_TEXT, key),
	KEY("ship", "insecure", CONFIG_BOOL, insecure),
	KEY("labels", "*", CONFIG_PAIRS, labels),
	KEY("requests", "comm", CONFIG_LIST, requests_comm),
	KEY("requests", "pid", CONFIG_LIST, requests_pid),
	KEY("requests", "cgroup", CONFIG_LIST, requests_cgroup),
	KEY("requests", "cmdline", CONFIG_LIST, requests_cmdline),
	KEY("requests", "keep_params", CONFIG_LIST, keep_params),
	KEY("requests", "plugins", CONFIG_TEXT, plugins),
	KEY("requests", "trace_header", CONFIG_TEXT, trace_header),
};

static const struct agent_config defaults = {
	.node = "", .backend = "auto", .labels_set = "comm", .listen = "127.0.0.1:6061", .token_file = "", .tls_cert = "",
	.tls_key = "", .tls_client_ca = "", .window = 10000000000, .memory = 128 << 20, .rate = 250,
	.directory = "/var/lib/blkprof/spool", .max_size = 1 << 30, .key = "", .plugins = "", .trace_header = "X-Trace-Id",
};

static int choose_node(struct agent_config *c, struct error *e)
{
	char host[65] = "";

	if (!*c->node) {
		if (gethostname(host, sizeof(host) - 1))
			host[0] = 0;
		hostinfo_node_name(host, c->node_name, sizeof(c->node_name));
		return 0;
	}
	if (!batch_node_valid(c->node))
		return error_set(e, -EINVAL, "node = '%.70s': a node's name has letters, digits, '.', '-' and '_', at most %d", c->node,
				 BATCH_NODE_MAX);
	memcpy(c->node_name, c->node, strlen(c->node) + 1);
	return 0;
}

static int check_labels(const struct agent_config *c, struct error *e)
{
	if (c->labels.n > BATCH_LABELS_MAX)
		return error_set(e, -EINVAL, "[labels] has %u lines; %d are allowed", c->labels.n, BATCH_LABELS_MAX);
	for (unsigned i = 0; i < c->labels.n; i++) {
		if (strlen(c->labels.value[i]) > BATCH_LABEL_MAX)
			return error_set(e, -EINVAL, "[labels] %s is longer than %d bytes", c->labels.name[i], BATCH_LABEL_MAX);
		if (strchr(c->labels.value[i], '\t'))
			return error_set(e, -EINVAL, "[labels] %s has a tab in it; use a blank", c->labels.name[i]);
	}
	return 0;
}

static bool is_header_name(const char *text)
{
	size_t len = strlen(text);

	return len && len <= HEADER_MAX && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == len;
}

static int check(struct agent_config *c, struct error *e)
{
	const struct config_list *lists[] = { &c->exclude, &c->pid, &c->comm, &c->cgroup, &c->device, &c->op };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (lists[i]->n > FILTER_MAX)
			return error_set(e, -EINVAL, "line %u is one filter of its kind too many; %d are allowed",
					 lists[i]->line[FILTER_MAX], FILTER_MAX);
	if (backend_parse(c->backend, &c->backend_kind))
		return error_set(e, -EINVAL, "backend = '%.40s'; there are auto, fentry, kprobe and tracepoint", c->backend);
	if (label_set_parse(c->labels_set, &c->label_set))
		return error_set(e, -EINVAL, "labels = '%.40s'; there are all, comm (few and comm), few and none", c->labels_set);
	if (!is_header_name(c->trace_header))
		return error_set(e, -EINVAL, "trace_header = '%.40s' is no name of a header; it has letters, digits, '-', '_' and '.', "
				 "at most %d", c->trace_header, HEADER_MAX);
	if (!*c->directory)
		return error_set(e, -EINVAL, "directory in [spool] is empty; name a folder on a disk of this node");
	return check_labels(c, e) ? -EINVAL : choose_node(c, e);
}

int agent_config_read(const char *path, struct agent_config *ret, struct error *e)
{
	struct agent_config c = defaults;
	int err = config_read(path, keys, sizeof(keys) / sizeof(*keys), &c, &c.texts, e);

	if (err)
		return err;
	err = check(&c, e);
	if (err) {
		agent_config_free(&c);
		return error_prefix(e, err, "%.100s", path);
	}
	*ret = c;
	return 0;
}

void agent_config_free(struct agent_config *c)
{
	config_free(c->texts);
	memset(c, 0, sizeof(*c));
}

static void copy_list(const struct config_list *from, const char **to, unsigned *n)
{
	for (*n = 0; *n < from->n; (*n)++)
		to[*n] = from->item[*n];
}

int agent_config_filter(const struct agent_config *c, struct filter *ret, struct error *e)
{
	struct filter_options o = { 0 };
	struct devices *devices;
	int err;

	copy_list(&c->pid, o.pid, &o.n_pid);
	copy_list(&c->comm, o.comm, &o.n_comm);
	copy_list(&c->cgroup, o.cgroup, &o.n_cgroup);
	copy_list(&c->device, o.device, &o.n_device);
	copy_list(&c->op, o.op, &o.n_op);
	copy_list(&c->exclude, o.exclude, &o.n_exclude);
	devices = devices_new(NULL, e);
	if (!devices)
		return -ENOMEM;
	err = filter_resolve(&o, devices, ret, e);
	devices_free(devices);
	return err ? error_prefix(e, err, "[filter] or exclude") : 0;
}

const char *agent_config_warning(const struct agent_config *c, unsigned i)
{
	const struct {
		bool asked;
		const char *text;
	} all[] = {
		{ !*c->listen && (*c->token_file || *c->tls_cert || *c->tls_key || *c->tls_client_ca),
		  "token_file, tls_cert, tls_key and tls_client_ca have no effect: listen is empty" },
		{ (c->keep_params.n || *c->plugins) && !c->requests_comm.n && !c->requests_pid.n && !c->requests_cgroup.n && !c->requests_cmdline.n,
		  "keep_params and plugins have no effect: [requests] names no process" },
	};

	for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
		if (all[k].asked && i-- == 0)
			return all[k].text;
	return NULL;
}
