// SPDX-License-Identifier: Apache-2.0
// Against nm and addr2line, on this program, the C library and the vDSO.
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "symbolize/symbolize.h"

#define SAMPLES 400

struct program {
	char path[512];
	Elf64_Phdr loads[16];
	unsigned count;
	struct symbolizer *s;
	struct sym_module *m;
};

static bool has_tool(const char *tool)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", tool);
	return !system(command);
}

static void program_open(struct program *p, const char *path)
{
	Elf64_Ehdr e;
	Elf64_Phdr segment;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(p, 0, sizeof(*p));
	assert_true(fd >= 0);
	assert_non_null(realpath(path, p->path));
	assert_int_equal(pread(fd, &e, sizeof(e), 0), sizeof(e));
	for (unsigned i = 0; i < e.e_phnum && p->count < 16; i++) {
		assert_int_equal(pread(fd, &segment, sizeof(segment), (off_t)(e.e_phoff + i * sizeof(segment))), sizeof(segment));
		if (segment.p_type == PT_LOAD)
			p->loads[p->count++] = segment;
	}
	p->s = symbolizer_new(NULL);
	p->m = symbolizer_module(p->s, fd, p->path, NULL);
	close(fd);
	assert_non_null(p->m);
	assert_null(sym_module_error(p->m));
}

static uint64_t to_offset(const struct program *p, uint64_t address)
{
	for (unsigned i = 0; i < p->count; i++)
		if (address >= p->loads[i].p_vaddr && address - p->loads[i].p_vaddr < p->loads[i].p_filesz)
			return address - p->loads[i].p_vaddr + p->loads[i].p_offset;
	return UINT64_MAX;
}

struct entry {
	uint64_t address, size;
	char name[256];
};

static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

// Functions that nm knows, sorted.
static size_t read_nm(const char *options, const char *path, struct entry **ret)
{
	char command[700], line[1024], type;
	struct entry *entries = NULL;
	size_t n = 0, cap = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "nm %s -S --defined-only %s 2>/dev/null", options, path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		struct entry e;
		unsigned long long address, size;

		if (sscanf(line, "%llx %llx %c %255s", &address, &size, &type, e.name) != 4 || !strchr("tTwWi", type))
			continue;
		e.address = address;
		e.size = size;
		e.name[strcspn(e.name, "@")] = 0;
		if (n == cap) {
			cap = cap ? cap * 2 : 1024;
			entries = realloc(entries, cap * sizeof(*entries));
			assert_non_null(entries);
		}
		entries[n++] = e;
	}
	pclose(pipe);
	if (n)
		qsort(entries, n, sizeof(*entries), by_address);
	*ret = entries;
	return n;
}

static bool is_one_of(const struct entry *entries, size_t n, uint64_t address, const char *raw)
{
	for (size_t i = 0; i < n; i++)
		if (entries[i].address == address && !strcmp(entries[i].name, raw))
			return true;
	return false;
}

static unsigned compare_nm(const struct program *p, const struct entry *entries, size_t n)
{
	size_t step = n / SAMPLES + 1;
	unsigned checked = 0;

	for (size_t i = 0; i < n; i += step) {
		struct sym_line lines[SYM_LINES_MAX];
		uint64_t start, size, offset = to_offset(p, entries[i].address);
		unsigned count;
		const char *raw;

		if (!entries[i].size || offset == UINT64_MAX)
			continue;
		count = sym_module_lookup(p->m, offset, lines);
		raw = lines[count - 1].system_name ? lines[count - 1].system_name : lines[count - 1].name;
		if (!is_one_of(entries, n, entries[i].address, raw))
			fail_msg("%s at %llx is called %s", entries[i].name, (unsigned long long)entries[i].address, raw);
		assert_true(sym_module_function(p->m, offset + entries[i].size - 1, &start, &size));
		checked++;
	}
	return checked;
}

static void agrees_with_nm(void **state)
{
	struct program p;
	struct entry *entries;
	size_t n;

	if (!has_tool("nm"))
		skip();
	program_open(&p, "/proc/self/exe");
	n = read_nm("", p.path, &entries);
	assert_true(n > 100);
	assert_true(compare_nm(&p, entries, n) > 100);
	free(entries);
	symbolizer_free(p.s);
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *opaque)
{
	char *path = opaque;

	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	snprintf(path, 512, "%s", info->dlpi_name);
	return 1;
}

static void agrees_on_the_c_library(void **state)
{
	static const char *const known[] = { "read", "write", "pread", "pwrite", "fsync", "openat", "malloc" };
	char path[512] = "";
	struct program p;
	struct entry *entries;
	size_t n;

	dl_iterate_phdr(find_libc, path);
	if (!has_tool("nm") || !*path)
		skip();
	program_open(&p, path);
	n = read_nm("-D", p.path, &entries);
	assert_true(n > 1000);
	// The debug file, where there is one, may know the function by an exported name too.
	assert_true(compare_nm(&p, entries, n) > 200);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++) {
			struct sym_line lines[SYM_LINES_MAX];
			unsigned count;

			if (strcmp(entries[i].name, known[k]))
				continue;
			count = sym_module_lookup(p.m, to_offset(&p, entries[i].address) + 1, lines);
			assert_string_equal(lines[count - 1].name, known[k]);
		}
	free(entries);
	symbolizer_free(p.s);
}

