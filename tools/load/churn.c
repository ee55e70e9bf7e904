// SPDX-License-Identifier: Apache-2.0
// Programs, threads and libraries that come and go while they do block I/O: what is hard on whoever follows them.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "pace.h"

enum {
	BLOCK = 4096,
	AT_ONCE = 8, // processes, threads or libraries
	CODE_PAGES = 16,
};

struct churn {
	const char *self, *file, *module;
	int fd;
	uint64_t blocks; // of the file
	uint64_t rounds, failed;
	unsigned live;
	struct library {
		void *handle;
		void (*call)(void (*)(void *), void *);
	} libraries[AT_ONCE];
};

extern char **environ;

static __attribute__((noinline)) int churn_read(int fd, uint64_t block)
{
	static __thread char memory[2 * BLOCK];
	char *aligned = (char *)(((uintptr_t)memory + BLOCK - 1) & ~(uintptr_t)(BLOCK - 1));
	ssize_t n = pread(fd, aligned, BLOCK, (off_t)(block * BLOCK));

	return n == BLOCK ? 0 : -1;
}

static int target_open(struct churn *c)
{
	off_t size;

	c->fd = open(c->file, O_RDONLY | O_DIRECT | O_CLOEXEC);
	size = c->fd < 0 ? -1 : lseek(c->fd, 0, SEEK_END);
	if (size < 0)
		return -1;
	c->blocks = (uint64_t)size / BLOCK;
	errno = ENODATA;
	return c->blocks ? 0 : -1;
}

static uint64_t block_of(const struct churn *c)
{
	return (c->rounds * 0x9e3779b97f4a7c15u >> 16) % c->blocks;
}

// --- processes ------------------------------------------------------------------------------------------------------

static void reap(struct churn *c, unsigned most)
{
	int status;

	while (c->live > most && waitpid(-1, &status, 0) > 0)
		c->live--;
	while (c->live && waitpid(-1, &status, WNOHANG) > 0)
		c->live--;
}

static void child_reads(const struct churn *c)
{
	_exit(churn_read(c->fd, block_of(c)) ? 1 : 0);
}

static pid_t spawn_reader(const struct churn *c)
{
	char *arguments[] = { (char *)c->self, "once", (char *)c->file, NULL };
	pid_t pid;

	return posix_spawn(&pid, c->self, NULL, NULL, arguments, environ) ? -1 : pid;
}

static void leave_orphan(const struct churn *c)
{
	if (!fork())
		child_reads(c);
	_exit(0);
}

static void read_until_killed(const struct churn *c)
{
	prctl(PR_SET_NAME, "churn killed");
	for (uint64_t i = 0;; i++)
		churn_read(c->fd, (block_of(c) + i) % c->blocks);
}

// Executed, forked, forked with an orphan, killed in the middle of its reads.
static int churn_process(struct churn *c)
{
	unsigned kind = c->rounds % 4;
	pid_t pid = kind ? fork() : spawn_reader(c);

	if (pid < 0)
		return -1;
	if (!pid) {
		if (kind == 1)
			child_reads(c);
		else if (kind == 2)
			leave_orphan(c);
		else
			read_until_killed(c);
	}
	c->live += kind == 2 ? 2 : 1; // orphans come to us, their reaper
	if (kind == 3) {
		usleep(200);
		kill(pid, SIGKILL);
	}
	reap(c, AT_ONCE - 1);
	return 0;
}

// --- threads --------------------------------------------------------------------------------------------------------

static void *thread_reads(void *context)
{
	const struct churn *c = context;
	char name[16];

	snprintf(name, sizeof(name), "churn-%u", (unsigned)(c->rounds % 1000));
	pthread_setname_np(pthread_self(), name);
	return churn_read(c->fd, block_of(c)) ? context : NULL;
}

static int churn_thread(struct churn *c)
{
	pthread_t threads[AT_ONCE];
	unsigned n = 0;
	int failed = 0;
	void *result;

	while (n < AT_ONCE && !pthread_create(&threads[n], NULL, thread_reads, c))
		n++;
	failed = n < AT_ONCE;
	for (unsigned i = 0; i < n; i++)
		failed |= pthread_join(threads[i], &result) || result;
	return failed ? -1 : 0;
}

// --- libraries ------------------------------------------------------------------------------------------------------

struct library_read {
	struct churn *c;
	int result;
};

static void library_reads(void *context)
{
	struct library_read *r = context;

	r->result = churn_read(r->c->fd, block_of(r->c));
}

static int copy_module(const char *from, const char *to)
{
	struct buf b = { 0 };
	int fd, err = file_read(from, 16u << 20, &b);

	if (!err) {
		fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
		err = fd < 0 ? -errno : file_write_fd(fd, b.data, b.len);
		if (fd >= 0)
			close(fd);
	}
	buf_free(&b);
	return err;
}

