// SPDX-License-Identifier: Apache-2.0
// What is made from the configuration: probes and ship; and how they are replaced while the agent runs.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/cost.h"
#include "bpf/record_rec.h"

#define CLOSE_MS 500
#define RECORD_BYTES 512
#define RING_LEAST (1u << 20)

// Two seconds of records with a stack each, within bounds. It is mapped twice and counts twice in our resident memory.
static size_t ring_bytes(const struct agent_config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double want = ((double)c->rate + c->cpu_hz) * (cpus > 0 ? (double)cpus : 1) * 2 * RECORD_BYTES;
	size_t ring = RING_LEAST;

	while ((!c->rate || (double)ring < want) && ring < RECORD_RING)
		ring *= 2;
	return ring;
}

int agent_recorder(struct agent *a, const struct agent_config *c, const struct filter *f, struct recorder **ret, struct error *e)
{
	struct recorder_options o = {
		.backend = c->backend_kind, .rate = c->rate, .cpu_hz = c->cpu_hz, .kernel_stacks = c->kernel_stacks,
		.labels = c->label_set, .node = c->node_name, .filter = *f,
		.memory = c->memory / 8 * 7, .ring = ring_bytes(c), .java_attach = c->java_attach,
		.jvm_wake = a->jvm_wake,
	};

	return recorder_new(&o, ret, e);
}

static void say_ship(void *context, const char *text)
{
	agent_say(context, AGENT_INFO, "%s", text);
}

static int parse_endpoints(const struct agent *a, const struct agent_config *c, struct ship_endpoint *to, struct error *e)
{
	int err;

	for (unsigned i = 0; i < c->endpoint.n; i++) {
		err = ship_endpoint_parse(c->endpoint.item[i], c->insecure, &to[i], e);
		if (err)
			return error_prefix(e, err, "%.100s:%u", a->path, c->endpoint.line[i]);
		if (to[i].curve && !*c->key)
			return error_set(e, -EINVAL, "%.100s:%u: the endpoint has a public key, and `key` in [ship] names no key of this "
					 "node; make one with `blkprof keygen`", a->path, c->endpoint.line[i]);
	}
	return 0;
}

static void replace_ship(struct agent *a, struct ship *ship)
{
	struct ship *old = a->ship;

	pthread_mutex_lock(&a->measuring);
	a->ship = ship;
	pthread_mutex_unlock(&a->measuring);
	a->left_behind |= !ship_close(old, CLOSE_MS);
}

int agent_ship(struct agent *a, const struct agent_config *c, bool check, struct error *e)
{
	struct ship_endpoint endpoints[ENDPOINTS_MAX];
	struct ship_options o = { .endpoints = endpoints, .n_endpoints = c->endpoint.n, .say = say_ship, .say_context = a };
	struct ship_source source = ship_source_spool(a->spool);
	struct key_pair key;
	struct ship *ship;
	int err;

	if (c->endpoint.n > ENDPOINTS_MAX)
		return error_set(e, -EINVAL, "[ship] has %u endpoints; %d are allowed", c->endpoint.n, ENDPOINTS_MAX);
	err = parse_endpoints(a, c, endpoints, e);
	if (!err && *c->key) {
		err = key_file_read(c->key, &key, e);
		o.key = &key;
	}
	if (!err && !check) {
		// Two of them would take batches from each other.
		replace_ship(a, NULL);
		spool_rewind(a->spool);
		err = c->endpoint.n ? ship_open(&o, &source, &ship, e) : 0;
		if (!err && c->endpoint.n)
			replace_ship(a, ship);
		if (*c->key)
			memcpy(a->ship_key, key.public, sizeof(a->ship_key));
	}
	if (*c->key)
		key_pair_clear(&key);
	return err;
}

// Probes are replaced at the end of a window: the new ones count from the moment the old ones stop, and what the old ones
// had in flight is charged to their last window.
static int replace_recorder(struct agent *a, const struct agent_config *c, const struct filter *f, struct error *e)
{
	struct recorder *old = a->recorder, *fresh = NULL;
	struct cost before, after;
	int err = agent_recorder(a, c, f, &fresh, e);

	if (!err)
		err = recorder_start(fresh, e);
	if (err) {
		recorder_free(fresh);
		return err;
	}
	err = recorder_stop(old, e);
	if (!err)
		err = agent_last(a, old, e);
	if (err)
		agent_say(a, AGENT_ERROR, "the window before the change is lost: %s", e->text);
	live_end(a->live, -ECANCELED, "the agent's configuration was read again, or what its filters name was made anew; try again");
	// Counted until it is gone, and from then on as what was before.
	pthread_mutex_lock(&a->measuring);
	cost_read(&before);
	recorder_free(old);
	cost_read(&after);
	if (before.bpf_ns > after.bpf_ns) {
		a->metrics.bpf_ns += before.bpf_ns - after.bpf_ns;
		a->metrics.bpf_runs += before.bpf_runs - after.bpf_runs;
	}
	a->published = a->metrics;
	pthread_mutex_unlock(&a->measuring);
	a->recorder = fresh;
	a->filter = *f;
	return 0;
}

