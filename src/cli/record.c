// SPDX-License-Identifier: Apache-2.0
// blkprof record: one recording of this node, or of a command.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/privileges.h"
#include "cli/record_command.h"
#include "cli/record_options.h"
#include "cli/record_output.h"
#include "cli/signals.h"
#include "common/clock.h"

#define POLL_MS 100
#define PROGRESS_NS 500000000u
#define HEAVIEST 10 // stacks of the report

struct recording {
	const struct record_options *o;
	struct recorder *recorder;
	struct record_command command;
	struct record_output output;
};

// Exit status of a failure of our own.
static int broken(const struct recording *r)
{
	return r->o->command.n ? STATUS_BROKEN : STATUS_FAILED;
}

static int fail(const struct recording *r, int status, const struct error *e)
{
	output_clear_progress(&r->output);
	return command_error("record", status, e);
}

static int resolve_filter(struct recording *r, struct filter *ret, struct error *e)
{
	struct devices *devices = devices_new(NULL, e);
	int err;

	if (!devices)
		return -ENOMEM;
	err = filter_resolve(&r->o->filter, devices, ret, e);
	devices_free(devices);
	return err;
}

static void configure(const struct recording *r, struct recorder_options *ro)
{
	const struct record_options *o = r->o;

	ro->backend = o->backend;
	ro->rate = o->rate;
	ro->cpu_hz = o->cpu_hz;
	ro->kernel_stacks = o->kernel_stacks;
	ro->frame_pointers = o->unwind == 1;
	ro->labels = o->labels;
	ro->root = o->root;
	ro->node = o->node;
	ro->follow = o->command.n && !o->all;
	ro->command = ro->follow ? r->command.pid : 0;
}

// What can be refused is refused here, before any probe is in place. Returns 0 or the exit status.
static int prepare(struct recording *r)
{
	struct recorder_options ro = { 0 };
	struct error e = { 0 };
	int err;

	err = output_choose(&r->output, r->o->output, r->o->node, r->o->command.n, &e);
	if (err)
		return fail(r, command_status(err) == STATUS_USAGE ? STATUS_USAGE : broken(r), &e);
	err = resolve_filter(r, &ro.filter, &e);
	if (err)
		return fail(r, command_status(err) == STATUS_USAGE ? STATUS_USAGE : broken(r), &e);
	if (r->o->command.n && command_fork(&r->command, r->o->command.v, &e))
		return fail(r, broken(r), &e);
	configure(r, &ro);
	output_attaching(&r->output);
	err = recorder_new(&ro, &r->recorder, &e);
	if (err)
		privileges_explain(err, &e);
	return err ? fail(r, broken(r), &e) : 0;
}

static int interrupted(const struct recording *r)
{
	struct error e;

	error_set(&e, 0, "interrupted before the recording began; nothing was written");
	return fail(r, broken(r), &e);
}

static int begin(struct recording *r)
{
	struct error e = { 0 };
	int status;

	if (signals_stop())
		return interrupted(r);
	if (recorder_start(r->recorder, &e))
		return fail(r, broken(r), &e);
	if (!r->o->command.n)
		return 0;
	status = command_go(&r->command, r->o->command.v, &e);
	return status ? fail(r, status, &e) : 0;
}

static bool finished(const struct recording *r)
{
	return r->o->command.n ? command_ended(&r->command) : signals_stop();
}

static int wait_time(uint64_t now, uint64_t end)
{
	uint64_t ms = (end - now + 999999) / 1000000;

	return ms < POLL_MS ? (int)ms : POLL_MS;
}

static int poll_until_end(struct recording *r)
{
	uint64_t start = clock_monotonic(), shown = start, now = start;
	uint64_t end = r->o->duration_ns ? start + r->o->duration_ns : UINT64_MAX;
	struct error e;
	int err;

	for (; now < end && !finished(r); now = clock_monotonic()) {
		err = recorder_poll(r->recorder, wait_time(now, end));
		if (err < 0 && err != -EINTR) {
			error_set(&e, err, "cannot read what the kernel recorded: %s; try again, and with a lower --rate",
				  strerror(-err));
			return fail(r, broken(r), &e);
		}
		if (now - shown >= PROGRESS_NS) {
			output_progress(&r->output, r->recorder, now - start, r->o->duration_ns);
			shown = now;
		}
	}
	output_clear_progress(&r->output);
	return 0;
}

static int write_profile(struct recording *r)
{
	struct buf gz = { 0 };
	struct error e = { 0 };
	int status = 0;

	if (recorder_profile(r->recorder, &gz, &e) || output_write(&r->output, gz.data, gz.len, &e))
		status = fail(r, broken(r), &e);
	else
		output_report(&r->output, r->recorder, HEAVIEST, gz.len);
	buf_free(&gz);
	return status;
}

static int record(struct recording *r)
{
	struct error e = { 0 };
	int status = prepare(r);

	if (!status)
		status = begin(r);
	if (!status)
		status = poll_until_end(r);
	if (status)
		return status;
	if (recorder_stop(r->recorder, &e))
		return fail(r, broken(r), &e);
	return write_profile(r);
}

static int run(const void *options)
{
	struct recording r = { .o = options };
	int status, ended = 0;

	signals_install(r.o->command.n > 0);
	status = record(&r);
	recorder_free(r.recorder);
	command_cancel(&r.command);
	// A command that was let go is waited for whatever happened to us; its status counts when all went well here.
	if (r.command.pid)
		ended = command_wait(&r.command);
	return status ? status : ended;
}

const struct command command_record = {
	.name = "record",
	.summary = "profile the block I/O of this node or of a command",
	.usage = "[[--] COMMAND [ARGUMENT...]]",
	.about = "Records which functions of which programs cause block I/O, the time it takes and the bytes it moves, until the "
		 "time is up or Ctrl-C, and writes a profile for 'go tool pprof' and other viewers. With COMMAND it records that "
		 "program and its descendants until it ends. The summary goes to standard error.",
	.options = record_option_table,
	.defaults = &record_defaults,
	.size = sizeof(record_defaults),
	.argument = "COMMAND",
	.arguments = offsetof(struct record_options, command),
	.max = INT32_MAX,
	.completes = COMPLETES_COMMAND,
	.command_line = true,
	.check = record_options_check,
	.run = run,
};
