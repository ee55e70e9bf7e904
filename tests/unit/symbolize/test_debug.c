// SPDX-License-Identifier: Apache-2.0
// Debug files in folders of the process's root and of the host, and symbols packed into the file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <lzma.h>
#include <sys/stat.h>

#include "elf_image.h"
#include "symbolize/symbolize.h"

#define TEXT_SIZE 0x100

struct folders {
	char top[64], root[80], host[80];
};

static int setup(void **state)
{
	struct folders *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->top, "/tmp/blkprof-debug-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	snprintf(f->root, sizeof(f->root), "%s/root", f->top);
	snprintf(f->host, sizeof(f->host), "%s/host", f->top);
	mkdir(f->root, 0755);
	mkdir(f->host, 0755);
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct folders *f = *state;

	nftw(f->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

// Writes a file below a folder, with the folders it needs.
static void put(const char *below, const char *path, const struct buf *content)
{
	char full[512], *slash;
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", below, path);
	for (slash = strchr(full + strlen(below) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(full, 0755);
		*slash = '/';
	}
	file = fopen(full, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(content->data, 1, content->len, file), content->len);
	fclose(file);
}

// A file whose .text holds one function of the given name; without a name it is stripped.
static uint64_t build(struct image *im, const char *name, uint8_t id, const char *link, const void *packed, size_t packed_len)
{
	uint8_t code[TEXT_SIZE] = { 0 };
	unsigned text;

	image_begin(im);
	if (id)
		image_build_id(im, id);
	else
		image_section(im, ".note.padding", SHT_PROGBITS, SHF_ALLOC, code, 36, 0, 0);
	text = image_section(im, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code, sizeof(code), 0, 0);
	if (name) {
		image_symbol(im, name, STB_LOCAL, STT_FUNC, text, im->sections[text].sh_addr, TEXT_SIZE);
		image_symbols(im, SHT_SYMTAB);
	}
	if (link)
		image_section(im, ".gnu_debuglink", SHT_PROGBITS, 0, link, 16, 0, 0);
	if (packed)
		image_section(im, ".gnu_debugdata", SHT_PROGBITS, 0, packed, packed_len, 0, 0);
	image_end(im);
	return image_offset(im, text);
}

static void expect(const struct folders *f, const struct image *im, const char *root, uint64_t offset, const char *want)
{
	struct symbolizer_options options = { .debug_root = f->host };
	struct symbolizer *s = symbolizer_new(&options);
	struct sym_line lines[SYM_LINES_MAX];
	int fd = image_fd(im->file.data, im->file.len);
	struct sym_module *m = symbolizer_module(s, fd, "/usr/bin/prog", root);

	sym_module_lookup(m, offset + 5, lines);
	if (want)
		assert_string_equal(lines[0].name, want);
	else
		assert_int_equal(strncmp(lines[0].name, "prog+0x", 7), 0);
	close(fd);
	symbolizer_free(s);
}

#define BY_ID "/.build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.debug"

static void by_build_id(void **state)
{
	const struct folders *f = *state;
	struct image im, host, root, other;
	uint64_t offset = build(&im, NULL, 0xaa, NULL, NULL, 0);

	build(&host, "of_host", 0xaa, NULL, NULL, 0);
	build(&root, "of_root", 0xaa, NULL, NULL, 0);
	build(&other, "of_other", 0xbb, NULL, NULL, 0);
	expect(f, &im, f->root, offset, NULL);
	put(f->host, BY_ID, &other.file);
	expect(f, &im, f->root, offset, NULL); // another build-id inside
	put(f->host, BY_ID, &host.file);
	expect(f, &im, f->root, offset, "of_host");
	expect(f, &im, NULL, offset, "of_host");
	put(f->root, "/usr/lib/debug" BY_ID, &root.file);
	expect(f, &im, f->root, offset, "of_root");
	image_free(&im);
	image_free(&host);
	image_free(&root);
	image_free(&other);
}

// Links in a container's root are its own: an absolute one does not lead out of it. A FIFO does not stop us.
static void stays_below_root(void **state)
{
	const struct folders *f = *state;
	char outside[256], link[512];
	struct image im, bait, fine;
	uint64_t offset = build(&im, NULL, 0xaa, NULL, NULL, 0);

	build(&bait, "of_outside", 0xaa, NULL, NULL, 0);
	build(&fine, "of_inside", 0xaa, NULL, NULL, 0);
	put(f->top, "/outside.debug", &bait.file);
	put(f->root, "/usr/lib/debug/.build-id/aa/x", &fine.file);
	snprintf(outside, sizeof(outside), "%s/outside.debug", f->top);
	snprintf(link, sizeof(link), "%s/usr/lib/debug%s", f->root, BY_ID);
	assert_int_equal(symlink(outside, link), 0);
	expect(f, &im, f->root, offset, NULL);
	unlink(link);
	assert_int_equal(symlink("/usr/lib/debug/.build-id/aa/x", link), 0);
	expect(f, &im, f->root, offset, "of_inside");
	unlink(link);
	assert_int_equal(mkfifo(link, 0644), 0);
	expect(f, &im, f->root, offset, NULL);
	image_free(&im);
	image_free(&bait);
	image_free(&fine);
}

static void by_debug_link(void **state)
{
	static const char *const places[] = { "/usr/bin/x.debug", "/usr/bin/.debug/x.debug", "/usr/lib/debug/usr/bin/x.debug" };
	const struct folders *f = *state;
	struct image im, debug, wrong;
	char link[16] = "x.debug", path[512];
	uint64_t offset;
	uint32_t checksum;

	build(&debug, "linked", 0, NULL, NULL, 0);
	build(&wrong, "unlinked", 0, NULL, NULL, 0);
	checksum = lzma_crc32(debug.file.data, debug.file.len, 0);
	memcpy(link + 8, &checksum, 4);
	offset = build(&im, NULL, 0, link, NULL, 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		put(f->root, places[i], &wrong.file);
		expect(f, &im, f->root, offset, NULL);
		put(f->root, places[i], &debug.file);
		expect(f, &im, f->root, offset, "linked");
		snprintf(path, sizeof(path), "%s%s", f->root, places[i]);
		unlink(path);
	}
	put(f->host, "/usr/bin/x.debug", &debug.file);
	expect(f, &im, f->root, offset, "linked");
	image_free(&im);
	image_free(&debug);
	image_free(&wrong);
}

static void link_is_a_name(void **state)
{
	static const char *const links[] = { "../x.debug\0\0\0\0\0", "..", "/x", "xxxxxxxxxxxxxxxx", "" };
	const struct folders *f = *state;

	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		char link[16] = { 0 };
		struct image im;
		uint64_t offset;

		memcpy(link, links[i], strnlen(links[i], 16));
		offset = build(&im, NULL, 0, link, NULL, 0);
		expect(f, &im, f->root, offset, NULL);
		image_free(&im);
	}
}

static void packed_symbols(void **state)
{
	const struct folders *f = *state;
	struct image mini, im;
	uint8_t packed[8192];
	size_t len = 0;
	uint64_t offset;

	build(&mini, "packed", 0xaa, NULL, NULL, 0);
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, mini.file.data, mini.file.len, packed, &len,
						 sizeof(packed)), LZMA_OK);
	offset = build(&im, NULL, 0xaa, NULL, packed, len);
	// The unpacked file's symbols have addresses of its own layout, which is the same up to .text.
	expect(f, &im, f->root, offset, "packed");
	image_free(&im);
	for (size_t i = 0; i < len; i += 3) {
		packed[i] ^= 0x55;
		offset = build(&im, NULL, 0xaa, NULL, packed, len);
		expect(f, &im, f->root, offset, NULL);
		image_free(&im);
		offset = build(&im, NULL, 0xaa, NULL, packed, i + 1);
		expect(f, &im, f->root, offset, NULL);
		image_free(&im);
		packed[i] ^= 0x55;
	}
	image_free(&mini);
}

