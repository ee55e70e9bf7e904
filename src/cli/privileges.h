// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_CLI_PRIVILEGES_H
#define BLKPROF_CLI_PRIVILEGES_H

#include "common/error.h"

// Where the kernel refused something (-EPERM, -EACCES) and a capability that record cannot do without is missing, the
// message says which and what to do. Returns code.
int privileges_explain(int code, struct error *e);

#endif
