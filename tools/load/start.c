// SPDX-License-Identifier: Apache-2.0
#include "start.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void start_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGUSR1);
}

void start_prepare(void)
{
	sigset_t set;

	start_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int start_wait(struct error *e)
{
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
	sigset_t set;
	char byte;

	start_signals(&set);
	p[1].fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (p[1].fd < 0)
		return error_set(e, -errno, "cannot wait for SIGUSR1: %s", strerror(errno));
	puts("ready");
	fflush(stdout);
	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	if (!p[1].revents)
		while (read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n')
			;
	close(p[1].fd);
	return 0;
}

void start_linger(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) == 1)
		;
}
