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
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/frozen.h"
#include "agent/jvm.h"
#include "agent/jvm_flags.h"
#include "agent/jvm_quality.h"
#include "agent/jvm_wake.h"
#include "agent/proc_status.h"

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

// A library's tables, as HotSpot has them.
struct field {
	const char *type, *name, *text;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

struct type {
	const char *name, *super;
	int32_t oop, integer, is_unsigned;
	uint64_t size;
};

struct flag {
	void *address;
	const char *name;
	int bits;
};

struct library {
	uint8_t values[4];
	struct flag flags[5], *first;
	uint64_t count;
	struct field fields[8], *structs;
	struct type types[3], *first_type;
	uint64_t at[JVM_SYMBOLS];
};

static size_t read_own(void *context, uint64_t address, void *out, size_t len)
{
	struct iovec local = { out, len }, remote = { (void *)(uintptr_t)address, len };
	ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	return n < 0 ? 0 : (size_t)n;
}

static void make_library(struct library *l, struct jvm_memory *m)
{
	*l = (struct library){
		.values = { 1, 0, 1, 0 },
		.flags = { { &l->values[0], "PreserveFramePointer", 1 }, { &l->values[3], "PreserveFramePointers", 1 },
			   { &l->values[1], "ReduceSignalUsage", 1 }, { &l->values[2], "DisableAttachMechanism", 1 } },
		.first = l->flags, .count = 5,
		.fields = { { "Other", "flags", "", 1, 0, NULL }, { "JVMFlag", "_name", "", 0, offsetof(struct flag, name), NULL },
			    { "JVMFlag", "_addr", "", 0, offsetof(struct flag, address), NULL }, { "JVMFlag", "_flags", "", 0, 16, NULL },
			    { "JVMFlag", "flags", "", 1, 0, &l->first }, { "JVMFlag", "numFlags", "", 1, 0, &l->count } },
		.types = { { "Other", NULL, 0, 0, 0, 8 }, { "JVMFlag", NULL, 0, 0, 0, sizeof(struct flag) } },
		.at = { (uintptr_t)l->fields, offsetof(struct field, type), offsetof(struct field, name), offsetof(struct field, is_static),
			offsetof(struct field, offset), offsetof(struct field, address), sizeof(struct field), (uintptr_t)l->types,
			offsetof(struct type, name), offsetof(struct type, size), sizeof(struct type) },
	};
	*m = (struct jvm_memory){ .read = read_own };
	for (unsigned i = 0; i < JVM_SYMBOLS; i++)
		m->symbol[i] = (uintptr_t)&l->at[i];
}

static void test_memory(void **state)
{
	struct jvm_options o = { .unread = true };
	struct jvm_memory m;
	struct library l;

	make_library(&l, &m);
	assert_int_equal(jvm_flags_read(&m, &o), 0);
	assert_int_equal(o.frame_pointers, JVM_ON);
	assert_int_equal(o.few_signals, JVM_OFF);
	assert_int_equal(o.no_attach, JVM_ON);
	assert_false(o.unread);
}

// Numbers and addresses that no JVM has: one at a time.
static void test_hostile_memory(void **state)
{
	static const uint64_t values[] = { 0, 1, 7, 8, 255, 256, 257, 1 << 20, UINT64_MAX - 8, UINT64_MAX };
	struct jvm_options o = { .unread = true };
	struct jvm_memory m;
	struct library l;

	for (unsigned i = 0; i < JVM_SYMBOLS; i++) {
		for (unsigned k = 0; k < sizeof(values) / sizeof(*values); k++) {
			make_library(&l, &m);
			l.at[i] = values[k];
			jvm_flags_read(&m, &o);
			make_library(&l, &m);
			m.symbol[i] = values[k];
			assert_int_equal(jvm_flags_read(&m, &o), -EINVAL);
		}
	}
	o.unread = true;
	make_library(&l, &m);
	l.count = UINT64_MAX;
	assert_int_equal(jvm_flags_read(&m, &o), -EINVAL);
	make_library(&l, &m);
	l.values[0] = 2;
	assert_int_equal(jvm_flags_read(&m, &o), -EINVAL);
	make_library(&l, &m);
	l.flags[2].name = "other";
	assert_int_equal(jvm_flags_read(&m, &o), -ENOENT);
	make_library(&l, &m);
	l.types[1].size = 1 << 20;
	assert_int_equal(jvm_flags_read(&m, &o), -EINVAL);
	make_library(&l, &m);
	l.fields[1].offset = UINT64_MAX - 3;
	assert_int_equal(jvm_flags_read(&m, &o), -EINVAL);
	assert_true(o.unread);
}

static void test_quality(void **state)
{
	struct jvm jvm = { 0 };

	assert_int_equal(jvm_stacks_of(&jvm), JVM_STACKS_CUT);
	jvm.options.unread = true;
	assert_int_equal(jvm_stacks_of(&jvm), JVM_STACKS_UNKNOWN);
	jvm.options.frame_pointers = JVM_OFF;
	assert_int_equal(jvm_stacks_of(&jvm), JVM_STACKS_CUT);
	jvm.options.frame_pointers = JVM_ON;
	assert_int_equal(jvm_stacks_of(&jvm), JVM_STACKS_WHOLE);
	assert_string_equal(jvm_stacks_name(JVM_STACKS_CUT), "no_frame_pointers");
	assert_string_equal(jvm_stacks_name(JVM_STACKS_NONE), "");
	assert_int_equal(jvm_quality_of(NULL, 1), JVM_STACKS_NONE);
}

static void test_frozen(void **state)
{
	const char *controller = NULL;

	assert_string_equal(frozen_cgroup_path("0::/a/b:c", &controller), "/a/b:c");
	assert_string_equal(controller, "");
	assert_string_equal(frozen_cgroup_path("7:perf_event,freezer:/x", &controller), "/x");
	assert_string_equal(controller, "freezer");
	assert_string_equal(frozen_cgroup_path("7:freezer:/", &controller), "/");
	assert_null(frozen_cgroup_path("7:freezers:/x", &controller));
	assert_null(frozen_cgroup_path("7:memory:/freezer:/x", &controller));
	assert_null(frozen_cgroup_path("7:name=freezer:/x", &controller));
	assert_null(frozen_cgroup_path("0:", &controller));
	assert_null(frozen_cgroup_path("0::x", &controller));
	assert_null(frozen_cgroup_path("", &controller));
	assert_false(process_is_frozen(getpid()));
}

static void test_status(void **state)
{
	static const char text[] = "Name:\tjava\nState:\tT (stopped)\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNSpid:\t77\t1\n"
				   "SigCgt:\t2000000101005ccd\n";
	struct proc_status s;

	assert_int_equal(proc_status_parse(text, &s), 0);
	assert_int_equal(s.uid, 2);
	assert_int_equal(s.gid, 6);
	assert_int_equal(s.inner_pid, 1);
	assert_true(s.catches_quit && s.stopped);
	assert_int_equal(proc_status_parse("Name:\tx\nState:\tS\nUid:\t1\t2\nGid:\t5\t6\nNSpid:\t7\nSigCgt:\t2000000101005cc9\n", &s), 0);
	assert_false(s.catches_quit || s.stopped);
	assert_int_equal(proc_status_parse("Name:\tx\nUid:\t1\t2\nGid:\t5\t6\nNSpid:\t7\n", &s), 0);
	assert_false(s.catches_quit || s.stopped);
}

// Nothing is sent to what is no JVM.
static void test_wake(void **state)
{
	struct jvm_wake *w = jvm_wake_new();

	assert_non_null(w);
	assert_int_equal(jvm_wake_open(w, getpid(), NULL, NULL), -ENOENT);
	assert_int_equal(jvm_wake_open(w, 4194303, NULL, NULL), -ESRCH);
	for (unsigned i = 0; i < JVM_WAKE_COUNTS; i++)
		assert_int_equal(jvm_wake_count(w, i), 0);
	jvm_wake_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags),	    cmocka_unit_test(test_launcher), cmocka_unit_test(test_environment),
		cmocka_unit_test(test_files),	    cmocka_unit_test(test_no_jvm),   cmocka_unit_test(test_library),
		cmocka_unit_test(test_memory),	    cmocka_unit_test(test_hostile_memory),
		cmocka_unit_test(test_quality),	    cmocka_unit_test(test_frozen),   cmocka_unit_test(test_status),
		cmocka_unit_test(test_wake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
