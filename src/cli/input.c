// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/fetch.h"
#include "common/file.h"
#include "common/text.h"

int option_set_size(const struct option_spec *spec, void *target, char *value, struct error *e)
{
	char least[32], most[32];
	uint64_t v;

	if (text_size(value, "size", &v, e))
		return error_set(e, -EINVAL, "'%.60s' is not a size; allowed: a number with K, M, G, KiB, MiB or GiB", value);
	if (v < spec->min || v > spec->max)
		return error_set(e, -EINVAL, "'%.60s' is out of range; allowed: %s to %s", value,
				 text_bytes(least, sizeof(least), (double)spec->min),
				 text_bytes(most, sizeof(most), (double)spec->max));
	*(uint64_t *)target = v;
	return 0;
}

// A file that has no name and is gone with its descriptor.
static int temporary(struct error *e)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	FILE *f;

	if (fd >= 0)
		return fd;
	f = tmpfile();
	fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 3) : -1;
	if (f)
		fclose(f);
	return fd >= 0 ? fd : error_set(e, -errno, "cannot make a temporary file: %s; set TMPDIR", strerror(errno));
}

static int copy(int from, int to, uint64_t max, struct error *e)
{
	char *piece = malloc(64 << 10), limit[32];
	uint64_t total = 0;
	ssize_t n;
	int err = piece ? 0 : error_set(e, -ENOMEM, "out of memory");

	while (!err && (n = read(from, piece, 64 << 10)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = error_set(e, -errno, "cannot read: %s", strerror(errno));
			break;
		}
		total += (uint64_t)n;
		if (total > max)
			err = error_set(e, -EFBIG, "it has more than %s; raise the limit with --max-size",
					text_bytes(limit, sizeof(limit), (double)max));
		if (!err) {
			err = file_write_fd(to, piece, (size_t)n);
			if (err)
				error_set(e, err, "cannot write to a temporary file: %s", strerror(-err));
		}
	}
	free(piece);
	return err;
}

// Hands on fd when it is a regular file at its beginning, else a copy.
static int seekable(int fd, uint64_t max, int *ret, struct error *e)
{
	struct stat st;
	int to, err;

	if (fstat(fd, &st))
		return error_set(e, -errno, "cannot read: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return error_set(e, -EISDIR, "it is a folder");
	if (S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0) {
		*ret = fd;
		return 0;
	}
	to = temporary(e);
	if (to < 0)
		return to;
	err = copy(fd, to, max, e);
	close(err ? to : fd);
	if (!err)
		*ret = to;
	return err;
}

static int open_file(const char *name, uint64_t max, int *ret, struct error *e)
{
	bool standard = !strcmp(name, "-");
	int fd, err;

	fd = standard ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set(e, -errno, "%.200s: cannot open: %s", standard ? "standard input" : name, strerror(errno));
	err = seekable(fd, max, ret, e);
	if (!err)
		return 0;
	close(fd);
	return error_prefix(e, err, "%.200s", standard ? "standard input" : name);
}

static int open_url(const char *url, uint64_t max, int *ret, struct error *e)
{
	int fd = temporary(e), err;

	if (fd < 0)
		return fd;
	err = fetch(url, fd, max, e);
	if (err)
		close(fd);
	else
		*ret = fd;
	return err;
}

static int open_one(const char *name, uint64_t max, struct inputs *in, struct error *e)
{
	struct pprof_source *s = &in->sources[in->n];
	int err;

	if (!fetch_is_url(name)) {
		in->names[in->n] = strcmp(name, "-") ? name : "standard input";
		err = open_file(name, max, &s->fd, e);
	} else {
		in->made[in->n] = fetch_display(name);
		if (!in->made[in->n])
			return error_set(e, -ENOMEM, "out of memory");
		in->names[in->n] = in->made[in->n];
		err = open_url(name, max, &s->fd, e);
		if (err)
			free(in->made[in->n]);
	}
	if (!err)
		in->n++;
	return err;
}

int inputs_open(const struct arguments *a, uint64_t max, struct inputs *ret, struct error *e)
{
	size_t n = (size_t)a->n;
	struct inputs in = { calloc(n, sizeof(*in.sources)), calloc(n, sizeof(*in.names)), calloc(n, sizeof(*in.made)), 0 };
	int err = in.sources && in.names && in.made ? 0 : error_set(e, -ENOMEM, "out of memory");

	for (size_t i = 0; i < n && !err; i++)
		err = open_one(a->v[i], max, &in, e);
	if (err)
		inputs_close(&in);
	else
		*ret = in;
	return err;
}

void inputs_close(struct inputs *in)
{
	for (size_t i = 0; i < in->n; i++) {
		close(in->sources[i].fd);
		free(in->made[i]);
	}
	free(in->sources);
	free(in->names);
	free(in->made);
	memset(in, 0, sizeof(*in));
}

int inputs_explain(const char *name, int err, struct error *e)
{
	if (err == -E2BIG)
		error_set(e, err, "%.400s; raise it with --memory", strdupa(e->text));
	else if (err == -EFBIG && strstr(e->text, "limit of") && !strstr(e->text, "for one"))
		error_set(e, err, "%.400s; raise it with --max-size", strdupa(e->text));
	return name ? error_prefix(e, err, "%.200s", name) : err;
}
