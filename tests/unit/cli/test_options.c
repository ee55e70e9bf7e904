// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>

#include "common/suggest.h"
#include "unit/cli/words.h"

struct fruit {
	bool ripe;
	const char *name;
	uint32_t number;
	uint64_t age;
	unsigned colour;
	unsigned touched;
	struct arguments rest;
};

static int touch(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	(*(unsigned *)target)++;
	return strcmp(value, "hot") ? 0 : error_set(e, -EINVAL, "'hot' burns; allowed: warm, cold");
}

static const char *const colours[] = { "red", "green", NULL };

static const struct option_spec table[] = {
	{ .name = "ripe", .letter = 'r', .help = "Eat it now.", .set = option_set_flag, .offset = offsetof(struct fruit, ripe) },
	{ .name = "name", .letter = 'n', .argument = "NAME", .help = "Its name. Any text, it's free: -x [y] \\.",
	  .set = option_set_text, .offset = offsetof(struct fruit, name) },
	{ .name = "number", .argument = "N", .help = "How many.", .set = option_set_number, .max = 100, .min = 2,
	  .offset = offsetof(struct fruit, number) },
	{ .name = "age", .argument = "TIME", .help = "Since the harvest.", .set = option_set_duration, .min = 1000000,
	  .max = 86400000000000, .offset = offsetof(struct fruit, age) },
	{ .name = "colour", .argument = "COLOUR", .help = "How it looks.", .set = option_set_word, .words = colours,
	  .offset = offsetof(struct fruit, colour) },
	{ .name = "touch", .argument = "HOW", .help = "Touch it.", .set = touch, .repeatable = true,
	  .offset = offsetof(struct fruit, touched) },
	{ 0 },
};

static const struct fruit defaults = { .number = 42 };

static const struct command peel = {
	.name = "peel", .summary = "take the skin off", .usage = "[FILE...]", .about = "Peels.\n\nIt really does.",
	.options = table, .defaults = &defaults, .size = sizeof(defaults), .argument = "FILE",
	.arguments = offsetof(struct fruit, rest), .min = 0, .max = 2,
};

static int parse(const struct command *c, struct words *w, const char *line, struct fruit *f, struct error *e)
{
	words_split(w, line);
	memcpy(f, &defaults, sizeof(*f));
	e->text[0] = 0;
	return options_parse(c, w->argc, w->argv, f, e);
}

static const struct command between = {
	.name = "between", .summary = "compare times", .usage = "FROM TO", .about = "Compares.", .options = table, .defaults = &defaults,
	.size = sizeof(defaults), .argument = "TIME", .arguments = offsetof(struct fruit, rest), .min = 1, .max = 3, .times = true,
};

static void times_are_no_options(void **state)
{
	static const char *const lines[] = {
		"between -15m..-5m -4 x --number 7 -r",
		"between --number 7 -15m..-5m -r -4 x",
		"between -r -15m..-5m --number=7 -- -4 x",
		"between -rn -15 -15m..-5m -4 --number 7 x",
	};
	struct words w;
	struct fruit f;
	struct error e;

	for (unsigned i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		assert_int_equal(parse(&between, &w, lines[i], &f, &e), 0);
		assert_int_equal(f.rest.n, 3);
		assert_string_equal(f.rest.v[0], "-15m..-5m");
		assert_string_equal(f.rest.v[1], "-4");
		assert_string_equal(f.rest.v[2], "x");
		assert_null(f.rest.v[3]);
		assert_true(f.ripe);
		assert_int_equal(f.number, 7);
	}
	assert_int_equal(parse(&between, &w, "between -1 -2 -3 -4", &f, &e), -EINVAL);
	assert_int_equal(parse(&between, &w, "between", &f, &e), -EINVAL);
	assert_int_equal(parse(&between, &w, "between -x", &f, &e), -EINVAL);
	assert_int_equal(parse(&peel, &w, "peel -1", &f, &e), -EINVAL);
}

static void nothing_given(void **state)
{
	struct words w;
	struct fruit f;
	struct error e;

	assert_int_equal(parse(&peel, &w, "peel", &f, &e), 0);
	assert_int_equal(f.number, 42);
	assert_int_equal(f.rest.n, 0);
	assert_null(f.rest.v[0]);
}

