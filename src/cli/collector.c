// SPDX-License-Identifier: Apache-2.0
// blkprof collector: the daemon that receives and keeps the profiles of all nodes.
#include <errno.h>

#include "cli/command.h"
#include "collector/daemon.h"

struct collector_command {
	const char *config;
};

static const struct collector_command defaults = { .config = "/etc/blkprof/collector.conf" };

static const struct option_spec options[] = {
	{ .name = "config", .letter = 'c', .argument = "FILE", .set = option_set_text, .completes = COMPLETES_FILE,
	  .offset = offsetof(struct collector_command, config),
	  .help = "Read the configuration from FILE, /etc/blkprof/collector.conf by default." },
	{ 0 },
};

static int run(const void *arguments)
{
	const struct collector_command *c = arguments;
	struct error e = { 0 };

	return collector_run(c->config, &e) ? command_error("collector", STATUS_FAILED, &e) : STATUS_DONE;
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
