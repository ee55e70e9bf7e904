// SPDX-License-Identifier: Apache-2.0
// What the programs must know of this kernel before they are loaded, read from its BTF.
#ifndef BLKPROF_AGENT_KERNEL_FACTS_H
#define BLKPROF_AGENT_KERNEL_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct kernel_facts {
	uint32_t flush_seq;	// mask of RQF_FLUSH_SEQ in a request's rq_flags
	bool bio_list_valid;	// current->bio_list is set at block_bio_queue only below a stacked device
	bool bio_has_bdev;	// bio->bi_bdev (5.12)
	bool queue_first;	// block_bio_queue's arguments are a queue and a bio (up to 5.10), not only a bio
	bool issue_queue_first; // the same of block_rq_issue, which a distribution's 5.10 may have or not
	bool switch_state;	// sched_switch says what state the thread sleeps in (5.18)
	bool hold_cpu;		// programs may forbid to be preempted (bpf_preempt_disable, 6.10)
	bool rdonly_cast;	// programs may read what is at any address as it stands (bpf_rdonly_cast, 6.2)
	uint8_t async_request;	// number of io_uring_queue_async_work's argument that is the request; 0 = cannot be followed
	int32_t memory_subsys;	// index of the memory controller in a css_set, -1 = none
	int32_t pids_subsys;
	int32_t blkio_subsys;
};

// -ENOENT with a message when the kernel has no BTF.
int kernel_facts_read(struct kernel_facts *ret, struct error *e);
// Index of a v1 controller ("memory") in a css_set; -ENOENT.
int kernel_facts_subsys(const char *controller, int32_t *ret);

#endif