static void say_plugin(void *context, const char *text)
{
	agent_say(context, AGENT_WARNING, "%s", text);
}

void agent_follow_requests(struct agent *a, const struct agent_config *c)
{
	struct agent_requests *old = a->requests, *fresh = NULL;
	struct error e = { "" };

	if (old && agent_requests_wanted(c) && agent_requests_same(old, c))
		return;
	pthread_mutex_lock(&a->measuring);
	a->requests = NULL;
	pthread_mutex_unlock(&a->measuring);
	agent_requests_stop(old);
	if (!agent_requests_wanted(c))
		return;
	if (agent_requests_start(c, a->spool, a->jvm_wake, say_plugin, a, &fresh, &e)) {
		agent_say(a, AGENT_ERROR, "requests are not followed: %s", e.text);
		return;
	}
	pthread_mutex_lock(&a->measuring);
	a->requests = fresh;
	pthread_mutex_unlock(&a->measuring);
	agent_say(a, AGENT_INFO, "requests of the processes of [requests] are followed");
}

static bool same_list(const struct config_list *a, const struct config_list *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (strcmp(a->item[i], b->item[i]))
			return false;
	return true;
}

static bool same_ship(const struct agent_config *a, const struct agent_config *b)
{
	return same_list(&a->endpoint, &b->endpoint) && !strcmp(a->key, b->key) && a->insecure == b->insecure;
}

// The file may be the same and hold another key.
static bool same_key(const struct agent *a, const struct agent_config *c)
{
	struct key_pair key;
	bool same;

	if (!*c->key || key_file_read(c->key, &key, NULL))
		return !*c->key;
	same = !memcmp(key.public, a->ship_key, sizeof(a->ship_key));
	key_pair_clear(&key);
	return same;
}

// What a running agent cannot change stays as it was.
static void keep_fixed(struct agent *a, struct agent_config *c)
{
	if (strcmp(a->config.node_name, c->node_name) || strcmp(a->config.directory, c->directory) ||
	    a->config.max_size != c->max_size)
		agent_say(a, AGENT_WARNING, "node, directory and max_size of [spool] change with the next start only");
	memcpy(c->node_name, a->config.node_name, sizeof(c->node_name));
}

// All else is the new one's by now: windows wait in the spool for the next reload rather than for ever.
static void change_ship(struct agent *a, const struct agent_config *c)
{
	struct error e = { "" };

	if (agent_ship(a, c, false, &e))
		agent_say(a, AGENT_ERROR, "nothing is sent until the configuration is read again: %s", e.text);
}

static int take_over(struct agent *a, struct agent_config *c, struct error *e)
{
	bool ship_changed = !same_ship(&a->config, c) || !same_key(a, c) || !a->ship;
	struct error ignored = { "" };
	struct filter f;
	int err;

	keep_fixed(a, c);
	err = agent_config_filter(c, &f, e);
	// A key or an endpoint that is wrong is found before anything is replaced.
	if (!err)
		err = agent_ship(a, c, true, e);
	// The token and the certificates may be others though the file is the same.
	if (!err)
		err = agent_http_reload(a, c, e);
	if (!err) {
		err = replace_recorder(a, c, &f, e);
		if (err && agent_http_reload(a, &a->config, &ignored))
			agent_say(a, AGENT_ERROR, "HTTP is off: %s", ignored.text);
	}
	if (!err)
		live_recorded(a->live, c->label_set);
	if (!err && ship_changed)
		change_ship(a, c);
	return err;
}

int agent_reload(struct agent *a)
{
	struct agent_config fresh, old;
	struct error e = { "" };
	int err = agent_config_read(a->path, &fresh, &e);
	const char *warning;

	if (!err) {
		err = take_over(a, &fresh, &e);
		if (err)
			agent_config_free(&fresh);
	}
	if (err) {
		a->metrics.reload_failures++;
		agent_publish(a);
		agent_say(a, AGENT_ERROR, "the new configuration is refused, the old one stays in force: %s", e.text);
		return err;
	}
	old = a->config;
	a->config = fresh;
	agent_follow_requests(a, &a->config);
	agent_config_free(&old);
	a->due = 0;
	a->metrics.reloads++;
	a->metrics.memory_budget = a->config.memory;
	agent_publish(a);
	agent_say(a, AGENT_INFO, "%s was read again", a->path);
	for (unsigned i = 0; (warning = agent_config_warning(&a->config, i)); i++)
		agent_say(a, AGENT_WARNING, "%s", warning);
	return 0;
}

void agent_refresh_filter(struct agent *a)
{
	struct error e = { "" };
	struct filter f;

	if (!a->config.cgroup.n && !a->config.device.n && !a->config.exclude.n)
		return;
	if (agent_config_filter(&a->config, &f, &e) || !memcmp(&f, &a->filter, sizeof(f)))
		return;
	agent_say(a, AGENT_INFO, "a cgroup or device of [filter] or exclude is another one now");
	if (replace_recorder(a, &a->config, &f, &e))
		agent_say(a, AGENT_ERROR, "the filters of before stay in force: %s", e.text);
}
