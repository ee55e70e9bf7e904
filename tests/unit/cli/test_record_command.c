// SPDX-License-Identifier: Apache-2.0
// The program under record: statuses as of env(1), signals handed on, nothing runs before it is let go.
#include "cli/record_command.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/signals.h"
#include "unit/cli/words.h"

static char *const shell[] = { "sh", "-c", NULL, NULL };

static int run(char **argv, struct error *e)
{
	struct record_command c = { 0 };
	int status;

	signals_install(true);
	assert_int_equal(command_fork(&c, argv, e), 0);
	status = command_go(&c, argv, e);
	if (!status)
		status = command_wait(&c);
	signals_restore();
	assert_int_equal(waitpid(c.pid, NULL, WNOHANG), -1);
	return status;
}

static int run_shell(const char *script)
{
	char *argv[] = { shell[0], shell[1], (char *)script, NULL };
	struct error e;

	return run(argv, &e);
}

static void statuses(void **state)
{
	static const struct {
		const char *script;
		int status;
	} cases[] = {
		{ "true", 0 },		    { "exit 1", 1 },		   { "exit 7", 7 },
		{ "exit 125", 125 },	    { "exit 255", 255 },	   { "kill -TERM $$", 128 + SIGTERM },
		{ "kill -KILL $$", 128 + SIGKILL }, { "kill -INT $$", 128 + SIGINT }, { "kill -PIPE $$", 128 + SIGPIPE },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(run_shell(cases[i].script), cases[i].status);
}

static void cannot_run(void **state)
{
	char *missing[] = { "/nonexistent/program", NULL }, *unknown[] = { "no-such-program-anywhere", NULL };
	char *folder[] = { "/", NULL }, *data[] = { "/proc/self/status", NULL };
	struct error e;

	assert_int_equal(run(missing, &e), STATUS_NOT_FOUND);
	assert_non_null(strstr(e.text, "cannot run '/nonexistent/program': No such file"));
	assert_int_equal(run(unknown, &e), STATUS_NOT_FOUND);
	assert_non_null(strstr(e.text, "in PATH"));
	assert_int_equal(run(folder, &e), STATUS_CANNOT_RUN);
	assert_int_equal(run(data, &e), STATUS_CANNOT_RUN);
	assert_non_null(strstr(e.text, "Permission denied"));
}

static void nothing_before_go(void **state)
{
	char path[] = "/tmp/blkprof-test-XXXXXX";
	int fd = mkstemp(path);
	char *argv[] = { "rm", path, NULL };
	struct record_command c = { 0 };
	struct error e;

	assert_true(fd >= 0);
	signals_install(true);
	assert_int_equal(command_fork(&c, argv, &e), 0);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	assert_false(command_ended(&c));
	assert_int_equal(access(path, F_OK), 0);
	command_cancel(&c);
	assert_int_equal(command_wait(&c), STATUS_BROKEN);
	assert_int_equal(access(path, F_OK), 0);
	signals_restore();
	unlink(path);
	close(fd);
}

static void ended_stays_a_zombie(void **state)
{
	char *argv[] = { "true", NULL };
	struct record_command c = { 0 };
	struct error e;

	signals_install(true);
	assert_int_equal(command_fork(&c, argv, &e), 0);
	assert_int_equal(command_go(&c, argv, &e), 0);
	for (int i = 0; !command_ended(&c); i++) {
		assert_true(i < 1000);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	assert_int_equal(kill(c.pid, 0), 0);
	assert_int_equal(command_wait(&c), 0);
	assert_int_equal(kill(c.pid, 0), -1);
	signals_restore();
}

// What is sent to us alone reaches the command and does not end the recording.
static void signals_handed_on(void **state)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

	for (unsigned i = 0; i < 4; i++) {
		char *argv[] = { "sleep", "60", NULL };
		struct record_command c = { 0 };
		struct error e;

		signals_install(true);
		assert_int_equal(command_fork(&c, argv, &e), 0);
		assert_int_equal(command_go(&c, argv, &e), 0);
		kill(getpid(), numbers[i]);
		assert_int_equal(command_wait(&c), 128 + numbers[i]);
		assert_false(signals_stop());
		signals_restore();
	}
}

// The command finds the dispositions that we found.
static void dispositions(void **state)
{
	signal(SIGHUP, SIG_IGN);
	assert_int_equal(run_shell("kill -HUP $$; exit 3"), 3);
	signal(SIGHUP, SIG_DFL);
	assert_int_equal(run_shell("kill -HUP $$; exit 3"), 128 + SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(run_shell("kill -PIPE $$; exit 3"), 3);
	signal(SIGPIPE, SIG_DFL);
}

static void alone(void **state)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };

	for (unsigned i = 0; i < 3; i++) {
		signals_install(false);
		assert_false(signals_stop());
		kill(getpid(), numbers[i]);
		assert_true(signals_stop());
		kill(getpid(), numbers[i]);
		kill(getpid(), SIGPIPE);
		assert_true(signals_stop());
		signals_restore();
	}
}

static void nohup(void **state)
{
	signal(SIGHUP, SIG_IGN);
	signals_install(false);
	kill(getpid(), SIGHUP);
	assert_false(signals_stop());
	signals_restore();
	signal(SIGHUP, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses),	    cmocka_unit_test(cannot_run),
		cmocka_unit_test(nothing_before_go), cmocka_unit_test(ended_stays_a_zombie),
		cmocka_unit_test(signals_handed_on), cmocka_unit_test(dispositions),
		cmocka_unit_test(alone),	    cmocka_unit_test(nohup),
	};

	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 }); // QUIT would leave one
	return cmocka_run_group_tests(tests, NULL, NULL);
}
