// SPDX-License-Identifier: Apache-2.0
// State files of container runtimes. The first byte chooses the parser.
#include <stdlib.h>
#include <string.h>

#include "agent/containers.h"
#include "common/text.h"

#define ID "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool found, const char *name, size_t cap)
{
	if (found && (!*name || strlen(name) >= cap || !text_is_utf8(name, strlen(name))))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct service_container who;
	char name[256] = "", *text;

	if (!size)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	switch (*data % 6) {
	case 0:
		check(containers_parse_oci(text, size - 1, name, sizeof(name)), name, sizeof(name));
		break;
	case 1:
		check(containers_parse_docker(text, size - 1, name, sizeof(name)), name, sizeof(name));
		break;
	case 2:
		check(containers_parse_podman(text, size - 1, ID, name, sizeof(name)), name, sizeof(name));
		break;
	case 3:
		check(containers_parse_log(text, ID, name, sizeof(name)), name, sizeof(name));
		break;
	case 4:
		containers_workload(text, name, sizeof(name));
		break;
	default:
		if (service_container(text, &who) && (strlen(who.id) != 64 || strlen(who.pod_uid) > 36))
			abort();
	}
	free(text);
	return 0;
}