static void every_form(void **state)
{
	static const char *const lines[] = {
		"peel -r -n apple --number 7 --age 1.5s --colour green a b",
		"peel -rnapple --number=7 --age=1500ms --colour=green a b",
		"peel a -rn apple --num 7 b --age 1500ms --col green",
		"peel --ripe --name=apple --number 3 --number 7 --age 2m --age 1.5 --colour red --colour green -- a b",
	};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct words w;
		struct fruit f;
		struct error e;

		assert_int_equal(parse(&peel, &w, lines[i], &f, &e), 0);
		assert_true(f.ripe);
		assert_string_equal(f.name, "apple");
		assert_int_equal(f.number, 7);
		assert_int_equal(f.age, 1500000000);
		assert_int_equal(f.colour, 1);
		assert_int_equal(f.rest.n, 2);
		assert_string_equal(f.rest.v[0], "a");
		assert_string_equal(f.rest.v[1], "b");
		assert_null(f.rest.v[2]);
	}
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns; // 0 = refused
	} cases[] = {
		{ "10", 10000000000 }, { "0.001", 1000000 }, { "1ms", 1000000 }, { "90s", 90000000000 }, { "5m", 300000000000 },
		{ "2h", 7200000000000 }, { "1d", 86400000000000 }, { "24h", 86400000000000 }, { "0", 0 }, { "0.0001", 0 },
		{ "1.01d", 0 }, { "-1", 0 }, { "+1", 0 }, { "inf", 0 }, { "nan", 0 }, { "0x10", 0 }, { "1e400", 0 }, { "10 s", 0 },
		{ "10sec", 0 }, { "s", 0 }, { "", 0 }, { "1,5", 0 }, { "99999999999999999999", 0 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *argv[] = { "peel", "--age", (char *)cases[i].text, NULL };
		struct fruit f = defaults;
		struct error e = { 0 };
		int err = options_parse(&peel, 3, argv, &f, &e);

		assert_int_equal(err, cases[i].ns ? 0 : -EINVAL);
		assert_int_equal(f.age, cases[i].ns);
		if (err)
			assert_non_null(strstr(e.text, "allowed: a number of seconds, or one with ms, s, m, h or d, from 1ms to 1d"));
	}
}

// Each message names the option, the value and what is allowed.
static void refused(void **state)
{
	static const struct {
		const char *line, *words[3];
	} cases[] = {
		{ "peel --number 1", { "--number", "'1'", "from 2 to 100" } },
		{ "peel --number 101", { "--number", "'101'", "from 2 to 100" } },
		{ "peel --number -3", { "--number", "'-3'", "whole number" } },
		{ "peel --number 3x", { "--number", "'3x'" } },
		{ "peel --number 18446744073709551618", { "--number", "18446744073709551618" } },
		{ "peel --number ''", { "--number", "''" } },
		{ "peel --name ''", { "--name", "empty", "NAME" } },
		{ "peel --colour blue", { "--colour", "'blue'", "allowed: red, green" } },
		{ "peel --colour gre", { "'gre'" } },
		{ "peel --touch hot", { "--touch", "'hot'", "warm, cold" } },
		{ "peel --name", { "option --name needs a value: NAME" } },
		{ "peel -n", { "option -n needs a value: NAME" } },
		{ "peel -rn", { "option -n needs a value: NAME" } },
		{ "peel --ripe=yes", { "option --ripe takes no value" } },
		{ "peel --help=yes", { "option --help takes no value" } },
		{ "peel --nmae x", { "there is no option --nmae", "did you mean --name?" } },
		{ "peel --colours=red", { "there is no option --colours", "--colour?" } },
		{ "peel --frobnicate", { "there is no option --frobnicate" } },
		{ "peel --n x", { "option --n could be several" } },
		{ "peel -z", { "there is no option -z" } },
		{ "peel --ripe -zr", { "there is no option -z" } },
		{ "peel -rz", { "there is no option -z" } },
		{ "peel a b c", { "unexpected argument 'c'", "at most 2" } },
		{ "peel a b -- --ripe", { "unexpected argument '--ripe'" } },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct words w;
		struct fruit f;
		struct error e;

		assert_int_equal(parse(&peel, &w, cases[i].line, &f, &e), -EINVAL);
		for (unsigned j = 0; j < 3 && cases[i].words[j]; j++)
			if (!strstr(e.text, cases[i].words[j]))
				fail_msg("'%s': '%s' does not say '%s'", cases[i].line, e.text, cases[i].words[j]);
	}
}

