// SPDX-License-Identifier: Apache-2.0
// What the daemons' commands share: signals that are looked at between two steps, and a log on standard error.
#ifndef BLKPROF_CLI_DAEMON_H
#define BLKPROF_CLI_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum daemon_level {
	DAEMON_INFO,
	DAEMON_WARNING,
	DAEMON_ERROR
};

// SIGTERM and SIGINT end the daemon; SIGHUP and SIGUSR1 are remembered; SIGPIPE is an error of write.
void daemon_signals(void);
bool daemon_stopped(void);
bool daemon_take(int signal); // whether SIGHUP or SIGUSR1 came since the last call

// One line. Under systemd (its journal takes standard error) with the level in front as it wants it, else with words.
void daemon_log(const char *who, enum daemon_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
// A text of several lines, each one a line of the log.
void daemon_log_text(const char *who, const char *text, size_t len);
// Half of the time within which the service manager wants to hear of us, ns; 0 = it does not.
uint64_t daemon_watchdog(void);

#endif
