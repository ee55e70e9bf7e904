// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/jvm.h"

#define F "-XX:+PreserveFramePointer"

static bool read_file(void *context, const char *path, size_t len, struct buf *ret)
{
	const char *content = context;

	if (!content || len != 2 || memcmp(path, "/f", 2))
		return false;
	buf_append(ret, content, strlen(content));
	return true;
}

// Arguments behind the program's name, and the environment: parts end with '|'.
static struct jvm_options parse(bool launcher, const char *arguments, const char *environment, const char *file)
{
	struct jvm_options_source s = { .launcher = launcher, .file = read_file, .context = (void *)(uintptr_t)file };
	struct jvm_options o;
	char a[1024], e[1024];

	s.arguments_len = (size_t)snprintf(a, sizeof(a), "java|%s", arguments);
	s.environment_len = (size_t)snprintf(e, sizeof(e), "%s", environment);
	for (size_t i = 0; i < s.arguments_len; i++)
		a[i] = a[i] == '|' ? 0 : a[i];
	for (size_t i = 0; i < s.environment_len; i++)
		e[i] = e[i] == '|' ? 0 : e[i];
	s.arguments = a;
	s.environment = e;
	jvm_options_parse(&s, &o);
	return o;
}

static void test_flags(void **state)
{
	struct jvm_options o = parse(true, "-Xmx1g|-cp|x|Main|", "", NULL);

	assert_int_equal(o.frame_pointers, JVM_UNSAID);
	assert_int_equal(o.few_signals, JVM_UNSAID);
	assert_int_equal(o.no_attach, JVM_UNSAID);
	assert_false(o.unread);
	o = parse(true, F "|-Xrs|-XX:+DisableAttachMechanism|Main|", "", NULL);
	assert_int_equal(o.frame_pointers, JVM_ON);
	assert_int_equal(o.few_signals, JVM_ON);
	assert_int_equal(o.no_attach, JVM_ON);
	o = parse(true, F "|-XX:-PreserveFramePointer|-XX:+ReduceSignalUsage|Main|", "", NULL);
	assert_int_equal(o.frame_pointers, JVM_OFF);
	assert_int_equal(o.few_signals, JVM_ON);
	o = parse(true, F "s|-XX:PreserveFramePointer|-XX:|-XX:+|-X|-|", "", NULL);
	assert_int_equal(o.frame_pointers, JVM_UNSAID);
}

static void test_launcher(void **state)
{
	assert_int_equal(parse(true, "Main|" F "|", "", NULL).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "-cp|" F "|-Xint|Main|", "", NULL).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "-jar|" F "|x.jar|", "", NULL).frame_pointers, JVM_ON);
	assert_int_equal(parse(true, "-jar|x.jar|" F "|", "", NULL).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "-m|a/b|" F "|", "", NULL).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "--module=a/b|" F "|", "", NULL).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "|" F "|", "", NULL).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, F, "", NULL).frame_pointers, JVM_ON); // unterminated
	// Another program that has a JVM in it.
	assert_int_equal(parse(false, "x|-J" F "|", "JDK_JAVA_OPTIONS=-Xrs|", NULL).frame_pointers, JVM_ON);
	assert_int_equal(parse(false, "x|-J" F "|", "JDK_JAVA_OPTIONS=-Xrs|", NULL).few_signals, JVM_UNSAID);
	assert_true(parse(false, "x|", "", NULL).unread);
}