// Code that is mapped for a moment: from a file, and as a compiler at run time has it.
static void map_code(const struct churn *c)
{
	int fd = open(c->module, O_RDONLY | O_CLOEXEC);
	void *file, *memory;

	file = fd < 0 ? MAP_FAILED : mmap(NULL, BLOCK, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	memory = mmap(NULL, CODE_PAGES * BLOCK, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
		munmap(memory, CODE_PAGES * BLOCK);
	if (file != MAP_FAILED)
		munmap(file, BLOCK);
	if (fd >= 0)
		close(fd);
}

// A new library, deleted as soon as it is loaded, that calls back to read; the oldest one goes.
static int churn_library(struct churn *c)
{
	struct library *l = &c->libraries[c->rounds % AT_ONCE];
	struct library_read r = { .c = c };
	char path[512];

	if (l->handle)
		dlclose(l->handle);
	l->handle = NULL;
	snprintf(path, sizeof(path), "%s.churn-%d-%" PRIu64 ".so", c->file, getpid(), c->rounds);
	if (copy_module(c->module, path))
		return -1;
	l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	map_code(c);
	if (!l->handle)
		return -1;
	*(void **)&l->call = dlsym(l->handle, "module_call");
	if (!l->call)
		return -1;
	l->call(library_reads, &r);
	return r.result;
}

// --------------------------------------------------------------------------------------------------------------------

static void usage(FILE *out)
{
	fputs("usage: churn [-r PER_SECOND] [-s SECONDS] [-m MODULE] KIND FILE\n"
	      "Reads blocks of FILE from what comes and goes, and prints how many rounds there were as JSON.\n"
	      "  KIND                 processes, threads (8 in a round), libraries (copies of MODULE beside FILE), or once\n"
	      "  -r, --rate NUMBER    rounds per second (100)\n"
	      "  -s, --seconds TIME   how long (1)\n"
	      "  -m, --module PATH    a library with module_call\n", out);
}

static int once(const char *file)
{
	struct churn c = { .file = file, .rounds = (uint64_t)getpid() };

	return target_open(&c) || churn_read(c.fd, block_of(&c)) ? 1 : 0;
}

static void churn(struct churn *c, int (*round)(struct churn *c), uint64_t rate, uint64_t duration)
{
	uint64_t start = clock_monotonic(), due = start;

	for (; due < start + duration && clock_monotonic() < start + duration; due += 1000000000u / rate) {
		pace_until(due);
		if (round(c))
			c->failed++;
		c->rounds++;
	}
	reap(c, 0);
}

static int parse(int argc, char **argv, struct churn *c, uint64_t *ret_rate, uint64_t *ret_duration)
{
	static const struct option options[] = {
		{ "rate", required_argument, NULL, 'r' }, { "seconds", required_argument, NULL, 's' },
		{ "module", required_argument, NULL, 'm' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	struct error e;
	int option, err = 0;

	while (!err && (option = getopt_long(argc, argv, "+r:s:m:h", options, NULL)) != -1) {
		if (option == 'r')
			err = text_number(optarg, 1, 1000000, "--rate", ret_rate, &e);
		else if (option == 's')
			err = text_duration(optarg, "--seconds", ret_duration, &e);
		else if (option == 'm')
			c->module = optarg;
		else if (option == 'h')
			return usage(stdout), exit(0), 0;
		else
			return usage(stderr), -EINVAL;
	}
	if (err) {
		fprintf(stderr, "churn: %s\n", e.text);
		return err;
	}
	if (argc - optind != 2)
		return usage(stderr), -EINVAL;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*round)(struct churn *c);
	} kinds[] = { { "processes", churn_process }, { "threads", churn_thread }, { "libraries", churn_library } };
	uint64_t rate = 100, duration = 1000000000u;
	char self[4096];
	struct churn c = { .self = self };
	ssize_t len;

	if (argc == 3 && !strcmp(argv[1], "once"))
		return once(argv[2]);
	if (parse(argc, argv, &c, &rate, &duration))
		return 2;
	c.file = argv[optind + 1];
	// By its name: run through /proc a program is called "exe".
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[len > 0 ? len : 0] = 0;
	if (target_open(&c)) {
		fprintf(stderr, "churn: cannot read %s directly: %s\n", c.file, strerror(errno));
		return 1;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(argv[optind], kinds[i].name))
			continue;
		if (kinds[i].round == churn_library && !c.module) {
			fputs("churn: libraries need --module\n", stderr);
			return 2;
		}
		churn(&c, kinds[i].round, rate, duration);
		printf("{\"kind\":\"%s\",\"rounds\":%" PRIu64 ",\"failed\":%" PRIu64 "}\n", kinds[i].name, c.rounds, c.failed);
		return 0;
	}
	fprintf(stderr, "churn: no such kind: %s\n", argv[optind]);
	return 2;
}
