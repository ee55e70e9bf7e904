// SPDX-License-Identifier: Apache-2.0
// A file system of one file, `disk`, in memory, whose every read, write and sync takes a given time and which can be told
// to hang: with a loop device over it, a disk of a known latency. The file `control` takes lines
//   delay TIME    from now on each request takes so long
//   hang TIME     requests are answered only when this time is over (0 ends it at once)
// and tells the state and the numbers of requests as JSON when it is read.
#define FUSE_USE_VERSION 312

#include <errno.h>
#include <fuse.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"

enum {
	LINE_MAX_BYTES = 128,
	THREADS = 128,
};

struct counts {
	uint64_t reads, read_bytes, writes, write_bytes, syncs, spaces;
};

struct server {
	char *memory;
	uint64_t size;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t delay_ns, hang_until; // CLOCK_MONOTONIC; below too: under the lock
	unsigned waiting;
	struct counts counts;
};

static struct server *server(void)
{
	return fuse_get_context()->private_data;
}

static bool is_disk(const char *path)
{
	return strcmp(path, "/disk") == 0;
}

static bool is_control(const char *path)
{
	return strcmp(path, "/control") == 0;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

// The whole delay counts from the arrival, a hang on top of it.
static void take_time(struct server *s)
{
	uint64_t due = clock_monotonic();
	struct timespec t;

	pthread_mutex_lock(&s->lock);
	due += s->delay_ns;
	s->waiting++;
	while (clock_monotonic() < s->hang_until) {
		t = to_timespec(s->hang_until);
		pthread_cond_timedwait(&s->changed, &s->lock, &t);
	}
	pthread_mutex_unlock(&s->lock);
	t = to_timespec(due);
	prctl(PR_SET_TIMERSLACK, 1);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
	pthread_mutex_lock(&s->lock);
	s->waiting--;
	pthread_mutex_unlock(&s->lock);
}

static void count(struct server *s, uint64_t *requests, uint64_t *bytes, size_t n)
{
	pthread_mutex_lock(&s->lock);
	*requests += 1;
	if (bytes)
		*bytes += n;
	pthread_mutex_unlock(&s->lock);
}

static size_t within(const struct server *s, size_t size, off_t offset)
{
	if (offset < 0 || (uint64_t)offset >= s->size)
		return 0;
	return s->size - (uint64_t)offset < size ? (size_t)(s->size - (uint64_t)offset) : size;
}

static void *op_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	config->kernel_cache = 0;
	config->nullpath_ok = 0;
	puts("ready");
	fflush(stdout);
	return server();
}

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	memset(st, 0, sizeof(*st));
	st->st_nlink = 1;
	st->st_mode = S_IFREG | 0600;
	if (strcmp(path, "/") == 0) {
		st->st_mode = S_IFDIR | 0700;
		st->st_nlink = 2;
	} else if (is_disk(path)) {
		st->st_size = (off_t)server()->size;
	} else if (!is_control(path)) {
		return -ENOENT;
	}
	return 0;
}

static int op_readdir(const char *path, void *out, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *fi,
	enum fuse_readdir_flags flags)
{
	static const char *const names[] = {".", "..", "disk", "control"};

	if (strcmp(path, "/") != 0)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fill(out, names[i], NULL, 0, 0);
	return 0;
}

// Past the page cache, so that each request of the loop device is a request here.
static int op_open(const char *path, struct fuse_file_info *fi)
{
	if (!is_disk(path) && !is_control(path))
		return -ENOENT;
	fi->direct_io = 1;
	return 0;
}

static int read_control(struct server *s, char *out, size_t size, off_t offset)
{
	char text[512];
	struct counts c;
	uint64_t delay;
	unsigned waiting;
	int n;

	pthread_mutex_lock(&s->lock);
	c = s->counts;
	delay = s->delay_ns;
	waiting = s->waiting;
	pthread_mutex_unlock(&s->lock);
	n = snprintf(text, sizeof(text),
		"{\"delay_ns\": %" PRIu64 ", \"waiting\": %u, \"reads\": %" PRIu64 ", \"read_bytes\": %" PRIu64
		", \"writes\": %" PRIu64 ", \"write_bytes\": %" PRIu64 ", \"syncs\": %" PRIu64 ", \"spaces\": %" PRIu64 "}\n",
		delay, waiting, c.reads, c.read_bytes, c.writes, c.write_bytes, c.syncs, c.spaces);
	if (offset >= n)
		return 0;
	n -= (int)offset;
	n = (size_t)n < size ? n : (int)size;
	memcpy(out, text + offset, (size_t)n);
	return n;
}

