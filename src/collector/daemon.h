// SPDX-License-Identifier: Apache-2.0
// The collector from its start to its end.
#ifndef BLKPROF_COLLECTOR_DAEMON_H
#define BLKPROF_COLLECTOR_DAEMON_H

#include "common/error.h"

// Runs until SIGTERM or SIGINT. Writes its log to standard error, a line each. 0, or why it could not start.
int collector_run(const char *config, struct error *e);

#endif
