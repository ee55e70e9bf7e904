// SPDX-License-Identifier: Apache-2.0
#ifndef BLKPROF_AGENT_REQUEST_PROBES_INTERNAL_H
#define BLKPROF_AGENT_REQUEST_PROBES_INTERNAL_H

#include "bpf/request_rec.h"

void request_actions(u8 ret[REQ_SYSCALLS]);

#endif
