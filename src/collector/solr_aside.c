// SPDX-License-Identifier: Apache-2.0
#include "collector/solr_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/quote.h"
#include "common/when.h"

static void put_line(struct buf *to, const struct solr_batch *b, const struct solr_document *d, const char *when)
{
	buf_printf(to, "{\"at\":\"%s\",\"node\":", when);
	quote_append(to, d->node, strlen(d->node));
	buf_printf(to, ",\"why\":");
	quote_append(to, d->refused, strlen(d->refused));
	buf_printf(to, ",\"document\":");
	quote_append(to, (const char *)b->bytes.data + d->offset, d->size);
	buf_printf(to, "}\n");
}

static int open_file(const char *folder, size_t more, struct error *e)
{
	char path[4096], old[4096 + 8];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/" ASIDE_FILE, folder);
	snprintf(old, sizeof(old), "%s.old", path);
	if (!stat(path, &st) && (size_t)st.st_size + more > ASIDE_BYTES_MAX)
		rename(path, old);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? error_set(e, -errno, "cannot write to %.200s: %s", path, strerror(errno)) : fd;
}

int solr_aside(const char *folder, const struct solr_batch *b, uint64_t now, struct error *e)
{
	char when[WHEN_SIZE];
	struct buf lines = { 0 };
	int fd, err;

	if (!b->n_refused)
		return 0;
	when_text(now, when);
	for (unsigned i = 0; i < b->n; i++)
		if (b->document[i].refused)
			put_line(&lines, b, &b->document[i], when);
	fd = lines.error ? error_set(e, lines.error, "out of memory") : open_file(folder, lines.len, e);
	err = fd < 0 ? fd : 0;
	if (!err) {
		err = file_write_fd(fd, lines.data, lines.len);
		if (!err && fdatasync(fd))
			err = -errno;
		close(fd);
		if (err)
			error_set(e, err, "cannot write to %.200s/" ASIDE_FILE ": %s", folder, strerror(-err));
	}
	buf_free(&lines);
	return err;
}
