// SPDX-License-Identifier: Apache-2.0
#include "cli/record_options.h"

#include <errno.h>

#include "cli/command.h"
#include "unit/cli/words.h"

static int parse(struct words *w, const char *line, struct record_options *o, struct error *e)
{
	words_split(w, line);
	*o = record_defaults;
	e->text[0] = 0;
	return options_parse(&command_record, w->argc, w->argv, o, e);
}

static void defaults(void **state)
{
	struct record_options o;
	struct words w;
	struct error e;

	assert_int_equal(parse(&w, "record", &o, &e), 0);
	assert_int_equal(o.rate, 1000);
	assert_int_equal(o.cpu_hz, 0);
	assert_int_equal(o.duration_ns, 0);
	assert_int_equal(o.backend, BACKEND_AUTO);
	assert_int_equal(o.labels, LABELS_ALL);
	assert_null(o.output);
	assert_int_equal(o.filter.n_pid + o.filter.n_comm + o.filter.n_cgroup + o.filter.n_device + o.filter.n_op, 0);
	assert_int_equal(o.command.n, 0);
}

static void everything(void **state)
{
	struct record_options o;
	struct words w;
	struct error e;

	assert_int_equal(parse(&w, "record -d 2m -o x.gz -a -p 1 --comm c --cgroup /g --device vda --op read --backend kprobe "
				   "--rate 0 --cpu 99 -k --labels few --root service,device --node n1 -- dd -d if=x", &o, &e), 0);
	assert_int_equal(o.duration_ns, 120000000000);
	assert_string_equal(o.output, "x.gz");
	assert_true(o.all && o.kernel_stacks);
	assert_string_equal(o.filter.pid[0], "1");
	assert_string_equal(o.filter.comm[0], "c");
	assert_string_equal(o.filter.cgroup[0], "/g");
	assert_string_equal(o.filter.device[0], "vda");
	assert_string_equal(o.filter.op[0], "read");
	assert_int_equal(o.backend, BACKEND_KPROBE);
	assert_int_equal(o.rate, 0);
	assert_int_equal(o.cpu_hz, 99);
	assert_int_equal(o.labels, LABELS_FEW);
	assert_string_equal(o.root, "service,device");
	assert_string_equal(o.node, "n1");
	assert_int_equal(o.command.n, 3);
	assert_string_equal(o.command.v[1], "-d");
}

static void lists(void **state)
{
	struct record_options o;
	struct words w;
	struct error e;

	assert_int_equal(parse(&w, "record --pid 1,22 --pid 333 --comm a\\,b,c --op read,write_zeroes", &o, &e), 0);
	assert_int_equal(o.filter.n_pid, 3);
	assert_string_equal(o.filter.pid[0], "1");
	assert_string_equal(o.filter.pid[1], "22");
	assert_string_equal(o.filter.pid[2], "333");
	assert_int_equal(o.filter.n_comm, 2);
	assert_string_equal(o.filter.comm[0], "a,b");
	assert_string_equal(o.filter.comm[1], "c");
	assert_int_equal(o.filter.n_op, 2);
	assert_string_equal(o.filter.op[1], "write_zeroes");
}

static void many(char *line, size_t cap, unsigned n)
{
	size_t used = (size_t)snprintf(line, cap, "record --pid 1");

	for (unsigned i = 1; i < n; i++)
		used += (size_t)snprintf(line + used, cap - used, ",%u", i);
}

static void list_limit(void **state)
{
	char line[1024];
	struct record_options o;
	struct words w;
	struct error e;

	many(line, sizeof(line), FILTER_MAX);
	assert_int_equal(parse(&w, line, &o, &e), 0);
	assert_int_equal(o.filter.n_pid, FILTER_MAX);
	many(line, sizeof(line), FILTER_MAX + 1);
	assert_int_equal(parse(&w, line, &o, &e), -EINVAL);
	assert_non_null(strstr(e.text, "option --pid: '64' is one too many; allowed: at most 64"));
}

static void refused(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{ "record --op erase", "option --op: 'erase' is not allowed; allowed: read, write, flush" },
		{ "record --op read,,write", "option --op: an item of the list is empty" },
		{ "record --comm ,", "option --comm: an item of the list is empty" },
		{ "record --comm ''", "option --comm: an item" },
		{ "record --root colour", "option --root: 'colour' is not allowed; allowed: labels" },
		{ "record --root device,", "option --root: ''" },
		{ "record --root aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "option --root: 'aaa" },
		{ "record --rate 1000001", "option --rate: '1000001'" },
		{ "record --cpu 0", "option --cpu: '0'" },
		{ "record --labels some", "allowed: all, few, none" },
		{ "record --backend magic", "allowed: auto, fentry, kprobe, tracepoint" },
		{ "record -o - -- true", "option --output: '-' is COMMAND's standard output too" },
		{ "record -d", "option -d needs a value: SECONDS" },
		{ "record -d 366d", "from 1ms to 365d" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct record_options o;
		struct words w;
		struct error e;

		assert_int_equal(parse(&w, cases[i].line, &o, &e), -EINVAL);
		if (!strstr(e.text, cases[i].says))
			fail_msg("'%s': '%s' does not say '%s'", cases[i].line, e.text, cases[i].says);
	}
}

// Every table is fit for help, completion and manual page, and no letter or name is there twice.
static void tables(void **state)
{
	const struct command *c;

	for (unsigned i = 0; (c = command_get(i)); i++) {
		assert_true(c->about && *c->about && *c->summary && c->run);
		assert_ptr_equal(command_find(c->name), c);
		for (const struct option_spec *s = c->options; s && s->name; s++) {
			assert_true(s->set && s->help && *s->help);
			assert_true(s->letter != 'h' && s->letter != 'V');
			assert_int_equal(s->help[strlen(s->help) - 1], '.');
			assert_true(s->completes != COMPLETES_WORD || s->words);
			for (const struct option_spec *t = s + 1; t->name; t++) {
				assert_true(!s->letter || s->letter != t->letter);
				assert_string_not_equal(s->name, t->name);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),   cmocka_unit_test(everything), cmocka_unit_test(lists),
		cmocka_unit_test(list_limit), cmocka_unit_test(refused),    cmocka_unit_test(tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