struct inlines {
	unsigned count;
	long line[SYM_LINES_MAX];
	char file[SYM_LINES_MAX][512];
};

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool same_lines(const struct inlines *want, const struct sym_line *lines, unsigned count)
{
	if (!want->line[0])
		return true; // addr2line does not know
	if (want->count != count)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (want->line[i] != lines[i].line || !lines[i].file || strcmp(base(want->file[i]), base(lines[i].file)))
			return false;
	return true;
}

// addr2line -a -i prints an address, then a "file:line" for each inlined call.
static bool read_inlines(FILE *pipe, char *line, size_t cap, struct inlines *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (strncmp(line, "0x", 2))
		return false;
	while (fgets(line, (int)cap, pipe) && strncmp(line, "0x", 2)) {
		char *colon = strrchr(line, ':');

		if (!colon || ret->count == SYM_LINES_MAX)
			continue;
		*colon = 0;
		snprintf(ret->file[ret->count], sizeof(ret->file[0]), "%s", line);
		ret->line[ret->count++] = strtol(colon + 1, NULL, 10);
	}
	return true;
}

static void agrees_with_addr2line(void **state)
{
	char list[] = "/tmp/blkprof-addresses-XXXXXX", command[700], line[1024] = "";
	int fd = mkstemp(list);
	FILE *addresses = fdopen(fd, "w"), *pipe;
	unsigned checked = 0, wrong = 0, inlined = 0;
	uint64_t asked[SAMPLES];
	struct entry *entries;
	struct program p;
	bool files, numbers, inlines;
	size_t n, asks = 0;

	program_open(&p, "/proc/self/exe");
	n = read_nm("", p.path, &entries);
	sym_module_lookup(p.m, to_offset(&p, (uint64_t)(n ? entries[n / 2].address : 0)), (struct sym_line[SYM_LINES_MAX]){ 0 });
	sym_module_has(p.m, &files, &numbers, &inlines);
	if (!has_tool("addr2line") || !numbers) {
		fclose(addresses);
		unlink(list);
		free(entries);
		symbolizer_free(p.s);
		skip();
	}
	for (size_t i = 0; i < n && asks < SAMPLES; i += n / SAMPLES + 1) {
		asked[asks] = entries[i].address + entries[i].size / 2;
		fprintf(addresses, "0x%llx\n", (unsigned long long)asked[asks++]);
	}
	fclose(addresses);
	snprintf(command, sizeof(command), "addr2line -a -i -e %s < %s", p.path, list);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_non_null(fgets(line, sizeof(line), pipe));
	for (size_t i = 0; i < asks; i++) {
		struct sym_line lines[SYM_LINES_MAX];
		struct inlines want;
		unsigned count = sym_module_lookup(p.m, to_offset(&p, asked[i]), lines);

		assert_true(read_inlines(pipe, line, sizeof(line), &want));
		checked += want.line[0] > 0;
		inlined += want.count > 1;
		if (!same_lines(&want, lines, count)) {
			print_message("%llx: addr2line %u %s:%ld, here %u %s:%ld\n", (unsigned long long)asked[i], want.count,
				      want.file[0], want.line[0], count, lines[0].file ? lines[0].file : "?", (long)lines[0].line);
			wrong++;
		}
	}
	pclose(pipe);
	unlink(list);
	print_message("%u addresses, %u inlined, %u differ\n", checked, inlined, wrong);
	assert_true(checked > 50);
	assert_true(wrong * 50 <= checked);
	free(entries);
	symbolizer_free(p.s);
}

static void names_the_vdso(void **state)
{
	struct symbolizer *s = symbolizer_new(NULL);
	struct sym_module *m = symbolizer_vdso(s);
	bool found = false;
	struct sym_line lines[SYM_LINES_MAX];

	assert_ptr_equal(symbolizer_vdso(s), m);
	if (!getauxval(AT_SYSINFO_EHDR)) {
		assert_non_null(sym_module_error(m));
		symbolizer_free(s);
		skip();
	}
	for (uint64_t offset = 0; offset < 16384 && !found; offset += 16) {
		sym_module_lookup(m, offset, lines);
		found = strstr(lines[0].name, "clock_gettime") != NULL;
	}
	assert_true(found);
	symbolizer_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_nm),
		cmocka_unit_test(agrees_on_the_c_library),
		cmocka_unit_test(agrees_with_addr2line),
		cmocka_unit_test(names_the_vdso),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
