// SPDX-License-Identifier: Apache-2.0
// The text of /proc/PID/cgroup: any container's process chooses what its sub-cgroups are called.
#include <stdlib.h>
#include <string.h>

#include "agent/service.h"
#include "common/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), service[64], path[256], controller[16];

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	service_from_cgroup(text, "process", service, sizeof(service));
	if (strlen(service) >= sizeof(service) || !text_is_utf8(service, strlen(service)))
		abort();
	if (!service_cgroup_path(text, path, sizeof(path), controller, sizeof(controller)) && path[0] != '/')
		abort();
	free(text);
	return 0;
}
