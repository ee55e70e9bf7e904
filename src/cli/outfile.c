// SPDX-License-Identifier: Apache-2.0
#include "cli/outfile.h"

#include <string.h>

int outfile_open(struct outfile *o, const char *path, struct error *e)
{
	o->standard = !path || !strcmp(path, "-");
	o->fd = 1;
	if (!o->standard) {
		int err = file_atomic_open(&o->file, path, e);

		if (err)
			return err;
		o->fd = o->file.fd;
	}
	return 0;
}

int outfile_write(void *output, const void *data, size_t len)
{
	struct outfile *o = output;

	return file_write_fd(o->fd, data, len);
}

int outfile_close(struct outfile *o, int keep, struct error *e)
{
	return o->standard ? 0 : file_atomic_close(&o->file, keep, e);
}
