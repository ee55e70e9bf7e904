// SPDX-License-Identifier: Apache-2.0
// What this process costs the node, from the kernel's own books.
#ifndef BLKPROF_AGENT_COST_H
#define BLKPROF_AGENT_COST_H

#include <stdint.h>

struct cost {
	uint64_t cpu_ns;      // user and system time of the process, without BPF programs
	uint64_t rss;	      // bytes
	uint64_t peak_rss;
	uint64_t bpf_ns;      // run time of the BPF programs that it holds; 0 unless kernel.bpf_stats_enabled is 1
	uint64_t bpf_runs;
	uint64_t map_bytes;   // kernel memory of the BPF maps that it holds
	unsigned maps, programs;
};

// What cannot be read stays 0.
void cost_read(struct cost *ret);

#endif
