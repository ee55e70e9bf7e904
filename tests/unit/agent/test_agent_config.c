// SPDX-License-Identifier: Apache-2.0
// Keys of agent.conf that are checked behind the parser.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent_config.h"

static int read_text(const char *text, struct agent_config *ret, struct error *e)
{
	char path[] = "/tmp/agent-config-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = agent_config_read(path, ret, e);
	unlink(path);
	return err;
}

static void the_header_of_a_request_s_id(void **state)
{
	static const struct {
		const char *text, *header; // NULL = it is wrong
	} cases[] = {
		{ "[agent]\nnode = a\n", "X-Trace-Id" },
		{ "[agent]\nnode = a\n[requests]\ntrace_header = X-Request-Id\n", "X-Request-Id" },
		{ "[agent]\nnode = a\n[requests]\ntrace_header =\n", NULL },
		{ "[agent]\nnode = a\n[requests]\ntrace_header = X Id\n", NULL },
		{ "[agent]\nnode = a\n[requests]\ntrace_header = X-Id:\n", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct agent_config c;
		struct error e = { "" };
		int err = read_text(cases[i].text, &c, &e);

		assert_int_equal(err, cases[i].header ? 0 : -EINVAL);
		if (err) {
			assert_non_null(strstr(e.text, "is no name of a header"));
			continue;
		}
		assert_string_equal(c.trace_header, cases[i].header);
		agent_config_free(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_of_a_request_s_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
