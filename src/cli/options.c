// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/suggest.h"
#include "common/text.h"

#define OPTIONS_MAX 64
#define LONG_ONLY 256 // getopt's value of option i without a letter is LONG_ONLY + i

const struct option_spec options_common[] = {
	{ .name = "help", .letter = 'h', .help = "Show this help and exit." },
	{ .name = "version", .letter = 'V', .help = "Show the version and exit." },
	{ 0 },
};

int option_set_flag(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	*(bool *)target = true;
	return 0;
}

int option_set_text(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	if (!*value)
		return error_set(e, -EINVAL, "is empty; allowed: %s", spec->argument);
	*(const char **)target = value;
	return 0;
}

int option_set_number(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	uint64_t n;

	if (text_number(value, spec->min, spec->max, "", &n, NULL))
		return error_set(e, -EINVAL, "'%.60s' is not allowed; allowed: a whole number from %llu to %llu", value,
				 (unsigned long long)spec->min, (unsigned long long)spec->max);
	*(uint32_t *)target = (uint32_t)n;
	return 0;
}

// In the largest unit that leaves a whole number, as the option takes it.
static const char *duration(char *out, size_t cap, uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "d", 86400000000000 }, { "h", 3600000000000 }, { "m", 60000000000 }, { "s", 1000000000 }, { "ms", 1000000 } };
	unsigned i = 0;

	while (i + 1 < sizeof(units) / sizeof(*units) && ns % units[i].ns)
		i++;
	snprintf(out, cap, "%llu%s", (unsigned long long)(ns / units[i].ns), units[i].name);
	return out;
}

int option_set_duration(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	char min[32], max[32];
	uint64_t ns;

	if (text_duration(value, "", &ns, NULL) || ns < spec->min || ns > spec->max)
		return error_set(e, -EINVAL,
				 "'%.60s' is not allowed; allowed: a number of seconds, or one with ms, s, m, h or d, from %s to %s",
				 value, duration(min, sizeof(min), spec->min), duration(max, sizeof(max), spec->max));
	*(uint64_t *)target = ns;
	return 0;
}

static void join_words(char *out, size_t cap, const char *const *words)
{
	size_t n = 0;

	out[0] = 0;
	for (unsigned i = 0; words[i] && n < cap; i++)
		n += (size_t)snprintf(out + n, cap - n, "%s%s", i ? ", " : "", words[i]);
}

int option_set_word(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	char allowed[256];

	for (unsigned i = 0; spec->words[i]; i++)
		if (!strcmp(spec->words[i], value)) {
			*(unsigned *)target = i;
			return 0;
		}
	join_words(allowed, sizeof(allowed), spec->words);
	return error_set(e, -EINVAL, "'%.60s' is not allowed; allowed: %s", value, allowed);
}

struct table {
	const struct option_spec *spec[OPTIONS_MAX];
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 40];
	unsigned n;
};

// What getopt_long returns for an argument when it is asked for them in order.
#define AN_ARGUMENT 1

static void table_add(struct table *t, const struct option_spec *spec)
{
	for (; spec && spec->name && t->n < OPTIONS_MAX; spec++) {
		struct option *o = &t->longs[t->n];

		o->name = spec->name;
		o->has_arg = spec->argument ? required_argument : no_argument;
		o->val = spec->letter ? spec->letter : (int)(LONG_ONLY + t->n);
		if (spec->letter) {
			size_t len = strlen(t->shorts);

			snprintf(t->shorts + len, sizeof(t->shorts) - len, "%c%s", spec->letter, spec->argument ? ":" : "");
		}
		t->spec[t->n++] = spec;
	}
}

static void table_init(struct table *t, const struct command *c)
{
	memset(t, 0, sizeof(*t));
	// ':' tells a missing argument from an unknown option.
	strcpy(t->shorts, c->command_line ? "+:" : c->times ? "-:0::1::2::3::4::5::6::7::8::9::" : ":");
	table_add(t, c->options);
	table_add(t, options_common);
}

static const struct option_spec *table_find(const struct table *t, int value)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->longs[i].val == value)
			return t->spec[i];
	return NULL;
}

static const char *table_name(const void *context, unsigned i)
{
	const struct table *t = context;

	return i < t->n ? t->spec[i]->name : NULL;
}

