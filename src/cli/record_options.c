// SPDX-License-Identifier: Apache-2.0
#include "cli/record_options.h"

#include <errno.h>
#include <string.h>

#define AT(field) .offset = offsetof(struct record_options, field)
#define LIST_MAX "64"
_Static_assert(FILTER_MAX == 64, "LIST_MAX says how many");

// In the order of enum backend and enum label_set.
static const char *const backends[] = { "auto", "fentry", "kprobe", "tracepoint", NULL };
static const char *const label_sets[] = { "all", "few", "none", NULL };
static const char *const unwinds[] = { "auto", "fp", NULL };
static const char *const ops[] = { "read", "write", "flush", "discard", "write_zeroes", "other", NULL };
static const char *const root_labels[] = { "comm", "device", "op", "service", "pid", "bytes", "latency", NULL };

_Static_assert(sizeof(backends) / sizeof(*backends) == BACKENDS + 1, "one word for each backend");
_Static_assert(BACKEND_FENTRY == 1 && BACKEND_KPROBE == 2 && BACKEND_TRACEPOINT == 3, "the words' order");
_Static_assert(LABELS_ALL == 0 && LABELS_FEW == 1 && LABELS_NONE == 2, "the words' order");
_Static_assert(sizeof(ops) / sizeof(*ops) == OP_CLASSES + 1, "one word for each class of operations");

static bool known_word(const char *const *words, const char *word)
{
	for (; *words; words++)
		if (!strcmp(*words, word))
			return true;
	return false;
}

// Ends the item that begins at text: at a comma, of which a backslash in front makes a part of the item. Returns what is
// behind it, or NULL after the last.
static char *cut_item(char *text)
{
	char *out = text;

	for (; *text && *text != ','; text++) {
		if (text[0] == '\\' && text[1] == ',')
			text++;
		*out++ = *text;
	}
	if (*text != ',') {
		*out = 0;
		return NULL;
	}
	*out = 0;
	return text + 1;
}

static int add_items(const char **items, unsigned *n, const char *const *words, char *value, struct error *e)
{
	while (value) {
		char *item = value;

		value = cut_item(item);
		if (!*item)
			return error_set(e, -EINVAL, "an item of the list is empty; allowed: values separated by commas");
		if (words && !known_word(words, item))
			return error_set(e, -EINVAL,
					 "'%.60s' is not allowed; allowed: read, write, flush, discard, write_zeroes, other", item);
		if (*n == FILTER_MAX)
			return error_set(e, -EINVAL, "'%.60s' is one too many; allowed: at most " LIST_MAX " values", item);
		items[(*n)++] = item;
	}
	return 0;
}