static void help_and_version(void **state)
{
	static const struct {
		const char *line;
		int result;
	} cases[] = {
		{ "peel --help", OPTIONS_HELP }, { "peel -h", OPTIONS_HELP }, { "peel a b c d --help", OPTIONS_HELP },
		{ "peel --version", OPTIONS_VERSION }, { "peel -rV", OPTIONS_VERSION }, { "peel -h --number x", OPTIONS_HELP },
		{ "peel -- --help", 0 }, { "peel --name --help", 0 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct words w;
		struct fruit f;
		struct error e;

		assert_int_equal(parse(&peel, &w, cases[i].line, &f, &e), cases[i].result);
	}
}

static void argument_counts(void **state)
{
	struct command none = peel, one = peel;
	struct words w;
	struct fruit f;
	struct error e;

	none.argument = NULL;
	assert_int_equal(parse(&none, &w, "peel -r", &f, &e), 0);
	assert_int_equal(parse(&none, &w, "peel x", &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "unexpected argument 'x'"));
	one.min = 1;
	assert_int_equal(parse(&one, &w, "peel -r", &f, &e), -EINVAL);
	assert_string_equal(e.text, "FILE is missing");
}

// The first argument of a command line begins another program's: its options are not ours.
static void another_program(void **state)
{
	static const char *const lines[] = { "peel -r ls -r --number x", "peel -r -- ls -r --number x" };
	struct command c = peel;

	c.command_line = true;
	c.max = 1000;
	for (unsigned i = 0; i < 2; i++) {
		struct words w;
		struct fruit f;
		struct error e;

		assert_int_equal(parse(&c, &w, lines[i], &f, &e), 0);
		assert_int_equal(f.rest.n, 4);
		assert_string_equal(f.rest.v[0], "ls");
		assert_string_equal(f.rest.v[1], "-r");
		assert_null(f.rest.v[4]);
		assert_int_equal(f.number, 42);
	}
}

static void repeated(void **state)
{
	struct words w;
	struct fruit f;
	struct error e;

	assert_int_equal(parse(&peel, &w, "peel --touch warm --touch=cold a --touch warm", &f, &e), 0);
	assert_int_equal(f.touched, 3);
}

static const char *name(const void *context, unsigned i)
{
	static const char *const names[] = { "record", "doctor", "top", "export", "completion", NULL };

	return names[i];
}

static void suggestions(void **state)
{
	static const struct {
		const char *word, *near;
	} cases[] = {
		{ "recrod", "record" }, { "recor", "record" }, { "rec", "record" }, { "doctro", "doctor" }, { "tpo", "top" },
		{ "exports", "export" }, { "completoin", "completion" }, { "complete", NULL }, { "xyz", NULL }, { "", NULL }, { "t", NULL },
		{ "r", NULL }, { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL }, { "RECORD", NULL },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *near = suggest_word(cases[i].word, name, NULL);

		if (!near != !cases[i].near || (near && strcmp(near, cases[i].near)))
			fail_msg("'%s': %s", cases[i].word, near ? near : "nothing");
	}
}

static void help_text(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	options_help(&peel, to);
	fclose(to);
	assert_non_null(strstr(text, "blkprof peel: take the skin off\n\nUsage: blkprof peel [OPTION...] [FILE...]\n"));
	assert_non_null(strstr(text, "Peels.\n\nIt really does.\n"));
	assert_non_null(strstr(text, "\n  -n, --name NAME "));
	assert_non_null(strstr(text, "\n      --colour COLOUR "));
	assert_non_null(strstr(text, "\n  -h, --help "));
	assert_non_null(strstr(text, "\n  -V, --version "));
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		assert_true(strcspn(line, "\n") <= 80);
	free(text);
}

static void first_sentences(void **state)
{
	assert_int_equal(options_first_sentence("One. Two."), 3);
	assert_int_equal(options_first_sentence("Only one."), 8);
	assert_int_equal(options_first_sentence("No stop"), 7);
	assert_int_equal(options_first_sentence("A file.pb.gz of it. More"), 18);
	assert_int_equal(options_first_sentence(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_no_options), cmocka_unit_test(nothing_given), cmocka_unit_test(every_form),	    cmocka_unit_test(durations),
		cmocka_unit_test(refused),	 cmocka_unit_test(help_and_version), cmocka_unit_test(argument_counts),
		cmocka_unit_test(another_program), cmocka_unit_test(repeated),	    cmocka_unit_test(suggestions),
		cmocka_unit_test(help_text),	 cmocka_unit_test(first_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
