// SPDX-License-Identifier: Apache-2.0
// blkprof collector: the daemon that receives and keeps the profiles of all nodes.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "collector/daemon.h"
#include "collector/solr_index.h"
#include "collector/store.h"
#include "collector/store_indexing.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/when.h"

struct collector_command {
	const char *config, *check, *compact, *reindex;
	bool init_solr;
};

static const struct collector_command defaults = { .config = "/etc/blkprof/collector.conf" };

static const struct option_spec options[] = {
	{ .name = "config", .letter = 'c', .argument = "FILE", .set = option_set_text, .completes = COMPLETES_FILE,
	  .offset = offsetof(struct collector_command, config),
	  .help = "Read the configuration from FILE, /etc/blkprof/collector.conf by default." },
	{ .name = "check", .argument = "DIR", .set = option_set_text, .completes = COMPLETES_FILE,
	  .offset = offsetof(struct collector_command, check),
	  .help = "Check the store in DIR instead, all of it. Also while its collector runs." },
	{ .name = "compact", .argument = "DIR", .set = option_set_text, .completes = COMPLETES_FILE,
	  .offset = offsetof(struct collector_command, compact),
	  .help = "Give the free space of the store in DIR back to the file system instead. Also while its collector runs." },
	{ .name = "init-solr", .set = option_set_flag, .offset = offsetof(struct collector_command, init_solr),
	  .help = "Create the fields that requests need in the collections of [solr] url instead, or check them." },
	{ .name = "reindex", .argument = "TIME", .set = option_set_text, .offset = offsetof(struct collector_command, reindex),
	  .help = "Have the requests of the store that began at TIME or later indexed again: 2026-11-30T08:15:00Z, -2h, or all. Its collector "
		  "may run meanwhile, or does it when it starts." },
	{ 0 },
};

static void print_found(void *context, const char *what)
{
	printf("%s\n", what);
}

static int check_store(const char *directory, struct error *e)
{
	struct store_options o = { .directory = directory, .read_only = true };
	struct store *s;
	uint64_t found = 0;
	int err = store_open(&o, &s, e);

	if (err)
		return err;
	err = store_check(s, print_found, NULL, &found, e);
	store_close(s);
	if (!err && found)
		err = error_set(e, -EBADMSG, "%s: %llu things are wrong: move the directory away (a collector begins a new one), or restore it",
				directory, (unsigned long long)found);
	if (!err)
		printf("%s: nothing is wrong\n", directory);
	return err;
}

static int compact_store(const char *directory, struct error *e)
{
	uint64_t before, after;
	char a[32], b[32];
	int err = store_compact(directory, &before, &after, e);

	if (!err)
		printf("%s: %s before, %s now\n", directory, text_bytes(a, sizeof(a), (double)before), text_bytes(b, sizeof(b), (double)after));
	return err;
}

static int no_url(const char *config, struct error *e)
{
	return error_set(e, -EINVAL, "%s: there is no url in [solr]: name the collection, http://localhost:8983/solr/NAME", config);
}

static int init_solr(const char *config, struct error *e)
{
	struct collector_settings settings;
	struct config *file;
	int err = settings_read(config, &settings, &file, e);

	if (err)
		return err;
	err = settings.solr_url.n ? solr_init(&settings, print_found, NULL, e) : no_url(config, e);
	if (!err)
		printf("%s: has all fields that requests need\n", settings.solr_url.item[0]);
	config_free(file);
	return err;
}

static int reindex_from(const struct collector_settings *s, const char *time, struct error *e)
{
	uint64_t from = 0, waiting;
	int err = strcmp(time, "all") ? when_parse(time, clock_realtime(), "--reindex", &from, e) : 0;

	if (!err)
		err = store_indexing_again(s->directory, from, &waiting, e);
	if (!err)
		printf("%s: %llu requests are to be indexed into %s: its collector does it, when it runs\n", s->directory,
		       (unsigned long long)waiting, s->solr_url.item[0]);
	return err;
}

static int reindex(const char *config, const char *time, struct error *e)
{
	struct collector_settings settings;
	struct config *file;
	int err = settings_read(config, &settings, &file, e);

	if (err)
		return err;
	err = settings.solr_url.n ? reindex_from(&settings, time, e) : no_url(config, e);
	config_free(file);
	return err;
}

static int run(const void *arguments)
{
	const struct collector_command *c = arguments;
	struct error e = { 0 };
	int err;

	if (c->init_solr)
		err = init_solr(c->config, &e);
	else if (c->reindex)
		err = reindex(c->config, c->reindex, &e);
	else if (c->check)
		err = check_store(c->check, &e);
	else
		err = c->compact ? compact_store(c->compact, &e) : collector_run(c->config, &e);
	return err ? command_error("collector", STATUS_FAILED, &e) : STATUS_DONE;
}

const struct command command_collector = {
	.name = "collector",
	.summary = "receive and keep the profiles of all nodes",
	.usage = "-c FILE",
	.about = "Receives batches of profiles from agents and keeps them in a store on disk. A batch is acknowledged once it is "
		 "durable; agents keep and repeat what was not.\n\n"
		 "TERM ends it, HUP makes it read the allowed keys again.",
	.options = options,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.run = run,
};
