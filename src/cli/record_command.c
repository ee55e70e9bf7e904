// SPDX-License-Identifier: Apache-2.0
#include "cli/record_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/signals.h"

static ssize_t read_whole(int fd, void *to, size_t len)
{
	ssize_t n;

	do
		n = read(fd, to, len);
	while (n < 0 && errno == EINTR);
	return n;
}

static void child(int go, int failed, char **argv)
{
	char byte;
	int err;

	signals_restore();
	// End of file instead of the byte: the recording never began.
	if (read_whole(go, &byte, 1) != 1)
		_exit(STATUS_BROKEN);
	execvp(argv[0], argv);
	err = errno;
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(STATUS_BROKEN);
	_exit(err == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN);
}

static void close_pipe(int pipe[2])
{
	close(pipe[0]);
	close(pipe[1]);
}

int command_fork(struct record_command *c, char **argv, struct error *e)
{
	int go[2], failed[2], err;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return error_set(e, -errno, "cannot start '%.60s': no pipe: %s", argv[0], strerror(errno));
	if (pipe2(failed, O_CLOEXEC)) {
		err = -errno;
		close_pipe(go);
		return error_set(e, err, "cannot start '%.60s': no pipe: %s", argv[0], strerror(-err));
	}
	pid = fork();
	if (pid < 0) {
		err = -errno;
		close_pipe(go);
		close_pipe(failed);
		return error_set(e, err, "cannot start '%.60s': no process: %s", argv[0], strerror(-err));
	}
	if (!pid) {
		close(go[1]);
		close(failed[0]);
		child(go[0], failed[1], argv);
	}
	close(go[0]);
	close(failed[1]);
	*c = (struct record_command){ .pid = pid, .go = go[1], .failed = failed[0] };
	return 0;
}

int command_go(struct record_command *c, char **argv, struct error *e)
{
	int reason = 0, n;

	// Signals from now on are the command's. One that came before exec would find it with the dispositions restored.
	signals_forward_to(c->pid);
	n = (int)write(c->go, "", 1);
	close(c->go);
	c->go = -1;
	n = n == 1 ? (int)read_whole(c->failed, &reason, sizeof(reason)) : 0;
	close(c->failed);
	if (n != sizeof(reason))
		return 0;
	command_wait(c);
	error_set(e, -reason, "cannot run '%.200s': %s%s", argv[0], strerror(reason),
		  reason == ENOENT ? "; is its name spelled right, and is it in PATH?" : "");
	return reason == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

bool command_ended(const struct record_command *c)
{
	siginfo_t info = { 0 };

	if (c->reaped)
		return true;
	return !waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == c->pid;
}

int command_wait(struct record_command *c)
{
	siginfo_t info;

	if (!c->reaped) {
		while (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			;
		// From here the pid may become somebody else's.
		signals_forward_to(-1);
		if (waitpid(c->pid, &c->status, 0) < 0)
			c->status = STATUS_BROKEN << 8;
		c->reaped = true;
	}
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void command_cancel(struct record_command *c)
{
	if (!c->pid || c->go < 0)
		return;
	close(c->go);
	close(c->failed);
	c->go = -1;
	command_wait(c);
}
