// SPDX-License-Identifier: Apache-2.0
#include "collector/daemon.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "collector/receive.h"
#include "collector/settings.h"
#include "collector/solr_index.h"
#include "collector/store_indexing.h"
#include "collector/web.h"
#include "common/notify.h"
#include "common/text.h"

#define OTHER_FILES 128
#define STOP_MS 800 // for the transaction at hand
#define LOOK_MS 1000 // at the file of allowed keys and at what the store does in the background

struct collector {
	const char *path;
	struct config *config;
	struct collector_settings settings;
	struct key_pair key;
	struct allow *allow;
	struct store *store;
	struct receiver *receiver;
	struct web *web; // NULL: nothing is served over HTTP
	struct solr_index *solr;
	struct collector_counters counters;
	int signals;
	int trouble; // of the store, as it was said last
};

// Texts may quote what an agent sent.
static void say(void *context, const char *text)
{
	char clean[1024];

	text_sanitize(clean, sizeof(clean), text, strlen(text));
	fprintf(stderr, "blkprof collector: %s\n", clean);
}

static void say_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say_format(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(NULL, text);
}

static void warn(const struct collector_settings *s)
{
	struct buf b = { 0 };
	char *rest, *line;

	settings_warnings(s, &b);
	buf_byte(&b, 0);
	rest = b.error ? NULL : (char *)b.data;
	while ((line = strsep(&rest, "\n")))
		if (*line)
			say_format("warning: %s", line);
	buf_free(&b);
}

// One connection is one open file. What agents may have: HTTP and the store need some too.
static unsigned agents_files(const struct collector *c)
{
	struct rlimit files = { 1024, 1024 };
	unsigned others;

	getrlimit(RLIMIT_NOFILE, &files);
	others = OTHER_FILES + (c->web ? web_connections() : 0);
	return files.rlim_cur > 2 * others ? (unsigned)(files.rlim_cur > 1u << 30 ? 1u << 30 : files.rlim_cur) - others :
					     (unsigned)files.rlim_cur / 2;
}

static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= files.rlim_max)
		return;
	files.rlim_cur = files.rlim_max > 65536 ? 65536 : files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

// Before any thread: all of them leave these signals to the descriptor.
static int take_signals(struct error *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? error_set(e, -errno, "no signals can be taken: %s", strerror(errno)) : fd;
}

static int read_keys(struct collector *c, struct error *e)
{
	int err;

	if (!c->settings.key)
		return 0;
	err = key_file_read(c->settings.key, &c->key, e);
	if (!err)
		err = allow_new(c->settings.allowed_keys, &c->allow, e);
	if (!err)
		metric_set(&c->counters.allowed_keys, allow_count(c->allow));
	return err;
}

static int open_store(struct collector *c, struct error *e)
{
	struct store_options o = { .directory = c->settings.directory, .max_age_ns = c->settings.max_age,
				   .max_size = c->settings.max_size };

	return store_open(&o, &c->store, e);
}

static int start_solr(struct collector *c, struct error *e)
{
	const struct collector_settings *s = &c->settings;
	struct solr_index_options o = { .client = { .url = s->solr_url, .user = s->solr_user, .password_file = s->solr_password_file,
						    .ca = s->solr_ca },
					.batch = s->solr_batch, .commit_within = s->solr_commit_within, .directory = s->directory,
					.store = c->store, .counters = &c->counters, .say = say };
	struct indexing_place unused;

	return s->solr_url.n ? solr_index_new(&o, &c->solr, e) : store_indexing_start(c->store, false, &unused, e);
}

static int listen_all(struct collector *c, struct error *e)
{
	struct config_list bind = settings_bind(&c->settings);
	struct receive_options o = { .bind = bind.item, .n_bind = bind.n, .key = c->settings.key ? &c->key : NULL,
				     .allow = c->allow, .store = c->store, .counters = &c->counters, .say = say,
				     .max_connections = agents_files(c) };

	return receiver_new(&o, &c->receiver, e);
}

static int start(struct collector *c, struct error *e)
{
	int err;

	c->signals = take_signals(e);
	if (c->signals < 0)
		return c->signals;
	err = settings_read(c->path, &c->settings, &c->config, e);
	if (err)
		return err;
	warn(&c->settings);
	raise_files();
	err = read_keys(c, e);
	if (!err)
		err = open_store(c, e);
	if (!err && *c->settings.listen)
		err = web_new(&c->settings, c->store, &c->counters, &c->web, e);
	if (!err)
		err = start_solr(c, e);
	return err ? err : listen_all(c, e);
}

