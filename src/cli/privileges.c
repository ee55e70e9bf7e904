// SPDX-License-Identifier: Apache-2.0
#include "cli/privileges.h"

#include <errno.h>
#include <unistd.h>

#include "agent/hostinfo.h"

int privileges_explain(int code, struct error *e)
{
	char missing[128];
	struct hostinfo h;

	if ((code != -EPERM && code != -EACCES) || hostinfo_read(NULL, &h) || !hostinfo_missing(&h, missing, sizeof(missing)))
		return code;
	if (geteuid())
		return error_set(e, code, "the kernel refuses the probes without %s: run it as root", missing);
	return error_set(e, code, "the kernel refuses the probes: root was started without %s; allow it to this container or service",
			 missing);
}
