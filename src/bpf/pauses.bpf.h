/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* One map of two objects: the JVM's own probes write what they saw of it, events of requests read it. */
#ifndef BLKPROF_BPF_PAUSES_H
#define BLKPROF_BPF_PAUSES_H

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REQ_JVMS);
	__type(key, u32);
	__type(value, struct req_pauses);
} pauses SEC(".maps");

#endif
