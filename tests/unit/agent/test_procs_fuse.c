// SPDX-License-Identifier: Apache-2.0
// A FUSE file system whose server has stopped must not stop us, whoever has its files mapped. Needs root and /dev/fuse.
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/procs.h"
#include "common/clock.h"

// A file system of one file, "code", whose server answers until it is stopped.
static void fuse_reply(int fd, const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	struct {
		struct fuse_out_header header;
		uint8_t data[8192];
	} out = { .header = { .len = (uint32_t)(sizeof(out.header) + len), .error = error, .unique = in->unique } };

	memcpy(out.data, data, len);
	(void)!write(fd, &out, out.header.len);
}

static void fuse_serve(int fd)
{
	static union {
		struct fuse_in_header header;
		uint8_t bytes[1 << 20];
	} in;
	static const uint8_t page[4096] = { 0xc3 };
	const uint8_t *body = in.bytes + sizeof(in.header);

	while (read(fd, &in, sizeof(in)) > 0) {
		struct fuse_attr attr = { .ino = in.header.nodeid, .size = 4096, .mode = S_IFREG | 0755, .nlink = 1 };
		struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096, .max_background = 8 };
		struct fuse_entry_out entry = { .nodeid = 2, .attr = attr };
		struct fuse_attr_out attributes = { .attr = attr };
		struct fuse_open_out opened = { .fh = 1 };

		switch (in.header.opcode) {
		case FUSE_INIT:
			fuse_reply(fd, &in.header, 0, &init, sizeof(init));
			break;
		case FUSE_LOOKUP:
			entry.attr.ino = 2;
			fuse_reply(fd, &in.header, strcmp((const char *)body, "code") ? -ENOENT : 0, &entry,
				   strcmp((const char *)body, "code") ? 0 : sizeof(entry));
			break;
		case FUSE_GETATTR:
			if (in.header.nodeid == 1)
				attributes.attr.mode = S_IFDIR | 0755;
			fuse_reply(fd, &in.header, 0, &attributes, sizeof(attributes));
			break;
		case FUSE_OPEN:
			fuse_reply(fd, &in.header, 0, &opened, sizeof(opened));
			break;
		case FUSE_READ:
			fuse_reply(fd, &in.header, 0, page, sizeof(page));
			break;
		case FUSE_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			fuse_reply(fd, &in.header, in.header.opcode == FUSE_RELEASE || in.header.opcode == FUSE_FLUSH ? 0 : -ENOSYS,
				   NULL, 0);
		}
	}
	_exit(0);
}

static void test_server_stopped(void **state)
{
	struct symbolizer *symbolizer = symbolizer_new(NULL);
	struct procs *procs;
	struct error e;
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), file, stay[2], ready[2];
	char options[128], path[128], folder[] = "/tmp/test_procs_fuse.XXXXXX";
	struct procs_stats before, after;
	uint64_t address = 0, now;
	pid_t server, user;
	struct proc_map m;
	struct proc *p;

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	assert_non_null(mkdtemp(folder));
	if (fd < 0 || mount("test", folder, "fuse.test", MS_NOSUID, options)) {
		rmdir(folder);
		symbolizer_free(symbolizer);
		skip();
	}
	procs = procs_new(&(struct procs_options){ .symbolizer = symbolizer }, &e);
	assert_non_null(procs);
	server = fork();
	if (!server)
		fuse_serve(fd);
	close(fd);
	assert_int_equal(pipe2(stay, O_CLOEXEC) | pipe2(ready, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "%s/code", folder);
	user = fork();
	if (!user) {
		file = open(path, O_RDONLY | O_CLOEXEC);
		address = (uintptr_t)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
		close(stay[1]);
		(void)!write(ready[1], &address, sizeof(address));
		(void)!read(stay[0], &file, 1);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &address, sizeof(address)), sizeof(address));
	assert_true(address != (uintptr_t)MAP_FAILED);
	kill(server, SIGSTOP);
	procs_stats(procs, &before);
	now = clock_monotonic();
	alarm(20); // what waits for the server ends the test
	procs_touch(procs, user, now);
	assert_true(clock_monotonic() - now < 2000000000u);
	alarm(0);
	p = procs_find(procs, user, now);
	assert_true(proc_find_map(procs, p, address + 8, now, &m));
	assert_string_equal(m.path, path);
	assert_non_null(m.module); // by its path only
	assert_null(sym_module_build_id(m.module));
	procs_stats(procs, &after);
	assert_int_equal(after.missing_files, before.missing_files + 1);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	umount2(folder, MNT_DETACH);
	close(stay[1]);
	waitpid(user, NULL, 0);
	close(stay[0]);
	close(ready[0]);
	close(ready[1]);
	procs_free(procs);
	symbolizer_free(symbolizer);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server_stopped),
	};

	if (geteuid() || access("/dev/fuse", R_OK | W_OK)) {
		printf("skipped: needs root and /dev/fuse\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
