// SPDX-License-Identifier: Apache-2.0
#include "cli/record_output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/hostinfo.h"
#include "common/file.h"
#include "common/text.h"

// The pid keeps two recordings of the same second apart.
static void default_path(char *out, size_t cap, const char *node)
{
	char host[HOST_NAME_MAX + 1] = "", name[65], stamp[32];
	time_t now = time(NULL);
	struct tm utc;

	gethostname(host, sizeof(host) - 1);
	hostinfo_node_name(node ? node : host, name, sizeof(name));
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
	snprintf(out, cap, "blkprof-%s-%s-%d.pb.gz", name, stamp, (int)getpid());
}

static bool own_terminal(int fd)
{
	return isatty(fd) && tcgetpgrp(fd) == getpgrp();
}

int output_choose(struct record_output *o, const char *file, const char *node, bool command, struct error *e)
{
	o->progress = !command && own_terminal(STDERR_FILENO);
	if (!file)
		default_path(o->path, sizeof(o->path), node);
	else if ((size_t)snprintf(o->path, sizeof(o->path), "%s", file) >= sizeof(o->path))
		return error_set(e, -EINVAL, "option --output: the path is longer than %d bytes; allowed: a shorter one", PATH_MAX - 1);
	if (strcmp(o->path, "-"))
		return file_check_writable(o->path, e);
	if (isatty(STDOUT_FILENO))
		return error_set(e, -EINVAL, "option --output: '-' is a terminal here, and a profile is no text; allowed: a file, or "
					     "standard output into a pipe or a file");
	return 0;
}

int output_write(const struct record_output *o, const void *data, size_t len, struct error *e)
{
	int err;

	if (strcmp(o->path, "-"))
		return file_write_atomic(o->path, data, len, e);
	err = file_write_fd(STDOUT_FILENO, data, len);
	return err ? error_set(e, err, "cannot write the profile to standard output: %s; name a file with -o", strerror(-err)) : 0;
}

static uint64_t lost(struct recorder *r)
{
	uint64_t n = 0;

	for (unsigned cause = 0; cause < LOSS_CAUSES; cause++)
		n += recorder_loss(r, cause);
	return n;
}

void output_attaching(const struct record_output *o)
{
	if (o->progress)
		fprintf(stderr, "attaching the probes...");
}

void output_progress(const struct record_output *o, struct recorder *r, uint64_t elapsed_ns, uint64_t duration_ns)
{
	char reads[32], writes[32], others[32], read_bytes[32], written[32], of[32] = "", losses[48] = "";
	struct recorder_totals t;
	uint64_t other = 0, n;

	if (!o->progress)
		return;
	recorder_get_totals(r, &t);
	for (unsigned op = OP_FLUSH; op < OP_CLASSES; op++)
		other += t.ops[op];
	if (duration_ns)
		snprintf(of, sizeof(of), " of %.0f", (double)duration_ns / 1e9);
	n = lost(r);
	if (n)
		snprintf(losses, sizeof(losses), ", %s losses", text_count(reads, sizeof(reads), n));
	fprintf(stderr, "\r%.0f%s s: %s reads (%s), %s writes (%s), %s others%s%s\033[K", (double)elapsed_ns / 1e9, of,
		text_count(reads, sizeof(reads), t.ops[OP_READ]),
		text_bytes(read_bytes, sizeof(read_bytes), (double)t.bytes[OP_READ]),
		text_count(writes, sizeof(writes), t.ops[OP_WRITE]),
		text_bytes(written, sizeof(written), (double)t.bytes[OP_WRITE]), text_count(others, sizeof(others), other), losses,
		duration_ns ? "" : "; Ctrl-C ends");
	fflush(stderr);
}

void output_clear_progress(const struct record_output *o)
{
	if (o->progress)
		fprintf(stderr, "\r\033[K");
}

void output_report(const struct record_output *o, struct recorder *r, unsigned heaviest, size_t size)
{
	struct buf text = { 0 };
	char bytes[32];

	if (recorder_report(r, heaviest, &text))
		fprintf(stderr, "blkprof record: no memory for the report\n");
	else
		fwrite(text.data, 1, text.len, stderr);
	if (strcmp(o->path, "-"))
		fprintf(stderr, "wrote %s (%s, backend %s)\n", o->path, text_bytes(bytes, sizeof(bytes), (double)size),
			recorder_backend(r));
	buf_free(&text);
}
