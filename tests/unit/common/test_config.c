// SPDX-License-Identifier: Apache-2.0
#include "common/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct values {
	const char *node, *listen;
	struct config_list exclude;
	bool insecure;
	uint32_t rate;
	uint64_t memory, window;
	struct config_pairs labels;
};

#define KEY(s, k, t, field, low, high)                                                                             \
	{ .section = s, .key = k, .type = t, .offset = offsetof(struct values, field), .min = low, .max = high }

static const struct config_key keys[] = {
	KEY("agent", "node", CONFIG_TEXT, node, 0, 0),
	KEY("agent", "listen", CONFIG_TEXT, listen, 0, 0),
	KEY("agent", "exclude", CONFIG_LIST, exclude, 0, 0),
	KEY("agent", "rate", CONFIG_U32, rate, 0, 1000000),
	KEY("agent", "memory", CONFIG_SIZE, memory, 1048576, 1e12),
	KEY("agent", "window", CONFIG_TIME, window, 1e9, 3600e9),
	KEY("ship", "insecure", CONFIG_BOOL, insecure, 0, 0),
	KEY("labels", "*", CONFIG_PAIRS, labels, 0, 0),
};

static int parse(const char *text, size_t size, struct values *v, struct config **c, struct error *e)
{
	*v = (struct values){ .node = "host", .listen = "127.0.0.1:6061", .rate = 1000, .memory = 64 << 20, .window = 10000000000 };
	*c = NULL;
	memset(e, 0, sizeof(*e));
	return config_parse("agent.conf", text, size, keys, sizeof(keys) / sizeof(*keys), v, c, e);
}

static void fails(const char *text, const char *message)
{
	struct values v;
	struct config *c;
	struct error e;

	assert_int_equal(parse(text, strlen(text), &v, &c, &e), -EINVAL);
	assert_string_equal(e.text, message);
	assert_null(c);
	assert_int_equal(v.rate, 1000);
}

static void values(void **state)
{
	static const char text[] = "# a node\n; another comment\n\n  [agent]  \nnode=db-1\nlisten =\nexclude = GC Thread#3\n"
				   "rate = 0\nmemory = 1.5 MiB\nwindow=90s\n[ship]\r\ninsecure = yes\r\n[labels]\nzone = eu = west\n"
				   "rack.row = 7\n[agent]\nexclude = /system.slice/backup.service";
	struct values v;
	struct config *c;
	struct error e;

	assert_int_equal(parse(text, sizeof(text) - 1, &v, &c, &e), 0);
	assert_string_equal(v.node, "db-1");
	assert_string_equal(v.listen, "");
	assert_int_equal(v.exclude.n, 2);
	assert_string_equal(v.exclude.item[0], "GC Thread#3");
	assert_string_equal(v.exclude.item[1], "/system.slice/backup.service");
	assert_int_equal(v.exclude.line[0], 7);
	assert_int_equal(v.exclude.line[1], 17);
	assert_int_equal(v.rate, 0);
	assert_int_equal(v.memory, 1572864);
	assert_int_equal(v.window, 90000000000);
	assert_true(v.insecure);
	assert_int_equal(v.labels.n, 2);
	assert_string_equal(v.labels.name[0], "zone");
	assert_string_equal(v.labels.value[0], "eu = west");
	assert_string_equal(v.labels.name[1], "rack.row");
	config_free(c);
}

static void defaults_stay(void **state)
{
	static const char *const texts[] = { "", "\n", "# nothing", "[agent]\n", "\xef\xbb\xbf[agent]\n" };
	struct values v;
	struct config *c;
	struct error e;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(parse(texts[i], strlen(texts[i]), &v, &c, &e), 0);
		assert_string_equal(v.node, "host");
		assert_int_equal(v.window, 10000000000);
		assert_int_equal(v.exclude.n, 0);
		config_free(c);
	}
}

static void unknown_names(void **state)
{
	fails("[agent]\nnod = x\n", "agent.conf:2: unknown key 'nod' in [agent]; did you mean 'node'?");
	fails("[agent]\nwidnow = 10s\n", "agent.conf:2: unknown key 'widnow' in [agent]; did you mean 'window'?");
	fails("[agent]\n\ninsecure = yes\n", "agent.conf:3: unknown key 'insecure' in [agent]; it belongs in [ship]");
	fails("[agent]\nvolume = 11\n",
	      "agent.conf:2: unknown key 'volume' in [agent]; the documented example file lists the keys there are");
	fails("[agnet]\n", "agent.conf:1: unknown section [agnet]; did you mean [agent]?");
	fails("[kitchen]\n", "agent.conf:1: unknown section [kitchen]; there are [agent], [ship], [labels]");
}