// Zeroes, twice as many as are unpacked, in a few kilobytes.
static void packed_bomb(void **state)
{
	const struct folders *f = *state;
	static uint8_t zeroes[1 << 20], packed[1 << 20];
	lzma_stream stream = LZMA_STREAM_INIT;
	struct image im;
	uint64_t offset;

	assert_int_equal(lzma_easy_encoder(&stream, 1, LZMA_CHECK_CRC32), LZMA_OK);
	stream.next_out = packed;
	stream.avail_out = sizeof(packed);
	for (unsigned i = 0; i < 128; i++) {
		stream.next_in = zeroes;
		stream.avail_in = sizeof(zeroes);
		assert_int_equal(lzma_code(&stream, LZMA_RUN), LZMA_OK);
	}
	assert_int_equal(lzma_code(&stream, LZMA_FINISH), LZMA_STREAM_END);
	offset = build(&im, NULL, 0xaa, NULL, packed, stream.total_out);
	lzma_end(&stream);
	expect(f, &im, f->root, offset, NULL);
	image_free(&im);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_build_id, setup, teardown),
		cmocka_unit_test_setup_teardown(stays_below_root, setup, teardown),
		cmocka_unit_test_setup_teardown(by_debug_link, setup, teardown),
		cmocka_unit_test_setup_teardown(link_is_a_name, setup, teardown),
		cmocka_unit_test_setup_teardown(packed_symbols, setup, teardown),
		cmocka_unit_test_setup_teardown(packed_bomb, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