static int op_read(const char *path, char *out, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct server *s = server();

	if (is_control(path))
		return read_control(s, out, size, offset);
	take_time(s);
	size = within(s, size, offset);
	memcpy(out, s->memory + offset, size);
	count(s, &s->counts.reads, &s->counts.read_bytes, size);
	return (int)size;
}

static int obey(struct server *s, const char *line)
{
	char verb[16], value[32];
	uint64_t ns;

	if (sscanf(line, "%15s %31s", verb, value) != 2 || text_duration(value, verb, &ns, NULL))
		return -EINVAL;
	if (strcmp(verb, "delay") && strcmp(verb, "hang"))
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	if (verb[0] == 'd')
		s->delay_ns = ns;
	else
		s->hang_until = ns ? clock_monotonic() + ns : 0;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int op_write(const char *path, const char *in, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct server *s = server();
	char line[LINE_MAX_BYTES];
	int r;

	if (is_control(path)) {
		snprintf(line, sizeof(line), "%.*s", (int)(size < sizeof(line) ? size : sizeof(line) - 1), in);
		r = obey(s, line);
		return r ? r : (int)size;
	}
	take_time(s);
	size = within(s, size, offset);
	if (size == 0)
		return -ENOSPC;
	memcpy(s->memory + offset, in, size);
	count(s, &s->counts.writes, &s->counts.write_bytes, size);
	return (int)size;
}

static int op_fsync(const char *path, int only_data, struct fuse_file_info *fi)
{
	struct server *s = server();

	if (is_control(path))
		return 0;
	take_time(s);
	count(s, &s->counts.syncs, NULL, 0);
	return 0;
}

static int op_fallocate(const char *path, int mode, off_t offset, off_t length, struct fuse_file_info *fi)
{
	struct server *s = server();
	size_t n;

	if (!is_disk(path) || length <= 0 || !(mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)))
		return -EOPNOTSUPP;
	take_time(s);
	n = within(s, (size_t)length, offset);
	memset(s->memory + offset, 0, n);
	count(s, &s->counts.spaces, NULL, 0);
	return 0;
}

static int op_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	return is_control(path) ? 0 : -EPERM;
}

static const struct fuse_operations operations = {
	.init = op_init,
	.getattr = op_getattr,
	.readdir = op_readdir,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.fsync = op_fsync,
	.fallocate = op_fallocate,
	.truncate = op_truncate,
};

static int serve(struct fuse *f, const char *mount_point)
{
	struct fuse_session *session = fuse_get_session(f);
	struct fuse_loop_config *config;
	int r;

	if (fuse_mount(f, mount_point))
		return -EIO;
	config = fuse_loop_cfg_create();
	if (!config || fuse_set_signal_handlers(session)) {
		r = -ENOMEM;
		goto out;
	}
	fuse_loop_cfg_set_max_threads(config, THREADS);
	r = fuse_loop_mt(f, config);
	r = r > 0 ? 0 : r; // a positive value is the signal that ended it
	fuse_remove_signal_handlers(session);
out:
	if (config)
		fuse_loop_cfg_destroy(config);
	fuse_unmount(f);
	return r;
}

static int start(struct server *s, const char *mount_point)
{
	char name[] = "slowfs", option[] = "-ofsname=slowfs,default_permissions";
	char *argv[] = {name, option, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, argv);
	pthread_condattr_t attributes;
	struct fuse *f;
	int r;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attributes);
	s->memory = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->memory == MAP_FAILED)
		return -errno;
	f = fuse_new(&args, &operations, sizeof(operations), s);
	r = f ? serve(f, mount_point) : -EIO;
	if (f)
		fuse_destroy(f);
	fuse_opt_free_args(&args);
	munmap(s->memory, s->size);
	return r;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"size", required_argument, NULL, 's'}, {"delay", required_argument, NULL, 'd'}, {0},
	};
	struct server s = {.size = 256 << 20, .delay_ns = 1000000};
	struct error e = {{0}};
	int c, r = 0;

	while (!r && (c = getopt_long(argc, argv, "s:d:", long_options, NULL)) != -1) {
		if (c == 's')
			r = text_size(optarg, "--size", &s.size, &e);
		else if (c == 'd')
			r = text_duration(optarg, "--delay", &s.delay_ns, &e);
		else
			r = error_set(&e, -EINVAL, "usage: slowfs [--size SIZE] [--delay TIME] MOUNTPOINT");
	}
	if (!r && argc - optind != 1)
		r = error_set(&e, -EINVAL, "usage: slowfs [--size SIZE] [--delay TIME] MOUNTPOINT");
	if (!r) {
		r = start(&s, argv[optind]);
		if (r)
			error_set(&e, r, "cannot serve %s: %s", argv[optind], strerror(-r));
	}
	if (r)
		fprintf(stderr, "slowfs: %s\n", e.text);
	return r ? 1 : 0;
}
