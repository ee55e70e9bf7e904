// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "wire/address.h"
#include "wire/keys.h"
#include "wire/reply.h"

static char folder[] = "/tmp/blkprof-keys-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void a_pair_comes_back(void **state)
{
	struct key_pair k, got;
	const char *path = in_folder("node.key");
	struct error e;
	struct stat st;

	assert_int_equal(key_pair_generate(&k, NULL), 0);
	umask(0777);
	assert_int_equal(key_file_write(path, &k, NULL), 0);
	umask(022);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(key_file_read(path, &got, NULL), 0);
	assert_memory_equal(&got, &k, sizeof(k));
	assert_int_equal(key_file_write(path, &k, &e), -EEXIST);
	assert_non_null(strstr(e.text, "never overwritten"));
	chmod(path, 0644);
	assert_int_equal(key_file_read(path, &got, &e), -EACCES);
	assert_non_null(strstr(e.text, "chmod 600"));
	unlink(path);
	assert_int_equal(key_file_read(path, &got, &e), -ENOENT);
	assert_non_null(strstr(e.text, "keygen"));
}

static void broken_file(const char *text, size_t len, const char *says)
{
	const char *path = in_folder("bad.key");
	struct key_pair got;
	struct error e;

	assert_int_equal(file_write_atomic(path, text, len, NULL), 0);
	chmod(path, 0600);
	assert_int_equal(key_file_read(path, &got, &e), -EBADMSG);
	if (!strstr(e.text, says))
		fail_msg("'%s' does not say '%s'", e.text, says);
	unlink(path);
}

static void broken_files(void **state)
{
	static const char hex[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
	char two[200], large[5000];

	broken_file("", 0, "64 hexadecimal");
	broken_file(hex, 63, "64 hexadecimal");
	snprintf(two, sizeof(two), "%s\n#\n%s\n", hex, hex);
	broken_file(two, strlen(two), "more than one");
	memset(two, 'g', 64);
	broken_file(two, 64, "digits only");
	memset(large, '#', sizeof(large));
	mkdir(in_folder("folder"), 0700);
	assert_int_equal(file_write_atomic(in_folder("bad.key"), large, sizeof(large), NULL), 0);
	chmod(in_folder("bad.key"), 0600);
	assert_int_equal(key_file_read(in_folder("bad.key"), &(struct key_pair){ 0 }, NULL), -EFBIG);
	assert_int_equal(key_file_read(in_folder("folder"), &(struct key_pair){ 0 }, NULL), -EBADMSG);
	unlink(in_folder("bad.key"));
	rmdir(in_folder("folder"));
}

static void addresses(void **state)
{
	static const char *const local[] = { "tcp://127.0.0.1:6062", "tcp://127.9.9.9:1", "tcp://[::1]:6062", "tcp://localhost:1",
					     "ipc:///run/blkprof" };
	static const char *const open[] = { "tcp://*:6062", "tcp://0.0.0.0:6062", "tcp://10.0.0.1:6062", "tcp://127.0.0.1.a.org:1",
					    "tcp://[fe80::1]:6062", "tcp://collector.example:6062" };
	static const char *const wrong[] = { "", "tcp://", "tcp://a", "tcp://:1", "tcp://a:0", "tcp://a:65536", "tcp://a:x",
					     "http://a:1", "ipc://", "a:1", "inproc://x", "tcp://b;a:1", "tcp://a:*" };

	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++) {
		assert_int_equal(address_check(local[i], NULL), 0);
		assert_true(address_is_local(local[i]));
	}
	for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++) {
		assert_int_equal(address_check(open[i], NULL), 0);
		assert_false(address_is_local(open[i]));
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(address_check(wrong[i], NULL), -EINVAL);
}

static void replies_come_back(void **state)
{
	struct reply r = { .token = 0x1122334455667788, .status = REPLY_REFUSED, .text = "broken" }, got;
	struct buf out = { 0 };

	assert_int_equal(reply_encode(&r, &out), 0);
	assert_int_equal(reply_decode(out.data, out.len, &got, NULL), 0);
	assert_int_equal(got.token, r.token);
	assert_int_equal(got.status, r.status);
	assert_string_equal(got.text, "broken");
	for (size_t n = 0; n < out.len; n++)
		if (n != 22) // a status without a text
			assert_int_equal(reply_decode(out.data, n, &got, NULL), -EBADMSG);
	out.data[21] = 99; // of a newer collector
	assert_int_equal(reply_decode(out.data, out.len, &got, NULL), 0);
	assert_int_equal(got.status, REPLY_BUSY);
	out.data[21] = 0;
	assert_int_equal(reply_decode(out.data, out.len, &got, NULL), -EBADMSG);
	buf_free(&out);
}

static int make_folder(void **state)
{
	return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_comes_back),
		cmocka_unit_test(broken_files),
		cmocka_unit_test(addresses),
		cmocka_unit_test(replies_come_back),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
