// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include "elf_image.h"
#include "symbolize/symbolize.h"

static int load(struct symbolizer *s, const char *text, size_t len)
{
	int fd = image_fd(text, len), err;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = symbolizer_load_kernel(s, path);
	close(fd);
	return err;
}

static void finds_functions(void **state)
{
	static const char text[] = "ffffffff81000000 T _stext\n"
				   "ffffffff81000000 T startup_64\n"
				   "ffffffff81000100 t blk_account.isra.0\n"
				   "ffffffff81000200 D jiffies\n"
				   "ffffffff81000300 T __submit_bio\n"
				   "ffffffff81000300 W submit_bio\n"
				   "garbage\n\n"
				   "ffffffff81000400 T\n"
				   "ffffffffc0001000 t xfs_file_write\t[xfs]\n"
				   "ffffffffc0001080 t xfs_file_read\t[xfs]\n"
				   "ffffffffc0000000 t nvme_queue_rq\t[nvme]\n";
	struct symbolizer *s = symbolizer_new(NULL);
	const char *module = "";
	uint64_t start = 0;

	assert_int_equal(load(s, text, sizeof(text) - 1), 0);
	assert_string_equal(symbolizer_kernel(s, 0xffffffff81000010, &module, &start), "startup_64");
	assert_null(module);
	assert_int_equal(start, 0xffffffff81000000);
	assert_string_equal(symbolizer_kernel(s, 0xffffffff81000250, &module, &start), "blk_account");
	assert_string_equal(symbolizer_kernel(s, 0xffffffff81000300, NULL, NULL), "submit_bio");
	assert_string_equal(symbolizer_kernel(s, 0xffffffffc0001004, &module, &start), "xfs_file_write");
	assert_string_equal(module, "xfs");
	assert_string_equal(symbolizer_kernel(s, 0xffffffffc0001090, &module, &start), "xfs_file_read");
	assert_string_equal(module, "xfs");
	assert_string_equal(symbolizer_kernel(s, 0xffffffffc0000004, &module, &start), "nvme_queue_rq");
	assert_string_equal(module, "nvme");
	assert_null(symbolizer_kernel(s, 0xffffffff80ffffff, NULL, NULL));
	assert_null(symbolizer_kernel(s, UINT64_MAX, NULL, NULL));
	assert_null(symbolizer_kernel(s, 0, NULL, NULL));
	symbolizer_free(s);
}

static void reads_when_asked(void **state)
{
	static const char text[] = "ffffffff81000000 T _stext\nffffffff81000300 T submit_bio\n";
	struct symbolizer_options o = { .kernel = "/nowhere" };
	struct symbolizer *s = symbolizer_new(&o);
	char path[64];
	int fd;

	assert_string_equal(symbolizer_kernel(s, 0xffffffff81000300, NULL, NULL), "[kernel]+0x1000300");
	symbolizer_free(s);
	fd = image_fd(text, sizeof(text) - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	o.kernel = path;
	s = symbolizer_new(&o);
	assert_string_equal(symbolizer_kernel(s, 0xffffffff81000300, NULL, NULL), "submit_bio");
	close(fd);
	assert_string_equal(symbolizer_kernel(s, 0xffffffff81000301, NULL, NULL), "submit_bio");
	symbolizer_free(s);
}

static void says_when_hidden(void **state)
{
	static const char hidden[] = "0000000000000000 T _stext\n0000000000000000 t foo\n";
	static const char none[] = "nothing of the kind";
	struct symbolizer *s = symbolizer_new(NULL);
	const char *module = "";

	assert_int_equal(load(s, hidden, sizeof(hidden) - 1), -ENODATA);
	assert_int_equal(load(s, none, sizeof(none) - 1), -EINVAL);
	assert_int_equal(load(s, "", 0), -EINVAL);
	assert_int_equal(symbolizer_load_kernel(s, "/nowhere"), -ENOENT);
	assert_string_equal(symbolizer_kernel(s, 0xffffffff81234567, &module, NULL), "[kernel]+0x1234567");
	assert_null(module);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal(strncmp(symbolizer_kernel(s, i, NULL, NULL), "[kernel]", 8), 0);
	symbolizer_free(s);
}

// Lines across the reader's blocks, and ones longer than any symbol.
static void reads_long_files(void **state)
{
	size_t cap = 4 << 20, len = 0;
	char *text = malloc(cap), want[32];
	struct symbolizer *s = symbolizer_new(NULL);

	assert_non_null(text);
	memset(text, 'x', 200000);
	len = 200000;
	text[len++] = '\n';
	for (unsigned i = 0; i < 50000; i++)
		len += (size_t)snprintf(text + len, cap - len, "%016llx t f%u\n", 0xffffffff81000000ull + i * 16, i);
	assert_int_equal(load(s, text, len), 0);
	for (unsigned i = 0; i < 50000; i += 7) {
		snprintf(want, sizeof(want), "f%u", i);
		assert_string_equal(symbolizer_kernel(s, 0xffffffff81000000ull + i * 16 + 15, NULL, NULL), want);
	}
	free(text);
	symbolizer_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions),
		cmocka_unit_test(reads_when_asked), cmocka_unit_test(says_when_hidden),
		cmocka_unit_test(reads_long_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