#define LIST_SETTER(name, kind, words)                                                                      \
	int name(const struct option_spec *spec, void *target, char *value, struct error *e)   \
	{                                                                                                   \
		struct filter_options *f = target;                                                          \
                                                                                                            \
		return add_items(f->kind, &f->n_##kind, words, value, e);                                   \
	}

LIST_SETTER(option_add_pid, pid, NULL)
static LIST_SETTER(add_comm, comm, NULL)
LIST_SETTER(option_add_cgroup, cgroup, NULL)
static LIST_SETTER(add_device, device, NULL)
static LIST_SETTER(add_op, op, ops)

static int set_root(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	const char *rest = value;

	for (;;) {
		size_t len = strcspn(rest, ",");
		char word[32];

		if (len < sizeof(word)) {
			memcpy(word, rest, len);
			word[len] = 0;
		}
		if (len >= sizeof(word) || !known_word(root_labels, word))
			return error_set(e, -EINVAL,
					 "'%.*s' is not allowed; allowed: labels separated by commas, of comm, device, op, service, "
					 "pid, bytes, latency", len < 60 ? (int)len : 60, rest);
		if (!rest[len])
			break;
		rest += len + 1;
	}
	*(const char **)target = value;
	return 0;
}

const struct record_options record_defaults = { .rate = RECORD_RATE };

const struct option_spec record_option_table[] = {
	{ .name = "duration", .letter = 'd', .argument = "SECONDS", .set = option_set_duration, AT(duration_ns),
	  .min = 1000000, .max = 365ull * 86400 * 1000000000,
	  .help = "Record for so long. Also with a unit: 500ms, 90s, 5m, 2h. Without it, until Ctrl-C or until COMMAND ends." },
	{ .name = "output", .letter = 'o', .argument = "FILE", .set = option_set_text, AT(output), .completes = COMPLETES_FILE,
	  .help = "Write the profile to FILE, which appears whole or not at all. '-' is standard output, if that is not a "
		  "terminal. Without it, to blkprof-HOST-TIME-PID.pb.gz in the current folder." },
	{ .name = "all", .letter = 'a', .set = option_set_flag, AT(all),
	  .help = "Record the whole node while COMMAND runs, not only COMMAND and its descendants." },
	{ .name = "pid", .letter = 'p', .argument = "PID", .set = option_add_pid, AT(filter), .repeatable = true,
	  .completes = COMPLETES_PID, .help = "Only I/O that these processes submit. A list separated by commas, repeatable." },
	{ .name = "comm", .argument = "NAME", .set = add_comm, AT(filter), .repeatable = true,
	  .help = "Only I/O that threads of this name submit. As /proc/PID/comm has it; a list, repeatable." },
	{ .name = "cgroup", .argument = "CGROUP", .set = option_add_cgroup, AT(filter), .repeatable = true, .completes = COMPLETES_FILE,
	  .help = "Only I/O of this cgroup and those below it. A path, or a name below a cgroup mount such as "
		  "/system.slice/nginx.service; a list, repeatable." },
	{ .name = "device", .argument = "DEVICE", .set = add_device, AT(filter), .repeatable = true,
	  .completes = COMPLETES_DEVICE,
	  .help = "Only I/O of this disk, its partitions and every device stacked above it. nvme0n1, dm-0, a mapper name, a "
		  "path below /dev or a mount point; a list, repeatable." },
	{ .name = "op", .argument = "OP", .set = add_op, AT(filter), .repeatable = true, .words = ops,
	  .completes = COMPLETES_WORD,
	  .help = "Only operations of this kind: read, write, flush, discard, write_zeroes, other. A list, repeatable." },
	{ .name = "backend", .argument = "BACKEND", .set = option_set_word, AT(backend), .words = backends,
	  .completes = COMPLETES_WORD,
	  .help = "How to look at the kernel: auto, fentry, kprobe or tracepoint. auto takes the first that can be attached "
		  "('blkprof doctor' says which)." },
	{ .name = "rate", .argument = "N", .set = option_set_number, AT(rate), .max = 1000000,
	  .help = "Take about N stacks per second and CPU. Totals are exact whatever it is. 1000 by default; 0 takes the stack "
		  "of every request." },
	{ .name = "cpu", .argument = "HZ", .set = option_set_number, AT(cpu_hz), .min = 1, .max = 10000,
	  .help = "Add CPU samples to the same profile, HZ times a second on each CPU." },
	{ .name = "kernel-stacks", .letter = 'k', .set = option_set_flag, AT(kernel_stacks),
	  .help = "Show the kernel's frames below the program's. Kernel threads always have theirs." },
	{ .name = "unwind", .argument = "HOW", .set = option_set_word, AT(unwind), .words = unwinds, .completes = COMPLETES_WORD,
	  .help = "How to walk user stacks: auto goes by the programs' unwind information and by frame pointers where there is "
		  "none, fp by frame pointers only. auto by default." },
	{ .name = "labels", .argument = "SET", .set = option_set_word, AT(labels), .words = label_sets,
	  .completes = COMPLETES_WORD,
	  .help = "Which labels the samples carry: all, few (device, op, service, latency) or none. all by default; fewer make "
		  "smaller profiles." },
	{ .name = "root", .argument = "LABELS", .set = set_root, AT(root),
	  .help = "Show these labels as frames under the process, for viewers without labels. Separated by commas, outermost "
		  "first: comm, device, op, service, pid, bytes, latency." },
	{ .name = "node", .argument = "NAME", .set = option_set_text, AT(node),
	  .help = "Name of this node in the profile. The host name by default." },
	{ 0 },
};

int record_options_check(void *options, struct error *e)
{
	const struct record_options *o = options;

	if (o->output && !strcmp(o->output, "-") && o->command.n)
		return error_set(e, -EINVAL, "option --output: '-' is COMMAND's standard output too; allowed with COMMAND: a file");
	return 0;
}
