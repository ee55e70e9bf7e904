// SPDX-License-Identifier: Apache-2.0
// Records of a perf ring buffer made events of the process table. Pure: the bytes come from the caller. The records are
// those of a software event with sample_id_all and sample_type TID | TIME, so that each ends in {pid, tid, time}.
#ifndef BLKPROF_AGENT_PERFRING_H
#define BLKPROF_AGENT_PERFRING_H

#include <stddef.h>
#include <stdint.h>

#include "agent/proctable.h"

#define PERF_RECORD_SIZE_MAX 65536 // header.size has 16 bits

// One record at data[0, len). Returns its size, with ret->type PROC_NONE when it is of no interest; -EBADMSG when it is
// cut short or inconsistent. Text points into data.
int perf_record_parse(const void *data, size_t len, struct proc_event *ret);

// The data area of a ring as the kernel maps it: size a power of two, positions only ever grow.
struct perf_view {
	const uint8_t *data;
	size_t size;
	uint64_t head, tail;
	uint8_t *scratch; // PERF_RECORD_SIZE_MAX bytes for records that wrap
};

// The record at the tail, which stays there: 0 with *ret and *ret_size; -EAGAIN when the ring is empty; -EBADMSG when
// what is there cannot be followed any more (the caller then skips to the head).
int perf_view_peek(const struct perf_view *v, struct proc_event *ret, size_t *ret_size);

#endif