// How the user wrote the option that getopt stumbled over, without its value. optopt is 0 for an unknown long option.
static void written(const struct table *t, char **argv, char *out, size_t cap)
{
	const struct option_spec *spec = optopt ? table_find(t, optopt) : NULL;
	const char *word = argv[optind - 1];
	int len = (int)strcspn(word, "=");
	bool is_long = !strncmp(word, "--", 2);

	if (spec)
		is_long = is_long && !strncmp(word + 2, spec->name, (size_t)len - 2);
	if (!optopt || (spec && is_long))
		snprintf(out, cap, "%.*s", len < 60 ? len : 60, word);
	else
		snprintf(out, cap, "-%c", optopt > ' ' && optopt < 0x7f ? optopt : '?');
}

static unsigned count_prefix(const struct table *t, const char *prefix)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->n; i++)
		n += !strncmp(t->spec[i]->name, prefix, strlen(prefix));
	return n;
}

static int unknown(const struct table *t, const char *name, struct error *e)
{
	const struct option_spec *spec = optopt ? table_find(t, optopt) : NULL;
	const char *near;

	// A known option here is one that was given a value and takes none.
	if (spec && !strncmp(name, "--", 2))
		return error_set(e, -EINVAL, "option %s takes no value", name);
	if (strncmp(name, "--", 2))
		return error_set(e, -EINVAL, "there is no option %s", name);
	if (name[2] && count_prefix(t, name + 2) > 1)
		return error_set(e, -EINVAL, "option %s could be several options; write it in full", name);
	near = suggest_word(name + 2, table_name, t);
	if (near)
		return error_set(e, -EINVAL, "there is no option %s; did you mean --%s?", name, near);
	return error_set(e, -EINVAL, "there is no option %s", name);
}

static int apply(const struct option_spec *spec, char *value, void *options, struct error *e)
{
	int err = spec->set(spec, (char *)options + spec->offset, value, e);

	return err ? error_prefix(e, err, "option --%s", spec->name) : 0;
}

// Of a command whose arguments may look like options: puts them in front, `n` of them so far, behind the command's name.
static bool keep_argument(const struct command *c, int value, char **argv, int n)
{
	if (!c->times || (value != AN_ARGUMENT && (value < '0' || value > '9')))
		return false;
	// "-15m" came as option 1 with the value "5m", "-5" as option 5.
	argv[1 + n] = value == AN_ARGUMENT ? optarg : optarg ? optarg - 2 : argv[optind - 1];
	return true;
}

static int take_arguments(const struct command *c, int n, int argc, char **argv, void *options, struct error *e)
{
	struct arguments a = { .n = argc - optind, .v = argv + optind };

	for (int i = 0; c->times && i < a.n; i++)
		argv[1 + n + i] = a.v[i];
	if (c->times)
		a = (struct arguments){ .n = a.n + n, .v = argv + 1 };
	a.v[a.n] = NULL;

	if (!c->argument)
		return a.n ? error_set(e, -EINVAL, "unexpected argument '%.60s'; it takes none", a.v[0]) : 0;
	if (a.n < c->min)
		return error_set(e, -EINVAL, "%s is missing", c->argument);
	if (a.n > c->max)
		return error_set(e, -EINVAL, "unexpected argument '%.60s'; it takes at most %d", a.v[c->max], c->max);
	memcpy((char *)options + c->arguments, &a, sizeof(a));
	return 0;
}

int options_parse(const struct command *c, int argc, char **argv, void *options, struct error *e)
{
	struct table t;
	char name[64];
	int value, err, kept = 0;

	table_init(&t, c);
	opterr = 0;
	optind = 0; // glibc: start anew
	for (;;) {
		const struct option_spec *spec;

		value = getopt_long(argc, argv, t.shorts, t.longs, NULL);
		if (value == -1)
			break;
		if (keep_argument(c, value, argv, kept)) {
			kept++;
			continue;
		}
		if (value == '?' || value == ':')
			written(&t, argv, name, sizeof(name));
		if (value == '?')
			return unknown(&t, name, e);
		spec = table_find(&t, value == ':' ? optopt : value);
		if (value == ':')
			return error_set(e, -EINVAL, "option %s needs a value: %s", name, spec ? spec->argument : "");
		if (spec->letter == 'h' && !spec->set)
			return OPTIONS_HELP;
		if (spec->letter == 'V' && !spec->set)
			return OPTIONS_VERSION;
		err = apply(spec, optarg, options, e);
		if (err)
			return err;
	}
	err = take_arguments(c, kept, argc, argv, options, e);
	return err || !c->check ? err : c->check(options, e);
}
