// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

// A handler can reach nothing but globals.
static volatile sig_atomic_t stop, forward;

static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGPIPE };
#define HANDLED (sizeof(handled) / sizeof(*handled))
static struct sigaction found[HANDLED];

static void on_stop(int signal)
{
	stop = 1;
}

static void on_forward(int signal, siginfo_t *info, void *context)
{
	int saved = errno;

	// What the terminal sends reaches the whole foreground group, so the command too; si_code is then SI_KERNEL.
	if (forward > 0 && info->si_code <= 0)
		kill((pid_t)forward, signal);
	else if (forward <= 0)
		stop = 1;
	errno = saved;
}

// Only there so that a wait is interrupted.
static void on_child(int signal)
{
}

static void install(unsigned i, bool with_command)
{
	struct sigaction action = { .sa_handler = on_stop };

	sigemptyset(&action.sa_mask);
	sigaction(handled[i], NULL, &found[i]);
	switch (handled[i]) {
	case SIGPIPE:
		action.sa_handler = SIG_IGN; // a closed pipe is an error of write
		break;
	case SIGCHLD:
		action.sa_handler = on_child;
		break;
	case SIGQUIT:
		if (!with_command)
			return;
		break;
	case SIGHUP:
		if (found[i].sa_handler == SIG_IGN) // nohup
			return;
		break;
	}
	if (with_command && action.sa_handler == on_stop) {
		action.sa_flags = SA_SIGINFO;
		action.sa_sigaction = on_forward;
	}
	sigaction(handled[i], &action, NULL);
}

void signals_install(bool with_command)
{
	stop = forward = 0;
	for (unsigned i = 0; i < HANDLED; i++)
		install(i, with_command);
}

void signals_forward_to(pid_t pid)
{
	forward = pid;
}

bool signals_stop(void)
{
	return stop;
}

void signals_restore(void)
{
	for (unsigned i = 0; i < HANDLED; i++)
		sigaction(handled[i], &found[i], NULL);
}