static void reload_keys(struct collector *c)
{
	struct error e;

	if (!c->allow)
		return;
	if (allow_reload(c->allow, &e)) {
		metric_add(&c->counters.reload_errors, 1);
		say_format("the allowed keys stay as they were: %s", e.text);
		return;
	}
	metric_add(&c->counters.reloads, 1);
	metric_set(&c->counters.allowed_keys, allow_count(c->allow));
	say_format("allowed keys read again: %zu", allow_count(c->allow));
}

// The keys are what changes while it runs; the rest is checked, so that the next start does not fail.
static void reload(struct collector *c)
{
	struct collector_settings s;
	struct config *config;
	struct error e;

	notify_reloading();
	if (settings_read(c->path, &s, &config, &e))
		say_format("the configuration is wrong, the next start would fail: %s", e.text);
	else
		config_free(config);
	reload_keys(c);
	notify_send("READY=1");
}

// false: it is to end.
static bool take_signal(struct collector *c)
{
	struct signalfd_siginfo info;

	if (read(c->signals, &info, sizeof(info)) != sizeof(info))
		return true;
	if (info.ssi_signo != SIGHUP)
		return false;
	reload(c);
	return true;
}

// Roll-ups and retention that fail: said when it begins, changes and ends, not each time it is tried.
static void look_at_store(struct collector *c)
{
	struct error e;
	int trouble = store_trouble(c->store, &e);

	if (trouble && trouble != c->trouble)
		say_format("roll-ups and retention of the store fail and are tried again: %s", e.text);
	else if (!trouble && c->trouble)
		say(NULL, "roll-ups and retention of the store work again");
	c->trouble = trouble;
}

static void serve(struct collector *c)
{
	struct pollfd p = { c->signals, POLLIN, 0 };
	bool watched = getenv("WATCHDOG_USEC"); // the service manager ends whoever is silent

	for (;;) {
		int n = poll(&p, 1, LOOK_MS);

		if (watched)
			notify_send("WATCHDOG=1");
		if (n > 0 && !take_signal(c))
			return;
		look_at_store(c);
		if (!n && c->allow && allow_changed(c->allow))
			reload_keys(c);
	}
}

static void summary(const struct collector *c)
{
	const struct collector_counters *n = &c->counters;

	say_format("stopped: %llu batches stored, %llu duplicates, %llu refused, %llu put off",
		   (unsigned long long)metric_get(&n->stored), (unsigned long long)metric_get(&n->duplicates),
		   (unsigned long long)(metric_get(&n->malformed) + metric_get(&n->broken) + metric_get(&n->bad_profile) +
					metric_get(&n->bombs) + metric_get(&n->no_room) +
					metric_get(&n->version) + metric_get(&n->unknown_key) + metric_get(&n->wrong_node)),
		   (unsigned long long)metric_get(&n->put_off));
}

static void print_metrics(const struct collector *c)
{
	struct buf b = { 0 };

	metrics_print(collector_metrics, collector_metrics_n, &c->counters, &b);
	if (!b.error)
		fwrite(b.data, 1, b.len, stderr);
	buf_free(&b);
}

static void stop(struct collector *c)
{
	notify_send("STOPPING=1");
	web_free(c->web);
	c->web = NULL;
	if (!receiver_free(c->receiver, STOP_MS)) {
		// Killed or so ended: what was acknowledged is durable, the rest is sent again.
		say(NULL, "stopped while a transaction was going on: agents send again what it held");
		_exit(0);
	}
	c->receiver = NULL;
	solr_index_free(c->solr);
	c->solr = NULL;
	summary(c);
	// For a log; on a terminal they would push away what somebody reads.
	if (!isatty(STDERR_FILENO))
		print_metrics(c);
}

static void destroy(struct collector *c)
{
	web_free(c->web);
	if (c->receiver)
		receiver_free(c->receiver, STOP_MS);
	solr_index_free(c->solr);
	store_close(c->store);
	allow_free(c->allow);
	key_pair_clear(&c->key);
	config_free(c->config);
	if (c->signals >= 0)
		close(c->signals);
}

int collector_run(const char *config, struct error *e)
{
	struct collector c = { .path = config, .signals = -1 };
	int err;

	setvbuf(stderr, NULL, _IOLBF, 0); // a line is one write, also where it goes to a file that others write to
	err = start(&c, e);
	if (!err) {
		struct config_list bind = settings_bind(&c.settings);

		for (unsigned i = 0; i < bind.n; i++)
			say_format("listening at %s%s", bind.item[i], c.settings.key ? "" : " without encryption");
		if (c.web)
			say_format("answering at %s%s, port %u", c.settings.tls_cert ? "https://" : "http://", c.settings.listen,
				   web_port(c.web));
		notify_send("READY=1");
		serve(&c);
		stop(&c);
	}
	destroy(&c);
	return err;
}
