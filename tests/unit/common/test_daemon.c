// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/metrics.h"
#include "common/notify.h"

static int listen_on(const char *name, size_t len)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(a.sun_path, name, len);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)), 0);
	return fd;
}

static void told(int fd, const char *want)
{
	char got[128];
	ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

	assert_true(n > 0);
	got[n] = 0;
	assert_memory_equal(got, want, strlen(want));
}

static void the_manager_is_told(void **state)
{
	char folder[] = "/tmp/blkprof-notify-XXXXXX", path[64], name[64];
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	fd = listen_on(path, strlen(path));
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(notify_send("READY=1"), 0);
	told(fd, "READY=1");
	assert_int_equal(notify_reloading(), 0);
	told(fd, "RELOADING=1\nMONOTONIC_USEC=");
	close(fd);
	unlink(path);
	assert_int_equal(notify_send("READY=1"), -ENOENT);
	rmdir(folder);
	snprintf(name, sizeof(name), "@blkprof-test-%d", (int)getpid());
	setenv("NOTIFY_SOCKET", name, 1);
	name[0] = 0;
	fd = listen_on(name, 1 + strlen(name + 1));
	assert_int_equal(notify_send("STOPPING=1"), 0);
	told(fd, "STOPPING=1");
	close(fd);
}

static void nobody_to_tell(void **state)
{
	char path[200];

	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	assert_int_equal(notify_send("READY=1"), -EAFNOSUPPORT);
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[199] = 0;
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(notify_send("READY=1"), -ENAMETOOLONG);
	notify_forget();
	assert_int_equal(notify_send("READY=1"), 1);
}

static void metrics_as_prometheus_reads_them(void **state)
{
	struct {
		uint64_t a, b, g, t;
	} v = { .t = 1500000007 };
	static const struct metric table[] = {
		{ "x_total", "why=\"a\"", "Things.", METRIC_COUNTER, 0 },
		{ "x_total", "why=\"b\"", NULL, METRIC_COUNTER, 8 },
		{ "g", NULL, "Now.", METRIC_GAUGE, 16 },
		{ "t_seconds_total", NULL, "Time.", METRIC_SECONDS_COUNTER, 24 },
	};
	struct buf out = { 0 };

	metric_add(&v.a, 2);
	metric_add(&v.a, 1);
	metric_set(&v.g, UINT64_MAX);
	metrics_print(table, 4, &v, &out);
	buf_byte(&out, 0);
	assert_string_equal((char *)out.data, "# HELP x_total Things.\n# TYPE x_total counter\nx_total{why=\"a\"} 3\n"
					      "x_total{why=\"b\"} 0\n# HELP g Now.\n# TYPE g gauge\ng 18446744073709551615\n"
					      "# HELP t_seconds_total Time.\n# TYPE t_seconds_total counter\nt_seconds_total 1.500000007\n");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_manager_is_told),
		cmocka_unit_test(nobody_to_tell),
		cmocka_unit_test(metrics_as_prometheus_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
