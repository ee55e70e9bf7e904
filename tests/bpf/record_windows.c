// SPDX-License-Identifier: Apache-2.0
// Records N windows of S seconds without a gap and writes window I to PREFIX.I.pb.gz; window N is the rest, until the
// standard input ends. Prints "ready" when it counts. As the agent will, through the same library.
// Arguments: PREFIX SECONDS N RATE [PID]
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/recorder.h"
#include "common/clock.h"
#include "common/file.h"

static int write_window(const char *prefix, unsigned i, struct buf *gz, struct error *e)
{
	char path[4096];
	int err;

	snprintf(path, sizeof(path), "%s.%u.pb.gz", prefix, i);
	err = file_write_atomic(path, gz->data, gz->len, e);
	buf_free(gz);
	return err;
}

static bool input_ended(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char c;

	return poll(&p, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

static int record(struct recorder *r, const char *prefix, uint64_t length, unsigned n, struct error *e)
{
	uint64_t next;
	struct buf gz = { 0 };
	int err = recorder_start(r, e);

	if (err)
		return err;
	puts("ready");
	fflush(stdout);
	next = clock_monotonic() + length;
	for (unsigned i = 0; i < n; i++, next += length) {
		while (clock_monotonic() < next) {
			err = recorder_poll(r, 20);
			if (err < 0)
				return err;
		}
		err = recorder_window(r, &gz, e);
		if (!err)
			err = write_window(prefix, i, &gz, e);
		if (err)
			return err;
	}
	while (!input_ended()) {
		err = recorder_poll(r, 20);
		if (err < 0)
			return err;
	}
	err = recorder_stop(r, e);
	if (!err)
		err = recorder_profile(r, &gz, e);
	return err ? err : write_window(prefix, n, &gz, e);
}

int main(int argc, char **argv)
{
	struct recorder_options o = { 0 };
	struct error e = { "" };
	struct recorder *r;
	int err;

	if (argc < 5)
		return 2;
	o.rate = (uint32_t)atoi(argv[4]);
	if (argc > 5) {
		o.filter.n_pid = 1;
		o.filter.pid[0] = atoi(argv[5]);
	}
	err = recorder_new(&o, &r, &e);
	if (!err) {
		err = record(r, argv[1], (uint64_t)(atof(argv[2]) * 1e9), (unsigned)atoi(argv[3]), &e);
		recorder_free(r);
	}
	if (err)
		fprintf(stderr, "record_windows: %s (%s)\n", e.text, strerror(-err));
	return err ? 1 : 0;
}
