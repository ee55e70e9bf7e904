// SPDX-License-Identifier: Apache-2.0
// Declarations of plugins; their objects are tested where there is a kernel (tests/e2e/request_plugins.py).
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/request_plugins.h"

#define SOURCE "[source]\nabi = 1\nobject = x.bpf.o\n"

static void declarations(void **state)
{
	static const struct {
		const char *text, *says; // NULL = it is right
	} cases[] = {
		{ SOURCE "[metrics]\nx_wait_ms_f = timer sum max what it is\nx_n_l = counter sum avg\nx_deep_i = gauge max max\n", NULL },
		{ "[source]\nabi = 2\nobject = x.bpf.o\n[metrics]\nx_i = counter sum sum\n", "abi = 2" },
		{ "[metrics]\nx_i = counter sum sum\n", "abi = 0" },
		{ "[source]\nabi = 1\nobject = ../x.bpf.o\n[metrics]\nx_n_i = counter sum sum\n", "same folder" },
		{ "[source]\nabi = 1\n[metrics]\nx_n_i = counter sum sum\n", "same folder" },
		{ SOURCE, "0 lines" },
		{ SOURCE "[metrics]\nx_a_i = counter sum sum\nx_b_i = counter sum sum\nx_c_i = counter sum sum\nx_d_i = counter sum sum\n"
			 "x_e_i = counter sum sum\n", "5 lines" },
		{ SOURCE "[metrics]\nn_i = counter sum sum\n", "begin with its own name" },
		{ SOURCE "[metrics]\nxn_i = counter sum sum\n", "begin with its own name" },
		{ SOURCE "[metrics]\nx_n_i = counter sum\n", "KIND WITHIN ACROSS" },
		{ SOURCE "[metrics]\nx_n_i = histogram sum sum\n", "KIND WITHIN ACROSS" },
		{ SOURCE "[metrics]\nx_n_i = counter sum span\n", "KIND WITHIN ACROSS" },
		{ SOURCE "[metrics]\nx_n_i = timer sum sum\n", "_ms_f" },
		{ SOURCE "[metrics]\nx_n_s = counter sum sum\n", "_i or _l" },
		{ SOURCE "[metrics]\nx_N_i = counter sum sum\n", "small letters" },
		{ SOURCE "colour = blue\n", "colour" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct error e = { "" };
		int err = request_plugins_check("x", cases[i].text, strlen(cases[i].text), &e);

		if (!cases[i].says)
			assert_int_equal(err, 0);
		else if (!err || !strstr(e.text, cases[i].says))
			fail_msg("case %zu: %d, '%s'", i, err, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(declarations) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
