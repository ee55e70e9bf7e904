// SPDX-License-Identifier: Apache-2.0
// blkprof keygen: the CURVE key pair of a node or a collector.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "wire/keys.h"

struct keygen_command {
	const char *output, *public;
};

static const struct keygen_command defaults = { .output = "blkprof.key" };

#define AT(field) .offset = offsetof(struct keygen_command, field)

static const struct option_spec options[] = {
	{ .name = "output", .letter = 'o', .argument = "FILE", .set = option_set_text, .completes = COMPLETES_FILE, AT(output),
	  .help = "Write the secret key to FILE, which must not be there yet. blkprof.key in the current folder by default." },
	{ .name = "public", .letter = 'p', .argument = "FILE", .set = option_set_text, .completes = COMPLETES_FILE, AT(public),
	  .help = "Make no key, print the public key of the secret one in FILE." },
	{ 0 },
};

static int make(const char *path, struct key_pair *k, struct error *e)
{
	int err = key_pair_generate(k, e);

	return err ? err : key_file_write(path, k, e);
}

static int run(const void *arguments)
{
	const struct keygen_command *c = arguments;
	struct key_pair k = { 0 };
	struct error e = { 0 };
	char text[KEY_TEXT];
	int err = c->public ? key_file_read(c->public, &k, &e) : make(c->output, &k, &e);

	key_text(k.public, text);
	key_pair_clear(&k);
	if (!err && (printf("%s\n", text) < 0 || fflush(stdout)))
		err = error_set(&e, -EIO, "cannot write to standard output: %s ('blkprof keygen --public FILE' prints it again)",
				strerror(errno));
	return err ? command_error("keygen", STATUS_FAILED, &e) : STATUS_DONE;
}

const struct command command_keygen = {
	.name = "keygen",
	.summary = "make the key pair of a node or a collector",
	.usage = "",
	.about = "Writes a secret key to a file that only its owner may read, and prints the public key that belongs to it: a node's for "
		 "the collector's list of allowed keys, a collector's for the endpoint lines of its agents.",
	.options = options,
	.defaults = &defaults,
	.size = sizeof(defaults),
	.run = run,
};