static void test_environment(void **state)
{
	struct jvm_options o = parse(true, "Main|", "A=" F "|JAVA_TOOL_OPTIONS= -Da='b c'  \"-XX:+\"PreserveFramePointer\t|B=c|", NULL);

	assert_int_equal(o.frame_pointers, JVM_ON);
	assert_int_equal(parse(true, "Main|", "JDK_JAVA_OPTIONS=" F "|", NULL).frame_pointers, JVM_ON);
	assert_int_equal(parse(true, "Main|", "_JAVA_OPTIONS=" F "|", NULL).frame_pointers, JVM_ON);
	assert_int_equal(parse(true, "Main|", "XJAVA_TOOL_OPTIONS=" F "|JAVA_TOOL_OPTIONSX=" F "|", NULL).frame_pointers, JVM_UNSAID);
	// The first of two of a name is the one that counts; of what is said twice the last.
	assert_int_equal(parse(true, "M|", "_JAVA_OPTIONS=-Xint|_JAVA_OPTIONS=" F "|", NULL).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "-XX:-PreserveFramePointer|M|", "JAVA_TOOL_OPTIONS=" F "|", NULL).frame_pointers, JVM_OFF);
	assert_int_equal(parse(true, "-XX:-PreserveFramePointer|M|", "_JAVA_OPTIONS=" F "|", NULL).frame_pointers, JVM_ON);
}

static void test_files(void **state)
{
	struct jvm_options o = parse(true, "@/f|Main|", "", "# " F "\n-cp 'a b\\\n   c' -Xrs#x\n\"-XX:\\u002bDisableAttachMechanism\"");

	assert_int_equal(o.frame_pointers, JVM_UNSAID);
	assert_int_equal(o.few_signals, JVM_ON);
	assert_int_equal(o.no_attach, JVM_UNSAID);
	assert_false(o.unread);
	assert_int_equal(parse(true, "@/f|" F "|", "", "Main\n").frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "@@/f|", "", F).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "--disable-@files|@/f|", "", F).frame_pointers, JVM_UNSAID);
	assert_int_equal(parse(true, "-XX:VMOptionsFile=/f|M|", "", "-Xint\n" F " ").frame_pointers, JVM_ON);
	assert_int_equal(parse(true, "M|", "JDK_JAVA_OPTIONS=@/f|", F).frame_pointers, JVM_ON);
	// What cannot be read may say anything.
	assert_true(parse(true, "@/none|M|", "", F).unread);
	assert_true(parse(true, "-XX:Flags=/f|M|", "", F).unread);
	assert_true(parse(true, "-XX:VMOptionsFile=/f|M|", "", "-XX:VMOptionsFile=/f").unread);
	assert_true(parse(true, "@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|@/f|M|", "", "-Xint").unread);
	assert_false(parse(true, "M|@/none|", "", F).unread);
}

static void test_no_jvm(void **state)
{
	struct jvm jvm = { .start = 77 };

	assert_int_equal(jvm_find(getpid(), &jvm), -ENOENT);
	assert_int_equal(jvm.start, 77);
}

// A page of that file, which need not be a library.
static void *map(const char *path, int prot)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	void *at;

	assert_true(fd >= 0 && !ftruncate(fd, 8192));
	at = mmap(NULL, 4096, prot, MAP_PRIVATE, fd, 4096);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	return at;
}

static void test_library(void **state)
{
	char folder[] = "/tmp/test_jvm.XXXXXX", path[64], other[64];
	struct jvm jvm = { 0 };
	void *at, *j9;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/libjvm.so", folder);
	snprintf(other, sizeof(other), "%s/libj9vm29.so", folder);
	at = map(path, PROT_READ);
	assert_int_equal(jvm_find(getpid(), &jvm), -ENOENT);
	munmap(at, 4096);
	at = map(path, PROT_READ | PROT_EXEC);
	assert_int_equal(jvm_find(getpid(), &jvm), 0);
	assert_int_equal(jvm.start, (uintptr_t)at);
	assert_int_equal(jvm.limit, (uintptr_t)at + 4096);
	assert_int_equal(jvm.offset, 4096);
	assert_true(jvm.options.unread);
	unlink(path);
	assert_int_equal(jvm_find(getpid(), &jvm), 0);
	j9 = map(other, PROT_READ);
	assert_int_equal(jvm_find(getpid(), &jvm), -ENOENT);
	munmap(j9, 4096);
	munmap(at, 4096);
	unlink(other);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags),	    cmocka_unit_test(test_launcher), cmocka_unit_test(test_environment),
		cmocka_unit_test(test_files),	    cmocka_unit_test(test_no_jvm),   cmocka_unit_test(test_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
