// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
// The tracepoint backend for kernels that have BTF and refuse programs that are typed by it: the same hooks, every load a
// probe read.
#define CORE_TRACEPOINT
#include "bpf/core.bpf.h"
#include "bpf/cpu.bpf.h"
#include "bpf/follow_raw.bpf.h"
#include "bpf/block_hooks_raw.bpf.h"
