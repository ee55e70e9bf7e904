// SPDX-License-Identifier: Apache-2.0
// The program that is recorded: started stopped, let go once the probes are in place, waited for as env(1)'s user would.
#ifndef BLKPROF_CLI_RECORD_COMMAND_H
#define BLKPROF_CLI_RECORD_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

enum {
	STATUS_BROKEN = 125,	 // blkprof failed, as of env(1)
	STATUS_CANNOT_RUN = 126, // COMMAND is there and cannot be run
	STATUS_NOT_FOUND = 127,
};

struct record_command {
	pid_t pid;	// 0 = none
	int go;		// writing to it lets the child call exec; -1 when done
	int failed;	// the child writes the errno of exec to it; closed by exec
	bool reaped;
	int status;	// of waitpid, once reaped
};

// Forks a child that waits. argv as of execvp; signals as signals_restore leaves them. Negative errno on failure.
int command_fork(struct record_command *c, char **argv, struct error *e);
// Lets it run. 0, or the exit status (126, 127) and a message when it cannot be executed.
int command_go(struct record_command *c, char **argv, struct error *e);
// Whether it has ended; it stays a zombie until command_wait, so that its counters can still be read.
bool command_ended(const struct record_command *c);
// Waits for it (signals are handed on meanwhile) and returns the exit status of its end: 128 + signal when it was killed.
int command_wait(struct record_command *c);
// Ends a child that was never let go. Does nothing after command_go.
void command_cancel(struct record_command *c);

#endif
