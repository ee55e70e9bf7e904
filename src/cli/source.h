// SPDX-License-Identifier: Apache-2.0
// Where windows come from: store directories, or collectors over HTTP; what reached several counts once. And which of them.
#ifndef BLKPROF_CLI_SOURCE_H
#define BLKPROF_CLI_SOURCE_H

#include <stddef.h>

#include "cli/options.h"
#include "collector/store.h"

#define SOURCES_MAX 16
#define SOURCE_LABELS_MAX 16

struct source_names {
	unsigned n;
	const char *name[SOURCES_MAX];
};

struct source_labels {
	unsigned n;
	struct batch_label label[SOURCE_LABELS_MAX];
};

// The options of a command.
struct source_options {
	struct source_names stores, collectors;
	const char *token_file, *ca, *cert, *key;
	const char *node, *service, *device;
	struct source_labels labels;
};

option_setter source_add_store, source_add_collector, source_add_label;

#define SOURCE_AT(type, field, part) .offset = offsetof(type, field) + offsetof(struct source_options, part)

// Entries of a command's table; `field` is its struct source_options.
#define SOURCE_OPTIONS(type, field)                                                                                                 \
	{ .name = "node", .argument = "NAME", .set = option_set_text, SOURCE_AT(type, field, node), .help = "Only this node." },    \
	{ .name = "service", .argument = "NAME", .set = option_set_text, SOURCE_AT(type, field, service),                          \
	  .help = "Only this service. As 'blkprof query --list services' has it." },                                               \
	{ .name = "device", .argument = "NAME", .set = option_set_text, SOURCE_AT(type, field, device),                            \
	  .completes = COMPLETES_DEVICE,                                                                                           \
	  .help = "Only this disk. As the label device of the samples has it: nvme0n1, dm-0." },                                   \
	{ .name = "label", .argument = "NAME=VALUE", .set = source_add_label, SOURCE_AT(type, field, labels), .repeatable = true,   \
	  .help = "Only what has this label. One of the samples (op, comm, pid, latency ...) or of the agent's configuration; "    \
		  "repeatable, all must hold." },                                                                                  \
	{ .name = "store", .argument = "DIR", .set = source_add_store, SOURCE_AT(type, field, stores), .repeatable = true,          \
	  .completes = COMPLETES_FILE,                                                                                             \
	  .help = "Read the store in this directory, also beside a running collector. Repeatable: what reached two collectors "    \
		  "counts once." },                                                                                                \
	{ .name = "collector", .argument = "URL", .set = source_add_collector, SOURCE_AT(type, field, collectors),                  \
	  .repeatable = true,                                                                                                      \
	  .help = "Ask this collector: http://HOST:6063, or http://user:TOKEN@HOST:6063 where it needs a token. Repeatable: what " \
		  "reached two collectors counts once." },                                                                         \
	{ .name = "token-file", .argument = "FILE", .set = option_set_text, SOURCE_AT(type, field, token_file),                     \
	  .completes = COMPLETES_FILE, .help = "Send the token in the first line of FILE to the collectors." },                     \
	{ .name = "tls-ca", .argument = "FILE", .set = option_set_text, SOURCE_AT(type, field, ca), .completes = COMPLETES_FILE,    \
	  .help = "Trust the certificates in FILE, PEM, instead of the system's." },                                               \
	{ .name = "tls-cert", .argument = "FILE", .set = option_set_text, SOURCE_AT(type, field, cert),                             \
	  .completes = COMPLETES_FILE, .help = "Our certificate, PEM, for collectors that ask for one." },                          \
	{ .name = "tls-key", .argument = "FILE", .set = option_set_text, SOURCE_AT(type, field, key),                               \
	  .completes = COMPLETES_FILE, .help = "Its secret key, PEM." }

// Does the command line name any? -EINVAL for what does not go together.
int source_check(const struct source_options *o, bool *ret_any, struct error *e);

struct source;

int source_open(const struct source_options *o, struct source **ret, struct error *e);
void source_close(struct source *s);
// Times, node and so on of the options, to be changed.
struct store_query source_query_of(const struct source_options *o, uint64_t from, uint64_t to);
// A profile, gzipped. `said` gets a line for people: how much of the time is covered.
int source_query(struct source *s, const struct store_query *q, struct buf *ret_gz, struct buf *said, struct error *e);
int source_list(struct source *s, enum store_list what, const struct store_query *q, store_list_fn fn, void *context, struct error *e);

#endif