static void bad_lines(void **state)
{
	fails("node = x\n", "agent.conf:1: 'node' stands before the first [section]");
	fails("[agent]\nnode\n", "agent.conf:2: 'node' is neither [section] nor key = value");
	fails("[agent\n", "agent.conf:1: '[agent' is no section; write [name] and nothing else on the line");
	fails("[]\n", "agent.conf:1: '' is no section's name; letters, digits, '_', '.' and '-' may stand in one");
	fails("[agent]\n = x\n", "agent.conf:2: '' is no key; letters, digits, '_', '.' and '-' may stand in one");
	fails("[agent]\nn\xc3\xb6 de = x\n", "agent.conf:2: 'n\xc3\xb6 de' is no key; letters, digits, '_', '.' and '-' may stand in one");
	fails("[agent]\nnode = a\nrate = 1\nnode = b\n", "agent.conf:4: 'node' was given before, in line 2; keep one of them");
	fails("[labels]\nzone = a\nzone = a\n", "agent.conf:3: 'zone' was given before, in line 2; keep one of them");
	fails("[agent]\nnode = \x01\n", "agent.conf:2: a control character (byte 0x01) in column 8; is this a text file?");
	fails("[agent]\nnode = \xff\n", "agent.conf:2: the line is not valid UTF-8; save the file as UTF-8");
}

static void bad_values(void **state)
{
	fails("[agent]\nrate = -1\n", "agent.conf:2: rate = '-1' is not a whole number up to 4294967295");
	fails("[agent]\nrate = 1000001\n", "agent.conf:2: rate = 1000001 is out of range; it may be 0 to 1000000");
	fails("[agent]\nrate = 4294967296\n", "agent.conf:2: rate = '4294967296' is not a whole number up to 4294967295");
	fails("[agent]\nrate =\n", "agent.conf:2: rate has no value; give one, or leave the line out");
	fails("[agent]\nexclude =\n", "agent.conf:2: exclude has no value; give one, or leave the line out");
	fails("[labels]\nzone =\n", "agent.conf:2: zone has no value; give one, or leave the line out");
	fails("[agent]\nwindow = 10s # short\n", "agent.conf:2: window = '10s # short' is not a time; give a number with ms, s, m, h "
						 "or d (a comment must be on a line of its own)");
	fails("[agent]\nwindow = 100ms\n", "agent.conf:2: window = 100ms is out of range; it may be 1s to 60m");
	fails("[agent]\nmemory = 1K\n", "agent.conf:2: memory = 1K is out of range; it may be 1.00 MiB to 931.32 GiB");
	fails("[agent]\nmemory = nan\n", "agent.conf:2: memory = 'nan' is not a size; give a number with K, M, G, KiB, MiB or GiB");
	fails("[ship]\ninsecure = maybe\n", "agent.conf:2: insecure = 'maybe' is neither yes nor no");
}

static void nul_byte(void **state)
{
	struct values v;
	struct config *c;
	struct error e;

	assert_int_equal(parse("[agent]\nnode = a\0b\n", 19, &v, &c, &e), -EINVAL);
	assert_string_equal(e.text, "agent.conf:2: a control character (byte 0x00) in column 9; is this a text file?");
}

static void limits(void **state)
{
	size_t size = 1100000;
	char *text = malloc(size);
	struct values v;
	struct config *c;
	struct error e;
	size_t n;

	assert_non_null(text);
	memset(text, '\n', size);
	assert_int_equal(parse(text, size, &v, &c, &e), -EINVAL);
	assert_string_equal(e.text, "agent.conf: larger than 1 MiB; is this the right file?");
	n = (size_t)sprintf(text, "[agent]\n");
	for (int i = 0; i < 1025; i++)
		n += (size_t)sprintf(text + n, "exclude = %d\n", i);
	assert_int_equal(parse(text, n, &v, &c, &e), -EINVAL);
	assert_string_equal(e.text, "agent.conf:1026: more than 1024 values; use a smaller file");
	memset(text, 'x', 9000);
	assert_int_equal(parse(text, 9000, &v, &c, &e), -EINVAL);
	assert_string_equal(e.text, "agent.conf:1: the line is longer than 8192 bytes");
	free(text);
}

static void files(void **state)
{
	char path[] = "/tmp/blkprof-config.XXXXXX";
	int fd = mkstemp(path);
	struct values v = { 0 };
	struct config *c;
	struct error e;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "[agent]\nnode = n\n", 17), 17);
	close(fd);
	assert_int_equal(config_read(path, keys, sizeof(keys) / sizeof(*keys), &v, &c, &e), 0);
	assert_string_equal(v.node, "n");
	config_free(c);
	unlink(path);
	assert_int_equal(config_read("/nonexistent/agent.conf", keys, 1, &v, &c, &e), -ENOENT);
	assert_string_equal(e.text, "cannot read /nonexistent/agent.conf: it does not exist; give the path of the configuration file");
}

static void units(void **state)
{
	uint64_t n = 0;

	assert_int_equal(config_size("2K", &n), 0);
	assert_int_equal(n, 2048);
	assert_int_equal(config_size("1GiB", &n), 0);
	assert_int_equal(n, 1 << 30);
	assert_int_equal(config_size("-1", &n), -EINVAL);
	assert_int_equal(config_time("250ms", &n), 0);
	assert_int_equal(n, 250000000);
	assert_int_equal(config_time("2d", &n), 0);
	assert_int_equal(n, 172800000000000);
	assert_int_equal(config_time("1y", &n), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),	   cmocka_unit_test(defaults_stay),
		cmocka_unit_test(unknown_names), cmocka_unit_test(bad_lines), cmocka_unit_test(bad_values),
		cmocka_unit_test(nul_byte),  cmocka_unit_test(limits),	   cmocka_unit_test(files),
		cmocka_unit_test(units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
