// SPDX-License-Identifier: Apache-2.0
// Where a collector listens: tcp://HOST:PORT or ipc://PATH.
#ifndef BLKPROF_WIRE_ADDRESS_H
#define BLKPROF_WIRE_ADDRESS_H

#include <stdbool.h>

#include "common/error.h"

// -EINVAL with what is allowed. To listen on, HOST may be * or an interface's name.
int address_check(const char *address, struct error *e);
// Nobody outside this machine can connect to it: plain TCP is allowed. The name localhost counts as what it says.
bool address_is_local(const char *address);

#endif
