// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"

// A handler can reach nothing but globals.
static volatile sig_atomic_t stopped, hung_up, user1;

static void on_signal(int signal)
{
	switch (signal) {
	case SIGHUP:
		hung_up = 1;
		break;
	case SIGUSR1:
		user1 = 1;
		break;
	default:
		stopped = 1;
	}
}

void daemon_signals(void)
{
	static const int handled[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1 };
	struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(handled) / sizeof(*handled); i++)
		sigaction(handled[i], &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

bool daemon_stopped(void)
{
	return stopped;
}

bool daemon_take(int signal)
{
	volatile sig_atomic_t *flag = signal == SIGHUP ? &hung_up : &user1;

	// Cleared only where it was set: one that comes in between is not lost.
	if (!*flag)
		return false;
	*flag = 0;
	return true;
}

// Written at once, so that lines of threads do not mix.
static void write_line(const char *who, enum daemon_level level, const char *text, int len)
{
	static const char *const words[] = { "", "warning: ", "error: " };
	static const int priorities[] = { 6, 4, 3 };

	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%.*s\n", priorities[level], len, text);
	else
		fprintf(stderr, "blkprof %s: %s%.*s\n", who, words[level], len, text);
}

void daemon_log(const char *who, enum daemon_level level, const char *format, ...)
{
	char text[1024], clean[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	text_sanitize(clean, sizeof(clean), text, strlen(text));
	write_line(who, level, clean, (int)strlen(clean));
}

void daemon_log_text(const char *who, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;

		write_line(who, DAEMON_INFO, text, (int)(stop - text));
		text = stop + 1;
	}
}

uint64_t daemon_watchdog(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t n;

	if (!usec || text_number(usec, 1, UINT64_MAX / 1000, "WATCHDOG_USEC", &n, NULL))
		return 0;
	if (pid && strtoull(pid, NULL, 10) != (unsigned long long)getpid())
		return 0;
	return n * 1000 / 2;
}
