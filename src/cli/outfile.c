// SPDX-License-Identifier: Apache-2.0
#include "cli/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int outfile_open(struct outfile *o, const char *path, struct error *e)
{
	struct stat st;
	mode_t mask;

	*o = (struct outfile){ .fd = 1 };
	if (!path || !strcmp(path, "-"))
		return 0;
	o->path = path;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return o->fd >= 0 ? 0 : error_set(e, -errno, "%.200s: cannot open: %s", path, strerror(errno));
	}
	if (asprintf(&o->temporary, "%s.XXXXXX", path) < 0) {
		o->temporary = NULL;
		return error_set(e, -ENOMEM, "out of memory");
	}
	o->fd = mkostemp(o->temporary, O_CLOEXEC);
	if (o->fd < 0) {
		int err = errno;

		free(o->temporary);
		return error_set(e, -err, "%.200s: cannot be created: %s; give another place with -o", path, strerror(err));
	}
	mask = umask(0);
	umask(mask);
	if (fchmod(o->fd, 0666 & ~mask)) {
		// A file system without modes: the file stays as it was made.
	}
	return 0;
}

int outfile_write(void *output, const void *data, size_t len)
{
	struct outfile *o = output;
	const char *p = data;

	while (len) {
		ssize_t n = write(o->fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int outfile_close(struct outfile *o, int keep, struct error *e)
{
	int err = 0;

	if (!o->path)
		return 0;
	if (keep && o->temporary && (fsync(o->fd) || rename(o->temporary, o->path)))
		err = error_set(e, -errno, "%.200s: cannot be written: %s", o->path, strerror(errno));
	if (o->temporary && (!keep || err))
		unlink(o->temporary);
	if (close(o->fd) && keep && !err)
		err = error_set(e, -errno, "%.200s: cannot be written: %s", o->path, strerror(errno));
	free(o->temporary);
	return err;
}
